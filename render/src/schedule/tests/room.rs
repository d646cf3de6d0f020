//! Replicas by the room that clusters have.

mod moves;
mod preemption;

use std::sync::Arc;

use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::capacity::{Capacity, Nodes, Resources, WorkloadPods};
use crate::fixture::{capacity, deployment, reports};
use crate::model::{Bounds, Choice, SchedulingPolicy, SpreadConstraint, Strategy, Subscription, Taint, TaintEffect};
use crate::name::UnitKey;
use crate::published::Unplaced;
use crate::schedule::{Ledger, Moves, Scheduled, schedule_unit, workloads_of};

pub(super) const DYNAMIC: Scheduling = Scheduling::Dividing(Dividing::Dynamic(Strategy::Spread));

pub(super) fn key() -> ObjectKey {
    ObjectKey::new("apps/v1", "Deployment", "", "web")
}

pub(super) fn everywhere(scheduling: Scheduling) -> Subscription {
    subscription(scheduling, vec![subscriber(&[], None)])
}

pub(super) fn scheduled(fleet: &Fleet, reports: &Reports, previous: Option<UnitPlacement>) -> Scheduled {
    scheduled_by(fleet, reports, previous, &Moves::default())
}

fn scheduled_by(fleet: &Fleet, reports: &Reports, previous: Option<UnitPlacement>, moves: &Moves) -> Scheduled {
    let key = fleet.units.keys().next().expect("the fleet has a unit").clone();
    let previous = previous.into_iter().map(|unit| (key.clone(), unit)).collect();
    let context = Context::new(fleet, reports, &previous, moves, 0);
    let unit = &fleet.units[&key];
    schedule_unit(&context, &mut Ledger::default(), &workloads_of(unit), unit)
}

pub(super) fn shares(scheduled: &Scheduled) -> Vec<u64> {
    let share = |assignment: &Assignment| assignment.replicas.get(&key()).copied().unwrap_or_default();
    scheduled.assignments.values().map(share).collect()
}

pub(super) fn two(desired: u64) -> Fleet {
    fleet(
        vec![cluster("a", &[]), cluster("b", &[])],
        everywhere(DYNAMIC),
        deployment(desired, "1"),
    )
}

#[test]
fn replicas_go_where_there_is_room() {
    let found = scheduled(&two(9), &reports(&[("a", capacity(2, 3)), ("b", capacity(4, 3))]), None);
    assert_eq!(shares(&found), [3, 6]);
    assert!(found.by_room && found.findings.is_empty(), "{:?}", found.findings);
    let reasons = &found.assignments[&cluster_name("b")].reasons;
    assert_eq!(
        **reasons,
        [
            "matches subscriber 1 (every cluster)",
            "replicas of Deployment web: 6 of 9, has room for 12"
        ]
    );
    let evidence = found.assignments[&cluster_name("b")]
        .capacity
        .as_ref()
        .expect("room decided");
    assert_eq!((evidence.at, evidence.room.get(&key())), (1_000, Some(&12)));
}

#[test]
fn what_finds_no_place_is_told_in_numbers() {
    let found = scheduled(
        &two(30),
        &reports(&[("a", capacity(2, 7)), ("b", capacity(4, 3))]),
        None,
    );
    assert_eq!(shares(&found), [14, 12]);
    assert_eq!(
        found.unplaced,
        BTreeMap::from([(key(), Unplaced { replicas: 4, of: 30 })])
    );
    let message = &found.findings[0].message;
    assert_eq!(
        message,
        "unplaced 4 of 30 replicas of Deployment web: a has room for 14; b has room for 12"
    );
}

#[test]
fn a_report_alone_moves_nothing() {
    let crowded = reports(&[("a", capacity(1, 1)), ("b", capacity(50, 8))]);
    let found = scheduled(&two(8), &crowded, Some(placed(&[("a", 7), ("b", 1)])));
    assert_eq!(shares(&found), [7, 1]);
    assert!(!found.by_room, "whatever is reported next decides nothing either");
}

