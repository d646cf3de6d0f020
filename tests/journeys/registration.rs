//! Clusters come, go, and are away for a while.

use flotilla_tests::{eventually, pool};

use super::support::*;

#[test]
fn a_cluster_is_registered_and_removed_by_commit() {
    let mut fleet = Fleet::start_in_use();
    let file = fleet.join("colombo");
    fleet.repository.remove("clusters/colombo.yaml");
    fleet.push(
        "Let Colombo go",
        &[("feeds/web/greeting.yaml", &config_map("shop", "greeting", "hi"))],
    );
    fleet.until_text(&["amsterdam", "bogota"], GREETING, "hi");
    let agent = fleet.agent("colombo");
    eventually(LIMIT, "the agent is told that it is known no more", || {
        let log = agent.log();
        log.to_lowercase().contains("revoked").then_some(()).ok_or(log)
    });
    // Further pushes do not reach it, and what it had stays.
    fleet.push(
        "Change the rules",
        &[("feeds/office/rules.yaml", &config_map("office", "rules", "one"))],
    );
    fleet.until_text(&["amsterdam", "bogota"], RULES, "one");
    for (config_map, text) in [(GREETING, "hello"), (FAREWELL, "goodbye"), (RULES, "none")] {
        assert_eq!(fleet.text("colombo", config_map).as_deref(), Some(text));
    }
    let commit = fleet.push("Have Colombo back", &[("clusters/colombo.yaml", &file)]);
    fleet.until_released(&commit);
    // A refused agent dials once a minute; whoever cannot wait restarts it.
    fleet.start_agent("colombo");
    fleet.until_text(&["colombo"], GREETING, "hi");
    fleet.until_text(&["colombo"], RULES, "one");
    fleet.push(
        "Say more",
        &[("feeds/web/greeting.yaml", &config_map("shop", "greeting", "welcome"))],
    );
    fleet.until_text(&pool::NAMES, GREETING, "welcome");
}

#[test]
fn a_cluster_with_another_key_than_its_file_is_told_nothing() {
    let mut fleet = Fleet::prepare();
    // The file names a key that the agent does not have.
    let stranger = fleet.join("stranger").replace("stranger", "colombo");
    fleet.push(
        "Greet",
        &[
            ("clusters/colombo.yaml", &stranger),
            ("subscriptions/shop/web.yaml", &subscription("shop", "web")),
            ("feeds/web/greeting.yaml", &config_map("default", "greeting", "hello")),
        ],
    );
    // The one that is never heard is not waited for.
    fleet.start_hub(&["--recovery-grace-seconds", "1"]);
    pool::NAMES.iter().for_each(|name| fleet.start_agent(name));
    fleet.until_text(&["amsterdam", "bogota"], ("default", "greeting"), "hello");
    fleet.until_hub_logged("Refused an agent.");
    assert_eq!(fleet.text("colombo", ("default", "greeting")), None);
}

#[test]
fn a_key_that_a_commit_takes_away_ends_its_tunnel() {
    let fleet = Fleet::start_in_use();
    let stranger = fleet.join("stranger").replace("stranger", "colombo");
    fleet.push(
        "Take the key away",
        &[
            ("clusters/colombo.yaml", &stranger),
            ("feeds/web/greeting.yaml", &config_map("shop", "greeting", "hi")),
        ],
    );
    fleet.until_text(&["amsterdam", "bogota"], GREETING, "hi");
    fleet.until_hub_logged("names this key no more");
    fleet.push(
        "Say more",
        &[("feeds/web/greeting.yaml", &config_map("shop", "greeting", "welcome"))],
    );
    fleet.until_text(&["amsterdam", "bogota"], GREETING, "welcome");
    let left = fleet.text("colombo", GREETING);
    assert_ne!(left.as_deref(), Some("welcome"), "who lost its key is told nothing");
    assert!(left.is_some(), "and keeps what it has");
}

/// An object whose generation counts how often it was changed.
const DOOR: (&str, &str) = ("shop", "networkpolicy/door");

fn door(text: &str) -> String {
    format!(
        "apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {{namespace: shop, name: door}}
spec: {{podSelector: {{matchLabels: {{text: {text}}}}}}}
"
    )
}

/// Pushes another door and waits until the clusters that are up have it.
fn push_door(fleet: &Fleet, text: &str, up: &[&str]) {
    fleet.push("Change the door", &[("feeds/web/door.yaml", &door(text))]);
    for cluster in up {
        fleet.until_field(cluster, DOOR, "/spec/podSelector/matchLabels/text", text);
    }
}

/// A fleet whose cluster `bogota` is missed by three pushes between `down` and `up`.
#[track_caller]
fn check_only_the_newest(down: impl FnOnce(&mut Fleet), up: impl FnOnce(&mut Fleet)) {
    let mut fleet = Fleet::start_in_use();
    push_door(&fleet, "zero", &pool::NAMES);
    down(&mut fleet);
    for text in ["one", "two", "three"] {
        push_door(&fleet, text, &["amsterdam", "colombo"]);
    }
    up(&mut fleet);
    fleet.until_field("bogota", DOOR, "/spec/podSelector/matchLabels/text", "three");
    let generation = |cluster| fleet.cluster(cluster).get(DOOR.0, DOOR.1).unwrap()["metadata"]["generation"].clone();
    assert_eq!(generation("amsterdam"), 4, "a cluster that was up saw every push");
    assert_eq!(generation("bogota"), 2, "what lay between was never applied");
}

#[test]
fn a_cluster_whose_agent_was_down_gets_only_the_newest() {
    check_only_the_newest(
        |fleet| {
            fleet.kill_agent("bogota");
        },
        |fleet| {
            let door = fleet.cluster("bogota").get(DOOR.0, DOOR.1).unwrap();
            assert_eq!(door["metadata"]["generation"], 1, "nobody was there to change it");
            fleet.start_agent("bogota");
        },
    );
}

#[test]
fn a_cluster_whose_api_server_was_down_gets_only_the_newest() {
    check_only_the_newest(
        |fleet| fleet.cluster_mut("bogota").stop_apiserver(),
        |fleet| fleet.cluster_mut("bogota").start_apiserver(),
    );
}
