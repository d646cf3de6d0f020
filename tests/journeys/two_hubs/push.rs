//! Clusters that hubs apply to through their agents' tunnels: with a tunnel at both hubs, or at one alone.

use std::fs;

use flotilla_tests::{eventually, pool};

use super::super::support::{GREETING, LIMIT, config_map};
use super::pair::Two;

const APPLIES: &str = "Applies through the tunnel.";

/// Whether a hub has said that it applies to a cluster.
fn applies(log: &str, cluster: &str) -> bool {
    let words = format!("cluster={cluster}");
    log.lines().any(|line| line.contains(APPLIES) && line.contains(&words))
}

fn greet(two: &Two, clusters: &[&str], text: &str) {
    let file = config_map(GREETING.0, GREETING.1, text);
    two.fleet
        .push(&format!("Say {text}"), &[("feeds/web/greeting.yaml", &file)]);
    two.fleet.until_text(clusters, GREETING, text);
}

#[test]
fn in_mode_push_the_hub_with_the_tunnel_applies_and_the_one_that_remains_goes_on() {
    let mut two = Two::prepare();
    two.start_first();
    two.start_second();
    let (hub, key) = (two.second.listen.clone(), two.second.key.clone());
    let lends = ["--allow", "read", "--allow", "push"];
    let both = [&["--hub", &hub, "--hub-key", &key][..], &lends].concat();
    two.fleet.start_agent_with("amsterdam", &both);
    two.fleet.start_agent_at("colombo", (&hub, &key), &lends);
    two.fleet.start_agent("bogota");
    two.fleet.open_for_use();
    for cluster in ["amsterdam", "colombo"] {
        let path = format!("clusters/{cluster}.yaml");
        let file = fs::read_to_string(two.fleet.repository.work().join(&path)).expect("it is registered");
        let file = file.replace("syncMode: Dual", "syncMode: Push");
        two.fleet.push(&format!("Push to {cluster}"), &[(&path, &file)]);
    }
    eventually(LIMIT, "the second hub applies to colombo", || {
        let [_, second] = two.logs();
        applies(&second, "colombo").then_some(()).ok_or(second)
    });
    eventually(LIMIT, "both hubs are ready to apply to amsterdam", || {
        let logs = two.logs();
        let are_ready = logs.iter().all(|log| applies(log, "amsterdam"));
        are_ready.then_some(()).ok_or(logs.concat())
    });
    greet(&two, &pool::NAMES, "by two hubs");
    let [first, _] = two.logs();
    assert!(!applies(&first, "colombo"), "without a tunnel a hub waits: {first}");

    // Whoever of the two had the Lease of amsterdam, the one that remains goes on; bogota has no hub meanwhile.
    two.fleet.kill_hub();
    greet(&two, &["amsterdam", "colombo"], "by the one that remains");
    two.start_first();
    greet(&two, &pool::NAMES, "by two hubs again");
    let logs = two.logs().concat();
    for alarm in ["Envelope was refused", "Refused envelope", "put back"] {
        assert!(!logs.contains(alarm), "{alarm}\n{logs}");
    }
}
