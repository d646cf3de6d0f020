//! Whether a field in dispute is taken by force, or left to who has it.

use std::collections::BTreeSet;
use std::sync::Arc;

use render::model::{DriftMode, IgnoreRule};
use serde_json::Value;

use super::conflict::Cause;
use super::fields::Owners;
use super::migrate::is_hand;
use super::path::{Path, Step, locate};
use super::scale::is_scaled_by_controller;
use super::shape::{left_by_rules, names};
use crate::apply::{FIELD_MANAGER, object};

/// Subsets of fields that are tried to find out which were refused before: of more fields than this, only all
/// and none. A manifest that disputes nine fields with somebody is rare, and then nothing is forced too much.
const SUBSET_FIELDS_MAX: usize = 8;

/// What is known of what we applied last.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::apply) enum Last {
    /// Nothing: the object was there, and is nobody's.
    Never,
    /// This very manifest, but for fields that were refused then.
    Same(Vec<String>),
    /// An older manifest, but for fields that were refused then.
    Older(Arc<Value>, Vec<String>),
    /// Something else, which nobody here remembers.
    Unknown,
}

/// What becomes of a field in dispute.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::apply) enum Ruling {
    /// It is ours: it gets the manifest's value.
    Force,
    /// It is left out of what is sent.
    Leave(Why),
}

/// Why a field is left to who has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::apply) enum Why {
    /// A rule in Git says so.
    Ignored,
    /// An autoscaler sets it.
    Scaled,
    /// Differences are to be reported and not put right.
    Reported,
    /// It was never ours, and the manifest newly claims it.
    Refused,
}

/// All that a decision about a field looks at.
pub(in crate::apply) struct Claim<'a> {
    /// The manifest as it would be sent.
    pub manifest: &'a Value,
    /// Who owns what.
    pub owners: Owners<'a>,
    /// What was applied last.
    pub last: &'a Last,
    /// What is done about fields that others changed.
    pub drift: DriftMode,
    /// The rules about this object.
    pub rules: &'a [IgnoreRule],
    /// Whether an autoscaler of the delivery targets the object.
    pub scaled: bool,
}

impl Claim<'_> {
    /// Decides about a field that somebody else owns; with the field, where it can be left out.
    pub(in crate::apply) fn rule(&self, cause: &Cause) -> (Ruling, Option<Path>) {
        let path = locate(&cause.field, self.manifest);
        (self.ruling(cause, path.as_deref()), path)
    }

    fn ruling(&self, cause: &Cause, path: Option<&[Step]>) -> Ruling {
        let Some(path) = path else {
            // What cannot be told from the manifest cannot be left out of it either: it is forced only where
            // everything is ours.
            return match self.last {
                Last::Never => Ruling::Force,
                Last::Same(refused) if refused.is_empty() && self.drift == DriftMode::Correct => Ruling::Force,
                _ => Ruling::Leave(Why::Refused),
            };
        };
        if self.is_ignored(cause, path) {
            return Ruling::Leave(Why::Ignored);
        }
        if self.scaled && cause.field == ".spec.replicas" || is_scaled_by_controller(cause) {
            return Ruling::Leave(Why::Scaled);
        }
        if cause.manager == FIELD_MANAGER && cause.subresource.is_empty() {
            // What a webhook made of our own apply, or an update of ours.
            return Ruling::Force;
        }
        let is_ours = match self.last {
            Last::Never => return Ruling::Force,
            // Whoever changes a field of ours takes it from us; what we still own, Git changed.
            _ if self.owners.owns(path) => return Ruling::Force,
            Last::Same(refused) => !refused.contains(&cause.field),
            Last::Older(older, refused) => !refused.contains(&cause.field) && locate(&cause.field, older).is_some(),
            // Controllers keep what they have; what a hand changed was most likely ours.
            Last::Unknown => is_hand(&cause.manager),
        };
        match (is_ours, self.drift) {
            (false, _) => Ruling::Leave(Why::Refused),
            (true, DriftMode::Correct) => Ruling::Force,
            (true, DriftMode::Report | DriftMode::Freeze) => Ruling::Leave(Why::Reported),
        }
    }

    fn is_ignored(&self, cause: &Cause, path: &[Step]) -> bool {
        let by_manager = |rule: &&IgnoreRule| rule.paths.is_empty() && names(rule, Some(&cause.manager));
        self.rules.iter().any(|rule| by_manager(&rule))
            || left_by_rules(self.manifest, self.owners, self.rules)
                .iter()
                .any(|left| path.starts_with(left))
    }
}

/// Which of the fields in dispute were refused when the manifest with this digest was applied: those without
/// which it has the digest that was noted then. `None` when something else was applied.
pub(in crate::apply) fn refused_before(digest: &str, disputed: &[Cause], applied: &str) -> Option<Vec<String>> {
    let disputed: BTreeSet<_> = disputed.iter().map(|cause| cause.field.as_str()).collect();
    let try_without = |fields: Vec<&str>| {
        let is_it = object::digest_without(digest, &fields) == applied;
        is_it.then(|| fields.into_iter().map(str::to_owned).collect())
    };
    if disputed.len() > SUBSET_FIELDS_MAX {
        return try_without(Vec::new()).or_else(|| try_without(disputed.into_iter().collect()));
    }
    (0..1_usize << disputed.len()).find_map(|subset| {
        let chosen = disputed.iter().enumerate().filter(|(at, _)| subset >> at & 1 == 1);
        try_without(chosen.map(|(_, field)| *field).collect())
    })
}

#[cfg(test)]
mod tests {
    use kube::core::ObjectMeta;
    use serde_json::json;

    use super::super::fixture;
    use super::*;

