//! Suspension: what keeps its older revision until a person says otherwise, or until a time.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::name::{ClusterName, ObjectKey, UnitKey};
use crate::selector::LabelSelector;

/// The spec of kind Suspension.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Suspension {
    /// `metadata.name`.
    pub name: String,
    /// `spec.subscription`; without it every unit.
    pub unit: Option<UnitKey>,
    /// `spec.clusters` and `spec.clusterAffinity`; without both every cluster.
    pub clusters: Option<SuspendedClusters>,
    /// `spec.objects`: only these are left as they are, and everything else of the unit is delivered. Without any, the
    /// unit as a whole keeps its revision.
    pub objects: Vec<ObjectName>,
    /// `spec.reason`, for people; may be empty.
    pub reason: String,
    /// `spec.until` in seconds since 1970, from when on it holds nothing.
    pub until: Option<i64>,
    /// File and line of the declaration.
    pub file: Arc<str>,
    /// See `file`.
    pub line: u32,
}

/// The clusters that a Suspension, or another policy, is about: those that are named, and those that the selector takes.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct SuspendedClusters {
    /// `spec.clusters`.
    pub names: Vec<ClusterName>,
    /// `spec.clusterAffinity`.
    pub selector: Option<LabelSelector>,
}

/// An object as a Suspension names it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ObjectName {
    /// `apiVersion`, of which only the group decides.
    pub api_version: String,
    /// Kind.
    pub kind: String,
    /// Namespace; empty for an object without one.
    pub namespace: String,
    /// Name.
    pub name: String,
}

impl ObjectName {
    /// The key of the object.
    pub fn key(&self) -> ObjectKey {
        ObjectKey::new(&self.api_version, &self.kind, &self.namespace, &self.name)
    }
}

impl Suspension {
    /// Who it is and why, without a place: what objects carry along stays the same when its file gains a line.
    pub fn title(&self) -> String {
        match self.reason.as_str() {
            "" => format!("Suspension {}", self.name),
            reason => format!("Suspension {} ({reason})", self.name),
        }
    }

    /// Whether it still holds at a time, in seconds since 1970.
    pub fn is_in_force(&self, now: i64) -> bool {
        self.until.is_none_or(|until| now < until)
    }

    /// Whether it is about a unit on a cluster. `labels` are the cluster's; `None` where it is not registered.
    pub fn concerns(&self, unit: &UnitKey, cluster: &ClusterName, labels: Option<&BTreeMap<String, String>>) -> bool {
        let of_unit = self.unit.as_ref().is_none_or(|own| own == unit);
        of_unit && self.is_there(cluster, labels)
    }

    /// Whether it is about a cluster, as [`Self::concerns`].
    pub fn is_there(&self, cluster: &ClusterName, labels: Option<&BTreeMap<String, String>>) -> bool {
        self.clusters.as_ref().is_none_or(|own| own.contain(cluster, labels))
    }

    /// Where it stands, why, and until when: `policies/suspend.yaml:1 (reason), until 2026-12-01T09:00:00Z`.
    pub fn label(&self) -> String {
        let mut label = format!("{}:{}", self.file, self.line);
        if !self.reason.is_empty() {
            label.push_str(&format!(" ({})", self.reason));
        }
        if let Some(until) = self.until {
            label.push_str(&format!(", until {}", crate::time::rfc3339(until)));
        }
        label
    }
}

impl SuspendedClusters {
    /// A cluster that is not registered has no labels that anybody knows, and is taken to be selected: were its
    /// units released from under a suspension, they would be removed from it when it comes back.
    pub(crate) fn contain(&self, cluster: &ClusterName, labels: Option<&BTreeMap<String, String>>) -> bool {
        let selected = |selector: &LabelSelector| labels.is_none_or(|labels| selector.matches(labels));
        self.names.contains(cluster) || self.selector.as_ref().is_some_and(selected)
    }
}
