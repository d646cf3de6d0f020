//! Objects that change hands between units of which one has to wait.

use super::order::{HEALTHY, cluster, observed, unit};
use super::*;
use crate::model::Dependency;
use crate::name::ObjectKey;

fn object(name: &str) -> ObjectKey {
    ObjectKey::new("v1", "ConfigMap", "t", name)
}

/// A content is named after its objects: `x y`.
fn holdings(contents: &[&str]) -> BTreeMap<Digest, Option<Arc<Holdings>>> {
    let known = contents.iter().map(|content| {
        let objects = content.split_whitespace().map(object).collect();
        let holdings = Holdings { objects, orphan: false };
        (Digest::of_bytes(content.as_bytes()), Some(Arc::new(holdings)))
    });
    known.collect()
}

/// Units with a content on clusters a and b, and what they need everywhere.
fn state(units: &[(&str, &str, &[&str])]) -> Published {
    let placed = units.iter().map(|(name, content, needs)| {
        let mut placed = placement(&[entry("a", "default", content), entry("b", "default", content)]);
        placed.depends_on = needs
            .iter()
            .map(|needed| Dependency {
                unit: unit(needed),
                clusters: DependencyClusters::All,
            })
            .collect();
        (*name, placed)
    });
    published(&placed.collect::<Vec<_>>())
}

fn due(target: &Published, released: &Published, fleet: &Fleet, observed: &Observed) -> Due {
    release(target, released, fleet.suspensions(), observed, 0)
}

fn advanced(due: &Due) -> Vec<String> {
    let advances = due.advances.iter();
    advances
        .map(|advance| format!("{} {}", advance.unit, advance.cluster))
        .collect()
}

/// The contents of every test here.
const CONTENTS: [&str; 7] = ["x y", "y", "y2", "x z", "z", "q", "x"];

fn knowing(said: &[(&str, &str, Option<&str>, Outcome)]) -> Observed {
    Observed {
        holdings: holdings(&CONTENTS),
        ..observed(said)
    }
}

#[test]
fn an_object_stays_with_its_unit_until_the_unit_that_gets_it_may_come() {
    let free = suspended(Vec::new());
    let before = state(&[("t/giver", "x y", &[]), ("t/taker", "z", &[]), ("t/base", "q", &[])]);
    // The taker gets x and needs t/base from now on, which is not healthy on b.
    let target = state(&[
        ("t/giver", "y", &[]),
        ("t/taker", "x z", &["t/base"]),
        ("t/base", "q", &[]),
    ]);
    let half = [("a", "t/base", Some("q"), HEALTHY)];
    let waits = due(&target, &before, &free, &knowing(&half));
    assert_eq!(advanced(&waits), Vec::<String>::new());
    let words: Vec<_> = waits.waiting.iter().map(ToString::to_string).collect();
    assert_eq!(
        words[0],
        "stays until t/taker, which gets an object of it, is released to a"
    );
    assert_eq!(words[2], "waits for t/base, which is not healthy on b yet");
    let whole = [half[0], ("b", "t/base", Some("q"), HEALTHY)];
    let both = due(&target, &before, &free, &knowing(&whole));
    assert_eq!(advanced(&both), ["t/giver a", "t/giver b", "t/taker a", "t/taker b"]);
}

#[test]
fn what_loses_nothing_to_who_waits_goes_on() {
    let free = suspended(Vec::new());
    let before = state(&[("t/giver", "y", &[]), ("t/taker", "z", &[]), ("t/base", "q", &[])]);
    let target = state(&[
        ("t/giver", "y2", &[]),
        ("t/taker", "x z", &["t/base"]),
        ("t/base", "q", &[]),
    ]);
    let goes_on = due(&target, &before, &free, &knowing(&[]));
    assert_eq!(advanced(&goes_on), ["t/giver a", "t/giver b"]);
}

#[test]
fn a_unit_that_is_taken_away_stays_while_its_heir_waits() {
    let held = suspended(vec![suspension(Some("t/taker"), named("b"), None)]);
    let before = state(&[("t/giver", "x", &[])]);
    let target = state(&[("t/taker", "x z", &[])]);
    let due = due(&target, &before, &held, &knowing(&[]));
    assert_eq!(
        advanced(&due),
        ["t/giver a", "t/taker a"],
        "where the heir is suspended the object stays"
    );
}

