//! What moves a placement although nothing of the fleet does: a revert, and a commit that asks for it.

use super::*;
use crate::schedule::Rebalance;

fn web() -> UnitKey {
    UnitKey::new("default", "web").expect("it is a valid unit")
}

/// What the unit of a fleet asks for.
fn asks(fleet: &Fleet) -> Option<Digest> {
    scheduled(fleet, &Reports::default(), None).asks
}

/// As it was placed when it asked for what the unit of a fleet asks for.
fn remembered(fleet: &Fleet, clusters: &[(&str, u64)]) -> Moves {
    let before = UnitPlacement {
        asks: asks(fleet),
        ..placed(clusters)
    };
    Moves {
        remembered: BTreeMap::from([(web(), before)]),
        ..Moves::default()
    }
}

fn rebalance(what: Rebalance) -> Moves {
    Moves {
        rebalance: BTreeMap::from([(web(), what)]),
        ..Moves::default()
    }
}

fn reason(scheduled: &Scheduled, cluster: &str) -> String {
    scheduled.assignments[&cluster_name(cluster)].reasons.join("; ")
}

/// A report of this cluster with so many pods of the unit on its first node, and so many that no node takes.
fn with_own(mut said: Capacity, scheduled: u64, unschedulable: u64) -> Capacity {
    let requests = Resources::from([("cpu", 1_000), ("pods", 1)]);
    said.nodes.0[0]
        .free
        .add(&requests, -i64::try_from(scheduled).expect("it is small"));
    said.nodes.0[0].pods = BTreeMap::from([(0, scheduled)]);
    said.workloads = vec![WorkloadPods {
        unit: web(),
        object: key(),
        replicas: scheduled + unschedulable,
        requests,
        scheduled,
        unschedulable,
    }];
    said
}

#[test]
fn what_a_unit_asks_for_is_the_same_whatever_clusters_there_are() {
    let fewer = fleet(vec![cluster("a", &[])], everywhere(DYNAMIC), deployment(4, "1"));
    assert_eq!(asks(&two(4)), asks(&fewer));
    let other_pods = fleet(vec![cluster("a", &[])], everywhere(DYNAMIC), deployment(4, "2"));
    for other in [two(8), other_pods] {
        assert_ne!(asks(&two(4)), asks(&other));
    }
}

#[test]
fn only_where_there_is_a_choice_it_is_noted_what_a_unit_asks_for() {
    let plain = fleet(
        vec![cluster("a", &[])],
        everywhere(Scheduling::Replication),
        deployment(4, "1"),
    );
    assert_eq!(asks(&plain), None, "every match has it, whatever was before");
    let choice = Choice {
        max: Some(1),
        ..Choice::default()
    };
    assert!(asks(&choosing(choice, 3)).is_some());
    let weighed = fleet(vec![cluster("a", &[])], everywhere(STATIC), deployment(4, "1"));
    assert!(asks(&weighed).is_some());
}

#[test]
fn a_revert_restores_the_shares_that_were() {
    let known = reports(&[("a", capacity(8, 1)), ("b", capacity(8, 1))]);
    let now = placed(&[("a", 4), ("b", 4)]);
    let usual = scheduled(&two(4), &known, Some(now.clone()));
    assert_eq!(shares(&usual), [2, 2], "without memory, each loses its part");
    let found = scheduled_by(&two(4), &known, Some(now), &remembered(&two(4), &[("a", 1), ("b", 3)]));
    assert_eq!(shares(&found), [1, 3]);
    assert!(!found.by_room && found.findings.is_empty(), "{found:?}");
    let said = "replicas of Deployment web: 1 of 4, had 4, as it was at 000000000000";
    assert!(reason(&found, "a").ends_with(said), "{}", reason(&found, "a"));
}

#[test]
fn what_is_remembered_of_another_wish_restores_nothing() {
    let known = reports(&[("a", capacity(8, 1)), ("b", capacity(8, 1))]);
    let other = remembered(&two(5), &[("a", 1), ("b", 3)]);
    let found = scheduled_by(&two(4), &known, Some(placed(&[("a", 4), ("b", 4)])), &other);
    assert_eq!(shares(&found), [2, 2]);
}

