//! Values by tag, by merge key and by weight.

use granit_parser::Tag;
use serde_json::{Map, Value};

use super::scalar::{self, Scalar};

pub(super) fn is_merge_tag(tag: &Tag) -> bool {
    tag.suffix_in_namespace("tag:yaml.org,2002:").as_deref() == Some("merge")
}

pub(super) fn is_text_tag(tag: &Tag) -> bool {
    tag.suffix_in_namespace("tag:yaml.org,2002:").as_deref() == Some("str")
}

pub(super) fn tagged(text: &str, tag: &Tag) -> Result<Value, String> {
    let suffix = tag.suffix_in_namespace("tag:yaml.org,2002:");
    let wrong = || {
        format!(
            "the value does not fit its tag !!{}",
            suffix.as_deref().unwrap_or_default()
        )
    };
    let Some(suffix) = suffix.as_deref() else {
        // A tag of someone else says nothing about JSON; kubectl takes the text.
        return Ok(Value::String(text.to_owned()));
    };
    if suffix == "binary" {
        return binary(text).ok_or_else(wrong);
    }
    if !matches!(suffix, "int" | "float" | "bool" | "null") {
        return Ok(Value::String(text.to_owned()));
    }
    let scalar = scalar::resolve(text).map_err(|error| error.to_string())?;
    match (suffix, &scalar) {
        ("int" | "float", Scalar::Number(_)) | ("bool", Scalar::Bool(_)) | ("null", Scalar::Null) => {
            Ok(scalar.into_value(text))
        }
        _ => Err(wrong()),
    }
}

/// kubectl decodes `!!binary`; what is no text then has no place in JSON.
fn binary(text: &str) -> Option<Value> {
    use base64::Engine as _;
    let compact: String = text.split_ascii_whitespace().collect();
    let bytes = base64::engine::general_purpose::STANDARD.decode(compact).ok()?;
    String::from_utf8(bytes).ok().map(Value::String)
}

/// Adds merged keys where the map has none of its own; the first source that has a key wins.
pub(super) fn merge(map: &mut Map<String, Value>, merges: Vec<Value>) -> Result<(), &'static str> {
    const WRONG: &str = "a merge key takes a map or a list of maps";
    for source in merges {
        let sources = match source {
            Value::Array(items) => items,
            single => vec![single],
        };
        for source in sources {
            let Value::Object(source) = source else {
                return Err(WRONG);
            };
            for (key, value) in source {
                map.entry(key).or_insert(value);
            }
        }
    }
    Ok(())
}

/// Bytes that a copy costs, roughly, and levels.
pub(super) fn weight(value: &Value) -> (usize, usize) {
    let own = size_of::<Value>();
    let add = |(bytes, height): (usize, usize), (more, levels): (usize, usize)| (bytes + more, height.max(levels + 1));
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => (own, 0),
        Value::String(text) => (own + text.len(), 0),
        Value::Array(items) => items.iter().map(weight).fold((own, 1), add),
        Value::Object(map) => {
            let entry = |(key, value): (&String, &Value)| {
                let (bytes, height) = weight(value);
                (bytes + own + key.len(), height)
            };
            map.iter().map(entry).fold((own, 1), add)
        }
    }
}
