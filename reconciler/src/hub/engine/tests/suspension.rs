//! What is suspended is rendered and waits to be released.

use super::*;

/// The fleet of a revision in which unit shop/web is suspended.
fn suspended_fleet(digit: char, until: Option<i64>) -> Arc<Fleet> {
    let mut fleet = Fleet::clone(&fleet(digit, &["a", "b"]));
    fleet.suspensions = vec![Arc::new(render::model::Suspension {
        objects: Vec::new(),
        name: "held".to_owned(),
        unit: Some("shop/web".parse().expect("a valid unit")),
        clusters: None,
        reason: String::new(),
        until,
        file: "policies/held.yaml".into(),
        line: 1,
    })];
    Arc::new(fleet)
}

/// A settled hub that accepted a Suspension and then a revision with new content.
fn suspended(until: Option<i64>) -> World {
    let mut world = settled();
    for (digit, content) in [('2', "one"), ('3', "two")] {
        let planned = (suspended_fleet(digit, until), units(digit, content, &["a", "b"]));
        world.source.insert(revision(digit), planned);
        world.see(digit, Relation::Follows);
    }
    assert_eq!(world.sequence(), Some(1), "what is suspended is not released");
    assert_eq!(
        world.rendered.as_ref().map(|commit| &commit.published.units),
        Some(&units('3', "two", &["a", "b"])),
        "while rendered moves on"
    );
    world
}

#[test]
fn what_is_suspended_is_rendered_and_not_released_until_it_is_resumed() {
    let mut world = suspended(None);
    assert_eq!(next_time(&world.state), None);
    world.push('4', &["a", "b"], "two");
    assert_eq!(world.sequence(), Some(2));
    assert_eq!(
        world.released.as_ref().map(|commit| &commit.published.units),
        world.rendered.as_ref().map(|commit| &commit.published.units)
    );
}

#[test]
fn a_suspension_outlives_the_hub() {
    let mut world = suspended(None).restarted();
    world.look();
    assert_eq!(
        world.sequence(),
        Some(1),
        "nothing is released before it is known what is suspended"
    );
    world.see('3', Relation::Follows);
    assert_eq!(world.sequence(), Some(1));
    world.push('4', &["a", "b"], "two");
    assert_eq!(world.sequence(), Some(2));
}

#[test]
fn a_suspension_that_ends_by_itself_wakes_the_engine() {
    let mut world = suspended(Some(100));
    assert_eq!(next_time(&world.state), Some(100));
    let early = step(&mut world.state, Event::TimeCame, 99);
    assert!(early.is_empty(), "{early:?}");
    let effects = step(&mut world.state, Event::TimeCame, 100);
    assert!(
        matches!(effects.as_slice(), [Effect::Write(Write::Released { .. })]),
        "{effects:?}"
    );
    assert_eq!(next_time(&world.state), None);
}
