//! A unit's replicas over the clusters that were taken.
//!
//! In: the clusters, what is wanted of each object, and the room that the ledger says is left. Out: how much each
//! cluster gets, why, and what found no place. The arithmetic is `share`'s. Everything of a cluster is found by its place
//! among those that were taken.

mod judged;
mod room;
mod seats;
mod sentence;
mod taking;
mod unplaced;
mod weights;

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::by_object::ByObject;
use crate::capacity::PodRequirements;
use crate::digest::Digest;
use crate::finding::Finding;
use crate::model::{Cluster, Dividing, Scheduling, SchedulingPolicy, Subscription, Unsatisfiable};
use crate::name::{ClusterName, ObjectKey};
use crate::published::UnitPlacement;
use crate::schedule::alike::share_alike;
use crate::schedule::begin::Begin;
use crate::schedule::by_name::ByName;
use crate::schedule::candidates::{Chosen, Parting, Search};
use crate::schedule::context::Context;
use crate::schedule::ledger::{Ledger, Workloads, may_take};
use crate::schedule::share::Skew;
use crate::schedule::unit::{Inventory, Scheduled};
use crate::schedule::{Assignment, inputs, parting, trouble};
use crate::shared::Shared;

pub(super) use seats::bounds;
pub(super) use weights::lacks_weight;

/// What is to be divided.
#[derive(Clone, Copy)]
pub(super) struct Asked<'a> {
    pub(super) subscription: &'a Subscription,
    /// Divided object → replicas.
    pub(super) desired: &'a BTreeMap<ObjectKey, u64>,
    pub(super) begin: Begin<'a>,
    /// Whether that is something else than before.
    pub(super) is_new: bool,
}

/// Assigns replicas, where they are divided, and everything where they are not.
pub(super) fn assign(
    context: &Context<'_>,
    ledger: &mut Ledger,
    inventory: &dyn Inventory,
    asked: Asked<'_>,
    search: &Search<'_>,
) -> Result<Scheduled, Box<Finding>> {
    let Asked {
        subscription,
        desired,
        begin,
        is_new,
    } = asked;
    let weights = weights::weights(subscription, &search.chosen);
    let total: u128 = weights.values().map(|weight| u128::from(*weight)).sum();
    let is_compatible = subscription.placing.policy == SchedulingPolicy::Clusternet;
    if subscription.scheduling == Scheduling::Dividing(Dividing::Static) && total == 0 && !is_compatible {
        return Err(Box::new(trouble::no_weight(subscription)));
    }
    let mut division = Division {
        context,
        ledger,
        subscription,
        previous: context.previous.get(&subscription.key),
        begin,
        preempts: is_new && !is_compatible && may_take(subscription, context.fleet),
        members: ByName::default(),
        parting: &search.parting,
        desired,
        of_unit: inputs::of_unit(subscription, desired, &weights),
        total,
        scheduled: Scheduled {
            left_out: search.left_out.clone(),
            ..Scheduled::default()
        },
    };
    let is_by_room = subscription.scheduling.is_by_room();
    for (name, chosen) in &search.chosen {
        let member = Member {
            chosen,
            weight: weights.get(*name).copied().unwrap_or_default(),
            workloads: is_by_room.then(|| inventory.workloads(chosen.cluster)),
            assignment: division.assignment(chosen),
        };
        division.members.insert(*name, member);
    }
    match subscription.scheduling {
        Scheduling::Replication => {}
        Scheduling::Dividing(Dividing::Static) => {
            for (object, wanted) in desired {
                division.by_weights(object, *wanted)?;
            }
        }
        Scheduling::Dividing(Dividing::Dynamic(strategy)) => {
            for (object, wanted) in desired {
                division.by_room(object, *wanted, strategy)?;
            }
        }
    }
    let mut scheduled = division.scheduled();
    // Of a single object that is divided by room, all that is alike was made once.
    if !is_by_room || desired.len() > 1 {
        share_alike(&mut scheduled.assignments);
    }
    Ok(scheduled)
}

