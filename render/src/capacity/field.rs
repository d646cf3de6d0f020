//! Nodes in the form in which they are counted and filled.
//!
//! Thousands of pods are counted against thousands of clusters. So what never changes of a node (labels, taints, size) is
//! said once per kind of node and shared by all copies, and what it has left is a row of numbers in one order of names.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::Arc;

use super::nodes::{NodeGroup, Nodes};
use super::requirements::PodRequirements;
use super::resources::Resources;
use crate::model::Taint;

/// The nodes of a cluster while pods are counted and put.
#[derive(Clone, Debug)]
pub struct Field {
    layout: Arc<Layout>,
    pub(super) groups: Vec<Group>,
    /// What a node of each group has left, row by row.
    free: Vec<i64>,
}

/// What of nodes pods do not change. Clusters of one make have the same.
#[derive(Debug)]
pub struct Layout {
    /// Every resource that a node names, sorted: the columns of a row.
    names: Vec<String>,
    /// The columns of what makes a node empty.
    rated: [Option<usize>; 2],
    /// Sorted, so that their places sort as they do.
    kinds: Vec<Kind>,
}

/// What nodes have in common that pods do not change.
#[derive(Debug)]
struct Kind {
    labels: BTreeMap<String, String>,
    taints: Vec<Taint>,
    allocatable: Resources,
    /// What of it makes a node empty.
    all: [i64; 2],
}

/// Nodes that are alike.
#[derive(Clone, Debug)]
pub(super) struct Group {
    pub(super) kind: usize,
    pub(super) count: u64,
    /// What part is left of what makes a node empty, in thousandths.
    parts: [i64; 2],
    /// Index of a workload → how many of its pods each has.
    pub(super) pods: Arc<BTreeMap<usize, u64>>,
}

/// What a pod asks for of nodes of one layout, worked out once for all clusters that have it.
#[derive(Debug)]
pub struct Demand {
    pub(super) asked: Asked,
    /// What a pod takes of each kind of node, in thousandths of processor and memory: at least so much.
    pub(super) takes: Vec<[i64; 2]>,
    /// Why the nodes of each kind cannot take a pod, whatever they have left; `None` where they can.
    pub(super) unmet: Vec<Option<&'static str>>,
}

/// What one pod asks for, by column.
#[derive(Clone, Debug)]
pub(super) struct Asked {
    /// Whether no node has something of it.
    nowhere: bool,
    columns: Vec<(usize, i64)>,
    /// What of it makes a node less empty.
    rated: [i64; 2],
}

/// The resources that make a node empty.
const RATED: [&str; 2] = ["cpu", "memory"];

impl Field {
    /// These nodes, group by group in the same order.
    pub fn of(nodes: &Nodes) -> Self {
        Self::under(nodes, &[])
    }

    /// The same under one of these layouts, where that is theirs.
    pub fn under(nodes: &Nodes, layouts: &[Arc<Layout>]) -> Self {
        let resources = nodes.0.iter().flat_map(|group| [&group.free, &group.allocatable]);
        let names: BTreeSet<&str> = resources
            .flat_map(|amounts| amounts.iter().map(|(name, _)| name))
            .collect();
        let mut kinds: Vec<_> = nodes.0.iter().map(unchanging).collect();
        kinds.sort_unstable();
        kinds.dedup();
        let is_theirs = |layout: &&Arc<Layout>| layout.is_of(&names, &kinds);
        let layout = layouts.iter().find(is_theirs).map(Arc::clone);
        let mut field = Self {
            layout: layout.unwrap_or_else(|| Arc::new(Layout::of(&names, &kinds))),
            groups: Vec::with_capacity(nodes.0.len()),
            free: Vec::with_capacity(nodes.0.len() * names.len()),
        };
        let none = Arc::default();
        for group in &nodes.0 {
            let row = names.iter().map(|name| group.free.of(name));
            field.free.extend(row);
            field.groups.push(Group {
                kind: kinds.partition_point(|kind| *kind < unchanging(group)),
                count: group.count,
                parts: RATED.map(|name| part(group.free.of(name), group.allocatable.of(name))),
                pods: match group.pods.is_empty() {
                    true => Arc::clone(&none),
                    false => Arc::new(group.pods.clone()),
                },
            });
        }
        field
    }

    /// What pods do not change of it.
    pub fn layout(&self) -> &Arc<Layout> {
        &self.layout
    }

    /// What a pod asks for of nodes like these.
    pub fn demand(&self, requirements: &PodRequirements) -> Demand {
        let asked = self.asked(&requirements.requests);
        Demand {
            takes: self.takes(&asked),
            unmet: self.unmet(requirements),
            asked,
        }
    }

    /// As they are reported.
    pub fn nodes(&self) -> Nodes {
        let group = |(index, group): (usize, &Group)| {
            let kind = &self.layout.kinds[group.kind];
            let mut free = Resources::default();
            for (name, amount) in self.layout.names.iter().zip(self.row(index)) {
                if *amount != 0 || kind.allocatable.names(name) {
                    free.set(name, *amount);
                }
            }
            NodeGroup {
                count: group.count,
                labels: kind.labels.clone(),
                taints: kind.taints.clone(),
                allocatable: kind.allocatable.clone(),
                free,
                pods: group.pods.as_ref().clone(),
            }
        };
        Nodes(self.groups.iter().enumerate().map(group).collect())
    }

