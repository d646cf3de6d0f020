//! What became of it, in Clusternet's form: the status of each object that has one. A plain function.

use std::collections::BTreeMap;

use render::UnitKey;
use render::model::Cluster;
use serde_json::{Map, Value, json};

use super::content::Contents;
use super::desired::subscription_id;
use super::kind::{Id, Kind};
use super::name;
use crate::hub::observe::{Condition, Observation, Status};

/// Characters of a reason; the whole of it is the hub's own to tell.
const REASON_CHARS_MAX: usize = 512;

/// A status, and whether all that it tells of was heard since this hub runs.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Told {
    /// Conditions have no times yet.
    pub(super) status: Value,
    pub(super) heard: bool,
}

/// Every status. `contents` gives what a pair is in, where it can be read.
pub(super) fn statuses(
    observation: &Observation<'_>,
    contents: &BTreeMap<(UnitKey, String), std::sync::Arc<Contents>>,
) -> BTreeMap<Id, Told> {
    let mut statuses = BTreeMap::new();
    let state = observation.state;
    let (Some(fleet), Some(released)) = (&state.fleet, &state.released) else {
        return statuses;
    };
    for cluster in fleet.clusters.values() {
        let id = Id::new(Kind::ManagedCluster, &cluster.namespace, cluster.name.as_str());
        statuses.insert(id, managed_cluster(observation, cluster));
    }
    for unit in fleet.units.keys() {
        statuses.insert(subscription_id(unit), told_of_none());
    }
    for (key, unit) in &released.published.units {
        let clusters: Vec<_> = unit
            .clusters
            .keys()
            .filter_map(|name| fleet.clusters.get(name))
            .collect();
        let mut ready = 0;
        for cluster in &clusters {
            let view = observation.placement(key, &cluster.name);
            let summary = view.summary.first();
            ready += usize::from(summary.is_some_and(Condition::is_true));
            let told = Told {
                status: phase(summary),
                heard: is_heard(observation, cluster),
            };
            let parts = contents.get(&(key.clone(), cluster.name.to_string()));
            for part in parts.into_iter().flat_map(|contents| &contents.parts) {
                let base = name::base(key, &cluster.name);
                let description = name::description(&base, part.deployer.as_str(), part.index);
                statuses.insert(
                    Id::new(Kind::Description, &cluster.namespace, description),
                    told.clone(),
                );
            }
        }
        let heard = clusters.iter().all(|cluster| is_heard(observation, cluster));
        let status = subscription(unit, &clusters, ready);
        statuses.insert(subscription_id(key), Told { status, heard });
    }
    statuses
}

fn is_heard(observation: &Observation<'_>, cluster: &Cluster) -> bool {
    let known = observation.state.clusters.get(&cluster.name);
    known.is_some_and(|known| known.report.is_some())
}

fn told_of_none() -> Told {
    Told {
        status: json!({"bindingClusters": [], "desiredReleases": 0, "completedReleases": 0}),
        heard: true,
    }
}

fn managed_cluster(observation: &Observation<'_>, cluster: &Cluster) -> Told {
    let view = observation.cluster(&cluster.name);
    // Of kstatus' three only `Ready` is a word of Clusternet's.
    let shown = view
        .conditions
        .iter()
        .filter(|condition| !["Reconciling", "Stalled"].contains(&condition.kind));
    let mut status = json!({"conditions": shown.map(condition).collect::<Vec<_>>()});
    if let Some(version) = &view.kubernetes_version {
        status["k8sVersion"] = json!(version);
    }
    Told {
        status,
        heard: is_heard(observation, cluster),
    }
}

fn condition(condition: &Condition) -> Value {
    json!({
        "type": condition.kind,
        "status": condition.status.as_str(),
        "reason": condition.reason,
        "message": short(&condition.message),
    })
}

fn short(text: &str) -> String {
    text.chars().take(REASON_CHARS_MAX).collect()
}

/// `Ready` as a phase of a Description.
fn phase(ready: Option<&Condition>) -> Value {
    let (phase, reason) = match ready {
        None => ("Pending", ""),
        Some(ready) => match ready.status {
            Status::True => ("Success", ready.message.as_str()),
            Status::False => ("Failure", ready.message.as_str()),
            Status::Unknown => ("Pending", ready.message.as_str()),
        },
    };
    json!({"phase": phase, "reason": short(reason)})
}

fn subscription(unit: &render::UnitPlacement, clusters: &[&Cluster], ready: usize) -> Value {
    let mut bound: Vec<_> = clusters
        .iter()
        .map(|cluster| (format!("{}/{}", cluster.namespace, cluster.name), *cluster))
        .collect();
    bound.sort_by(|a, b| a.0.cmp(&b.0));
    let mut replicas: BTreeMap<String, Vec<u64>> = BTreeMap::new();
    for (index, (_, cluster)) in bound.iter().enumerate() {
        let Some((placement, _)) = unit.entry(&cluster.name) else {
            continue;
        };
        for (key, count) in &placement.replicas {
            let counts = replicas.entry(feed_key(key)).or_default();
            // A cluster that has none of it still has its place in the list.
            counts.resize(index, 0);
            counts.push((*count).min(i32::MAX as u64));
        }
    }
    for counts in replicas.values_mut() {
        counts.resize(bound.len(), 0);
    }
    let names: Vec<_> = bound.into_iter().map(|(name, _)| name).collect();
    let mut status = json!({
        "bindingClusters": names,
        "desiredReleases": clusters.len(),
        "completedReleases": ready,
    });
    if !replicas.is_empty() {
        status["replicas"] = json!(replicas);
    }
    status
}

/// `apiVersion/Kind/namespace/name`, as Clusternet names a feed. A placement knows the group alone, whose
/// only kinds with replicas are of version v1.
fn feed_key(key: &render::ObjectKey) -> String {
    let version = if key.group.is_empty() {
        "v1".to_owned()
    } else {
        format!("{}/v1", key.group)
    };
    let parts = [version.as_str(), &key.kind, &key.namespace, &key.name];
    let parts: Vec<_> = parts.into_iter().filter(|part| !part.is_empty()).collect();
    parts.join("/")
}

/// A status with the time of each condition's last change: that of the live one while it says the same,
/// else `now`.
pub(super) fn with_times(status: &Value, live: &Value, now: &str) -> Value {
    let mut status = status.clone();
    let before = |kind: &Value, says: &Value| {
        let conditions = live["conditions"].as_array().into_iter().flatten();
        let mut same = conditions.filter(|condition| condition["type"] == *kind && condition["status"] == *says);
        same.next().map(|condition| condition["lastTransitionTime"].clone())
    };
    for condition in status["conditions"].as_array_mut().into_iter().flatten() {
        let time = before(&condition["type"], &condition["status"]);
        condition["lastTransitionTime"] = time.filter(Value::is_string).unwrap_or_else(|| json!(now));
    }
    if status["conditions"].is_null() {
        status
            .as_object_mut()
            .map(|fields: &mut Map<_, _>| fields.remove("conditions"));
    }
    status
}

#[cfg(test)]
mod tests;
