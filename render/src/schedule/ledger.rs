//! The room that is left in each cluster, after what was promised there since it reported.

mod demands;
mod given;
mod lacking;

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::by_object::ByObject;
use crate::capacity::{Capacity, Field, Fit, PodRequirements, Resources, Workload, fit_by};
use crate::fleet::Fleet;
use crate::model::Cluster;
use crate::name::{ClusterName, ObjectKey, UnitKey};
use crate::published::{Placement, UnitPlacement};
use crate::schedule::Reports;
use crate::schedule::desired::workloads_of;
use crate::schedule::predictions::Promised;
use crate::shared::Shared;

use demands::Demands;

pub(super) use given::{Given, Gone, may_take};

/// Each object of a unit that has replicas.
pub type Workloads = BTreeMap<ObjectKey, Workload>;

/// The room in each cluster while units are placed one after the other.
///
/// What a cluster reports includes the replicas of the sequence that it names. Whatever placements say beyond that is
/// deducted here: decisions that it has not heard of yet, and those of this very plan.
#[derive(Debug, Default)]
pub struct Ledger {
    accounts: Accounts,
    demands: Demands,
    /// What this plan gives without asking for room.
    planned: Vec<(UnitKey, UnitPlacement)>,
    /// What this plan gives of the room that predictors see.
    pub(super) predicted: Promised,
    /// Unit → what it has to give to a higher priority.
    given: BTreeMap<UnitKey, Vec<Given>>,
}

#[derive(Clone, Debug)]
struct Account {
    report: Arc<Capacity>,
    nodes: Field,
    /// Replicas beyond the report that found a place on `nodes`, of decisions before this plan.
    newer: BTreeMap<UnitKey, ByObject>,
    /// How many of the ledger's `planned` are in it.
    noted: usize,
    /// Units that may take the room of a lower priority and have replicas here that have no node yet, with their
    /// priority.
    waiting: BTreeMap<UnitKey, i32>,
    /// Replicas beyond the report that found no place.
    lacking: BTreeMap<UnitKey, ByObject>,
}

/// Whose replicas are asked about.
#[derive(Clone, Copy, Debug)]
pub(super) struct Asking<'a> {
    pub(super) unit: &'a UnitKey,
    pub(super) object: &'a ObjectKey,
    pub(super) requirements: &'a Shared<PodRequirements>,
}

/// What a ledger is opened with.
#[derive(Clone, Copy, Debug)]
pub(super) struct Books<'a> {
    /// What clusters said.
    pub(super) reports: &'a Reports,
    /// What was placed before.
    pub(super) previous: &'a BTreeMap<UnitKey, UnitPlacement>,
    /// What objects ask for, before overrides.
    pub(super) fleet: &'a Fleet,
}

impl Ledger {
    /// How many replicas have room in a cluster, those that it has included, and what was counted.
    pub(super) fn room(
        &mut self,
        books: &Books<'_>,
        cluster: &Cluster,
        asking: Asking<'_>,
        most: u64,
    ) -> Result<Fit, String> {
        let opened = self.opened(books, cluster)?;
        let passed_on = self.passed_on(books, &cluster.name, opened, asking);
        let account = &self.accounts.list[opened].1;
        let mut counted = |field: &Field, workload| {
            let demand = self.demands.of(field, asking.requirements);
            fit_by(field, (asking.requirements, &demand), workload, most)
        };
        let place = account.report.workload(asking.unit, asking.object);
        // Its own pods make room for themselves: those that are there, and those that are on their way. Of what is to
        // go already, those that wait there have theirs first.
        let mut answer = match place {
            Some(place) => {
                let requests = &account.report.workloads[place].requests;
                let nodes = passed_on.as_ref().unwrap_or(&account.nodes).without(place, requests);
                counted(&nodes, Some(place))
            }
            None => counted(&account.nodes, None),
        };
        let newer = account.newer.get(asking.unit);
        let newer = newer.and_then(|newer| newer.get(asking.object));
        answer.replicas = answer.replicas.saturating_add(newer.copied().unwrap_or_default());
        if let Some(max) = &cluster.elastic {
            answer.replicas = answer
                .replicas
                .saturating_add(to_grow(account, max, asking.requirements))
                .min(most);
        }
        Ok(answer)
    }

    /// Notes what a unit is given without asking for room.
    pub(crate) fn note(&mut self, unit: &UnitKey, placement: &UnitPlacement) {
        self.planned.push((unit.clone(), placement.clone()));
    }

    /// Deducts replicas that were just promised.
    pub(super) fn promise(&mut self, books: &Books<'_>, cluster: &Cluster, asking: Asking<'_>, more: u64) {
        if more == 0 {
            return;
        }
        if let Ok(opened) = self.opened(books, cluster) {
            self.accounts.list[opened].1.put(&mut self.demands, asking, more);
        }
    }

    fn account(&mut self, books: &Books<'_>, cluster: &Cluster) -> Result<&mut Account, String> {
        let opened = self.opened(books, cluster)?;
        Ok(&mut self.accounts.list[opened].1)
    }

