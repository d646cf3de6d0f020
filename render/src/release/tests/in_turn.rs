//! Shares of a unit that move from cluster to cluster.

use proptest::prelude::*;

use super::order::{cluster, unit};
use super::*;
use crate::by_object::ByObject;
use crate::name::ObjectKey;
use crate::published::{Cause, ReleaseRecord};

const NAMES: [&str; 3] = ["a", "b", "c"];

fn object(name: &str) -> ObjectKey {
    ObjectKey::new("apps/v1", "Deployment", "t", name)
}

/// Replicas of two objects on each cluster; one that has none of either has nothing of the unit.
type Shares = [[u64; 2]; 3];

fn record(sequence: u64) -> ReleaseRecord {
    ReleaseRecord {
        cause: Cause::SourceCommit,
        source: crate::Revision::parse("c".repeat(40)).expect("a valid commit"),
        sequence: Some(sequence),
        rendered: None,
        departed: BTreeMap::new(),
        orphaned: BTreeMap::new(),
        render_version: 1,
    }
}

/// Only the first object, which is called `x`.
fn of_x(shares: [u64; 3]) -> Shares {
    shares.map(|replicas| [replicas, 0])
}

fn replicas(shares: [u64; 2]) -> ByObject {
    ByObject::from([(object("x"), shares[0]), (object("y"), shares[1])])
}

/// The unit `t/web` with a content and shares.
fn state(content: &str, shares: &Shares) -> Published {
    let entries = NAMES.iter().zip(shares).filter(|(_, shares)| **shares != [0, 0]);
    let entries = entries.map(|(name, shares)| {
        let (cluster, mut placement, variant) = entry(name, "default", content);
        placement.replicas = replicas(*shares);
        (cluster, placement, variant)
    });
    let placed = placement(&entries.collect::<Vec<_>>());
    match placed.clusters.is_empty() {
        true => Published::default(),
        false => published(&[("t/web", placed)]),
    }
}

fn shares_of(published: &Published) -> Shares {
    let placed = published.units.get(&unit("t/web"));
    NAMES.map(|name| {
        let told = placed.and_then(|placed| placed.clusters.get(&cluster(name)));
        ["x", "y"].map(|name| {
            told.and_then(|told| told.replicas.get(&object(name)).copied())
                .unwrap_or_default()
        })
    })
}

/// A hub and its clusters, which do at once what they are told, but for becoming ready.
struct World {
    fleet: Fleet,
    target: Published,
    released: Published,
    unfinished: Unfinished,
    /// What of each cluster is ready.
    ready: Shares,
    /// What clusters said last.
    said: BTreeMap<ClusterName, BTreeMap<UnitKey, Seen>>,
    move_seconds: Option<u64>,
    now: i64,
    /// What was waited for last, as `cluster words`.
    waiting: Vec<String>,
}

impl World {
    fn new(shares: &Shares) -> Self {
        let mut world = Self {
            fleet: suspended(Vec::new()),
            target: Published::default(),
            released: Published::default(),
            unfinished: Unfinished::default(),
            ready: [[0; 2]; 3],
            said: BTreeMap::new(),
            move_seconds: None,
            now: 0,
            waiting: Vec::new(),
        };
        world.aim("1", shares);
        (0..3).for_each(|index| world.becomes(index, Outcome::Healthy));
        assert_eq!(world.told(), *shares, "with nobody before, nobody waits");
        world
    }

    fn aim(&mut self, content: &str, shares: &Shares) {
        self.target = state(content, shares);
        self.release();
    }

    fn told(&self) -> Shares {
        shares_of(&self.released)
    }

    fn told_x(&self) -> [u64; 3] {
        self.told().map(|[x, _]| x)
    }

    /// A cluster comes so far, and says so.
    fn becomes(&mut self, index: usize, outcome: Outcome) {
        if outcome == Outcome::Healthy {
            self.ready[index] = self.told()[index];
        }
        let name = cluster(NAMES[index]);
        let told = self
            .released
            .units
            .get(&unit("t/web"))
            .and_then(|placed| placed.entry(&name));
        let seen = told.map(|(_, variant)| Seen {
            digest: Some(variant.digest),
            sequence: self.released.record.as_ref().and_then(|record| record.sequence),
            outcome,
        });
        let units: BTreeMap<_, _> = seen.into_iter().map(|seen| (unit("t/web"), seen)).collect();
        self.unfinished.said(&name, &units, &self.released);
        self.said.insert(name, units);
        self.release();
    }

