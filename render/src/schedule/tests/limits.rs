//! Numbers as large, and as odd, as they come.

use super::room::{DYNAMIC, everywhere, key, scheduled, shares, two};
use super::*;
use crate::capacity::{Capacity, NodeGroup, Nodes, Resources};
use crate::fixture::{capacity, deployment, reports};
use crate::model::{Bounds, SchedulingPolicy};

const MOST: u64 = 2_147_483_647;
const HUGE: i64 = 1_000_000_000_000_000_000;

fn node(count: u64, all: Resources, free: Resources) -> Capacity {
    let group = NodeGroup {
        count,
        allocatable: all,
        free,
        ..NodeGroup::default()
    };
    Capacity {
        nodes: Nodes(vec![group]),
        ..capacity(0, 0)
    }
}

fn huge(count: u64) -> Capacity {
    let all = Resources::from([("cpu", HUGE), ("memory", i64::MAX), ("pods", HUGE)]);
    node(count, all.clone(), all)
}

#[test]
fn as_many_replicas_as_there_may_be_find_room_in_as_many_nodes() {
    let known = reports(&[("a", huge(u64::MAX)), ("b", huge(1 << 40))]);
    let found = scheduled(&two(MOST), &known, None);
    assert_eq!(shares(&found).iter().sum::<u64>(), MOST);
    for weights in [[u32::MAX, u32::MAX], [1 << 31, 1], [0, u32::MAX]] {
        let subscribers = vec![
            subscriber(&[("area", "1")], Some(weights[0])),
            subscriber(&[("area", "2")], Some(weights[1])),
        ];
        for policy in [SchedulingPolicy::Flotilla, SchedulingPolicy::Clusternet] {
            let mut to = subscription(STATIC, subscribers.clone());
            to.placing.policy = policy;
            let found = scheduled(&fleet(two_areas(), to, deployment(MOST, "1")), &known, None);
            assert_eq!(shares(&found).iter().sum::<u64>(), MOST, "{weights:?}");
        }
    }
}

#[test]
fn odd_nodes_have_no_room_and_stop_nobody() {
    let all = || Resources::from([("cpu", 4_000), ("memory", 1 << 40), ("pods", 110)]);
    let odd = [
        node(0, all(), all()),
        node(1, all(), all().with("cpu", -5_000)),
        node(1, all(), all().with("pods", i64::MIN)),
        node(1, Resources::default(), Resources::default()),
        node(u64::MAX, all(), all().with("cpu", i64::MIN)),
        Capacity {
            nodes: Nodes(vec![]),
            ..capacity(0, 0)
        },
    ];
    for odd in odd {
        let known = reports(&[("a", odd.clone()), ("b", capacity(1, 4))]);
        let found = scheduled(&two(6), &known, None);
        assert_eq!(
            (shares(&found), found.unplaced[&key()].replicas),
            (vec![0, 4], 2),
            "{odd:?}"
        );
        let found = scheduled(&two(6), &known, Some(placed(&[("a", 2), ("b", 4)])));
        assert_eq!(shares(&found), [2, 4], "{odd:?}");
    }
}

#[test]
fn pods_that_ask_for_no_core_count_as_pods() {
    let mut all = two(300);
    all.units.values_mut().next().expect("it has one").base = Arc::new(deployment(300, "0"));
    let found = scheduled(&all, &reports(&[("a", capacity(1, 0)), ("b", capacity(1, 8))]), None);
    assert_eq!((shares(&found), found.unplaced[&key()].replicas), (vec![110, 110], 80));
}

#[test]
fn bounds_that_leave_nothing_keep_totals() {
    let known = reports(&[("a", capacity(4, 8)), ("b", capacity(4, 8))]);
    for (scheduling, bounds, replicas, expected, left) in [
        (
            DYNAMIC,
            Bounds {
                min: None,
                max: Some(0),
            },
            5,
            [0, 0],
            5,
        ),
        (
            STATIC,
            Bounds {
                min: None,
                max: Some(0),
            },
            5,
            [0, 0],
            5,
        ),
        (
            DYNAMIC,
            Bounds {
                min: Some(10),
                max: None,
            },
            4,
            [2, 2],
            0,
        ),
        (
            STATIC,
            Bounds {
                min: Some(10),
                max: None,
            },
            4,
            [2, 2],
            0,
        ),
        (
            DYNAMIC,
            Bounds {
                min: Some(u64::MAX),
                max: Some(u64::MAX),
            },
            4,
            [2, 2],
            0,
        ),
        (
            STATIC,
            Bounds {
                min: Some(u64::MAX),
                max: Some(u64::MAX),
            },
            4,
            [2, 2],
            0,
        ),
        (
            DYNAMIC,
            Bounds {
                min: Some(3),
                max: Some(3),
            },
            0,
            [0, 0],
            0,
        ),
        (
            STATIC,
            Bounds {
                min: Some(3),
                max: Some(3),
            },
            7,
            [3, 3],
            1,
        ),
    ] {
        let mut to = everywhere(scheduling);
        to.subscribers[0].replicas = bounds;
        let all = fleet(two(1).clusters.into_values(), to, deployment(replicas, "1"));
        let found = scheduled(&all, &known, None);
        let unplaced = found.unplaced.get(&key()).map_or(0, |it| it.replicas);
        let got = shares(&found);
        assert_eq!(
            got.iter().sum::<u64>() + unplaced,
            replicas,
            "{scheduling:?} {bounds:?}"
        );
        assert_eq!(unplaced, left, "{scheduling:?} {bounds:?} {got:?}");
        assert!(
            left == 0 && expected != [3, 3] || got == expected,
            "{scheduling:?} {bounds:?} {got:?}"
        );
        let names = ["a", "b"];
        let again: Vec<_> = names.into_iter().zip(got.iter().copied()).collect();
        assert_eq!(
            shares(&scheduled(&all, &known, Some(placed(&again)))),
            got,
            "{scheduling:?} {bounds:?}"
        );
    }
}

#[test]
fn more_nodes_than_a_number_has_room_for_stop_nobody() {
    let mut said = huge(u64::MAX);
    let other = NodeGroup {
        labels: crate::fixture::labels(&[("zone", "b")]),
        ..said.nodes.0[0].clone()
    };
    said.nodes.0.push(other);
    let known = reports(&[("a", said.clone()), ("b", capacity(1, 4))]);
    let found = scheduled(&two(6), &known, None);
    assert_eq!(shares(&found).iter().sum::<u64>(), 6);
    assert!(said.nodes.count() > 0);
}
