//! Clusters that a taint keeps new replicas out of, where weights divide them.

use super::*;
use crate::model::SchedulingPolicy;

/// Three clusters with two replicas each, of which b takes nothing new.
fn cordoned() -> World {
    let mut world = World::new(&["a", "b", "c"], everywhere(STATIC), 6);
    world.taint("b", Some(TaintEffect::NoSchedule));
    world.commit();
    assert_eq!(world.decisions, 1, "it keeps what it has");
    world
}

#[test]
fn a_cordoned_cluster_gets_no_more_by_weight_and_says_why() {
    let mut world = cordoned();
    let planned = world.scale(12);
    assert_eq!(
        (world.shares(), planned.findings),
        (vec![("a", 5), ("b", 2), ("c", 5)], vec![])
    );
    let said = world.explained("b");
    assert!(
        said.contains("replicas of Deployment web: 2 of 12, weight 1 of 3, no more: taint drain:NoSchedule"),
        "{said}"
    );
    let said = world.explained("a");
    assert!(!said.contains("no more"), "{said}");
}

#[test]
fn what_is_taken_away_may_leave_a_cordoned_cluster() {
    let mut world = cordoned();
    world.scale(3);
    assert_eq!(world.shares(), [("a", 1), ("b", 1), ("c", 1)]);
    world.scale(9);
    assert_eq!(world.shares(), [("a", 4), ("b", 1), ("c", 4)], "and does not come back");
}

#[test]
fn a_share_by_weight_comes_back_with_the_commit_that_takes_the_taint_away() {
    let mut world = cordoned();
    world.scale(12);
    world.taint("b", None);
    world.commit();
    assert_eq!(world.shares(), [("a", 4), ("b", 4), ("c", 4)]);
}

#[test]
fn what_no_other_cluster_may_have_is_unplaced_and_not_put_on_a_cordoned_one() {
    let mut world = cordoned();
    let all = Bounds {
        min: Some(4),
        max: Some(4),
    };
    world.subscribe(|subscription| subscription.subscribers[0].replicas = all);
    let planned = world.scale(12);
    assert_eq!(
        world.shares(),
        [("a", 4), ("b", 2), ("c", 4)],
        "a least is nothing new either"
    );
    assert_eq!(reasons_of(&planned), ["Unplaced"]);
    assert_eq!(world.unit().unplaced[&key()].replicas, 2);
}

#[test]
fn a_cordoned_cluster_takes_nothing_over_from_a_lost_one() {
    let mut world = cordoned();
    world.silent("c", 100_000);
    world.at(100_000 + AFTER);
    assert_eq!((world.shares(), world.lost()), (vec![("a", 4), ("b", 2)], vec!["c"]));
}

#[test]
fn clusternets_arithmetic_puts_no_more_on_a_cordoned_cluster_either() {
    let mut world = cordoned();
    world.subscribe(|subscription| subscription.placing.policy = SchedulingPolicy::Clusternet);
    world.scale(12);
    assert_eq!(world.shares(), [("a", 5), ("b", 2), ("c", 5)]);
}

#[test]
fn a_cordoned_cluster_that_has_a_unit_whole_gets_its_share_once_it_is_divided() {
    let mut world = World::new(&["a", "b"], everywhere(Scheduling::Replication), 4);
    world.taint("b", Some(TaintEffect::NoSchedule));
    world.subscribe(|subscription| subscription.scheduling = STATIC);
    world.commit();
    assert_eq!(world.shares(), [("a", 2), ("b", 2)], "it has more than that now");
}

#[test]
fn of_a_unit_that_every_cluster_has_whole_a_cordoned_one_keeps_its_copy() {
    let mut world = World::new(&["a", "b"], everywhere(Scheduling::Replication), 4);
    world.taint("b", Some(TaintEffect::NoSchedule));
    world.scale(8);
    assert_eq!(world.unit().clusters.len(), 2);
}
