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
    /// A NoExecute that is tolerated for so many seconds: nothing new comes, what is there leaves after that.
    Leave(&'a Taint, u64),
    /// An untolerated NoExecute: nothing new comes, what is there leaves.
    Evict(&'a Taint),
}

/// For how long a taint is tolerated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Patience {
    /// Not at all.
    Untolerated,
    /// For so many seconds.
    Seconds(u64),
    /// As long as it is there.
    Forever,
}

/// The strictest taint's verdict; of equally strict ones the first, or the one that is tolerated for the shortest time.
pub(super) fn verdict<'a>(taints: &'a [Taint], tolerations: &[Toleration]) -> Verdict<'a> {
    let untolerated = |effect: TaintEffect| {
        taints
            .iter()
            .find(|taint| taint.effect == effect && !tolerates(tolerations, taint))
    };
    let executing = taints.iter().filter(|taint| taint.effect == TaintEffect::NoExecute);
    let for_a_time = executing.filter_map(|taint| match patience(tolerations, taint) {
        Patience::Untolerated => Some((taint, 0)),
        Patience::Seconds(seconds) => Some((taint, seconds)),
        Patience::Forever => None,
    });
    match for_a_time.min_by_key(|(_, seconds)| *seconds) {
        Some((taint, 0)) => return Verdict::Evict(taint),
        Some((taint, seconds)) => return Verdict::Leave(taint, seconds),
        None => {}
    }
    if let Some(taint) = untolerated(TaintEffect::NoSchedule) {
        return Verdict::KeepOut(taint);
    }
    untolerated(TaintEffect::PreferNoSchedule).map_or(Verdict::Free, Verdict::Avoid)
}

/// For how long a taint NoExecute is tolerated: for the shortest time that a toleration names, as Kubernetes has it.
pub(super) fn patience(tolerations: &[Toleration], taint: &Taint) -> Patience {
    let mut covering = tolerations
        .iter()
        .filter(|toleration| toleration.covers(taint))
        .peekable();
    if covering.peek().is_none() {
        return Patience::Untolerated;
    }
    let seconds = covering.filter_map(|toleration| toleration.toleration_seconds).min();
    seconds.map_or(Patience::Forever, |seconds| {
        Patience::Seconds(u64::try_from(seconds).unwrap_or_default())
    })
}

/// Whether any toleration covers the taint.
pub(super) fn tolerates(tolerations: &[Toleration], taint: &Taint) -> bool {
    tolerations.iter().any(|toleration| toleration.covers(taint))
}

/// `key=value:Effect`, as kubectl writes a taint.
pub(super) fn text(taint: &Taint) -> String {
    let effect = taint.effect.as_str();
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

    #[test]
    fn what_is_tolerated_for_a_time_leaves_after_the_shortest() {
        let taints = [taint(TaintEffect::NoExecute)];
        let lasting = |seconds| Toleration {
            toleration_seconds: seconds,
            ..toleration("dedicated", Some("Exists"), "", Some(TaintEffect::NoExecute))
        };
        let verdict = |tolerations: &[Toleration]| verdict(&taints, tolerations);
        assert_eq!(verdict(&[lasting(Some(30))]), Verdict::Leave(&taints[0], 30));
        assert_eq!(
            verdict(&[lasting(None), lasting(Some(60)), lasting(Some(20))]),
            Verdict::Leave(&taints[0], 20)
        );
        for seconds in [0, -5] {
            assert_eq!(verdict(&[lasting(Some(seconds))]), Verdict::Evict(&taints[0]));
        }
        assert_eq!(verdict(&[lasting(None)]), Verdict::Free);
    }
}
