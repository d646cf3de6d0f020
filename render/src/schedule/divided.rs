//! A unit's replicas over the clusters that were taken.

mod taking;

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::by_object::ByObject;
use crate::capacity::PodRequirements;
use crate::digest::Digest;
use crate::finding::Finding;
use crate::model::{Bounds, Cluster, Dividing, Scheduling, SchedulingPolicy, Strategy, Subscription, Unsatisfiable};
use crate::name::{ClusterName, ObjectKey};
use crate::predictor::Question;
use crate::published::{Evidence, UnitPlacement, Unplaced};
use crate::schedule::alike::share_alike;
use crate::schedule::begin::Begin;
use crate::schedule::candidates::{Chosen, Parting, Search};
use crate::schedule::ledger::{Asking, Ledger, Workloads, may_take};
use crate::schedule::predictions::{Judged, Prediction, prediction};
use crate::schedule::share::{Room, Rule, Seat, Seats, Shares, Skew, share};
use crate::schedule::taints::{self, Verdict};
use crate::schedule::unit::{Context, Inventory, Scheduled};
use crate::schedule::{Assignment, clusternet, inputs, parting, trouble};
use crate::shared::Shared;

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
    let weights = weights(subscription, &search.chosen);
    let total: u128 = weights.values().map(|weight| u128::from(*weight)).sum();
    let is_compatible = subscription.placing.policy == SchedulingPolicy::Clusternet;
    if subscription.scheduling == Scheduling::Dividing(Dividing::Static) && total == 0 && !is_compatible {
        return Err(Box::new(trouble::no_weight(subscription)));
    }
    let of_unit = inputs::of_unit(subscription, desired, &weights);
    let mut division = Division {
        context,
        ledger,
        subscription,
        begin,
        preempts: is_new && !is_compatible && may_take(subscription, context.fleet),
        chosen: search
            .chosen
            .iter()
            .map(|(name, chosen)| ((*name).clone(), chosen))
            .collect(),
        parting: &search.parting,
        desired,
        of_unit,
        workloads: search
            .chosen
            .iter()
            .filter(|_| subscription.scheduling.is_by_room())
            .map(|(name, chosen)| ((*name).clone(), inventory.workloads(chosen.cluster)))
            .collect(),
        weights,
        total,
        scheduled: Scheduled {
            left_out: search.left_out.clone(),
            ..Scheduled::default()
        },
    };
    for (name, chosen) in &search.chosen {
        let assignment = division.assignment(chosen);
        division.scheduled.assignments.insert((*name).clone(), assignment);
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
    share_alike(&mut division.scheduled.assignments);
    Ok(division.scheduled)
}

/// Whether replicas are divided by weights, and none of the chosen clusters has any.
pub(super) fn lacks_weight(subscription: &Subscription, search: &Search<'_>) -> bool {
    subscription.scheduling.is_by_weight()
        && weights(subscription, &search.chosen)
            .values()
            .all(|weight| *weight == 0)
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
        let stays = placements.filter(|(name, _)| search.chosen.contains_key(name));
        stays.filter_map(|(_, placement)| placement.replicas.get(object)).sum()
    };
    let moves = !matches!(begin, Begin::AsItIs(_));
    let is_short = || desired.iter().any(|(object, wanted)| had(object) < *wanted);
    subscription.scheduling.is_by_room() && (moves || is_short())
}

struct Division<'a, 'b> {
    context: &'a Context<'a>,
    ledger: &'a mut Ledger,
    subscription: &'a Subscription,
    begin: Begin<'a>,
    /// Whether it takes the room of a lower priority.
    preempts: bool,
    chosen: BTreeMap<ClusterName, &'a Chosen<'b>>,
    parting: &'a BTreeMap<&'b ClusterName, Parting<'b>>,
    desired: &'a BTreeMap<ObjectKey, u64>,
    of_unit: Digest,
    workloads: BTreeMap<ClusterName, Arc<Workloads>>,
    weights: BTreeMap<ClusterName, u64>,
    total: u128,
    scheduled: Scheduled,
}

