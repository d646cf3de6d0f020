//! What clusters report of their room, and what that moves.

use std::collections::BTreeSet;

use render::capacity::{Capacity, NodeGroup, Nodes, Resources};
use render::model::{FleetSpec, PlacementApproval, SchedulingSpec};

use super::*;

fn capacity(cores: i64) -> Capacity {
    let all = Resources::from([("cpu", cores * 1_000), ("pods", 10)]);
    let group = NodeGroup {
        count: 1,
        allocatable: all.clone(),
        free: all,
        ..NodeGroup::default()
    };
    Capacity {
        version: Capacity::VERSION,
        nodes: Nodes(vec![group]),
        ..Capacity::default()
    }
}

impl World {
    fn room(&mut self, name: &str, capacity: Option<Capacity>, unknown: &str) {
        let known = self
            .state
            .clusters
            .get(&cluster(name))
            .and_then(|known| known.report.clone());
        let mut report = known.as_deref().expect("it reported before").clone();
        report.capacity = capacity.map(Arc::new);
        report.capacity_unknown = unknown.to_owned();
        self.hear(Event::Reported {
            report: Box::new(report),
        });
    }

    fn doubt(&self, name: &str) -> Option<String> {
        self.state.rooms().clusters[&cluster(name)].doubt.clone()
    }
}

/// The unit of the second commit, with this many replicas on each cluster.
fn replicas(count: u64) -> BTreeMap<UnitKey, UnitPlacement> {
    let mut units = units('2', "two", &["a", "b"]);
    for placement in units.values_mut().flat_map(|unit| unit.clusters.values_mut()) {
        let object: render::ObjectKey = "apps/Deployment/shop/web".parse().expect("a valid key");
        placement.replicas = [(object, count)].into();
    }
    units
}

/// A fleet of which one unit waits for room, with both clusters connected.
fn waiting() -> World {
    let mut world = settled();
    for name in ["a", "b"] {
        world.hear(Event::Connected {
            cluster: cluster(name),
            epoch: 1,
        });
    }
    world.by_room = BTreeSet::from(["shop/web".parse().expect("a valid unit")]);
    world.push('2', &["a", "b"], "two");
    world
}

#[test]
fn why_a_first_word_of_room_is_not_believed_is_told_until_one_is() {
    let mut world = waiting();
    let cannot_be = Capacity {
        version: 99,
        ..capacity(4)
    };
    let (a, b) = (cluster("a"), cluster("b"));
    assert_eq!(world.state.rooms().unknown, BTreeMap::new(), "nothing was said");
    world.room("a", Some(cannot_be), "");
    world.room("b", None, "nodes cannot be listed");
    let why = "what it says of its room cannot be: capacity of version 99 cannot be read";
    let said = [(a.clone(), why), (b, "nodes cannot be listed")];
    let said = said.map(|(name, why)| (name, why.to_owned()));
    assert_eq!(world.state.rooms().unknown, said.into());
    world.room("a", Some(capacity(4)), "");
    world.room("b", Some(capacity(4)), "");
    assert_eq!(world.state.rooms().unknown, BTreeMap::new());
    world.room("a", None, "nodes cannot be listed");
    let rooms = world.state.rooms();
    assert!(
        rooms.unknown.is_empty() && rooms.clusters[&a].doubt.is_some(),
        "what is known is kept"
    );
}

#[test]
fn a_report_plans_nothing_where_nothing_waits_for_room() {
    let mut world = settled();
    let plans = world.plans;
    world.room("a", Some(capacity(4)), "");
    world.room("a", Some(capacity(2)), "");
    assert_eq!(world.plans, plans);
}

#[test]
fn a_report_of_other_room_plans_what_waits_for_it_and_the_same_again_does_not() {
    let mut world = waiting();
    world.room("a", Some(capacity(4)), "");
    let plans = world.plans;
    world.room("a", Some(capacity(4)), "");
    assert_eq!(world.plans, plans);
    let commits = world.commits;
    world.room("a", Some(capacity(8)), "");
    assert_eq!(
        (world.plans, world.commits),
        (plans + 1, commits),
        "and a decision that changes nothing is no commit"
    );
}

#[test]
fn decisions_that_no_commit_causes_are_a_minute_apart() {
    let mut world = waiting();
    world.now = 1_000;
    world
        .source
        .insert(revision('2'), (fleet('2', &["a", "b"]), replicas(3)));
    world.room("a", Some(capacity(4)), "");
    let record = |world: &World| {
        world
            .rendered
            .as_ref()
            .and_then(|rendered| rendered.published.record.clone())
    };
    assert_eq!(record(&world).map(|record| record.cause), Some(Cause::Placement));
    world
        .source
        .insert(revision('2'), (fleet('2', &["a", "b"]), replicas(4)));
    let commits = world.commits;
    world.now = 1_030;
    world.room("a", Some(capacity(8)), "");
    assert_eq!(world.commits, commits);
    assert_eq!(next_time(&world.state), Some(1_060));
    world.now = 1_060;
    world.hear(Event::TimeCame);
    assert!(world.commits > commits, "its time came");
}

#[test]
fn a_person_merges_what_is_placed_unless_the_fleet_says_otherwise() {
    for (approval, unattended) in [
        (PlacementApproval::Propose, false),
        (PlacementApproval::Automatic, true),
    ] {
        let mut world = waiting();
        world.gate = Approval::Required;
        let mut planned = fleet('2', &["a", "b"]);
        Arc::make_mut(&mut planned).spec = FleetSpec {
            scheduling: SchedulingSpec {
                placement_approval: approval,
                ..SchedulingSpec::default()
            },
            ..FleetSpec::default()
        };
        world.source.insert(revision('2'), (planned, replicas(3)));
        world.room("a", Some(capacity(4)), "");
        assert_eq!(world.proposal.is_none(), unattended, "{approval:?}");
    }
}

