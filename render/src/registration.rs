//! Clusternet's ClusterRegistrationRequest: what of one becomes a cluster's file here.
//!
//! In: such a request, as somebody wrote it or as Clusternet's API server has it. Out: the fields of a cluster that it gives,
//! and which of its own have no place. Who may connect is deliberately not here: a request names no key, so that it registers
//! nobody by itself.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use crate::ClusterName;
use crate::load::MODES;
use crate::model::{CLUSTERNET_CLUSTERS_API_VERSION, SyncMode};
use crate::name::{wrong_label_key, wrong_label_value};

/// Its kind.
pub const REQUEST_KIND: &str = "ClusterRegistrationRequest";

/// What a request gives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// `spec.clusterName`, where it is a name that a cluster can have here.
    pub name: Option<ClusterName>,
    /// `spec.clusterNamespace`; may be empty.
    pub namespace: String,
    /// Those of `spec.clusterLabels` that are labels.
    pub labels: BTreeMap<String, String>,
    /// `spec.clusterId`; may be empty.
    pub cluster_id: String,
    /// `spec.clusterType`; may be empty.
    pub cluster_type: String,
    /// `spec.syncMode`; Pull where nothing is written, as in Clusternet.
    pub sync_mode: SyncMode,
    /// Its fields that a cluster's file takes, and as what: sorted, may be empty.
    pub used: Vec<String>,
    /// Its other fields, and what is wrong with them where they should have a place: sorted, may be empty.
    pub unused: Vec<String>,
}

/// Whether a document is a request.
pub fn is_request(document: &Value) -> bool {
    document["apiVersion"] == CLUSTERNET_CLUSTERS_API_VERSION && document["kind"] == REQUEST_KIND
}

impl Request {
    /// Reads a request; whatever cannot be read is among what is not used.
    pub fn read(document: &Map<String, Value>) -> Self {
        let mut request = Self {
            name: None,
            namespace: String::new(),
            labels: BTreeMap::new(),
            cluster_id: String::new(),
            cluster_type: String::new(),
            sync_mode: SyncMode::Pull,
            used: Vec::new(),
            unused: Vec::new(),
        };
        for (field, value) in document {
            match (field.as_str(), value) {
                ("apiVersion" | "kind", _) => {}
                ("spec", Value::Object(spec)) => request.take_spec(spec),
                // The name of a request is made from the cluster's id.
                ("metadata" | "spec" | "status", _) => request.unused.push(field.clone()),
                _ => request.unused.push(format!("{field} (not known)")),
            }
        }
        request.used.sort();
        request.unused.sort();
        request
    }

    fn take_spec(&mut self, spec: &Map<String, Value>) {
        for (field, value) in spec {
            let taken = match (field.as_str(), value) {
                (_, Value::Null) => continue,
                ("clusterName", Value::String(name)) => match ClusterName::parse(name.as_str()) {
                    Ok(name) => {
                        self.name = Some(name);
                        Ok("metadata.name")
                    }
                    Err(error) => Err(error.to_string()),
                },
                ("clusterNamespace", Value::String(namespace)) => {
                    self.namespace.clone_from(namespace);
                    Ok("metadata.namespace")
                }
                ("clusterId", Value::String(id)) => {
                    self.cluster_id.clone_from(id);
                    Ok("spec.clusterId")
                }
                ("clusterType", Value::String(kind)) => {
                    self.cluster_type.clone_from(kind);
                    Ok("spec.clusterType")
                }
                ("syncMode", Value::String(mode)) => match sync_mode(mode) {
                    Some(mode) => {
                        self.sync_mode = mode;
                        Ok("spec.syncMode")
                    }
                    None => Err("it is Dual, Pull or Push".to_owned()),
                },
                ("clusterLabels", Value::Object(labels)) => {
                    self.take_labels(labels);
                    Ok("metadata.labels")
                }
                _ => Err("not known".to_owned()),
            };
            match taken {
                Ok(place) => self.used.push(format!("spec.{field} as {place}")),
                Err(why) => self.unused.push(format!("spec.{field} ({why})")),
            }
        }
    }

    fn take_labels(&mut self, labels: &Map<String, Value>) {
        for (key, value) in labels {
            let wrong = match value.as_str() {
                Some(value) => wrong_label_key(key).or_else(|| wrong_label_value(value)),
                None => Some("a label's value is text"),
            };
            match (wrong, value.as_str()) {
                (None, Some(value)) => drop(self.labels.insert(key.clone(), value.to_owned())),
                (wrong, _) => {
                    let why = wrong.unwrap_or_default();
                    self.unused.push(format!("spec.clusterLabels[{key:?}] ({why})"));
                }
            }
        }
    }
}

fn sync_mode(text: &str) -> Option<SyncMode> {
    let named = MODES.iter().find(|(name, _)| *name == text);
    named.map(|(_, mode)| *mode)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(spec: Value) -> Request {
        let document = json!({
            "apiVersion": "clusters.clusternet.io/v1beta1",
            "kind": "ClusterRegistrationRequest",
            "metadata": { "name": "clusternet-dc91021d" },
            "spec": spec,
            "status": { "result": "Approved", "token": "a token" },
        });
        assert!(is_request(&document));
        Request::read(document.as_object().expect("it is an object"))
    }

    #[test]
    fn a_registration_request_gives_what_a_clusters_file_has_and_says_what_it_leaves() {
        let request = read(json!({
            "clusterId": "dc91021d", "clusterType": "EdgeCluster", "clusterName": "paris",
            "clusterNamespace": "france", "syncMode": "Dual",
            "clusterLabels": { "env": "prod", "bad key!": "x", "number": 1 },
            "parentURL": "https://hub",
        }));
        assert_eq!(request.name.as_ref().map(ClusterName::as_str), Some("paris"));
        assert_eq!(request.namespace, "france");
        assert_eq!(
            (request.cluster_id.as_str(), request.cluster_type.as_str()),
            ("dc91021d", "EdgeCluster")
        );
        assert_eq!(request.sync_mode, SyncMode::Dual);
        assert_eq!(request.labels, BTreeMap::from([("env".to_owned(), "prod".to_owned())]));
        assert_eq!(
            request.used,
            [
                "spec.clusterId as spec.clusterId",
                "spec.clusterLabels as metadata.labels",
                "spec.clusterName as metadata.name",
                "spec.clusterNamespace as metadata.namespace",
                "spec.clusterType as spec.clusterType",
                "spec.syncMode as spec.syncMode",
            ]
        );
        let left = request.unused.join("; ");
        for words in [
            "metadata; ",
            "spec.clusterLabels[\"bad key!\"] (",
            "spec.clusterLabels[\"number\"] (a label's value is text)",
            "spec.parentURL (not known)",
            "; status",
        ] {
            assert!(left.contains(words), "{words} in {left}");
        }
        assert!(!left.contains("a token"), "no value of it is told: {left}");
    }

    #[test]
    fn what_cannot_be_a_name_or_a_mode_is_told_and_pull_is_clusternets_default() {
        let request = read(json!({ "clusterName": "Not A Name", "syncMode": "Sometimes", "clusterLabels": null }));
        assert_eq!((request.name, request.sync_mode), (None, SyncMode::Pull));
        let left = request.unused.join("; ");
        assert!(
            left.contains("spec.clusterName (") && left.contains("spec.syncMode (it is Dual, Pull or Push)"),
            "{left}"
        );
        assert_eq!(request.used, [""; 0]);
        let none = Request::read(&Map::new());
        assert_eq!((none.used.len(), none.unused.len()), (0, 0));
    }
}
