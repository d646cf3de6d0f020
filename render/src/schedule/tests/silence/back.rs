//! Clusters that come back, once or again and again.

use proptest::prelude::*;

use super::*;
use crate::explain;

#[test]
fn a_hub_that_starts_waits_anew() {
    let mut world = World::new(&["a", "b", "c"], everywhere(DYNAMIC), 9);
    // It is silent since the hub began, for whoever began just now.
    world.silent("c", 500_000);
    world.at(500_000 + AFTER - 1);
    assert_eq!(world.decisions, 1);
    world.at(500_000 + AFTER);
    assert_eq!(world.decisions, 2);
    // What was lost before stays lost, whatever the next hub counts from.
    world.silent("c", 600_000);
    for now in [600_000, 600_000 + AFTER, 700_000] {
        let planned = world.at(now);
        assert_eq!((world.decisions, planned.findings), (2, vec![]));
    }
    assert_eq!(world.lost(), ["c"]);
}

#[test]
fn a_silent_cluster_gets_no_new_replicas_and_its_return_moves_none() {
    for scheduling in [DYNAMIC, STATIC] {
        let mut world = World::new(&["a", "b", "c"], everywhere(scheduling), 6);
        // Two at once are more than the budget allows, so that both keep what they have.
        world.silent("b", 100_000);
        world.silent("c", 100_000);
        world.now = 101_000;
        world.scale(12);
        assert_eq!(world.shares(), [("a", 8), ("b", 2), ("c", 2)], "{scheduling:?}");
        if scheduling == STATIC {
            let said = world.explained("b");
            assert!(
                said.contains("no more: it is silent since 1970-01-02T03:46:40Z"),
                "{said}"
            );
        }
        for name in ["b", "c"] {
            world.heard(name, 102_000);
        }
        for now in [102_000, 102_000 + RETURN, 900_000] {
            world.at(now);
        }
        assert_eq!((world.decisions, world.shares()[0].1), (2, 8), "{scheduling:?}");
        world.scale(15);
        let expected = if scheduling == STATIC { [5, 5, 5] } else { [9, 3, 3] };
        let shares: Vec<u64> = world.shares().into_iter().map(|(_, share)| share).collect();
        assert_eq!(shares, expected, "and counts again once something is asked for");
    }
}

#[test]
fn a_cluster_that_came_back_is_given_new_replicas_once_it_is_stable() {
    for scheduling in [DYNAMIC, STATIC] {
        let mut world = World::new(&["a", "b", "c"], everywhere(scheduling), 9);
        world.silent("c", 100_000);
        world.at(100_300);
        world.heard("c", 101_000);
        world.now = 101_000 + RETURN - 1;
        world.scale(12);
        assert_eq!(
            world.lost(),
            ["c"],
            "{scheduling:?}: it is heard of for too short a time"
        );
        assert!(!world.unit().clusters.contains_key(&cluster_name("c")));
        let decisions = world.decisions;
        let planned = world.at(101_000 + RETURN);
        assert_eq!(
            (world.decisions, planned.findings),
            (decisions, vec![]),
            "nothing is written for that alone"
        );
        world.at(900_000);
        assert_eq!((world.decisions, world.lost()), (decisions, vec!["c"]));
        world.scale(15);
        assert!(
            world.shares().iter().any(|(name, share)| *name == "c" && *share > 0),
            "{:?}",
            world.shares()
        );
        assert_eq!(world.lost(), [""; 0], "the record of the outage is gone");
    }
}

/// c was lost and is back for good, which moved nothing.
fn back_for_good() -> World {
    let mut world = World::new(&["a", "b", "c"], everywhere(STATIC), 9);
    world.silent("c", 100_000);
    world.at(100_300);
    world.heard("c", 101_000);
    world.at(900_000);
    assert_eq!((world.decisions, world.lost()), (2, vec!["c"]));
    world
}

fn share_of_c(world: &World) -> u64 {
    let shares = world.shares();
    shares
        .iter()
        .find(|(name, _)| *name == "c")
        .map_or(0, |(_, share)| *share)
}

#[test]
fn a_returned_cluster_gets_its_share_by_weight_when_weights_alone_are_others() {
    let mut world = back_for_good();
    world.subscribe(|subscription| subscription.subscribers = vec![subscriber(&[], Some(2))]);
    world.at(900_100);
    assert_eq!(share_of_c(&world), 0, "until a commit says so");
    world.commit();
    assert_eq!(
        (world.shares(), world.lost()),
        (vec![("a", 3), ("b", 3), ("c", 3)], vec![])
    );
}

