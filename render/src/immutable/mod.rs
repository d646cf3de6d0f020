//! Fields that no API server changes in an object that is there, and what becomes of an object that differs in one.
//!
//! In: two manifests of one object. Out: the fields of it that differ and cannot change ([`fields()`]), and why it stays
//! as it is then ([`objection`]), or that it may be deleted and made anew. The knowledge of kinds is `table`. What an API
//! server answers is deliberately not here: it has the last word, and knows values that no manifest says.

mod fields;
mod table;

use crate::model::{ANNOTATION_REPLACE, Replace};
use crate::name::ObjectKey;
use serde_json::Value;

pub use fields::fields;

/// Fields of a StatefulSet's spec that can change.
const STATEFUL_SET_FIELDS: [&str; 7] = [
    "replicas",
    "ordinals",
    "template",
    "updateStrategy",
    "revisionHistoryLimit",
    "persistentVolumeClaimRetentionPolicy",
    "minReadySeconds",
];

/// Kinds whose objects hold what cannot be made anew: data, or all of the objects in or of them. A word about
/// a whole unit does not count for them.
const PRECIOUS: [(&str, &str); 4] = [
    ("", "Namespace"),
    ("", "PersistentVolume"),
    ("", "PersistentVolumeClaim"),
    ("apiextensions.k8s.io", "CustomResourceDefinition"),
];

/// Whether a field of a StatefulSet, such as `spec.replicas`, can change.
pub fn changes_in_stateful_set(field: &str) -> bool {
    let name = field.strip_prefix("spec.").unwrap_or(field);
    STATEFUL_SET_FIELDS.iter().any(|known| {
        name.strip_prefix(known)
            .is_some_and(|rest| !rest.starts_with(char::is_alphanumeric))
    })
}

/// Why an object stays as it is, with how to allow otherwise; `None` when it may be deleted and made anew.
/// `ours` is whether we applied it before.
pub fn objection(key: &ObjectKey, manifest: &Value, unit: Replace, ours: bool) -> Option<String> {
    let own = manifest
        .pointer("/metadata/annotations")
        .and_then(|annotations| annotations.get(ANNOTATION_REPLACE))
        .and_then(Value::as_str);
    let annotation = format!("{ANNOTATION_REPLACE}: WhenImmutable");
    match own {
        Some("WhenImmutable") => return None,
        Some("Never") => {
            return Some(format!(
                "hint: to have it deleted and made anew, give it the annotation {annotation}"
            ));
        }
        _ => {}
    }
    let is_precious = PRECIOUS.contains(&(key.group.as_str(), key.kind.as_str()));
    match unit {
        Replace::WhenImmutable if is_precious => Some(format!(
            "hint: replace of the Subscription does not count for a {}; to have it deleted and made anew, with all \
             that it holds, give the object itself the annotation {annotation}",
            key.kind
        )),
        Replace::WhenImmutable if !ours => Some(format!(
            "hint: it was there before this unit; to have it deleted and made anew, give the object itself the \
             annotation {annotation}"
        )),
        Replace::WhenImmutable => None,
        Replace::Never if is_precious => Some(format!(
            "hint: to have it deleted and made anew, with all that it holds, give it the annotation {annotation}"
        )),
        Replace::Never => Some(format!(
            "hint: to have it deleted and made anew, give it the annotation {annotation}, or its Subscription \
             replace: WhenImmutable"
        )),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check_allowed(kind: (&str, &str), own: Option<&str>, unit: Replace, ours: bool, allowed: bool) {
        let key = ObjectKey::new(kind.0, kind.1, "", "x");
        let manifest = json!({"metadata": {"annotations": {ANNOTATION_REPLACE: own}}});
        let objection = objection(&key, &manifest, unit, ours);
        assert_eq!(objection.is_none(), allowed, "{kind:?} {own:?} {unit:?}: {objection:?}");
    }

    #[test]
    fn nothing_is_made_anew_unless_somebody_says_so() {
        let job = ("batch/v1", "Job");
        check_allowed(job, None, Replace::Never, true, false);
        check_allowed(job, None, Replace::WhenImmutable, true, true);
        check_allowed(job, Some("WhenImmutable"), Replace::Never, true, true);
        check_allowed(job, Some("Never"), Replace::WhenImmutable, true, false);
        check_allowed(job, None, Replace::WhenImmutable, false, false);
    }

    #[test]
    fn what_holds_data_needs_its_own_word() {
        for kind in [
            ("v1", "Namespace"),
            ("v1", "PersistentVolume"),
            ("v1", "PersistentVolumeClaim"),
            ("apiextensions.k8s.io/v1", "CustomResourceDefinition"),
        ] {
            check_allowed(kind, None, Replace::WhenImmutable, true, false);
            check_allowed(kind, Some("WhenImmutable"), Replace::Never, true, true);
        }
    }
}
