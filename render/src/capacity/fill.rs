//! Pods put on nodes one by one, as the scheduler of a cluster does.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::HOSTNAME;
use super::field::{Asked, Demand, Field, Group};
use super::requirements::PodRequirements;

impl Field {
    /// Puts pods where the scheduler of the cluster would, one after the other on the node that is emptiest then, and
    /// says how many found a place. `workload` is marked there.
    pub fn put(&mut self, requirements: &PodRequirements, count: u64, workload: Option<usize>) -> u64 {
        self.put_by((requirements, &self.demand(requirements)), count, workload)
    }

    /// The same, where it was worked out what they ask for of nodes like these.
    pub fn put_by(
        &mut self,
        (requirements, demand): (&PodRequirements, &Demand),
        count: u64,
        workload: Option<usize>,
    ) -> u64 {
        if requirements.is_free() && workload.is_none() {
            return self.put_freely(demand, count);
        }
        let mut filling = Filling::new(self, (requirements, demand), workload);
        let put = filling.fill(count);
        *self = filling.into_field();
        put
    }

    /// As [`Self::put`] of pods that are nothing to one another and are not marked.
    fn put_freely(&mut self, demand: &Demand, count: u64) -> u64 {
        let mut put = 0;
        while put < count {
            let Some(index) = self.emptiest(demand) else {
                break;
            };
            // Each of a group takes one at once: they are equally empty.
            let at_once = self.groups[index].count.min(count - put);
            self.put_on(index, at_once, &demand.asked);
            put += at_once;
        }
        put
    }

    /// The first of the groups that would be emptiest with one more.
    fn emptiest(&self, demand: &Demand) -> Option<usize> {
        let Demand { asked, takes, unmet } = demand;
        let mut best = None;
        let mut most = -1;
        for (index, group) in self.groups.iter().enumerate() {
            let may_be = self.emptiness_at_most(index, takes) > most;
            if may_be && unmet[group.kind].is_none() && self.fits(index, asked) {
                let emptiness = self.emptiness(index, asked);
                if emptiness > most {
                    (best, most) = (Some(index), emptiness);
                }
            }
        }
        best
    }
}

/// The mark of pods while they are put, where no report has a place for their workload.
const NOBODY: usize = usize::MAX;

/// Nodes while pods that keep apart, are spread or are marked are put on them.
pub(super) struct Filling<'a> {
    requirements: &'a PodRequirements,
    asked: &'a Asked,
    workload: usize,
    /// Nodes that cannot take any.
    aside: Field,
    /// Those of them that a taint alone keeps away: as the scheduler has it, they count where pods are spread.
    tainted: Vec<Group>,
    /// The others. Nodes stay in groups as long as they are alike.
    able: Field,
    /// For each constraint by a label other than the host's: value → own pods there.
    domains: Vec<(String, BTreeMap<String, u64>)>,
}

impl<'a> Filling<'a> {
    pub(super) fn new(
        field: &Field,
        (requirements, demand): (&'a PodRequirements, &'a Demand),
        workload: Option<usize>,
    ) -> Self {
        let unmet = &demand.unmet;
        let but_for_taints = field.unmet_but_for_taints(requirements);
        let aside = field.only(|group| unmet[group.kind].is_some());
        let is_tainted = |group: &&Group| but_for_taints[group.kind].is_none();
        let apart = requirements.apart.iter().map(|apart| &apart.topology_key);
        let keys = apart.chain(requirements.spread.iter().map(|spread| &spread.topology_key));
        let mut filling = Self {
            requirements,
            asked: &demand.asked,
            workload: workload.unwrap_or(NOBODY),
            tainted: aside.groups.iter().filter(is_tainted).cloned().collect(),
            aside,
            able: field.only(|group| unmet[group.kind].is_none()),
            domains: Vec::new(),
        };
        for key in keys.filter(|key| *key != HOSTNAME) {
            if filling.domains.iter().all(|(known, _)| known != key) {
                let counts = filling.own_by(key);
                filling.domains.push((key.clone(), counts));
            }
        }
        filling
    }

    /// Puts up to so many, and says how many found a place.
    pub(super) fn fill(&mut self, most: u64) -> u64 {
        let mut put = 0;
        while put < most {
            let Some(index) = self.best() else { break };
            // Where nothing binds pods to one another, a group takes one each at once.
            let at_once = match self.requirements.is_free() {
                true => self.able.groups[index].count.min(most - put),
                false => 1,
            };
            self.put_on(index, at_once);
            put += at_once;
        }
        put
    }

    pub(super) fn into_field(self) -> Field {
        let mut field = self.able;
        field.append(&self.aside);
        for group in field.groups.iter_mut().filter(|group| group.pods.contains_key(&NOBODY)) {
            Arc::make_mut(&mut group.pods).remove(&NOBODY);
        }
        field.grouped()
    }

    /// The groups that count where pods are spread.
    fn counted(&self) -> impl Iterator<Item = &Group> {
        self.able.groups.iter().chain(&self.tainted)
    }

    fn own_by(&self, key: &str) -> BTreeMap<String, u64> {
        let mut counts = BTreeMap::new();
        for group in self.counted() {
            if let Some(value) = self.able.labels(group).get(key) {
                *counts.entry(value.clone()).or_default() += self.own(group) * group.count;
            }
        }
        counts
    }

    fn own(&self, group: &Group) -> u64 {
        group.pods.get(&self.workload).copied().unwrap_or_default()
    }

    /// The group whose nodes may take the next one: the emptiest of those with the fewest of its own.
    fn best(&self) -> Option<usize> {
        let fewest_on_host = self.counted().map(|group| self.own(group)).min().unwrap_or_default();
        let crowd = |group: &Group| {
            let labels = self.able.labels(group);
            let of_domains = self
                .domains
                .iter()
                .filter_map(|(key, counts)| counts.get(labels.get(key)?));
            of_domains.sum::<u64>() + self.own(group)
        };
        self.able
            .groups
            .iter()
            .enumerate()
            .filter(|(index, group)| self.able.fits(*index, self.asked) && self.may_take(group, fewest_on_host))
            .min_by_key(|(index, group)| {
                let emptiness = self.able.emptiness(*index, self.asked);
                (crowd(group), std::cmp::Reverse(emptiness))
            })
            .map(|(index, _)| index)
    }

    fn may_take(&self, group: &Group, fewest_on_host: u64) -> bool {
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
                    let domains = self.counted().map(|group| group.count).sum();
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

    fn counts(&self, key: &str, group: &Group) -> Option<(u64, &BTreeMap<String, u64>)> {
        let (_, counts) = self.domains.iter().find(|(known, _)| known == key)?;
        let own = counts.get(self.able.labels(group).get(key)?)?;
        Some((*own, counts))
    }

    /// Puts one on each of so many nodes of a group, which thereby become a group of their own.
    fn put_on(&mut self, index: usize, nodes: u64) {
        let place = self.able.put_on(index, nodes, self.asked);
        let group = &mut self.able.groups[place];
        *Arc::make_mut(&mut group.pods).entry(self.workload).or_default() += 1;
        let labels = self.able.labels(&self.able.groups[place]);
        for (key, counts) in &mut self.domains {
            if let Some(value) = labels.get(key) {
                *counts.entry(value.clone()).or_default() += nodes;
            }
        }
        self.able.join(place);
    }
}
