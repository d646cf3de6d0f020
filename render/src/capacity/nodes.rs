//! Nodes that are alike, and what they have left.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::field::Field;
use super::requirements::PodRequirements;
use super::resources::Resources;
use crate::model::Taint;

/// Nodes that are alike in everything that is looked at.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct NodeGroup {
    /// How many.
    pub count: u64,
    /// Their labels, without those that tell each node apart.
    pub labels: BTreeMap<String, String>,
    /// Their taints; a cordoned node has `node.kubernetes.io/unschedulable`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub taints: Vec<Taint>,
    /// What each has in all.
    pub allocatable: Resources,
    /// What each has left for pods to come; below 0 where more was put there than it has.
    pub free: Resources,
    /// Index of a workload in the report → how many of its pods each has, or is promised.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub pods: BTreeMap<usize, u64>,
}

/// The nodes of a cluster, in groups.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Nodes(pub Vec<NodeGroup>);

impl Nodes {
    /// Puts single nodes together that are alike; sorted, so that the order in which they came does not matter.
    pub fn grouped(nodes: impl IntoIterator<Item = NodeGroup>) -> Self {
        let mut groups: BTreeMap<NodeGroup, u64> = BTreeMap::new();
        for node in nodes {
            let count = node.count;
            *groups.entry(NodeGroup { count: 0, ..node }).or_default() += count;
        }
        let groups = groups.into_iter().filter(|(_, count)| *count > 0);
        Self(groups.map(|(group, count)| NodeGroup { count, ..group }).collect())
    }

    /// How many nodes there are.
    pub fn count(&self) -> u64 {
        let counts = self.0.iter().map(|group| group.count);
        counts.fold(0, u64::saturating_add)
    }

    /// What all nodes have left together, each at least nothing.
    pub fn free(&self) -> Resources {
        self.sum(|group| &group.free)
    }

    /// What all nodes have in all.
    pub fn allocatable(&self) -> Resources {
        self.sum(|group| &group.allocatable)
    }

    fn sum(&self, of: impl Fn(&NodeGroup) -> &Resources) -> Resources {
        let mut sum = Resources::default();
        for group in &self.0 {
            for (name, amount) in of(group).iter() {
                let times = i64::try_from(group.count).unwrap_or(i64::MAX);
                sum.set(name, sum.of(name).saturating_add(amount.max(0).saturating_mul(times)));
            }
        }
        sum
    }

    /// These in no more groups than that: nodes that are alike but for what they have left, and whose pods are on them,
    /// count as having what the one with the least has. What is told is then less than there is, never more.
    pub fn at_most(self, groups: usize) -> Self {
        if self.0.len() <= groups {
            return self;
        }
        let mut merged: Vec<NodeGroup> = Vec::new();
        for group in self.0 {
            let is_like = |known: &&mut NodeGroup| {
                known.labels == group.labels && known.taints == group.taints && known.allocatable == group.allocatable
            };
            match merged.iter_mut().find(is_like) {
                Some(known) => {
                    known.count += group.count;
                    known.free.lower_to(&group.free);
                    // An own pod that is on some of them only makes no room on the others.
                    known.pods.retain(|workload, own| {
                        *own = (*own).min(group.pods.get(workload).copied().unwrap_or_default());
                        *own > 0
                    });
                }
                None => merged.push(group),
            }
        }
        // Nodes that differ in labels or size beyond that are left out, smallest groups first.
        merged.sort_by_key(|group| std::cmp::Reverse(group.count));
        merged.truncate(groups);
        Self::grouped(merged)
    }

    /// Takes a workload's own pods away, as if they were to be placed anew. `each` is what one of them asks for.
    pub fn without(&self, workload: usize, each: &Resources) -> Self {
        Field::of(self).without(workload, each).nodes()
    }

    /// Puts pods there as [`Field::put`] does.
    pub fn put(&mut self, requirements: &PodRequirements, count: u64, workload: Option<usize>) -> u64 {
        if count == 0 {
            return 0;
        }
        let mut field = Field::of(self);
        let put = field.put(requirements, count, workload);
        *self = field.nodes();
        put
    }
}
