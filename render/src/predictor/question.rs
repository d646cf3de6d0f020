//! What a predictor is asked.

use serde_json::{Value, json};

use crate::capacity::PodRequirements;
use crate::digest::Digest;
use crate::model::{Cluster, LABEL_CLUSTER_ID, Predictor, Toleration};
use crate::name::ClusterName;

/// How many replicas of a template fit in a cluster.
#[derive(Clone, Debug, PartialEq)]
pub struct Question {
    /// The cluster that is asked about.
    pub cluster: ClusterName,
    /// What its header `Cluster-ID` says.
    pub cluster_id: String,
    /// Who is asked.
    pub predictor: Predictor,
    /// The body: Clusternet's `replicaRequirements`.
    pub body: Value,
}

impl Question {
    /// About a cluster, for pods that ask for this. `None` where it has no predictor.
    pub fn about(cluster: &Cluster, requirements: &PodRequirements) -> Option<Self> {
        let predictor = cluster.predictor.clone()?;
        let id = cluster.labels.get(LABEL_CLUSTER_ID).cloned();
        Some(Self {
            cluster: cluster.name.clone(),
            cluster_id: id.unwrap_or_else(|| cluster.name.to_string()),
            predictor,
            body: body(requirements),
        })
    }

    /// Equal for questions that have one answer.
    pub fn key(&self) -> Digest {
        Digest::of_value(&json!([self.predictor.url, self.cluster_id, self.body]))
    }
}

fn body(requirements: &PodRequirements) -> Value {
    let mut body = serde_json::Map::new();
    if !requirements.node_selector.is_empty() {
        body.insert("nodeSelector".to_owned(), json!(requirements.node_selector));
    }
    if !requirements.tolerations.is_empty() {
        let tolerations: Vec<Value> = requirements.tolerations.iter().map(toleration).collect();
        body.insert("tolerations".to_owned(), Value::Array(tolerations));
    }
    if !requirements.node_terms.is_empty() {
        let terms = json!({ "nodeSelectorTerms": requirements.node_terms });
        let affinity = json!({ "requiredDuringSchedulingIgnoredDuringExecution": terms });
        body.insert("affinity".to_owned(), json!({ "nodeAffinity": affinity }));
    }
    // It counts pods by itself.
    let requests = requirements.requests.iter().filter(|(name, _)| *name != "pods");
    let requests: serde_json::Map<String, Value> = requests
        .map(|(name, amount)| (name.to_owned(), Value::String(quantity(name, amount))))
        .collect();
    body.insert("resources".to_owned(), json!({ "requests": requests }));
    Value::Object(body)
}

/// With the fields alone that say something.
fn toleration(toleration: &Toleration) -> Value {
    let mut written = json!(toleration);
    if let Some(fields) = written.as_object_mut() {
        fields.retain(|_, value| !value.is_null() && value.as_str() != Some(""));
    }
    written
}

fn quantity(name: &str, amount: i64) -> String {
    match name {
        "cpu" if amount % 1_000 == 0 => (amount / 1_000).to_string(),
        "cpu" => format!("{amount}m"),
        _ => amount.to_string(),
    }
}
