//! Who owns which field, as `managedFields` says it in the form FieldsV1: `f:<field>`, `k:<keys of a list's item>`,
//! `v:<member of a set>`; a field without anything below it is owned whole.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ManagedFieldsEntry;
use serde_json::{Map, Value};

use crate::apply::FIELD_MANAGER;

/// What is owned below one place of an object.
#[derive(Clone, Debug, Default)]
pub(super) struct Owners<'a> {
    ours: Option<&'a Value>,
    others: Vec<(&'a str, &'a Value)>,
}

impl<'a> Owners<'a> {
    /// All that an object's entries say.
    pub(super) fn of(managed: &'a [ManagedFieldsEntry]) -> Self {
        let mut owners = Self::default();
        for entry in managed {
            let Some(fields) = entry.fields_v1.as_ref().map(|fields| &fields.0) else {
                continue;
            };
            let manager = entry.manager.as_deref().unwrap_or_default();
            let applies = entry.operation.as_deref() == Some("Apply") && entry.subresource.is_none();
            if manager == FIELD_MANAGER && applies {
                owners.ours = Some(fields);
            } else {
                owners.others.push((manager, fields));
            }
        }
        owners
    }

    /// The same, where what we own was applied from another manifest: that we own a field says nothing then.
    pub(super) fn of_another(managed: &'a [ManagedFieldsEntry]) -> Self {
        let mut owners = Self::of(managed);
        owners
            .others
            .extend(owners.ours.take().map(|fields| (FIELD_MANAGER, fields)));
        owners
    }

    /// Below a field.
    pub(super) fn field(&self, name: &str) -> Self {
        self.child(&format!("f:{name}"))
    }

    /// Below a member of a set.
    pub(super) fn member(&self, value: &Value) -> Self {
        self.child(&format!("v:{value}"))
    }

    /// Below an item of a list that is told by keys.
    pub(super) fn item(&self, item: &Value) -> Self {
        let segment = self.segments().find(|segment| {
            let keys = keys_of(segment);
            !keys.is_empty()
                && keys
                    .iter()
                    .all(|(key, value)| item.get(key).is_none_or(|wanted| wanted == value))
        });
        segment.map_or_else(Self::default, |segment| self.child(segment))
    }

    /// The names of the keys by which a list's items are told; none where it is another list, or nobody owns an item.
    pub(super) fn list_keys(&self) -> Vec<String> {
        let keys = self.segments().map(keys_of).find(|keys| !keys.is_empty());
        keys.unwrap_or_default().into_iter().map(|(key, _)| key).collect()
    }

    /// Whether it is a list whose items are told by their values.
    pub(super) fn is_set(&self) -> bool {
        self.segments().any(|segment| segment.starts_with("v:"))
    }

    /// Whether we own it.
    pub(super) fn has_ours(&self) -> bool {
        self.ours.is_some()
    }

    /// Whether we own it and all that is below.
    pub(super) fn is_wholly_ours(&self) -> bool {
        self.ours.is_some_and(is_leaf)
    }

    /// Whether somebody owns it as one value.
    pub(super) fn is_atomic(&self) -> bool {
        self.others.iter().any(|(_, fields)| is_leaf(fields))
    }

    /// The first one beside us who owns something of it.
    pub(super) fn manager(&self) -> Option<&'a str> {
        self.others.first().map(|(manager, _)| *manager)
    }

    fn child(&self, segment: &str) -> Self {
        Self {
            ours: self.ours.and_then(|fields| fields.get(segment)),
            others: self
                .others
                .iter()
                .filter_map(|(manager, fields)| Some((*manager, fields.get(segment)?)))
                .collect(),
        }
    }

    fn segments(&self) -> impl Iterator<Item = &'a str> {
        let all = self
            .ours
            .into_iter()
            .chain(self.others.iter().map(|(_, fields)| *fields));
        all.filter_map(Value::as_object)
            .flat_map(|fields| fields.keys().map(String::as_str))
    }
}

fn is_leaf(fields: &Value) -> bool {
    fields.as_object().is_some_and(Map::is_empty)
}

fn keys_of(segment: &str) -> Vec<(String, Value)> {
    let keys = segment
        .strip_prefix("k:")
        .and_then(|keys| serde_json::from_str::<Map<String, Value>>(keys).ok());
    keys.into_iter().flatten().collect()
}
