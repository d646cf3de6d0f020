//! A shard of the inventory as text: JSON, unit by unit, so that people can read it too.

use std::collections::BTreeMap;

use render::{ObjectKey, UnitKey};
use serde::{Deserialize, Serialize};

use super::Entry;

/// The version that this build writes, and the only one that it reads.
const VERSION: u32 = 1;

/// A shard that cannot be read. It is never taken for an empty one.
#[derive(Debug, thiserror::Error)]
pub(super) enum CodecError {
    /// It has no content.
    #[error("it has no content")]
    Absent,
    /// It is not what was written.
    #[error("it is not understood")]
    Malformed(#[source] serde_json::Error),
    /// Another build wrote it.
    #[error("it has version {0}, and this build knows {VERSION}")]
    Version(u32),
}

#[derive(Serialize, Deserialize)]
struct ShardHead {
    version: u32,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct ShardForm {
    version: u32,
    units: BTreeMap<UnitKey, BTreeMap<ObjectKey, EntryForm>>,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct EntryForm {
    api_version: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    uid: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    applied: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    resource_version: Option<String>,
    lineage: String,
    sequence: u64,
    #[serde(default, skip_serializing_if = "is_false")]
    orphan: bool,
}

fn is_false(value: &bool) -> bool {
    !*value
}

/// A shard's text.
pub(super) fn encode<'a>(entries: impl IntoIterator<Item = (&'a ObjectKey, &'a Entry)>) -> String {
    let mut form = ShardForm {
        version: VERSION,
        units: BTreeMap::new(),
    };
    for (key, entry) in entries {
        let unit = form.units.entry(entry.unit.clone()).or_default();
        unit.insert(key.clone(), entry_form(entry));
    }
    serde_json::to_string(&form).expect("a map with text keys and plain fields is JSON")
}

fn entry_form(entry: &Entry) -> EntryForm {
    EntryForm {
        api_version: entry.api_version.clone(),
        uid: entry.uid.clone(),
        applied: entry.applied.clone(),
        resource_version: entry.resource_version.clone(),
        lineage: entry.lineage.clone(),
        sequence: entry.sequence,
        orphan: entry.orphan,
    }
}

/// The entries of a shard's text.
pub(super) fn decode(text: Option<&str>) -> Result<Vec<(ObjectKey, Entry)>, CodecError> {
    let text = text.ok_or(CodecError::Absent)?;
    // The version first: a later form may differ in everything else.
    let head: ShardHead = serde_json::from_str(text).map_err(CodecError::Malformed)?;
    if head.version != VERSION {
        return Err(CodecError::Version(head.version));
    }
    let form: ShardForm = serde_json::from_str(text).map_err(CodecError::Malformed)?;
    let entries = form.units.into_iter().flat_map(|(unit, objects)| {
        let entry = move |form: EntryForm| Entry {
            unit: unit.clone(),
            api_version: form.api_version,
            uid: form.uid,
            applied: form.applied,
            resource_version: form.resource_version,
            lineage: form.lineage,
            sequence: form.sequence,
            orphan: form.orphan,
        };
        objects.into_iter().map(move |(key, form)| (key, entry(form)))
    });
    Ok(entries.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(uid: Option<&str>) -> Entry {
        Entry {
            unit: UnitKey::new("shop", "web").expect("a valid unit"),
            api_version: "v1".to_owned(),
            uid: uid.map(str::to_owned),
            applied: uid.map(|_| "0123".to_owned()),
            resource_version: uid.map(|_| "7".to_owned()),
            lineage: "aaaa".to_owned(),
            sequence: 3,
            orphan: false,
        }
    }

    #[test]
    fn what_stays_as_nobodys_is_remembered_and_everything_else_is_written_as_ever() {
        let key = ObjectKey::new("v1", "ConfigMap", "shop", "a");
        let plain = encode([(&key, &entry(Some("uid-1")))]);
        assert!(!plain.contains("orphan"), "an upgrade writes no shard anew: {plain}");
        let orphan = Entry {
            orphan: true,
            ..entry(Some("uid-1"))
        };
        let read = decode(Some(&encode([(&key, &orphan)]))).expect("it is what was written");
        assert_eq!(read, [(key, orphan)]);
    }

    #[test]
    fn a_shard_reads_back_what_it_writes() {
        let entries = [
            (ObjectKey::new("v1", "ConfigMap", "shop", "a"), entry(Some("uid-1"))),
            (ObjectKey::new("v1", "Namespace", "", "shop"), entry(None)),
        ];
        let text = encode(entries.iter().map(|(key, entry)| (key, entry)));
        let read = decode(Some(&text)).expect("it is what was written");
        assert_eq!(read, entries);
    }

    #[test]
    fn an_unreadable_shard_is_an_error_and_never_empty() {
        assert!(matches!(decode(None), Err(CodecError::Absent)));
        let text = encode([(&ObjectKey::new("v1", "ConfigMap", "shop", "a"), &entry(Some("uid-1")))]);
        assert!(matches!(
            decode(Some(&text[..text.len() / 2])),
            Err(CodecError::Malformed(_))
        ));
        for broken in [
            "",
            "{}",
            "null",
            "[]",
            r#"{"version":1}"#,
            r#"{"version":1,"units":{"x":{}}}"#,
        ] {
            assert!(decode(Some(broken)).is_err(), "{broken:?} was taken for a shard");
        }
        let newer = r#"{"version":2,"objects":[]}"#;
        assert!(matches!(decode(Some(newer)), Err(CodecError::Version(2))));
    }
}
