//! The objects of a release, as its manifest says them.

use render::ObjectKey;
use serde_json::{Map, Value};

use super::wanted::Place;
use crate::apply::discovery::Kinds;
use crate::limits::RELEASE_OBJECTS_MAX;

/// One object of a manifest. It has no `Debug`: it may be a Secret.
#[derive(Clone)]
pub(super) struct Managed {
    /// Its API version.
    pub api_version: String,
    /// Its key; the namespace is empty where the manifest names none.
    pub key: ObjectKey,
    /// What it says, as JSON: smaller than a tree of values.
    text: Box<str>,
}

impl Managed {
    /// What it says.
    pub(super) fn object(&self) -> Value {
        serde_json::from_str(&self.text).expect("it was written as JSON")
    }

    /// Its key in the cluster; `None` where its kind is not served.
    pub(super) fn key_in(&self, kinds: &Kinds, place: &Place) -> Option<ObjectKey> {
        let kind = kinds.find(&self.api_version, &self.key.kind)?;
        let namespace = match (kind.namespaced, self.key.namespace.as_str()) {
            (false, _) => "",
            (true, "") => &place.namespace,
            (true, namespace) => namespace,
        };
        Some(ObjectKey {
            namespace: namespace.to_owned(),
            ..self.key.clone()
        })
    }
}

/// Reads a manifest; why it cannot be read.
pub(super) fn read(manifest: &str) -> Result<Vec<Managed>, String> {
    let documents = render::yaml::read(manifest).map_err(|error| format!("line {}: {}", error.line, error.message))?;
    let mut objects = Vec::new();
    for document in documents {
        collect(document.value, &mut objects);
    }
    if objects.len() > RELEASE_OBJECTS_MAX {
        return Err(format!(
            "it has {} objects, and {RELEASE_OBJECTS_MAX} can be followed",
            objects.len()
        ));
    }
    Ok(objects)
}

fn collect(mut value: Value, objects: &mut Vec<Managed>) {
    let is_list = value["kind"].as_str().is_some_and(|kind| kind.ends_with("List"));
    if is_list && let Some(items) = value["items"].as_array_mut() {
        for item in std::mem::take(items) {
            collect(item, objects);
        }
        return;
    }
    if let Some(key) = render::describe::key_of(&value) {
        objects.push(Managed {
            api_version: value["apiVersion"].as_str().unwrap_or_default().to_owned(),
            key,
            text: value.to_string().into(),
        });
    }
}

/// An object as Helm sends it: in its namespace, with what makes it the release's.
pub(super) fn owned(mut object: Value, namespace: &str, place: &Place) -> Value {
    let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) else {
        return object;
    };
    if !namespace.is_empty() {
        metadata.insert("namespace".to_owned(), namespace.into());
    }
    field(metadata, "labels").insert("app.kubernetes.io/managed-by".to_owned(), "Helm".into());
    let annotations = field(metadata, "annotations");
    annotations.insert("meta.helm.sh/release-name".to_owned(), place.release.as_str().into());
    annotations.insert(
        "meta.helm.sh/release-namespace".to_owned(),
        place.namespace.as_str().into(),
    );
    object
}

fn field<'a>(metadata: &'a mut Map<String, Value>, name: &str) -> &'a mut Map<String, Value> {
    let entry = metadata.entry(name).or_insert(Value::Null);
    if !entry.is_object() {
        *entry = Map::new().into();
    }
    entry.as_object_mut().expect("it was made a map")
}

/// Whether two states of an object differ in what people and charts write. What the server keeps itself is
/// left out.
pub(super) fn differ(before: &Value, after: &Value) -> bool {
    let bare = |object: &Value| {
        let mut object = object.clone();
        if let Some(map) = object.as_object_mut() {
            map.remove("status");
        }
        if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
            for name in ["managedFields", "resourceVersion", "generation"] {
                metadata.remove(name);
            }
        }
        object
    };
    bare(before) != bare(after)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn place() -> Place {
        Place {
            namespace: "shop".to_owned(),
            release: "web".to_owned(),
        }
    }

    #[test]
    fn a_manifest_is_read_object_by_object() {
        let manifest = "---\n# Source: web/templates/a.yaml\napiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\n\
            ---\n# nothing\n---\napiVersion: v1\nkind: List\nitems:\n- apiVersion: v1\n  kind: Secret\n  metadata:\n    name: b\n";
        let objects = read(manifest).unwrap_or_default();
        let names: Vec<_> = objects.iter().map(|object| object.key.to_string()).collect();
        assert_eq!(objects.len(), 2, "{names:?}");
        assert_eq!(objects[1].object()["metadata"]["name"], "b");
        assert!(read("a: [").is_err());
    }

    #[test]
    fn an_object_is_marked_as_helm_marks_it() {
        let object = json!({"kind": "ConfigMap", "metadata": {"name": "a", "labels": null, "annotations": {"x": "y"}}});
        let expected = json!({"kind": "ConfigMap", "metadata": {"name": "a", "namespace": "shop",
            "labels": {"app.kubernetes.io/managed-by": "Helm"},
            "annotations": {"x": "y", "meta.helm.sh/release-name": "web", "meta.helm.sh/release-namespace": "shop"}}});
        assert_eq!(owned(object, "shop", &place()), expected);
    }

    #[test]
    fn what_the_server_keeps_is_no_difference() {
        let before =
            json!({"metadata": {"name": "a", "resourceVersion": "1", "generation": 1}, "spec": {"a": 1}, "status": {}});
        let mut after =
            json!({"metadata": {"name": "a", "resourceVersion": "2", "managedFields": []}, "spec": {"a": 1}});
        assert!(!differ(&before, &after));
        after["spec"]["a"] = json!(2);
        assert!(differ(&before, &after));
    }
}