#[test]
fn unplaced_replicas_are_placed_once_they_fit() {
    let before = placed(&[("a", 4), ("b", 2)]);
    let found = scheduled(
        &two(8),
        &reports(&[("a", capacity(1, 4)), ("b", capacity(1, 2))]),
        Some(before.clone()),
    );
    assert_eq!((shares(&found), found.by_room), (vec![4, 2], true));
    let found = scheduled(
        &two(8),
        &reports(&[("a", capacity(1, 4)), ("b", capacity(2, 2))]),
        Some(before),
    );
    assert_eq!((shares(&found), found.unplaced.len()), (vec![4, 4], 0));
}

#[test]
fn stale_and_missing_reports_freeze_a_cluster_and_stop_no_other() {
    let mut known = reports(&[("a", capacity(4, 4)), ("b", capacity(4, 4))]);
    let b = known.clusters.get_mut(&cluster_name("b")).expect("it is there");
    b.doubt = Some("its report is from 10 minutes ago".to_owned());
    let found = scheduled(&two(8), &known, Some(placed(&[("a", 2), ("b", 2)])));
    assert_eq!(shares(&found), [6, 2], "b keeps what it has and gets no more");
    let reasons = found.assignments[&cluster_name("b")].reasons.join(" ");
    assert!(
        reasons.contains("no more: its report is from 10 minutes ago"),
        "{reasons}"
    );
    known.clusters.remove(&cluster_name("b"));
    let found = scheduled(&two(8), &known, Some(placed(&[("a", 2), ("b", 2)])));
    assert_eq!(shares(&found), [6, 2]);
    assert_eq!(
        shares(&scheduled(&two(3), &known, Some(placed(&[("a", 2), ("b", 2)])))),
        [1, 2]
    );
}

#[test]
fn a_cordoned_cluster_keeps_what_it_has_and_gets_no_more() {
    let known = reports(&[("a", capacity(4, 4)), ("b", capacity(4, 4))]);
    let mut fleet = two(8);
    let b = fleet.clusters.get_mut(&cluster_name("b")).expect("it is there");
    b.taints = vec![Taint {
        key: crate::cordon::TAINT_CORDONED.to_owned(),
        value: String::new(),
        effect: TaintEffect::NoSchedule,
    }];
    let found = scheduled(&fleet, &known, Some(placed(&[("a", 2), ("b", 2)])));
    assert_eq!(shares(&found), [6, 2]);
    let reasons = found.assignments[&cluster_name("b")].reasons.join(" ");
    assert!(
        reasons.contains("no more: taint fleet.flotilla.dev/cordoned:NoSchedule"),
        "{reasons}"
    );
    assert_eq!(shares(&scheduled(&fleet, &known, None)), [8], "and nothing new comes");
}

#[test]
fn replicas_that_are_promised_but_not_there_yet_are_deducted() {
    let fleet = two(6);
    let other = UnitKey::new("default", "other").expect("it is a valid unit");
    let mut units = fleet.units.clone();
    let mut unit = units.values().next().expect("the fleet has a unit").clone();
    let mut renamed = unit.subscription.as_ref().clone();
    renamed.key = other.clone();
    unit.subscription = Arc::new(renamed);
    units.insert(other.clone(), unit);
    let fleet = Fleet { units, ..fleet };
    let previous = BTreeMap::from([(other.clone(), placed(&[("a", 5)]))]);
    let mut said = capacity(1, 6);
    let run = |said: &Capacity| {
        let known = reports(&[("a", said.clone()), ("b", capacity(1, 6))]);
        let (placements, _) = schedule(&fleet, &known, &previous, 0);
        let web = UnitKey::new("default", "web").expect("it is a valid unit");
        (shares(&placements[&other]), shares(&placements[&web]))
    };
    // The other unit has five on a, and gets its sixth on either; of the rest, a has one left or none.
    let (other_shares, web) = run(&said);
    assert_eq!(other_shares.iter().sum::<u64>(), 6);
    assert_eq!(other_shares[0] + web[0], 6, "{other_shares:?} {web:?}");
    assert_eq!(web.iter().sum::<u64>(), 6, "{web:?}");
    // Once its report has counted them, they are not deducted again.
    let mut busy = said.nodes.0[0].clone();
    busy.free.set("cpu", 1_000);
    said.nodes = Nodes(vec![busy]);
    said.workloads = vec![WorkloadPods {
        unit: other.clone(),
        object: key(),
        replicas: 5,
        requests: Resources::from([("cpu", 1_000), ("pods", 1)]),
        scheduled: 5,
        unschedulable: 0,
    }];
    said.nodes.0[0].pods = BTreeMap::from([(0, 5)]);
    let counted = run(&said);
    assert_eq!(counted.0[0] + counted.1[0], 6, "{counted:?}");
}

