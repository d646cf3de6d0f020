//! Clusters that are silent, and what is decided without anybody's merge.

use render::model::{Failover, FleetSpec, PlacementApproval, SchedulingSpec};
use render::published::Lost;
use render::schedule::Presence;

use super::*;

const AFTER: i64 = 300;
const RETURN: i64 = 600;

fn spec() -> FleetSpec {
    FleetSpec {
        scheduling: SchedulingSpec {
            placement_approval: PlacementApproval::Propose,
            failover: Some(Failover {
                after_seconds: 300,
                clusters_max: 1,
                per_seconds: 3_600,
                return_seconds: 600,
            }),
            ..SchedulingSpec::default()
        },
        ..FleetSpec::default()
    }
}

/// One unit with so many replicas on each of these clusters.
fn shares(digit: char, shares: &[(&str, u64)]) -> BTreeMap<UnitKey, UnitPlacement> {
    let names: Vec<&str> = shares.iter().map(|(name, _)| *name).collect();
    let mut units = units(digit, "one", &names);
    for unit in units.values_mut() {
        for (name, count) in shares {
            let object: render::ObjectKey = "apps/Deployment/shop/web".parse().expect("a valid key");
            let placement = unit.clusters.get_mut(&cluster(name)).expect("it is placed there");
            placement.replicas = [(object, *count)].into();
        }
    }
    units
}

impl World {
    /// Plans of a revision say this from now on.
    fn says(&mut self, digit: char, clusters: &[&str], units: BTreeMap<UnitKey, UnitPlacement>) {
        let mut planned = fleet(digit, clusters);
        Arc::make_mut(&mut planned).spec = spec();
        self.source.insert(revision(digit), (planned, units));
    }

    fn connect(&mut self, name: &str, epoch: u64) {
        self.hear(Event::Connected {
            cluster: cluster(name),
            epoch,
        });
    }

    fn disconnect(&mut self, name: &str, epoch: u64) {
        self.hear(Event::Disconnected {
            cluster: cluster(name),
            epoch,
        });
    }

    fn time_came(&mut self, now: i64) {
        self.now = now;
        self.hear(Event::TimeCame);
    }

    fn cause(&self) -> Option<Cause> {
        let record = self.rendered.as_ref()?.published.record.as_ref()?;
        Some(record.cause)
    }
}

/// A fleet of three with a policy, of which each has two replicas and is connected since 1,000.
fn divided() -> World {
    let mut world = World::new();
    world.now = 1_000;
    world.look();
    world.says('1', &["a", "b", "c"], shares('1', &[("a", 2), ("b", 2), ("c", 2)]));
    world.see('1', Relation::Follows);
    for name in ["a", "b", "c"] {
        world.connect(name, 1);
        world.report(name, None);
    }
    assert_eq!(world.sequence(), Some(1), "it is released");
    world
}

/// What others have once c is lost.
fn without_c(at: i64) -> BTreeMap<UnitKey, UnitPlacement> {
    let mut units = shares('1', &[("a", 3), ("b", 3)]);
    let lost = Lost {
        since: 2_000,
        at,
        keeps: false,
        returned: false,
    };
    for unit in units.values_mut() {
        unit.lost = BTreeMap::from([(cluster("c"), lost)]);
    }
    units
}

#[test]
fn silence_is_a_reason_to_plan_once_it_has_lasted() {
    let mut world = divided();
    let plans = world.plans;
    world.now = 2_000;
    world.disconnect("c", 1);
    assert_eq!((world.plans, next_time(&world.state)), (plans, Some(2_000 + AFTER)));
    world.time_came(2_000 + AFTER - 1);
    assert_eq!(world.plans, plans);
    world.time_came(2_000 + AFTER);
    assert_eq!((world.plans, world.decided), (plans + 1, true));
    assert_eq!(world.reports.presence[&cluster("c")], Presence::SilentSince(2_000));
    assert_eq!(world.reports.presence[&cluster("a")], Presence::HeardSince(1_000));
    assert_eq!(next_time(&world.state), None, "nothing else is due");
}

#[test]
fn a_plan_says_when_time_decides_next() {
    let mut world = divided();
    world.again_at = Some(5_000);
    world.push('2', &["a", "b", "c"], "two");
    assert_eq!(next_time(&world.state), Some(5_000));
    let plans = world.plans;
    world.again_at = None;
    world.time_came(5_000);
    assert_eq!((world.plans, next_time(&world.state)), (plans + 1, None));
}

#[test]
fn a_hub_that_starts_counts_from_its_own_beginning() {
    let mut world = divided().restarted();
    world.now = 9_000;
    world.says(
        '1',
        &["a", "b", "c", "new"],
        shares('1', &[("a", 2), ("b", 2), ("c", 2)]),
    );
    world.look();
    world.see('1', Relation::Follows);
    let presence = world.state.rooms().presence;
    let since = Presence::SilentSince(9_000);
    let expected = ["a", "b", "c"].map(|name| (cluster(name), since));
    assert_eq!(presence, BTreeMap::from(expected), "who was told nothing is only new");
    assert_eq!(next_time(&world.state), Some(9_000 + AFTER));
    world.now = 9_010;
    world.connect("a", 1);
    let presence = world.state.rooms().presence;
    assert_eq!(presence[&cluster("a")], Presence::HeardSince(9_010));
}

