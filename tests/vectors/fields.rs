//! Text inside fields.

use render::model::{FieldFormat, OverrideStepType};
use serde_json::{Value, json};

use super::fleet::text;
use super::overrides::{Wrapped, step};

/// Finds a field by putting a mark into it.
pub(super) fn lookup(input: &Value) -> Value {
    let field_path = text(&input["fieldPath"]);
    let mark = json!([{ "op": "replace", "path": "", "value": {} }]);
    let step_type = OverrideStepType::FieldJsonPatch {
        field_path: field_path.clone(),
        format: FieldFormat::Yaml,
    };
    let document = &input["document"];
    let marked = Wrapped::new(document).after(vec![step(step_type, &mark)]);
    let found = document.pointer(&field_path);
    match (marked, found) {
        (Ok(marked), Some(value)) if marked.pointer(&field_path) != found => json!({ "value": value }),
        _ => json!({ "error": true }),
    }
}

pub(super) fn patch(input: &Value) -> Value {
    super::overrides::steps(&json!({ "document": input["document"], "overrides": [input] }))
}