#[test]
fn what_is_no_longer_possible_is_placed_by_the_usual_rules() {
    // b has room for 1, and had none: of its 3 from then, 2 go to a.
    let known = reports(&[("a", capacity(8, 1)), ("b", capacity(1, 1))]);
    let before = remembered(&two(4), &[("a", 1), ("b", 3)]);
    let found = scheduled_by(&two(4), &known, Some(placed(&[("a", 8)])), &before);
    assert_eq!(shares(&found), [3, 1]);
    assert!(
        reason(&found, "b").contains("was 3 at 000000000000"),
        "{}",
        reason(&found, "b")
    );
    // A cluster of which nobody knows the room keeps what it has.
    let mut silent = reports(&[("a", capacity(8, 1)), ("b", capacity(8, 1))]);
    silent.clusters.get_mut(&cluster_name("b")).expect("it is there").doubt = Some("it is not heard of".to_owned());
    let found = scheduled_by(&two(4), &silent, Some(placed(&[("a", 7), ("b", 1)])), &before);
    assert_eq!(shares(&found), [3, 1]);
    // A taint keeps it away.
    let mut fleet = two(4);
    let taint = tainted("b", &[], TaintEffect::NoSchedule).taints;
    fleet.clusters.get_mut(&cluster_name("b")).expect("it is there").taints = taint;
    let found = scheduled_by(&fleet, &known, Some(placed(&[("a", 8)])), &before);
    assert_eq!(
        shares(&found),
        [4],
        "it is not there any more, and is not given anything"
    );
}

#[test]
fn bounds_of_today_hold_for_what_is_restored() {
    let mut bounded = subscriber(&[], None);
    bounded.replicas.max = Some(3);
    let to = subscription(DYNAMIC, vec![bounded]);
    let fleet = fleet(vec![cluster("a", &[]), cluster("b", &[])], to, deployment(4, "1"));
    let known = reports(&[("a", capacity(8, 1)), ("b", capacity(8, 1))]);
    let before = remembered(&fleet, &[("b", 4)]);
    let found = scheduled_by(&fleet, &known, Some(placed(&[("a", 3), ("b", 3)])), &before);
    assert_eq!(shares(&found), [1, 3]);
}

#[test]
fn a_revert_restores_the_clusters_that_were_chosen() {
    let choice = Choice {
        max: Some(1),
        ..Choice::default()
    };
    let fleet = choosing(choice, 6);
    for before in ["c0", "c1", "c2", "c3", "c4", "c5"] {
        let moves = remembered(&fleet, &[(before, 0)]);
        let found = scheduled_by(&fleet, &Reports::default(), Some(placed(&[("c3", 0)])), &moves);
        assert!(found.assignments.keys().eq([&cluster_name(before)]));
        let had = "among the best: it had the unit at 000000000000, preferred 0";
        assert!(reason(&found, before).ends_with(had), "{}", reason(&found, before));
    }
}

#[test]
fn what_is_restored_is_deducted_where_it_is_new() {
    let known = reports(&[("a", capacity(8, 1)), ("b", capacity(4, 1))]);
    let before = remembered(&two(4), &[("b", 4)]);
    let mut fleet = two(4);
    let mut other = fleet.units[&web()].clone();
    let mut renamed = other.subscription.as_ref().clone();
    renamed.key = UnitKey::new("default", "zeta").expect("it is a valid unit");
    other.subscription = Arc::new(renamed.clone());
    fleet.units.insert(renamed.key.clone(), other);
    let previous = BTreeMap::from([(web(), placed(&[("a", 4)]))]);
    let context = Context::new(&fleet, &known, &previous, &before, 0);
    let mut ledger = Ledger::default();
    let mut place = |key: &UnitKey| {
        let unit = &fleet.units[key];
        shares(&schedule_unit(&context, &mut ledger, &workloads_of(unit), unit))
    };
    assert_eq!(place(&web()), [0, 4]);
    assert_eq!(place(&renamed.key), [4, 0], "b is full by then");
}

#[test]
fn a_rebalance_places_anew_what_a_report_would_leave_alone() {
    let known = || {
        reports(&[
            ("a", with_own(capacity(1, 8), 7, 0)),
            ("b", with_own(capacity(1, 24), 1, 0)),
        ])
    };
    let now = || Some(placed(&[("a", 7), ("b", 1)]));
    assert_eq!(shares(&scheduled(&two(8), &known(), now())), [7, 1]);
    let found = scheduled_by(&two(8), &known(), now(), &rebalance(Rebalance::All));
    assert_eq!(shares(&found), [2, 6], "its own pods make room for themselves");
    assert!(found.rebalanced);
    let said = reason(&found, "b");
    assert!(said.contains("6 of 8, had 1, has room for 24, placed anew"), "{said}");
    let mut silent = known();
    silent.clusters.get_mut(&cluster_name("a")).expect("it is there").doubt = Some("it is not heard of".to_owned());
    let found = scheduled_by(&two(8), &silent, now(), &rebalance(Rebalance::All));
    assert_eq!(shares(&found), [7, 1], "a silent cluster keeps what it has");
}