#[test]
fn a_session_that_takes_over_from_another_is_no_silence() {
    let mut world = divided();
    world.now = 2_000;
    world.connect("c", 2);
    world.disconnect("c", 1);
    let presence = world.state.rooms().presence;
    assert_eq!(presence[&cluster("c")], Presence::HeardSince(1_000));
}

#[test]
fn who_merged_the_policy_approved_what_follows_from_it() {
    let mut world = divided();
    world.gate = Approval::Required;
    world.now = 2_000;
    world.disconnect("c", 1);
    world.says('1', &["a", "b", "c"], without_c(2_300));
    world.time_came(2_300);
    assert!(world.proposal.is_none(), "nobody is asked");
    assert_eq!(world.cause(), Some(Cause::Failover));
    let moved = world.units().values().next().and_then(|unit| unit.moved_at);
    assert_eq!(moved, Some(2_300));
    assert_eq!(world.sequence(), Some(2), "and it is released");
    // Back for good, it may be given something again.
    world.now = 3_000;
    world.connect("c", 2);
    assert_eq!(next_time(&world.state), Some(3_000 + RETURN));
}

#[test]
fn whatever_moves_by_room_once_a_lost_cluster_is_back_is_no_failover() {
    let lost = without_c(2_300).into_values().next().expect("one").lost;
    for planned in [
        [("a", 4), ("b", 3), ("c", 3)],
        [("a", 4), ("b", 3), ("c", 1)],
        [("a", 4), ("b", 2), ("c", 2)],
    ] {
        let mut world = divided();
        world.now = 2_000;
        world.disconnect("c", 1);
        world.says('1', &["a", "b", "c"], without_c(2_300));
        world.time_came(2_300);
        world.now = 2_400;
        world.connect("c", 2);
        // As an older hub wrote it: it has replicas again, and what was noted of its outage stands there still.
        let noting = |shared: &[(&str, u64)], digit| {
            let mut units = shares(digit, shared);
            units.values_mut().for_each(|unit| unit.lost.clone_from(&lost));
            units
        };
        world.says('2', &["a", "b", "c"], noting(&[("a", 3), ("b", 3), ("c", 2)], '2'));
        world.see('2', Relation::Follows);
        assert_eq!(world.cause(), Some(Cause::SourceCommit));
        let before = world.units();
        world.gate = Approval::Required;
        world.says('2', &["a", "b", "c"], noting(&planned, '2'));
        world.state.look_again(4_000);
        world.time_came(4_000);
        assert_eq!(world.units(), before, "it waits for a merge: {planned:?}");
        assert!(world.proposal.is_some());
        // With nobody to ask, it is called what it is.
        world.gate = Approval::None;
        world.state.look_again(5_000);
        world.time_came(5_000);
        assert_eq!(world.cause(), Some(Cause::Placement));
    }
}

#[test]
fn a_cluster_that_gets_more_beside_a_failover_makes_none_of_its_own() {
    let mut world = divided();
    world.gate = Approval::Required;
    world.now = 2_000;
    world.disconnect("c", 1);
    // It is lost, and has more than it had.
    let mut units = shares('1', &[("a", 3), ("b", 2), ("c", 3)]);
    let lost = without_c(2_300).into_values().next().expect("one").lost;
    units.values_mut().for_each(|unit| unit.lost.clone_from(&lost));
    world.says('1', &["a", "b", "c"], units);
    world.time_came(2_300);
    assert!(world.proposal.is_some(), "nothing leaves a lost cluster");
}

#[test]
fn a_taint_whose_time_is_over_moves_unattended_too() {
    let mut world = divided();
    let mut tainted = shares('2', &[("a", 2), ("b", 2), ("c", 2)]);
    for placement in tainted.values_mut().flat_map(|unit| unit.clusters.values_mut()) {
        placement.leaves_at = (placement.variant.as_str() == "default").then_some(4_000);
    }
    let commits = world.commits;
    world.says('2', &["a", "b", "c"], tainted);
    world.see('2', Relation::Follows);
    assert!(world.commits > commits, "when it leaves is written down");
    world.gate = Approval::Required;
    world.says('2', &["a", "b", "c"], shares('2', &[("a", 3), ("b", 3)]));
    world.state.look_again(4_000);
    world.time_came(4_000);
    assert_eq!((world.proposal.is_none(), world.cause()), (true, Some(Cause::Failover)));
}

/// Three clusters under approval, with twice as many replicas proposed, and c silent since 2,000.
fn silent_while_it_waits() -> World {
    let mut world = divided();
    world.gate = Approval::Required;
    world.says('2', &["a", "b", "c"], shares('2', &[("a", 4), ("b", 4), ("c", 4)]));
    world.see('2', Relation::Follows);
    assert!(world.proposal.take().is_some(), "it waits for a merge");
    world.now = 2_000;
    world.disconnect("c", 1);
    world.says('2', &["a", "b", "c"], without_c(2_300));
    world
}