    const FORCE: Ruling = Ruling::Force;
    const REFUSED: Ruling = Ruling::Leave(Why::Refused);

    fn manifest() -> Value {
        json!({"spec": {"replicas": 2, "paused": true, "containers": [{"name": "web", "image": "web:2"}]}})
    }

    fn cause(manager: &str, field: &str) -> Cause {
        let (manager, subresource) = manager.split_once('/').unwrap_or((manager, ""));
        Cause {
            manager: manager.to_owned(),
            subresource: subresource.to_owned(),
            field: field.to_owned(),
        }
    }

    /// We own `.spec.paused`, and nothing else any more.
    fn metadata() -> ObjectMeta {
        fixture::metadata(&[(FIELD_MANAGER, "Apply", json!({"f:spec": {"f:paused": {}}}))])
    }

    struct Case<'a> {
        last: Last,
        drift: DriftMode,
        rules: &'a [IgnoreRule],
        scaled: bool,
    }

    fn last(last: Last) -> Case<'static> {
        Case {
            last,
            drift: DriftMode::Correct,
            rules: &[],
            scaled: false,
        }
    }

    #[track_caller]
    fn check(case: &Case<'_>, manager: &str, field: &str, expected: Ruling) {
        let (manifest, metadata) = (manifest(), metadata());
        let claim = Claim {
            manifest: &manifest,
            owners: Owners::of(&metadata),
            last: &case.last,
            drift: case.drift,
            rules: case.rules,
            scaled: case.scaled,
        };
        assert_eq!(claim.rule(&cause(manager, field)).0, expected, "{manager} over {field}");
    }

    const IMAGE: &str = ".spec.containers[name=\"web\"].image";

    #[test]
    fn what_was_applied_last_is_forced_back() {
        check(&last(Last::Same(Vec::new())), "kubectl-set", IMAGE, FORCE);
        check(&last(Last::Same(Vec::new())), "operator", IMAGE, FORCE);
        let older = json!({"spec": {"containers": [{"name": "web", "image": "web:1"}]}});
        let older = Arc::new(older);
        check(&last(Last::Older(older.clone(), Vec::new())), "operator", IMAGE, FORCE);
        let refused = vec![IMAGE.to_owned()];
        check(&last(Last::Older(older, refused)), "operator", IMAGE, REFUSED);
    }

    #[test]
    fn a_field_that_is_newly_claimed_is_refused() {
        let older = Arc::new(json!({"spec": {}}));
        check(&last(Last::Older(older, Vec::new())), "operator", IMAGE, REFUSED);
        let refused = vec![IMAGE.to_owned()];
        check(&last(Last::Same(refused)), "operator", IMAGE, REFUSED);
        check(&last(Last::Unknown), "operator", IMAGE, REFUSED);
        check(&last(Last::Unknown), "kubectl-edit", IMAGE, FORCE);
    }

    #[test]
    fn a_field_that_we_still_own_is_gits_to_change() {
        for drift in [DriftMode::Correct, DriftMode::Report] {
            let case = Case {
                drift,
                ..last(Last::Unknown)
            };
            check(&case, "operator", ".spec.paused", FORCE);
        }
    }

    #[test]
    fn an_object_that_was_nobodys_gets_what_git_says() {
        check(&last(Last::Never), "operator", IMAGE, FORCE);
        check(&last(Last::Never), "operator", ".spec.unknown", FORCE);
    }

    #[test]
    fn an_autoscaler_keeps_replicas_and_a_hand_does_not() {
        let same = || last(Last::Same(Vec::new()));
        let scaled = Ruling::Leave(Why::Scaled);
        check(&same(), "kube-controller-manager/scale", ".spec.replicas", scaled);
        check(&last(Last::Never), "keda-operator/scale", ".spec.replicas", scaled);
        check(&same(), "kubectl/scale", ".spec.replicas", FORCE);
        check(
            &Case { scaled: true, ..same() },
            "kubectl/scale",
            ".spec.replicas",
            scaled,
        );
    }

    #[test]
    fn rules_leave_fields_by_path_and_by_manager() {
        let by_path = [IgnoreRule {
            paths: vec!["/spec/containers".to_owned()],
            ..IgnoreRule::default()
        }];
        let by_manager = [IgnoreRule {
            managers: vec!["operator".to_owned()],
            ..IgnoreRule::default()
        }];
        let ignored = Ruling::Leave(Why::Ignored);
        let with = |rules| Case {
            rules,
            ..last(Last::Never)
        };
        check(&with(&by_path), "anybody", IMAGE, ignored);
        check(&with(&by_manager), "operator", IMAGE, ignored);
        check(&with(&by_manager), "anybody", IMAGE, FORCE);
    }

    #[test]
    fn nothing_is_forced_where_differences_are_reported() {
        let case = Case {
            drift: DriftMode::Report,
            ..last(Last::Same(Vec::new()))
        };
        check(&case, "kubectl-set", IMAGE, Ruling::Leave(Why::Reported));
        check(&case, "kubectl-set", ".spec.unknown", REFUSED);
    }

    #[test]
    fn what_was_refused_is_found_again_by_its_digest() {
        let disputed = [cause("a", ".x"), cause("b", ".y"), cause("c", ".y"), cause("d", ".z")];
        let find = |refused: &[&str]| refused_before("0123", &disputed, &object::digest_without("0123", refused));
        let owned = |refused: &[&str]| Some(refused.iter().map(|&field| field.to_owned()).collect::<Vec<_>>());
        for refused in [&[][..], &[".y"], &[".x", ".z"], &[".x", ".y", ".z"]] {
            assert_eq!(find(refused), owned(refused));
        }
        assert_eq!(find(&[".other"]), None);
        assert_eq!(refused_before("0123", &disputed, "4567"), None);
    }
}
