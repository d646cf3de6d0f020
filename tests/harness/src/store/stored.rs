//! One object at rest: what is its own beside what it shares.

use std::sync::Arc;

use jiff::Timestamp;
use serde_json::{Map, Value};

use super::intern::intern;

/// An object at rest.
#[derive(Clone, Debug)]
pub(crate) struct Stored {
    /// At which version of the cluster it was written.
    pub version: u64,
    uid: Option<Uid>,
    created: Option<Box<str>>,
    /// Times of its managed fields, in their order.
    times: Box<[Option<i64>]>,
    /// UIDs of its owners.
    pub owners: Box<[Box<str>]>,
    /// Whether it is on its way out.
    pub deleting: bool,
    body: Arc<[u8]>,
}

/// A UID: 16 bytes where it is one of ours, text where a test chose it.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Uid {
    Number(u128),
    Text(Box<str>),
}

impl Uid {
    fn parse(text: &str) -> Self {
        let digits: String = text.chars().filter(|c| *c != '-').collect();
        match u128::from_str_radix(&digits, 16) {
            Ok(number) if uid_text(number) == text => Self::Number(number),
            _ => Self::Text(text.into()),
        }
    }

    fn text(&self) -> String {
        match self {
            Self::Number(number) => uid_text(*number),
            Self::Text(text) => text.to_string(),
        }
    }
}

/// A number in the form of a UUID.
pub(super) fn uid_text(number: u128) -> String {
    let hex = format!("{number:032x}");
    format!(
        "{}-{}-{}-{}-{}",
        &hex[..8],
        &hex[8..12],
        &hex[12..16],
        &hex[16..20],
        &hex[20..]
    )
}

impl Stored {
    /// Puts an object to rest as of a version.
    pub(crate) fn new(mut object: Value, version: u64) -> Self {
        let mut stored = Self {
            version,
            uid: None,
            created: None,
            times: Box::default(),
            owners: Box::default(),
            deleting: false,
            body: Arc::default(),
        };
        if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
            stored.take(metadata);
        }
        let bytes = serde_json::to_vec(&object).expect("a JSON value can be written");
        stored.body = intern(&bytes);
        stored
    }

    fn take(&mut self, metadata: &mut Map<String, Value>) {
        let mut text = |name: &str| match metadata.remove(name) {
            Some(Value::String(text)) => Some(text),
            _ => None,
        };
        self.uid = text("uid").map(|uid| Uid::parse(&uid));
        self.created = text("creationTimestamp").map(Into::into);
        metadata.remove("resourceVersion");
        self.deleting = metadata.contains_key("deletionTimestamp");
        let owners = metadata
            .get("ownerReferences")
            .and_then(Value::as_array)
            .into_iter()
            .flatten();
        self.owners = owners
            .filter_map(|owner| owner["uid"].as_str())
            .map(Into::into)
            .collect();
        let managed = metadata.get_mut("managedFields").and_then(Value::as_array_mut);
        let times = managed.into_iter().flatten().map(|entry| {
            let time = entry.as_object_mut()?.remove("time")?;
            let time: Timestamp = time.as_str()?.parse().ok()?;
            Some(time.as_second())
        });
        self.times = times.collect();
    }

    /// The whole object.
    pub(crate) fn object(&self) -> Value {
        let mut object: Value = serde_json::from_slice(&self.body).expect("what is stored was written as JSON");
        let metadata = &mut object["metadata"];
        metadata["resourceVersion"] = self.version.to_string().into();
        if let Some(uid) = &self.uid {
            metadata["uid"] = uid.text().into();
        }
        if let Some(created) = &self.created {
            metadata["creationTimestamp"] = Value::from(&**created);
        }
        if let Some(entries) = metadata.get_mut("managedFields").and_then(Value::as_array_mut) {
            for (entry, time) in entries.iter_mut().zip(&self.times) {
                if let Some(time) = time.and_then(|seconds| Timestamp::from_second(seconds).ok()) {
                    entry["time"] = time.to_string().into();
                }
            }
        }
        object
    }

    /// The same object as of another version.
    pub(crate) fn at(&self, version: u64) -> Self {
        Self {
            version,
            ..self.clone()
        }
    }

    /// Its UID.
    pub(crate) fn uid(&self) -> String {
        self.uid.as_ref().map(Uid::text).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_object_comes_back_as_it_was_and_shares_its_body() {
        let object = |uid: &str, version: &str| {
            json!({"kind": "ConfigMap", "apiVersion": "v1", "data": {"a": "b"}, "metadata": {"name": "a", "uid": uid,
                "resourceVersion": version, "creationTimestamp": "2026-01-01T00:00:00Z", "managedFields": [
                    {"manager": "a", "time": "2026-01-01T00:00:05Z"}, {"manager": "b"}]}})
        };
        let one = Stored::new(object("00000000-0000-4000-8000-00000000000a", "7"), 7);
        let two = Stored::new(object("chosen by a test", "8"), 8);
        assert_eq!(one.object(), object("00000000-0000-4000-8000-00000000000a", "7"));
        assert_eq!(two.object(), object("chosen by a test", "8"));
        assert!(Arc::ptr_eq(&one.body, &two.body));
    }
}
