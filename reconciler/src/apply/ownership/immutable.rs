//! Fields that cannot change: which they are, and whether the object may be deleted and made anew.

use kube::core::Status;
use render::ObjectKey;
use render::model::{ANNOTATION_REPLACE, Replace};
use serde_json::Value;

/// What API servers say when a field of an object that is there cannot change. Each kind says it in its own way.
const WORDS: [&str; 12] = [
    "immutable",
    "may not change once set",
    "cannot change roleRef",
    "may not be changed in an update",
    "may not be changed",
    "may not be updated",
    "updates to statefulset spec for fields other than",
    "updates to parameters are forbidden",
    "updates to provisioner are forbidden",
    "updates to reclaimPolicy are forbidden",
    "pod updates may not change fields other than",
    "field can not be less than",
];

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

/// A refusal that is about nothing but fields that cannot change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::apply) struct Immutable {
    /// The fields, as the API server names them.
    pub fields: Vec<String>,
    /// Field and reason, in the API server's words.
    pub words: String,
}

/// Whether a refusal is about fields that cannot change, and nothing else: an object with another mistake could
/// not be made anew.
pub(in crate::apply) fn immutable(status: &Status) -> Option<Immutable> {
    if status.code != 422 {
        return None;
    }
    let causes = &status.details.as_ref()?.causes;
    let cannot_change = |message: &str| WORDS.iter().any(|words| message.contains(words));
    if causes.is_empty() || !causes.iter().all(|cause| cannot_change(&cause.message)) {
        return None;
    }
    let mut fields: Vec<_> = causes.iter().map(|cause| cause.field.clone()).collect();
    fields.dedup();
    let mut words: Vec<_> = causes
        .iter()
        .map(|cause| format!("{}: {}", cause.field, reason(&cause.message)))
        .collect();
    words.dedup();
    let words = words.join("; ");
    Some(Immutable { fields, words })
}

/// A reason without the value in it, which can be a whole pod template: `Invalid value: {…}: field is immutable`.
fn reason(message: &str) -> &str {
    let is_invalid = message.starts_with("Invalid value: ");
    let start = is_invalid.then(|| message.rfind(": ")).flatten();
    start.map_or(message, |start| &message[start + 2..])
}

/// The fields of a manifest that differ from the live object, below the field that the API server names. It
/// says only `spec` of a StatefulSet or a claim; people want to know which field of it.
pub(in crate::apply) fn differing(key: &ObjectKey, manifest: &Value, live: &Value, field: &str) -> Vec<String> {
    let pointer = format!("/{}", field.replace('.', "/"));
    let mut found = Vec::new();
    if let (Some(wanted), Some(live)) = (manifest.pointer(&pointer), live.pointer(&pointer)) {
        compare(wanted, live, field, &mut found);
    }
    if key.kind == "StatefulSet" {
        let may_change = |field: &String| {
            let name = field.strip_prefix("spec.").unwrap_or(field);
            STATEFUL_SET_FIELDS.iter().any(|known| {
                name.strip_prefix(known)
                    .is_some_and(|rest| !rest.starts_with(char::is_alphanumeric))
            })
        };
        found.retain(|field| !may_change(field));
    }
    found
}

fn compare(wanted: &Value, live: &Value, field: &str, found: &mut Vec<String>) {
    match (wanted, live) {
        (Value::Object(wanted), Value::Object(live)) => {
            for (name, value) in wanted {
                let field = format!("{field}.{name}");
                compare(value, live.get(name).unwrap_or(&Value::Null), &field, found);
            }
        }
        (Value::Array(wanted), Value::Array(live)) if wanted.len() == live.len() => {
            for (index, (wanted, live)) in wanted.iter().zip(live).enumerate() {
                compare(wanted, live, &format!("{field}[{index}]"), found);
            }
        }
        (wanted, live) if wanted == live => {}
        _ => found.push(field.to_owned()),
    }
}

/// Why the object stays as it is, with how to allow otherwise; `None` when it may be deleted and made anew.
/// `ours` is whether we applied it before.
pub(in crate::apply) fn objection(key: &ObjectKey, manifest: &Value, unit: Replace, ours: bool) -> Option<String> {
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

/// Whether what belongs to the object stays when it is deleted: a new StatefulSet takes over the pods of the
/// old one, as long as it selects the same.
pub(in crate::apply) fn orphans(key: &ObjectKey, differing: &[String]) -> bool {
    key.group == "apps"
        && key.kind == "StatefulSet"
        && !differing.iter().any(|field| field.starts_with("spec.selector"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn status(causes: &[(&str, &str)]) -> Status {
        let causes: Vec<_> = causes
            .iter()
            .map(|(field, message)| json!({"reason": "FieldValueInvalid", "field": field, "message": message}))
            .collect();
        let status = json!({"status": "Failure", "code": 422, "reason": "Invalid", "message": "invalid",
            "details": {"causes": causes}});
        serde_json::from_value(status).expect("a status")
    }

    #[track_caller]
    fn check(field: &str, message: &str, words: &str) {
        let found = immutable(&status(&[(field, message)]));
        assert_eq!(found.map(|found| found.words).as_deref(), Some(words), "{message}");
    }

    #[test]
    fn fields_that_cannot_change_are_known_by_their_words() {
        check(
            "spec.template",
            "Invalid value: {\"metadata\":{\"labels\":{\"a\":\"b\"}}}: field is immutable",
            "spec.template: field is immutable",
        );
        check(
            "spec",
            "Forbidden: updates to statefulset spec for fields other than 'replicas' are forbidden",
            "spec: Forbidden: updates to statefulset spec for fields other than 'replicas' are forbidden",
        );
        check(
            "spec.clusterIPs[0]",
            "Invalid value: [\"10.0.0.7\"]: may not change once set",
            "spec.clusterIPs[0]: may not change once set",
        );
        check(
            "roleRef",
            "Invalid value: {\"name\":\"x\"}: cannot change roleRef",
            "roleRef: cannot change roleRef",
        );
        check(
            "data",
            "Forbidden: field is immutable when `immutable` is set",
            "data: Forbidden: field is immutable when `immutable` is set",
        );
    }

    #[test]
    fn another_mistake_beside_them_forbids_to_make_it_anew() {
        assert_eq!(
            immutable(&status(&[("spec.replicas", "Invalid value: -1: must be 0 or more")])),
            None
        );
        let both = [
            ("spec.selector", "Invalid value: {}: field is immutable"),
            ("spec.replicas", "Invalid value: -1: no"),
        ];
        assert_eq!(immutable(&status(&both)), None);
        assert_eq!(immutable(&Status::failure("no", "Invalid")), None);
    }

    #[test]
    fn the_exact_field_is_found_by_comparing() {
        let key = ObjectKey::new("apps/v1", "StatefulSet", "shop", "db");
        let spec = |size: &str, image: &str| json!({"spec": {"template": {"image": image}, "volumeClaimTemplates": [{"spec": {"resources": {"requests": {"storage": size}}}}]}});
        assert_eq!(
            differing(&key, &spec("2Gi", "b"), &spec("1Gi", "a"), "spec"),
            ["spec.volumeClaimTemplates[0].spec.resources.requests.storage"]
        );
        let key = ObjectKey::new("batch/v1", "Job", "shop", "db");
        assert_eq!(
            differing(&key, &spec("1Gi", "b"), &spec("1Gi", "a"), "spec"),
            ["spec.template.image"]
        );
    }

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
