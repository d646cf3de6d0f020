//! ManagedCluster: a cluster's file is its registration.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::capacity::Resources;
use crate::model::{DeletionPolicy, DriftMode};
use crate::name::ClusterName;

/// A registered cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cluster {
    /// `metadata.name`.
    pub name: ClusterName,
    /// The namespace its Localizations stand in: `metadata.namespace`, else the name.
    pub namespace: String,
    /// Labels as declared, and `clusters.clusternet.io/cluster-id` and `cluster-name` on every cluster.
    pub labels: BTreeMap<String, String>,
    /// `spec.clusterId`; empty when the file gives none, and the label then is the name.
    pub cluster_id: String,
    /// `spec.clusterType`, as written; nothing is decided on it. Empty when the file gives none.
    pub cluster_type: String,
    /// `spec.taints`.
    pub taints: Vec<Taint>,
    /// Who applies, and what the hub may reach.
    pub sync_mode: SyncMode,
    /// `spec.publicKeys`: Ed25519 keys as written (`ed25519:<base64>`), checked at load.
    pub public_keys: Vec<String>,
    /// `spec.kubeconfigContext`: a context of the hub's `--kubeconfig`, for a cluster without an agent.
    pub kubeconfig_context: Option<String>,
    /// `spec.drift.mode`, where it is written: it counts before the Subscription's.
    pub drift: Option<DriftMode>,
    /// `spec.deletionPolicy`: what becomes of its objects when its file is removed. Orphan where nothing is written.
    pub deletion: DeletionPolicy,
    /// `spec.maxCapacity` with `capacity: elastic`: what its nodes have in all when its autoscaler is at its end.
    pub elastic: Option<Resources>,
    /// `spec.predictor`: who is asked how many replicas fit, beside what the cluster itself reports.
    pub predictor: Option<Predictor>,
    /// File and line of the declaration.
    pub file: Arc<str>,
    /// See `file`.
    pub line: u32,
}

/// Somebody who says how many replicas fit in a cluster, as Clusternet's predictors do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Predictor {
    /// `https://` or `http://`, a host, and perhaps a path; checked at load.
    pub url: String,
    /// How long the hub waits for an answer, in seconds.
    pub timeout_seconds: u64,
}

/// Who applies, and what the hub may reach.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum SyncMode {
    /// The agent applies; reads are proxied through the tunnel.
    #[default]
    Dual,
    /// The agent applies; the hub may open no stream to the API server.
    Pull,
    /// The hub's applier works through the tunnel, or by kubeconfig.
    Push,
}

impl SyncMode {
    /// Whether the cluster's own agent applies; else the hub does. Exactly one of them.
    #[must_use]
    pub fn agent_applies(self) -> bool {
        match self {
            Self::Dual | Self::Pull => true,
            Self::Push => false,
        }
    }
}

/// A taint, as Kubernetes has it on nodes.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Taint {
    /// Key.
    pub key: String,
    /// Value; may be empty.
    #[serde(default)]
    pub value: String,
    /// Effect.
    pub effect: TaintEffect,
}

/// What an untolerated taint does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum TaintEffect {
    /// Nothing new is placed there; what is placed stays.
    NoSchedule,
    /// Placed there only when nothing else fits.
    PreferNoSchedule,
    /// As NoSchedule; what is placed there leaves.
    NoExecute,
}

impl TaintEffect {
    /// Every effect with its word.
    pub const WORDS: [(&str, Self); 3] = [
        (Self::NoSchedule.as_str(), Self::NoSchedule),
        (Self::PreferNoSchedule.as_str(), Self::PreferNoSchedule),
        (Self::NoExecute.as_str(), Self::NoExecute),
    ];

    /// Its word.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::NoSchedule => "NoSchedule",
            Self::PreferNoSchedule => "PreferNoSchedule",
            Self::NoExecute => "NoExecute",
        }
    }
}
