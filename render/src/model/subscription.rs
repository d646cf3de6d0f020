//! Subscription: which feeds go to which clusters, and how they are shared out.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::model::{ApplyPolicy, Bounds, Cluster, DriftMode, Placing, Scheduling, SubGroup, Taint, TaintEffect};
use crate::name::UnitKey;
use crate::selector::LabelSelector;

/// A Subscription, from our group or Clusternet's.
#[derive(Clone, Debug, PartialEq)]
pub struct Subscription {
    /// Namespace and name.
    pub key: UnitKey,
    /// How replicas are shared out.
    pub scheduling: Scheduling,
    /// What else is said of how it is placed.
    pub placing: Placing,
    /// A cluster is a candidate when any of them matches.
    pub subscribers: Vec<Subscriber>,
    /// `spec.clusterTolerations`.
    pub tolerations: Vec<Toleration>,
    /// What is delivered, in this order.
    pub feeds: Vec<Feed>,
    /// How it is applied.
    pub apply: ApplyPolicy,
    /// `spec.drift.mode`, where it is written; a cluster may say otherwise for all that it has.
    pub drift: Option<DriftMode>,
    /// File and line of the declaration.
    pub file: Arc<str>,
    /// See `file`.
    pub line: u32,
}

impl Subscription {
    /// What is done about drift on a cluster: the cluster's word counts before the Subscription's.
    pub fn drift_on(&self, cluster: Option<&Cluster>) -> DriftMode {
        let of_cluster = cluster.and_then(|cluster| cluster.drift);
        of_cluster.or(self.drift).unwrap_or_default()
    }
}

/// One cluster selector with its weight.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Subscriber {
    /// `clusterAffinity`; `None` (null) matches nothing, an empty one matches all.
    pub cluster_affinity: Option<LabelSelector>,
    /// `weight` where one is written; for static dividing.
    pub weight: Option<u32>,
    /// `replicas`: how few and how many of each divided object a cluster that it matches may have.
    pub replicas: Bounds,
    /// `subGroupStrategy`: how many of its clusters are taken.
    pub sub_group: Option<SubGroup>,
}

/// A toleration, as Kubernetes has it on pods.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Toleration {
    /// Key; empty with `Exists` tolerates everything.
    #[serde(default)]
    pub key: String,
    /// `Equal` (default) or `Exists`, checked at load.
    #[serde(default)]
    pub operator: Option<String>,
    /// Value for `Equal`.
    #[serde(default)]
    pub value: String,
    /// Effect; none matches every effect.
    #[serde(default)]
    pub effect: Option<TaintEffect>,
    /// For how many seconds a taint NoExecute is tolerated; `None`: as long as it is there.
    #[serde(default)]
    pub toleration_seconds: Option<i64>,
}

impl Toleration {
    /// Whether it covers a taint. For how long (`tolerationSeconds`) is not asked here.
    pub fn covers(&self, taint: &Taint) -> bool {
        let effect = self.effect.is_none_or(|effect| effect == taint.effect);
        let key = self.key.is_empty() || self.key == taint.key;
        let value = match self.operator.as_deref() {
            None | Some("" | "Equal") => self.value == taint.value,
            Some("Exists") => true,
            // Load refuses other operators; one that slipped through opens nothing.
            Some(_) => false,
        };
        effect && key && value
    }
}

/// What a unit subscribes to.
#[derive(Clone, Debug, PartialEq)]
pub enum Feed {
    /// One object (or HelmChart), by name.
    Object {
        /// `apiVersion`, whole.
        api_version: String,
        /// Kind.
        kind: String,
        /// Namespace; empty matches any, and two that match are an Error.
        namespace: String,
        /// Name.
        name: String,
    },
    /// Every object of the files that match.
    Path {
        /// A path or glob from the root of the repository.
        path: String,
        /// Globs from the root that are left out.
        exclude: Vec<String>,
    },
    /// Every object outside our own kinds whose labels match.
    Selector {
        /// Must not be empty.
        selector: LabelSelector,
        /// `kind` to narrow it; empty: any.
        kind: String,
        /// `apiVersion` to narrow it; empty: any.
        api_version: String,
        /// `namespace` to narrow it; empty: any.
        namespace: String,
    },
}
