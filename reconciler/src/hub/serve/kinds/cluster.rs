//! Kind ManagedCluster: the registered clusters.

use std::collections::BTreeSet;

use render::ClusterName;
use render::cordon::is_cordoned;
use render::model::{Cluster, SyncMode};
use render::published::Departure;
use render::rekey::KeyChange;
use serde_json::{Map, Value, json};
use tunnel::PublicKey;

use super::super::live::{KeySince, Live};
use super::super::object::{Object, plain};
use super::{of, or_dash, ready_cells};
use crate::hub::knocks::Why;
use crate::hub::observe::{CALLERS, ClusterView, Condition, Observation, Session};

pub(super) fn objects(observation: &Observation<'_>) -> Vec<Object> {
    let declared = observation.state.fleet.as_ref().map(|fleet| fleet.clusters.values());
    let declared = declared.into_iter().flatten();
    let departures = observation.state.departures();
    let departed = departures
        .iter()
        .map(|(name, departure)| leaving(observation, name, departure));
    let changes = observation.state.key_changes();
    declared
        .map(|cluster| object(observation, cluster, changes.get(&cluster.name)))
        .chain(departed)
        .collect()
}

/// A cluster whose file is gone, until it is cleaned up or forgotten.
fn leaving(observation: &Observation<'_>, name: &ClusterName, departure: &Departure) -> Object {
    let declared = observation.state.fleet.as_ref().map(|fleet| fleet.clusters.values());
    let renamed = declared.and_then(|declared| renamed_to(departure, declared));
    let session = match (observation.session(name), &renamed) {
        // Whether an agent of that name was ever heard says nothing of the cluster, which has another one.
        (Session::Disconnected | Session::NeverSeen, Some(_)) => RENAMED,
        (session, _) => session.as_str(),
    };
    let left = observation.objects_left(name);
    let there = match left {
        Some(0) => "nothing of it is left there".to_owned(),
        Some(count) => format!("{count} objects are left there"),
        None => format!("what it has of {} units {}", departure.units.len(), departure.outcome()),
    };
    let since = render::time::rfc3339(departure.since);
    let message = match &renamed {
        Some(other) => format!(
            "registered no more since {since}: its key is cluster {other}'s now, so it was renamed, and its agent is started with \
             --cluster {other}; of the old name {there}, until `flotilla forget {name}`"
        ),
        None => format!("registered no more since {since}: {there}"),
    };
    let condition = Condition::unknown("Ready", "Leaving", message.clone());
    Object {
        namespace: name.to_string(),
        name: name.to_string(),
        labels: Default::default(),
        made_by: BTreeSet::new(),
        created: None,
        declared_in: String::new(),
        spec: json!({ "deletionPolicy": departure.deletion_policy, "publicKeys": departure.public_keys }),
        status: [
            ("session".to_owned(), json!(session)),
            (
                "units".to_owned(),
                json!({ "total": departure.units.len(), "ready": 0 }),
            ),
        ]
        .into_iter()
        .chain(renamed.map(|other| ("renamedTo".to_owned(), json!(other))))
        .collect(),
        cells: vec![
            json!("Leaving"),
            json!(session),
            Value::Null,
            or_dash(None),
            json!(0),
            of(0, departure.units.len()),
            Value::Null,
            Value::Null,
            Value::Null,
            json!("-"),
            or_dash(None),
            json!(message),
        ],
        conditions: vec![condition],
        live: Some(live(&observation.cluster(name), name, ("", &[]))),
    }
}

/// The session of a name that a cluster had before.
const RENAMED: &str = "Renamed";

/// The registered cluster that has a key of one whose file is gone: nothing else tells one that was renamed from two.
fn renamed_to<'a>(departure: &Departure, mut declared: impl Iterator<Item = &'a Cluster>) -> Option<&'a ClusterName> {
    let has_its_key = |cluster: &&Cluster| {
        let mut keys = cluster.public_keys.iter();
        keys.any(|key| departure.public_keys.contains(key))
    };
    Some(&declared.find(has_its_key)?.name)
}

fn object(observation: &Observation<'_>, cluster: &Cluster, change: Option<&KeyChange>) -> Object {
    let view = observation.cluster(&cluster.name);
    Object {
        namespace: cluster.namespace.clone(),
        name: cluster.name.to_string(),
        labels: cluster.labels.clone(),
        made_by: BTreeSet::new(),
        created: None,
        declared_in: format!("{}:{}", cluster.file, cluster.line),
        spec: spec(cluster),
        status: status(observation, cluster, &view, change),
        cells: cells(cluster, &view),
        live: Some(live(&view, &cluster.name, (&cluster.file, &cluster.public_keys))),
        conditions: view.conditions,
    }
}

fn live(view: &ClusterView, name: &ClusterName, (file, keys): (&str, &[String])) -> Live {
    let agent = view.facts.as_ref().map(|facts| facts.agent_version.clone());
    let key = |key: &String| KeySince {
        key: key.clone(),
        since: None,
    };
    Live {
        cluster: name.clone(),
        away_since: view.away_since,
        agent: agent.unwrap_or_default(),
        file: file.to_owned(),
        keys: keys.iter().map(key).collect(),
    }
}

fn spec(cluster: &Cluster) -> Value {
    let mut spec =
        json!({ "syncMode": cluster.sync_mode, "taints": cluster.taints, "publicKeys": cluster.public_keys });
    if let Some(mode) = cluster.drift {
        spec["drift"] = json!({ "mode": mode });
    }
    if !cluster.cluster_type.is_empty() {
        spec["clusterType"] = json!(cluster.cluster_type);
    }
    if !cluster.cluster_id.is_empty() {
        spec["clusterId"] = json!(cluster.cluster_id);
    }
    if let Some(context) = &cluster.kubeconfig_context {
        spec["kubeconfigContext"] = json!(context);
    }
    spec
}

