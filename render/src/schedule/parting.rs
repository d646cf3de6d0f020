//! What becomes of what clusters give up: others take it over, and what nobody takes stays where it is.
//!
//! A cluster gives up what it has when it is lost, or when a taint is tolerated there no longer. A search that finds no
//! place elsewhere never takes the last copy away.

use std::collections::{BTreeMap, BTreeSet};

use crate::finding::Finding;
use crate::model::{Scheduling, Subscription};
use crate::name::{ClusterName, ObjectKey};
use crate::published::{Lost, UnitPlacement};
use crate::schedule::candidates::{Parting, Search};
use crate::schedule::choose::{ChoiceRule, LeftOut};
use crate::schedule::silence::{Silence, Standing};
use crate::schedule::trouble;
use crate::schedule::unit::Scheduled;

type PartingClusters<'a> = BTreeMap<&'a ClusterName, Parting<'a>>;

/// An object of a unit, and how that was placed.
type Before<'p> = (Option<&'p UnitPlacement>, &'p ObjectKey);

/// Replicas that stay on a cluster that was to give them up.
pub(super) struct Staying<'p> {
    pub(super) cluster: &'p ClusterName,
    pub(super) parting: &'p Parting<'p>,
    pub(super) replicas: u64,
    had: u64,
}

/// How many replicas of an object a cluster had.
pub(super) fn had(previous: Option<&UnitPlacement>, cluster: &ClusterName, object: &ObjectKey) -> u64 {
    previous.map_or(0, |unit| unit.replicas(cluster, object))
}

/// Where replicas stay that found no other place; what is `left` after that has none at all. Clusters that are there
/// come before those that are silent.
pub(super) fn staying<'p>(
    parting: &'p PartingClusters<'p>,
    (previous, object): Before<'_>,
    left: &mut u64,
) -> Vec<Staying<'p>> {
    let mut order: Vec<_> = parting.iter().collect();
    order.sort_by_key(|(name, parting)| (parting.lost.is_some(), **name));
    let mut staying = Vec::new();
    for (cluster, parting) in order {
        let had = had(previous, cluster, object);
        let replicas = had.min(*left);
        if replicas > 0 {
            *left -= replicas;
            staying.push(Staying {
                cluster,
                parting,
                replicas,
                had,
            });
        }
    }
    staying
}

impl Staying<'_> {
    pub(super) fn reason(&self, object: &ObjectKey) -> String {
        format!(
            "replicas of {} {}: {} of {} stay although it {}, since no other cluster takes them over",
            object.kind, object.name, self.replicas, self.had, self.parting.why
        )
    }

    pub(super) fn finding(&self, subscription: &Subscription, object: &ObjectKey) -> Finding {
        let what = format!(
            "{} of {} replicas of {} {} stay",
            self.replicas, self.had, object.kind, object.name
        );
        trouble::nowhere_else(subscription, self.cluster, &what, &self.parting.why)
    }
}

/// How the part of a reason begins that says from whom replicas come.
pub(crate) const TAKES_OVER: &str = ", takes over ";

/// From whom so many more replicas come, as a part of a reason; empty where nobody gives any up.
pub(super) fn taken_over(parting: &PartingClusters<'_>, (previous, object): Before<'_>, more: u64) -> String {
    let givers = parting.iter().filter_map(|(name, parting)| {
        let had = had(previous, name, object);
        (had > 0).then(|| (had, format!("{name}, which {}", parting.why)))
    });
    let (had, names): (Vec<u64>, Vec<String>) = givers.unzip();
    match more.min(had.iter().sum()) {
        0 => String::new(),
        taken => format!("{TAKES_OVER}{taken} of {}", names.join(" and ")),
    }
}

