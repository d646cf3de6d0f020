//! The file that registers a cluster.

use render::ClusterName;
use serde_json::{Map, Value, json};
use tunnel::PublicKey;

/// The file to commit as `clusters/<name>.yaml`. `mode` is a sync mode as the file spells it.
pub fn cluster_file(name: &ClusterName, key: &PublicKey, labels: &[(String, String)], mode: &str) -> String {
    let labels: Map<String, Value> = labels
        .iter()
        .map(|(key, value)| (key.clone(), Value::from(value.as_str())))
        .collect();
    let mut metadata = json!({"name": name});
    if !labels.is_empty() {
        metadata["labels"] = labels.into();
    }
    render::yaml::write(&json!({
        "apiVersion": render::model::FLEET_API_VERSION,
        "kind": "ManagedCluster",
        "metadata": metadata,
        "spec": {"publicKeys": [key.to_string()], "syncMode": mode},
    }))
}
