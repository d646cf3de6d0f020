//! Replicas put into a Description at dispatch.

use std::sync::Arc;

use serde_json::{Map, Value};

use crate::by_object::ByObject;
use crate::capacity::replica_path;
use crate::describe::{Content, Description};
use crate::name::ObjectKey;

impl Description {
    /// Its contents, in order, with these replicas where each kind says them. Objects that are not named stay as
    /// they are, and so do encrypted ones, which scheduling never divides.
    pub fn with_replicas(&self, replicas: &ByObject) -> Vec<Content> {
        self.objects
            .iter()
            .map(|object| match (&object.content, replicas.get(&object.key)) {
                (Content::Plain { object: value }, Some(count)) => {
                    let mut value = Arc::clone(value);
                    set_replicas(Arc::make_mut(&mut value), &self.path(&object.key), *count);
                    Content::Plain { object: value }
                }
                (content, _) => content.clone(),
            })
            .collect()
    }

    /// The JSON pointer of an object's replicas.
    fn path(&self, key: &ObjectKey) -> String {
        let declared = self.apply.replica_paths.iter().find(|item| item.is_of(key));
        let declared = declared.map(|item| item.replicas.clone());
        let built_in = || replica_path(key).map(|path| path.replicas);
        declared
            .or_else(built_in)
            .unwrap_or_else(|| "/spec/replicas".to_owned())
    }
}

/// Sets a number, and makes the maps above it where there are none.
pub(crate) fn set_replicas(mut value: &mut Value, pointer: &str, count: u64) {
    for name in pointer.split('/').skip(1) {
        if !value.is_object() {
            *value = Value::Object(Map::new());
        }
        let Some(map) = value.as_object_mut() else { return };
        value = map
            .entry(name.replace("~1", "/").replace("~0", "~"))
            .or_insert(Value::Null);
    }
    *value = Value::from(count);
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check(pointer: &str, object: Value, expected: Value) {
        let mut changed = object;
        set_replicas(&mut changed, pointer, 3);
        assert_eq!(changed, expected);
    }

    #[test]
    fn replicas_are_set_whether_or_not_there_were_any() {
        let replicas = "/spec/replicas";
        check(
            replicas,
            json!({"spec": {"replicas": 1, "x": 2}}),
            json!({"spec": {"replicas": 3, "x": 2}}),
        );
        check(replicas, json!({"spec": {}}), json!({"spec": {"replicas": 3}}));
        check(
            replicas,
            json!({"kind": "Deployment"}),
            json!({"kind": "Deployment", "spec": {"replicas": 3}}),
        );
        check(replicas, json!({"spec": null}), json!({"spec": {"replicas": 3}}));
        check("/spec/size/of~1it", json!({}), json!({"spec": {"size": {"of/it": 3}}}));
    }
}
