//! The shape of a custom resource, from the schema in its definition.

use std::collections::BTreeMap;

use serde_json::Value;

use super::{Field, ListRule, Object, Patch, Scalar, Shape, builtin};

/// The shape of a version of a custom resource. One without a schema keeps everything.
pub(crate) fn from_definition(schema: Option<&Value>) -> Shape {
    let mut shape = schema.map_or(Shape::Any, shape);
    let mut object = match shape {
        Shape::Object(ref mut object) => std::mem::take(object),
        _ => Object {
            open: true,
            ..Object::default()
        },
    };
    for (name, shape) in [
        ("apiVersion", Shape::Scalar(Scalar::String)),
        ("kind", Shape::Scalar(Scalar::String)),
        ("metadata", builtin("meta.v1.ObjectMeta")),
    ] {
        object.fields.insert(name.into(), plain(shape));
    }
    Shape::Object(object)
}

fn plain(shape: Shape) -> Field {
    Field {
        shape,
        required: false,
        patch: Patch::default(),
        default: None,
    }
}

fn shape(schema: &Value) -> Shape {
    if schema["x-kubernetes-int-or-string"] == true {
        return Shape::Scalar(Scalar::IntOrString);
    }
    let open = schema["x-kubernetes-preserve-unknown-fields"] == true;
    match schema["type"].as_str() {
        Some("string") if schema["format"] == "byte" => Shape::Scalar(Scalar::Bytes),
        Some("string") => Shape::Scalar(Scalar::String),
        Some("integer") => Shape::Scalar(Scalar::Integer),
        Some("number") => Shape::Scalar(Scalar::Number),
        Some("boolean") => Shape::Scalar(Scalar::Boolean),
        Some("array") => Shape::List {
            of: Box::new(shape(&schema["items"])),
            rule: list_rule(schema),
        },
        Some("object") if schema["x-kubernetes-embedded-resource"] == true => Shape::Any,
        Some("object") => match &schema["additionalProperties"] {
            rest @ Value::Object(_) => Shape::Map {
                of: Box::new(shape(rest)),
                atomic: schema["x-kubernetes-map-type"] == "atomic",
            },
            Value::Bool(true) => Shape::Any,
            _ => object(schema, open),
        },
        _ => Shape::Any,
    }
}

fn object(schema: &Value, open: bool) -> Shape {
    let required: Vec<_> = schema["required"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    let fields: BTreeMap<_, _> = schema["properties"]
        .as_object()
        .into_iter()
        .flatten()
        .map(|(name, inner)| {
            let field = Field {
                shape: shape(inner),
                required: required.contains(&name.as_str()),
                patch: Patch::default(),
                default: inner.get("default").cloned(),
            };
            (name.as_str().into(), field)
        })
        .collect();
    Shape::Object(Object {
        fields,
        atomic: schema["x-kubernetes-map-type"] == "atomic",
        open,
    })
}

fn list_rule(schema: &Value) -> ListRule {
    match schema["x-kubernetes-list-type"].as_str() {
        Some("set") => ListRule::Set,
        Some("map") => {
            let keys = schema["x-kubernetes-list-map-keys"].as_array().into_iter().flatten();
            ListRule::Keys(keys.filter_map(Value::as_str).map(Into::into).collect())
        }
        _ => ListRule::Atomic,
    }
}
