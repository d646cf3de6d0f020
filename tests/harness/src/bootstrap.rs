//! What a new cluster has before anybody wrote to it.

use serde_json::{Value, json};

use crate::cluster::Options;
use crate::store::{State, now};

/// Namespaces that every cluster has.
const NAMESPACES: [&str; 4] = ["default", "kube-node-lease", "kube-public", "kube-system"];

/// Fills a new cluster.
pub(crate) fn fill(state: &mut State, options: &Options) {
    for name in NAMESPACES {
        let namespace = json!({"apiVersion": "v1", "kind": "Namespace",
            "metadata": {"name": name, "labels": {"kubernetes.io/metadata.name": name}},
            "spec": {"finalizers": ["kubernetes"]}, "status": {"phase": "Active"}});
        add(state, "namespaces.", namespace);
    }
    for number in 1..=options.nodes {
        add(state, "nodes.", node(&format!("node-{number}"), &options.version));
    }
}

fn add(state: &mut State, shelf: &str, mut object: Value) {
    object["metadata"]["uid"] = state.new_uid().into();
    object["metadata"]["creationTimestamp"] = now().into();
    state.put(&shelf.into(), object);
}

fn node(name: &str, version: &str) -> Value {
    let resources = json!({"cpu": "8", "memory": "32Gi", "pods": "110", "ephemeral-storage": "100Gi"});
    json!({"apiVersion": "v1", "kind": "Node",
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name, "kubernetes.io/os": "linux",
            "kubernetes.io/arch": "amd64"}},
        "spec": {}, "status": {"capacity": resources, "allocatable": resources,
            "nodeInfo": {"kubeletVersion": version, "operatingSystem": "linux", "architecture": "amd64"},
            "addresses": [{"type": "Hostname", "address": name}],
            "conditions": [{"type": "Ready", "status": "True", "reason": "KubeletReady", "message": "simulated",
                "lastHeartbeatTime": now(), "lastTransitionTime": now()}]}})
}
