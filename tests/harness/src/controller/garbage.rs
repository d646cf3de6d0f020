//! What an object owned goes after it, or before it in the foreground.

use std::sync::Arc;

use serde_json::Value;

use crate::store::{DEFINITIONS, Key, State, Stored};
use crate::verbs::{self, Draft};

/// Looks at what a removed object leaves behind.
pub(super) fn gone(state: &mut State, shelf: &str, key: &Key) {
    // Whoever waited for it looks again: its namespace, its definition, its owners.
    again(state, "namespaces.", &Key::new("", &key.namespace));
    if shelf != DEFINITIONS {
        again(state, DEFINITIONS, &Key::new("", shelf.trim_end_matches('.')));
    }
    let mut orphans = Vec::new();
    let mut waiting = Vec::new();
    for (shelf, items) in state.shelves() {
        for (key, stored) in items {
            if !stored.owners.is_empty() && !stored.owners.iter().any(|owner| exists(state, owner)) && !stored.deleting
            {
                orphans.push((shelf.clone(), stored.clone()));
            }
            if stored.deleting && &**shelf != "namespaces." && &**shelf != DEFINITIONS {
                waiting.push((shelf.clone(), key.clone()));
            }
        }
    }
    for (shelf, stored) in orphans {
        if let Some(kind) = state.kind_of_shelf(&shelf) {
            verbs::remove(state, &kind, &stored.object());
        }
    }
    waiting.into_iter().for_each(|(shelf, key)| again(state, &shelf, &key));
}

fn again(state: &mut State, shelf: &str, key: &Key) {
    let deleting = state.find(shelf, key).is_some_and(|stored| stored.deleting);
    let shelf: Arc<str> = shelf.into();
    let known = state.unsettled.iter().any(|(other, at)| *other == shelf && at == key);
    if deleting && !known {
        state.unsettled.push_back((shelf, key.clone()));
    }
}

fn exists(state: &State, uid: &str) -> bool {
    state
        .shelves()
        .any(|(_, items)| items.values().any(|stored| stored.uid() == uid))
}

/// Does what an object waits for that goes: its dependents are removed first, or no longer its own.
pub(super) fn finalize(state: &mut State, shelf: &str, stored: &Stored) {
    let live = stored.object();
    let uid = stored.uid();
    let finalizers = live["metadata"]["finalizers"].as_array().map_or(&[][..], Vec::as_slice);
    for finalizer in finalizers {
        match finalizer.as_str() {
            Some("orphan") => {
                verbs::orphan(state, &uid);
                return release(state, shelf, &live, "orphan");
            }
            Some("foregroundDeletion") if remove_dependents(state, &uid) => {
                return release(state, shelf, &live, "foregroundDeletion");
            }
            _ => {}
        }
    }
}

/// Whether there are none left.
fn remove_dependents(state: &mut State, uid: &str) -> bool {
    let owned = |stored: &Arc<Stored>| stored.owners.iter().any(|owner| **owner == *uid);
    let mut dependents = Vec::new();
    for (shelf, items) in state.shelves() {
        let of_it = items.values().filter(|stored| owned(stored));
        dependents.extend(of_it.map(|stored| (shelf.clone(), stored.clone())));
    }
    for (shelf, dependent) in dependents.iter().filter(|(_, dependent)| !dependent.deleting) {
        if let Some(kind) = state.kind_of_shelf(shelf) {
            verbs::remove(state, &kind, &dependent.object());
        }
    }
    !state.shelves().any(|(_, items)| items.values().any(owned))
}

/// Takes a finalizer off.
fn release(state: &mut State, shelf: &str, live: &Value, finalizer: &str) {
    let Some(kind) = state.kind_of_shelf(shelf) else { return };
    let mut object = live.clone();
    if let Some(finalizers) = object["metadata"]["finalizers"].as_array_mut() {
        finalizers.retain(|held| held != finalizer);
    }
    let draft = Draft {
        kind: &kind,
        subresource: "",
    };
    verbs::write(state, &draft, live, object, "kube-controller-manager");
}
