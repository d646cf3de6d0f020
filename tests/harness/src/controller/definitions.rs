//! Definitions become established, and when they go their objects go first.

use serde_json::{Value, json};

use crate::kinds::from_definition;
use crate::store::{State, Stored, now};
use crate::verbs::{self, DEFINITION_FINALIZER, Draft};

/// Establishes a definition, or clears up for one that goes.
pub(super) fn look(state: &mut State, stored: &Stored) {
    let live = stored.object();
    let Some(kind) = state.kind_of_shelf(crate::store::DEFINITIONS) else {
        return;
    };
    if stored.deleting {
        return clear(state, &live, &kind);
    }
    let mut object = live.clone();
    let conditions = &live["status"]["conditions"];
    let has = |name: &str| {
        let conditions = conditions.as_array().into_iter().flatten();
        conditions
            .filter(|condition| condition["type"] == name)
            .any(|condition| condition["status"] == "True")
    };
    if !has("Established") || !has("NamesAccepted") {
        let condition = |kind: &str, reason: &str, message: &str| json!({"type": kind, "status": "True", "lastTransitionTime": now(), "reason": reason, "message": message});
        object["status"]["conditions"] = json!([
            condition("NamesAccepted", "NoConflicts", "no conflicts found"),
            condition(
                "Established",
                "InitialNamesAccepted",
                "the initial names have been accepted"
            )
        ]);
    }
    object["status"]["acceptedNames"] = live["spec"]["names"].clone();
    let versions = live["spec"]["versions"].as_array().into_iter().flatten();
    let stored_version: Vec<_> = versions
        .filter(|version| version["storage"] == true)
        .map(|version| version["name"].clone())
        .collect();
    object["status"]["storedVersions"] = stored_version.into();
    let draft = Draft {
        kind: &kind,
        subresource: "status",
    };
    verbs::write(state, &draft, &live, object, "kube-apiserver");
}

fn clear(state: &mut State, live: &Value, kind: &crate::kinds::Kind) {
    let Some(custom) = from_definition(live).into_iter().next() else {
        return;
    };
    let objects: Vec<_> = state
        .list(&custom.shelf, "")
        .map(|(_, stored)| stored.clone())
        .collect();
    for stored in objects.iter().filter(|stored| !stored.deleting) {
        verbs::remove(state, &custom, &stored.object());
    }
    if state.list(&custom.shelf, "").next().is_some() {
        return;
    }
    let mut object = live.clone();
    if let Some(finalizers) = object["metadata"]["finalizers"].as_array_mut() {
        finalizers.retain(|finalizer| finalizer != DEFINITION_FINALIZER);
    }
    let draft = Draft { kind, subresource: "" };
    verbs::write(state, &draft, live, object, "kube-apiserver");
}
