//! The conditions of an object, as the hub's API says them.

use serde_json::Value;

/// What an object of the hub says is so.
pub(super) fn conditions(object: &Value) -> impl Iterator<Item = &Value> {
    object
        .pointer("/status/conditions")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
}

/// One of its conditions.
pub(super) fn condition<'a>(object: &'a Value, kind: &str) -> Option<&'a Value> {
    conditions(object).find(|condition| condition["type"] == kind)
}
