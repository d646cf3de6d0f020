//! Units that need each other on every cluster.

use super::*;
use crate::model::Dependency;

pub(super) fn unit(name: &str) -> UnitKey {
    name.parse().expect("a valid unit")
}

pub(super) fn cluster(name: &str) -> ClusterName {
    ClusterName::parse(name).expect("a valid cluster")
}

/// Units on clusters a and b with this content; `t/web` needs `t/base` everywhere.
fn state(units: &[(&str, &str)]) -> Published {
    let placed = units.iter().map(|(name, content)| {
        let mut unit = placement(&[entry("a", "default", content), entry("b", "default", content)]);
        if *name == "t/web" {
            unit.depends_on.push(Dependency {
                unit: "t/base".parse().expect("a valid unit"),
                clusters: DependencyClusters::All,
            });
        }
        (*name, unit)
    });
    published(&placed.collect::<Vec<_>>())
}

/// What clusters said: (cluster, unit, content or nothing while it leaves, outcome).
pub(super) fn observed(said: &[(&str, &str, Option<&str>, Outcome)]) -> Observed {
    let mut observed = Observed::default();
    for name in ["a", "b"] {
        observed.clusters.insert(cluster(name), BTreeMap::new());
    }
    for (name, key, content, outcome) in said {
        let seen = Seen {
            digest: content.map(|content| Digest::of_bytes(content.as_bytes())),
            sequence: None,
            outcome: *outcome,
        };
        observed
            .clusters
            .entry(cluster(name))
            .or_default()
            .insert(unit(key), seen);
    }
    observed
}

/// Releases once; gives what is released then, who advanced, and who waits.
fn step(
    target: &Published,
    released: &Published,
    fleet: &Fleet,
    observed: &Observed,
) -> (Published, Vec<String>, Vec<String>) {
    // No content has an object that another one has too.
    let observed = Observed {
        holdings: silence(&[target, released]).holdings,
        ..observed.clone()
    };
    let due = release(target, released, fleet.suspensions(), &observed, 0);
    let advanced = due
        .advances
        .iter()
        .map(|advance| format!("{} {}", advance.unit, advance.cluster))
        .collect();
    let waiting = due
        .waiting
        .iter()
        .map(|waiting| format!("{} {} {waiting}", waiting.unit, waiting.cluster))
        .collect();
    (advance(target, released, due.advances, 0), advanced, waiting)
}

pub(super) const HEALTHY: Outcome = Outcome::Healthy;

#[test]
fn a_unit_comes_after_the_unit_that_it_needs_is_healthy_everywhere() {
    let free = suspended(Vec::new());
    let target = state(&[("t/base", "1"), ("t/web", "1"), ("t/other", "1")]);
    let (next, advanced, waiting) = step(&target, &Published::default(), &free, &observed(&[]));
    assert_eq!(
        advanced,
        ["t/base a", "t/base b", "t/other a", "t/other b"],
        "what is unrelated goes on"
    );
    assert_eq!(waiting[0], "t/web a waits for t/base, which is not healthy on a yet");
    let half = [
        ("a", "t/base", Some("1"), HEALTHY),
        ("b", "t/base", Some("1"), Outcome::Failed),
    ];
    let (_, advanced, waiting) = step(&target, &next, &free, &observed(&half));
    assert!(advanced.is_empty(), "{advanced:?}");
    assert_eq!(waiting[1], "t/web b waits for t/base, which failed on b");
    let whole = [("a", "t/base", Some("1"), HEALTHY), ("b", "t/base", Some("1"), HEALTHY)];
    let (next, advanced, _) = step(&target, &next, &free, &observed(&whole));
    assert_eq!(advanced, ["t/web a", "t/web b"]);
    assert_eq!(next.units, target.units);
    // A newer content waits for the newer content of what it needs, whatever was well before.
    let newer = state(&[("t/base", "2"), ("t/web", "2"), ("t/other", "1")]);
    let (_, advanced, waiting) = step(&newer, &next, &free, &observed(&whole));
    assert_eq!(
        (advanced.as_slice(), waiting.len()),
        (["t/base a".to_owned(), "t/base b".to_owned()].as_slice(), 2)
    );
}

#[test]
fn a_suspended_unit_is_not_waited_for() {
    let held = suspended(vec![suspension(Some("t/base"), named("b"), None)]);
    let target = state(&[("t/base", "1"), ("t/web", "1")]);
    let (next, _, _) = step(&target, &Published::default(), &held, &observed(&[]));
    let (_, advanced, waiting) = step(&target, &next, &held, &observed(&[("a", "t/base", Some("1"), HEALTHY)]));
    assert_eq!(advanced, ["t/web a", "t/web b"], "{waiting:?}");
}

#[test]
fn a_unit_leaves_after_those_that_needed_it_are_gone_everywhere() {
    let free = suspended(Vec::new());
    let (all, target) = (
        state(&[("t/base", "1"), ("t/web", "1"), ("t/other", "1")]),
        Published::default(),
    );
    let (next, advanced, waiting) = step(&target, &all, &free, &observed(&[]));
    assert_eq!(
        advanced,
        ["t/other a", "t/other b", "t/web a", "t/web b"],
        "what is unrelated leaves at once"
    );
    assert_eq!(waiting[0], "t/base a stays until t/web, which needs it, has left a");
    let removing = [("b", "t/web", None, Outcome::UnderWay)];
    let (_, advanced, waiting) = step(&target, &next, &free, &observed(&removing));
    assert!(advanced.is_empty(), "{advanced:?}");
    assert_eq!(waiting[1], "t/base b stays until t/web, which needs it, has left b");
    // A hub that restarts has heard of no cluster yet.
    let (_, advanced, _) = step(&target, &next, &free, &Observed::default());
    assert!(advanced.is_empty(), "{advanced:?}");
    let (end, advanced, waiting) = step(&target, &next, &free, &observed(&[]));
    assert_eq!(
        (advanced.len(), waiting.len(), end.units.len()),
        (2, 0, 0),
        "and then it leaves everywhere"
    );
}

#[test]
fn a_unit_that_leaves_alone_waits_for_nobody() {
    let free = suspended(Vec::new());
    let all = state(&[("t/base", "1"), ("t/web", "1")]);
    let target = state(&[("t/web", "1")]);
    let (_, advanced, waiting) = step(&target, &all, &free, &observed(&[]));
    assert_eq!(
        (advanced, waiting.len()),
        (vec!["t/base a".to_owned(), "t/base b".to_owned()], 0)
    );
}

#[test]
fn what_came_back_waits_for_nothing_any_more() {
    let free = suspended(Vec::new());
    let all = state(&[("t/base", "1"), ("t/web", "1")]);
    let (next, _, _) = step(&Published::default(), &all, &free, &observed(&[]));
    assert_eq!(next.units[&unit("t/base")].removed_after, [unit("t/web")]);
    let again = state(&[("t/base", "2")]);
    let (next, advanced, _) = step(&again, &next, &free, &observed(&[]));
    assert_eq!(advanced.len(), 2);
    assert!(next.units[&unit("t/base")].removed_after.is_empty());
}
