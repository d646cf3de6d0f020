//! Two hubs that are asked for registrations and for keys, each killed at every step of proposing and telling.

use std::collections::{BTreeMap, BTreeSet};

use render::rekey::KeyChange;
use tunnel::PublicKey;

use super::agent_keys::{add, registered, wished};
use super::*;
use crate::hub::publish::{Elsewhere, KeyNote, KeysAsked, Registrations, Whose};
use crate::limits::KEY_WISHES_GATHERED_SECONDS;

type Asked = BTreeMap<ClusterName, PublicKey>;
type Changes = BTreeMap<ClusterName, KeyChange>;

/// Clusters that are not registered, and those that are.
const NEW: [&str; 3] = ["x", "y", "z"];
const OLD: [&str; 2] = ["a", "b"];

/// What both hubs write to, and what is said to them.
#[derive(Default)]
struct Shared {
    /// Cluster → the hub that put its branch there, and the key in it.
    registrations: BTreeMap<ClusterName, (usize, PublicKey)>,
    keys: Option<Changes>,
    note: KeyNote,
    /// Hub → who asks it with a token: it outlives the process, in its file.
    asked: [Asked; 2],
    /// Which agents wish, and at which hub.
    wishing: BTreeSet<(usize, &'static str)>,
    /// What a person closed.
    closed: BTreeSet<(ClusterName, String)>,
    now: i64,
}

/// A process that writes until it dies: so many steps, or all.
struct Steps(Option<usize>);

impl Steps {
    /// Whether it lives to do one more.
    fn lives(&mut self) -> bool {
        match &mut self.0 {
            None => true,
            Some(0) => false,
            Some(left) => {
                *left -= 1;
                true
            }
        }
    }
}

struct Dice(u64);

impl Dice {
    fn below(&mut self, limit: u64) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % limit).expect("it is small")
    }
}

fn key_of(name: &str, at: usize) -> PublicKey {
    let number = name.as_bytes()[0] + u8::try_from(at).expect("it is small");
    PublicKey::from_bytes([number; 32])
}

fn wish_of(name: &str) -> KeyWish {
    let plus = if name == "a" { 0 } else { 100 };
    wished(1 + plus, 2 + plus, false)
}

fn change_of(name: &str) -> KeyChange {
    add(if name == "a" { 2 } else { 102 })
}

fn text(change: &KeyChange) -> String {
    format!("{change:?}")
}

impl Shared {
    /// Makes the branches of registrations what a hub wants, as far as it lives.
    fn register(&mut self, at: usize, wanted: Asked, elsewhere: Elsewhere, steps: &mut Steps) -> Option<Event> {
        let before = self.registrations.clone();
        let whose = |mark: usize| if mark == at { Whose::Own } else { Whose::Another };
        for (cluster, (mark, key)) in &before {
            let gives_back = || elsewhere.gives_back(cluster.as_str(), whose(*mark), &key.to_string());
            let is_over = !wanted.contains_key(cluster) && gives_back();
            if is_over && !steps.lives() {
                return None;
            }
            if is_over {
                self.registrations.remove(cluster);
            }
        }
        let mut registrations = Registrations::default();
        for (cluster, key) in &wanted {
            let found = before.get(cluster);
            registrations.rests_on_others |= found.is_some_and(|(mark, _)| *mark != at);
            if found.is_none_or(|(_, found)| found != key) {
                let is_free = found.is_none_or(|(mark, found)| {
                    *mark == at || elsewhere.gives_back(cluster.as_str(), whose(*mark), &found.to_string())
                });
                if !is_free {
                    registrations.contested.insert(cluster.clone());
                    continue;
                }
                if !steps.lives() {
                    return None;
                }
                self.registrations.insert(cluster.clone(), (at, *key));
            }
            registrations
                .branches
                .insert(cluster.clone(), format!("flotilla/register-{cluster}"));
        }
        let other = 1 - at;
        for (cluster, (mark, key)) in &before {
            let is_asked = *mark == other && self.asked[other].contains_key(cluster);
            assert!(
                !is_asked || self.registrations.get(cluster) == Some(&(other, *key)),
                "{cluster} was proposed by the other hub and is asked for"
            );
        }
        Some(Event::RegistrationsProposed {
            wanted,
            elsewhere,
            registrations,
        })
    }

    /// The same of keys: what is remembered says first that a branch goes, or was closed, and last that one is there.
    fn rekey(&mut self, fleet: &Fleet, done: KeysDone, asked: &KeysAsked, steps: &mut Steps) -> Option<Event> {
        let sorted = self.note.sorted(&done.changes, asked, fleet, self.keys.is_some());
        let mut note = sorted.note;
        let is_none = sorted.proposed.is_empty();
        if (is_none || self.keys.is_none()) && self.note != note {
            steps.lives().then(|| self.note = note.clone())?;
        }
        for (cluster, change) in &sorted.proposed {
            let proposed = (cluster.clone(), text(change));
            assert!(!self.closed.contains(&proposed), "a person closed {proposed:?}");
        }
        steps
            .lives()
            .then(|| self.keys = (!is_none).then(|| sorted.proposed.clone()))?;
        note.open = sorted.proposed;
        steps.lives().then(|| self.note = note)?;
        for (cluster, changes) in &self.note.closed {
            for change in changes {
                let closed = (cluster.clone(), text(change));
                assert!(self.closed.contains(&closed), "nobody closed {closed:?}");
            }
        }
        Some(Event::KeysProposed {
            done,
            branch: self.keys.is_some().then(|| "flotilla/keys".to_owned()),
            by_hand: BTreeMap::new(),
            closed: sorted.closed.into_keys().collect(),
        })
    }
}

