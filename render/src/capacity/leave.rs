//! Pods that go, so that others find room.

use super::nodes::{NodeGroup, Nodes};
use super::resources::Resources;

impl Nodes {
    /// How many pods of a workload are on nodes, or are promised a place there.
    pub fn pods(&self, workload: usize) -> u64 {
        let on = |group: &NodeGroup| {
            group
                .pods
                .get(&workload)
                .map_or(0, |each| each.saturating_mul(group.count))
        };
        self.0.iter().map(on).fold(0, u64::saturating_add)
    }

    /// Takes pods of a workload away, each from a node that has most of them then, as a ReplicaSet does. `each` is what
    /// one of them asks for.
    pub fn leave(&mut self, workload: usize, each: &Resources, mut count: u64) {
        while count > 0 {
            let own = |group: &NodeGroup| group.pods.get(&workload).copied().unwrap_or_default();
            let full = self.0.iter().enumerate();
            let full = full.max_by_key(|(index, group)| (own(group), std::cmp::Reverse(*index)));
            let Some((index, _)) = full.filter(|(_, group)| own(group) > 0) else {
                return;
            };
            // Each node of a group loses one at once: they have equally many.
            let group = &mut self.0[index];
            let losing = group.count.min(count);
            count -= losing;
            let mut less = NodeGroup {
                count: losing,
                ..group.clone()
            };
            less.free.add(each, 1);
            less.pods.entry(workload).and_modify(|pods| *pods -= 1);
            less.pods.retain(|_, pods| *pods > 0);
            if losing == group.count {
                *group = less;
            } else {
                group.count -= losing;
                self.0.push(less);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn group(count: u64, free: i64, pods: u64) -> NodeGroup {
        NodeGroup {
            count,
            free: Resources::from([("cpu", free)]),
            pods: BTreeMap::from([(0, pods)]),
            ..NodeGroup::default()
        }
    }

    #[test]
    fn pods_leave_the_nodes_that_have_most_of_them() {
        let each = Resources::from([("cpu", 10)]);
        let mut nodes = Nodes(vec![group(2, 0, 3), group(1, 5, 1)]);
        assert_eq!(nodes.pods(0), 7);
        nodes.leave(0, &each, 3);
        assert_eq!(nodes.pods(0), 4);
        let mut left: Vec<_> = nodes
            .0
            .iter()
            .map(|group| (group.count, group.free.of("cpu")))
            .collect();
        left.sort_unstable();
        assert_eq!(left, [(1, 5), (1, 10), (1, 20)]);
        nodes.leave(0, &each, 100);
        assert_eq!((nodes.pods(0), nodes.count()), (0, 3), "no more go than are there");
    }
}