#[test]
fn what_waits_for_a_merge_is_not_merged_by_a_report() {
    let mut world = waiting();
    let policy = FleetSpec {
        scheduling: SchedulingSpec {
            placement_approval: PlacementApproval::Automatic,
            ..SchedulingSpec::default()
        },
        ..FleetSpec::default()
    };
    world.gate = Approval::Required;
    let mut planned = fleet('3', &["a", "b"]);
    Arc::make_mut(&mut planned).spec = policy;
    let changed = units('3', "other content", &["a", "b"]);
    world.source.insert(revision('3'), (planned, changed));
    world.see('3', Relation::Follows);
    assert!(world.proposal.take().is_some(), "it waits for a merge");
    let rendered = world.rendered.as_ref().map(|rendered| rendered.commit.clone());
    world.room("a", Some(capacity(4)), "");
    let after = world.rendered.as_ref().map(|rendered| rendered.commit.clone());
    assert_eq!(after, rendered, "and still does");
}

#[test]
fn what_cannot_be_is_a_doubt_and_never_no_room() {
    let mut world = waiting();
    world.room("a", Some(capacity(4)), "");
    assert_eq!(world.doubt("a"), None);
    let mut wrong = capacity(4);
    wrong.nodes.0[0].free.set("cpu", 9_000);
    world.room("a", Some(wrong), "");
    assert!(
        world.doubt("a").is_some_and(|doubt| doubt.contains("9000 of cpu")),
        "{:?}",
        world.doubt("a")
    );
    let said = world.state.rooms().clusters[&cluster("a")].capacity.clone();
    assert_eq!(*said, capacity(4), "what was believed before is still known");
    world.room("a", None, "nodes and pods cannot be watched");
    assert_eq!(world.doubt("a").as_deref(), Some("nodes and pods cannot be watched"));
    world.room("a", Some(capacity(3)), "");
    assert_eq!(world.doubt("a"), None);
    world.hear(Event::Disconnected {
        cluster: cluster("a"),
        epoch: 1,
    });
    assert!(
        world
            .doubt("a")
            .is_some_and(|doubt| doubt.contains("not heard of since"))
    );
}

#[test]
fn nothing_is_placed_by_room_before_clusters_could_say_what_they_have() {
    let mut world = waiting();
    world.room("a", Some(capacity(4)), "");
    assert!(world.reports.waiting, "b has not said yet");
    world.room("b", Some(capacity(4)), "");
    assert!(!world.reports.waiting);
    let mut world = waiting();
    world.hear(Event::GraceOver);
    assert!(!world.reports.waiting, "whoever says nothing is waited for no longer");
}

#[test]
fn a_report_that_has_counted_what_is_released_leaves_nothing_to_deduct() {
    let mut world = waiting();
    world.room("a", Some(capacity(4)), "");
    assert_eq!(world.state.rooms().sequence, world.sequence());
}

#[test]
fn predictors_are_asked_again_once_their_answers_are_old_and_while_something_waits_for_room() {
    let mut world = waiting();
    world.asks = true;
    world.now = 1_000;
    world.room("a", Some(capacity(4)), "");
    let plans = world.plans;
    world.hear(Event::RoomPredicted);
    assert_eq!(world.plans, plans + 1, "an answer came after the plan");
    assert_eq!(next_time(&world.state), Some(1_060));
    world.now = 1_030;
    world.hear(Event::TimeCame);
    assert_eq!(world.plans, plans + 1, "what was answered still counts");
    world.now = 1_060;
    world.hear(Event::TimeCame);
    assert_eq!(world.plans, plans + 2);
    world.by_room.clear();
    world.asks = false;
    world.hear(Event::RoomPredicted);
    assert_eq!(next_time(&world.state), None, "nothing waits for room any more");
}

#[test]
fn an_answer_of_a_predictor_moves_nothing_within_a_minute_of_the_last_decision() {
    let mut world = waiting();
    world.now = 1_000;
    world
        .source
        .insert(revision('2'), (fleet('2', &["a", "b"]), replicas(3)));
    world.room("a", Some(capacity(4)), "");
    let plans = world.plans;
    world.now = 1_030;
    world.hear(Event::RoomPredicted);
    assert_eq!(world.plans, plans);
    assert_eq!(next_time(&world.state), Some(1_060));
    world.now = 1_060;
    world.hear(Event::TimeCame);
    assert_eq!(world.plans, plans + 1);
}

#[test]
fn a_cluster_with_a_predictor_is_not_waited_for_after_a_start() {
    let mut world = waiting();
    world.room("a", Some(capacity(4)), "");
    assert!(world.reports.waiting, "b has not said what room it has");
    let mut planned = fleet('3', &["a", "b"]);
    let b = Arc::make_mut(&mut planned).clusters.get_mut(&cluster("b"));
    b.expect("it is there").predictor = Some(render::model::Predictor {
        url: "https://predictor.example.com".to_owned(),
        timeout_seconds: 20,
    });
    world.source.insert(revision('3'), (planned, replicas(3)));
    world.see('3', Relation::Follows);
    assert!(!world.state.rooms().waiting);
}
