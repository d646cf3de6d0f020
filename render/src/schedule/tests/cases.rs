//! What went wrong in other schedulers, step by step.

use super::room::{DYNAMIC, key, scheduled, shares};
use super::*;
use crate::capacity::{Capacity, NodeGroup, Nodes, Resources};
use crate::fixture::{capacity, deployment, reports};
use crate::schedule::Scheduled;

/// One node of four cores, of which so many thousandths are taken.
fn taken(thousandths: i64) -> Capacity {
    let all = Resources::from([("cpu", 4_000), ("pods", 110)]);
    let free = all.clone().with("cpu", 4_000 - thousandths);
    let node = NodeGroup {
        count: 1,
        allocatable: all,
        free,
        ..NodeGroup::default()
    };
    Capacity {
        nodes: Nodes(vec![node]),
        ..capacity(0, 0)
    }
}

#[test]
fn what_is_taken_already_is_no_room() {
    let known = reports(&[("a", taken(3_500)), ("b", taken(1_000))]);
    let of = |replicas| {
        let everywhere = subscription(DYNAMIC, vec![subscriber(&[], None)]);
        let fleet = fleet(two_areas(), everywhere, deployment(replicas, "500m"));
        scheduled(&fleet, &known, None)
    };
    assert_eq!(shares(&of(7)), [1, 6]);
    let (four, nine) = (of(4), of(9));
    assert!(
        shares(&four)[0] <= 1 && shares(&four).iter().sum::<u64>() == 4,
        "{:?}",
        shares(&four)
    );
    assert_eq!(shares(&nine), [1, 6], "never above what fits");
    assert_eq!(nine.unplaced[&key()].replicas, 2);
}

/// The placement of a Deployment with so many replicas on the clusters whose area is one of these.
fn on(areas: &[&str], replicas: u64, before: &[(String, u64)]) -> Vec<(String, u64)> {
    let clusters = ["1", "2", "3"].map(|area| cluster(&format!("c{area}"), &[("area", area)]));
    let subscribers = areas.iter().map(|area| subscriber(&[("area", area)], None)).collect();
    let fleet = fleet(clusters, subscription(DYNAMIC, subscribers), deployment(replicas, "1"));
    let known = reports(&["c1", "c2", "c3"].map(|name| (name, capacity(4, 8))));
    let before: Vec<(&str, u64)> = before.iter().map(|(name, share)| (name.as_str(), *share)).collect();
    let found: Scheduled = scheduled(&fleet, &known, Some(placed(&before)));
    let share = |(name, assignment): (&ClusterName, &Assignment)| {
        (
            name.to_string(),
            assignment.replicas.get(&key()).copied().unwrap_or_default(),
        )
    };
    found.assignments.iter().map(share).collect()
}

#[test]
fn a_cluster_that_no_longer_matches_shares_in_nothing_in_whatever_order_things_change() {
    let six = on(&["1", "2", "3"], 6, &[]);
    assert_eq!(six.iter().map(|(_, share)| share).sum::<u64>(), 6);
    let check = |found: Vec<(String, u64)>, replicas: u64| {
        let names: Vec<_> = found.iter().map(|(name, _)| name.as_str()).collect();
        let sum: u64 = found.iter().map(|(_, share)| share).sum();
        assert_eq!((names, sum), (vec!["c1", "c2"], replicas));
        found
    };
    check(on(&["1", "2"], 4, &six), 4);
    let narrowed = check(on(&["1", "2"], 6, &six), 6);
    check(on(&["1", "2"], 4, &narrowed), 4);
    let fewer = on(&["1", "2", "3"], 4, &six);
    check(on(&["1", "2"], 4, &fewer), 4);
}

#[test]
fn a_cluster_is_matched_by_the_plan_that_sees_its_label_whichever_came_first() {
    let unit = || subscription(Scheduling::Replication, vec![subscriber(&[("area", "1")], None)]);
    let with = |labels: &[(&str, &str)]| {
        fleet(
            [cluster("a", labels), cluster("z", &[("area", "1")])],
            unit(),
            Base::empty(),
        )
    };
    let alone = run(&fleet([cluster("z", &[("area", "1")])], unit(), Base::empty()), None);
    assert_eq!(names(&alone), ["z"], "the Subscription was there first");
    let mut before = vec!["z"];
    let mut step = |labels: &[(&str, &str)], expected: &[&'static str]| {
        let was: Vec<(&str, u64)> = before.iter().map(|name| (*name, 0)).collect();
        let outcome = run(&with(labels), Some(placed(&was)));
        assert_eq!(names(&outcome), expected, "with {labels:?}");
        before = expected.to_vec();
    };
    step(&[], &["z"]);
    step(&[("area", "1")], &["a", "z"]);
    step(&[("area", "2")], &["z"]);
    step(&[("area", "1"), ("tier", "gold")], &["a", "z"]);
}