#[test]
fn a_taker_that_needs_its_giver_goes_together_with_it() {
    let free = suspended(Vec::new());
    let before = state(&[
        ("t/giver", "x y", &[]),
        ("t/taker", "z", &["t/between"]),
        ("t/between", "q", &["t/giver"]),
    ]);
    let target = state(&[
        ("t/giver", "y", &[]),
        ("t/taker", "x z", &["t/between"]),
        ("t/between", "q", &["t/giver"]),
    ]);
    let due = due(&target, &before, &free, &knowing(&[]));
    assert_eq!(
        advanced(&due),
        ["t/giver a", "t/giver b", "t/taker a", "t/taker b"],
        "waiting for each other would be for ever: {:?}",
        due.waiting
    );
}

#[test]
fn whoever_is_held_for_one_holds_who_gives_to_it() {
    let free = suspended(Vec::new());
    let before = state(&[
        ("t/first", "x", &[]),
        ("t/second", "y", &[]),
        ("t/third", "z", &[]),
        ("t/base", "q", &[]),
    ]);
    // x goes from first to second, y from second to third, and third waits.
    let target = state(&[
        ("t/first", "z2", &[]),
        ("t/second", "x", &[]),
        ("t/third", "y", &["t/base"]),
        ("t/base", "q", &[]),
    ]);
    let mut observed = knowing(&[]);
    observed.holdings.extend(holdings(&["z2"]));
    let due = due(&target, &before, &free, &observed);
    assert_eq!(advanced(&due), Vec::<String>::new(), "{:?}", due.waiting);
}

#[test]
fn a_ring_of_needs_and_objects_that_change_hands_goes_at_once() {
    // x goes from a to b, which needs c; y goes from c to d, which needs a.
    let before = state(&[
        ("t/a", "x y2", &[]),
        ("t/b", "z", &[]),
        ("t/c", "q y", &[]),
        ("t/d", "z2", &[]),
    ]);
    let target = |more: &'static [&'static str]| {
        state(&[
            ("t/a", "y2", &[]),
            ("t/b", "x z", &["t/c"]),
            ("t/c", "q", &[]),
            ("t/d", "y z2", more),
            ("t/base", "w", &[]),
        ])
    };
    let mut observed = knowing(&[]);
    observed.holdings.extend(holdings(&["x y2", "q y", "z2", "y z2", "w"]));
    let free = suspended(Vec::new());
    let ring = due(&target(&["t/a"]), &before, &free, &observed);
    let all = [
        "t/a a", "t/a b", "t/b a", "t/b b", "t/base a", "t/base b", "t/c a", "t/c b", "t/d a", "t/d b",
    ];
    assert_eq!(advanced(&ring), all, "{:?}", ring.waiting);
    // Where one of them waits for something else too, all do.
    let waits = due(&target(&["t/a", "t/base"]), &before, &free, &observed);
    assert_eq!(advanced(&waits), ["t/base a", "t/base b"], "{:?}", waits.waiting);
    let held = suspended(vec![suspension(Some("t/d"), named("b"), None)]);
    let stuck = due(&target(&["t/a"]), &before, &held, &observed);
    assert_eq!(
        advanced(&stuck),
        ["t/base a", "t/base b"],
        "nobody releases a suspended one"
    );
}

#[test]
fn what_is_not_known_is_asked_for_and_what_cannot_be_read_gives_nothing_away() {
    let free = suspended(Vec::new());
    let before = state(&[("t/giver", "x y", &[]), ("t/taker", "z", &[]), ("t/base", "q", &[])]);
    let target = state(&[
        ("t/giver", "y", &[]),
        ("t/taker", "x z", &["t/base"]),
        ("t/base", "q", &[]),
    ]);
    let digest = |content: &str| Digest::of_bytes(content.as_bytes());
    let mut observed = observed(&[]);
    let first = due(&target, &before, &free, &observed);
    assert_eq!(first.unknown, BTreeSet::from([digest("x z"), digest("z")]));
    observed.holdings.extend(holdings(&["x z", "z"]));
    let second = due(&target, &before, &free, &observed);
    assert_eq!(second.unknown, BTreeSet::from([digest("x y"), digest("y")]));
    observed.holdings.extend([(digest("x y"), None), (digest("y"), None)]);
    let third = due(&target, &before, &free, &observed);
    assert_eq!((third.unknown.len(), third.advances.len()), (0, 0));
}

#[test]
fn a_cluster_without_who_waits_is_not_held() {
    let free = suspended(Vec::new());
    let before = state(&[("t/giver", "x y", &[]), ("t/base", "q", &[])]);
    let mut target = state(&[
        ("t/giver", "y", &[]),
        ("t/taker", "x", &["t/base"]),
        ("t/base", "q", &[]),
    ]);
    let taker = target.units.get_mut(&unit("t/taker")).expect("it is there");
    taker.clusters.remove(&cluster("b"));
    let due = due(&target, &before, &free, &knowing(&[]));
    assert_eq!(advanced(&due), ["t/giver b"], "there the object goes for good");
}
