//! Worlds in which everything happens, one after the other: what has to hold after each of it.

mod world;

use std::collections::BTreeSet;

use proptest::prelude::*;

use super::room::{DYNAMIC, key};
use super::*;
use crate::capacity::NodeGroup;
use crate::model::Bounds;
use crate::name::UnitKey;
use crate::plan::{Plan, deltas};

use world::{CLUSTERS, Event, Wish, World, event, unit_key, wish};

impl World {
    fn share(units: &BTreeMap<UnitKey, UnitPlacement>, unit: &UnitKey, cluster: &ClusterName) -> u64 {
        let placement = units.get(unit).and_then(|unit| unit.clusters.get(cluster));
        placement
            .and_then(|placement| placement.replicas.get(&key()))
            .copied()
            .unwrap_or_default()
    }

    /// Whether anything of a unit leaves a cluster.
    fn falls(&self, from: &BTreeMap<UnitKey, UnitPlacement>, to: &BTreeMap<UnitKey, UnitPlacement>) -> bool {
        let falls = |unit: &UnitKey, name: &ClusterName| Self::share(to, unit, name) < Self::share(from, unit, name);
        let of_unit = |unit: &UnitKey| self.fleet.clusters.keys().any(|name| falls(unit, name));
        let left = |(unit, placement): (&UnitKey, &UnitPlacement)| {
            let stays = to.get(unit);
            placement
                .clusters
                .keys()
                .any(|name| stays.is_none_or(|stays| !stays.clusters.contains_key(name)))
        };
        self.fleet.units.keys().any(of_unit) || from.iter().any(left)
    }

    fn matches(&self, unit: &UnitKey, cluster: &ClusterName) -> bool {
        let labels = &self.fleet.clusters[cluster].labels;
        let affinity = |to: &Subscriber| to.cluster_affinity.as_ref().is_some_and(|to| to.matches(labels));
        self.fleet.units[unit].subscription.subscribers.iter().any(affinity)
    }

    /// One thing happens, and a decision follows.
    fn step(&mut self, event: &Event) {
        let before = Arc::clone(&self.published);
        let unasked = !event.is_commit();
        let moves = Moves {
            decided: unasked,
            ..self.take(event)
        };
        let found = self.plan(moves.clone());
        self.check_units(event, &before.units, &found);
        self.check_room(event, &before.units, &found);
        self.publish(&found, unasked);
        // The same again, whoever asks; a commit waits for nothing.
        let pauses = before
            .units
            .values()
            .any(|unit| unasked && unit.moved_at.is_some_and(|at| self.now - at < 60));
        let unasked = Moves {
            decided: true,
            ..Moves::default()
        };
        let asked = (!pauses).then(Moves::default);
        for moves in asked.into_iter().chain([unasked]) {
            let again = self.plan(moves);
            // What gave room is known to be gone by the next plan only.
            let gave = self.falls(&before.units, &self.published.units);
            let is_same = match gave {
                true => self.fleet.units.keys().all(|unit| {
                    let all = |units| -> u64 {
                        self.fleet
                            .clusters
                            .keys()
                            .map(|name| Self::share(units, unit, name))
                            .sum()
                    };
                    all(&self.published.units) <= all(&again.units)
                }),
                false => deltas(&self.published.units, &again.units).is_empty(),
            };
            assert!(
                is_same,
                "after {event:?} from {:?} it moves again: {:?} -> {:?}\n{:?}\n{:?}",
                told(&before.units),
                told(&self.published.units),
                told(&again.units),
                found.findings,
                again.findings
            );
        }
    }

