//! The file that registers a cluster.

use render::ClusterName;
use render::registration::Request;
use serde_json::{Map, Value, json};
use tunnel::PublicKey;

/// The file to commit as `clusters/<name>.yaml`. `mode` is a sync mode as the file spells it.
pub fn cluster_file(name: &ClusterName, key: &PublicKey, labels: &[(String, String)], mode: &str) -> String {
    requested_cluster_file(name, key, labels, mode, None)
}

/// The same, with what Clusternet's request gave beside it, where there is one.
pub(crate) fn requested_cluster_file(
    name: &ClusterName,
    key: &PublicKey,
    labels: &[(String, String)],
    mode: &str,
    request: Option<&Request>,
) -> String {
    let requested = request.into_iter().flat_map(|request| request.labels.clone());
    // What is given beside a request counts before it.
    let labels: Map<String, Value> = requested
        .chain(labels.iter().cloned())
        .map(|(key, value)| (key, Value::from(value)))
        .collect();
    let mut metadata = json!({"name": name});
    if !labels.is_empty() {
        metadata["labels"] = labels.into();
    }
    let mut spec = json!({"publicKeys": [key.to_string()], "syncMode": mode});
    if let Some(request) = request {
        if !request.namespace.is_empty() {
            metadata["namespace"] = json!(request.namespace);
        }
        for (field, text) in [
            ("clusterId", &request.cluster_id),
            ("clusterType", &request.cluster_type),
        ] {
            if !text.is_empty() {
                spec[field] = json!(text);
            }
        }
    }
    render::yaml::write(&json!({
        "apiVersion": render::model::FLEET_API_VERSION,
        "kind": "ManagedCluster",
        "metadata": metadata,
        "spec": spec,
    }))
}

#[cfg(test)]
mod tests {
    use render::load::load;
    use render::model::SyncMode;
    use render::{Previous, SourceTree};

    use super::*;

    #[test]
    fn a_request_becomes_a_clusters_file_that_loads_as_it_was_meant() {
        let document = json!({
            "spec": {
                "clusterId": "dc91021d", "clusterType": "EdgeCluster", "clusterName": "paris", "clusterNamespace": "france",
                "clusterLabels": { "env": "prod", "zone": "north" },
            },
        });
        let request = Request::read(document.as_object().expect("it is an object"));
        let (name, key) = (
            request.name.clone().expect("it has a name"),
            PublicKey::from_bytes([7; 32]),
        );
        let labels = [("env".to_owned(), "test".to_owned())];
        let text = requested_cluster_file(&name, &key, &labels, "Pull", Some(&request));
        let revision = "1".repeat(40).parse().expect("forty hex digits");
        let tree = SourceTree::from_files(revision, [("clusters/paris.yaml".to_owned(), text.into_bytes())]);
        let (fleet, findings) = load(&tree, &Previous::default());
        assert_eq!(findings, []);
        let cluster = &fleet.clusters[&name];
        assert_eq!(
            (cluster.namespace.as_str(), cluster.sync_mode),
            ("france", SyncMode::Pull)
        );
        assert_eq!(
            (cluster.cluster_id.as_str(), cluster.cluster_type.as_str()),
            ("dc91021d", "EdgeCluster")
        );
        assert_eq!(cluster.labels["env"], "test", "a flag counts before the request");
        assert_eq!(cluster.labels["zone"], "north");
        assert_eq!(cluster.public_keys, [key.to_string()]);
    }
}