impl<'a> Division<'a, '_> {
    fn assignment(&self, chosen: &Chosen<'_>) -> Assignment {
        let of_cluster = inputs::of_cluster_in(self.context, chosen.cluster);
        Assignment {
            replicas: ByObject::default(),
            reasons: chosen.reasons.clone().into(),
            inputs: inputs::of_both(&self.of_unit, &of_cluster),
            capacity: None,
            leaves_at: chosen.leaves_at,
        }
    }

    fn by_weights(&mut self, object: &ObjectKey, wanted: u64) -> Result<(), Box<Finding>> {
        let previous = self.previous();
        let mut seats = Seats::new();
        let mut said: BTreeMap<ClusterName, String> = BTreeMap::new();
        let mut is_anybody_still = false;
        for (name, chosen) in &self.chosen {
            let had = self.had(name, object);
            let mut seat = self.seat(name, chosen, (had, Room::Unbounded))?;
            let mut text = bounds_text(Some(&seat));
            let still = chosen.still.as_ref().map(|still| format!("no more: {}", still.why));
            let kept_out = self.kept_out(chosen.cluster).filter(|_| self.is_numbered(name));
            if still.is_none() && kept_out.is_some() {
                (seat.least, seat.most) = (seat.least.min(had), seat.most.min(had));
            }
            if let Some(why) = still.or(kept_out) {
                is_anybody_still = true;
                text.push_str(&format!(", {why}"));
            }
            said.insert(name.clone(), text);
            seats.insert(name.clone(), seat);
        }
        let shares = if self.is_compatible() && !is_anybody_still {
            let Some(shares) = compatible(wanted, Rule::Weights, &seats) else {
                // With weights of 0 alone it divides nothing, and each cluster runs the whole.
                return Ok(());
            };
            shares
        } else {
            share(&self.subscription.key, wanted, Rule::Weights, None, &seats)
        };
        let key = Arc::new(object.clone());
        for (name, assignment) in &mut self.scheduled.assignments {
            let share = shares.replicas.get(name).copied().unwrap_or_default();
            let weight = self.weights.get(name).copied().unwrap_or_default();
            assignment.replicas.insert(Arc::clone(&key), share);
            let had = seats.get(name).map_or(0, |seat| seat.had);
            assignment.reasons.push(format!(
                "replicas of {} {}: {share} of {wanted}, weight {weight} of {}{}{}",
                object.kind,
                object.name,
                self.total,
                said.get(name).map_or("", String::as_str),
                parting::taken_over(self.parting, (previous, object), share.saturating_sub(had))
            ));
        }
        self.leave_unplaced(object, wanted, shares.unplaced, "every cluster has as many as it may");
        Ok(())
    }

    fn by_room(&mut self, object: &ObjectKey, wanted: u64, strategy: Strategy) -> Result<(), Box<Finding>> {
        let key = Arc::new(object.clone());
        let mut seats = Seats::new();
        let mut said: BTreeMap<ClusterName, String> = BTreeMap::new();
        let mut predictions: BTreeMap<ClusterName, Prediction> = BTreeMap::new();
        let previous = self.previous();
        let mut leaving: BTreeMap<ClusterName, u64> = BTreeMap::new();
        let names: Vec<ClusterName> = self.chosen.keys().cloned().collect();
        // What each has before and after it gave to others, and what it begins with.
        let begins = |name: &ClusterName| {
            let had = self.had(name, object);
            let left = self.left((name, object), had);
            (had, left, self.begin.share((name, object), (left, 0), Room::Unbounded))
        };
        let begins: Vec<(u64, u64, u64)> = names.iter().map(begins).collect();
        let all: u64 = begins.iter().map(|(_, _, share)| share).sum();
        // With the number that is placed nothing moves, so that nobody needs to count.
        let moves = begins.iter().any(|(_, left, share)| share > left) || self.begin.is_rebalance();
        let (counts, grows) = (moves || all != wanted, moves || all < wanted);
        for (name, (_, had, _)) in names.iter().zip(begins.iter().copied()) {
            let chosen = self.chosen[name];
            let mut judged = if !counts {
                Judged::without((Room::Unbounded, String::new()))
            } else if let Some(still) = &chosen.still {
                Judged::without((Room::Frozen, format!("no more: {}", still.why)))
            } else {
                let own = self.room(chosen.cluster, object, wanted);
                self.predicted((chosen.cluster, had), object, own, grows)
            };
            predictions.extend(judged.prediction.map(|prediction| (name.clone(), prediction)));
            if let Some((room, text)) = self.behind(chosen.cluster, had, judged.room) {
                (judged.room, judged.text) = (room, text);
            }
            let mut room = judged.room;
            let bounds = self.bounds(name, chosen)?;
            let pending = self
                .pending(name, object)
                .min(had.saturating_sub(bounds.min.unwrap_or_default()));
            let begins = self.begin.share((name, object), (had, pending), room);
            if let (Room::Replicas(most), true) = (room, begins < had && self.moves_pending()) {
                // Whatever is counted: what waits there in vain finds no place there.
                room = Room::Replicas(most.min(begins));
                leaving.insert(name.clone(), had - begins);
            }
            said.insert(name.clone(), judged.text);
            seats.insert(name.clone(), self.seat(name, chosen, (begins, room))?);
        }
        let rule = match strategy {
            Strategy::Spread => Rule::Spread,
            Strategy::Binpack => Rule::Binpack,
        };
        if rule == Rule::Binpack {
            fullest_first(&mut seats);
        }
        let compatible = self.is_compatible().then(|| compatible(wanted, rule, &seats)).flatten();
        let ours = || share(&self.subscription.key, wanted, rule, self.skew(), &seats);
        let mut shares = compatible.unwrap_or_else(ours);
        stay(&mut shares, &leaving);
        self.scheduled.by_room |= shares.by_room;
        let taken = match self.preempts && shares.unplaced > 0 {
            true => self.take((object, wanted, rule), &predictions, &mut seats, &mut shares),
            false => BTreeMap::new(),
        };
        for (name, (had, left, _)) in names.into_iter().zip(begins) {
            let share = shares.replicas.get(&name).copied().unwrap_or_default();
            let seat = &seats[&name];
            let more = share.saturating_sub(left);
            let given = self.give(&name, object);
            let cluster = self.chosen[&name].cluster;
            let requirements = self.requirements(&name, object);
            let asking = Asking {
                unit: &self.subscription.key,
                object,
                requirements: &requirements,
            };
            self.ledger.promise(&self.context.books(), cluster, asking, more);
            let prediction = predictions.get(&name);
            if let Some(prediction) = prediction {
                self.ledger.predicted.add(&name, more, prediction.said);
            }
            let Some(assignment) = self.scheduled.assignments.get_mut(&name) else {
                continue;
            };
            assignment.replicas.insert(Arc::clone(&key), share);
            let mut reason = format!("replicas of {} {}: {share} of {wanted}", object.kind, object.name);
            if had > 0 {
                reason.push_str(&format!(", had {had}"));
            }
            if let Some(left) = leaving.get(&name) {
                reason.push_str(&format!(", of which no node takes {left}"));
            }
            for text in given
                .into_iter()
                .chain(taken.get(&name).map(|gone| taking::taken_text(gone)))
            {
                reason.push_str(&format!(", {text}"));
            }
            if let Some(text) = said.get(&name).filter(|text| !text.is_empty()) {
                reason.push_str(&format!(", {text}"));
            }
            if let Some(why) = self.begin.reason(&name, object, share) {
                reason.push_str(&format!(", {why}"));
            }
            reason.push_str(&bounds_text(Some(seat)));
            reason.push_str(&parting::taken_over(self.parting, (previous, object), more));
            assignment.reasons.push(reason);
            if let Room::Replicas(room) = seat.room {
                let report = self.context.reports.of(&name).ok();
                let evidence = assignment.capacity.get_or_insert_with(|| Evidence {
                    at: report
                        .map(|report| report.at)
                        .or(prediction.map(|said| said.at))
                        .unwrap_or_default(),
                    sequence: report.and_then(|report| report.capacity.sequence),
                    room: ByObject::default(),
                });
                evidence.room.insert(Arc::clone(&key), room);
            }
        }
        let why = said.into_iter().filter(|(_, text)| !text.is_empty());
        let why: Vec<String> = why.map(|(name, text)| format!("{name} {text}")).collect();
        self.leave_unplaced(object, wanted, shares.unplaced, &why.join("; "));
        Ok(())
    }

    fn previous(&self) -> Option<&'a UnitPlacement> {
        self.context.previous.get(&self.subscription.key)
    }

    fn had(&self, cluster: &ClusterName, object: &ObjectKey) -> u64 {
        parting::had(self.previous(), cluster, object)
    }

    fn moves_pending(&self) -> bool {
        matches!(self.begin, Begin::WithoutPending(_))
    }

    /// How many replicas a cluster says no node takes, where they are to be moved.
    fn pending(&self, cluster: &ClusterName, object: &ObjectKey) -> u64 {
        if !self.moves_pending() {
            return 0;
        }
        let report = self.context.reports.of(cluster).ok();
        let said = report.and_then(|report| {
            let place = report.capacity.workload(&self.subscription.key, object)?;
            Some(report.capacity.workloads[place].unschedulable)
        });
        said.unwrap_or_default()
    }

    fn requirements(&self, cluster: &ClusterName, object: &ObjectKey) -> Shared<PodRequirements> {
        let workload = self.workloads.get(cluster).and_then(|workloads| workloads.get(object));
        workload
            .map(|workload| workload.requirements.clone())
            .unwrap_or_default()
    }

    /// Why a cluster gets no more where a taint keeps out what is new: more replicas would be.
    fn kept_out(&self, cluster: &Cluster) -> Option<String> {
        match taints::verdict(&cluster.taints, &self.subscription.tolerations) {
            Verdict::KeepOut(taint) => Some(format!("no more: taint {}", taints::text(taint))),
            _ => None,
        }
    }

    /// Whether it is known how many replicas a cluster has: not where it had them whole.
    fn is_numbered(&self, cluster: &ClusterName) -> bool {
        let placement = self.previous().and_then(|unit| unit.clusters.get(cluster));
        placement.is_some_and(|placement| !placement.replicas.is_empty())
    }

    /// How much room a cluster has, and that in words.
    fn room(&mut self, cluster: &Cluster, object: &ObjectKey, wanted: u64) -> (Room, String) {
        if let Some(why) = self.kept_out(cluster) {
            return (Room::Frozen, why);
        }
        let requirements = self.requirements(&cluster.name, object);
        let asking = Asking {
            unit: &self.subscription.key,
            object,
            requirements: &requirements,
        };
        match self.ledger.room(&self.context.books(), cluster, asking, wanted) {
            Err(why) => (Room::Frozen, format!("no more: {why}")),
            Ok(fit) => {
                let refused = fit
                    .refused
                    .iter()
                    .map(|(reason, nodes)| format!("{nodes} of its nodes: {reason}"));
                let refused: Vec<_> = refused.collect();
                let mut text = format!("has room for {}", fit.replicas);
                if fit.replicas < wanted && !refused.is_empty() {
                    text.push_str(&format!(" ({})", refused.join(", ")));
                }
                if requirements.asks_more {
                    text.push_str(" at most");
                }
                (Room::Replicas(fit.replicas), text)
            }
        }
    }

    /// The same with what the cluster's predictor says, which is asked only where replicas are to be added.
    fn predicted(
        &mut self,
        (cluster, had): (&Cluster, u64),
        object: &ObjectKey,
        own: (Room, String),
        grows: bool,
    ) -> Judged {
        let Some(question) = Question::about(cluster, &self.requirements(&cluster.name, object)) else {
            return Judged::without(own);
        };
        let reports = self.context.reports;
        if !grows {
            return Judged::not_asked(reports.clusters.contains_key(&cluster.name), own);
        }
        let prediction = prediction(reports, &self.ledger.predicted, &question, self.context.now);
        self.scheduled.questions.push(question);
        Judged::least((cluster, reports), own, had, prediction)
    }

    fn bounds(&self, name: &ClusterName, chosen: &Chosen<'_>) -> Result<Bounds, Box<Finding>> {
        bounds(self.subscription, chosen)
            .map_err(|(least, most)| Box::new(trouble::contradictory(self.subscription, name, least, most)))
    }

    fn seat(&self, name: &ClusterName, chosen: &Chosen<'_>, (had, room): (u64, Room)) -> Result<Seat, Box<Finding>> {
        let bounds = self.bounds(name, chosen)?;
        let constraint = self.subscription.placing.clusters.spread.first();
        let group = constraint.and_then(|constraint| chosen.cluster.labels.get(&constraint.topology_key));
        Ok(Seat {
            had,
            weight: self.weights.get(name).copied().unwrap_or_default(),
            least: bounds.min.unwrap_or_default(),
            most: bounds.max.unwrap_or(u64::MAX),
            room: if chosen.still.is_some() { Room::Frozen } else { room },
            rank: chosen.rank,
            group: group.cloned().unwrap_or_default(),
        })
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

    fn leave_unplaced(&mut self, object: &ObjectKey, wanted: u64, unplaced: u64, why: &str) {
        let mut left = unplaced;
        for staying in parting::staying(self.parting, (self.previous(), object), &mut left) {
            let chosen = &staying.parting.chosen;
            // An object without a number would run whole.
            let fresh = Assignment {
                replicas: self.desired.keys().map(|object| (object.clone(), 0)).collect(),
                ..self.assignment(chosen)
            };
            let assignments = &mut self.scheduled.assignments;
            let assignment = assignments.entry(staying.cluster.clone()).or_insert(fresh);
            assignment.replicas.insert(object.clone(), staying.replicas);
            assignment.reasons.push(staying.reason(object));
            self.scheduled.findings.push(staying.finding(self.subscription, object));
        }
        let unplaced = left;
        if unplaced == 0 {
            return;
        }
        let is_refused = self.subscription.placing.preempts && !may_take(self.subscription, self.context.fleet);
        let numbers = (unplaced, wanted);
        let found = trouble::unplaced(self.subscription, object, numbers, why, is_refused);
        self.scheduled.findings.push(found);
        let entry = Unplaced {
            replicas: unplaced,
            of: wanted,
        };
        self.scheduled.unplaced.insert(object.clone(), entry);
    }
}

