//! What the feeds of a unit ask for, after overrides.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::Serialize;

use crate::capacity::{Apart, NodeTerm, Spread, Workload};
use crate::model::Toleration;
use crate::name::{ClusterName, ObjectKey};
use crate::schedule::Workloads;

/// What the objects with replicas ask for, on clusters where that is the same.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct FeedInventory {
    /// Where, sorted.
    pub clusters: Vec<ClusterName>,
    /// Each object that has replicas, sorted by key.
    pub objects: Vec<Requirement>,
}

/// What an object asks for: how many replicas, and what each of them needs.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Requirement {
    /// Which.
    pub object: ObjectKey,
    /// So many replicas in all, where they are divided; on each cluster, where they are not.
    pub replicas: u64,
    /// What is set aside for one, as Kubernetes writes it.
    pub requests: BTreeMap<String, String>,
    /// Labels that its node must have.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub node_selector: BTreeMap<String, String>,
    /// Terms of which its node must meet one.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub node_affinity: Vec<NodeTerm>,
    /// Taints of nodes that it puts up with.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tolerations: Vec<Toleration>,
    /// Where it may not stand beside another of its own.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub anti_affinity: Vec<Apart>,
    /// How evenly it must be spread.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub topology_spread: Vec<Spread>,
    /// Whether it asks for what nodes do not tell, so that room for it is told as "at most".
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub asks_more: bool,
}

impl Requirement {
    fn of((object, workload): (&ObjectKey, &Workload)) -> Self {
        let requirements = &workload.requirements;
        Self {
            object: object.clone(),
            replicas: workload.replicas,
            requests: requirements.requests.quantities(),
            node_selector: requirements.node_selector.clone(),
            node_affinity: requirements.node_terms.clone(),
            tolerations: requirements.tolerations.clone(),
            anti_affinity: requirements.apart.clone(),
            topology_spread: requirements.spread.clone(),
            asks_more: requirements.asks_more,
        }
    }
}

/// Clusters that are asked for the same, together, in the order of the first of each; none where nothing has replicas.
pub(super) fn inventories(asked: impl Iterator<Item = (ClusterName, Arc<Workloads>)>) -> Vec<FeedInventory> {
    let mut groups: Vec<(Arc<Workloads>, Vec<ClusterName>)> = Vec::new();
    for (cluster, workloads) in asked.filter(|(_, workloads)| !workloads.is_empty()) {
        let is_same = |known: &Arc<Workloads>| Arc::ptr_eq(known, &workloads) || *known == workloads;
        match groups.iter_mut().find(|(known, _)| is_same(known)) {
            Some((_, clusters)) => clusters.push(cluster),
            None => groups.push((workloads, vec![cluster])),
        }
    }
    let inventory = |(workloads, clusters): (Arc<Workloads>, Vec<ClusterName>)| FeedInventory {
        clusters,
        objects: workloads.iter().map(Requirement::of).collect(),
    };
    groups.into_iter().map(inventory).collect()
}
