//! Kind ManagedCluster: the registered clusters.

use std::collections::BTreeSet;

use render::model::Cluster;
use serde_json::{Map, Value, json};

use super::super::object::Object;
use super::{of, or_dash, ready_cells};
use crate::hub::observe::{ClusterView, Observation};

pub(super) fn objects(observation: &Observation<'_>) -> Vec<Object> {
    let declared = observation.state.fleet.as_ref().map(|fleet| fleet.clusters.values());
    declared
        .into_iter()
        .flatten()
        .map(|cluster| object(observation, cluster))
        .collect()
}

fn object(observation: &Observation<'_>, cluster: &Cluster) -> Object {
    let view = observation.cluster(&cluster.name);
    Object {
        namespace: cluster.namespace.clone(),
        name: cluster.name.to_string(),
        labels: cluster.labels.clone(),
        made_by: BTreeSet::new(),
        created: None,
        declared_in: format!("{}:{}", cluster.file, cluster.line),
        spec: spec(cluster),
        status: status(observation, &view),
        cells: cells(cluster, &view),
        conditions: view.conditions,
    }
}

fn spec(cluster: &Cluster) -> Value {
    let mut spec =
        json!({ "syncMode": cluster.sync_mode, "taints": cluster.taints, "publicKeys": cluster.public_keys });
    if !cluster.cluster_id.is_empty() {
        spec["clusterId"] = json!(cluster.cluster_id);
    }
    if let Some(context) = &cluster.kubeconfig_context {
        spec["kubeconfigContext"] = json!(context);
    }
    spec
}

fn status(observation: &Observation<'_>, view: &ClusterView) -> Map<String, Value> {
    let mut status = Map::new();
    let mut put = |field: &str, value: Option<Value>| {
        if let Some(value) = value {
            status.insert(field.to_owned(), value);
        }
    };
    put("session", Some(json!(view.session)));
    put(
        "k8sVersion",
        view.kubernetes_version.as_ref().map(|version| json!(version)),
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
    let (all, ready) = view.units;
    put("units", Some(json!({ "total": all, "ready": ready })));
    status
}

fn cells(cluster: &Cluster, view: &ClusterView) -> Vec<Value> {
    let (ready, message) = ready_cells(&view.conditions);
    let (all, count) = view.units;
    vec![
        ready,
        json!(view.session),
        or_dash(view.kubernetes_version.clone()),
        json!(view.held_sequence.unwrap_or_default()),
        of(count, all),
        json!(cluster.sync_mode),
        or_dash(Some(cluster.cluster_id.clone())),
        message,
    ]
}
