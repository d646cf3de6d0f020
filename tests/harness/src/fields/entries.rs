//! The `managedFields` of an object, read and written.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::set::Set;

/// Who writes, and how.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Manager {
    /// By `Apply` or by `Update`; Apply stands first, as the real server sorts them.
    pub operation: Operation,
    pub subresource: Box<str>,
    pub name: Box<str>,
    pub api_version: Box<str>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Operation {
    Apply,
    Update,
}

/// What one manager owns, and since when.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Owned {
    pub set: Set,
    pub time: Option<String>,
}

/// All managers of an object.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Entries(pub BTreeMap<Manager, Owned>);

impl Manager {
    fn read(entry: &Value) -> Option<Self> {
        let text = |name: &str| entry[name].as_str().unwrap_or_default();
        Some(Self {
            operation: match text("operation") {
                "Apply" => Operation::Apply,
                "Update" => Operation::Update,
                _ => return None,
            },
            subresource: text("subresource").into(),
            name: text("manager").into(),
            api_version: text("apiVersion").into(),
        })
    }

    /// Whether it is the same applier, whatever version it applies.
    pub(super) fn applies_as(&self, other: &Self) -> bool {
        self.operation == Operation::Apply
            && other.operation == Operation::Apply
            && self.name == other.name
            && self.subresource == other.subresource
    }

    /// As conflicts name it.
    pub(super) fn display(&self) -> String {
        let mut text = format!("{:?}", self.name);
        if !self.subresource.is_empty() {
            text.push_str(&format!(" with subresource {:?}", self.subresource));
        }
        if self.operation == Operation::Update {
            text.push_str(&format!(" using {}", self.api_version));
        }
        text
    }
}

impl Entries {
    pub(crate) fn of(object: &Value) -> Self {
        let entries = object["metadata"]["managedFields"].as_array().into_iter().flatten();
        let entries = entries.filter_map(|entry| {
            let owned = Owned {
                set: Set::from_fields_v1(&entry["fieldsV1"]),
                time: entry["time"].as_str().map(str::to_owned),
            };
            Some((Manager::read(entry)?, owned))
        });
        Self(entries.collect())
    }

    /// Writes them into an object.
    pub(crate) fn write(&self, object: &mut Value) {
        let mut sorted: Vec<_> = self.0.iter().collect();
        sorted.sort_by(|(one, one_owned), (two, two_owned)| {
            let first = |manager: &Manager, owned: &Owned| (manager.operation, owned.time.clone());
            first(one, one_owned)
                .cmp(&first(two, two_owned))
                .then_with(|| one.name.cmp(&two.name))
        });
        let entries = sorted.into_iter().map(|(manager, owned)| {
            let mut entry = json!({"manager": manager.name, "operation": format!("{:?}", manager.operation),
                "apiVersion": manager.api_version, "fieldsType": "FieldsV1", "fieldsV1": owned.set.fields_v1()});
            if let Some(time) = &owned.time {
                entry["time"] = time.as_str().into();
            }
            if !manager.subresource.is_empty() {
                entry["subresource"] = Value::from(&*manager.subresource);
            }
            entry
        });
        let entries: Vec<_> = entries.collect();
        if let Some(metadata) = object["metadata"].as_object_mut() {
            metadata.remove("managedFields");
            if !entries.is_empty() {
                metadata.insert("managedFields".to_owned(), entries.into());
            }
        }
    }
}
