//! Nodes that kwok plays.

use serde_json::json;

/// A list of `count` nodes that have room: 32 CPUs, 128 GiB and 110 pods each.
pub(super) fn manifest(count: usize) -> String {
    let items: Vec<_> = (0..count).map(node).collect();
    json!({"apiVersion": "v1", "kind": "List", "items": items}).to_string()
}

fn node(number: usize) -> serde_json::Value {
    let name = format!("node-{number}");
    // kwok copies none of this: a node without allocatable takes no pod.
    let room = json!({"cpu": "32", "memory": "128Gi", "pods": "110"});
    json!({
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name, "type": "kwok"}},
        "status": {"allocatable": room, "capacity": room},
    })
}
