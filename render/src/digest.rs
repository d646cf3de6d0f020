//! Digests: SHA-256 over canonical JSON (sorted keys, no blanks).

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;
use sha2::{Digest as _, Sha256};

/// A SHA-256 digest. Written `sha256:<64 hex>`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Digest([u8; 32]);

impl Digest {
    /// The digest of bytes as they are.
    pub fn of_bytes(bytes: &[u8]) -> Self {
        Self(Sha256::digest(bytes).into())
    }

    /// The digest of a value's canonical JSON.
    pub fn of_value(value: &Value) -> Self {
        let mut hasher = Sha256::new();
        write_canonical(value, &mut |bytes| hasher.update(bytes));
        Self(hasher.finalize().into())
    }

    /// An id of the form of a UUID, always the same for the same digest. Version 8 of RFC 9562 is for ids that are made
    /// from something of one's own.
    pub fn uuid(&self) -> String {
        let hex = self.short(32);
        format!(
            "{}-{}-8{}-8{}-{}",
            &hex[..8],
            &hex[8..12],
            &hex[13..16],
            &hex[17..20],
            &hex[20..]
        )
    }

    /// The first `digits` hex digits, at most 64.
    pub fn short(&self, digits: usize) -> String {
        let mut text = hex::encode(self.0);
        text.truncate(digits);
        text
    }

    /// The bytes.
    pub fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

/// The canonical JSON of a value: keys sorted by their bytes, no blanks.
pub(crate) fn canonical_json(value: &Value) -> Vec<u8> {
    let mut out = Vec::new();
    write_canonical(value, &mut |bytes| out.extend_from_slice(bytes));
    out
}

fn write_canonical(value: &Value, out: &mut impl FnMut(&[u8])) {
    match value {
        Value::Null => out(b"null"),
        Value::Bool(true) => out(b"true"),
        Value::Bool(false) => out(b"false"),
        Value::Number(number) => out(number.to_string().as_bytes()),
        Value::String(text) => write_string(text, out),
        Value::Array(items) => {
            out(b"[");
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    out(b",");
                }
                write_canonical(item, out);
            }
            out(b"]");
        }
        Value::Object(map) => {
            // Sorted here, and not trusted to the map: another crate may switch serde_json's map type.
            let mut entries: Vec<_> = map.iter().collect();
            entries.sort_unstable_by(|a, b| a.0.cmp(b.0));
            out(b"{");
            for (index, (key, item)) in entries.into_iter().enumerate() {
                if index > 0 {
                    out(b",");
                }
                write_string(key, out);
                out(b":");
                write_canonical(item, out);
            }
            out(b"}");
        }
    }
}

fn write_string(text: &str, out: &mut impl FnMut(&[u8])) {
    out(b"\"");
    let mut start = 0;
    for (index, byte) in text.bytes().enumerate() {
        let escaped: &[u8] = match byte {
            b'"' => b"\\\"",
            b'\\' => b"\\\\",
            0x08 => b"\\b",
            0x0c => b"\\f",
            b'\n' => b"\\n",
            b'\r' => b"\\r",
            b'\t' => b"\\t",
            0x00..=0x1f => {
                out(&text.as_bytes()[start..index]);
                out(format!("\\u{byte:04x}").as_bytes());
                start = index + 1;
                continue;
            }
            _ => continue,
        };
        out(&text.as_bytes()[start..index]);
        out(escaped);
        start = index + 1;
    }
    out(&text.as_bytes()[start..]);
    out(b"\"");
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "sha256:{}", hex::encode(self.0))
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

/// A text that is not `sha256:` and 64 hex digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a digest is sha256: and 64 hex digits")]
pub struct InvalidDigest;

impl FromStr for Digest {
    type Err = InvalidDigest;
    fn from_str(text: &str) -> Result<Self, InvalidDigest> {
        let digits = text.strip_prefix("sha256:").ok_or(InvalidDigest)?;
        let mut bytes = [0; 32];
        hex::decode_to_slice(digits, &mut bytes).map_err(|_| InvalidDigest)?;
        Ok(Self(bytes))
    }
}

impl Serialize for Digest {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Digest {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?
            .parse()
            .map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn canonical_json_sorts_keys_and_escapes_as_json_demands() {
        let value = json!({"b": [1, true, null, -2.5], "a": "q\"\\\n\u{1}é"});
        let text = String::from_utf8(canonical_json(&value)).expect("canonical JSON is UTF-8");
        assert_eq!(text, r#"{"a":"q\"\\\n\u0001é","b":[1,true,null,-2.5]}"#);
        assert_eq!(serde_json::from_str::<Value>(&text).expect("it is JSON"), value);
    }

    #[test]
    fn a_digest_reads_back_what_it_writes() {
        let digest = Digest::of_value(&json!({"a": 1}));
        assert_eq!(digest.to_string().parse(), Ok(digest));
        assert_eq!("sha256:zz".parse::<Digest>(), Err(InvalidDigest));
    }
}
