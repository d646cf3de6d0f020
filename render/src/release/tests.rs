//! All at once, and what a Suspension holds.

mod hand_over;
mod in_turn;
mod order;

use std::sync::Arc;

use super::*;
use crate::Fleet;
use crate::model::{DependencyClusters, Scheduling, SuspendedClusters, Suspension};
use crate::published::tests::{entry, placement};
use crate::selector::LabelSelector;

fn published(units: &[(&str, UnitPlacement)]) -> Published {
    let units = units
        .iter()
        .map(|(unit, placement)| (unit.parse().expect("a valid unit"), placement.clone()));
    Published {
        record: None,
        units: units.collect(),
    }
}

/// Nobody said anything, and no content has an object.
fn silence(states: &[&Published]) -> Observed {
    let units = states.iter().flat_map(|published| published.units.values());
    let digests = units.flat_map(|unit| unit.variants.values().map(|variant| variant.digest));
    let empty = || {
        Some(Arc::new(Holdings {
            objects: Vec::new(),
            orphan: false,
        }))
    };
    Observed {
        holdings: digests.map(|digest| (digest, empty())).collect(),
        ..Observed::default()
    }
}

#[track_caller]
fn check(target: &Published, released: &Published, due: usize) {
    let advances = release(target, released, Suspensions::none(), &silence(&[target, released]), 0).advances;
    assert_eq!(advances.len(), due, "{advances:#?}");
    let next = advance(target, released, advances, 0);
    assert_eq!(next.units, target.units, "all at once ends at the target");
    assert!(
        release(target, &next, Suspensions::none(), &silence(&[target, &next]), 0) == Due::default(),
        "and stays there"
    );
}

#[test]
fn all_at_once_follows_the_target_entry_by_entry() {
    let old = placement(&[entry("a", "default", "1"), entry("b", "default", "1")]);
    let new = placement(&[entry("a", "default", "2"), entry("b", "default", "2")]);
    let nothing = Published::default();
    check(&published(&[("t/web", old.clone())]), &nothing, 2);
    check(
        &published(&[("t/web", new.clone())]),
        &published(&[("t/web", old.clone())]),
        2,
    );
    check(&published(&[("t/web", new.clone())]), &published(&[("t/web", new)]), 0);
    check(&nothing, &published(&[("t/web", old)]), 2);
}

#[test]
fn an_entry_that_is_not_advanced_keeps_its_older_content_beside_the_newer() {
    let old = published(&[(
        "t/web",
        placement(&[entry("a", "default", "1"), entry("b", "default", "1")]),
    )]);
    let new = published(&[(
        "t/web",
        placement(&[entry("a", "default", "2"), entry("b", "default", "2")]),
    )]);
    let only_a = release(&new, &old, Suspensions::none(), &silence(&[&new, &old]), 0)
        .advances
        .into_iter()
        .take(1)
        .collect();
    let mixed = advance(&new, &old, only_a, 0);
    let unit = &mixed.units[&"t/web".parse().expect("a valid unit")];
    let (a, b) = (
        ClusterName::parse("a").expect("valid"),
        ClusterName::parse("b").expect("valid"),
    );
    assert_eq!(unit.entry(&a).expect("a has it").0.variant.as_str(), "default");
    let (held, variant) = unit.entry(&b).expect("b keeps it");
    assert!(held.variant.as_str().starts_with("default-held-"), "{held:?}");
    assert_eq!(variant.digest, crate::Digest::of_bytes(b"1"));
    check(&new, &mixed, 1);
}

/// A fleet of clusters a and b that declares these Suspensions.
fn suspended(declared: Vec<Suspension>) -> Fleet {
    use crate::fixture;
    let clusters = ["a", "b"].map(|name| fixture::cluster(name, &[("zone", name)]));
    let subscription = fixture::subscription(Scheduling::Replication, Vec::new());
    Fleet {
        suspensions: declared.into_iter().map(Arc::new).collect(),
        prune_budgets: Vec::new(),
        access: Arc::default(),
        ..fixture::fleet(clusters, subscription, crate::Base::empty())
    }
}

fn suspension(unit: Option<&str>, clusters: Option<SuspendedClusters>, until: Option<i64>) -> Suspension {
    Suspension {
        objects: Vec::new(),
        name: "held".to_owned(),
        unit: unit.map(|unit| unit.parse().expect("a valid unit")),
        clusters,
        reason: String::new(),
        until,
        file: "policies/held.yaml".into(),
        line: 1,
    }
}

fn named(name: &str) -> Option<SuspendedClusters> {
    Some(SuspendedClusters {
        names: vec![ClusterName::parse(name).expect("a valid cluster")],
        selector: None,
    })
}

fn in_zone(zone: &str) -> Option<SuspendedClusters> {
    let selector = LabelSelector {
        match_labels: BTreeMap::from([("zone".to_owned(), zone.to_owned())]),
        ..LabelSelector::default()
    };
    Some(SuspendedClusters {
        names: Vec::new(),
        selector: Some(selector),
    })
}