#[test]
fn what_a_unit_gave_up_is_theirs_who_wait_before_it_grows_again() {
    let mut all = fleet(vec![cluster("a", &[])], everywhere(DYNAMIC), deployment(5, "1"));
    let mut waiting = everywhere(STATIC);
    waiting.key = UnitKey::new("default", "other").expect("it is a valid unit");
    let (web, other) = (
        UnitKey::new("default", "web").expect("it is a valid unit"),
        waiting.key.clone(),
    );
    all.units.extend(fleet(Vec::new(), waiting, deployment(2, "1")).units);
    // All five nodes are taken by pods of web, of which it keeps two.
    let previous = BTreeMap::from([(web.clone(), placed(&[("a", 2)])), (other.clone(), placed(&[("a", 2)]))]);
    let pods = |unit: &UnitKey, scheduled, unschedulable| WorkloadPods {
        unit: unit.clone(),
        object: key(),
        replicas: scheduled + unschedulable,
        requests: Resources::from([("cpu", 1_000), ("pods", 1)]),
        scheduled,
        unschedulable,
    };
    let mut said = capacity(5, 1);
    said.nodes.0[0].free.set("cpu", 0);
    said.nodes.0[0].pods = BTreeMap::from([(0, 1)]);
    said.workloads = vec![pods(&web, 5, 0)];
    let share = |said: &Capacity, previous| {
        let (placements, _) = schedule(&all, &reports(&[("a", said.clone())]), previous, 0);
        shares(&placements[&web])
    };
    assert_eq!(
        share(&said, &previous),
        [3],
        "those of the other, of which the cluster has not heard"
    );
    said.workloads = vec![pods(&other, 0, 2), pods(&web, 5, 0)];
    said.nodes.0[0].pods = BTreeMap::from([(1, 1)]);
    assert_eq!(
        share(&said, &previous),
        [3],
        "those of the other, which find no node there"
    );
    all.units.remove(&other);
    let alone = BTreeMap::from([(web.clone(), placed(&[("a", 2)]))]);
    let (placements, _) = schedule(&all, &reports(&[("a", said)]), &alone, 0);
    assert_eq!(shares(&placements[&web]), [5], "where nobody waits, they are its own");
}

#[test]
fn a_workloads_own_pods_make_room_for_themselves() {
    let mut said = capacity(1, 4);
    said.nodes.0[0].free.set("cpu", 0);
    said.nodes.0[0].pods = BTreeMap::from([(0, 4)]);
    said.workloads = vec![WorkloadPods {
        unit: UnitKey::new("default", "web").expect("it is a valid unit"),
        object: key(),
        replicas: 4,
        requests: Resources::from([("cpu", 1_000), ("pods", 1)]),
        scheduled: 4,
        unschedulable: 0,
    }];
    let found = scheduled(
        &two(5),
        &reports(&[("a", said), ("b", capacity(1, 4))]),
        Some(placed(&[("a", 4)])),
    );
    assert_eq!(shares(&found), [4, 1]);
    let reasons = found.assignments[&cluster_name("a")].reasons.join(" ");
    assert!(reasons.contains("4 of 5, had 4, has room for 4"), "{reasons}");
}