    /// Releases until nothing is due any more.
    fn release(&mut self) {
        for _ in 0..20 {
            let observed = Observed {
                clusters: self.said.clone(),
                holdings: silence(&[&self.target, &self.released]).holdings,
                unfinished: Arc::new(self.unfinished.clone()),
                move_seconds: self.move_seconds,
            };
            let due = release(
                &self.target,
                &self.released,
                self.fleet.suspensions(),
                &observed,
                self.now,
            );
            let waits = due.waiting.iter().map(|waits| format!("{} {waits}", waits.cluster));
            self.waiting = waits.collect();
            assert!(
                due.waiting.is_empty() || reads_outcomes(&self.target, &self.released),
                "who waits is looked at again"
            );
            if due.advances.is_empty() {
                return;
            }
            let mut next = advance(&self.target, &self.released, due.advances, self.now);
            next.record = Some(record(self.released.next_sequence()));
            self.unfinished.told(&self.released, &next, self.now);
            self.released = next;
            let told = self.told();
            for (ready, told) in self.ready.iter_mut().zip(told) {
                *ready = [ready[0].min(told[0]), ready[1].min(told[1])];
            }
        }
        panic!("it does not come to rest");
    }

    fn sums(&self) -> [u64; 2] {
        totals(&self.ready)
    }
}

fn totals(shares: &Shares) -> [u64; 2] {
    [0, 1].map(|object| shares.iter().map(|shares| shares[object]).sum())
}

#[test]
fn who_gets_more_comes_first_and_who_gets_less_waits_until_it_is_healthy() {
    let mut world = World::new(&of_x([10, 0, 0]));
    world.aim("1", &of_x([5, 5, 0]));
    assert_eq!(world.told_x(), [10, 5, 0]);
    assert_eq!(
        world.waiting,
        ["a keeps what it has until b, which gets more, is healthy"]
    );
    world.becomes(1, Outcome::UnderWay);
    assert_eq!(world.told_x(), [10, 5, 0]);
    world.becomes(1, Outcome::Failed);
    assert_eq!(
        world.waiting,
        ["a keeps what it has, since t/web failed on b, which gets more"]
    );
    world.becomes(1, Outcome::Healthy);
    assert_eq!((world.told_x(), world.waiting.len()), ([5, 5, 0], 0));
    assert_eq!(
        world.released.units, world.target.units,
        "and nothing of the move is left"
    );
}

#[test]
fn a_cluster_that_was_healthy_with_what_it_had_says_nothing_of_what_it_got() {
    let mut world = World::new(&of_x([8, 2, 0]));
    // What it said of its two replicas is older than what it is told now.
    world.aim("1", &of_x([5, 5, 0]));
    assert_eq!(world.told_x(), [8, 5, 0]);
    world.release();
    assert_eq!(world.told_x(), [8, 5, 0]);
}

#[test]
fn whoever_loses_while_nobody_gains_waits_for_nobody() {
    let mut world = World::new(&of_x([6, 6, 6]));
    world.becomes(1, Outcome::Failed);
    world.aim("1", &of_x([2, 6, 0]));
    assert_eq!(world.told_x(), [2, 6, 0]);
}

#[test]
fn a_unit_that_all_matching_clusters_have_whole_leaves_at_once() {
    let old = published(&[("t/web", placement(&[entry("a", "default", "1")]))]);
    let new = published(&[("t/web", placement(&[entry("b", "default", "1")]))]);
    check(&new, &old, 2);
    assert!(!reads_outcomes(&new, &old));
}

