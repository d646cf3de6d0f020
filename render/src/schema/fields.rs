//! Pieces of schemas.

use serde_json::{Map, Value, json};

/// A map with these fields and no other; `required` are those that must be there.
pub(super) fn object(
    description: &str,
    required: &[&str],
    fields: impl IntoIterator<Item = (&'static str, Value)>,
) -> Value {
    let properties: Map<String, Value> = fields
        .into_iter()
        .map(|(name, field)| (name.to_owned(), field))
        .collect();
    let mut schema = json!({ "type": "object", "description": description, "properties": properties });
    if !required.is_empty() {
        schema["required"] = json!(required);
    }
    schema
}

pub(super) fn text(description: &str) -> Value {
    json!({ "type": "string", "description": description })
}

pub(super) fn filled_text(description: &str) -> Value {
    json!({ "type": "string", "description": description, "minLength": 1 })
}

pub(super) fn boolean(description: &str) -> Value {
    json!({ "type": "boolean", "description": description })
}

/// One of some words.
pub(super) fn choice(description: &str, words: &[&str]) -> Value {
    json!({ "type": "string", "description": description, "enum": words })
}

pub(super) fn integer(description: &str, minimum: i64, maximum: i64) -> Value {
    json!({
        "type": "integer",
        "format": "int64",
        "description": description,
        "minimum": minimum,
        "maximum": maximum,
    })
}

pub(super) fn list(description: &str, items: Value) -> Value {
    json!({ "type": "array", "description": description, "items": items })
}

pub(super) fn text_map(description: &str) -> Value {
    json!({ "type": "object", "description": description, "additionalProperties": { "type": "string" } })
}

/// A field that is known so that it can be refused by name.
pub(super) fn refused(description: &str) -> Value {
    json!({ "description": description, "x-kubernetes-preserve-unknown-fields": true })
}

/// A selector of labels.
pub(super) fn selector(description: &str) -> Value {
    let expression = object(
        "One expression over a label.",
        &["key", "operator"],
        [
            ("key", filled_text("The label.")),
            (
                "operator",
                choice("What must hold for it.", &["In", "NotIn", "Exists", "DoesNotExist"]),
            ),
            ("values", list("Values of In and NotIn.", json!({ "type": "string" }))),
        ],
    );
    object(
        description,
        &[],
        [
            ("matchLabels", text_map("Labels that must be there with this value.")),
            ("matchExpressions", list("Expressions that must all hold.", expression)),
        ],
    )
}

/// The feed that names one object.
pub(super) fn object_feed(description: &str) -> Value {
    object(
        description,
        &["apiVersion", "kind", "name"],
        [
            (
                "apiVersion",
                filled_text("Group and version, of which only the group decides."),
            ),
            ("kind", filled_text("Kind.")),
            ("namespace", text("Namespace; none matches any.")),
            ("name", filled_text("Name.")),
        ],
    )
}
