//! Taints and tolerations with Kubernetes' semantics.

use crate::model::{Taint, TaintEffect, Toleration};

/// What a cluster's taints mean for a unit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Verdict<'a> {
    /// Nothing stands against it.
    Free,
    /// An untolerated PreferNoSchedule: only where one chooses among clusters does it matter.
    Avoid(&'a Taint),
    /// An untolerated NoSchedule: nothing new comes, what is there stays.
    KeepOut(&'a Taint),
    /// An untolerated NoExecute: nothing new comes, what is there leaves.
    Evict(&'a Taint),
}

/// The strictest untolerated taint's verdict; of equally strict ones the first.
pub(super) fn verdict<'a>(taints: &'a [Taint], tolerations: &[Toleration]) -> Verdict<'a> {
    let untolerated = |effect: TaintEffect| {
        taints
            .iter()
            .find(|taint| taint.effect == effect && !tolerates(tolerations, taint))
    };
    if let Some(taint) = untolerated(TaintEffect::NoExecute) {
        return Verdict::Evict(taint);
    }
    if let Some(taint) = untolerated(TaintEffect::NoSchedule) {
        return Verdict::KeepOut(taint);
    }
    untolerated(TaintEffect::PreferNoSchedule).map_or(Verdict::Free, Verdict::Avoid)
}

/// Whether any toleration covers the taint.
pub(super) fn tolerates(tolerations: &[Toleration], taint: &Taint) -> bool {
    tolerations.iter().any(|toleration| toleration.covers(taint))
}

/// `key=value:Effect`, as kubectl writes a taint.
pub(super) fn text(taint: &Taint) -> String {
    let effect = match taint.effect {
        TaintEffect::NoSchedule => "NoSchedule",
        TaintEffect::PreferNoSchedule => "PreferNoSchedule",
        TaintEffect::NoExecute => "NoExecute",
    };
    if taint.value.is_empty() {
        format!("{}:{effect}", taint.key)
    } else {
        format!("{}={}:{effect}", taint.key, taint.value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taint(effect: TaintEffect) -> Taint {
        Taint {
            key: "dedicated".to_owned(),
            value: "team".to_owned(),
            effect,
        }
    }

    fn toleration(key: &str, operator: Option<&str>, value: &str, effect: Option<TaintEffect>) -> Toleration {
        Toleration {
            key: key.to_owned(),
            operator: operator.map(str::to_owned),
            value: value.to_owned(),
            effect,
            toleration_seconds: None,
        }
    }

    #[track_caller]
    fn check(toleration: &Toleration, expected: bool) {
        let taint = taint(TaintEffect::NoSchedule);
        assert_eq!(
            tolerates(std::slice::from_ref(toleration), &taint),
            expected,
            "{toleration:?}"
        );
    }

    #[test]
    fn tolerations_match_as_kubernetes_says() {
        let hard = Some(TaintEffect::NoSchedule);
        check(&toleration("dedicated", None, "team", hard), true);
        check(&toleration("dedicated", Some("Equal"), "other", hard), false);
        check(&toleration("dedicated", Some("Exists"), "", None), true);
        check(&toleration("other", Some("Exists"), "", None), false);
        check(&toleration("", Some("Exists"), "", None), true);
        check(&toleration("", Some("Exists"), "", Some(TaintEffect::NoExecute)), false);
        check(&toleration("dedicated", Some("Near"), "team", None), false);
    }

    #[test]
    fn the_strictest_untolerated_taint_decides() {
        let all = [
            taint(TaintEffect::PreferNoSchedule),
            taint(TaintEffect::NoSchedule),
            taint(TaintEffect::NoExecute),
        ];
        assert_eq!(verdict(&all, &[]), Verdict::Evict(&all[2]));
        assert_eq!(verdict(&all[..2], &[]), Verdict::KeepOut(&all[1]));
        assert_eq!(verdict(&all[..1], &[]), Verdict::Avoid(&all[0]));
        let evicting_only = toleration("dedicated", Some("Exists"), "", Some(TaintEffect::NoExecute));
        assert_eq!(verdict(&all, &[evicting_only]), Verdict::KeepOut(&all[1]));
        assert_eq!(
            verdict(&all, &[toleration("", Some("Exists"), "", None)]),
            Verdict::Free
        );
    }
}
