//! Clusters by Clusternet's arithmetic, where it is another than ours.

use super::room::{DYNAMIC, everywhere, key, scheduled, shares};
use super::*;
use crate::fixture::{capacity, deployment, reports};
use crate::fleet::Fleet;
use crate::model::{SchedulingPolicy, SubGroup};

/// The Subscription with this arithmetic, which takes one cluster of all.
fn one_of_all(policy: SchedulingPolicy, clusters: Vec<Cluster>) -> Fleet {
    let mut subscription = subscription(Scheduling::Replication, vec![subscriber(&[], None)]);
    subscription.placing.policy = policy;
    subscription.placing.by_sub_group = true;
    subscription.subscribers[0].sub_group = Some(SubGroup {
        min_clusters: 1,
        max_clusters: None,
    });
    fleet(clusters, subscription, deployment(1, "1"))
}

#[test]
fn fewer_soft_taints_win_over_what_is_placed_and_by_our_own_arithmetic_they_do_not() {
    let tainted = || vec![tainted("a", &[], TaintEffect::PreferNoSchedule), cluster("b", &[])];
    let on_a = || Some(placed(&[("a", 1)]));
    let moved = run(&one_of_all(SchedulingPolicy::Clusternet, tainted()), on_a());
    assert_eq!(names(&moved), ["b"]);
    let reasons = &moved.0[&cluster_name("b")].reasons;
    assert!(
        reasons.iter().any(|reason| reason.ends_with("taints 300")),
        "{reasons:?}"
    );
    let stays = run(&one_of_all(SchedulingPolicy::Flotilla, tainted()), on_a());
    assert_eq!(names(&stays), ["a"]);
    let equal = || vec![cluster("a", &[]), cluster("b", &[])];
    for name in ["a", "b"] {
        let kept = run(
            &one_of_all(SchedulingPolicy::Clusternet, equal()),
            Some(placed(&[(name, 1)])),
        );
        assert_eq!(names(&kept), [name], "of equal ones the one that has it stays");
    }
}

#[test]
fn a_cluster_that_joins_gets_the_unit_by_clusternets_arithmetic_once_replicas_are_added() {
    let fleet = |policy, replicas| {
        let mut subscription = everywhere(DYNAMIC);
        subscription.placing.policy = policy;
        fleet(
            vec![cluster("a", &[]), cluster("b", &[])],
            subscription,
            deployment(replicas, "1"),
        )
    };
    let known = reports(&[("a", capacity(4, 3)), ("b", capacity(4, 3))]);
    let placed_by = |policy, replicas| scheduled(&fleet(policy, replicas), &known, Some(placed(&[("a", 4)])));
    let equal = placed_by(SchedulingPolicy::Clusternet, 4);
    assert_eq!(shares(&equal), [4], "nothing is added");
    let why = &equal.left_out[&cluster_name("b")].why;
    assert!(why.contains("only when replicas are added"), "{why}");
    assert_eq!(shares(&placed_by(SchedulingPolicy::Clusternet, 3)), [3]);
    assert_eq!(placed_by(SchedulingPolicy::Clusternet, 6).assignments.len(), 2);
    let ours = placed_by(SchedulingPolicy::Flotilla, 4);
    assert_eq!(ours.assignments[&cluster_name("b")].replicas.get(&key()), Some(&0));
    let gone = scheduled(
        &fleet(SchedulingPolicy::Clusternet, 4),
        &known,
        Some(placed(&[("z", 4)])),
    );
    assert_eq!(shares(&gone).iter().sum::<u64>(), 4, "those that had it all left");
}