#[test]
fn an_elastic_cluster_has_room_for_what_it_can_grow_to() {
    let mut grows = cluster("a", &[]);
    grows.elastic = Some(Resources::from([("cpu", 10_000)]));
    let fleet = fleet(vec![grows], everywhere(DYNAMIC), deployment(30, "1"));
    let found = scheduled(&fleet, &reports(&[("a", capacity(2, 2))]), None);
    assert_eq!((shares(&found), found.unplaced[&key()].replicas), (vec![10], 20));
}

#[test]
fn bounds_of_a_cluster_are_kept() {
    let mut bounded = subscriber(&[("tier", "small")], None);
    bounded.replicas = Bounds {
        min: Some(1),
        max: Some(2),
    };
    let to = subscription(DYNAMIC, vec![subscriber(&[], None), bounded]);
    let fleet = fleet(
        vec![cluster("a", &[]), cluster("b", &[("tier", "small")])],
        to,
        deployment(9, "1"),
    );
    let found = scheduled(&fleet, &reports(&[("a", capacity(4, 4)), ("b", capacity(40, 4))]), None);
    assert_eq!(shares(&found), [7, 2]);
}

#[test]
fn contradictory_bounds_hold_the_unit() {
    let bounds = |min, max| {
        let mut bounded = subscriber(&[], None);
        bounded.replicas = Bounds { min, max };
        bounded
    };
    let to = subscription(DYNAMIC, vec![bounds(Some(5), None), bounds(None, Some(3))]);
    let fleet = fleet(vec![cluster("a", &[])], to, deployment(9, "1"));
    let found = scheduled(&fleet, &reports(&[("a", capacity(4, 4))]), Some(placed(&[("a", 4)])));
    assert_eq!(found.findings[0].reason, "ContradictoryBounds");
    assert_eq!(shares(&found), [4]);
}

#[test]
fn minimums_that_the_total_does_not_reach_are_told() {
    let mut bounded = subscriber(&[], None);
    bounded.replicas.min = Some(5);
    for (scheduling, expected, told) in [
        (DYNAMIC, [5, 3], "minimum: b has 3 of 5"),
        (
            Scheduling::Dividing(Dividing::Static),
            [4, 4],
            "minimum: a has 4 of 5, b has 4 of 5",
        ),
    ] {
        let to = subscription(scheduling, vec![bounded.clone()]);
        let fleet = fleet(vec![cluster("a", &[]), cluster("b", &[])], to, deployment(8, "1"));
        let found = scheduled(&fleet, &reports(&[("a", capacity(4, 4)), ("b", capacity(4, 4))]), None);
        assert_eq!(
            (shares(&found), found.findings.len()),
            (expected.to_vec(), 1),
            "{found:?}"
        );
        let finding = &found.findings[0];
        assert_eq!(finding.reason, "BelowMinimum");
        assert!(finding.message.ends_with(told), "{finding:?}");
    }
}

#[test]
fn replicas_that_bounds_leave_over_wait_for_no_room() {
    let mut bounded = subscriber(&[], None);
    bounded.replicas.max = Some(2);
    let to = subscription(DYNAMIC, vec![bounded]);
    let fleet = fleet(vec![cluster("a", &[])], to, deployment(8, "1"));
    let found = scheduled(&fleet, &reports(&[("a", capacity(4, 4))]), None);
    assert_eq!((shares(&found), found.findings.len()), (vec![2], 1), "{found:?}");
    let hint = &found.findings[0].hint;
    assert!(hint.starts_with("raise replicas.max"), "{hint}");
}

#[test]
fn what_a_lowered_bound_sends_away_goes_only_where_there_is_room() {
    let mut bounded = subscriber(&[("tier", "small")], None);
    bounded.replicas.max = Some(2);
    let to = subscription(DYNAMIC, vec![subscriber(&[], None), bounded]);
    let clusters = vec![cluster("a", &[("tier", "small")]), cluster("b", &[])];
    let fleet = fleet(clusters, to, deployment(9, "1"));
    let said = reports(&[("a", capacity(4, 4)), ("b", capacity(1, 5))]);
    let found = scheduled(&fleet, &said, Some(placed(&[("a", 6), ("b", 3)])));
    assert_eq!(
        (shares(&found), found.unplaced.get(&key())),
        (vec![2, 5], Some(&Unplaced { replicas: 2, of: 9 }))
    );
}

