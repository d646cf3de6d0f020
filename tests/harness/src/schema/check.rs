//! Objects against their shape: what they must not say, and what they need not say.

use serde_json::Value;

use super::{ListRule, Scalar, Shape};

/// What is wrong with an object.
#[derive(Debug, Default)]
pub(crate) struct Problems {
    /// Fields that the shape does not know; they were dropped.
    pub unknown: Vec<String>,
    /// Values of a wrong type: path, what is there, what should be.
    pub wrong: Vec<Wrong>,
    /// Fields that must be there.
    pub missing: Vec<String>,
    /// Items of a list that should differ and do not.
    pub twice: Vec<String>,
}

/// A value of a wrong type.
#[derive(Debug)]
pub(crate) struct Wrong {
    pub path: String,
    pub found: &'static str,
    pub expected: &'static str,
}

/// Checks an object, and drops what its shape does not know.
pub(crate) fn check(value: &mut Value, shape: &Shape) -> Problems {
    let mut problems = Problems::default();
    walk(value, shape, "", &mut problems);
    problems
}

fn walk(value: &mut Value, shape: &Shape, path: &str, problems: &mut Problems) {
    let shape = shape.resolved();
    match (shape, value) {
        (Shape::Any, _) | (_, Value::Null) => {}
        (Shape::Scalar(scalar), value) => {
            if !fits(*scalar, value) {
                wrong(path, value, expected(*scalar), problems);
            }
        }
        (Shape::Object(object), Value::Object(map)) => {
            if !object.open {
                let unknown: Vec<_> = map
                    .keys()
                    .filter(|key| !object.fields.contains_key(key.as_str()))
                    .cloned()
                    .collect();
                for key in unknown {
                    map.remove(&key);
                    problems.unknown.push(join(path, &key));
                }
            }
            for (name, field) in &object.fields {
                match map.get_mut(&**name) {
                    Some(child) => walk(child, &field.shape, &join(path, name), problems),
                    None if field.required => problems.missing.push(join(path, name)),
                    None => {}
                }
            }
        }
        (Shape::Map { of, .. }, Value::Object(map)) => {
            for (key, child) in map.iter_mut() {
                walk(child, of, &join(path, key), problems);
            }
        }
        (Shape::List { of, rule }, Value::Array(items)) => {
            for (index, item) in items.iter_mut().enumerate() {
                walk(item, of, &format!("{path}[{index}]"), problems);
            }
            if *rule != ListRule::Atomic {
                find_twice(items, of, rule, path, problems);
            }
        }
        (Shape::Object(_) | Shape::Map { .. }, value) => wrong(path, value, "object", problems),
        (Shape::List { .. }, value) => wrong(path, value, "array", problems),
        (Shape::Named { .. }, _) => {}
    }
}

fn find_twice(items: &[Value], of: &Shape, rule: &ListRule, path: &str, problems: &mut Problems) {
    let key = |item: &Value| match rule {
        ListRule::Keys(keys) => Value::Object(of.key_of(keys, item)),
        ListRule::Set | ListRule::Atomic => item.clone(),
    };
    let keys: Vec<_> = items.iter().map(key).collect();
    for (index, item) in keys.iter().enumerate() {
        if keys[..index].contains(item) {
            problems.twice.push(format!("{path}[{index}]"));
        }
    }
}

fn wrong(path: &str, value: &Value, expected: &'static str, problems: &mut Problems) {
    problems.wrong.push(Wrong {
        path: path.to_owned(),
        found: match value {
            Value::Null => "null",
            Value::Bool(_) => "bool",
            Value::Number(_) => "number",
            Value::String(_) => "string",
            Value::Array(_) => "array",
            Value::Object(_) => "object",
        },
        expected,
    });
}

fn fits(scalar: Scalar, value: &Value) -> bool {
    match scalar {
        Scalar::String | Scalar::Bytes | Scalar::Time => value.is_string(),
        Scalar::Integer => value.is_i64() || value.as_f64().is_some_and(|number| number.fract() == 0.0),
        Scalar::Number => value.is_number(),
        Scalar::Boolean => value.is_boolean(),
        Scalar::IntOrString => value.is_i64() || value.is_string(),
        Scalar::Quantity => value.is_number() || value.is_string(),
    }
}

fn expected(scalar: Scalar) -> &'static str {
    match scalar {
        Scalar::String | Scalar::Time => "string",
        Scalar::Bytes => "base64 string",
        Scalar::Integer => "integer",
        Scalar::Number => "number",
        Scalar::Boolean => "boolean",
        Scalar::IntOrString => "integer or string",
        Scalar::Quantity => "quantity",
    }
}

fn join(path: &str, name: &str) -> String {
    if path.is_empty() {
        name.to_owned()
    } else {
        format!("{path}.{name}")
    }
}

/// Fills in what the shape says of fields that nobody set.
pub(crate) fn fill(value: &mut Value, shape: &Shape) {
    match (shape.resolved(), value) {
        (Shape::Object(object), Value::Object(map)) => {
            for (name, field) in &object.fields {
                if let Some(default) = &field.default
                    && !map.contains_key(&**name)
                {
                    map.insert(name.to_string(), default.clone());
                }
                if let Some(child) = map.get_mut(&**name) {
                    fill(child, &field.shape);
                }
            }
        }
        (Shape::Map { of, .. }, Value::Object(map)) => map.values_mut().for_each(|child| fill(child, of)),
        (Shape::List { of, .. }, Value::Array(items)) => items.iter_mut().for_each(|item| fill(item, of)),
        _ => {}
    }
}

/// Drops nulls from maps: absent and null are the same.
pub(crate) fn tidy(value: &mut Value) {
    match value {
        Value::Object(map) => {
            map.retain(|_, child| !child.is_null());
            map.values_mut().for_each(tidy);
        }
        Value::Array(items) => items.iter_mut().for_each(tidy),
        _ => {}
    }
}
