//! Clusters that nobody can dial: each in a network of its own, with something between it and its hub.

use std::fs;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use flotilla_tests::network::Relay;
use flotilla_tests::{eventually, wait};

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
        let journal = world.path(&format!("{}.journal", place.name));
        let said = place.doctor(&["--journal", &journal]).expect_ok();
        assert!(
            said.contains("ok     registration") && said.contains("ok     rights"),
            "{said}"
        );
        assert!(
            said.contains("ok     feeds") && said.contains("kinds and namespaces that the feeds hold"),
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

#[test]
fn an_agent_finds_its_api_server_again_where_its_name_leads_now() {
    let mut world = World::start(&["florence"]);
    let site = Arc::clone(&world.places[0].site);
    let relay = Relay::start(at(site.outside()), world.secured);
    // Its kubeconfig has a name, and what that means is all that changes.
    let name = "kubernetes.default.svc";
    let loopback = Ipv4Addr::LOCALHOST;
    site.set_hosts(&[(loopback.into(), name)]);
    let text = fs::read_to_string(world.places[0].cluster.kubeconfig()).unwrap();
    let by_name = world.folder.join("by-name.kubeconfig");
    let renamed = text.replace(&format!("https://{loopback}:"), &format!("https://{name}:"));
    assert_ne!(renamed, text);
    fs::write(&by_name, renamed).unwrap();
    world.places[0].kubeconfig = by_name;
    world.start_agent(0, &relay.address().to_string(), &[], &[]);
    world.greet("good morning");
    world.callers.write_kubeconfigs(&["florence"]);
    let asked = |world: &World| {
        let get = ["get", "configmap", "greeting", "-n", "shop", "-o", "name"];
        world.callers.kubectl("ada", "florence", &get).ok()
    };
    eventually(LIMIT, "people are answered", || asked(&world));

    let moved = Ipv4Addr::new(127, 0, 0, 2);
    world.places[0].cluster.move_apiserver_to(moved);
    site.set_hosts(&[(moved.into(), name)]);
    let seen = world.places[0].log().lines().count();
    world.greet("good day");
    eventually(LIMIT, "people are answered from there too", || asked(&world));
    let log = world.places[0].log();
    assert!(!log.contains("Lost connection to hub"), "its tunnel stays: {log}");
    let lines = log.lines().skip(seen);
    let failed = lines.filter(|line| line.contains(" WARN ") || line.contains(" ERROR "));
    assert!(failed.count() < 60, "less than a line a second: {log}");
}

#[test]
fn a_proxy_that_ends_takes_streams_along_and_is_found_again_without_haste() {
    let mut world = World::start(&["genoa"]);
    let mut proxy = world.lead_out_by_a_proxy(0, &[]);
    world.greet("good morning");
    world.callers.write_kubeconfigs(&["genoa"]);
    let asked = |world: &World| {
        let get = ["get", "configmap", "greeting", "-n", "shop", "-o", "name"];
        world.callers.kubectl("ada", "genoa", &get).ok()
    };
    eventually(LIMIT, "people are answered", || asked(&world));
    let watch = ["get", "configmaps", "-n", "shop", "--watch", "-o", "name"];
    let mut watch = world.callers.follow("watch", "ada", "genoa", &watch);
    eventually(LIMIT, "the watch begins", || {
        let text = watch.log();
        text.contains("configmap/greeting").then_some(()).ok_or(text)
    });

    proxy.stop();
    watch.wait(LIMIT);
    eventually(LIMIT, "the hub says that it is away", || {
        let described = world.ask(&["describe", "cluster", "genoa"]).ok()?;
        described.contains("Away since:").then_some(()).ok_or(described)
    });
    let failures = |world: &World| world.places[0].log().matches("Could not connect to hub").count();
    eventually(LIMIT, "the agent dials, and nobody is there", || {
        match failures(&world) {
            0 => Err(world.places[0].log()),
            _ => Ok(()),
        }
    });

    // The proxy is there again, and what is behind it not yet.
    proxy.set_broken(true);
    proxy.start_again();
    let refused = |asked: &[String]| asked.iter().filter(|asked| asked.ends_with(" 502")).count();
    eventually(LIMIT, "the agent asks the proxy", || match refused(&proxy.asked()) {
        0 => Err(world.places[0].log()),
        _ => Ok(()),
    });
    let before = refused(&proxy.asked());
    wait::throughout(Duration::from_secs(5), "it asks less than once a second", || {
        match refused(&proxy.asked()) - before {
            0..=4 => Ok(()),
            more => Err(format!("{more} times")),
        }
    });
    proxy.set_broken(false);
    world.greet("good day");
    eventually(LIMIT, "people are answered again", || asked(&world));
    assert!(!world.places[0].log().contains("s3cret"), "{}", world.places[0].log());
}
