//! When a branch is proposed for agents that replace their keys.

use render::rekey::KeyChange;
use tunnel::PublicKey;

use super::*;
use crate::limits::KEY_WISHES_GATHERED_SECONDS;

const GATHERED: i64 = KEY_WISHES_GATHERED_SECONDS;

fn key(number: u8) -> PublicKey {
    PublicKey::from_bytes([number; 32])
}

/// A world in which each cluster's file has these keys.
fn world(keys: &[u8]) -> World {
    let mut world = settled();
    world.state.joins.is_proposing = true;
    registered(&mut world, '1', keys);
    world
}

/// A revision in which each cluster's file has these keys: one cluster's are those plus 0, the other's plus 100.
fn registered(world: &mut World, digit: char, keys: &[u8]) {
    let mut fleet = Fleet::clone(&fleet(digit, &["a", "b"]));
    for (cluster, plus) in fleet.clusters.values_mut().zip([0, 100]) {
        cluster.public_keys = keys.iter().map(|number| key(number + plus).to_string()).collect();
    }
    world.state.fleet = Some(Arc::new(fleet));
}

/// What an event has written. Nothing is done, so that each write waits for its outcome.
fn write(world: &mut World, event: Event, now: i64) -> Option<KeysDone> {
    let effects = step(&mut world.state, event, now);
    effects.into_iter().find_map(|effect| match effect {
        Effect::Write(Write::AgentKeys { done, .. }) => Some(done),
        _ => None,
    })
}

/// A cluster's agent wishes its second key in place of its first.
fn wish(name: &str, is_in_use: bool) -> Event {
    let plus = if name == "a" { 0 } else { 100 };
    Event::KeyWished {
        cluster: cluster(name),
        wish: KeyWish {
            old: key(1 + plus),
            next: key(2 + plus),
            is_in_use,
        },
    }
}

fn written(done: &KeysDone) -> Event {
    Event::KeysProposed {
        done: done.clone(),
        branch: (!done.changes.is_empty()).then(|| "flotilla/keys".to_owned()),
        by_hand: BTreeMap::new(),
    }
}

fn add(number: u8) -> KeyChange {
    KeyChange::Add(key(number).to_string())
}

fn remove(number: u8) -> KeyChange {
    KeyChange::Remove(key(number).to_string())
}

#[test]
fn wishes_of_many_agents_are_gathered_into_one_write() {
    let mut world = world(&[1]);
    assert_eq!(write(&mut world, wish("a", false), 100), None, "others may follow");
    assert_eq!(next_time(&world.state), Some(100 + GATHERED));
    for _ in 0..50 {
        assert_eq!(write(&mut world, wish("b", false), 101), None);
    }
    let done = write(&mut world, Event::TimeCame, 100 + GATHERED).expect("it is time");
    let both = BTreeMap::from([(cluster("a"), add(2)), (cluster("b"), add(102))]);
    assert_eq!(done.changes, both);
    assert_eq!(write(&mut world, written(&done), 200), None);
    assert_eq!(world.state.agent_keys.branch(&cluster("a")), Some("flotilla/keys"));
    assert_eq!(write(&mut world, wish("a", false), 300), None, "nothing is new");
    assert_eq!(next_time(&world.state), None);
}

#[test]
fn old_keys_go_in_a_second_batch_once_the_next_ones_are_in_use() {
    let mut world = world(&[1]);
    write(&mut world, wish("a", false), 0);
    let first = write(&mut world, Event::TimeCame, GATHERED).expect("it is time");
    write(&mut world, written(&first), GATHERED);
    // A person merges it, and for a's agent it is withdrawn at once.
    registered(&mut world, '2', &[1, 2]);
    let withdrawn = write(&mut world, Event::TimeCame, 100).expect("nothing waits");
    assert_eq!(withdrawn.changes, BTreeMap::new());
    assert_eq!(write(&mut world, written(&withdrawn), 100), None);
    assert_eq!(write(&mut world, wish("a", true), 101), None, "gathered again");
    let second = write(&mut world, Event::TimeCame, 101 + GATHERED).expect("it is time");
    assert_eq!(second.changes, BTreeMap::from([(cluster("a"), remove(1))]));
    write(&mut world, written(&second), 200);
    assert_eq!(write(&mut world, wish("a", false), 201), None, "it was in by it before");
    registered(&mut world, '3', &[2]);
    let over = write(&mut world, Event::TimeCame, 300).expect("nothing waits");
    assert_eq!(over.changes, BTreeMap::new());
}

#[test]
fn a_newer_commit_has_the_branch_looked_at_again() {
    let mut world = world(&[1]);
    write(&mut world, wish("a", false), 0);
    let first = write(&mut world, Event::TimeCame, GATHERED).expect("it is time");
    write(&mut world, written(&first), GATHERED);
    registered(&mut world, '2', &[1]);
    let again = write(&mut world, Event::TimeCame, GATHERED + 1).expect("it may not go with the newer one");
    assert_eq!((again.changes, again.source), (first.changes, revision('2')));
}

#[test]
fn a_key_of_two_clusters_and_one_that_a_person_took_out_are_not_proposed() {
    let mut world = world(&[1]);
    let same = |name| Event::KeyWished {
        cluster: cluster(name),
        wish: KeyWish {
            old: key(if name == "a" { 1 } else { 101 }),
            next: key(7),
            is_in_use: false,
        },
    };
    write(&mut world, same("a"), 0);
    write(&mut world, same("b"), 0);
    assert_eq!(world.state.key_changes(), BTreeMap::new());
    registered(&mut world, '2', &[9]);
    write(&mut world, wish("a", false), 0);
    assert_eq!(world.state.key_changes(), BTreeMap::new(), "the old key counts no more");
}

#[test]
fn a_hub_that_may_not_write_to_source_shows_what_waits_and_writes_nothing() {
    let mut world = world(&[1]);
    world.state.joins.is_proposing = false;
    write(&mut world, wish("a", false), 0);
    assert_eq!(write(&mut world, Event::TimeCame, GATHERED), None);
    assert_eq!(world.state.key_changes(), BTreeMap::from([(cluster("a"), add(2))]));
    assert_eq!(world.state.agent_keys.branch(&cluster("a")), None);
}
