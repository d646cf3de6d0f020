//! Kind Subscription: every unit, with how it fares over all its clusters.

use std::collections::{BTreeMap, BTreeSet};

use render::model::{Choice, Dividing, Feed, Scheduling, SchedulingPolicy, Subscriber, Subscription};
use render::{Revision, Unit, UnitKey};
use serde_json::{Map, Value, json};

use super::super::object::{Object, plain};
use super::{of, or_dash, ready_cells};
use crate::hub::observe::{Observation, UnitView, short_revision, shown_revision};

pub(super) fn objects(observation: &Observation<'_>) -> Vec<Object> {
    observation
        .units()
        .into_iter()
        .map(|unit| object(observation, unit))
        .collect()
}

fn object(observation: &Observation<'_>, key: &UnitKey) -> Object {
    let view = observation.unit(key);
    let declared = observation.state.fleet.as_ref().and_then(|fleet| fleet.units.get(key));
    let subscription = declared.map(|unit| &unit.subscription);
    let branch = &observation.state.branch;
    Object {
        namespace: key.namespace().to_owned(),
        name: key.name().to_owned(),
        labels: BTreeMap::new(),
        live: None,
        made_by: made_by(observation, key),
        created: None,
        declared_in: subscription
            .map(|declared| format!("{}:{}", declared.file, declared.line))
            .unwrap_or_default(),
        // A unit that is declared no more and is still being removed has nothing that is wanted.
        spec: subscription.map(|declared| spec(declared)).unwrap_or_else(|| json!({})),
        status: status(branch, &view, declared),
        cells: cells(branch, &view, declared),
        conditions: view.conditions,
    }
}

/// The commits that placed it where it is.
fn made_by(observation: &Observation<'_>, key: &UnitKey) -> BTreeSet<Revision> {
    let state = observation.state;
    let published = state.rendered.as_ref().or(state.released.as_ref());
    let unit = published.and_then(|commit| commit.published.units.get(key));
    let placements = unit.map(|unit| unit.clusters.values()).into_iter().flatten();
    placements.map(|placement| placement.revision.clone()).collect()
}

fn status(branch: &str, view: &UnitView, declared: Option<&Unit>) -> Map<String, Value> {
    let mut status = Map::new();
    if let Some(revision) = &view.revision {
        status.insert("revision".to_owned(), json!(shown_revision(branch, revision)));
    }
    status.insert("clusters".to_owned(), plain(view.clusters));
    status.insert("objects".to_owned(), json!(objects_of(declared)));
    if !view.worst_clusters.is_empty() {
        status.insert("worstClusters".to_owned(), plain(&view.worst_clusters));
    }
    if !view.worst.is_empty() {
        status.insert("worstObjects".to_owned(), plain(&view.worst));
    }
    status
}

fn objects_of(declared: Option<&Unit>) -> usize {
    declared.map_or(0, |unit| unit.base.objects.len())
}

fn cells(branch: &str, view: &UnitView, declared: Option<&Unit>) -> Vec<Value> {
    let (ready, message) = ready_cells(&view.conditions);
    let clusters = view.clusters;
    vec![
        ready,
        or_dash(view.revision.as_ref().map(|revision| short_revision(branch, revision))),
        of(clusters.ready, clusters.total),
        json!(clusters.pending),
        json!(clusters.failed),
        json!(clusters.offline),
        json!(objects_of(declared)),
        message,
    ]
}

/// The declaration in its own form, whichever group it was written in.
fn spec(declared: &Subscription) -> Value {
    let mut spec = match declared.scheduling {
        Scheduling::Replication => json!({ "schedulingStrategy": "Replication" }),
        Scheduling::Dividing(Dividing::Static) => {
            json!({ "schedulingStrategy": "Dividing", "dividingScheduling": { "type": "Static" } })
        }
        Scheduling::Dividing(Dividing::Dynamic(strategy)) => json!({
            "schedulingStrategy": "Dividing",
            "dividingScheduling": { "type": "Dynamic", "dynamicDividing": { "strategy": strategy } },
        }),
    };
    let placing = &declared.placing;
    if placing.policy == SchedulingPolicy::Clusternet {
        spec["schedulingPolicy"] = plain(placing.policy);
    }
    if placing.clusters != Choice::default() {
        spec["clusters"] = plain(&placing.clusters);
    }
    if placing.by_sub_group {
        spec["schedulingBySubGroup"] = json!(true);
    }
    if placing.priority != 0 {
        spec["priority"] = json!(placing.priority);
    }
    if placing.preempts {
        spec["preemptionPolicy"] = json!("PreemptLowerPriority");
    }
    if !placing.replica_paths.is_empty() {
        spec["replicaPaths"] = plain(&placing.replica_paths);
    }
    spec["subscribers"] = declared.subscribers.iter().map(subscriber).collect();
    spec["feeds"] = declared.feeds.iter().map(feed).collect();
    if let Some(mode) = declared.drift {
        spec["drift"] = json!({ "mode": mode });
    }
    if !declared.tolerations.is_empty() {
        spec["clusterTolerations"] = plain(&declared.tolerations);
    }
    spec
}

fn subscriber(declared: &Subscriber) -> Value {
    let mut subscriber = json!({ "clusterAffinity": declared.cluster_affinity });
    if let Some(weight) = declared.weight {
        subscriber["weight"] = json!(weight);
    }
    if !declared.replicas.is_default() {
        subscriber["replicas"] = plain(declared.replicas);
    }
    if let Some(group) = &declared.sub_group {
        subscriber["subGroupStrategy"] = plain(group);
    }
    subscriber
}

fn feed(declared: &Feed) -> Value {
    let whole = match declared {
        Feed::Object {
            api_version,
            kind,
            namespace,
            name,
        } => {
            json!({ "apiVersion": api_version, "kind": kind, "namespace": namespace, "name": name })
        }
        Feed::Path { path, exclude } => json!({ "path": path, "exclude": exclude }),
        Feed::Selector {
            selector,
            kind,
            api_version,
            namespace,
        } => {
            json!({ "selector": selector, "apiVersion": api_version, "kind": kind, "namespace": namespace })
        }
    };
    without_empty(whole)
}

fn without_empty(mut value: Value) -> Value {
    if let Some(fields) = value.as_object_mut() {
        fields.retain(|_, field| field.as_str() != Some("") && field.as_array().is_none_or(|items| !items.is_empty()));
    }
    value
}
