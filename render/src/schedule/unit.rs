//! One unit's placement.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::digest::Digest;
use crate::finding::Finding;
use crate::fleet::Unit;
use crate::model::{Cluster, SchedulingPolicy, Subscription};
use crate::name::{ClusterName, ObjectKey};
use crate::predictor::Question;
use crate::published::{Lost, UnitPlacement, Unplaced};
use crate::schedule::begin::{self, Begin};
use crate::schedule::candidates::{Search, search};
use crate::schedule::choose::{ChoiceRule, LeftOut};
use crate::schedule::context::Context;
use crate::schedule::desired::{Divided, desired_of};
use crate::schedule::kept::kept;
use crate::schedule::ledger::{Ledger, Workloads};
use crate::schedule::narrowed::narrow;
use crate::schedule::parting::{leave_whole, note_lost};
use crate::schedule::{Assignment, divided, inputs, trouble};

/// One unit's placement.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Scheduled {
    /// Cluster → its share.
    pub assignments: BTreeMap<ClusterName, Assignment>,
    /// Divided objects of which some replicas found no place.
    pub unplaced: BTreeMap<ObjectKey, Unplaced>,
    /// Clusters that match and are not taken: why.
    pub left_out: BTreeMap<ClusterName, LeftOut>,
    /// What is wrong.
    pub findings: Vec<Finding>,
    /// Whether the room that clusters have decided something, so that another report may decide otherwise.
    pub by_room: bool,
    /// What predictors are to say of it, whether they have or not.
    pub questions: Vec<Question>,
    /// Clusters that were silent and lost their share to others.
    pub lost: BTreeMap<ClusterName, Lost>,
    /// When time alone may decide otherwise, in seconds since 1970.
    pub again_at: Option<i64>,
    /// Over what the unit asks for, where its placement is a choice.
    pub asks: Option<Digest>,
    /// Whether it was placed anew because a commit asked for it.
    pub rebalanced: bool,
}

/// What a unit's objects ask for on a cluster, after the overrides that meet it there.
pub trait Inventory {
    /// Each object that has replicas.
    fn workloads(&self, cluster: &Cluster) -> Arc<Workloads>;
}

/// The same on every cluster.
impl Inventory for Arc<Workloads> {
    fn workloads(&self, _: &Cluster) -> Arc<Workloads> {
        Arc::clone(self)
    }
}

/// Places one unit, whether it is blocked or not. What it is given is deducted from the ledger.
///
/// With no feasible cluster the last placement stays and a Warning says so; an Error where clusters have the unit and
/// no subscriber matches any. An Error finding names the unit: its last placement is returned then too, and its
/// content has to stay as well.
pub fn schedule_unit(context: &Context<'_>, ledger: &mut Ledger, inventory: &dyn Inventory, unit: &Unit) -> Scheduled {
    let subscription = unit.subscription.as_ref();
    let previous = context.previous.get(&subscription.key);
    let stays = |desired: &BTreeMap<ObjectKey, u64>, reason: &str, findings| Scheduled {
        assignments: kept(context, subscription, desired, previous, reason),
        unplaced: previous.map(|unit| unit.unplaced.clone()).unwrap_or_default(),
        left_out: BTreeMap::new(),
        findings,
        by_room: false,
        questions: Vec::new(),
        lost: previous.map(|unit| unit.lost.clone()).unwrap_or_default(),
        again_at: None,
        asks: previous.and_then(|unit| unit.asks),
        rebalanced: false,
    };
    let desired = match desired_of(unit, &Divided::of(subscription)) {
        Ok(desired) => desired,
        Err(findings) => return stays(&BTreeMap::new(), HELD, findings),
    };
    let asks = inputs::asks(unit, &desired, context.fleet);
    let begin = Begin::of(context, &subscription.key, asks.as_ref());
    let is_new = begin::is_new(context, &subscription.key, asks.as_ref(), &desired);
    // An older version's placement says only how many were asked for.
    let asks_anew = match previous.and_then(|unit| unit.asks) {
        Some(_) => is_new,
        None => has_other_numbers(&desired, previous),
    };
    // Who was lost is forgotten where the unit is placed anew.
    let anew = asks_anew || matches!(begin, Begin::Anew);
    let mut search = search(context.sight(subscription, previous, anew));
    if let Some(until) = context.pause(previous) {
        return Scheduled {
            by_room: divided::asks_for_room(subscription, &desired, begin, previous, &search),
            again_at: Some(until),
            ..stays(&desired, PAUSED, Vec::new())
        };
    }
    search.left_out = shunned(&search);
    if search.chosen.is_empty() {
        // A fleet that is begun has no cluster yet: nothing is wrong with any Subscription.
        let begins = context.fleet.clusters.is_empty() && previous.is_none_or(|unit| unit.clusters.is_empty());
        let trouble = || trouble::no_feasible_cluster(context.fleet, subscription, &search, previous);
        let findings = (!begins).then(trouble).into_iter().collect();
        return stays(&desired, NO_CLUSTER, findings);
    }
    let asks_the_same = !anew && previous.is_some_and(|unit| unit.asks.is_some() && unit.asks == asks);
    if let Err(found) = narrow(subscription, begin, asks_the_same, &mut search) {
        let is_placed = previous.is_some_and(|unit| !unit.clusters.is_empty());
        return stays(
            &desired,
            TOO_FEW,
            vec![trouble::too_few(subscription, found, is_placed)],
        );
    }
    if subscription.placing.policy == SchedulingPolicy::Clusternet {
        leave_newcomers_out(subscription, &desired, previous, &mut search);
    }
    if divided::lacks_weight(subscription, &search) {
        search.lose_nobody();
    }
    let stay_whole = leave_whole(subscription, previous, &mut search);
    if context.reports.waiting && divided::asks_for_room(subscription, &desired, begin, previous, &search) {
        return Scheduled {
            by_room: true,
            ..stays(&desired, WAITS, Vec::new())
        };
    }
    let unit = divided::Asked {
        subscription,
        desired: &desired,
        begin,
        is_new,
    };
    match divided::assign(context, ledger, inventory, unit, &search) {
        Ok(mut scheduled) => {
            note_lost(
                &mut scheduled,
                &search,
                (subscription, previous, anew),
                (&context.silence, context.now),
            );
            let taken = &scheduled.assignments;
            scheduled.left_out.retain(|name, _| !taken.contains_key(name));
            scheduled.findings.extend(stay_whole);
            let leaving = search.chosen.values().filter_map(|chosen| chosen.leaves_at);
            scheduled.again_at = leaving.filter(|at| *at > context.now).min();
            scheduled.asks = asks;
            scheduled.rebalanced = begin.is_rebalance();
            scheduled
        }
        Err(finding) => stays(&desired, HELD, vec![*finding]),
    }
}

