//! Room that a unit takes from units of a lower priority.
//!
//! Only where the Subscription and the fleet say so, and only when a commit has the unit ask for something else than
//! before: neither a report nor a plan made again takes anything. The lowest priority gives first, no more than makes
//! room, and never below its `replicas.min`.

use std::collections::{BTreeMap, BTreeSet};

use crate::fleet::Unit;
use crate::model::Cluster;
use crate::name::{ClusterName, ObjectKey, UnitKey};
use crate::schedule::begin::Begin;
use crate::schedule::candidates::search;
use crate::schedule::context::Context;
use crate::schedule::desired::{Divided, desired_of};
use crate::schedule::divided::bounds;
use crate::schedule::ledger::{Asking, Gone, Ledger};
use crate::schedule::narrowed::narrow;

/// Replicas of an object in one cluster that a higher priority may take.
#[derive(Clone, Debug)]
pub(super) struct Spare {
    unit: UnitKey,
    object: ObjectKey,
    priority: i32,
    replicas: u64,
    /// How many of them have no pod on a node: those leave first, and make no room.
    idle: u64,
}

/// Cluster → what may be taken there, the lowest priority first.
pub(super) type Spares = BTreeMap<ClusterName, Vec<Spare>>;

/// What a cluster has to give.
#[derive(Clone, Debug)]
pub(super) struct Offer {
    /// So many replicas find room.
    pub(super) gain: u64,
    /// These leave for it.
    pub(super) gone: Vec<Gone>,
}

impl Offer {
    /// How many replicas leave.
    pub(super) fn cost(&self) -> u64 {
        self.gone.iter().map(|gone| gone.replicas).sum()
    }
}

/// Who may have to give way, of the units that are placed by room after one of priority `below`.
pub(super) fn spares(
    context: &Context<'_>,
    ledger: &mut Ledger,
    clusters: &BTreeSet<ClusterName>,
    below: i32,
) -> Spares {
    let mut spares = Spares::new();
    let is_lower = |unit: &&Unit| {
        let subscription = &unit.subscription;
        subscription.placing.priority < below && subscription.scheduling.is_by_room() && unit.blocked.is_empty()
    };
    for unit in context.fleet.units.values().filter(is_lower) {
        of_unit(context, ledger, clusters, unit, &mut spares);
    }
    for list in spares.values_mut() {
        list.sort_by(|one, other| {
            (one.priority, &one.unit, &one.object).cmp(&(other.priority, &other.unit, &other.object))
        });
    }
    spares
}

/// What a unit has to spare. One that stays as it is for a reason of its own has nothing.
fn of_unit(
    context: &Context<'_>,
    ledger: &mut Ledger,
    clusters: &BTreeSet<ClusterName>,
    unit: &Unit,
    spares: &mut Spares,
) -> Option<()> {
    let subscription = unit.subscription.as_ref();
    let previous = context.previous.get(&subscription.key)?;
    let desired = desired_of(unit, &Divided::of(subscription)).ok()?;
    let begin = Begin::AsItIs(Some(previous));
    if context.moves.rebalance.contains_key(&subscription.key)
        || context.moves.remembered.contains_key(&subscription.key)
    {
        return None;
    }
    let mut search = search(context.sight(subscription, Some(previous), false));
    narrow(subscription, begin, true, &mut search).ok()?;
    let there = search.chosen.iter().filter(|(_, chosen)| chosen.still.is_none());
    let bounds = there.map(|(name, chosen)| Some((*name, bounds(subscription, chosen).ok()?)));
    let bounds: BTreeMap<&ClusterName, _> = bounds.collect::<Option<_>>()?;
    for (name, bounds) in bounds.into_iter().filter(|(name, _)| clusters.contains(*name)) {
        let cluster = &context.fleet.clusters[name];
        for object in desired.keys() {
            let given: u64 = ledger
                .given(&subscription.key, name, object)
                .iter()
                .map(|given| given.replicas)
                .sum();
            let has = previous.replicas(name, object).saturating_sub(given);
            let spare = has.saturating_sub(bounds.min.unwrap_or_default());
            let pods = ledger.pods(&context.books(), cluster, &subscription.key, object);
            let idle = has.saturating_sub(pods);
            if spare > idle {
                spares.entry(name.clone()).or_default().push(Spare {
                    unit: subscription.key.clone(),
                    object: object.clone(),
                    priority: subscription.placing.priority,
                    replicas: spare,
                    idle,
                });
            }
        }
    }
    Some(())
}

/// The priorities of those who may have to give way, the lowest first.
pub(super) fn priorities(spares: &Spares) -> BTreeSet<i32> {
    spares.values().flatten().map(|spare| spare.priority).collect()
}

/// What a cluster has to give so that up to `need` more replicas fit beside the `has` that are there, with nobody above
/// `priority` giving any.
pub(super) fn offer(
    context: &Context<'_>,
    ledger: &mut Ledger,
    cluster: &Cluster,
    asking: Asking<'_>,
    (spares, priority): (&[Spare], i32),
    (has, need): (u64, u64),
) -> Option<Offer> {
    let able: Vec<&Spare> = spares.iter().filter(|spare| spare.priority <= priority).collect();
    let most = has.saturating_add(need);
    let mut gain = |taken: &[u64]| {
        let gone = gone(&able, taken);
        let room = ledger.room_without(&context.books(), cluster, asking, most, &gone);
        room.saturating_sub(has).min(need)
    };
    let all: Vec<u64> = able.iter().map(|spare| spare.replicas).collect();
    let target = gain(&all);
    if target == 0 {
        return None;
    }
    // As few of the lowest as are enough, and then none that is in vain.
    let count = all.iter().sum();
    let enough = least(count, |count| gain(&first(&all, count)) >= target);
    let mut taken = first(&all, enough);
    for index in (0..taken.len()).rev() {
        let before = taken.clone();
        taken[index] = least(before[index], |count| {
            let mut fewer = before.clone();
            fewer[index] = count;
            gain(&fewer) >= target
        });
    }
    Some(Offer {
        gain: target,
        gone: gone(&able, &taken),
    })
}

fn gone(able: &[&Spare], taken: &[u64]) -> Vec<Gone> {
    let taken = able.iter().zip(taken).filter(|(_, taken)| **taken > 0);
    taken
        .map(|(spare, taken)| Gone {
            unit: spare.unit.clone(),
            object: spare.object.clone(),
            replicas: *taken,
            pods: taken.saturating_sub(spare.idle),
        })
        .collect()
}

/// The first `count` of a list of amounts.
fn first(all: &[u64], mut count: u64) -> Vec<u64> {
    let take = |amount: &u64| {
        let taken = count.min(*amount);
        count -= taken;
        taken
    };
    all.iter().map(take).collect()
}

/// The least number up to `most` that is enough; `most` is.
fn least(most: u64, mut is_enough: impl FnMut(u64) -> bool) -> u64 {
    let (mut low, mut high) = (0, most);
    while low < high {
        let middle = low + (high - low) / 2;
        if is_enough(middle) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    low
}

/// Less what an offer takes.
pub(super) fn take(spares: &mut [Spare], gone: &[Gone]) {
    for gone in gone {
        let of = spares
            .iter_mut()
            .find(|spare| spare.unit == gone.unit && spare.object == gone.object);
        if let Some(spare) = of {
            spare.replicas = spare.replicas.saturating_sub(gone.replicas);
            spare.idle = spare.idle.saturating_sub(gone.replicas);
        }
    }
}
