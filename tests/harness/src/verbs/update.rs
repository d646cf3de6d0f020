//! Replacement of an object, and what every write of an existing one goes through.

use serde_json::Value;

use super::{Answer, Ask, rules};
use crate::failure::Failure;
use crate::fields::{self, ApplyOptions, Manager, Operation};
use crate::kinds::Kind;
use crate::store::{Key, State, now};

/// What a write is about.
pub(crate) struct Draft<'a> {
    pub kind: &'a Kind,
    pub subresource: &'a str,
}

impl Draft<'_> {
    /// The object with the parts that this write may not touch as they are in `live`.
    pub(super) fn confine(&self, live: &Value, mut object: Value) -> Value {
        if self.subresource == "status" {
            let mut confined = live.clone();
            put(&mut confined, "status", object.get("status").cloned());
            if let Some(managed) = object["metadata"].get_mut("managedFields") {
                confined["metadata"]["managedFields"] = managed.take();
            }
            return confined;
        }
        if self.kind.has_subresource("status") {
            put(&mut object, "status", live.get("status").cloned());
        }
        if self.kind.is("", "Namespace") && self.subresource != "finalize" {
            put(&mut object, "spec", live.get("spec").cloned());
        }
        for name in [
            "uid",
            "creationTimestamp",
            "generation",
            "deletionTimestamp",
            "deletionGracePeriodSeconds",
        ] {
            let kept = live["metadata"].get(name).cloned();
            put(&mut object["metadata"], name, kept);
        }
        object
    }

    pub(super) fn ignored(&self) -> Vec<fields::Path> {
        fields::ignored(self.subresource, self.kind.has_subresource("status"))
    }
}

fn put(object: &mut Value, name: &str, value: Option<Value>) {
    if let Some(map) = object.as_object_mut() {
        match value {
            Some(value) => map.insert(name.to_owned(), value),
            None => map.remove(name),
        };
    }
}

impl Ask<'_> {
    pub(super) fn update(&mut self) -> Result<Answer, Failure> {
        let mut object = self.body()?;
        self.place_object(&mut object)?;
        let live = self.live()?;
        self.preconditions(&live, &object)?;
        self.check(&mut object)?;
        let written = self.replace(&live, object)?;
        self.shaped(200, written)
    }

    /// Refuses a write that names another version or another object.
    pub(super) fn preconditions(&self, live: &Value, object: &Value) -> Result<(), Failure> {
        let says = |name: &str| object["metadata"][name].as_str().filter(|text| !text.is_empty());
        let (group, plural, name) = (&self.kind.group, &self.kind.plural, &self.place.name);
        if let Some(uid) = says("uid")
            && live["metadata"]["uid"] != uid
        {
            let why = format!(
                "Precondition failed: UID in precondition: {uid}, UID in object meta: {}",
                live["metadata"]["uid"].as_str().unwrap_or_default()
            );
            return Err(Failure::conflict(group, plural, name, &why));
        }
        if let Some(version) = says("resourceVersion")
            && live["metadata"]["resourceVersion"] != version
        {
            return Err(Failure::modified(group, plural, name));
        }
        Ok(())
    }

    /// Writes the new state of an object; its owners follow from what changed.
    pub(super) fn replace(&mut self, live: &Value, object: Value) -> Result<Value, Failure> {
        let draft = self.draft();
        let mut object = draft.confine(live, object);
        let options = ApplyOptions {
            force: true,
            now: &now(),
            ignored: &draft.ignored(),
        };
        let manager = self.manager(Operation::Update);
        fields::update(live, &object, &self.kind.shape, &manager, &options).write(&mut object);
        self.keep(live, object)
    }

    /// Keeps a written object, unless nothing changed or nothing is to be kept.
    pub(super) fn keep(&mut self, live: &Value, mut object: Value) -> Result<Value, Failure> {
        let changed = rules::changed_immutables(&self.kind, live, &object);
        if !changed.is_empty() {
            return Err(Failure::invalid(
                &self.kind.group,
                &self.kind.kind,
                &self.place.name,
                &changed,
            ));
        }
        if !differs(live, &object) {
            return Ok(live.clone());
        }
        count(&self.kind, live, &mut object);
        if self.dry_run()? {
            object["metadata"]["resourceVersion"] = live["metadata"]["resourceVersion"].clone();
            return Ok(object);
        }
        Ok(store(self.state, &self.kind, object))
    }
}

/// Writes an object from inside: controllers do. Nothing is written that changes nothing.
pub(crate) fn write(state: &mut State, draft: &Draft<'_>, live: &Value, object: Value, manager: &str) {
    let mut object = draft.confine(live, object);
    let options = ApplyOptions {
        force: true,
        now: &now(),
        ignored: &draft.ignored(),
    };
    let manager = Manager {
        operation: Operation::Update,
        subresource: draft.subresource.into(),
        name: manager.into(),
        api_version: draft.kind.api_version().into(),
    };
    fields::update(live, &object, &draft.kind.shape, &manager, &options).write(&mut object);
    if differs(live, &object) {
        count(draft.kind, live, &mut object);
        store(state, draft.kind, object);
    }
}

/// Whether a write changes anything: times of managed fields alone do not count.
fn differs(live: &Value, object: &Value) -> bool {
    let plain = |object: &Value| {
        let mut plain = object.clone();
        if let Some(metadata) = plain["metadata"].as_object_mut() {
            metadata.remove("resourceVersion");
            let entries = metadata.get_mut("managedFields").and_then(Value::as_array_mut);
            for entry in entries.into_iter().flatten() {
                if let Some(entry) = entry.as_object_mut() {
                    entry.remove("time");
                }
            }
        }
        plain
    };
    plain(live) != plain(object)
}

/// Counts a generation when more than metadata and status changed.
fn count(kind: &Kind, live: &Value, object: &mut Value) {
    if !rules::has_generation(kind) {
        return;
    }
    let rest = |object: &Value| {
        let mut rest = object.clone();
        if let Some(map) = rest.as_object_mut() {
            map.remove("metadata");
            if kind.has_subresource("status") {
                map.remove("status");
            }
        }
        rest
    };
    if rest(live) != rest(object) {
        let generation = live["metadata"]["generation"].as_u64().unwrap_or(0);
        object["metadata"]["generation"] = (generation + 1).into();
    }
}

/// Puts an object back, or removes it if it was only held by finalizers that are gone now.
fn store(state: &mut State, kind: &Kind, object: Value) -> Value {
    let finalizers = object["metadata"]["finalizers"]
        .as_array()
        .is_some_and(|finalizers| !finalizers.is_empty());
    let held = kind.is("", "Namespace")
        && object["spec"]["finalizers"]
            .as_array()
            .is_some_and(|finalizers| !finalizers.is_empty());
    if object["metadata"].get("deletionTimestamp").is_some() && !finalizers && !held {
        let key = Key::of(&object);
        state.put(&kind.shelf, object.clone());
        return state.remove(&kind.shelf, &key).unwrap_or(object);
    }
    state.put(&kind.shelf, object)
}