#[test]
fn what_was_asked_for_while_a_cluster_was_lost_gives_it_nothing_when_it_is_back() {
    let mut world = World::new(&["a", "b", "c"], everywhere(STATIC), 9);
    world.silent("c", 100_000);
    world.at(100_300);
    // Others have as many by it as before, so that nothing is written.
    world.subscribe(|subscription| subscription.subscribers = vec![subscriber(&[], Some(2))]);
    world.commit();
    assert_eq!(world.decisions, 2);
    world.heard("c", 101_000);
    world.at(900_000);
    assert_eq!((world.decisions, share_of_c(&world)), (2, 0));
}

#[test]
fn of_an_older_versions_placement_other_numbers_are_asked_for_alone() {
    let mut world = back_for_good();
    let older = Arc::make_mut(&mut world.published).units.values_mut();
    older.for_each(|unit| unit.asks = None);
    world.subscribe(|subscription| subscription.subscribers = vec![subscriber(&[], Some(2))]);
    world.commit();
    assert_eq!(share_of_c(&world), 0, "nobody knows what it asked for");
    world.scale(6);
    assert_eq!(
        world.shares(),
        [("a", 2), ("b", 2), ("c", 2)],
        "also where they are fewer"
    );
}

#[test]
fn a_cluster_that_comes_and_goes_moves_nothing_back_and_forth() {
    let mut world = World::new(&["a", "b", "c"], everywhere(STATIC), 9);
    let mut now = 100_000;
    for _ in 0..20 {
        world.silent("c", now);
        world.at(now + AFTER + 1);
        world.heard("c", now + AFTER + 10);
        world.at(now + AFTER + 20);
        now += 2 * AFTER;
    }
    assert_eq!(world.decisions, 2, "it lost its share once");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    // However clusters come and go: every move is one of the budget's, each loss of a cluster counts once, and no replica
    // is ever without a place.
    #[test]
    fn clusters_that_come_and_go_move_no_more_than_the_budget(
        events in prop::collection::vec((0..5_usize, any::<bool>(), 1..900_i64), 1..40),
        budget in 1..3_u64,
        is_static in any::<bool>(),
    ) {
        let names = ["a", "b", "c", "d", "e"];
        let scheduling = if is_static { STATIC } else { DYNAMIC };
        let mut world = World::new(&names, everywhere(scheduling), 10);
        world.fleet.spec.scheduling.failover = Some(policy(budget));
        let mut lost_at: Vec<(i64, ClusterName)> = Vec::new();
        for (index, is_silent, later) in events {
            world.now += later;
            let (name, now) = (names[index], world.now);
            let is_now = matches!(world.reports.presence[&cluster_name(name)], Presence::SilentSince(_));
            match (is_now, is_silent) {
                (false, true) => world.silent(name, now),
                (true, false) => world.heard(name, now),
                (true, true) | (false, false) => {}
            }
            let (before, decisions) = (world.unit().lost.clone(), world.decisions);
            world.at(now);
            let new = world.unit().lost.iter().filter(|(_, lost)| !lost.keeps && !lost.returned);
            let new = new.filter(|(name, lost)| before.get(*name) != Some(*lost));
            let new: Vec<_> = new.map(|(name, lost)| (lost.at, name.clone())).collect();
            prop_assert_eq!(world.decisions > decisions, !new.is_empty(), "only a loss moves anything");
            lost_at.extend(new);
            let within = lost_at.iter().filter(|(at, _)| now - at < PER);
            let distinct: std::collections::BTreeSet<_> = within.map(|(_, name)| name).collect();
            prop_assert!(distinct.len() as u64 <= budget, "{lost_at:?}");
            let sum: u64 = world.shares().iter().map(|(_, share)| share).sum();
            prop_assert_eq!(sum, 10);
        }
    }
}

#[test]
fn a_silent_cluster_takes_part_in_a_first_placement_by_weight_only_later() {
    let mut world = World::new(&["a", "b", "c"], everywhere(STATIC), 6);
    world.published = Arc::default();
    world.silent("c", 0);
    world.commit();
    let of_c = world
        .shares()
        .iter()
        .find(|(name, _)| *name == "c")
        .map_or(0, |(_, share)| *share);
    assert_eq!(of_c, 0);
    world.heard("c", 200_000);
    world.at(900_000);
    assert_eq!(world.decisions, 2, "and its return moves nothing");
    world.scale(9);
    assert_eq!(world.shares(), [("a", 3), ("b", 3), ("c", 3)]);
}

