//! Writes YAML: the same bytes for the same value, and safe for every reader.

use serde::ser::{Serialize, SerializeMap, SerializeSeq, Serializer};
use serde_json::{Map, Value};

/// A value as YAML: `apiVersion`, `kind` and `metadata` first, every other key in the order of its bytes.
///
/// Every string that a YAML 1.1 or 1.2 reader could take for something else is quoted, control characters
/// are escaped, and [`super::read()`] gives back the value. The one exception are floats without a fraction,
/// which come back as integers, as they do from kubectl.
pub fn write(value: &Value) -> String {
    // Long lines are not folded: a folded line is one more way to be misread, and diffs grow.
    let options = serde_saphyr::ser_options! { folded_wrap_chars: usize::MAX };
    serde_saphyr::to_string_with_options(&Root(value), options)
        .expect("a JSON value has only text keys and finite numbers, and a String takes any length")
}

struct Root<'a>(&'a Value);
struct Node<'a>(&'a Value);

fn rank(key: &str) -> u8 {
    match key {
        "apiVersion" => 0,
        "kind" => 1,
        "metadata" => 2,
        _ => 3,
    }
}

fn write_map<S: Serializer>(map: &Map<String, Value>, serializer: S, rank: fn(&str) -> u8) -> Result<S::Ok, S::Error> {
    let mut entries: Vec<_> = map.iter().collect();
    entries.sort_unstable_by(|a, b| (rank(a.0), a.0).cmp(&(rank(b.0), b.0)));
    let mut out = serializer.serialize_map(Some(entries.len()))?;
    for (key, value) in entries {
        out.serialize_entry(key, &Node(value))?;
    }
    out.end()
}

impl Serialize for Root<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            Value::Object(map) => write_map(map, serializer, rank),
            value => Node(value).serialize(serializer),
        }
    }
}

impl Serialize for Node<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            Value::Object(map) => write_map(map, serializer, |_| 0),
            Value::Array(items) => {
                let mut out = serializer.serialize_seq(Some(items.len()))?;
                for item in items {
                    out.serialize_element(&Node(item))?;
                }
                out.end()
            }
            Value::Null => serializer.serialize_unit(),
            Value::Bool(value) => serializer.serialize_bool(*value),
            Value::String(text) => serializer.serialize_str(text),
            Value::Number(number) => number.serialize(serializer),
        }
    }
}
