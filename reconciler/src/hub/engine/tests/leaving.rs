//! What the engine says of units that leave, and of objects that change hands.

use render::ObjectKey;
use render::model::{Dependency, DependencyClusters};

use super::*;
use crate::wire::Envelope;

fn unit(name: &str) -> UnitKey {
    name.parse().expect("a valid unit")
}

/// A released fleet whose unit left, and stays on cluster a.
fn left() -> World {
    let mut world = settled();
    world.orphaned = BTreeMap::from([(unit("shop/web"), BTreeMap::from([(cluster("a"), 7)]))]);
    let nothing = (fleet('2', &["a", "b"]), BTreeMap::new());
    world.source.insert(revision('2'), nothing);
    world.see('2', Relation::Follows);
    world
}

fn told(world: &World, name: &str) -> Envelope {
    world.state.envelope(&cluster(name)).expect("it is registered")
}

fn heard(world: &mut World, name: &str, has_anything: bool) {
    let envelope = told(world, name);
    let nothing = crate::wire::UnitReport {
        digest: None,
        state: crate::wire::UnitState::Applied,
        health: crate::wire::Health::Current,
        message: String::new(),
        counts: Default::default(),
        worst: Vec::new(),
        drift: Vec::new(),
    };
    let units = has_anything.then(|| (unit("shop/web"), nothing));
    let report = Report {
        without_hub_since: None,
        applied_sequence: None,
        capacity: None,
        capacity_unknown: String::new(),
        version: Report::VERSION,
        held_read: true,
        cluster: cluster(name),
        held: Some(envelope.held()),
        refused: None,
        units: units.into_iter().collect(),
        kubernetes_version: Some("v1.33.0".to_owned()),
        api_versions: Vec::new(),
        trouble: String::new(),
        waits_for_lease: false,
        facts: None,
        nodes: None,
        corrections: crate::wire::Corrections::default(),
        hub_keys_known: Default::default(),
        agent: crate::wire::AgentCounts::default(),
    };
    world.hear(Event::Reported {
        report: Box::new(report),
    });
}

#[test]
fn a_cluster_is_told_which_units_left_and_stay_until_it_has_nothing_of_them() {
    let mut world = left();
    assert_eq!(told(&world, "a").orphaned, BTreeMap::from([(unit("shop/web"), 7)]));
    assert_eq!(told(&world, "b").orphaned, BTreeMap::new(), "it is the other cluster's");
    assert_eq!(
        told(&world, "a").held().orphaned.len(),
        1,
        "it is remembered over a restart"
    );
    heard(&mut world, "a", true);
    assert!(world.state.let_go().is_empty(), "something of it is there");
    heard(&mut world, "a", false);
    assert_eq!(
        world.state.let_go().into_iter().collect::<Vec<_>>(),
        [(unit("shop/web"), cluster("a"))]
    );
}

#[test]
fn a_report_from_an_earlier_departure_lets_nothing_go() {
    let mut world = left();
    heard(&mut world, "a", false);
    // It came back and left again, at another time.
    world.orphaned = BTreeMap::from([(unit("shop/web"), BTreeMap::from([(cluster("a"), 9)]))]);
    world.push('3', &["a", "b"], "one");
    world
        .source
        .insert(revision('4'), (fleet('4', &["a", "b"]), BTreeMap::new()));
    world.see('4', Relation::Follows);
    assert_eq!(told(&world, "a").orphaned, BTreeMap::from([(unit("shop/web"), 9)]));
    assert!(world.state.let_go().is_empty());
}

#[test]
fn an_object_that_moves_to_a_unit_that_waits_is_not_released_from_the_one_that_has_it() {
    let mut world = World::new();
    let object = ObjectKey::new("v1", "ConfigMap", "shop", "x");
    let named = |name: &str, content: &str, digit| {
        let placement = units(digit, content, &["a", "b"]).into_values().next();
        (unit(name), placement.expect("there is one"))
    };
    for content in ["with", "gets"] {
        let digest = Digest::of_bytes(content.as_bytes());
        world.objects.insert(digest, vec![object.clone()]);
    }
    world.look();
    let before = BTreeMap::from([named("t/base", "base", '1'), named("t/giver", "with", '1')]);
    world
        .source
        .insert(revision('1'), (fleet('1', &["a", "b"]), before.clone()));
    world.see('1', Relation::Follows);
    world.report("a", None);
    world.report("b", None);
    assert_eq!(world.sequence(), Some(1));
    let mut after = BTreeMap::from([
        named("t/base", "base", '1'),
        named("t/giver", "without", '2'),
        named("t/taker", "gets", '2'),
    ]);
    after.entry(unit("t/taker")).and_modify(|taker| {
        taker.depends_on.push(Dependency {
            unit: unit("t/base"),
            clusters: DependencyClusters::All,
        });
    });
    world.source.insert(revision('2'), (fleet('2', &["a", "b"]), after));
    world.see('2', Relation::Follows);
    let released = world.released.clone().expect("it is released");
    assert_eq!(
        released.published.units[&unit("t/giver")],
        before[&unit("t/giver")],
        "nobody is told to let go of it"
    );
    assert_eq!(
        world.state.waiting[&(unit("t/giver"), cluster("a"))].to_string(),
        "stays until t/taker, which gets an object of it, is released to a"
    );
}