/// What was to leave and found no better place stays.
fn stay(shares: &mut Shares, leaving: &BTreeMap<ClusterName, u64>) {
    for (name, left) in leaving {
        let back = shares.unplaced.min(*left);
        shares.unplaced -= back;
        *shares.replicas.entry(name.clone()).or_default() += back;
    }
}

/// The shares by Clusternet's arithmetic. `None` where it divides nothing, and has no rule for it.
fn compatible(wanted: u64, rule: Rule, seats: &Seats) -> Option<Shares> {
    let list = |of: &dyn Fn(&Seat) -> u64| seats.values().map(of).collect::<Vec<u64>>();
    let had = list(&|seat| seat.had);
    let shares = match rule {
        Rule::Weights => clusternet::by_weights(wanted, &list(&|seat| seat.weight))?,
        Rule::Spread => {
            let room = list(&|seat| match seat.room {
                Room::Replicas(room) => room.saturating_sub(seat.had),
                Room::Frozen | Room::Unbounded => 0,
            });
            clusternet::by_room(wanted, &had, &room)
        }
        // Upstream takes the word and places nothing by it.
        Rule::Binpack => return None,
    };
    let sum: u64 = shares.iter().sum();
    Some(Shares {
        replicas: seats.keys().cloned().zip(shares).collect(),
        unplaced: wanted.saturating_sub(sum),
        by_room: rule == Rule::Spread && had.iter().sum::<u64>() < wanted,
    })
}

