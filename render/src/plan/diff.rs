//! What changes inside a content, object by object and field by field.

mod files;

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use serde_json::Value;

use crate::describe::{Content, Description};
use crate::name::{ObjectKey, UnitKey};

/// One object's change between two contents.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ObjectChange {
    /// Which object.
    pub object: ObjectKey,
    /// What happens to it.
    pub change: Change,
}

/// What happens to an object.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Change {
    /// It is new.
    Added,
    /// It is gone.
    Removed,
    /// It leaves the unit and stays in the cluster; by what.
    Kept(String),
    /// It leaves the unit, and another one has it from now on.
    MovedTo(UnitKey),
    /// It comes from another unit, as it is but for these fields.
    #[serde(rename_all = "camelCase")]
    MovedFrom {
        /// The unit that had it.
        unit: UnitKey,
        /// What differs, sorted by pointer.
        fields: Vec<FieldChange>,
    },
    /// These fields differ, sorted by pointer.
    Changed(Vec<FieldChange>),
    /// An encrypted document differs; what in it, nobody here can tell.
    EncryptedChanged,
}

/// One field's change.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct FieldChange {
    /// JSON pointer; of a chart's file its path, which has no leading slash.
    pub field: String,
    /// What it was; `None`: it is new. Values of Secrets are masked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<Value>,
    /// What it becomes; `None`: it is gone. Values of Secrets are masked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to: Option<Value>,
}

/// The changes from one content to another, sorted by object; `None` stands for a content without objects.
pub fn changes(from: Option<&Description>, to: Option<&Description>) -> Vec<ObjectChange> {
    let (from, to) = (by_key(from), by_key(to));
    let keys: BTreeSet<&ObjectKey> = from.keys().chain(to.keys()).copied().collect();
    let change = |key: &ObjectKey| match (from.get(key), to.get(key)) {
        (Some(from), Some(to)) => content_change(key, from, to),
        (None, Some(_)) => Some(Change::Added),
        (Some(_), None) => Some(Change::Removed),
        (None, None) => None,
    };
    keys.into_iter()
        .filter_map(|key| {
            Some(ObjectChange {
                object: key.clone(),
                change: change(key)?,
            })
        })
        .collect()
}

fn by_key(description: Option<&Description>) -> BTreeMap<&ObjectKey, &Content> {
    let objects = description.into_iter().flat_map(|description| &description.objects);
    objects.map(|object| (&object.key, &object.content)).collect()
}

/// What differs between two contents of one object; `None` where nothing does.
pub(super) fn content_change(key: &ObjectKey, from: &Content, to: &Content) -> Option<Change> {
    if from == to {
        return None;
    }
    let (Some(from_object), Some(to_object)) = (from.object(), to.object()) else {
        return Some(Change::EncryptedChanged);
    };
    let mut fields = Vec::new();
    collect("", Some(from_object), Some(to_object), &mut fields);
    fields.extend(files::changes(from, to));
    if key.is_secret() {
        fields.iter_mut().for_each(FieldChange::mask);
    }
    Some(Change::Changed(fields))
}

impl FieldChange {
    /// Hides a Secret's values, wherever below `data` or `stringData` the change is. Its annotations may
    /// repeat them (`kubectl apply` does that), so of those only the names are shown too.
    fn mask(&mut self) {
        let shown = ["/metadata/labels", "/metadata/name", "/type", "/immutable"];
        if !shown.iter().any(|prefix| self.field.starts_with(prefix)) {
            self.from = self.from.take().map(|_| "***".into());
            self.to = self.to.take().map(|_| "***".into());
        }
    }
}

fn collect(pointer: &str, from: Option<&Value>, to: Option<&Value>, fields: &mut Vec<FieldChange>) {
    match (from, to) {
        (Some(from), Some(to)) if from == to => {}
        (Some(Value::Object(from)), Some(Value::Object(to))) => {
            let keys: BTreeSet<&String> = from.keys().chain(to.keys()).collect();
            for key in keys {
                let below = format!("{pointer}/{}", key.replace('~', "~0").replace('/', "~1"));
                collect(&below, from.get(key), to.get(key), fields);
            }
        }
        (Some(Value::Array(from)), Some(Value::Array(to))) if from.len() == to.len() => {
            for (index, (from, to)) in from.iter().zip(to).enumerate() {
                collect(&format!("{pointer}/{index}"), Some(from), Some(to), fields);
            }
        }
        (from, to) => fields.push(FieldChange {
            field: pointer.to_owned(),
            from: from.cloned(),
            to: to.cloned(),
        }),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::json;

    use super::*;
    use crate::describe::{DescribedObject, key_of};

    fn description(objects: &[Value]) -> Description {
        let object = |value: &Value| DescribedObject {
            key: key_of(value).expect("the object names itself"),
            content: Content::Plain {
                object: Arc::new(value.clone()),
            },
            provenance: Vec::new(),
        };
        Description::new(objects.iter().map(object).collect()).expect("the keys differ")
    }

    #[track_caller]
    fn check(from: &[Value], to: &[Value], expected: Value) {
        let changes = changes(Some(&description(from)), Some(&description(to)));
        assert_eq!(serde_json::to_value(changes).expect("changes are JSON"), expected);
    }

    fn config_map(data: Value) -> Value {
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": data})
    }

    #[test]
    fn fields_are_told_one_by_one() {
        check(
            &[config_map(json!({"x": "1", "a/b": "1", "gone": "1"}))],
            &[config_map(json!({"x": "2", "a/b": "1", "new": "1"}))],
            json!([{"object": "/ConfigMap//a", "change": {"changed": [
                {"field": "/data/gone", "from": "1"},
                {"field": "/data/new", "to": "1"},
                {"field": "/data/x", "from": "1", "to": "2"},
            ]}}]),
        );
        check(
            &[config_map(json!({}))],
            &[],
            json!([{"object": "/ConfigMap//a", "change": "removed"}]),
        );
    }

    #[test]
    fn no_secret_value_is_told() {
        let secret = |value: &str| {
            json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s",
            "annotations": {"last": value}}, "stringData": {"password": value}})
        };
        let changes = changes(
            Some(&description(&[secret("hunter1")])),
            Some(&description(&[secret("hunter2")])),
        );
        let text = serde_json::to_string(&changes).expect("changes are JSON");
        assert!(
            text.contains("/stringData/password") && !text.contains("hunter"),
            "{text}"
        );
    }
}