/// Whether replicas are to be added by the room that clusters have.
pub(super) fn asks_for_room(
    subscription: &Subscription,
    desired: &BTreeMap<ObjectKey, u64>,
    begin: Begin<'_>,
    previous: Option<&UnitPlacement>,
    search: &Search<'_>,
) -> bool {
    let had = |object: &ObjectKey| -> u64 {
        let placements = previous.into_iter().flat_map(|unit| &unit.clusters);
        // What is above a bound leaves, and is to find room elsewhere.
        let stays = placements.filter_map(|(name, placement)| {
            let max = bounds(subscription, search.chosen.get(name)?).ok()?.max;
            Some((*placement.replicas.get(object)?).min(max.unwrap_or(u64::MAX)))
        });
        stays.sum()
    };
    let moves = !matches!(begin, Begin::AsItIs(_));
    let is_short = || desired.iter().any(|(object, wanted)| had(object) < *wanted);
    subscription.scheduling.is_by_room() && (moves || is_short())
}

struct Division<'a, 'b> {
    context: &'a Context<'a>,
    ledger: &'a mut Ledger,
    subscription: &'a Subscription,
    previous: Option<&'a UnitPlacement>,
    begin: Begin<'a>,
    /// Whether it takes the room of a lower priority.
    preempts: bool,
    members: ByName<&'a ClusterName, Member<'a, 'b>>,
    parting: &'a BTreeMap<&'b ClusterName, Parting<'b>>,
    desired: &'a BTreeMap<ObjectKey, u64>,
    of_unit: Digest,
    /// All weights together.
    total: u128,
    /// Its assignments are those of clusters that were not taken, and keep what they have.
    scheduled: Scheduled,
}

/// A cluster that was taken, and what it gets.
struct Member<'a, 'b> {
    chosen: &'a Chosen<'b>,
    weight: u64,
    /// What pods ask for there; only where replicas are divided by room.
    workloads: Option<Arc<Workloads>>,
    assignment: Assignment,
}

impl<'a> Member<'a, '_> {
    fn cluster(&self) -> &'a Cluster {
        self.chosen.cluster
    }

    /// Whether its pods ask for just what another's do.
    fn asks_the_same(&self, other: &Self) -> bool {
        let both = self.workloads.as_ref().zip(other.workloads.as_ref());
        both.is_some_and(|(one, other)| Arc::ptr_eq(one, other))
    }

    fn requirements(&self, object: &ObjectKey) -> Shared<PodRequirements> {
        let workload = self.workloads.as_ref().and_then(|workloads| workloads.get(object));
        workload
            .map(|workload| workload.requirements.clone())
            .unwrap_or_default()
    }
}

impl<'a> Division<'a, '_> {
    fn assignment(&self, chosen: &Chosen<'_>) -> Assignment {
        let seen = self.context.seen_at(chosen.place);
        let of_cluster = seen.map_or_else(|| inputs::of_cluster(chosen.cluster), |seen| seen.digest);
        Assignment {
            replicas: ByObject::default(),
            reasons: chosen.reasons.clone(),
            inputs: inputs::of_both(&self.of_unit, &of_cluster),
            capacity: None,
            leaves_at: chosen.leaves_at,
        }
    }

    fn scheduled(self) -> Scheduled {
        let mut scheduled = self.scheduled;
        let members = self.members.into_iter();
        let assigned = members.map(|(name, member)| (name.clone(), member.assignment));
        let staying = std::mem::take(&mut scheduled.assignments);
        // A map that is made at once compares each name once.
        scheduled.assignments = assigned.chain(staying).collect();
        scheduled
    }

    fn had(&self, cluster: &ClusterName, object: &ObjectKey) -> u64 {
        parting::had(self.previous, cluster, object)
    }

    /// Whether Clusternet's arithmetic is asked for.
    fn is_compatible(&self) -> bool {
        self.subscription.placing.policy == SchedulingPolicy::Clusternet
    }

    fn skew(&self) -> Option<Skew> {
        let constraint = self.subscription.placing.clusters.spread.first()?;
        constraint.max_skew.map(|max| Skew {
            max,
            hard: constraint.when_unsatisfiable == Unsatisfiable::DoNotSchedule,
        })
    }
}
