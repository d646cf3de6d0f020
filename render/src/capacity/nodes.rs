//! Nodes that are alike, and what they have left.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::fit::{Field, emptiness};
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
        self.0.iter().map(|group| group.count).sum()
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
        let groups = self.0.iter().map(|group| {
            let mut group = group.clone();
            if let Some(own) = group.pods.remove(&workload) {
                group.free.add(each, i64::try_from(own).unwrap_or(i64::MAX));
            }
            group
        });
        Self::grouped(groups)
    }

    /// Puts pods where the scheduler of the cluster would, one after the other on the node that is emptiest then, and
    /// says how many found a place. `workload` is marked there.
    pub fn put(&mut self, requirements: &PodRequirements, count: u64, workload: Option<usize>) -> u64 {
        if requirements.apart.is_empty() && requirements.spread.is_empty() && workload.is_none() {
            return self.put_apart(requirements, count);
        }
        let mut field = Field::new(self, requirements, workload);
        let put = field.fill(count);
        *self = field.into_nodes();
        put
    }

    /// As [`Self::put`] of pods that are nothing to one another and are not marked, in place.
    fn put_apart(&mut self, requirements: &PodRequirements, count: u64) -> u64 {
        let is_able = |group: &NodeGroup| requirements.unmet(&group.labels, &group.taints).is_none();
        let mut able: Vec<bool> = self.0.iter().map(is_able).collect();
        let mut put = 0;
        while put < count {
            let open = self.0.iter().enumerate();
            let open = open.filter(|(index, group)| able[*index] && group.free.times(&requirements.requests) > 0);
            let best =
                open.max_by_key(|(index, group)| (emptiness(group, &requirements.requests), std::cmp::Reverse(*index)));
            let Some((index, _)) = best else { break };
            // Each of a group takes one at once: they are equally empty.
            let group = &mut self.0[index];
            let taken = group.count.min(count - put);
            put += taken;
            if taken == group.count {
                group.free.add(&requirements.requests, -1);
            } else {
                group.count -= taken;
                let mut group = NodeGroup {
                    count: taken,
                    ..group.clone()
                };
                group.free.add(&requirements.requests, -1);
                able.push(true);
                self.0.push(group);
            }
        }
        put
    }
}