fn status(
    observation: &Observation<'_>,
    cluster: &Cluster,
    view: &ClusterView,
    change: Option<&KeyChange>,
) -> Map<String, Value> {
    let mut status = Map::new();
    let mut put = |field: &str, value: Option<Value>| {
        if let Some(value) = value {
            status.insert(field.to_owned(), value);
        }
    };
    put("session", Some(json!(view.session)));
    put("awaySince", view.away_since.map(|at| json!(render::time::rfc3339(at))));
    put(
        "k8sVersion",
        view.kubernetes_version.as_ref().map(|version| json!(version)),
    );
    // In Clusternet's words.
    if let Some(Value::Object(facts)) = view.facts.as_ref().map(plain) {
        for (field, value) in facts {
            let (field, value) = worded(&field, value);
            put(field, Some(value));
        }
    }
    put("nodeStatistics", node_statistics(view));
    let allocatable = view.nodes.as_ref().map(|(_, allocatable)| allocatable.quantities());
    put("allocatable", allocatable.map(|quantities| json!(quantities)));
    let capacity = view.node_facts.as_ref().map(|nodes| nodes.capacity.quantities());
    put("capacity", capacity.map(|quantities| json!(quantities)));
    put("appPusher", Some(json!(cluster.sync_mode == SyncMode::Push)));
    put("useSocket", Some(json!(is_asked_by_tunnel(cluster))));
    put(
        "lastObservedTime",
        view.observed_at.map(|at| json!(render::time::rfc3339(at))),
    );
    put("heldSequence", view.held_sequence.map(|sequence| json!(sequence)));
    put(
        "releasedSequence",
        observation.sequence().map(|sequence| json!(sequence)),
    );
    let refused = view.refused.as_ref();
    put(
        "refused",
        refused.map(|(sequence, message)| json!({ "sequence": sequence, "message": message })),
    );
    put(
        "keyChange",
        change.map(|change| super::fleet::key_change(observation, &cluster.name, change)),
    );
    put("hubKeys", hub_keys(view));
    let (all, ready) = view.units;
    put("units", Some(json!({ "total": all, "ready": ready })));
    status
}

/// The keys of hubs that its agent believes, from agents that say since when.
fn hub_keys(view: &ClusterView) -> Option<Value> {
    let known = &view.hub_keys_known;
    let one = |(key, since): (PublicKey, i64)| json!({ "key": key.to_string(), "known": render::time::rfc3339(since) });
    (!known.is_empty()).then(|| known.iter().map(one).collect())
}

/// Nodes by how they fare, from agents that say it, and how many of them count.
fn node_statistics(view: &ClusterView) -> Option<Value> {
    let counting = view.nodes.as_ref().map(|(count, _)| *count);
    let mut statistics = match &view.node_facts {
        Some(nodes) => plain(nodes.statistics),
        None => json!({}),
    };
    if let Some(count) = counting {
        statistics["nodes"] = json!(count);
    }
    (counting.is_some() || view.node_facts.is_some()).then_some(statistics)
}

/// Whether the hub asks its API server through a tunnel.
fn is_asked_by_tunnel(cluster: &Cluster) -> bool {
    !cluster.public_keys.is_empty() && cluster.kubeconfig_context.is_none() && cluster.sync_mode != SyncMode::Pull
}

/// That the cluster's identity is in two hands, or taken from it. Anybody may ask with a key of their own, so that this
/// alone is no matter for a first look.
fn contested(conditions: &[Condition]) -> Option<&str> {
    let others = conditions.iter().find(|condition| condition.kind == CALLERS)?;
    let contested = [Why::DuplicateAgent.as_str(), Why::Denied.as_str()];
    contested.into_iter().find(|reason| *reason == others.reason)
}

fn cells(cluster: &Cluster, view: &ClusterView) -> Vec<Value> {
    let (ready, message) = ready_cells(&view.conditions);
    let (all, count) = view.units;
    let words = ready.as_str().into_iter();
    // In kubectl's word for a node.
    let words = words.chain(is_cordoned(cluster).then_some("SchedulingDisabled"));
    let words: Vec<_> = words.chain(contested(&view.conditions)).collect();
    let ready = json!(words.join(","));
    vec![
        ready,
        json!(view.session),
        Value::Null,
        or_dash(view.kubernetes_version.clone()),
        json!(view.held_sequence.unwrap_or_default()),
        of(count, all),
        Value::Null,
        Value::Null,
        Value::Null,
        json!(cluster.sync_mode),
        or_dash(Some(cluster.cluster_id.clone())),
        message,
    ]
}

/// A fact as Clusternet has it: of addresses one text, as the control plane's flags have it, and those of pods are the cluster's.
fn worded(field: &str, value: Value) -> (&str, Value) {
    let field = if field == "podCIDR" { "clusterCIDR" } else { field };
    let value = match value {
        Value::Array(ranges) => {
            let ranges: Vec<_> = ranges.iter().filter_map(Value::as_str).collect();
            json!(ranges.join(","))
        }
        value => value,
    };
    (field, value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_of_addresses_are_called_as_clusternet_calls_them() {
        let both = json!(["10.244.0.0/16", "fd00:10:244::/56"]);
        let one = json!("10.244.0.0/16,fd00:10:244::/56");
        assert_eq!(worded("podCIDR", both), ("clusterCIDR", one));
        let services = worded("serviceCIDR", json!(["10.96.0.0/12"]));
        assert_eq!(services, ("serviceCIDR", json!("10.96.0.0/12")));
        assert_eq!(worded("healthz", json!(true)), ("healthz", json!(true)));
    }
}
