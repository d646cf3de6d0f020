//! What a cluster says of its room.

use serde::{Deserialize, Serialize};

use super::nodes::{NodeGroup, Nodes};
use super::resources::Resources;
use crate::limits::{NODE_GROUPS_MAX, NODES_MAX, PODS_PER_NODE_MAX, REPORTED_WORKLOADS_MAX};
use crate::name::{ObjectKey, UnitKey};

/// The section `capacity` of a report.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Capacity {
    /// Version of this form.
    pub version: u32,
    /// The newest sequence of `released` whose replicas are in it: those whose pods are not there yet are put on the
    /// nodes as if they were.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sequence: Option<u64>,
    /// The nodes, with what they have left net: after all pods, and after what is promised.
    pub nodes: Nodes,
    /// What is promised to pods that are not there yet; net and this are gross.
    #[serde(default, skip_serializing_if = "Resources::is_empty")]
    pub promised: Resources,
    /// The fleet's workloads, sorted by unit and object; nodes name them by their place here.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub workloads: Vec<WorkloadPods>,
}

/// How a workload's pods fare.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct WorkloadPods {
    /// Whose it is.
    pub unit: UnitKey,
    /// Which object.
    pub object: ObjectKey,
    /// Its replicas by what was delivered; an autoscaler's where one scales it.
    pub replicas: u64,
    /// What one of its pods asks for.
    pub requests: Resources,
    /// Pods that have a node.
    pub scheduled: u64,
    /// Pods that no node takes.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub unschedulable: u64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// A report that cannot be what a cluster has.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidCapacity {
    /// Of a version that this build does not read.
    #[error("capacity of version {0} cannot be read")]
    Version(u32),
    /// More than a report may say.
    #[error("capacity of {0} node groups and {1} workloads is larger than a report may be")]
    TooLarge(usize, usize),
    /// More nodes than any cluster has.
    #[error("{0} nodes are more than any cluster has; at most {NODES_MAX} are believed")]
    TooManyNodes(u64),
    /// More pods than any node has.
    #[error("{0} pods are more than any node has; at most {PODS_PER_NODE_MAX} are believed")]
    TooManyPods(u64),
    /// A node names a workload that is not there.
    #[error("a node names workload {0}, and there are {1}")]
    Workload(usize, usize),
    /// Nodes with more left than they have.
    #[error("a node has {free} of {resource} left, and {allocatable} in all")]
    MoreThanAll {
        /// Of what.
        resource: String,
        /// Left.
        free: i64,
        /// In all.
        allocatable: i64,
    },
}

impl Capacity {
    /// The version that this build writes.
    pub const VERSION: u32 = 1;

    /// Whether it can be believed. What cannot is treated as if it were missing, never as no room.
    pub fn check(&self) -> Result<(), InvalidCapacity> {
        if self.version != Self::VERSION {
            return Err(InvalidCapacity::Version(self.version));
        }
        let (groups, workloads) = (self.nodes.0.len(), self.workloads.len());
        if groups > NODE_GROUPS_MAX || workloads > REPORTED_WORKLOADS_MAX {
            return Err(InvalidCapacity::TooLarge(groups, workloads));
        }
        let nodes = self.nodes.count();
        if nodes > NODES_MAX {
            return Err(InvalidCapacity::TooManyNodes(nodes));
        }
        let pods = self.nodes.0.iter().flat_map(most_pods);
        if let Some(pods) = pods.filter(|pods| *pods > PODS_PER_NODE_MAX).max() {
            return Err(InvalidCapacity::TooManyPods(pods));
        }
        for group in &self.nodes.0 {
            if let Some(index) = group.pods.keys().find(|index| **index >= workloads) {
                return Err(InvalidCapacity::Workload(*index, workloads));
            }
            if let Some((resource, free)) = group
                .free
                .iter()
                .find(|(name, free)| *free > group.allocatable.of(name))
            {
                return Err(InvalidCapacity::MoreThanAll {
                    resource: resource.to_owned(),
                    free,
                    allocatable: group.allocatable.of(resource),
                });
            }
        }
        Ok(())
    }

    /// The place of a workload in it.
    pub fn workload(&self, unit: &UnitKey, object: &ObjectKey) -> Option<usize> {
        let place = |workload: &WorkloadPods| (&workload.unit, &workload.object).cmp(&(unit, object));
        self.workloads.binary_search_by(place).ok()
    }
}

/// What a node of a group says of pods: how many it may have, and how many of each workload it has.
fn most_pods(group: &NodeGroup) -> impl Iterator<Item = u64> {
    let allocatable = u64::try_from(group.allocatable.of("pods")).unwrap_or_default();
    group.pods.values().copied().chain([allocatable])
}