/// For packing: what has replicas comes first, then what has the least room, so that the fewest clusters are begun.
fn fullest_first(seats: &mut Seats) {
    let mut order: Vec<_> = seats
        .iter()
        .map(|(name, seat)| {
            let room = match seat.room {
                Room::Replicas(room) => room,
                Room::Frozen => 0,
                Room::Unbounded => u64::MAX,
            };
            (seat.rank, seat.had == 0, std::cmp::Reverse(room), name.clone())
        })
        .collect();
    order.sort();
    for (place, (_, _, _, name)) in order.into_iter().enumerate() {
        if let Some(seat) = seats.get_mut(&name) {
            seat.rank = place;
        }
    }
}

/// The strictest bounds of the subscribers that match a cluster. `Err` where none can be kept.
pub(super) fn bounds(subscription: &Subscription, chosen: &Chosen<'_>) -> Result<Bounds, (u64, u64)> {
    let matching = chosen
        .subscribers
        .iter()
        .map(|index| subscription.subscribers[*index].replicas);
    let min = matching.clone().filter_map(|bounds| bounds.min).max();
    let max = matching.filter_map(|bounds| bounds.max).min();
    match (min, max) {
        (Some(least), Some(most)) if least > most => Err((least, most)),
        _ => Ok(Bounds { min, max }),
    }
}