#[test]
fn what_waits_for_a_merge_does_not_go_along_with_a_failover() {
    let mut world = silent_while_it_waits();
    let before = world.units();
    world.time_came(2_300);
    assert!(world.proposal.is_some());
    assert_eq!(world.units(), before);
}

#[test]
fn a_cluster_that_is_lost_while_a_commit_waits_fails_over_by_what_is_merged() {
    let mut world = silent_while_it_waits();
    world.says('1', &["a", "b", "c"], without_c(2_300));
    let more = shares('2', &[("a", 6), ("b", 6)]);
    world.says('2', &["a", "b", "c"], more.clone());
    world.time_came(2_300);
    let record = world
        .rendered
        .as_ref()
        .and_then(|commit| commit.published.record.clone());
    let record = record.expect("it is rendered");
    assert_eq!((record.cause, record.source), (Cause::Failover, revision('1')));
    let units = world.units();
    let unit = units.values().next().expect("it is placed");
    assert!(!unit.clusters.contains_key(&cluster("c")) && unit.moved_at == Some(2_300));
    assert_eq!(world.sequence(), Some(2), "and it is released");
    assert_eq!(
        world.withdrawn.last(),
        Some(&false),
        "what stood on the older commit goes"
    );
    let proposal = world.proposal.as_ref().expect("what waits is proposed on top of it");
    assert_eq!(proposal.units, more);
    assert!(!world.decided, "as its commit asks for it");
    assert_eq!(
        world.state.accepted,
        Some(revision('2')),
        "the newest still counts for clusters and keys"
    );
    let commits = world.commits;
    world.time_came(9_000);
    assert_eq!(world.commits, commits, "and that is all");
}

#[test]
fn a_failover_by_what_is_merged_does_not_make_the_note_of_a_later_commit_news() {
    let mut world = divided();
    world.gate = Approval::Required;
    for digit in ['2', '3'] {
        world.says(digit, &["a", "b", "c"], shares(digit, &[("a", 4), ("b", 4), ("c", 4)]));
        let (fleet, _) = world.source.get_mut(&revision(digit)).expect("it is there");
        let declared = Arc::make_mut(fleet).clusters.get_mut(&cluster("a"));
        declared.expect("it is declared").public_keys = vec!["new".to_owned()];
        world.see(digit, Relation::Follows);
    }
    assert_eq!((world.noted(), world.note.1), (Some(&revision('2')), 1));
    world.now = 2_000;
    world.disconnect("c", 1);
    world.says('1', &["a", "b", "c"], without_c(2_300));
    world.time_came(2_000 + AFTER);
    assert_eq!(world.cause(), Some(Cause::Failover));
    world.look();
    assert!(world.state.source.is_some() && !world.state.overtaken, "it goes on");
    assert_eq!(world.state.named(), Some(revision('2')));
}

#[test]
fn a_policy_that_waits_for_its_merge_neither_moves_nor_stops_anything() {
    // The commit that waits takes the policy away.
    let mut world = divided();
    world.gate = Approval::Required;
    world.says('2', &["a", "b", "c"], shares('2', &[("a", 4), ("b", 4), ("c", 4)]));
    let (fleet, _) = world.source.get_mut(&revision('2')).expect("it is there");
    Arc::make_mut(fleet).spec = FleetSpec::default();
    world.see('2', Relation::Follows);
    world.now = 2_000;
    world.disconnect("c", 1);
    assert_eq!(next_time(&world.state), Some(2_000 + AFTER));
    world.says('1', &["a", "b", "c"], without_c(2_300));
    world.time_came(2_000 + AFTER);
    assert_eq!(world.cause(), Some(Cause::Failover));

    // The commit that waits brings it.
    let mut world = divided();
    let (fleet, _) = world.source.get_mut(&revision('1')).expect("it is there");
    Arc::make_mut(fleet).spec = FleetSpec::default();
    world.gate = Approval::Required;
    world.says('2', &["a", "b", "c"], shares('2', &[("a", 4), ("b", 4), ("c", 4)]));
    world.see('2', Relation::Follows);
    world.now = 2_000;
    world.disconnect("c", 1);
    world.says('2', &["a", "b", "c"], without_c(2_300));
    let before = world.units();
    world.time_came(2_000 + AFTER);
    assert_eq!(world.units(), before, "it is a part of what waits");
}

#[test]
fn nothing_but_a_failover_goes_by_what_is_merged() {
    let mut world = silent_while_it_waits();
    let mut other = units('1', "two", &["a", "b", "c"]);
    other
        .values_mut()
        .for_each(|unit| unit.lost = without_c(2_300).into_values().next().expect("one").lost);
    for planned in [shares('1', &[("a", 3), ("b", 2), ("c", 1)]), other] {
        let before = world.units();
        world.says('1', &["a", "b", "c"], planned);
        world.state.behind.proposed();
        world.time_came(2_300);
        assert_eq!(world.units(), before);
    }
}