fn choosing(choice: Choice, count: usize) -> Fleet {
    let mut to = everywhere(Scheduling::Replication);
    to.placing.clusters = choice;
    let clusters = (0..count).map(|index| cluster(&format!("c{index}"), &[("zone", ["x", "y", "z"][index % 3])]));
    fleet(clusters.collect::<Vec<_>>(), to, Base::empty())
}

#[test]
fn only_the_best_clusters_are_taken_and_they_stay_taken() {
    let choice = Choice {
        max: Some(2),
        ..Choice::default()
    };
    let fleet = choosing(choice, 9);
    let found = scheduled(&fleet, &Reports::default(), None);
    assert_eq!(found.assignments.len(), 2);
    let names: Vec<&str> = found.assignments.keys().map(ClusterName::as_str).collect();
    let again: Vec<_> = names.iter().map(|name| (*name, 0)).collect();
    let found_again = scheduled(&fleet, &Reports::default(), Some(placed(&again)));
    assert!(found_again.assignments.keys().eq(found.assignments.keys()));
}

#[test]
fn equal_clusters_are_told_apart_for_each_unit_in_another_way() {
    let mut counts: BTreeMap<ClusterName, u32> = BTreeMap::new();
    for index in 0..100 {
        let mut to = everywhere(Scheduling::Replication);
        to.key = UnitKey::new("default", format!("app-{index}")).expect("it is a valid unit");
        to.placing.clusters.max = Some(2);
        let clusters = (0..10)
            .map(|index| cluster(&format!("c{index}"), &[]))
            .collect::<Vec<_>>();
        let found = scheduled(&fleet(clusters, to, Base::empty()), &Reports::default(), None);
        for name in found.assignments.into_keys() {
            *counts.entry(name).or_default() += 1;
        }
    }
    assert!(
        counts.len() == 10 && counts.values().all(|count| (10..=30).contains(count)),
        "{counts:?}"
    );
}

#[test]
fn a_label_that_no_cluster_has_leaves_the_last_placement_and_is_named() {
    let mut to = everywhere(Scheduling::Dividing(Dividing::Static));
    to.placing.clusters.spread = vec![SpreadConstraint {
        topology_key: "rack".to_owned(),
        min_groups: None,
        max_groups: None,
        max_skew: None,
        when_unsatisfiable: Default::default(),
    }];
    let fleet = fleet(vec![cluster("a", &[]), cluster("b", &[])], to, deployment(4, "1"));
    let found = scheduled(&fleet, &Reports::default(), Some(placed(&[("a", 3)])));
    let finding = &found.findings[0];
    assert_eq!((finding.reason.as_str(), shares(&found)), ("TooFewClusters", vec![3]));
    assert!(
        finding
            .message
            .contains("clusters that match: 2, and none has the label rack"),
        "{finding:?}"
    );
}

#[test]
fn clusters_are_spread_over_the_values_of_a_label() {
    let choice = Choice {
        max: Some(3),
        spread: vec![SpreadConstraint {
            topology_key: "zone".to_owned(),
            min_groups: Some(3),
            max_groups: None,
            max_skew: None,
            when_unsatisfiable: Default::default(),
        }],
        ..Choice::default()
    };
    let found = scheduled(&choosing(choice.clone(), 9), &Reports::default(), None);
    let zones: std::collections::BTreeSet<_> = found
        .assignments
        .keys()
        .map(|name| name.as_str()[1..].parse::<usize>().expect("a number") % 3)
        .collect();
    assert_eq!(zones.len(), 3);
    let few = scheduled(&choosing(choice, 2), &Reports::default(), Some(placed(&[("c1", 0)])));
    assert_eq!(few.findings[0].reason, "TooFewClusters");
    assert_eq!(few.assignments.len(), 1, "the last placement stays");
}

