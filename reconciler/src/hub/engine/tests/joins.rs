//! When branches are proposed for agents that ask for registration.

use tunnel::PublicKey;

use super::*;
use crate::hub::publish::{Elsewhere, OtherHubs, Registrations};

fn wanted(names: &[&str]) -> BTreeMap<ClusterName, PublicKey> {
    let key = PublicKey::from_bytes([7; 32]);
    names.iter().map(|name| (cluster(name), key)).collect()
}

/// What an event has written. Nothing is done, so that each write waits for its outcome.
fn write(world: &mut World, event: Event) -> Option<BTreeMap<ClusterName, PublicKey>> {
    let effects = step(&mut world.state, event, 1);
    effects.into_iter().find_map(|effect| match effect {
        Effect::Write(Write::Registrations { wanted, .. }) => Some(wanted),
        _ => None,
    })
}

/// These agents ask.
fn ask(names: &[&str]) -> Event {
    Event::Joining { wanted: wanted(names) }
}

/// Branches were written for these.
fn written(names: &[&str]) -> Event {
    let branches = names
        .iter()
        .map(|name| (cluster(name), format!("flotilla/register-{name}")));
    let registrations = Registrations {
        branches: branches.collect(),
        ..Registrations::default()
    };
    Event::RegistrationsProposed {
        wanted: wanted(names),
        elsewhere: Elsewhere::default(),
        registrations,
    }
}

#[test]
fn who_asks_is_proposed_once_and_who_is_registered_never() {
    let mut world = settled();
    world.state.joins.is_proposing = true;
    assert_eq!(
        write(&mut world, ask(&["new", "a"])),
        Some(wanted(&["new"])),
        "a is registered"
    );
    assert_eq!(
        write(&mut world, ask(&["new", "newer", "a"])),
        None,
        "one write at a time"
    );
    assert_eq!(
        write(&mut world, written(&["new"])),
        Some(wanted(&["new", "newer"])),
        "then the next one"
    );
    assert!(world.state.joins.branch(&cluster("new")).is_some());
    assert_eq!(write(&mut world, written(&["new", "newer"])), None);
    for _ in 0..50 {
        assert_eq!(write(&mut world, ask(&["new", "newer"])), None, "nothing is new");
    }
    assert_eq!(
        write(&mut world, ask(&[])),
        Some(wanted(&[])),
        "what nobody asks for goes"
    );
}

#[test]
fn a_host_that_takes_no_branch_for_agents_keeps_no_commit_from_the_clusters() {
    let mut world = settled();
    world.state.joins.is_proposing = true;
    // The world refuses whatever is written for agents.
    world.hear(ask(&["new"]));
    world.push('2', &["a", "b"], "two");
    world.look();
    assert_eq!(world.state.accepted, Some(revision('2')));
    assert_eq!(world.units(), units('2', "two", &["a", "b"]));
    assert!(world.state.joins.branch(&cluster("new")).is_none());
}

#[test]
fn a_hub_that_may_not_write_to_source_shows_who_asks_and_writes_nothing() {
    let mut world = settled();
    assert_eq!(write(&mut world, ask(&["new"])), None);
    assert_eq!(world.state.joining(), wanted(&["new"]));
}

#[test]
fn what_another_hub_is_asked_for_is_known_while_it_is_away_and_has_branches_looked_at_again() {
    let mut world = settled();
    world.state = world.state.with_peers(["b".to_owned()]);
    world.state.joins.is_proposing = true;
    let elsewhere = |world: &mut World, event: Event| {
        let effects = step(&mut world.state, event, 1);
        let written = effects.into_iter().find_map(|effect| match effect {
            Effect::Write(Write::Registrations { elsewhere, wanted, .. }) => Some((elsewhere, wanted)),
            _ => None,
        });
        let (elsewhere, asked) = written?;
        let done = Event::RegistrationsProposed {
            wanted: asked,
            elsewhere: elsewhere.clone(),
            registrations: Registrations::default(),
        };
        assert!(step(&mut world.state, done, 1).is_empty(), "once");
        Some((
            elsewhere.hubs,
            elsewhere.asked.keys().map(ToString::to_string).collect::<Vec<_>>(),
        ))
    };
    let told = |joining: Option<&[&str]>| Event::PeerTold {
        peer: "b".to_owned(),
        clusters: BTreeMap::new(),
        reports: Vec::new(),
        joining: joining.map(wanted),
        wishes: Vec::new(),
    };
    let lost = || Event::PeerLost { peer: "b".to_owned() };
    let rome = || vec!["rome".to_owned()];
    assert_eq!(
        elsewhere(&mut world, ask(&["new"])),
        Some((OtherHubs::Silent, Vec::new()))
    );
    assert_eq!(
        elsewhere(&mut world, told(None)),
        None,
        "an older hub says nothing of it"
    );
    assert_eq!(
        elsewhere(&mut world, told(Some(&["rome"]))),
        Some((OtherHubs::Told, rome()))
    );
    assert_eq!(elsewhere(&mut world, told(Some(&["rome"]))), None);
    assert_eq!(
        elsewhere(&mut world, lost()),
        None,
        "that it is away takes nothing back"
    );
    assert_eq!(
        elsewhere(&mut world, ask(&["newer"])),
        Some((OtherHubs::Silent, rome()))
    );
    assert_eq!(
        elsewhere(&mut world, told(Some(&[]))),
        Some((OtherHubs::Told, Vec::new()))
    );
}
