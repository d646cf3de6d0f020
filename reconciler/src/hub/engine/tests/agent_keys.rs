//! When a branch is proposed for agents that replace their keys.

use render::rekey::KeyChange;
use tunnel::PublicKey;

use super::*;
use crate::key_sets::SignedKey;
use crate::key_wish::{ProvenWish, SignedWish};
use crate::limits::{KEY_WISH_FORGOTTEN_SECONDS, KEY_WISHES_GATHERED_SECONDS};

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
pub(super) fn registered(world: &mut World, digit: char, keys: &[u8]) {
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
    wishes(name, wished(1 + plus, 2 + plus, is_in_use))
}

fn wishes(name: &str, wish: KeyWish) -> Event {
    Event::KeyWished {
        cluster: cluster(name),
        wish,
    }
}

/// A wish as of the first second, which somebody verified.
pub(super) fn wished(old: u8, next: u8, is_in_use: bool) -> KeyWish {
    let signed = |number| SignedKey {
        key: key(number).to_string(),
        signature: String::new(),
    };
    let proven = ProvenWish {
        old: key(old),
        next: key(next),
        is_in_use,
    };
    let said = SignedWish {
        old: signed(old),
        next: signed(next),
    };
    KeyWish::new(proven, ("10.0.0.7".parse().ok(), 1, 1), Arc::new((said, [0; 32])))
}

fn written(done: &KeysDone) -> Event {
    Event::KeysProposed {
        done: done.clone(),
        branch: (!done.changes.is_empty()).then(|| "flotilla/keys".to_owned()),
        by_hand: BTreeMap::new(),
        closed: BTreeSet::new(),
    }
}

