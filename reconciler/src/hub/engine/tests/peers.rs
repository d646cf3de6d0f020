//! Clusters that are connected to another hub.

use super::*;
use render::schedule::Presence;

const PEER: &str = "wss://b";

fn told(world: &mut World, clusters: &[(&str, i64)], reports: Vec<Report>) {
    let clusters = clusters.iter().map(|(name, since)| (cluster(name), *since)).collect();
    world.hear(Event::PeerTold {
        peer: PEER.to_owned(),
        clusters,
        reports,
        joining: None,
        wishes: Vec::new(),
    });
}

fn presence(world: &World, name: &str) -> Option<Presence> {
    world.state.presence().get(&cluster(name)).copied()
}

/// A hub with a peer, after something was released to a and b.
fn with_peer() -> World {
    let world = settled();
    let mut world = world.restarted();
    world.state = State::default().with_peers([PEER.to_owned()]);
    world.now = 100;
    world.look();
    world.see('1', Relation::Follows);
    world
}

#[test]
fn nobody_is_silent_before_the_other_hub_has_told() {
    let mut world = with_peer();
    world.now = 10_000;
    assert_eq!((presence(&world, "a"), presence(&world, "b")), (None, None));
    told(&mut world, &[("a", 50)], Vec::new());
    assert_eq!(presence(&world, "a"), Some(Presence::HeardSince(50)));
    assert_eq!(
        presence(&world, "b"),
        Some(Presence::SilentSince(100)),
        "since this hub began"
    );
}

#[test]
fn a_hub_that_is_never_heard_of_is_waited_for_and_then_not() {
    let mut world = with_peer();
    world.hear(Event::PeerLost { peer: PEER.to_owned() });
    assert_eq!(presence(&world, "a"), Some(Presence::SilentSince(100)));
}

#[test]
fn a_cluster_that_left_the_other_hub_or_whose_hub_is_lost_is_silent_from_then_on() {
    let mut world = with_peer();
    told(&mut world, &[("a", 50), ("b", 60)], Vec::new());
    world.now = 500;
    told(&mut world, &[("b", 60)], Vec::new());
    assert_eq!(presence(&world, "a"), Some(Presence::SilentSince(500)));
    world.now = 600;
    world.hear(Event::Connected {
        cluster: cluster("b"),
        epoch: 1,
    });
    world.hear(Event::PeerLost { peer: PEER.to_owned() });
    assert_eq!(
        presence(&world, "b"),
        Some(Presence::HeardSince(600)),
        "it is connected here by now"
    );
    assert!(world.state.is_heard(&cluster("b")) && !world.state.is_heard(&cluster("a")));
}

#[test]
fn what_a_cluster_says_elsewhere_counts_until_it_says_it_here() {
    let mut world = with_peer();
    let said = |trouble: &str| Report {
        trouble: trouble.to_owned(),
        ..two_hubs::report(cluster("a"), None)
    };
    told(&mut world, &[("a", 50)], vec![said("elsewhere")]);
    let trouble = |world: &World| {
        let report = world.state.clusters[&cluster("a")].report.clone();
        report.expect("it has reported").trouble.clone()
    };
    assert_eq!(trouble(&world), "elsewhere");
    world.hear(Event::Connected {
        cluster: cluster("a"),
        epoch: 1,
    });
    world.hear(Event::Reported {
        report: Box::new(said("here")),
    });
    told(&mut world, &[("a", 50)], vec![said("elsewhere")]);
    assert_eq!(trouble(&world), "here");
}