    /// Takes a workload's own pods away, as if they were to be placed anew. `each` is what one of them asks for.
    pub fn without(&self, workload: usize, each: &Resources) -> Self {
        let mut field = self.naming(each);
        let freed = field.asked(each);
        for index in 0..field.groups.len() {
            let pods = &mut field.groups[index].pods;
            if let Some(own) = pods.get(&workload).copied() {
                Arc::make_mut(pods).remove(&workload);
                field.change(index, &freed, i64::try_from(own).unwrap_or(i64::MAX));
            }
        }
        field.grouped()
    }

    /// What one pod asks for, in this field's columns.
    fn asked(&self, requests: &Resources) -> Asked {
        let mut asked = Asked {
            nowhere: false,
            columns: Vec::with_capacity(self.layout.names.len()),
            rated: RATED.map(|name| requests.of(name)),
        };
        for (name, amount) in requests.iter().filter(|(_, amount)| *amount > 0) {
            match self.column(name) {
                Some(column) => asked.columns.push((column, amount)),
                None => asked.nowhere = true,
            }
        }
        asked
    }

    fn unmet(&self, requirements: &PodRequirements) -> Vec<Option<&'static str>> {
        let unmet = |kind: &Kind| requirements.unmet(&kind.labels, &kind.taints);
        self.layout.kinds.iter().map(unmet).collect()
    }

    /// [`Demand::unmet`] with taints left out.
    pub(super) fn unmet_but_for_taints(&self, requirements: &PodRequirements) -> Vec<Option<&'static str>> {
        self.layout
            .kinds
            .iter()
            .map(|kind| requirements.unmet(&kind.labels, &[]))
            .collect()
    }

    pub(super) fn labels(&self, group: &Group) -> &BTreeMap<String, String> {
        &self.layout.kinds[group.kind].labels
    }

    /// How many pods each node of a group has room for: the scarcest resource decides.
    pub(super) fn times(&self, index: usize, asked: &Asked) -> u64 {
        if asked.nowhere {
            return 0;
        }
        let row = self.row(index);
        let mut times = None;
        for (column, amount) in &asked.columns {
            // A product is far cheaper than a quotient, and mostly tells that another resource is scarcer.
            if times.is_none_or(|times| amount.saturating_mul(times) > row[*column]) {
                times = Some((row[*column] / amount).max(0));
            }
        }
        times.map_or(u64::MAX, |times| times.unsigned_abs())
    }

    /// Whether each node of a group has room for one.
    pub(super) fn fits(&self, index: usize, asked: &Asked) -> bool {
        let row = self.row(index);
        !asked.nowhere && asked.columns.iter().all(|(column, amount)| row[*column] >= *amount)
    }

    fn takes(&self, asked: &Asked) -> Vec<[i64; 2]> {
        let takes = |kind: &Kind| std::array::from_fn(|rated| part(asked.rated[rated], kind.all[rated]));
        self.layout.kinds.iter().map(takes).collect()
    }

    /// A bound of [`Self::emptiness`] that needs no quotient: what a part loses, rounded down, it loses at least.
    pub(super) fn emptiness_at_most(&self, index: usize, takes: &[[i64; 2]]) -> i64 {
        let Group { kind, parts, .. } = &self.groups[index];
        let [cpu, memory] = std::array::from_fn(|rated| (parts[rated] - takes[*kind][rated]).max(0));
        i64::midpoint(cpu, memory)
    }

    /// What part a node would have left with one more, in thousandths: the mean over processor and memory, as the
    /// scheduler's LeastAllocated score has it, of whatever of the two is asked for.
    pub(super) fn emptiness(&self, index: usize, asked: &Asked) -> i64 {
        let all = self.layout.kinds[self.groups[index].kind].all;
        let left = |rated: usize| self.rated(index, rated).saturating_sub(asked.rated[rated]);
        let [cpu, memory] = std::array::from_fn(|rated| part(left(rated), all[rated]));
        i64::midpoint(cpu, memory)
    }

    /// Puts one pod on each of so many nodes of a group, and gives the place of those that have it now.
    pub(super) fn put_on(&mut self, index: usize, nodes: u64, asked: &Asked) -> usize {
        let place = if self.groups[index].count > nodes {
            self.groups[index].count -= nodes;
            let taken = Group {
                count: nodes,
                ..self.groups[index].clone()
            };
            self.groups.push(taken);
            self.free.extend_from_within(self.columns(index));
            self.groups.len() - 1
        } else {
            index
        };
        self.change(place, asked, -1);
        place
    }

    /// The groups of which this holds, in the same order.
    pub(super) fn only(&self, holds: impl Fn(&Group) -> bool) -> Self {
        let mut field = self.empty();
        for index in (0..self.groups.len()).filter(|index| holds(&self.groups[*index])) {
            field.push(self.groups[index].clone(), self.row(index));
        }
        field
    }

    /// Adds the groups of another that was made from the same nodes.
    pub(super) fn append(&mut self, other: &Self) {
        self.groups.extend_from_slice(&other.groups);
        self.free.extend_from_slice(&other.free);
    }

    /// Puts a group with its like, so that their number stays small.
    pub(super) fn join(&mut self, place: usize) {
        let row = self.row(place).to_vec();
        let group = self.groups.swap_remove(place);
        let (freed, last) = (self.columns(place), self.columns(self.groups.len()));
        self.free.copy_within(last.clone(), freed.start);
        self.free.truncate(last.start);
        let is_like = |index: &usize| {
            let known = &self.groups[*index];
            known.kind == group.kind && self.row(*index) == row && known.pods == group.pods
        };
        match (0..self.groups.len()).find(is_like) {
            Some(like) => self.groups[like].count += group.count,
            None => self.push(group, &row),
        }
    }

    /// Groups that are alike together; sorted, so that the order in which they came does not matter.
    pub(super) fn grouped(&self) -> Self {
        let mut order: Vec<usize> = (0..self.groups.len()).collect();
        let key = |index: &usize| (self.groups[*index].kind, self.row(*index), &self.groups[*index].pods);
        order.sort_by(|a, b| key(a).cmp(&key(b)));
        let mut field = self.empty();
        let mut last = None;
        for index in order {
            let group = &self.groups[index];
            match field.groups.last_mut() {
                Some(like) if last.is_some_and(|last| key(&last) == key(&index)) => like.count += group.count,
                _ => field.push(group.clone(), self.row(index)),
            }
            last = Some(index);
        }
        field
    }

    fn empty(&self) -> Self {
        Self {
            layout: Arc::clone(&self.layout),
            groups: Vec::with_capacity(self.groups.len()),
            free: Vec::with_capacity(self.free.len()),
        }
    }

    fn push(&mut self, group: Group, row: &[i64]) {
        self.groups.push(group);
        self.free.extend_from_slice(row);
    }

    /// With a column for everything that these name.
    fn naming(&self, resources: &Resources) -> Self {
        if resources.iter().all(|(name, _)| self.column(name).is_some()) {
            return self.clone();
        }
        let mut nodes = self.nodes();
        for group in &mut nodes.0 {
            group.free.add(resources, 0);
        }
        Self::of(&nodes)
    }

    fn columns(&self, index: usize) -> Range<usize> {
        let width = self.layout.names.len();
        index * width..(index + 1) * width
    }

    fn row(&self, index: usize) -> &[i64] {
        &self.free[self.columns(index)]
    }

    fn column(&self, name: &str) -> Option<usize> {
        self.layout
            .names
            .binary_search_by(|known| known.as_str().cmp(name))
            .ok()
    }

    fn rated(&self, index: usize, rated: usize) -> i64 {
        self.layout.rated[rated].map_or(0, |column| self.row(index)[column])
    }

    /// Adds so many times what a pod asks for to what a group has left.
    fn change(&mut self, index: usize, asked: &Asked, times: i64) {
        let start = self.columns(index).start;
        for (column, amount) in &asked.columns {
            let free = &mut self.free[start + column];
            *free = free.saturating_add(amount.saturating_mul(times));
        }
        let all = self.layout.kinds[self.groups[index].kind].all;
        self.groups[index].parts = std::array::from_fn(|rated| part(self.rated(index, rated), all[rated]));
    }
}