#[test]
fn where_some_of_the_clusters_are_taken_one_leaves_after_its_stand_in_is_healthy() {
    let chosen = |name: &str| {
        let mut placed = placement(&[entry(name, "default", "1")]);
        placed.in_turn = true;
        published(&[("t/web", placed)])
    };
    let (old, new) = (chosen("a"), chosen("b"));
    let mut observed = silence(&[&old, &new]);
    let due = release(&new, &old, Suspensions::none(), &observed, 0);
    let next = advance(&new, &old, due.advances, 7);
    let placed = &next.units[&unit("t/web")];
    assert_eq!((placed.clusters.len(), placed.awaited[&cluster("b")].since), (2, 7));
    let seen = Seen {
        digest: Some(Digest::of_bytes(b"1")),
        sequence: Some(1),
        outcome: Outcome::Healthy,
    };
    observed.clusters = BTreeMap::from([(cluster("b"), BTreeMap::from([(unit("t/web"), seen)]))]);
    let due = release(&new, &next, Suspensions::none(), &observed, 0);
    assert_eq!(advance(&new, &next, due.advances, 0).units, new.units);
}

#[test]
fn a_newer_content_of_who_gets_less_waits_with_its_share() {
    let mut world = World::new(&of_x([10, 0, 2]));
    world.aim("2", &of_x([5, 5, 2]));
    let placed = &world.released.units[&unit("t/web")];
    let content = |name: &str| placed.entry(&cluster(name)).map(|(_, variant)| variant.digest);
    assert_eq!(content("a"), Some(Digest::of_bytes(b"1")));
    assert_eq!(content("b"), Some(Digest::of_bytes(b"2")));
    assert_eq!(content("c"), Some(Digest::of_bytes(b"2")), "whose share stays goes on");
}

#[test]
fn two_objects_that_change_places_are_both_up_before_either_goes_down() {
    let mut world = World::new(&[[5, 1], [1, 5], [0, 0]]);
    world.aim("1", &[[1, 5], [5, 1], [0, 0]]);
    assert_eq!(world.told(), [[5, 5], [5, 5], [0, 0]]);
    world.becomes(0, Outcome::Healthy);
    assert_eq!(
        world.told(),
        [[5, 5], [5, 1], [0, 0]],
        "nobody waits for b's own share but others"
    );
    world.becomes(1, Outcome::Healthy);
    assert_eq!(world.told(), [[1, 5], [5, 1], [0, 0]]);
}

#[test]
fn a_newer_target_takes_back_what_was_not_finished_and_nothing_else() {
    let mut world = World::new(&of_x([10, 2, 0]));
    world.aim("1", &of_x([4, 8, 0]));
    assert_eq!(world.told_x(), [10, 8, 0]);
    world.aim("1", &of_x([4, 0, 8]));
    assert_eq!(
        world.told_x(),
        [10, 2, 8],
        "b keeps what it had before, until c is healthy"
    );
    world.becomes(2, Outcome::Healthy);
    assert_eq!(world.told_x(), [4, 0, 8]);
    world.aim("1", &of_x([6, 6, 0]));
    world.aim("1", &of_x([4, 0, 8]));
    assert_eq!(world.told_x(), [4, 0, 8], "and one that had nothing leaves at once");
}

#[test]
fn who_got_more_shortly_before_is_waited_for_by_the_next_who_gets_less() {
    let mut world = World::new(&of_x([10, 0, 0]));
    world.aim("1", &of_x([10, 5, 0]));
    world.aim("1", &of_x([5, 5, 0]));
    assert_eq!(world.told_x(), [10, 5, 0]);
    world.becomes(1, Outcome::Healthy);
    assert_eq!(world.told_x(), [5, 5, 0]);
    // Once it was healthy, what becomes of it later holds nobody.
    world.becomes(1, Outcome::Failed);
    world.aim("1", &of_x([3, 5, 0]));
    assert_eq!(world.told_x(), [3, 5, 0]);
}

#[test]
fn what_a_cluster_was_once_healthy_with_is_not_taken_back_whatever_it_says_later() {
    let mut world = World::new(&[[4, 0], [4, 0], [1, 3]]);
    world.aim("1", &[[0, 1], [4, 0], [5, 0]]);
    world.becomes(2, Outcome::Healthy);
    assert_eq!(
        world.told(),
        [[0, 1], [4, 0], [5, 3]],
        "c waits for the other object on a"
    );
    world.becomes(2, Outcome::UnderWay);
    world.aim("1", &[[5, 0], [0, 0], [1, 0]]);
    assert_eq!(world.told_x(), [5, 4, 5], "a gave its four away for the five of c");
}

