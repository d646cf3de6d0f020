//! What a cluster is, beside what is applied to it.

use render::capacity::Resources;
use serde::{Deserialize, Serialize};

/// Facts of a cluster, for people and for tools that know them from Clusternet. Nothing is decided on them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Facts {
    /// What its API server runs on: `linux/amd64`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub platform: String,
    /// Its API server's address as the applier sees it.
    #[serde(rename = "apiserverURL", skip_serializing_if = "String::is_empty")]
    pub api_server: String,
    /// The version of whoever applies there.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub agent_version: String,
    /// Where pods have their addresses; empty where nobody can tell.
    #[serde(rename = "podCIDR", skip_serializing_if = "Vec::is_empty")]
    pub pod_cidrs: Vec<String>,
    /// Where Services have theirs.
    #[serde(rename = "serviceCIDR", skip_serializing_if = "Vec::is_empty")]
    pub service_cidrs: Vec<String>,
    /// Whether `/healthz` of its API server says that all is well; absent where it was not asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub healthz: Option<bool>,
    /// The same of `/livez`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub livez: Option<bool>,
    /// The same of `/readyz`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub readyz: Option<bool>,
}

/// A cluster's nodes, all of them. Nothing is decided on them: what replicas are divided by is `capacity`'s.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct NodeFacts {
    /// By how they fare.
    pub statistics: NodeStatistics,
    /// What they have, without regard to what pods may take of it.
    pub capacity: Resources,
}

/// Nodes by their condition Ready, in Clusternet's words.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct NodeStatistics {
    /// It is True.
    pub ready_nodes: u64,
    /// It is False.
    pub not_ready_nodes: u64,
    /// It is Unknown: nothing is heard of its kubelet.
    pub unknown_nodes: u64,
    /// They have no such condition.
    pub lost_nodes: u64,
}
