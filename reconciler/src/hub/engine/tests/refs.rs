//! State refs that are missing, lost, rewound, or moved by somebody else.

use super::*;
use crate::wire::{Held, LineageGrant};

#[test]
fn a_missing_released_is_no_first_run_while_a_cluster_holds_something() {
    let world = settled();
    let released = world.released.clone().expect("it was released");
    let mut world = world.restarted();
    world.released = None;
    world.look();
    world.push('2', &["a", "b"], "two");
    assert_eq!(
        (world.reason("StateKept"), world.sequence()),
        ("Recovering", None),
        "clusters have not spoken yet"
    );
    world.report("a", Some(&released));
    assert_eq!(world.sequence(), Some(2), "it goes on where the cluster stands");
    assert_eq!(
        world.released.as_ref().map(|commit| &commit.lineage),
        Some(&released.lineage)
    );
    assert_eq!(world.reason("StateKept"), "Kept");
}

#[test]
fn a_missing_released_is_a_first_run_when_every_cluster_holds_nothing_or_time_is_up() {
    let mut world = World::new();
    world.look();
    world.push('1', &["a", "b"], "one");
    assert_eq!(world.sequence(), None);
    world.report("a", None);
    assert_eq!(world.sequence(), None, "b has not spoken yet");
    world.hear(Event::GraceOver);
    assert_eq!(world.sequence(), Some(1));
}

#[test]
fn a_lost_commit_holds_the_hub_still() {
    let world = settled();
    let released = world.released.clone().expect("it was released");
    let mut world = world.restarted();
    (world.released, world.rendered) = (None, None);
    world.known.clear();
    world.look();
    world.push('2', &["a"], "two");
    let commits = world.commits;
    world.report("a", Some(&released));
    world.hear(Event::GraceOver);
    assert_eq!((world.commits, world.reason("StateKept")), (commits, "Recovering"));
    assert!(world.state.envelope(&cluster("a")).is_none());
}

#[test]
fn a_new_lineage_is_granted_once_fleet_yaml_names_it() {
    let mut world = settled();
    let lineage = world.released.as_ref().expect("it was released").lineage.clone();
    let grant = |world: &World| world.state.lineage_grant(&cluster("a"), sealed);
    assert_eq!(grant(&world), None, "no lineage is named");
    for (digit, named, granted) in [('2', revision('e'), false), ('3', lineage.clone(), true)] {
        let mut fleet = Fleet::clone(&fleet(digit, &["a", "b"]));
        fleet.spec.lineage = Some(named);
        let planned = (Arc::new(fleet), units('1', "one", &["a", "b"]));
        world.source.insert(revision(digit), planned);
        world.sent.clear();
        world.see(digit, Relation::Follows);
        assert_eq!(
            world.sent.len(),
            2,
            "both clusters are told, though nothing was released"
        );
        let expected = granted.then(|| LineageGrant::new(&cluster("a"), lineage.clone(), sealed));
        assert_eq!(grant(&world), expected);
    }
}

#[test]
fn a_sequence_that_a_cluster_holds_with_another_list_is_not_told_again() {
    let mut world = settled();
    let (rendered, released) = (world.rendered.clone(), world.released.clone());
    world.push('2', &["a", "b"], "two");
    let held = world.released.clone().expect("it was released");
    let mut world = world.restarted();
    (world.rendered, world.released) = (rendered, released);
    world.look();
    world.push('3', &["a", "b"], "three");
    assert_eq!(world.sequence(), Some(2), "the hub does not know that it was rewound");
    for _ in 0..2 {
        world.report("a", Some(&held));
        assert_eq!(world.sequence(), Some(3), "what it told nobody believes");
    }
    assert_eq!(
        world.released.as_ref().map(|commit| &commit.published.units),
        Some(&units('3', "three", &["a", "b"]))
    );
}

#[test]
fn what_another_hub_released_is_adopted_and_told_and_not_put_back() {
    let mut world = settled();
    let first = world.released.clone();
    // Another hub on the same repository releases the next one.
    let mut other = settled();
    other.push('2', &["a", "b"], "two");
    let further = (other.rendered.clone(), other.released.clone());
    (world.rendered, world.released) = further.clone();
    world.known.extend(other.known);
    world.sent.clear();
    world.look();
    let commit = |released: &Option<StateCommit>| released.as_ref().map(|commit| commit.commit.clone());
    assert_eq!(commit(&world.released), commit(&further.1), "it is not put back");
    assert_eq!(world.state.released_sequence(), Some(2));
    assert_eq!(world.sent.len(), 2, "both clusters are told");
    // A commit on top that counts on nothing is no hub's.
    let mut other = further.1.clone().expect("it was released");
    other.commit = revision('f');
    world.released = Some(other);
    world.look();
    assert_eq!(commit(&world.released), commit(&further.1), "it is put back");
    assert_ne!(commit(&world.released), commit(&first));
}

#[test]
fn a_released_that_is_restored_later_is_adopted() {
    let world = settled();
    let (rendered, released) = (world.rendered.clone(), world.released.clone());
    let mut world = world.restarted();
    (world.rendered, world.released) = (None, None);
    world.look();
    (world.rendered, world.released) = (rendered, released.clone());
    world.look();
    assert_eq!(
        world.state.released.as_ref().map(|commit| &commit.commit),
        released.as_ref().map(|commit| &commit.commit)
    );
    world.push('2', &["a", "b"], "two");
    assert_eq!(world.sequence(), Some(2), "and what is pushed then is released");
}

