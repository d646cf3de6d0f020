//! Clusters that nobody can dial: each in a network of its own, with something between it and its hub.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use flotilla_tests::eventually;
use flotilla_tests::network::Relay;

use super::sites::{HUB_NAME, World, at};
use super::support::LIMIT;

/// Both ends notice after 25 s of silence; a busy machine takes longer to say so.
const DEAD_LIMIT: Duration = Duration::from_secs(75);

#[test]
fn clusters_behind_a_proxy_a_server_that_ends_tls_and_ipv6_are_kept_and_told_apart() {
    let mut world = World::start(&["amsterdam", "bogota", "colombo"]);
    let ways = world.lead_out(&[]);
    let proxy = &ways.proxy;
    world.greet("good morning");
    assert!(
        proxy.asked().contains(&"hub.elsewhere:7443 200".to_owned()),
        "{:?}",
        proxy.asked()
    );

    // The whole way is tried from the hub, and from each agent without taking its tunnel.
    for place in &world.places {
        let ping = world.ask(&["tunnel", "ping", place.name]).expect_ok();
        assert!(ping.contains("round trip min/avg/max"), "{ping}");
        let said = place.doctor(&[]).expect_ok();
        assert!(
            said.contains("ok     registration") && said.contains("ok     rights"),
            "{said}"
        );
        assert!(!said.contains("FAILED") && !said.contains("s3cret"), "{said}");
        assert!(!place.log().contains("s3cret"), "{}", place.log());
    }
    assert!(
        !world.hub().log().contains("a newer session took its place"),
        "{}",
        world.hub().log()
    );
    let described = world.ask(&["describe", "cluster", "bogota"]).expect_ok();
    assert!(
        described.contains("Connected:") && described.contains("Key:"),
        "{described}"
    );

    // What is wrong is named, and what to do.
    let wrong = format!("http://ann:wrong@{}", proxy.address());
    let denied = world.places[1].doctor(&["--proxy", &wrong]);
    assert_eq!(denied.code(), Some(1), "{denied:?}");
    assert!(
        denied.stdout.contains("FAILED proxy") && denied.stdout.contains("407"),
        "{denied:?}"
    );
    assert!(!denied.stdout.contains("wrong"), "{denied:?}");
    let elsewhere = world.places[2].doctor(&["--hub", "no.such.host.invalid:1"]);
    assert_eq!(elsewhere.code(), Some(1), "{elsewhere:?}");
    assert!(elsewhere.stdout.contains("FAILED name"), "{elsewhere:?}");

    // A hub that ends in order is followed by the next one.
    world.hub_mut().terminate(LIMIT);
    world.start_hub();
    world.greet("good evening");
}

#[test]
fn a_link_that_falls_silent_is_noticed_at_both_ends_and_a_hub_that_moved_is_found() {
    let mut world = World::start(&["dakar"]);
    let site = Arc::clone(&world.places[0].site);
    let relay = Relay::start(at(site.outside()), world.secured);
    site.set_hosts(&[(site.outside(), HUB_NAME)]);
    let url = format!("wss://{HUB_NAME}:{}", relay.address().port());
    world.start_agent(0, &url, &[], &[]);
    world.greet("good morning");

    relay.set_black(true);
    eventually(DEAD_LIMIT, "the agent takes the silent tunnel for dead", || {
        let log = world.places[0].log();
        log.contains("Lost connection to hub").then_some(()).ok_or(log)
    });
    eventually(DEAD_LIMIT, "the hub does so too, and says why", || {
        let described = world.ask(&["describe", "cluster", "dakar"]).ok()?;
        described.contains("Away since:").then_some(()).ok_or(described)
    });
    assert_eq!(world.ask(&["tunnel", "ping", "dakar"]).code(), Some(1));
    relay.set_black(false);
    world.greet("good day");

    // The hub moves to another address, and its name follows.
    let moved = Relay::start(SocketAddr::new(site.elsewhere(), relay.address().port()), world.secured);
    site.set_hosts(&[(site.elsewhere(), HUB_NAME)]);
    relay.set_black(true);
    eventually(DEAD_LIMIT, "the agent dials where the name leads now", || {
        match moved.connections() {
            0 => Err(world.places[0].log()),
            _ => Ok(()),
        }
    });
    world.greet("good evening");
}

#[test]
fn an_agent_finds_its_api_server_again_at_another_port_with_another_certificate() {
    let mut world = World::start(&["essen"]);
    let relay = Relay::start(at(world.places[0].site.outside()), world.secured);
    world.start_agent(0, &relay.address().to_string(), &[], &[]);
    world.greet("good morning");
    let before = world.places[0].cluster.url();
    world.places[0].cluster.move_apiserver();
    assert_ne!(world.places[0].cluster.url(), before);
    // Its kubeconfig says where and with which certificate, and nobody restarts the agent.
    world.greet("good day");
    let log = world.places[0].log();
    let failed = log
        .lines()
        .filter(|line| line.contains(" WARN ") || line.contains(" ERROR "));
    assert!(
        failed.count() < 60,
        "less than a line a second while it was away: {log}"
    );
}