pub(super) fn add(number: u8) -> KeyChange {
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
    let same = |name| wishes(name, wished(if name == "a" { 1 } else { 101 }, 7, false));
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

fn told(wishes: &[(&str, KeyWish)]) -> Event {
    Event::PeerTold {
        peer: "b".to_owned(),
        clusters: BTreeMap::new(),
        reports: Vec::new(),
        joining: None,
        wishes: wishes
            .iter()
            .map(|(name, wish)| (cluster(name), wish.clone()))
            .collect(),
    }
}

/// As [`world`], beside another hub.
fn beside() -> World {
    let mut world = world(&[1]);
    let state = std::mem::take(&mut world.state).with_peers(["b".to_owned()]);
    world.state = state;
    world.state.joins.is_proposing = true;
    world
}

#[test]
fn what_either_hub_hears_is_one_proposal_and_nothing_is_written_before_the_other_has_told() {
    let mut world = beside();
    assert_eq!(write(&mut world, wish("a", false), 0), None);
    assert_eq!(
        write(&mut world, Event::TimeCame, 2 * GATHERED),
        None,
        "the other one may know more"
    );
    assert_eq!(
        write(&mut world, told(&[("b", wished(101, 102, false))]), 2 * GATHERED),
        None
    );
    let done = write(&mut world, Event::TimeCame, 4 * GATHERED).expect("it is time");
    let both = BTreeMap::from([(cluster("a"), add(2)), (cluster("b"), add(102))]);
    assert_eq!(done.changes, both);
    assert_eq!(write(&mut world, written(&done), 200), None);
    // It is lost, and what it told stays; then it says that its agent wishes nothing any more.
    let lost = Event::PeerLost { peer: "b".to_owned() };
    assert_eq!(write(&mut world, lost, 300), None);
    assert_eq!(world.state.key_changes(), both);
    let less = write(&mut world, told(&[]), 400).expect("it is taken back");
    assert_eq!(less.changes, BTreeMap::from([(cluster("a"), add(2))]));
}

#[test]
fn of_two_different_wishes_of_one_cluster_neither_is_proposed_and_both_are_shown() {
    // Whichever hub hears which.
    for elsewhere in [false, true] {
        let mut world = beside();
        write(&mut world, told(&[]), 0);
        write(&mut world, wishes("a", wished(1, 2, false)), 1);
        let first = write(&mut world, Event::TimeCame, 1 + GATHERED).expect("it is time");
        write(&mut world, written(&first), 2 + GATHERED);
        let thief = KeyWish {
            last: 100,
            ..wished(1, 9, false)
        };
        let heard = match elsewhere {
            true => told(&[("a", thief)]),
            false => wishes("a", thief),
        };
        let without = write(&mut world, heard, 100).expect("it is taken back at once");
        assert_eq!(without.changes, BTreeMap::new());
        write(&mut world, written(&without), 101);
        let (_, contests) = world.state.keys_waiting();
        let shown: Vec<_> = contests[&cluster("a")].iter().map(KeyWish::asker).collect();
        assert_eq!(shown.len(), 2);
        assert!(
            shown[0].contains("from 10.0.0.7, since 1970-01-01T00:00:01Z"),
            "{shown:?}"
        );
        assert!(world.state.key_changes().is_empty());
        // One of them is not heard of for long: the other one counts.
        let repeated = KeyWish {
            last: 1_500,
            ..wished(1, 2, false)
        };
        assert_eq!(write(&mut world, wishes("a", repeated), 1_500), None);
        let looked = 1 + KEY_WISH_FORGOTTEN_SECONDS;
        assert_eq!(write(&mut world, Event::TimeCame, looked), None, "it was repeated");
        let over = 100 + KEY_WISH_FORGOTTEN_SECONDS;
        assert_eq!(next_time(&world.state), Some(over));
        assert_eq!(write(&mut world, Event::TimeCame, over), None, "gathered");
        let again = write(&mut world, Event::TimeCame, over + GATHERED).expect("it is time");
        assert_eq!(again.changes, BTreeMap::from([(cluster("a"), add(2))]));
    }
}

#[test]
fn of_two_agents_that_were_silent_for_long_the_one_that_comes_back_counts() {
    // Whichever hub hears them.
    for elsewhere in [false, true] {
        // When the keys 2 and 3 were wished last.
        let say = |world: &mut World, lasts: [i64; 2], now| {
            let both = [2, 3].into_iter().zip(lasts);
            let both = both.map(|(next, last)| {
                let wish = wished(1, next, false);
                ("a", KeyWish { last, ..wish })
            });
            let both: Vec<_> = both.collect();
            let events = match elsewhere {
                true => vec![told(&both)],
                false => both.into_iter().map(|(name, wish)| wishes(name, wish)).collect(),
            };
            let events = events.into_iter();
            events.fold(None, |before, event| write(world, event, now).or(before))
        };
        let mut world = beside();
        write(&mut world, told(&[]), 0);
        say(&mut world, [1, 1], 1);
        say(&mut world, [1_500, 1], 1_500);
        let settled = 1 + KEY_WISH_FORGOTTEN_SECONDS;
        assert_eq!(write(&mut world, Event::TimeCame, settled), None, "gathered");
        let one = write(&mut world, Event::TimeCame, settled + GATHERED).expect("it is time");
        assert_eq!(one.changes, BTreeMap::from([(cluster("a"), add(2))]));
        write(&mut world, written(&one), settled + GATHERED);
        // Both are silent, and somebody pushes.
        let silent = 1_500 + KEY_WISH_FORGOTTEN_SECONDS;
        registered(&mut world, '2', &[1]);
        let none = write(&mut world, Event::TimeCame, silent).expect("nobody knows whose it was");
        assert_eq!(none.changes, BTreeMap::new());
        write(&mut world, written(&none), silent);
        let back = silent + 1_000;
        assert_eq!(say(&mut world, [back, 1], back), None, "gathered");
        let again = write(&mut world, Event::TimeCame, back + GATHERED).expect("it is back");
        assert_eq!(again.changes, BTreeMap::from([(cluster("a"), add(2))]));
        write(&mut world, written(&again), back + GATHERED);
        // Then the other one, too.
        let both = back + 100;
        let without = say(&mut world, [back, both], both).expect("it is taken back at once");
        assert_eq!(without.changes, BTreeMap::new());
    }
}

#[test]
fn a_wish_for_a_key_that_is_shut_out_stands_in_no_other_ones_way() {
    let mut world = world(&[1]);
    write(&mut world, wishes("a", wished(1, 2, false)), 1);
    write(&mut world, wishes("a", wished(1, 9, false)), 1);
    assert!(world.state.key_changes().is_empty());
    let keys = BTreeSet::from([key(9)]);
    write(&mut world, Event::KeysDenied { keys }, 2);
    assert_eq!(world.state.key_changes(), BTreeMap::from([(cluster("a"), add(2))]));
}

#[test]
fn a_key_that_is_shut_out_is_taken_back_where_nobody_else_wishes_one() {
    let keys = || BTreeSet::from([key(2)]);
    // Whether it is written already, or is about to be.
    for is_written in [true, false] {
        let mut world = world(&[1]);
        write(&mut world, wish("a", false), 0);
        let first = write(&mut world, Event::TimeCame, GATHERED).expect("it is time");
        let events = match is_written {
            true => [written(&first), Event::KeysDenied { keys: keys() }],
            false => [Event::KeysDenied { keys: keys() }, written(&first)],
        };
        let [_, without] = events.map(|event| write(&mut world, event, GATHERED));
        let without = without.expect("nobody may merge it");
        assert_eq!(without.changes, BTreeMap::new());
        assert_eq!(write(&mut world, written(&without), 100), None);
        registered(&mut world, '2', &[1]);
        assert_eq!(
            write(&mut world, Event::TimeCame, 200),
            None,
            "nothing is there to take back"
        );
    }
    let mut started = world(&[1]);
    let denied = Event::KeysDenied { keys: keys() };
    assert_eq!(write(&mut started, denied, 100), None, "it knows of no branch");
}

#[test]
fn a_key_that_is_shut_out_is_taken_back_while_another_hub_is_away() {
    let mut world = beside();
    write(&mut world, told(&[]), 0);
    write(&mut world, wish("a", false), 1);
    let first = write(&mut world, Event::TimeCame, 1 + GATHERED).expect("it is time");
    write(&mut world, written(&first), 50);
    write(&mut world, Event::PeerLost { peer: "b".to_owned() }, 60);
    let denied = Event::KeysDenied {
        keys: BTreeSet::from([key(2)]),
    };
    let effects = step(&mut world.state, denied, 100);
    let asked = effects.into_iter().find_map(|effect| match effect {
        Effect::Write(Write::AgentKeys { asked, .. }) => Some(asked),
        _ => None,
    });
    let asked = asked.expect("it is taken back");
    assert!(asked.is_partial && asked.heard.contains(&cluster("a")), "{asked:?}");
}

#[test]
fn an_old_key_that_is_shut_out_is_taken_out_once_the_next_one_is_in_use() {
    // What the hub's door does each second.
    let deny = |world: &mut World, now| {
        let keys = world.state.agent_keys.keys();
        let keys: BTreeSet<_> = keys.into_iter().filter(|wished| *wished == key(1)).collect();
        match keys.is_empty() {
            true => None,
            false => write(world, Event::KeysDenied { keys }, now),
        }
    };
    let mut world = world(&[1, 2]);
    write(&mut world, wish("a", true), 100);
    for now in 101..100 + GATHERED {
        assert_eq!(deny(&mut world, now), None);
    }
    let done = write(&mut world, Event::TimeCame, 100 + GATHERED).expect("it is time");
    assert_eq!(done.changes, BTreeMap::from([(cluster("a"), remove(1))]));
    // Who has nothing but that key wishes in vain.
    registered(&mut world, '2', &[1]);
    write(&mut world, wishes("a", wished(1, 9, false)), 200);
    deny(&mut world, 200);
    assert!(!world.state.agent_keys.keys().contains(&key(9)));
}

#[test]
fn a_branch_that_is_gone_is_looked_at_and_what_a_person_closed_is_shown_as_such() {
    let mut world = world(&[1]);
    write(&mut world, wish("a", false), 0);
    let first = write(&mut world, Event::TimeCame, GATHERED).expect("it is time");
    write(&mut world, written(&first), GATHERED);
    let refs = StateRefs {
        keys_gone: true,
        ..world.refs()
    };
    assert_eq!(write(&mut world, Event::StateSeen(refs), 100), None);
    let again = write(&mut world, Event::TimeCame, 100 + GATHERED).expect("the keeper says what became of it");
    let closed = Event::KeysProposed {
        done: again.clone(),
        branch: None,
        by_hand: BTreeMap::new(),
        closed: BTreeSet::from([cluster("a")]),
    };
    assert_eq!(write(&mut world, closed, 200), None);
    let keys = &world.state.agent_keys;
    assert_eq!(keys.branch(&cluster("a")), None);
    assert!(
        keys.by_hand(&cluster("a"))
            .is_some_and(|why| why.contains("was closed"))
    );
    assert_eq!(write(&mut world, wish("a", false), 300), None, "nothing is new");
}