    /// Totals, bounds, and who may move.
    fn check_units(&mut self, event: &Event, before: &BTreeMap<UnitKey, UnitPlacement>, found: &Plan) {
        let has_finding = |unit: &UnitKey, reason: &str| {
            let of_unit = |finding: &&Finding| finding.unit.as_ref() == Some(unit) && finding.reason == reason;
            found.findings.iter().any(|finding| of_unit(&finding))
        };
        for (unit, declared) in &self.fleet.units {
            let subscription = &declared.subscription;
            let shares = |units| -> Vec<u64> {
                self.fleet
                    .clusters
                    .keys()
                    .map(|name| Self::share(units, unit, name))
                    .collect()
            };
            let (had, has) = (shares(before), shares(&found.units));
            let names: Vec<_> = self.fleet.clusters.keys().collect();
            let text = format!(
                "{event:?} {unit} {had:?} -> {has:?} of {}: {:?}",
                self.desired(unit),
                found.findings
            );
            let held = ["NoFeasibleCluster", "TooFewClusters", "ContradictoryBounds", "NoWeight"];
            let is_held = held.iter().any(|reason| has_finding(unit, reason));
            let moved = had != has && before.contains_key(unit);
            if moved && !event.is_commit() {
                let last = self.moved.insert(unit.clone(), self.now);
                assert!(
                    last.is_none_or(|last| self.now - last >= 60),
                    "it moves twice a minute: {text}"
                );
            }
            if is_held {
                assert_eq!(had, has, "it is held: {text}");
                continue;
            }
            if subscription.scheduling == Scheduling::Replication {
                continue;
            }
            let Some(placement) = found.units.get(unit) else {
                assert_eq!(had, has, "{text}");
                continue;
            };
            let unplaced = placement.unplaced.get(&key()).map_or(0, |it| it.replicas);
            let pauses = placement
                .moved_at
                .is_some_and(|at| !event.is_commit() && self.now - at < 60);
            if !pauses {
                assert_eq!(has.iter().sum::<u64>() + unplaced, self.desired(unit), "totals: {text}");
            }
            let Bounds { max, .. } = subscription.subscribers[0].replicas;
            for (place, name) in names.iter().enumerate() {
                let grows = has[place] > had[place];
                assert!(!grows || self.matches(unit, name), "{name} does not match: {text}");
                let may = max.unwrap_or(u64::MAX);
                assert!(
                    has[place] <= may.max(if grows { 0 } else { had[place] }),
                    "{name} has too many: {text}"
                );
                if grows && subscription.scheduling.is_by_room() {
                    let cluster = &self.fleet.clusters[*name];
                    assert!(cluster.taints.is_empty(), "{name} is tainted: {text}");
                    assert!(!self.is_silent(place), "{name} is silent: {text}");
                }
            }
            let falls = names.iter().enumerate().any(|(place, _)| has[place] < had[place]);
            if let Event::Report(..) | Event::Restart | Event::Returns(_) | Event::Silent(_) = event {
                let is_short = before
                    .get(unit)
                    .is_some_and(|unit| !unit.unplaced.is_empty() || !unit.lost.is_empty());
                let evicts = |taint: &Taint| taint.effect == TaintEffect::NoExecute;
                let leaves = self
                    .fleet
                    .clusters
                    .values()
                    .any(|cluster| cluster.taints.iter().any(evicts));
                let is_short = is_short || leaves || !placement.lost.is_empty();
                assert!(!falls || is_short, "a report takes nothing: {text}");
                assert!(had == has || is_short, "a report moves nothing: {text}");
            }
            let (all_before, all): (u64, u64) = (had.iter().sum(), has.iter().sum());
            if matches!(
                event,
                Event::Taint(..) | Event::Waits(_) | Event::Silent(_) | Event::Label(..) | Event::Empty
            ) {
                let leaves = matches!(event, Event::Label(..));
                assert!(all >= all_before || leaves, "replicas get lost: {text}");
            }
            if let Event::Scale(place, _) = event {
                let grows = all > all_before && unit_key(*place) == *unit;
                let recalled = placement
                    .asks
                    .is_some_and(|asks| self.history.contains_key(&(unit.clone(), asks)));
                let is_plain = subscription.scheduling.is_by_room() && !recalled && !has_finding(unit, "Preempted");
                let is_stained = self.fleet.clusters.values().any(|cluster| !cluster.taints.is_empty())
                    || !placement.lost.is_empty();
                assert!(
                    !(grows && is_plain && falls) || is_stained,
                    "what is placed stays: {text}"
                );
            }
        }
    }

