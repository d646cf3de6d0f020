//! What [`Field`] says, said slowly: the same rules node group by node group, by name and with nothing remembered.

use std::collections::BTreeMap;

use super::super::{Fit, HOSTNAME, NodeGroup, Nodes, PodRequirements, Resources};

/// How many pods of a template fit beside what is there. `workload` is its index in the report, where it has pods there
/// already.
///
/// Without anti-affinity and spread it is the sum over nodes of `free / request`, rounded down: what the scheduler of
/// the cluster can place, whatever its order. With them, pods are placed one by one as that scheduler does, and counted
/// up to `most`.
pub(super) fn fit(nodes: &Nodes, requirements: &PodRequirements, workload: Option<usize>, most: u64) -> Fit {
    let mut answer = Fit::default();
    for group in &nodes.0 {
        match requirements.unmet(&group.labels, &group.taints) {
            Some(reason) => *answer.refused.entry(reason).or_default() += group.count,
            None => answer.nodes += group.count,
        }
    }
    answer.replicas = if requirements.apart.is_empty() && requirements.spread.is_empty() {
        let able = nodes
            .0
            .iter()
            .filter(|group| requirements.unmet(&group.labels, &group.taints).is_none());
        able.fold(0_u64, |sum, group| {
            sum.saturating_add(group.free.times(&requirements.requests).saturating_mul(group.count))
        })
    } else {
        Field::new(nodes, requirements, workload).fill(most)
    };
    if answer.nodes > 0 && answer.replicas < most {
        let full = nodes.0.iter().filter(|group| {
            requirements.unmet(&group.labels, &group.taints).is_none() && group.free.times(&requirements.requests) == 0
        });
        let count = full.map(|group| group.count).sum();
        if count > 0 {
            answer.refused.insert("nothing left", count);
        }
    }
    answer
}

/// The mark of pods while they are put, where no report has a place for their workload.
const NOBODY: usize = usize::MAX;

/// Nodes while pods are put on them one by one.
struct Field<'a> {
    requirements: &'a PodRequirements,
    workload: usize,
    /// Nodes that cannot take any.
    aside: Vec<NodeGroup>,
    /// Those of them that a taint alone keeps away: as the scheduler has it, they count where pods are spread.
    tainted: Vec<NodeGroup>,
    /// The others. Nodes stay in groups as long as they are alike.
    able: Vec<NodeGroup>,
    /// For each constraint by a label other than the host's: value → own pods there.
    domains: Vec<(String, BTreeMap<String, u64>)>,
}

impl<'a> Field<'a> {
    fn new(nodes: &Nodes, requirements: &'a PodRequirements, workload: Option<usize>) -> Self {
        let (able, aside): (Vec<_>, Vec<_>) = nodes
            .0
            .iter()
            .cloned()
            .partition(|group| requirements.unmet(&group.labels, &group.taints).is_none());
        let is_tainted = |group: &&NodeGroup| requirements.unmet(&group.labels, &[]).is_none();
        let tainted = aside.iter().filter(is_tainted).cloned().collect();
        let apart = requirements.apart.iter().map(|apart| &apart.topology_key);
        let keys = apart.chain(requirements.spread.iter().map(|spread| &spread.topology_key));
        let mut field = Self {
            requirements,
            workload: workload.unwrap_or(NOBODY),
            aside,
            tainted,
            able,
            domains: Vec::new(),
        };
        for key in keys.filter(|key| *key != HOSTNAME) {
            if field.domains.iter().all(|(known, _)| known != key) {
                let counts = field.own_by(key);
                field.domains.push((key.clone(), counts));
            }
        }
        field
    }

    /// Puts up to so many, and says how many found a place.
    fn fill(&mut self, most: u64) -> u64 {
        let mut put = 0;
        while put < most {
            let Some(index) = self.best() else { break };
            // Where nothing binds pods to one another, a group takes one each at once.
            let group = &self.able[index];
            let is_free = self.requirements.apart.is_empty() && self.requirements.spread.is_empty();
            let at_once = if is_free { group.count.min(most - put) } else { 1 };
            self.put_on(index, at_once);
            put += at_once;
        }
        put
    }

    fn into_nodes(self) -> Nodes {
        let unmarked = |mut group: NodeGroup| {
            group.pods.remove(&NOBODY);
            group
        };
        Nodes::grouped(self.able.into_iter().chain(self.aside).map(unmarked))
    }

    fn own_by(&self, key: &str) -> BTreeMap<String, u64> {
        let mut counts = BTreeMap::new();
        for group in self.able.iter().chain(&self.tainted) {
            if let Some(value) = group.labels.get(key) {
                *counts.entry(value.clone()).or_default() += self.own(group) * group.count;
            }
        }
        counts
    }

    fn own(&self, group: &NodeGroup) -> u64 {
        group.pods.get(&self.workload).copied().unwrap_or_default()
    }

