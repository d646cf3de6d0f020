//! Namespaces that go take their contents along.

use crate::store::{State, Stored, in_namespace};
use crate::verbs::{self, Draft};

/// Removes what is in a namespace that goes, and the namespace once it is empty.
pub(super) fn look(state: &mut State, stored: &Stored) {
    if !stored.deleting {
        return;
    }
    let live = stored.object();
    let name = live["metadata"]["name"].as_str().unwrap_or_default();
    let contents = in_namespace(state, name);
    for (shelf, key) in &contents {
        let (Some(kind), Some(object)) = (state.kind_of_shelf(shelf), state.find(shelf, key)) else {
            continue;
        };
        if !object.deleting {
            let object = object.object();
            verbs::remove(state, &kind, &object);
        }
    }
    if !in_namespace(state, name).is_empty() {
        return;
    }
    let Some(kind) = state.kind_of_shelf("namespaces.") else {
        return;
    };
    let mut object = live.clone();
    object["spec"]["finalizers"] = serde_json::json!([]);
    let draft = Draft {
        kind: &kind,
        subresource: "finalize",
    };
    verbs::write(state, &draft, &live, object, "namespace-controller");
}