    /// The place of a cluster's account, with all that was noted until now deducted.
    fn opened(&mut self, books: &Books<'_>, cluster: &Cluster) -> Result<usize, String> {
        let place = match self.accounts.place(&cluster.name) {
            Ok(place) => place,
            Err(place) => {
                let report = books.reports.of(&cluster.name)?;
                let account = Account::open(books, &cluster.name, &report.capacity, &mut self.demands);
                self.accounts.list.insert(place, (cluster.name.clone(), account));
                place
            }
        };
        let (_, account) = &mut self.accounts.list[place];
        for (unit, placement) in &self.planned[account.noted..] {
            let older = books.previous.get(unit);
            account.deduct(books, &mut self.demands, &cluster.name, (unit, placement), older);
        }
        account.noted = self.planned.len();
        Ok(place)
    }
}

/// Accounts by the name of their cluster, sorted.
#[derive(Debug, Default)]
struct Accounts {
    list: Vec<(ClusterName, Account)>,
    /// Where the last one was found.
    last: usize,
}

impl Accounts {
    /// Where a cluster's account is, or belongs. Clusters are asked for in the order of their names: the next one is
    /// looked at first.
    fn place(&mut self, cluster: &ClusterName) -> Result<usize, usize> {
        // Where a name is not the very same, it is looked for.
        let mut near = [self.last + 1, self.last].into_iter();
        let near = near.find(|place| self.list.get(*place).is_some_and(|(name, _)| name.is_same(cluster)));
        let place = match near {
            Some(place) => Ok(place),
            None => self.list.binary_search_by(|(name, _)| name.cmp(cluster)),
        };
        self.last = place.unwrap_or_else(|place| place);
        place
    }
}

impl Account {
    fn open(books: &Books<'_>, cluster: &ClusterName, report: &Arc<Capacity>, demands: &mut Demands) -> Self {
        let mut account = Self {
            report: Arc::clone(report),
            nodes: demands.field(&report.nodes),
            newer: BTreeMap::new(),
            noted: 0,
            waiting: BTreeMap::new(),
            lacking: BTreeMap::new(),
        };
        account.note_waiting(books.fleet);
        if books.reports.sequence.is_none() || report.sequence < books.reports.sequence {
            for (unit, placement) in books.previous {
                account.deduct(books, demands, cluster, (unit, placement), None);
            }
        }
        account
    }

    /// Deducts what a placement gives the cluster beyond what its report has counted, and beyond an older placement
    /// that was deducted before.
    fn deduct(
        &mut self,
        books: &Books<'_>,
        demands: &mut Demands,
        cluster: &ClusterName,
        (unit, placement): (&UnitKey, &UnitPlacement),
        older: Option<&UnitPlacement>,
    ) {
        let (Some(placement), Some(declared)) = (placement.clusters.get(cluster), books.fleet.units.get(unit)) else {
            return;
        };
        let older = older.and_then(|older| older.clusters.get(cluster));
        for (object, workload) in workloads_of(declared).iter() {
            let replicas = |placement: &Placement| placement.replicas.get(object).copied().unwrap_or(workload.replicas);
            let included = self.report.workload(unit, object);
            let included = included.map_or(0, |place| self.report.workloads[place].replicas);
            let known = included.max(older.map_or(0, replicas));
            let asking = Asking {
                unit,
                object,
                requirements: &workload.requirements,
            };
            let more = replicas(placement).saturating_sub(known);
            let put = self.put(demands, asking, more);
            if put < more {
                self.waits(&declared.subscription, books.fleet);
                add(&mut self.lacking, unit, object, more - put);
            }
            if put > 0 {
                add(&mut self.newer, unit, object, put);
            }
        }
    }

    /// Those that find no node wait there for one, and take nothing from others meanwhile.
    fn put(&mut self, demands: &mut Demands, asking: Asking<'_>, more: u64) -> u64 {
        if more == 0 {
            return 0;
        }
        let demand = demands.of(&self.nodes, asking.requirements);
        self.nodes.put_by((asking.requirements, &demand), more, None)
    }
}

fn add(to: &mut BTreeMap<UnitKey, ByObject>, unit: &UnitKey, object: &ObjectKey, replicas: u64) {
    let of_unit = to.entry(unit.clone()).or_default();
    let before = of_unit.get(object).copied().unwrap_or_default();
    of_unit.insert(object.clone(), before.saturating_add(replicas));
}

/// How many more an elastic cluster has room for once it has grown.
fn to_grow(account: &Account, max: &Resources, requirements: &PodRequirements) -> u64 {
    let mut left = max.clone();
    left.add(&account.report.nodes.allocatable(), -1);
    let named = requirements
        .requests
        .iter()
        .filter(|(name, _)| max.iter().any(|(known, _)| known == *name));
    // What the cluster's maximum does not name, new nodes bring along.
    let asked = named.fold(Resources::default(), |asked, (name, amount)| asked.with(name, amount));
    if asked.is_empty() { 0 } else { left.times(&asked) }
}
