//! Decrypts the values of a document in its own order, and verifies the MAC over them.

use render::yaml::Node;
use serde_json::{Map, Number, Value};
use sha2::{Digest as _, Sha512};
use zeroize::Zeroizing;

use super::metadata::Metadata;
use super::rules::Rules;
use super::value::{DataKey, Plain, decrypt};
use super::{Decrypted, SopsError, told};

/// What a MAC over encrypted values alone begins with, so that it never equals one over all values. It is the SHA-256
/// of the word `sops`.
const MAC_ONLY_ENCRYPTED_PREFIX: [u8; 32] = [
    0x8a, 0x3f, 0xd2, 0xad, 0x54, 0xce, 0x66, 0x52, 0x7b, 0x10, 0x34, 0xf3, 0xd1, 0x47, 0xbe, 0x0b, 0x0b, 0x97, 0x5b,
    0x3b, 0xf4, 0x4f, 0x72, 0xc6, 0xfd, 0xad, 0xec, 0x81, 0x76, 0xf2, 0x7d, 0x69,
];

/// A walk through one document.
pub(super) struct Walk<'a> {
    key: &'a DataKey,
    rules: &'a Rules,
    hash: Sha512,
    /// Keys from the root to here; items of lists have no name in it.
    path: Vec<String>,
}

impl<'a> Walk<'a> {
    pub(super) fn new(key: &'a DataKey, rules: &'a Rules) -> Self {
        let mut hash = Sha512::new();
        if rules.mac_only_encrypted {
            hash.update(MAC_ONLY_ENCRYPTED_PREFIX);
        }
        Self {
            key,
            rules,
            hash,
            path: Vec::new(),
        }
    }

    /// Decrypts a mapping into `map`.
    pub(super) fn mapping(
        &mut self,
        entries: impl IntoIterator<Item = (String, Node)>,
        map: &mut Map<String, Value>,
    ) -> Result<(), SopsError> {
        for (key, node) in entries {
            self.path.push(key.clone());
            if let Some(value) = self.node(node)? {
                map.insert(key, value);
            }
            self.path.pop();
        }
        Ok(())
    }

    fn node(&mut self, node: Node) -> Result<Decrypted, SopsError> {
        match node {
            Node::Mapping(entries) => {
                let mut map = Map::new();
                self.mapping(entries, &mut map)?;
                Ok(Some(Value::Object(map)))
            }
            Node::Sequence(nodes) => {
                let mut items = Vec::with_capacity(nodes.len());
                for node in nodes {
                    items.extend(self.node(node)?);
                }
                Ok(Some(Value::Array(items)))
            }
            // Null is neither encrypted nor part of the MAC.
            Node::Scalar(Value::Null) => Ok(Some(Value::Null)),
            Node::Scalar(value) => self.leaf(value),
        }
    }

    fn leaf(&mut self, value: Value) -> Result<Decrypted, SopsError> {
        if !self.rules.is_encrypted(&self.path, value.as_str()) {
            if !self.rules.mac_only_encrypted {
                self.hash.update(mac_text(&value).as_bytes());
            }
            return Ok(Some(value));
        }
        let Value::String(text) = &value else {
            return Err(SopsError::Value(told(&self.path)));
        };
        // Empty text is left as it is.
        if text.is_empty() {
            return Ok(Some(value));
        }
        let bound_to = self.path.join(":") + ":";
        let plain = decrypt(text, self.key, bound_to.as_bytes());
        let plain = plain.ok_or_else(|| SopsError::Value(told(&self.path)))?;
        let Some(value) = self.typed(&plain)? else {
            return Ok(None);
        };
        self.hash.update(Zeroizing::new(mac_text(&value)).as_bytes());
        Ok(Some(value))
    }

    /// The value by its type; `None` for a comment, which stands in lists as an item.
    fn typed(&self, plain: &Plain) -> Result<Decrypted, SopsError> {
        let wrong = || SopsError::ValueType(told(&self.path));
        let text = std::str::from_utf8(&plain.bytes).map_err(|_| wrong())?;
        let value = match plain.value_type.as_str() {
            "str" | "bytes" | "time" => Value::String(text.to_owned()),
            "int" => Value::Number(text.parse::<i64>().map_err(|_| wrong())?.into()),
            "float" => Value::Number(number(text).ok_or_else(wrong)?),
            "bool" => match text {
                "True" | "true" => Value::Bool(true),
                "False" | "false" => Value::Bool(false),
                _ => return Err(wrong()),
            },
            "comment" => return Ok(None),
            _ => return Err(wrong()),
        };
        Ok(Some(value))
    }

    /// Compares with the document's own MAC, which is encrypted and bound to its time.
    pub(super) fn verify(self, metadata: &Metadata) -> Result<(), SopsError> {
        let stated = decrypt(&metadata.mac, self.key, metadata.last_modified.as_bytes()).ok_or(SopsError::Mac)?;
        let found = hex_upper(&self.hash.finalize());
        // Nobody learns from how long this takes: who could change the document cannot see it.
        if stated.bytes.as_slice() == found.as_bytes() {
            Ok(())
        } else {
            Err(SopsError::Mac)
        }
    }
}

/// A float; one without a fraction is the integer that kubectl sends for it.
fn number(text: &str) -> Option<Number> {
    match text.parse::<i64>() {
        Ok(whole) => Some(whole.into()),
        Err(_) => Number::from_f64(text.parse().ok()?),
    }
}

/// A value as the MAC takes it.
pub(super) fn mac_text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Bool(true) => "True".to_owned(),
        Value::Bool(false) => "False".to_owned(),
        Value::Number(number) => match number.as_f64().filter(|_| number.is_f64()) {
            // Without an exponent, as SOPS writes it.
            Some(float) => format!("{float}"),
            None => number.to_string(),
        },
        Value::Null | Value::Array(_) | Value::Object(_) => String::new(),
    }
}

fn hex_upper(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02X}")).collect()
}