#[test]
fn a_cluster_that_comes_back_is_not_healthy_by_what_it_said_before_it_left() {
    let mut world = World::new(&of_x([5, 0, 2]));
    world.aim("1", &of_x([0, 0, 2]));
    world.aim("1", &of_x([5, 0, 0]));
    assert_eq!(world.told_x(), [5, 0, 2]);
}

#[test]
fn whoever_is_suspended_is_not_waited_for() {
    let mut world = World::new(&of_x([10, 0, 0]));
    world.fleet = suspended(vec![suspension(Some("t/web"), named("b"), None)]);
    world.aim("1", &of_x([5, 5, 0]));
    assert_eq!(world.told_x(), [5, 0, 0]);
}

#[test]
fn waiting_ends_when_the_fleet_says_so_counted_from_when_it_was_told() {
    let mut world = World::new(&of_x([10, 0, 0]));
    world.now = 1_000;
    world.aim("1", &of_x([5, 5, 0]));
    world.move_seconds = Some(60);
    world.now = 1_059;
    world.release();
    assert_eq!(world.told_x(), [10, 5, 0]);
    assert_eq!(next_end(&world.released, 60, 1_059), Some(1_060));
    world.now = 1_060;
    world.release();
    assert_eq!(world.told_x(), [5, 5, 0]);
    assert_eq!(next_end(&world.released, 60, 1_060), None);
}

#[test]
fn a_cluster_of_the_unit_that_gets_nothing_new_holds_nobody() {
    let mut world = World::new(&of_x([10, 0, 2]));
    world.becomes(2, Outcome::Failed);
    world.aim("1", &of_x([5, 5, 2]));
    world.becomes(1, Outcome::Healthy);
    assert_eq!(world.told_x(), [5, 5, 2]);
}

#[derive(Clone, Debug)]
enum Happening {
    Target(u8, Shares),
    Healthy(usize),
    UnderWay(usize),
}

fn shares() -> impl Strategy<Value = Shares> {
    proptest::array::uniform3(proptest::array::uniform2(0_u64..6))
}

fn happening() -> impl Strategy<Value = Happening> {
    prop_oneof![
        2 => (1_u8..3, shares()).prop_map(|(content, shares)| Happening::Target(content, shares)),
        3 => (0_usize..3).prop_map(Happening::Healthy),
        1 => (0_usize..3).prop_map(Happening::UnderWay),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    /// Commits come at any time, and clusters become healthy at any time or not.
    #[test]
    fn what_is_ready_never_falls_below_the_least_that_any_commit_asked_for(
        first in shares(),
        happenings in proptest::collection::vec(happening(), 0..24),
    ) {
        let mut world = World::new(&first);
        let mut least = totals(&first);
        let mut last = (1, first);
        for happening in happenings {
            match happening {
                Happening::Target(content, shares) => {
                    let total = totals(&shares);
                    least = [least[0].min(total[0]), least[1].min(total[1])];
                    last = (content, shares);
                    world.aim(&content.to_string(), &shares);
                }
                Happening::Healthy(index) => world.becomes(index, Outcome::Healthy),
                Happening::UnderWay(index) => world.becomes(index, Outcome::UnderWay),
            }
            let sums = world.sums();
            prop_assert!(sums[0] >= least[0] && sums[1] >= least[1], "{:?} of {least:?}: {:?}", sums, world.ready);
        }
        for _ in 0..4 {
            (0..3).for_each(|index| world.becomes(index, Outcome::Healthy));
        }
        prop_assert_eq!(&world.waiting, &Vec::<String>::new());
        prop_assert_eq!(world.told(), last.1, "and it ends where the newest commit wants it");
        prop_assert_eq!(&world.released.units, &state(&last.0.to_string(), &last.1).units);
    }
}
