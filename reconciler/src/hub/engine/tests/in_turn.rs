//! Replicas that move from cluster to cluster: who is told what, and what a report has to be about to count.

use render::ByObject;
use render::model::{FleetSpec, SchedulingSpec};

use super::*;
use crate::wire::{Counts, Health, UnitReport, UnitState};

fn shop_web() -> UnitKey {
    "shop/web".parse().expect("a valid unit")
}

fn deployment() -> render::ObjectKey {
    "apps/Deployment/shop/web".parse().expect("a valid key")
}

/// The unit with these replicas on each cluster; where there are none, the cluster lacks it.
fn shares(replicas: &[(&str, u64)]) -> BTreeMap<UnitKey, UnitPlacement> {
    let names: Vec<_> = replicas.iter().map(|(name, _)| *name).collect();
    let mut units = units('1', "one", &names);
    for (name, replicas) in replicas {
        let unit = units.get_mut(&shop_web()).expect("it is there");
        let placement = unit.clusters.get_mut(&cluster(name)).expect("it is there");
        placement.replicas = ByObject::from([(deployment(), *replicas)]);
    }
    units
}

impl World {
    fn aim(&mut self, digit: char, replicas: &[(&str, u64)], move_timeout_seconds: Option<u64>) {
        let mut fleet = (*fleet(digit, &["a", "b"])).clone();
        fleet.spec = FleetSpec {
            scheduling: SchedulingSpec {
                move_timeout_seconds,
                ..SchedulingSpec::default()
            },
            ..FleetSpec::default()
        };
        self.source.insert(revision(digit), (Arc::new(fleet), shares(replicas)));
        self.see(digit, Relation::Follows);
    }

    /// What a cluster is told to have.
    fn told(&self, name: &str) -> u64 {
        let envelope = self.state.envelope(&cluster(name)).expect("something is released");
        let unit = envelope.units.get(&shop_web());
        unit.map_or(0, |unit| unit.replicas.get(&deployment()).copied().unwrap_or_default())
    }

    /// A cluster took what it is told, and is healthy with what it was told with this sequence.
    fn healthy(&mut self, name: &str, applied_sequence: Option<u64>) {
        let envelope = self.state.envelope(&cluster(name)).expect("something is released");
        let digest = envelope.units.get(&shop_web()).map(|unit| unit.digest);
        let unit = UnitReport {
            digest,
            state: UnitState::Applied,
            health: Health::Current,
            message: String::new(),
            counts: Counts::default(),
            worst: Vec::new(),
            drift: Vec::new(),
        };
        let known = self
            .state
            .clusters
            .get(&cluster(name))
            .and_then(|known| known.report.clone());
        let report = Report {
            held: Some(envelope.held()),
            applied_sequence,
            units: BTreeMap::from([(shop_web(), unit)]),
            ..known.as_deref().expect("it reported before").clone()
        };
        self.hear(Event::Reported {
            report: Box::new(report),
        });
    }
}

/// A fleet in which cluster a has ten replicas and is healthy with them.
fn ten_on_a() -> World {
    let mut world = settled();
    let released = world.released.clone();
    for name in ["a", "b"] {
        world.report(name, released.as_ref());
    }
    world.aim('2', &[("a", 10)], None);
    let sequence = world.sequence();
    world.healthy("a", sequence);
    world
}

#[test]
fn a_report_counts_once_it_is_about_what_the_cluster_was_told_last() {
    let mut world = ten_on_a();
    let before = world.sequence();
    world.aim('3', &[("a", 5), ("b", 5)], None);
    assert_eq!((world.told("a"), world.told("b")), (10, 5));
    world.healthy("b", None);
    world.healthy("b", before);
    assert_eq!(world.told("a"), 10, "what is said is older than what b was told");
    let sequence = world.sequence();
    world.healthy("b", sequence);
    assert_eq!((world.told("a"), world.told("b")), (5, 5));
}

#[test]
fn a_hub_that_begins_anew_reads_from_released_for_whom_it_waits() {
    let mut world = ten_on_a();
    world.aim('3', &[("a", 5), ("b", 5)], None);
    let (source, rendered, released) = (world.source.clone(), world.rendered.clone(), world.released.clone());
    let mut world = World::new();
    (world.source, world.rendered, world.released) = (source, rendered, released);
    world.look();
    world.see('3', Relation::Follows);
    let released = world.released.clone();
    for name in ["a", "b"] {
        world.report(name, released.as_ref());
    }
    assert_eq!((world.told("a"), world.told("b")), (10, 5));
    let sequence = world.sequence();
    world.healthy("b", sequence);
    assert_eq!((world.told("a"), world.told("b")), (5, 5));
}

#[test]
fn a_hub_remembers_who_was_not_healthy_yet_when_a_newer_commit_takes_from_others() {
    let mut world = ten_on_a();
    world.aim('3', &[("a", 10), ("b", 5)], None);
    world.aim('4', &[("a", 5), ("b", 5)], None);
    assert_eq!((world.told("a"), world.told("b")), (10, 5));
    let sequence = world.sequence();
    world.healthy("b", sequence);
    assert_eq!(world.told("a"), 5);
}

#[test]
fn waiting_ends_at_its_time_without_a_report() {
    let mut world = ten_on_a();
    world.now = 1_000;
    world.aim('3', &[("a", 5), ("b", 5)], Some(60));
    assert_eq!((world.told("a"), next_time(&world.state)), (10, Some(1_060)));
    world.now = 1_060;
    world.hear(Event::TimeCame);
    assert_eq!((world.told("a"), next_time(&world.state)), (5, None));
}