fn bounds_text(seat: Option<&Seat>) -> String {
    let Some(seat) = seat else { return String::new() };
    let least = (seat.least > 0).then(|| format!(", at least {}", seat.least));
    let most = (seat.most < u64::MAX).then(|| format!(", at most {}", seat.most));
    [least, most].into_iter().flatten().collect()
}

/// Each chosen cluster's weight: the sum over the subscribers that match it, 1 for each cluster where no
/// subscriber has a weight. Empty without dividing by weights.
fn weights(subscription: &Subscription, chosen: &BTreeMap<&ClusterName, Chosen<'_>>) -> BTreeMap<ClusterName, u64> {
    if subscription.scheduling != Scheduling::Dividing(Dividing::Static) {
        return BTreeMap::new();
    }
    let unweighted = subscription
        .subscribers
        .iter()
        .all(|subscriber| subscriber.weight.is_none());
    let weight_of = |chosen: &Chosen<'_>| {
        if unweighted {
            return 1;
        }
        let weight = |index: &usize| u64::from(subscription.subscribers[*index].weight.unwrap_or_default());
        chosen.subscribers.iter().map(weight).sum()
    };
    chosen
        .iter()
        .map(|(name, chosen)| ((*name).clone(), weight_of(chosen)))
        .collect()
}