    /// The group whose nodes may take the next one: the emptiest of those with the fewest of its own.
    fn best(&self) -> Option<usize> {
        let hosts = self.able.iter().chain(&self.tainted);
        let fewest_on_host = hosts.map(|group| self.own(group)).min().unwrap_or_default();
        let allowed = |group: &(usize, &NodeGroup)| {
            group.1.free.times(&self.requirements.requests) > 0 && self.may_take(group.1, fewest_on_host)
        };
        let crowd = |group: &NodeGroup| {
            let of_domains = self
                .domains
                .iter()
                .filter_map(|(key, counts)| counts.get(group.labels.get(key)?));
            of_domains.sum::<u64>() + self.own(group)
        };
        self.able
            .iter()
            .enumerate()
            .filter(allowed)
            .min_by_key(|(_, group)| {
                (
                    crowd(group),
                    std::cmp::Reverse(emptiness(group, &self.requirements.requests)),
                )
            })
            .map(|(index, _)| index)
    }

    fn may_take(&self, group: &NodeGroup, fewest_on_host: u64) -> bool {
        let apart = self.requirements.apart.iter().all(|apart| {
            if apart.topology_key == HOSTNAME {
                return self.own(group) == 0;
            }
            // Where the label is missing, nobody shares its value.
            self.counts(&apart.topology_key, group).is_none_or(|(own, _)| own == 0)
        });
        apart
            && self.requirements.spread.iter().all(|spread| {
                let (own, fewest, domains) = if spread.topology_key == HOSTNAME {
                    let domains = self.able.iter().chain(&self.tainted).map(|group| group.count).sum();
                    (self.own(group), fewest_on_host, domains)
                } else {
                    match self.counts(&spread.topology_key, group) {
                        Some((own, counts)) => {
                            let fewest = counts.values().min().copied().unwrap_or_default();
                            (own, fewest, counts.len() as u64)
                        }
                        None => return false,
                    }
                };
                let fewest = if domains < spread.min_domains { 0 } else { fewest };
                own < fewest + spread.max_skew
            })
    }

    fn counts(&self, key: &str, group: &NodeGroup) -> Option<(u64, &BTreeMap<String, u64>)> {
        let (_, counts) = self.domains.iter().find(|(known, _)| known == key)?;
        let own = counts.get(group.labels.get(key)?)?;
        Some((*own, counts))
    }

    /// Puts one on each of so many nodes of a group, which thereby become a group of their own.
    fn put_on(&mut self, index: usize, nodes: u64) {
        let group = &self.able[index];
        let mut taken = NodeGroup {
            count: nodes,
            ..group.clone()
        };
        taken.free.add(&self.requirements.requests, -1);
        *taken.pods.entry(self.workload).or_default() += 1;
        for (key, counts) in &mut self.domains {
            if let Some(value) = group.labels.get(key) {
                *counts.entry(value.clone()).or_default() += nodes;
            }
        }
        if self.able[index].count > nodes {
            self.able[index].count -= nodes;
            self.join(taken);
        } else {
            self.able.swap_remove(index);
            self.join(taken);
        }
    }

    /// Adds a group to its like, so that their number stays small.
    fn join(&mut self, taken: NodeGroup) {
        let alike = |group: &&mut NodeGroup| {
            group.free == taken.free
                && group.pods == taken.pods
                && group.labels == taken.labels
                && group.taints == taken.taints
                && group.allocatable == taken.allocatable
        };
        match self.able.iter_mut().find(alike) {
            Some(group) => group.count += taken.count,
            None => self.able.push(taken),
        }
    }
}

/// What part a node has left, in thousandths: the mean over processor and memory, as the scheduler's LeastAllocated
/// score has it, of whatever of the two is asked for.
fn emptiness(group: &NodeGroup, asked: &Resources) -> i64 {
    let part = |name: &str| {
        let all = group.allocatable.of(name).max(1);
        (group.free.of(name) - asked.of(name)).max(0).saturating_mul(1_000) / all
    };
    i64::midpoint(part("cpu"), part("memory"))
}

pub(super) fn put(nodes: &mut Nodes, requirements: &PodRequirements, count: u64, workload: Option<usize>) -> u64 {
    if requirements.apart.is_empty() && requirements.spread.is_empty() && workload.is_none() {
        return put_apart(nodes, requirements, count);
    }
    let mut field = Field::new(nodes, requirements, workload);
    let put = field.fill(count);
    *nodes = field.into_nodes();
    put
}

fn put_apart(nodes: &mut Nodes, requirements: &PodRequirements, count: u64) -> u64 {
    let is_able = |group: &NodeGroup| requirements.unmet(&group.labels, &group.taints).is_none();
    let mut able: Vec<bool> = nodes.0.iter().map(is_able).collect();
    let mut put = 0;
    while put < count {
        let open = nodes.0.iter().enumerate();
        let open = open.filter(|(index, group)| able[*index] && group.free.times(&requirements.requests) > 0);
        let best =
            open.max_by_key(|(index, group)| (emptiness(group, &requirements.requests), std::cmp::Reverse(*index)));
        let Some((index, _)) = best else { break };
        // Each of a group takes one at once: they are equally empty.
        let group = &mut nodes.0[index];
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
            nodes.0.push(group);
        }
    }
    put
}
