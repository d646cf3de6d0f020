//! What the API server says of a conflict: which manager owns which field.

use kube::core::Status;

/// A field that somebody else owns, in the API server's words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::apply) struct Cause {
    /// Who owns it.
    pub manager: String,
    /// The subresource that it was written through; empty for the object itself.
    pub subresource: String,
    /// The field, like `.spec.containers[name="web"].image`.
    pub field: String,
}

/// The fields in dispute; none when the refusal is not about ownership.
pub(in crate::apply) fn causes(status: &Status) -> Vec<Cause> {
    let causes = status.details.as_ref().map_or(&[][..], |details| &details.causes);
    let owned = causes.iter().filter(|cause| cause.reason == "FieldManagerConflict");
    owned
        .map(|cause| {
            let (manager, subresource) = writer(&cause.message);
            Cause {
                manager,
                subresource,
                field: cause.field.clone(),
            }
        })
        .collect()
}

/// The words of a conflict: who owns which fields.
pub(in crate::apply) fn words(causes: &[Cause]) -> String {
    let words = causes.iter().map(|cause| {
        let through = match cause.subresource.as_str() {
            "" => String::new(),
            subresource => format!(" with subresource {subresource:?}"),
        };
        format!("conflict with {:?}{through} over {}", cause.manager, cause.field)
    });
    words.collect::<Vec<_>>().join("; ")
}

/// The manager and the subresource of `conflict with "kubectl" with subresource "scale" using apps/v1`.
fn writer(message: &str) -> (String, String) {
    let rest = message.strip_prefix("conflict with ").unwrap_or(message);
    let Some((manager, rest)) = quoted(rest) else {
        return (rest.to_owned(), String::new());
    };
    let subresource = rest.strip_prefix(" with subresource ").and_then(quoted);
    (manager, subresource.map(|(name, _)| name).unwrap_or_default())
}

/// The quoted text that `words` begin with, and what follows it.
pub(super) fn quoted(words: &str) -> Option<(String, &str)> {
    let mut stream = serde_json::Deserializer::from_str(words).into_iter::<String>();
    let text = stream.next()?.ok()?;
    let end = stream.byte_offset();
    Some((text, &words[end..]))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_conflict_names_manager_subresource_and_field() {
        let cause =
            |message: &str, field: &str| json!({"reason": "FieldManagerConflict", "message": message, "field": field});
        let status = json!({"status": "Failure", "code": 409, "reason": "Conflict", "message": "Apply failed", "details": {"causes": [
            cause("conflict with \"kubectl-set\" using apps/v1 at 2026-11-30T01:00:00Z", ".a"),
            cause("conflict with \"kube-controller-manager\" with subresource \"scale\" using apps/v1", ".spec.replicas"),
            cause("conflict with \"a \\\"quoted\\\" one\"", ".b")]}});
        let status: Status = serde_json::from_value(status).expect("a status");
        let found: Vec<_> = causes(&status)
            .into_iter()
            .map(|cause| (cause.manager, cause.subresource, cause.field))
            .collect();
        let expected = [
            ("kubectl-set", "", ".a"),
            ("kube-controller-manager", "scale", ".spec.replicas"),
            ("a \"quoted\" one", "", ".b"),
        ];
        assert_eq!(
            found,
            expected.map(|(manager, subresource, field)| (manager.into(), subresource.into(), field.into()))
        );
        let words = words(&causes(&status));
        assert!(
            words.contains(r#"conflict with "kube-controller-manager" with subresource "scale" over .spec.replicas"#),
            "{words}"
        );
        assert!(causes(&Status::failure("object changed", "Conflict")).is_empty());
    }
}
