//! Fields that cannot change, as an API server says it; whether the object may be made anew is
//! [`render::immutable`]'s matter.

use kube::core::Status;
use render::ObjectKey;
use render::immutable::changes_in_stateful_set;
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
        found.retain(|field| !changes_in_stateful_set(field));
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
}
