//! Cycles among things that need each other. Nodes are numbers; what they stand for is the caller's.

use std::collections::VecDeque;

/// Who needs whom.
#[derive(Clone, Debug, Default)]
pub struct Graph {
    /// Node → the nodes that it needs.
    needs: Vec<Vec<usize>>,
}

impl Graph {
    /// A node that needs nothing yet; its number.
    pub fn add(&mut self) -> usize {
        self.needs.push(Vec::new());
        self.needs.len() - 1
    }

    /// Says that `node` needs `needed`.
    pub fn need(&mut self, node: usize, needed: usize) {
        self.needs[node].push(needed);
    }

    /// What a node needs, in the order in which it was said.
    pub fn needs(&self, node: usize) -> &[usize] {
        &self.needs[node]
    }

    /// Node → its part: nodes that reach each other, and only those, are in one part.
    ///
    /// Tarjan's algorithm without recursion: a chain may be as long as a fleet has units.
    pub fn parts(&self) -> Vec<usize> {
        const NEW: usize = usize::MAX;
        let count = self.needs.len();
        let (mut order, mut low, mut part) = (vec![NEW; count], vec![NEW; count], vec![NEW; count]);
        let (mut next, mut parts) = (0, 0);
        let mut open = Vec::new();
        for root in 0..count {
            if order[root] != NEW {
                continue;
            }
            let mut path = vec![(root, 0)];
            while let Some((node, edge)) = path.pop() {
                if edge == 0 {
                    (order[node], low[node]) = (next, next);
                    next += 1;
                    open.push(node);
                }
                if let Some(needed) = self.needs[node].get(edge).copied() {
                    path.push((node, edge + 1));
                    if order[needed] == NEW {
                        path.push((needed, 0));
                    } else if part[needed] == NEW {
                        low[node] = low[node].min(order[needed]);
                    }
                    continue;
                }
                if low[node] == order[node] {
                    while let Some(member) = open.pop() {
                        part[member] = parts;
                        if member == node {
                            break;
                        }
                    }
                    parts += 1;
                }
                if let Some((above, _)) = path.last() {
                    low[*above] = low[*above].min(low[node]);
                }
            }
        }
        part
    }

    /// The shortest way from `node` by `first`, which it needs, back to `node`: both ends included. `None` where
    /// there is none. `part` says which nodes may be passed.
    pub fn way_back(&self, node: usize, first: usize, part: &[usize]) -> Option<Vec<usize>> {
        let mut from = vec![None; self.needs.len()];
        let mut waiting = VecDeque::from([first]);
        while let Some(at) = waiting.pop_front() {
            if at == node {
                let mut way = vec![node];
                let mut at = node;
                while at != first {
                    at = from[at]?;
                    way.push(at);
                }
                way.push(node);
                way.reverse();
                return Some(way);
            }
            for needed in &self.needs[at] {
                if part[*needed] == part[node] && from[*needed].is_none() && *needed != first {
                    from[*needed] = Some(at);
                    waiting.push_back(*needed);
                }
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn graph(count: usize, needs: &[(usize, usize)]) -> Graph {
        let mut graph = Graph::default();
        for _ in 0..count {
            graph.add();
        }
        needs.iter().for_each(|(node, needed)| graph.need(*node, *needed));
        graph
    }

    #[test]
    fn nodes_that_reach_each_other_are_one_part_and_others_are_not() {
        let graph = graph(6, &[(0, 1), (1, 2), (2, 0), (3, 0), (4, 5)]);
        let part = graph.parts();
        assert!(part[0] == part[1] && part[1] == part[2]);
        let others = [part[0], part[3], part[4], part[5]];
        let distinct: std::collections::BTreeSet<_> = others.iter().collect();
        assert_eq!(distinct.len(), 4);
    }

    #[test]
    fn the_way_back_is_the_shortest() {
        let graph = graph(4, &[(0, 1), (1, 2), (2, 3), (3, 0), (1, 0), (2, 2)]);
        let part = graph.parts();
        assert_eq!(graph.way_back(0, 1, &part), Some(vec![0, 1, 0]));
        assert_eq!(graph.way_back(2, 3, &part), Some(vec![2, 3, 0, 1, 2]));
        assert_eq!(graph.way_back(2, 2, &part), Some(vec![2, 2]));
    }

    #[test]
    fn a_chain_as_long_as_a_large_fleet_is_walked() {
        let count = 100_000;
        let needs: Vec<_> = (1..count).map(|node| (node - 1, node)).collect();
        let graph = graph(count, &needs);
        assert_eq!(graph.parts()[0], count - 1, "each node is a part of its own");
    }

    proptest::proptest! {
        /// Against the definition: two nodes are in one part when each reaches the other.
        #[test]
        fn parts_are_what_they_say(needs in proptest::collection::vec((0_usize..7, 0_usize..7), 0..16)) {
            let graph = graph(7, &needs);
            let mut reach = [[false; 7]; 7];
            for (node, row) in reach.iter_mut().enumerate() { row[node] = true; }
            for (node, needed) in &needs { reach[*node][*needed] = true; }
            for via in 0..7 { for a in 0..7 { for b in 0..7 { reach[a][b] |= reach[a][via] && reach[via][b]; } } }
            let part = graph.parts();
            for a in 0..7 { for b in 0..7 {
                proptest::prop_assert_eq!(part[a] == part[b], reach[a][b] && reach[b][a]);
            } }
            for (node, needed) in &needs {
                let way = graph.way_back(*node, *needed, &part);
                proptest::prop_assert_eq!(way.is_some(), part[*node] == part[*needed]);
                for step in way.iter().flat_map(|way| way.windows(2)) {
                    proptest::prop_assert!(graph.needs(step[0]).contains(&step[1]));
                }
            }
        }
    }
}