#[test]
fn clusternets_policy_has_clusternets_numbers() {
    let mut to = subscription(
        Scheduling::Dividing(Dividing::Static),
        vec![
            subscriber(&[("area", "1")], Some(5)),
            subscriber(&[("area", "2")], Some(1)),
        ],
    );
    let clusters = || vec![cluster("a", &[("area", "1")]), cluster("b", &[("area", "2")])];
    let ours = fleet(clusters(), to.clone(), deployment(8, "1"));
    assert_eq!(shares(&scheduled(&ours, &Reports::default(), None)), [7, 1]);
    to.placing.policy = SchedulingPolicy::Clusternet;
    to.subscribers[1].weight = Some(2);
    let theirs = fleet(clusters(), to.clone(), deployment(5, "1"));
    assert_eq!(shares(&scheduled(&theirs, &Reports::default(), None)), [4, 1]);
    to.subscribers[0].weight = Some(0);
    to.subscribers[1].weight = Some(0);
    let found = scheduled(&fleet(clusters(), to, deployment(5, "1")), &Reports::default(), None);
    assert!(found.findings.is_empty() && found.assignments.values().all(|it| it.replicas.is_empty()));
}

#[test]
fn jobs_are_divided_by_room_and_left_whole_by_weight() {
    let job = base([json!({
        "apiVersion": "batch/v1", "kind": "Job", "metadata": { "name": "web" },
        "spec": { "parallelism": 6, "template": { "spec": { "containers": [{ "name": "a" }] } } },
    })]);
    let clusters = || vec![cluster("a", &[]), cluster("b", &[])];
    let known = reports(&[("a", capacity(1, 1)), ("b", capacity(1, 1))]);
    let found = scheduled(&fleet(clusters(), everywhere(DYNAMIC), job.clone()), &known, None);
    let job_key = ObjectKey::new("batch/v1", "Job", "", "web");
    assert!(
        found
            .assignments
            .values()
            .all(|it| it.replicas.get(&job_key) == Some(&3))
    );
    let weighed = everywhere(Scheduling::Dividing(Dividing::Static));
    let found = scheduled(&fleet(clusters(), weighed, job), &known, None);
    assert!(found.assignments.values().all(|it| it.replicas.is_empty()));
}

proptest! {
    // Subscriptions that are planned together never get more than there is.
    #[test]
    fn no_core_is_promised_twice(wanted in prop::collection::vec(0..20_u64, 1..8), cores in 1..30_i64) {
        let mut units = BTreeMap::new();
        for (index, wanted) in wanted.iter().enumerate() {
            let mut to = everywhere(DYNAMIC);
            to.key = UnitKey::new("default", format!("app-{index}")).expect("it is a valid unit");
            to.placing.priority = i32::try_from(index % 3).expect("it is small");
            let one = fleet(vec![cluster("a", &[]), cluster("b", &[])], to, deployment(*wanted, "1"));
            units.extend(one.units);
        }
        let all = fleet(vec![cluster("a", &[]), cluster("b", &[])], everywhere(DYNAMIC), Base::empty());
        let all = Fleet { units, ..all };
        let known = reports(&[("a", capacity(1, cores)), ("b", capacity(1, 5))]);
        let (placements, _) = schedule(&all, &known, &BTreeMap::new(), 0);
        let of = |name: &str| -> u64 {
            let each = placements.values().filter_map(|unit| unit.assignments.get(&cluster_name(name)));
            each.flat_map(|assignment| assignment.replicas.values()).sum()
        };
        prop_assert!(of("a") <= u64::try_from(cores).expect("it is positive"));
        prop_assert!(of("b") <= 5);
        let unplaced: u64 = placements.values().flat_map(|unit| unit.unplaced.values()).map(|it| it.replicas).sum();
        prop_assert_eq!(of("a") + of("b") + unplaced, wanted.iter().sum::<u64>());
    }
}