/// Leaves whole copies where they are as far as no other cluster was taken in their place.
pub(super) fn leave_whole<'a>(
    subscription: &Subscription,
    previous: Option<&UnitPlacement>,
    search: &mut Search<'a>,
) -> Vec<Finding> {
    if subscription.scheduling != Scheduling::Replication || search.parting.is_empty() {
        return Vec::new();
    }
    let is_new = |name: &&ClusterName| previous.is_none_or(|unit| !unit.clusters.contains_key(*name));
    let new = search.chosen.keys().filter(|name| is_new(name)).count();
    let most = subscription.placing.clusters.max.unwrap_or(u64::MAX);
    let open = most.saturating_sub(search.chosen.len() as u64);
    let without = search.parting.len().saturating_sub(new);
    let count = without.min(usize::try_from(open).unwrap_or(usize::MAX));
    let mut order: Vec<_> = search
        .parting
        .iter()
        .map(|(name, parting)| (parting.lost.is_some(), *name))
        .collect();
    order.sort_unstable();
    let mut findings = Vec::new();
    for (_, name) in order.into_iter().take(count) {
        if let Some(parting) = search.parting.remove(name) {
            findings.push(trouble::nowhere_else(
                subscription,
                name,
                "the unit stays",
                &parting.why,
            ));
            search.chosen.insert(name, parting.stays());
        }
    }
    findings
}

/// Which clusters count as lost after a decision. Where it moves nothing, those that did before: nothing is written for
/// a record alone, nor for a cluster that came back and gets nothing.
pub(super) fn note_lost(
    scheduled: &mut Scheduled,
    search: &Search<'_>,
    (subscription, previous, anew): (&Subscription, Option<&UnitPlacement>, bool),
    (silence, now): (&Silence<'_>, i64),
) {
    let before = previous.map(|unit| &unit.lost).into_iter().flatten();
    let known: BTreeMap<&ClusterName, &Lost> = before.collect();
    let returned: BTreeSet<ClusterName> = known
        .keys()
        .filter(|name| previous.is_none_or(|unit| !unit.clusters.contains_key(**name)))
        .filter(|name| is_given_nothing(scheduled, name))
        .map(|name| (*name).clone())
        .collect();
    if previous.is_some_and(|unit| is_same(scheduled, unit, &returned)) {
        scheduled.assignments.retain(|name, _| !returned.contains(name));
        let left_out = returned.into_iter().map(|name| (name, given_nothing_back()));
        scheduled.left_out.extend(left_out);
        let stands = |name: &&ClusterName| silence.knows(name);
        let stays = known.into_iter().filter(|(name, _)| stands(name));
        scheduled.lost = stays.map(|(name, lost)| (name.clone(), *lost)).collect();
        return;
    }
    for (name, lost) in known {
        let is_here = silence.standing(subscription, previous, name, anew) == Standing::Here;
        let returned = lost.returned || is_here;
        if silence.knows(name) && (!returned || silence.counts(lost)) {
            scheduled.lost.insert(name.clone(), Lost { returned, ..*lost });
        }
    }
    for (name, parting) in &search.parting {
        if let Some(lost) = parting.lost {
            scheduled.lost.insert((*name).clone(), lost);
        }
    }
    if subscription.scheduling.is_by_weight() {
        let chosen = search.chosen.iter().chain(&search.shunned);
        for (name, since) in chosen.filter_map(|(name, chosen)| Some((name, chosen.still.as_ref()?.since?))) {
            let passed_over = Lost {
                since,
                at: now,
                keeps: true,
                returned: false,
            };
            // Where it was lost before, it goes on to count against the budget.
            let again = |lost: &mut Lost| lost.returned = false;
            scheduled
                .lost
                .entry((*name).clone())
                .and_modify(again)
                .or_insert(passed_over);
        }
    }
}

/// Why a cluster that came back has nothing, where nothing else is to be given.
fn given_nothing_back() -> LeftOut {
    LeftOut {
        by: ChoiceRule::Failover,
        why: "it was lost and is back, which moves nothing: it may get replicas that are asked for from now on"
            .to_owned(),
    }
}

fn is_given_nothing(scheduled: &Scheduled, cluster: &ClusterName) -> bool {
    let assignment = scheduled.assignments.get(cluster);
    assignment.is_some_and(|assignment| {
        !assignment.replicas.is_empty() && assignment.replicas.values().all(|replicas| *replicas == 0)
    })
}

/// Whether a decision leaves everything where it was, but for clusters that are given nothing.
fn is_same(scheduled: &Scheduled, previous: &UnitPlacement, but: &BTreeSet<ClusterName>) -> bool {
    let assigned = scheduled.assignments.iter().filter(|(name, _)| !but.contains(*name));
    let now = assigned.map(|(name, assignment)| (name, &assignment.replicas));
    now.eq(previous
        .clusters
        .iter()
        .map(|(name, placement)| (name, &placement.replicas)))
}