#[test]
fn a_rebalance_chooses_clusters_anew() {
    let choice = Choice {
        max: Some(1),
        ..Choice::default()
    };
    let fleet = choosing(choice, 6);
    let best = scheduled(&fleet, &Reports::default(), None);
    let best: Vec<_> = best.assignments.keys().cloned().collect();
    for now in ["c0", "c1", "c2", "c3", "c4", "c5"] {
        let moves = rebalance(Rebalance::All);
        let found = scheduled_by(&fleet, &Reports::default(), Some(placed(&[(now, 0)])), &moves);
        assert!(found.assignments.keys().eq(&best), "from {now}");
    }
}

#[test]
fn a_rebalance_that_cannot_be_keeps_the_last_placement() {
    let mut fleet = two(8);
    fleet.clusters.clear();
    fleet
        .clusters
        .insert(cluster_name("c"), tainted("c", &[], TaintEffect::NoExecute));
    let moves = rebalance(Rebalance::All);
    let found = scheduled_by(&fleet, &Reports::default(), Some(placed(&[("c", 8)])), &moves);
    assert_eq!((shares(&found), found.rebalanced), (vec![8], false));
    assert_eq!(found.findings[0].reason, "NoFeasibleCluster");
}

#[test]
fn before_clusters_have_said_their_room_nothing_is_placed_anew() {
    let waits = Reports {
        waiting: true,
        ..reports(&[("b", capacity(1, 24))])
    };
    let found = scheduled_by(
        &two(8),
        &waits,
        Some(placed(&[("a", 7), ("b", 1)])),
        &rebalance(Rebalance::All),
    );
    assert_eq!(
        (shares(&found), found.by_room, found.rebalanced),
        (vec![7, 1], true, false)
    );
}

#[test]
fn of_a_pending_rebalance_only_what_no_node_takes_leaves() {
    let pending = |room: i64| {
        reports(&[
            ("a", with_own(capacity(1, 8), 4, 3)),
            ("b", with_own(capacity(1, room), 1, 0)),
        ])
    };
    let now = || Some(placed(&[("a", 7), ("b", 1)]));
    let moves = rebalance(Rebalance::Pending);
    let found = scheduled_by(&two(8), &pending(24), now(), &moves);
    assert_eq!(shares(&found), [4, 4]);
    let said = reason(&found, "a");
    assert!(said.contains("4 of 8, had 7, of which no node takes 3"), "{said}");
    let found = scheduled_by(&two(8), &pending(3), now(), &moves);
    assert_eq!(shares(&found), [5, 3], "what finds no better place stays");
    assert!(found.unplaced.is_empty());
    let found = scheduled_by(&two(8), &reports(&[("b", capacity(1, 24))]), now(), &moves);
    assert_eq!(
        shares(&found),
        [7, 1],
        "of a cluster that says nothing, nothing is known to wait"
    );
}

proptest! {
    // What is restored is a placement: nothing is lost or made, and no room is promised that is not there.
    #[test]
    fn a_restored_placement_is_whole_and_asked_again_changes_nothing(
        wanted in 1..30_u64,
        now in (0..20_u64, 0..20_u64),
        before in (0..20_u64, 0..20_u64),
        cores in (1..20_i64, 1..20_i64),
    ) {
        let fleet = two(wanted);
        let known = reports(&[("a", capacity(1, cores.0)), ("b", capacity(1, cores.1))]);
        let moves = remembered(&fleet, &[("a", before.0), ("b", before.1)]);
        let found = scheduled_by(&fleet, &known, Some(placed(&[("a", now.0), ("b", now.1)])), &moves);
        let got = shares(&found);
        let unplaced: u64 = found.unplaced.values().map(|it| it.replicas).sum();
        prop_assert_eq!(got.iter().sum::<u64>() + unplaced, wanted);
        let room = [cores.0, cores.1].map(|cores| u64::try_from(cores).expect("it is positive"));
        prop_assert!(got[0] <= now.0.max(room[0]) && got[1] <= now.1.max(room[1]), "{:?}", got);
        let again = UnitPlacement { asks: found.asks, ..placed(&[("a", got[0]), ("b", got[1])]) };
        prop_assert_eq!(shares(&scheduled(&fleet, &known, Some(again))), got);
    }
}