impl Layout {
    fn of(names: &BTreeSet<&str>, kinds: &[Unchanging<'_>]) -> Self {
        let kind = |(labels, taints, allocatable): &Unchanging<'_>| Kind {
            labels: (*labels).clone(),
            taints: (*taints).clone(),
            allocatable: (*allocatable).clone(),
            all: RATED.map(|name| allocatable.of(name)),
        };
        Self {
            names: names.iter().map(|name| (*name).to_owned()).collect(),
            rated: RATED.map(|rated| names.iter().position(|name| *name == rated)),
            kinds: kinds.iter().map(kind).collect(),
        }
    }

    fn is_of(&self, names: &BTreeSet<&str>, kinds: &[Unchanging<'_>]) -> bool {
        let known = self.kinds.iter();
        let known = known.map(|kind| (&kind.labels, &kind.taints, &kind.allocatable));
        self.names.iter().eq(names.iter()) && known.eq(kinds.iter().copied())
    }
}

/// What of a node pods do not change: labels, taints and size.
type Unchanging<'a> = (&'a BTreeMap<String, String>, &'a Vec<Taint>, &'a Resources);

fn unchanging(group: &NodeGroup) -> Unchanging<'_> {
    (&group.labels, &group.taints, &group.allocatable)
}

/// An amount as a part of all, in thousandths.
fn part(amount: i64, all: i64) -> i64 {
    amount.max(0).saturating_mul(1_000) / all.max(1)
}
