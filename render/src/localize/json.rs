//! JSON patches (RFC 6902) that fit, within limits.

use json_patch::{Patch as Operations, PatchErrorKind, PatchOperation};
use serde_json::Value;

use crate::limits::{PATCH_COPIED_BYTES_MAX, PATCH_OPERATIONS_MAX};
use crate::localize::problem::Problem;
use crate::localize::provenance::leaves;

const OPERATIONS: [&str; 6] = ["add", "remove", "replace", "move", "copy", "test"];

/// Reads a list of operations. What is wrong with one is told by its number and field, never by a value.
pub(super) fn parse(value: &Value) -> Result<Operations, Problem> {
    let list = value.as_array().ok_or(Problem::NotAList)?;
    if list.len() > PATCH_OPERATIONS_MAX {
        return Err(Problem::TooManyOperations);
    }
    let parsed = list.iter().enumerate().map(|(index, operation)| {
        parse_one(operation).map_err(|what| Problem::Operation {
            operation: index + 1,
            what: what.to_owned(),
        })
    });
    parsed.collect::<Result<Vec<_>, _>>().map(Operations)
}

fn parse_one(operation: &Value) -> Result<PatchOperation, &'static str> {
    let name = operation["op"].as_str().unwrap_or_default();
    if !OPERATIONS.contains(&name) {
        return Err("has no op that is add, remove, replace, move, copy or test");
    }
    if !is_pointer(&operation["path"]) {
        return Err("has no path that is a JSON pointer, such as /metadata/labels");
    }
    if matches!(name, "move" | "copy") && !is_pointer(&operation["from"]) {
        return Err("has no from that is a JSON pointer");
    }
    if matches!(name, "add" | "replace" | "test") && operation.get("value").is_none() {
        return Err("has no value");
    }
    serde_json::from_value(operation.clone()).map_err(|_| "is not an operation of RFC 6902")
}

fn is_pointer(value: &Value) -> bool {
    let pointer = |text: &str| text.is_empty() || text.starts_with('/');
    value.as_str().is_some_and(pointer)
}

/// Applies the operations in order. On an error the value is half changed and must be thrown away.
pub(super) fn apply(operations: &Operations, value: &mut Value) -> Result<(), Problem> {
    let mut copied = 0;
    for (index, operation) in operations.iter().enumerate() {
        if let PatchOperation::Copy(copy) = operation {
            copied += value.pointer(copy.from.as_str()).map_or(0, bytes);
            if copied > PATCH_COPIED_BYTES_MAX {
                return Err(Problem::TooMuchCopied);
            }
        }
        json_patch::patch(value, std::slice::from_ref(operation)).map_err(|error| Problem::Operation {
            operation: index + 1,
            what: explain(&error.kind, operation),
        })?;
    }
    Ok(())
}

/// The fields that the operations write: what each names, and the leaves of what it puts there.
pub(super) fn written(operations: &Operations, fields: &mut Vec<String>) {
    for operation in operations.iter() {
        let path = operation.path().to_string();
        let value = match operation {
            PatchOperation::Add(add) => Some(&add.value),
            PatchOperation::Replace(replace) => Some(&replace.value),
            PatchOperation::Move(moved) => {
                fields.push(moved.from.to_string());
                None
            }
            PatchOperation::Remove(_) | PatchOperation::Copy(_) => None,
            PatchOperation::Test(_) => continue,
        };
        fields.push(path.clone());
        if let Some(value @ (Value::Object(_) | Value::Array(_))) = value {
            leaves(value, &mut path.clone(), fields);
        }
    }
}

fn explain(kind: &PatchErrorKind, operation: &PatchOperation) -> String {
    let path = operation.path().as_str();
    match (kind, operation) {
        (PatchErrorKind::TestFailed, _) => format!("fails: {path} has another value than it tests for"),
        (PatchErrorKind::InvalidFromPointer, PatchOperation::Move(moved)) => {
            format!("does not find its from {}", moved.from)
        }
        (PatchErrorKind::InvalidFromPointer, PatchOperation::Copy(copy)) => {
            format!("does not find its from {}", copy.from)
        }
        (PatchErrorKind::CannotMoveInsideItself, _) => format!("would move a field into itself at {path}"),
        (_, PatchOperation::Add(_)) => format!("cannot add {path}: the path to it is missing"),
        _ => format!("does not find {path}"),
    }
}

/// About what a value takes in memory.
fn bytes(value: &Value) -> usize {
    let content = match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => 0,
        Value::String(text) => text.len(),
        Value::Array(items) => items.iter().map(bytes).sum(),
        Value::Object(map) => map.iter().map(|(key, item)| key.len() + bytes(item)).sum(),
    };
    content + size_of::<Value>()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check_refused(patch: Value, mut document: Value, expected: &str) {
        let outcome = parse(&patch).and_then(|operations| apply(&operations, &mut document));
        let message = outcome.expect_err("the patch does not fit").to_string();
        assert_eq!(message, expected);
    }

    #[test]
    fn an_operation_that_is_none_is_told_without_its_value() {
        check_refused(json!({"op": "add"}), json!({}), "its value is not a list of operations");
        check_refused(
            json!([{"op": "put", "path": "/a", "value": "s3cret"}]),
            json!({}),
            "operation 1 has no op that is add, remove, replace, move, copy or test",
        );
        check_refused(
            json!([{"op": "add", "path": "a", "value": "s3cret"}]),
            json!({}),
            "operation 1 has no path that is a JSON pointer, such as /metadata/labels",
        );
        check_refused(
            json!([{"op": "add", "path": "/a"}]),
            json!({}),
            "operation 1 has no value",
        );
        check_refused(
            json!([{"op": "copy", "path": "/a"}]),
            json!({}),
            "operation 1 has no from that is a JSON pointer",
        );
        check_refused(
            json!([{"op": "remove", "path": "/a~2"}]),
            json!({}),
            "operation 1 is not an operation of RFC 6902",
        );
    }

    #[test]
    fn an_operation_that_does_not_fit_is_told_with_its_path() {
        let document = || json!({"a": "s3cret"});
        check_refused(
            json!([{"op": "test", "path": "/a", "value": 1}]),
            document(),
            "operation 1 fails: /a has another value than it tests for",
        );
        check_refused(
            json!([{"op": "remove", "path": "/a"}, {"op": "remove", "path": "/b"}]),
            document(),
            "operation 2 does not find /b",
        );
        check_refused(
            json!([{"op": "add", "path": "/b/c", "value": 1}]),
            document(),
            "operation 1 cannot add /b/c: the path to it is missing",
        );
        check_refused(
            json!([{"op": "move", "from": "/b", "path": "/c"}]),
            document(),
            "operation 1 does not find its from /b",
        );
    }

    #[test]
    fn copies_that_double_an_object_end_at_the_limit() {
        let copy = |index| json!({"op": "copy", "from": "", "path": format!("/c{index}")});
        let doublings: Vec<Value> = (0..60).map(copy).collect();
        let mut document = json!({"a": "x".repeat(100)});
        let operations = parse(&Value::Array(doublings)).expect("they are operations");
        assert_eq!(apply(&operations, &mut document), Err(Problem::TooMuchCopied));
    }

    #[test]
    fn a_null_is_a_value() {
        let mut document = json!({});
        let operations = parse(&json!([{"op": "add", "path": "/a", "value": null}])).expect("it is an operation");
        apply(&operations, &mut document).expect("it fits");
        assert_eq!(document, json!({"a": null}));
    }
}