#[test]
fn a_cluster_that_returns_with_what_stayed_there_takes_no_other_clusters_place() {
    let mut subscription = everywhere(DYNAMIC);
    subscription.placing.clusters.max = Some(2);
    let mut world = World::new(&["a", "b", "c"], subscription, 8);
    let taken: Vec<String> = world.shares().iter().map(|(name, _)| (*name).to_owned()).collect();
    let other = ["a", "b", "c"]
        .into_iter()
        .find(|name| !taken.iter().any(|taken| taken == name))
        .expect("one is left");
    // The third has room for two, and the first for no more than it has.
    for (name, cores) in [(taken[0].as_str(), 4), (other, 2)] {
        let said = world
            .reports
            .clusters
            .get_mut(&cluster_name(name))
            .expect("it reported");
        said.capacity = Arc::new(capacity(1, cores));
    }
    world.silent(&taken[1], 100_000);
    world.at(100_000 + AFTER);
    let mut before: Vec<(String, u64)> = world
        .shares()
        .into_iter()
        .map(|(name, share)| (name.to_owned(), share))
        .collect();
    before.sort_by_key(|(_, share)| std::cmp::Reverse(*share));
    assert_eq!(before.iter().map(|(_, share)| *share).collect::<Vec<_>>(), [4, 2, 2]);
    let before = world.published.clone();
    world.heard(&taken[1], 101_000);
    world.at(101_000);
    assert_eq!(world.published, before, "it is heard of: {:?}", world.shares());
    world.at(101_000 + RETURN);
    assert_eq!(world.published, before, "and for long enough: {:?}", world.shares());
}

#[test]
fn a_cluster_that_came_back_and_has_replicas_again_is_lost_no_more() {
    for scheduling in [DYNAMIC, STATIC] {
        let mut world = World::new(&["a", "b", "c"], everywhere(scheduling), 9);
        world.silent("c", 100_000);
        world.at(100_300);
        world.heard("c", 100_400);
        world.now = 100_400 + RETURN;
        world.scale(18);
        assert!(share_of_c(&world) > 0, "{:?}", world.shares());
        let c = cluster_name("c");
        assert_eq!(world.unit().loss(&c), None, "{scheduling:?}");
        let noted = world.unit().lost[&c];
        assert_eq!(
            (noted.at, noted.returned),
            (100_300, true),
            "it counts against the budget alone"
        );
        world.now = 100_300 + PER;
        world.scale(21);
        assert_eq!(world.lost(), [""; 0], "and not for longer than that");
    }
}

#[test]
fn a_share_that_a_returned_cluster_did_not_get_waits_also_when_it_was_silent_twice() {
    let mut world = World::new(&["a", "b", "c"], everywhere(STATIC), 9);
    world.silent("c", 100_000);
    world.at(100_300);
    world.heard("c", 100_400);
    world.now = 100_400 + RETURN;
    world.scale(12);
    assert_eq!(world.shares(), [("a", 4), ("b", 4), ("c", 4)]);
    // The budget is spent, so that it keeps what it has, and gets no share of what is new.
    world.silent("c", 101_100);
    world.now = 101_500;
    let planned = world.scale(18);
    assert_eq!(reasons_of(&planned), ["FailoverWaits"]);
    assert_eq!(world.shares(), [("a", 7), ("b", 7), ("c", 4)]);
    let decisions = world.decisions;
    world.heard("c", 101_600);
    for now in [101_600, 101_600 + RETURN, 900_000] {
        world.at(now);
    }
    assert_eq!(
        (world.decisions, share_of_c(&world)),
        (decisions, 4),
        "its return moves nothing"
    );
    world.scale(21);
    assert_eq!(world.shares(), [("a", 7), ("b", 7), ("c", 7)]);
}

#[test]
fn who_asks_is_told_that_a_return_gives_nothing_back() {
    for (scheduling, expected) in [
        (
            DYNAMIC,
            "it was lost and is back, which moves nothing: it may get replicas that are asked for from now on",
        ),
        (
            STATIC,
            "it was lost, and gets its share when the unit asks for something else",
        ),
    ] {
        let mut world = World::new(&["a", "b", "c"], everywhere(scheduling), 9);
        world.silent("c", 100_000);
        world.at(100_300);
        world.heard("c", 101_000);
        world.at(900_000);
        let looking = explain::Context {
            fleet: &world.fleet,
            published: &world.published,
            findings: &[],
            reports: &world.reports,
            now: world.now,
        };
        let key = world.published.units.keys().next().expect("it is placed");
        let explained = explain::explain(&looking, key, Some(&cluster_name("c"))).expect("it is declared");
        let of_c = &explained.clusters[0];
        assert_eq!(
            (of_c.decision, of_c.reasons.last().map(String::as_str)),
            (explain::Decision::LeftOut, Some(expected))
        );
        assert_eq!(of_c.rule, Some(explain::Rule::Choice(ChoiceRule::Failover)));
    }
}
