//! Words that place units anew, and for how long they count.

use std::collections::BTreeSet;

use super::*;

fn web() -> UnitKey {
    "shop/web".parse().expect("a valid unit")
}

/// The unit of the first commit, on these clusters.
fn on(clusters: &[&str]) -> BTreeMap<UnitKey, UnitPlacement> {
    units('1', "one", clusters)
}

fn cause(world: &World) -> Option<Cause> {
    let rendered = world.rendered.as_ref()?;
    Some(rendered.published.record.as_ref()?.cause)
}

#[test]
fn what_moves_by_a_word_alone_is_recorded_as_that() {
    for (word, moves, expected) in [
        (true, on(&["b"]), Cause::Rebalance),
        (false, on(&["b"]), Cause::SourceCommit),
        (true, units('2', "two", &["a", "b"]), Cause::SourceCommit),
    ] {
        let mut world = settled();
        world.rebalanced = word.then(web).into_iter().collect();
        world.source.insert(revision('2'), (fleet('2', &["a", "b"]), moves));
        world.see('2', Relation::Follows);
        assert_eq!(cause(&world), Some(expected));
    }
}

#[test]
fn a_word_that_finds_nothing_to_move_is_over() {
    let mut world = settled();
    world.rebalanced = BTreeSet::from([web()]);
    let placed = world.rendered.as_ref().expect("it is settled").published.units.clone();
    world.source.insert(revision('2'), (fleet('2', &["a", "b"]), placed));
    world.see('2', Relation::Follows);
    assert_eq!(world.state.rebalanced, BTreeMap::from([(web(), revision('2'))]));
    assert_eq!(cause(&world), Some(Cause::SourceCommit), "nothing is written");
}

#[test]
fn what_a_word_proposes_to_people_is_not_planned_again_by_a_report() {
    for (gate, looks) in [(Approval::None, true), (Approval::Required, false)] {
        let mut world = settled();
        world.gate = gate;
        world.rebalanced = BTreeSet::from([web()]);
        world.by_room = BTreeSet::from([web()]);
        world
            .source
            .insert(revision('2'), (fleet('2', &["a", "b"]), on(&["b"])));
        world.see('2', Relation::Follows);
        assert_eq!(world.state.by_room.contains(&web()), looks, "{gate:?}");
    }
}

#[test]
fn a_revision_that_was_decided_on_is_planned_as_that_unless_it_waits_for_a_merge() {
    for (gate, decided) in [(Approval::None, true), (Approval::Required, false)] {
        let mut world = settled();
        world.gate = gate;
        world
            .source
            .insert(revision('2'), (fleet('2', &["a", "b"]), on(&["b"])));
        world.see('2', Relation::Follows);
        assert!(!world.decided, "it is new");
        world.hear(Event::Predicted);
        assert_eq!(world.decided, decided, "{gate:?}");
    }
}