#[test]
fn a_ref_that_was_rewound_or_removed_under_the_hub_is_put_back() {
    let mut world = settled();
    let first = world.released.clone();
    world.push('2', &["a", "b"], "two");
    let (rendered, released) = (world.rendered.clone(), world.released.clone());
    let same = |a: &Option<StateCommit>, b: &Option<StateCommit>| {
        a.as_ref().map(|commit| &commit.commit) == b.as_ref().map(|commit| &commit.commit)
    };
    for broken in [None, first] {
        world.released = broken;
        world.look();
        assert!(same(&world.released, &released), "{:?}", world.released);
    }
    world.rendered = None;
    world.look();
    assert!(same(&world.rendered, &rendered), "{:?}", world.rendered);
    assert!(world.state.restored.is_some(), "it is said");
    world.push('3', &["a", "b"], "three");
    assert_eq!(
        (world.sequence(), &world.state.restored),
        (Some(3), &None),
        "and over with the next release"
    );
}

#[test]
fn a_rendered_that_a_person_moved_forward_is_released() {
    let mut world = settled();
    let merged = Published {
        record: Some(record(&revision('1'))),
        units: units('1', "merged", &["a", "b"]),
    };
    let parent = world.rendered.clone();
    world.rendered = Some(world.commit(merged, parent));
    // Source stands still, and so does its plan, which is what rendered says now.
    world.source.insert(
        revision('1'),
        (fleet('1', &["a", "b"]), units('1', "merged", &["a", "b"])),
    );
    world.look();
    assert_eq!(
        world.released.as_ref().map(|commit| &commit.published.units),
        Some(&units('1', "merged", &["a", "b"]))
    );
}

#[test]
fn a_release_that_a_cluster_holds_and_this_hub_does_not_know_is_looked_for_without_an_alarm() {
    let mut world = settled();
    // Another hub on the same repository releases the next one, and tells a cluster.
    let mut other = settled();
    other.push('2', &["a", "b"], "two");
    let newest = other.released.clone().expect("it was released");
    (world.rendered, world.released) = (other.rendered.clone(), other.released.clone());
    world.known.extend(other.known);
    let writes = world.state.writes;
    world.sent.clear();
    world.report("a", Some(&newest));
    assert_eq!(world.state.released_sequence(), Some(2), "it is taken over");
    assert_eq!(
        world.state.writes, writes,
        "and nothing is put back or adopted by a write"
    );
    assert_eq!(world.reason("StateKept"), "Kept");
    assert_eq!(world.sent, [(cluster("a"), 2), (cluster("b"), 2)]);
}

#[test]
fn what_another_hub_rendered_from_an_unseen_commit_is_not_planned_over_or_released_before_source_is_looked_at() {
    let mut world = settled();
    let mut other = settled();
    other.push('2', &["a", "b"], "two");
    world.rendered = other.rendered.clone();
    world.known.extend(other.known);
    let (plans, commits) = (world.plans, world.commits);
    world.look();
    assert_eq!(
        (world.plans, world.sequence()),
        (plans, Some(1)),
        "nobody knows yet what is suspended"
    );
    // A copy that is still older says nothing new.
    world.see('1', Relation::Behind);
    assert_eq!(
        (world.plans, world.sequence(), world.commits),
        (plans, Some(1), commits)
    );
    assert_eq!(world.reason("SourceVerified"), "Read", "and it is no alarm");
    world.push('2', &["a", "b"], "two");
    assert_eq!(world.sequence(), Some(2), "it is released once its fleet is known");
    assert_eq!(world.commits, commits + 1, "and not decided again");
}

#[test]
fn what_was_planned_while_a_release_was_looked_for_is_planned_again() {
    let mut world = settled();
    let mut other = settled();
    other.push('2', &["a", "b"], "two");
    let newest = other.released.clone().expect("it was released");
    world.source.insert(
        revision('3'),
        (fleet('3', &["a", "b"]), units('3', "three", &["a", "b"])),
    );
    let judged_by = world.state.judged_by();
    let head = Head::At {
        revision: revision('3'),
        relation: Relation::Follows,
    };
    let seen = Event::SourceSeen {
        head,
        judged_by,
        covered: true,
    };
    let plan = step(&mut world.state, seen, 0).remove(0);
    let planned = world.perform(plan).expect("a plan comes back");
    let report = two_hubs::report(
        cluster("a"),
        Some(Held {
            lineage: newest.lineage.clone(),
            sequence: 2,
            list: Digest::of_bytes(b"list"),
            released: newest.commit.clone(),
            orphan: false,
            orphaned: Default::default(),
            units: BTreeMap::new(),
            mode: Default::default(),
            mode_source: None,
        }),
    );
    let look = step(
        &mut world.state,
        Event::Reported {
            report: Box::new(report),
        },
        0,
    );
    assert!(matches!(look.as_slice(), [Effect::LookAgain]), "{look:?}");
    assert!(
        step(&mut world.state, planned, 0)
            .iter()
            .all(|effect| !matches!(effect, Effect::Write(_))),
        "it holds still"
    );
    // The release was another hub's, and only `released` moved meanwhile.
    world.released = Some(newest.clone());
    world.known.extend(other.known);
    world.look();
    let units_of = |commit: &Option<StateCommit>| commit.as_ref().map(|commit| commit.published.units.clone());
    assert_eq!(units_of(&world.rendered), Some(units('3', "three", &["a", "b"])));
}