    /// What is given by room has room.
    fn check_room(&self, event: &Event, before: &BTreeMap<UnitKey, UnitPlacement>, found: &Plan) {
        for (place, name) in self.fleet.clusters.keys().enumerate() {
            let sums = |units: &BTreeMap<UnitKey, UnitPlacement>, by_room: Option<bool>| -> u64 {
                let declared = self.fleet.units.iter();
                let meant = declared.filter(|(_, unit)| {
                    by_room.is_none_or(|by_room| unit.subscription.scheduling.is_by_room() == by_room)
                });
                let of = |(unit, declared): (&UnitKey, &crate::fleet::Unit)| {
                    let is_there = units.get(unit).is_some_and(|unit| unit.clusters.contains_key(name));
                    match declared.subscription.scheduling {
                        Scheduling::Replication if is_there => self.desired(unit),
                        _ => Self::share(units, unit, name),
                    }
                };
                meant.map(of).sum()
            };
            let by_room = self.fleet.units.keys().filter(|unit| {
                self.fleet.units[*unit].subscription.scheduling.is_by_room()
                    && Self::share(&found.units, unit, name) > Self::share(before, unit, name)
            });
            let by_room: BTreeSet<_> = by_room.collect();
            let others = sums(&found.units, Some(false)) > sums(before, Some(false));
            if by_room.is_empty() || others {
                continue;
            }
            let said = &self.reports.clusters[name].capacity;
            let slots = |node: &NodeGroup| node.count * u64::try_from(node.free.of("cpu") / 1_000).unwrap_or(0);
            let slots: u64 = said.nodes.0.iter().map(slots).sum();
            let pods: u64 = said.workloads.iter().map(|workload| workload.scheduled).sum();
            let all = sums(&found.units, None);
            // Who takes room from a lower priority has it before those that only wait.
            let waiting = said
                .workloads
                .iter()
                .map(|workload| workload.replicas - workload.scheduled);
            let passed_over: u64 = match found.findings.iter().any(|finding| finding.reason == "Preempted") {
                true => waiting.sum(),
                false => 0,
            };
            assert!(
                all <= slots + pods + passed_over,
                "{name} ({place}) is promised {all} and has {slots} + {pods}: {event:?} {:?} -> {:?}",
                told(before),
                told(&found.units)
            );
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn whatever_happens_replicas_are_neither_lost_nor_promised_twice_nor_moved_again(
        wishes in prop::collection::vec(wish(), 1..4),
        cores in prop::collection::vec(0..20_u64, CLUSTERS.len()),
        (failover, preemption) in any::<(bool, bool)>(),
        events in prop::collection::vec(event(), 1..12),
    ) {
        let events: Vec<_> = events.into_iter().filter(|event| meets(event, wishes.len())).collect();
        let mut world = World::new(&wishes, &cores, failover, preemption);
        world.step(&Event::Empty);
        for event in &events {
            world.step(event);
        }
    }
}

/// Replicas by unit and cluster, for people.
fn told(units: &BTreeMap<UnitKey, UnitPlacement>) -> Vec<String> {
    let unit = |(unit, placement): (&UnitKey, &UnitPlacement)| {
        let clusters = placement.clusters.iter();
        let clusters: Vec<_> = clusters
            .map(|(name, placement)| format!("{name}={:?}", placement.replicas.get(&key())))
            .collect();
        format!(
            "{unit}: {} unplaced {:?} lost {:?}",
            clusters.join(" "),
            placement.unplaced.values(),
            placement.lost
        )
    };
    units.iter().map(unit).collect()
}

/// A unit of priority 1 that takes the room of others, where the fleet lets it.
fn preempting(replicas: u64) -> Wish {
    Wish {
        scheduling: DYNAMIC,
        replicas,
        bounds: Bounds::default(),
        tier: None,
        clusters_max: None,
        skew: None,
        priority: 1,
        preempts: true,
        compatible: false,
    }
}

#[test]
fn who_was_let_take_room_and_found_none_takes_none_when_a_commit_is_about_something_else() {
    let first = Wish {
        priority: 0,
        preempts: false,
        ..preempting(6)
    };
    let mut cores = [0; CLUSTERS.len()];
    cores[0] = 3;
    let mut world = World::new(&[first, preempting(0)], &cores, false, false);
    let events = [
        Event::Empty,
        Event::Scale(1, 1),
        Event::Silent(0),
        Event::Preemption(true),
        Event::Returns(0),
    ];
    for event in events {
        world.step(&event);
    }
}

#[test]
fn a_fleet_that_allows_preemption_changes_what_a_unit_asks_for() {
    let mut world = World::new(&[preempting(4)], &[4; CLUSTERS.len()], false, false);
    world.step(&Event::Empty);
    let moves = world.take(&Event::Preemption(true));
    assert_eq!(world.planned(&moves).recalls.len(), 1, "with what is remembered too");
}

/// Whether an event is about a unit that there is.
fn meets(event: &Event, units: usize) -> bool {
    match event {
        Event::Scale(unit, _)
        | Event::Least(unit, _)
        | Event::Most(unit, _)
        | Event::Tier(unit, _)
        | Event::Choose(unit, _)
        | Event::Rebalance(unit, _) => *unit < units,
        _ => true,
    }
}
