//! A shard of the inventory as text: JSON, unit by unit, so that people can read it too.

use std::collections::BTreeMap;

use render::{ObjectKey, UnitKey};
use serde::{Deserialize, Serialize};

use super::{Entry, Needs};

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
    /// Of units that have objects here, the units that they need.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    needs: BTreeMap<UnitKey, Vec<UnitKey>>,
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
    #[serde(default, skip_serializing_if = "is_false")]
    replacing: bool,
    /// The objects that it needs.
    #[serde(default, skip_serializing_if = "<[_]>::is_empty")]
    needs: Box<[ObjectKey]>,
}

fn is_false(value: &bool) -> bool {
    !*value
}

/// A shard's text, with what its units and objects need.
pub(super) fn encode<'a>(entries: impl IntoIterator<Item = (&'a ObjectKey, &'a Entry)>, needs: &Needs) -> String {
    let mut form = ShardForm {
        version: VERSION,
        units: BTreeMap::new(),
        needs: BTreeMap::new(),
    };
    for (key, entry) in entries {
        if let Some(needed) = needs
            .units
            .get(&entry.unit)
            .filter(|_| !form.units.contains_key(&entry.unit))
        {
            form.needs.insert(entry.unit.clone(), needed.clone());
        }
        let unit = form.units.entry(entry.unit.clone()).or_default();
        unit.insert(
            key.clone(),
            entry_form(entry, needs.objects.get(key).map(AsRef::as_ref)),
        );
    }
    serde_json::to_string(&form).expect("a map with text keys and plain fields is JSON")
}

fn entry_form(entry: &Entry, needs: Option<&[ObjectKey]>) -> EntryForm {
    EntryForm {
        api_version: entry.api_version.clone(),
        uid: entry.uid.clone(),
        applied: entry.applied.clone(),
        resource_version: entry.resource_version.clone(),
        lineage: entry.lineage.clone(),
        sequence: entry.sequence,
        orphan: entry.orphan,
        replacing: entry.replacing,
        needs: needs.map(Box::from).unwrap_or_default(),
    }
}

/// The entries of a shard's text, and what they need.
pub(super) fn decode(text: Option<&str>) -> Result<(Vec<(ObjectKey, Entry)>, Needs), CodecError> {
    let text = text.ok_or(CodecError::Absent)?;
    // The version first: a later form may differ in everything else.
    let head: ShardHead = serde_json::from_str(text).map_err(CodecError::Malformed)?;
    if head.version != VERSION {
        return Err(CodecError::Version(head.version));
    }
    let form: ShardForm = serde_json::from_str(text).map_err(CodecError::Malformed)?;
    let mut needs = Needs {
        units: form.needs,
        objects: BTreeMap::new(),
    };
    let mut entries = Vec::new();
    for (unit, objects) in form.units {
        for (key, form) in objects {
            if !form.needs.is_empty() {
                needs.objects.insert(key.clone(), form.needs);
            }
            let entry = Entry {
                unit: unit.clone(),
                api_version: form.api_version,
                uid: form.uid,
                applied: form.applied,
                resource_version: form.resource_version,
                lineage: form.lineage,
                sequence: form.sequence,
                orphan: form.orphan,
                replacing: form.replacing,
            };
            entries.push((key, entry));
        }
    }
    Ok((entries, needs))
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
            replacing: false,
        }
    }

    #[test]
    fn what_stays_as_nobodys_is_remembered_and_everything_else_is_written_as_ever() {
        let key = ObjectKey::new("v1", "ConfigMap", "shop", "a");
        let plain = encode([(&key, &entry(Some("uid-1")))], &Needs::default());
        assert!(
            ["orphan", "needs", "replacing"]
                .iter()
                .all(|field| !plain.contains(field)),
            "an upgrade writes no shard anew: {plain}"
        );
        let orphan = Entry {
            orphan: true,
            replacing: true,
            ..entry(Some("uid-1"))
        };
        let text = encode([(&key, &orphan)], &Needs::default());
        let (read, _) = decode(Some(&text)).expect("it is what was written");
        assert_eq!(read, [(key, orphan)]);
    }

    #[test]
    fn what_units_and_objects_need_is_remembered_where_they_have_something() {
        let unit = |name: &str| name.parse::<UnitKey>().expect("a valid unit");
        let key = |name: &str| ObjectKey::new("v1", "ConfigMap", "shop", name);
        let needs = Needs {
            units: BTreeMap::from([
                (unit("shop/web"), vec![unit("infra/db")]),
                (unit("shop/elsewhere"), vec![unit("infra/db")]),
            ]),
            objects: BTreeMap::from([
                (key("a"), Box::from([key("b")])),
                (key("elsewhere"), Box::from([key("b")])),
            ]),
        };
        let entry = entry(Some("uid-1"));
        let text = encode([(&key("a"), &entry), (&key("b"), &entry)], &needs);
        let (entries, read) = decode(Some(&text)).expect("it is what was written");
        assert_eq!(entries.len(), 2);
        assert_eq!(read.units, BTreeMap::from([(unit("shop/web"), vec![unit("infra/db")])]));
        assert_eq!(read.objects, BTreeMap::from([(key("a"), Box::from([key("b")]))]));
    }

    #[test]
    fn a_shard_reads_back_what_it_writes() {
        let entries = [
            (ObjectKey::new("v1", "ConfigMap", "shop", "a"), entry(Some("uid-1"))),
            (ObjectKey::new("v1", "Namespace", "", "shop"), entry(None)),
        ];
        let text = encode(entries.iter().map(|(key, entry)| (key, entry)), &Needs::default());
        let (read, _) = decode(Some(&text)).expect("it is what was written");
        assert_eq!(read, entries);
    }

    #[test]
    fn an_unreadable_shard_is_an_error_and_never_empty() {
        assert!(matches!(decode(None), Err(CodecError::Absent)));
        let key = ObjectKey::new("v1", "ConfigMap", "shop", "a");
        let text = encode([(&key, &entry(Some("uid-1")))], &Needs::default());
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
