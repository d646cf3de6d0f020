//! Bodies in Protobuf, as kubectl sends them for the few kinds that it knows by heart. In: the bytes behind
//! Kubernetes' envelope. Out: the same object as JSON.
//!
//! Only the fields below are read; a body with another one is refused, never half understood.

use serde_json::{Map, Value};

/// What every such body begins with.
const MAGIC: &[u8] = b"k8s\0";

/// How a field is read.
#[derive(Clone, Copy)]
enum Part {
    Text,
    Bool,
    /// An object.
    Message(&'static [Field]),
    /// An entry of a map of texts.
    Entry,
    /// An entry of a map of bytes.
    BytesEntry,
    /// Left out: times, states and the like, empty in what is sent.
    Skip,
}

/// Number, name, and how it is read.
type Field = (u64, &'static str, Part);

const METADATA: &[Field] = &[
    (1, "name", Part::Text),
    (2, "generateName", Part::Text),
    (3, "namespace", Part::Text),
    (4, "selfLink", Part::Skip),
    (5, "uid", Part::Text),
    (6, "resourceVersion", Part::Text),
    (7, "generation", Part::Skip),
    (8, "creationTimestamp", Part::Skip),
    (11, "labels", Part::Entry),
    (12, "annotations", Part::Entry),
];

const RESOURCE_ATTRIBUTES: &[Field] = &[
    (1, "namespace", Part::Text),
    (2, "verb", Part::Text),
    (3, "group", Part::Text),
    (4, "version", Part::Text),
    (5, "resource", Part::Text),
    (6, "subresource", Part::Text),
    (7, "name", Part::Text),
];

const OTHER_ATTRIBUTES: &[Field] = &[(1, "path", Part::Text), (2, "verb", Part::Text)];

const REVIEW: &[Field] = &[
    (1, "resourceAttributes", Part::Message(RESOURCE_ATTRIBUTES)),
    (2, "nonResourceAttributes", Part::Message(OTHER_ATTRIBUTES)),
];

/// The kinds that are read.
const KINDS: &[(&str, &[Field])] = &[
    (
        "Namespace",
        &[
            (1, "metadata", Part::Message(METADATA)),
            (2, "spec", Part::Message(&[])),
            (3, "status", Part::Skip),
        ],
    ),
    (
        "ConfigMap",
        &[
            (1, "metadata", Part::Message(METADATA)),
            (2, "data", Part::Entry),
            (3, "binaryData", Part::BytesEntry),
            (4, "immutable", Part::Bool),
        ],
    ),
    (
        "Secret",
        &[
            (1, "metadata", Part::Message(METADATA)),
            (2, "data", Part::BytesEntry),
            (3, "type", Part::Text),
            (4, "stringData", Part::Entry),
            (5, "immutable", Part::Bool),
        ],
    ),
    ("ServiceAccount", &[(1, "metadata", Part::Message(METADATA))]),
    (
        "SelfSubjectAccessReview",
        &[
            (1, "metadata", Part::Message(METADATA)),
            (2, "spec", Part::Message(REVIEW)),
            (3, "status", Part::Skip),
        ],
    ),
];

/// An object of a kind; `None` where it holds what is not read here.
pub(crate) fn read(bytes: &[u8], kind: &str) -> Option<Value> {
    let (_, fields) = KINDS.iter().find(|(name, _)| *name == kind)?;
    let envelope = bytes.strip_prefix(MAGIC)?;
    let raw = parts(envelope)?.into_iter().find(|(number, _)| *number == 2)?;
    match raw.1 {
        Wire::Bytes(raw) => object(raw, fields),
        Wire::Number(_) => None,
    }
}

/// A field's content on the wire.
enum Wire<'a> {
    Number(u64),
    Bytes(&'a [u8]),
}

/// The fields of a message, in their order.
fn parts(mut bytes: &[u8]) -> Option<Vec<(u64, Wire<'_>)>> {
    let mut found = Vec::new();
    while !bytes.is_empty() {
        let tag = number(&mut bytes)?;
        let content = match tag & 7 {
            0 => Wire::Number(number(&mut bytes)?),
            2 => {
                let length = usize::try_from(number(&mut bytes)?).ok()?;
                let content = bytes.get(..length)?;
                bytes = &bytes[length..];
                Wire::Bytes(content)
            }
            _ => return None,
        };
        found.push((tag >> 3, content));
    }
    Some(found)
}

fn number(bytes: &mut &[u8]) -> Option<u64> {
    let mut number = 0u64;
    for shift in (0..64).step_by(7) {
        let (first, rest) = bytes.split_first()?;
        *bytes = rest;
        number |= u64::from(first & 0x7f) << shift;
        if first & 0x80 == 0 {
            return Some(number);
        }
    }
    None
}

fn object(bytes: &[u8], fields: &[Field]) -> Option<Value> {
    let mut map = Map::new();
    for (number, content) in parts(bytes)? {
        let (_, name, part) = fields.iter().find(|(known, _, _)| *known == number)?;
        match (part, content) {
            (Part::Skip, _) => {}
            (Part::Bool, Wire::Number(number)) => drop(map.insert((*name).to_owned(), (number != 0).into())),
            // Clients send every text, and say nothing with an empty one.
            (Part::Text, Wire::Bytes([])) => {}
            (Part::Text, Wire::Bytes(text)) => drop(map.insert((*name).to_owned(), self::text(text)?)),
            (Part::Message(fields), Wire::Bytes(bytes)) => {
                map.insert((*name).to_owned(), object(bytes, fields)?);
            }
            (Part::Entry | Part::BytesEntry, Wire::Bytes(bytes)) => {
                let (key, value) = entry(bytes, matches!(part, Part::BytesEntry))?;
                let entries = map.entry(*name).or_insert_with(|| Value::Object(Map::new()));
                entries[key.as_str()] = value;
            }
            _ => return None,
        }
    }
    Some(Value::Object(map))
}

fn entry(bytes: &[u8], is_bytes: bool) -> Option<(String, Value)> {
    let mut key = String::new();
    let mut value: &[u8] = &[];
    for part in parts(bytes)? {
        match part {
            (1, Wire::Bytes(name)) => key = String::from_utf8(name.to_vec()).ok()?,
            (2, Wire::Bytes(content)) => value = content,
            _ => return None,
        }
    }
    Some((key, if is_bytes { encoded(value) } else { text(value)? }))
}

fn text(bytes: &[u8]) -> Option<Value> {
    std::str::from_utf8(bytes).ok().map(Value::from)
}

fn encoded(bytes: &[u8]) -> Value {
    use base64::Engine as _;
    base64::engine::general_purpose::STANDARD.encode(bytes).into()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// `number: bytes` of a message.
    fn part(number: u8, content: &[u8]) -> Vec<u8> {
        let length = u8::try_from(content.len()).expect("a short part");
        [&[number << 3 | 2, length], content].concat()
    }

    #[test]
    fn what_kubectl_sends_is_read_and_what_is_not_known_is_refused() {
        let metadata = part(1, &part(1, b"shop"));
        let entry = part(2, &[part(1, b"a"), part(2, b"b")].concat());
        let body = |message: &[u8]| [MAGIC, &part(2, message)].concat();
        let config_map = body(&[metadata.clone(), entry].concat());
        assert_eq!(
            read(&config_map, "ConfigMap"),
            Some(json!({"metadata": {"name": "shop"}, "data": {"a": "b"}}))
        );
        assert_eq!(read(&config_map, "Deployment"), None, "another kind");
        let owned = part(1, &[part(1, b"shop"), part(13, b"owner")].concat());
        assert_eq!(read(&body(&owned), "ConfigMap"), None, "a field that is not read");
        assert_eq!(read(&config_map[..9], "ConfigMap"), None, "half a body");
    }
}