/// A hub that was just started beside the other one, and has read its tokens.
fn start(shared: &mut Shared, at: usize) -> World {
    let mut world = settled();
    world.state = State::default().with_peers(["other".to_owned()]);
    world.look();
    world.see('1', Relation::Follows);
    world.state.joins.is_proposing = true;
    registered(&mut world, '1', &[1]);
    let wanted = shared.asked[at].clone();
    hear(&mut world, shared, at, Event::Joining { wanted }, &mut Steps(None));
    world
}

/// Lets a hub hear something and do what follows; whether it lives.
fn hear(world: &mut World, shared: &mut Shared, at: usize, event: Event, steps: &mut Steps) -> bool {
    let mut events = vec![event];
    while let Some(event) = events.pop() {
        for effect in step(&mut world.state, event, shared.now) {
            let done = match effect {
                Effect::Write(Write::Registrations { wanted, elsewhere, .. }) => {
                    shared.register(at, wanted, elsewhere, steps)
                }
                Effect::Write(Write::AgentKeys { fleet, done, asked }) => shared.rekey(&fleet, done, &asked, steps),
                other => {
                    events.extend(world.perform(other));
                    continue;
                }
            };
            match done {
                Some(event) => events.push(event),
                None => return false,
            }
        }
    }
    true
}

fn told_by(other: &World) -> Event {
    let wishes = other.state.agent_keys.own();
    Event::PeerTold {
        peer: "other".to_owned(),
        clusters: BTreeMap::new(),
        reports: Vec::new(),
        joining: other.state.told_joining(),
        wishes: wishes.map(|(cluster, wish)| (cluster.clone(), wish.clone())).collect(),
    }
}

fn looked(world: &World, shared: &Shared) -> Event {
    Event::StateSeen(StateRefs {
        keys_gone: world.state.agent_keys.has_branch() && shared.keys.is_none(),
        ..world.refs()
    })
}

fn wishes(name: &str) -> Event {
    Event::KeyWished {
        cluster: cluster(name),
        wish: wish_of(name),
    }
}

fn check(seed: u64) {
    let mut dice = Dice(seed);
    let mut shared = Shared::default();
    let mut hubs = [0, 1].map(|at| start(&mut shared, at));
    for _ in 0..200 {
        let at = dice.below(2);
        // Each may be its last.
        let mut steps = Steps((dice.below(4) == 0).then(|| dice.below(4)));
        let event = match dice.below(8) {
            0 => {
                let some = NEW.into_iter().filter(|_| dice.below(2) == 0);
                // An agent at each hub for one cluster, with one key or with two.
                let some: Vec<_> = some.collect();
                let asked = some
                    .into_iter()
                    .map(|name| (cluster(name), key_of(name, dice.below(2))));
                shared.asked[at] = asked.collect();
                let wanted = shared.asked[at].clone();
                Event::Joining { wanted }
            }
            1 => {
                let name = OLD[dice.below(2)];
                shared.wishing.insert((at, name));
                wishes(name)
            }
            2 if dice.below(3) == 0 => {
                if shared.keys.take().is_some() {
                    let closed = shared.note.open.iter();
                    let closed: Vec<_> = closed
                        .map(|(cluster, change)| (cluster.clone(), text(change)))
                        .collect();
                    shared.closed.extend(closed);
                }
                looked(&hubs[at], &shared)
            }
            3 | 4 => told_by(&hubs[1 - at]),
            5 => looked(&hubs[at], &shared),
            _ => {
                shared.now += KEY_WISHES_GATHERED_SECONDS;
                Event::TimeCame
            }
        };
        if !hear(&mut hubs[at], &mut shared, at, event, &mut steps) {
            hubs[at] = start(&mut shared, at);
            let peer = "other".to_owned();
            let other = 1 - at;
            hear(
                &mut hubs[other],
                &mut shared,
                other,
                Event::PeerLost { peer },
                &mut Steps(None),
            );
        }
    }
    // Both live on: agents dial again, and all is told.
    for _ in 0..8 {
        for at in [0, 1] {
            let mut events = vec![told_by(&hubs[1 - at]), looked(&hubs[at], &shared)];
            let here = shared.wishing.iter().filter(|(hub, _)| *hub == at);
            events.extend(here.map(|(_, name)| wishes(name)));
            events.push(Event::TimeCame);
            shared.now += KEY_WISHES_GATHERED_SECONDS;
            for event in events {
                assert!(hear(&mut hubs[at], &mut shared, at, event, &mut Steps(None)));
            }
        }
    }
    let proposed: BTreeSet<_> = shared.registrations.keys().collect();
    let asked: BTreeSet<_> = shared.asked.iter().flat_map(BTreeMap::keys).collect();
    assert_eq!(proposed, asked, "who asks is proposed, and nobody else");
    let wishing: BTreeSet<_> = shared.wishing.iter().map(|(_, name)| *name).collect();
    let wished = wishing.into_iter().map(|name| (cluster(name), change_of(name)));
    let expected: Changes = wished
        .filter(|(cluster, change)| !shared.closed.contains(&(cluster.clone(), text(change))))
        .collect();
    assert_eq!(
        shared.keys.clone().unwrap_or_default(),
        expected,
        "what is wished and was not closed"
    );
}

#[test]
fn two_hubs_that_die_at_any_step_of_proposing_and_telling_take_back_nothing_that_is_asked_for() {
    for seed in 1..=150_u64 {
        check(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    }
}