/// Clusters that get nothing, since they were lost or are silent: why.
fn shunned(search: &Search<'_>) -> BTreeMap<ClusterName, LeftOut> {
    let by = ChoiceRule::Failover;
    let shunned = search.shunned.iter().filter_map(|(name, chosen)| {
        let why = chosen.still.as_ref()?.why.clone();
        Some(((*name).clone(), LeftOut { by, why }))
    });
    let lost = search.parting.iter().filter(|(_, parting)| parting.lost.is_some());
    let lost = lost.map(|(name, parting)| {
        let why = format!("it {}, and others have what it had", parting.why);
        ((*name).clone(), LeftOut { by, why })
    });
    shunned.chain(lost).collect()
}

/// Whether other numbers of replicas are wanted than were placed.
fn has_other_numbers(desired: &BTreeMap<ObjectKey, u64>, previous: Option<&UnitPlacement>) -> bool {
    let placed = |object: &ObjectKey| {
        let placements = previous.into_iter().flat_map(|unit| unit.clusters.values());
        let placed: u64 = placements.filter_map(|placement| placement.replicas.get(object)).sum();
        let unplaced = previous.and_then(|unit| unit.unplaced.get(object));
        placed + unplaced.map_or(0, |unplaced| unplaced.replicas)
    };
    desired.iter().any(|(object, wanted)| placed(object) != *wanted)
}

const NO_CLUSTER: &str = "kept where it was, since no cluster is feasible now";
const TOO_FEW: &str = "kept where it was, since fewer clusters match than are asked for";
const PAUSED: &str = "kept as it was, since it was moved less than a minute ago";
const WAITS: &str = "kept as it was, until clusters have said what room they have";
const HELD: &str = "kept as it was, since the unit has an error";

/// Clusternet divides by room only what is to be added: while nothing is, no further cluster gets the unit.
fn leave_newcomers_out(
    subscription: &Subscription,
    desired: &BTreeMap<ObjectKey, u64>,
    previous: Option<&UnitPlacement>,
    search: &mut Search<'_>,
) {
    let Some(previous) = previous.filter(|_| subscription.scheduling.is_by_room() && !desired.is_empty()) else {
        return;
    };
    let has = |object: &ObjectKey| -> u64 {
        let placements = search.chosen.keys().filter_map(|name| previous.clusters.get(*name));
        placements.filter_map(|placement| placement.replicas.get(object)).sum()
    };
    let is_added = desired.iter().any(|(object, wanted)| has(object) < *wanted);
    let has_any = search.chosen.keys().any(|name| previous.clusters.contains_key(*name));
    if is_added || !has_any {
        return;
    }
    search.chosen.retain(|name, _| {
        let is_there = previous.clusters.contains_key(*name);
        if !is_there {
            let left_out = LeftOut {
                by: ChoiceRule::Newcomer,
                why: "Clusternet's arithmetic takes further clusters only when replicas are added".to_owned(),
            };
            search.left_out.insert((*name).clone(), left_out);
        }
        is_there
    });
}
