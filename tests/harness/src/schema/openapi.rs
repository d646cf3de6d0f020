//! Shapes as OpenAPI v3, for `kubectl explain` and clients that look types up. Descriptions are not kept.

use serde_json::{Map, Value, json};

use super::{Field, ListRule, Scalar, Shape, table};

/// A type's name in a document.
pub(crate) fn definition_name(name: &str) -> String {
    if let Some(rest) = name.strip_prefix("meta.") {
        format!("io.k8s.apimachinery.pkg.apis.meta.{rest}")
    } else {
        format!("io.k8s.api.{name}")
    }
}

/// A shape as a schema.
pub(crate) fn json_schema(shape: &Shape) -> Value {
    match shape {
        Shape::Any => json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true}),
        Shape::Scalar(scalar) => scalar_schema(*scalar),
        Shape::Named { index, .. } => {
            let name = definition_name(table::name_of(*index));
            json!({"allOf": [{"$ref": format!("#/components/schemas/{name}")}]})
        }
        Shape::Map { of, .. } => json!({"type": "object", "additionalProperties": json_schema(of)}),
        Shape::List { of, rule } => {
            let mut schema = json!({"type": "array", "items": json_schema(of)});
            match rule {
                ListRule::Atomic => schema["x-kubernetes-list-type"] = "atomic".into(),
                ListRule::Set => schema["x-kubernetes-list-type"] = "set".into(),
                ListRule::Keys(keys) => {
                    schema["x-kubernetes-list-type"] = "map".into();
                    schema["x-kubernetes-list-map-keys"] = keys.iter().map(|key| Value::from(&**key)).collect();
                }
            }
            schema
        }
        Shape::Object(object) => {
            let properties: Map<_, _> = object
                .fields
                .iter()
                .map(|(name, field)| (name.to_string(), field_schema(field)))
                .collect();
            let mut schema = json!({"type": "object", "properties": properties});
            let required = object.fields.iter().filter(|(_, field)| field.required);
            let required: Vec<_> = required.map(|(name, _)| Value::from(&**name)).collect();
            if !required.is_empty() {
                schema["required"] = required.into();
            }
            if object.open {
                schema["x-kubernetes-preserve-unknown-fields"] = true.into();
            }
            schema
        }
    }
}

fn field_schema(field: &Field) -> Value {
    let mut schema = json_schema(&field.shape);
    let strategies = [(field.patch.merge, "merge"), (field.patch.retain_keys, "retainKeys")];
    let strategies: Vec<_> = strategies
        .iter()
        .filter(|(has, _)| *has)
        .map(|(_, name)| *name)
        .collect();
    if !strategies.is_empty() {
        schema["x-kubernetes-patch-strategy"] = strategies.join(",").into();
    }
    if let Some(key) = &field.patch.key {
        schema["x-kubernetes-patch-merge-key"] = Value::from(&**key);
    }
    schema
}

fn scalar_schema(scalar: Scalar) -> Value {
    match scalar {
        Scalar::String | Scalar::Quantity => json!({"type": "string"}),
        Scalar::Bytes => json!({"type": "string", "format": "byte"}),
        Scalar::Time => json!({"type": "string", "format": "date-time"}),
        Scalar::Integer => json!({"type": "integer"}),
        Scalar::Number => json!({"type": "number"}),
        Scalar::Boolean => json!({"type": "boolean"}),
        Scalar::IntOrString => json!({"oneOf": [{"type": "integer"}, {"type": "string"}], "format": "int-or-string"}),
    }
}
