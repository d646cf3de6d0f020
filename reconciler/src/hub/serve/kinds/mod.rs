//! The objects of each kind, from one look at the hub's state.
//!
//! In: an [`Observation`]. Out: [`Object`]s in no particular order. Contents of descriptions are
//! deliberately not among them: no value of a Secret leaves its envelope.

mod cluster;
mod description;
mod finding;
mod fleet;
mod placement;
mod subscription;
mod suspension;

use serde_json::{Value, json};

use super::object::Object;
use super::resource::Resource;
use crate::hub::observe::{Condition, Observation};

/// Every object of a kind.
pub(super) fn objects(resource: Resource, observation: &Observation<'_>) -> Vec<Object> {
    match resource {
        Resource::Fleets => vec![fleet::object(observation)],
        Resource::ManagedClusters => cluster::objects(observation),
        Resource::Subscriptions => subscription::objects(observation),
        Resource::Placements => placement::objects(observation),
        Resource::Descriptions => description::objects(observation),
        Resource::Findings => finding::objects(observation),
        Resource::Suspensions => suspension::objects(observation),
    }
}

/// `READY` and `MESSAGE` of conditions that begin with `Ready`.
fn ready_cells(conditions: &[Condition]) -> (Value, Value) {
    match conditions.first() {
        Some(ready) => (json!(ready.status.as_str()), json!(ready.message)),
        None => (json!("Unknown"), json!("")),
    }
}

/// `part/all`.
fn of(part: usize, all: usize) -> Value {
    json!(format!("{part}/{all}"))
}

/// An empty cell is a dash, so that columns can be cut by blanks.
fn or_dash(text: Option<String>) -> Value {
    json!(text.filter(|text| !text.is_empty()).unwrap_or_else(|| "-".to_owned()))
}