/// Who advances, as `unit cluster`, where t/web and t/api are new on a and b.
#[track_caller]
fn advancing(held: Suspension, now: i64, expected: &[&str]) {
    let new = placement(&[entry("a", "default", "1"), entry("b", "default", "1")]);
    let (target, fleet) = (
        published(&[("t/web", new.clone()), ("t/api", new)]),
        suspended(vec![held]),
    );
    let due = release(
        &target,
        &Published::default(),
        fleet.suspensions(),
        &silence(&[&target]),
        now,
    );
    let found: Vec<_> = due
        .advances
        .iter()
        .map(|advance| format!("{} {}", advance.unit, advance.cluster))
        .collect();
    assert_eq!(found, expected);
}

#[test]
fn what_is_suspended_is_not_released_and_everything_else_is() {
    advancing(suspension(Some("t/web"), None, None), 0, &["t/api a", "t/api b"]);
    advancing(suspension(None, named("a"), None), 0, &["t/api b", "t/web b"]);
    advancing(suspension(None, in_zone("b"), None), 0, &["t/api a", "t/web a"]);
    advancing(
        suspension(Some("t/web"), named("a"), None),
        0,
        &["t/api a", "t/api b", "t/web b"],
    );
    advancing(
        suspension(Some("t/other"), None, None),
        0,
        &["t/api a", "t/api b", "t/web a", "t/web b"],
    );
}

#[test]
fn a_suspension_ends_at_its_time() {
    let held = suspension(Some("t/web"), None, Some(100));
    advancing(held.clone(), 99, &["t/api a", "t/api b"]);
    advancing(held.clone(), 100, &["t/api a", "t/api b", "t/web a", "t/web b"]);
    let fleet = suspended(vec![held, suspension(None, named("a"), Some(50))]);
    let next = |now| fleet.suspensions().next_end(now);
    assert_eq!([next(0), next(50), next(100)], [Some(50), Some(100), None]);
}

#[test]
fn of_two_suspensions_the_longer_one_counts() {
    let (short, long) = (
        suspension(None, named("a"), Some(50)),
        suspension(Some("t/web"), None, None),
    );
    for declared in [vec![short.clone(), long.clone()], vec![long, short]] {
        let fleet = suspended(declared);
        let (unit, a) = ("t/web".parse().expect("valid"), ClusterName::parse("a").expect("valid"));
        let found = fleet.suspensions().of(&unit, &a, 0).expect("both hold it");
        assert_eq!(found.until, None);
    }
}

#[test]
fn a_removal_waits_as_well_also_on_a_cluster_that_is_not_registered() {
    let old = published(&[(
        "t/web",
        placement(&[entry("a", "default", "1"), entry("gone", "default", "1")]),
    )]);
    let fleet = suspended(vec![suspension(Some("t/web"), in_zone("a"), None)]);
    let due = release(&Published::default(), &old, fleet.suspensions(), &silence(&[&old]), 0);
    assert_eq!(due.advances, [], "nobody knows the labels of a cluster that is gone");
}

proptest::proptest! {
    /// Contents 0 (none) to 3 of two units on two clusters, before and after; any of the four is suspended.
    #[test]
    fn a_suspended_entry_never_changes_and_the_others_reach_the_target(
        before in proptest::array::uniform4(0_u8..4),
        after in proptest::array::uniform4(0_u8..4),
        held in proptest::array::uniform4(proptest::bool::ANY),
    ) {
        let places = [("t/api", "a"), ("t/api", "b"), ("t/web", "a"), ("t/web", "b")];
        let state = |contents: [u8; 4]| {
            let unit = |name: &str| {
                let of = places.iter().zip(contents).filter(|((unit, _), content)| *unit == name && *content > 0);
                let entries: Vec<_> = of.map(|((_, cluster), content)| entry(cluster, "default", &content.to_string())).collect();
                placement(&entries)
            };
            let units = ["t/api", "t/web"].map(|name| (name, unit(name)));
            published(&units.into_iter().filter(|(_, unit)| !unit.clusters.is_empty()).collect::<Vec<_>>())
        };
        let (released, target) = (state(before), state(after));
        let declared = places.iter().zip(held).filter(|(_, held)| *held);
        let fleet = suspended(declared.map(|((unit, cluster), _)| suspension(Some(unit), named(cluster), None)).collect());
        let due = release(&target, &released, fleet.suspensions(), &silence(&[&target, &released]), 0);
        let next = advance(&target, &released, due.advances, 0);
        for ((unit, cluster), held) in places.iter().zip(held) {
            let content = |from: &Published| {
                let unit = from.units.get(&unit.parse::<UnitKey>().expect("valid"))?;
                let (_, variant) = unit.entry(&ClusterName::parse(*cluster).expect("valid"))?;
                Some(variant.digest)
            };
            proptest::prop_assert_eq!(content(&next), content(if held { &released } else { &target }));
        }
        proptest::prop_assert!(
            release(&target, &next, fleet.suspensions(), &silence(&[&target, &next]), 0) == Due::default(),
            "what is held is not due again"
        );
        let resumed = release(&target, &next, Suspensions::none(), &silence(&[&target, &next]), 0);
        proptest::prop_assert_eq!(advance(&target, &next, resumed.advances, 0).units, target.units, "and resuming ends at the target");
    }
}
