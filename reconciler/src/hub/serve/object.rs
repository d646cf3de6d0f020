//! An object as it is served, without what only the shelf knows: versions and generations.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use render::{Digest, Revision};
use serde_json::{Value, json};

use super::live::Live;
use super::resource::{GROUP, Resource, VERSION};
use crate::hub::observe::Condition;
use crate::hub::source::Sought;

/// Where an object was declared, as an annotation: the file to edit.
pub(super) const DECLARED_IN: &str = "fleet.flotilla.dev/declared-in";

/// The unit of a placement or description, as a label.
pub(super) const SUBSCRIPTION_LABEL: &str = "fleet.flotilla.dev/subscription";

/// An object as it is served.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Object {
    /// Empty for kinds without namespaces.
    pub(super) namespace: String,
    pub(super) name: String,
    pub(super) labels: BTreeMap<String, String>,
    /// `path:line`; empty where no file declares it.
    pub(super) declared_in: String,
    /// What is wanted; a change counts as a new generation.
    pub(super) spec: Value,
    /// What is so, without `conditions` and `observedGeneration`; an object.
    pub(super) status: serde_json::Map<String, Value>,
    pub(super) conditions: Vec<Condition>,
    /// The commits that made it; the oldest one's time is its creation time.
    pub(super) made_by: BTreeSet<Revision>,
    /// Its creation time in seconds since 1970, where Git knows it.
    pub(super) created: Option<i64>,
    /// As [`Resource::columns`] has them; `null` where `live` fills them.
    pub(super) cells: Vec<Value>,
    /// What cells of the moment are made from.
    pub(super) live: Option<Live>,
}

impl Object {
    /// Takes over when its keys came to its file.
    pub(super) fn date_keys(&mut self, found: &BTreeMap<Sought, i64>) {
        let Some(live) = &mut self.live else { return };
        live.date_keys(found);
        self.status.insert("keys".to_owned(), live.keys_value());
    }

    /// Metadata, with the version and generation it has on its shelf.
    pub(super) fn metadata(&self, resource: Resource, version: u64, generation: u64) -> Value {
        let mut metadata = json!({
            "name": self.name,
            "uid": self.uid(resource),
            "resourceVersion": version.to_string(),
            "generation": generation,
        });
        if let Some(created) = self.created.and_then(|seconds| Timestamp::from_second(seconds).ok()) {
            metadata["creationTimestamp"] = json!(created.to_string());
        }
        if !self.namespace.is_empty() {
            metadata["namespace"] = json!(self.namespace);
        }
        if !self.labels.is_empty() {
            metadata["labels"] = json!(self.labels);
        }
        if !self.declared_in.is_empty() {
            metadata["annotations"] = json!({ DECLARED_IN: self.declared_in });
        }
        metadata
    }

    /// The whole object.
    pub(super) fn whole(&self, resource: Resource, version: u64, generation: u64) -> Value {
        let mut status = self.status.clone();
        if !self.conditions.is_empty() {
            status.insert("observedGeneration".to_owned(), json!(generation));
            let conditions = self
                .conditions
                .iter()
                .map(|condition| observed(condition, generation))
                .collect();
            status.insert("conditions".to_owned(), Value::Array(conditions));
        }
        let mut whole = json!({
            "apiVersion": format!("{GROUP}/{VERSION}"),
            "kind": resource.names().kind,
            "metadata": self.metadata(resource, version, generation),
            "spec": self.spec,
        });
        if !status.is_empty() {
            whole["status"] = Value::Object(status);
        }
        whole
    }

    /// The same for the same name, whichever hub answers: there is nothing else to make it from.
    fn uid(&self, resource: Resource) -> String {
        let named = format!("{}/{}/{}", resource.names().plural, self.namespace, self.name);
        Digest::of_bytes(named.as_bytes()).uuid()
    }
}

fn observed(condition: &Condition, generation: u64) -> Value {
    json!({
        "type": condition.kind,
        "status": condition.status.as_str(),
        "reason": condition.reason,
        "message": condition.message,
        "observedGeneration": generation,
    })
}

/// A value that is written as it is; our own types have no map keys but text.
pub(super) fn plain(value: impl serde::Serialize) -> Value {
    serde_json::to_value(value).unwrap_or_default()
}
