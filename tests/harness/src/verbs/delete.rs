//! Removal: of one object, of a collection, and of what an object owned.

use serde_json::{Value, json};

use super::update::Draft;
use super::{Answer, Ask};
use crate::failure::{self, Failure};
use crate::kinds::Kind;
use crate::request::Selection;
use crate::store::{DEFINITIONS, Key, State, now};

/// The finalizer under which a definition waits for its objects.
pub(crate) const DEFINITION_FINALIZER: &str = "customresourcecleanup.apiextensions.k8s.io";

/// Namespaces that an API server always has.
const IMMORTAL: [&str; 3] = ["default", "kube-system", "kube-public"];

impl Ask<'_> {
    pub(super) fn delete(&mut self) -> Result<Answer, Failure> {
        let live = self.live()?;
        if *self.kind.kind == *"Namespace" && self.kind.group.is_empty() && IMMORTAL.contains(&&*self.place.name) {
            let name = &self.place.name;
            let message = format!("namespaces {name:?} is forbidden: this namespace may not be deleted");
            let details = failure::details(&self.kind.group, &self.kind.plural, name);
            return Err(Failure::new(403, "Forbidden", message).about(details));
        }
        let options = self.delete_options()?;
        self.hold_to(&live, &options["preconditions"])?;
        if self.dry_run()?
            || options["dryRun"]
                .as_array()
                .is_some_and(|dry| dry.contains(&json!("All")))
        {
            return Ok(Answer::ok(self.gone(&live)));
        }
        let policy = self.policy(&options)?;
        match delete(self.state, &self.kind, &live, policy) {
            Some(left) => {
                let left = self.as_version(left);
                self.shaped(200, left)
            }
            None => Ok(Answer::ok(self.gone(&live))),
        }
    }

    /// From the body, or from the query of older clients.
    fn delete_options(&self) -> Result<Value, Failure> {
        // Typed clients of Go send them in Protobuf, and Helm's say nothing in them.
        if self.call.body.is_empty() || self.call.content_type == "application/vnd.kubernetes.protobuf" {
            return Ok(json!({}));
        }
        serde_json::from_slice(&self.call.body).map_err(|error| Failure::bad_request(error.to_string()))
    }

    fn policy(&self, options: &Value) -> Result<Policy, Failure> {
        let named = options["propagationPolicy"]
            .as_str()
            .or_else(|| self.call.query.text("propagationPolicy"));
        let orphan = options["orphanDependents"].as_bool();
        match (named, orphan) {
            (Some("Orphan"), _) | (None, Some(true)) => Ok(Policy::Orphan),
            (Some("Foreground"), _) => Ok(Policy::Foreground),
            (Some("Background") | None, _) => Ok(Policy::Background),
            (Some(other), _) => Err(Failure::bad_request(format!("invalid propagationPolicy {other:?}"))),
        }
    }

    fn hold_to(&self, live: &Value, preconditions: &Value) -> Result<(), Failure> {
        let metadata = &live["metadata"];
        for (field, name, words) in [
            ("uid", "uid", "UID"),
            ("resourceVersion", "resourceVersion", "ResourceVersion"),
        ] {
            if let Some(wanted) = preconditions[field].as_str()
                && metadata[name] != wanted
            {
                let is = metadata[name].as_str().unwrap_or_default();
                let why =
                    format!("Precondition failed: {words} in precondition: {wanted}, {words} in object meta: {is}");
                return Err(Failure::conflict(
                    &self.kind.group,
                    &self.kind.plural,
                    &self.place.name,
                    &why,
                ));
            }
        }
        Ok(())
    }

    fn gone(&self, live: &Value) -> Value {
        let name = live["metadata"]["name"].as_str().unwrap_or_default();
        let mut about = failure::details(&self.kind.group, &self.kind.plural, name);
        about["uid"] = live["metadata"]["uid"].clone();
        json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": about})
    }

    pub(super) fn delete_all(&mut self) -> Result<Answer, Failure> {
        let selection = Selection::of(&self.call.query, &self.kind)?;
        let options = self.delete_options()?;
        let policy = self.policy(&options)?;
        let found = self.state.list(&self.kind.shelf, &self.place.namespace);
        let objects: Vec<_> = found
            .map(|(_, stored)| stored.object())
            .filter(|object| selection.matches(object))
            .collect();
        if !self.dry_run()? {
            for object in &objects {
                delete(self.state, &self.kind, object, policy);
            }
        }
        let objects: Vec<_> = objects.into_iter().map(|object| self.as_version(object)).collect();
        let version = self.state.version().to_string();
        Ok(Answer::ok(
            json!({"kind": format!("{}List", self.kind.kind), "apiVersion": self.kind.api_version(),
            "metadata": {"resourceVersion": version}, "items": objects}),
        ))
    }
}

