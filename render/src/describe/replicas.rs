//! Replicas put into a Description at dispatch.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Map, Value};

use crate::describe::{Content, Description};
use crate::name::ObjectKey;

impl Description {
    /// Its contents, in order, with these replicas in `spec.replicas`. Objects that are not named stay as
    /// they are, and so do encrypted ones, which scheduling never divides.
    pub fn with_replicas(&self, replicas: &BTreeMap<ObjectKey, u64>) -> Vec<Content> {
        self.objects
            .iter()
            .map(|object| match (&object.content, replicas.get(&object.key)) {
                (Content::Plain { object }, Some(count)) => {
                    let mut object = Arc::clone(object);
                    set_replicas(Arc::make_mut(&mut object), *count);
                    Content::Plain { object }
                }
                (content, _) => content.clone(),
            })
            .collect()
    }
}

/// Sets `spec.replicas`, and makes `spec` where there is none.
fn set_replicas(object: &mut Value, count: u64) {
    let Some(object) = object.as_object_mut() else {
        return;
    };
    let spec = object.entry("spec").or_insert(Value::Null);
    if !spec.is_object() {
        *spec = Value::Object(Map::new());
    }
    spec["replicas"] = Value::from(count);
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check(object: Value, expected: Value) {
        let mut changed = object;
        set_replicas(&mut changed, 3);
        assert_eq!(changed, expected);
    }

    #[test]
    fn replicas_are_set_whether_or_not_there_were_any() {
        check(
            json!({"spec": {"replicas": 1, "x": 2}}),
            json!({"spec": {"replicas": 3, "x": 2}}),
        );
        check(json!({"spec": {}}), json!({"spec": {"replicas": 3}}));
        check(
            json!({"kind": "Deployment"}),
            json!({"kind": "Deployment", "spec": {"replicas": 3}}),
        );
        check(json!({"spec": null}), json!({"spec": {"replicas": 3}}));
    }
}