/// What becomes of the objects that a removed one owns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Policy {
    /// They go after it.
    Background,
    /// They go before it.
    Foreground,
    /// They stay.
    Orphan,
}

/// Removes an object in the background of something else.
pub(crate) fn remove(state: &mut State, kind: &Kind, live: &Value) {
    delete(state, kind, live, Policy::Background);
}

/// Removes an object, or marks it as going; what is left of it comes back.
fn delete(state: &mut State, kind: &Kind, live: &Value, policy: Policy) -> Option<Value> {
    let mut object = live.clone();
    let mut finalizers: Vec<Value> = live["metadata"]["finalizers"].as_array().cloned().unwrap_or_default();
    match policy {
        Policy::Orphan => add(&mut finalizers, "orphan"),
        Policy::Foreground => add(&mut finalizers, "foregroundDeletion"),
        Policy::Background => {}
    }
    if &*kind.shelf == DEFINITIONS {
        add(&mut finalizers, DEFINITION_FINALIZER);
    }
    let held = kind.is("", "Namespace") || !finalizers.is_empty();
    if !held {
        state.remove(&kind.shelf, &Key::of(live));
        return None;
    }
    if object["metadata"].get("deletionTimestamp").is_none() {
        object["metadata"]["deletionTimestamp"] = now().into();
        object["metadata"]["deletionGracePeriodSeconds"] = 0.into();
        if super::has_generation(kind) {
            let generation = object["metadata"]["generation"].as_u64().unwrap_or(0);
            object["metadata"]["generation"] = (generation + 1).into();
        }
    }
    if kind.is("", "Namespace") {
        object["status"]["phase"] = "Terminating".into();
    } else {
        object["metadata"]["finalizers"] = finalizers.into();
    }
    if object == *live {
        return Some(object);
    }
    Some(state.put(&kind.shelf, object))
}

fn add(finalizers: &mut Vec<Value>, name: &str) {
    if !finalizers.iter().any(|finalizer| finalizer == name) {
        finalizers.push(name.into());
    }
}

/// Takes an owner off all its objects.
pub(crate) fn orphan(state: &mut State, uid: &str) {
    let mut owned = Vec::new();
    for (shelf, items) in state.shelves() {
        let of_it = items
            .values()
            .filter(|stored| stored.owners.iter().any(|owner| &**owner == uid));
        owned.extend(of_it.map(|stored| (shelf.clone(), stored.object())));
    }
    for (shelf, live) in owned {
        let Some(kind) = state.kind_of_shelf(&shelf) else {
            continue;
        };
        let mut object = live.clone();
        if let Some(owners) = object["metadata"]["ownerReferences"].as_array_mut() {
            owners.retain(|owner| owner["uid"] != uid);
        }
        if object["metadata"]["ownerReferences"]
            .as_array()
            .is_some_and(Vec::is_empty)
            && let Some(metadata) = object["metadata"].as_object_mut()
        {
            metadata.remove("ownerReferences");
        }
        let draft = Draft {
            kind: &kind,
            subresource: "",
        };
        super::write(state, &draft, &live, object, "kube-controller-manager");
    }
}
