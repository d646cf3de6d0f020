//! A cluster's key, and a hub's, are replaced while somebody follows a log through the tunnel.

use std::fs;

use flotilla_tests::{Child, Flotilla, eventually};

use super::super::support::LIMIT;
use super::office::Office;

/// Merges the branch of keys once the cluster waits for it, and says the file after it.
#[track_caller]
fn merge(office: &Office, words: &str) -> String {
    eventually(LIMIT, "the change is proposed", || {
        let (told, status) = (office.described(), office.status());
        let is_told = told.contains(words) && told.contains("merge branch flotilla/keys");
        let is_told = is_told && status.contains("Keys: 1 change");
        is_told.then_some(()).ok_or(format!("{told}\n{status}"))
    });
    let repository = &office.repository;
    repository.git(&["fetch", "--quiet", "origin"]);
    repository.git(&["merge", "--quiet", "--ff-only", "origin/flotilla/keys"]);
    repository.push();
    repository
        .read("main", "clusters/paris.yaml")
        .expect("it is registered")
}

/// A log that somebody follows.
#[track_caller]
fn followed(office: &Office) -> Child {
    office.pod_with_a_log();
    let log = office.follow("log", &["logs", "-f", "teller", "-n", "shop"]);
    eventually(LIMIT, "the log begins", || {
        let text = log.log();
        text.contains("line 5\n").then_some(()).ok_or(text)
    });
    log
}

#[track_caller]
fn goes_on_without_a_gap(log: &Child) {
    let seen = log.log().lines().count();
    eventually(LIMIT, "the log goes on", || {
        let more = log.log().lines().count();
        (more > seen + 100).then_some(()).ok_or(format!("{more} lines"))
    });
    let text = log.log();
    // The newest line may be written in part.
    let lines: Vec<_> = text.lines().collect();
    for (number, line) in lines.iter().take(lines.len() - 1).enumerate() {
        assert_eq!(
            *line,
            format!("line {number}"),
            "nothing is missing, and nothing came twice"
        );
    }
}

/// Waits until the hub follows other keys for so many times, and the agent keeps them.
#[track_caller]
fn until_followed(office: &Office, times: usize) {
    eventually(LIMIT, "the hub follows its keys and the agent keeps them", || {
        let (log, told) = (office.hub_log(), office.described());
        let is_done = log.matches("Follows the hub's keys").count() == times
            && told.contains("the agent keeps all of this hub's");
        is_done.then_some(()).ok_or(format!("{told}\n{log}"))
    });
}

/// Lets the agent dial anew, and waits until it is in for so many times.
#[track_caller]
fn dials_anew(office: &Office, times: usize) {
    office.wake_agent();
    eventually(LIMIT, "the agent is in by the key that is shown", || {
        let text = office.agent_log();
        (text.matches("Connected to hub.").count() == times)
            .then_some(())
            .ok_or(text)
    });
}

#[test]
fn a_hub_that_runs_has_its_key_replaced_and_no_stream_drops() {
    let office = Office::open_with(&["--key", "new.key"], &[]);
    let log = followed(&office);
    let move_file = |from: &str, to: &str| fs::rename(office.path(from), office.path(to)).expect("it is there");
    eventually(LIMIT, "the agent keeps both keys", || {
        let told = office.described();
        let is_kept = told.contains("the agent keeps all of this hub's");
        is_kept.then_some(()).ok_or(told)
    });
    // The two change places: the new one is shown.
    move_file("hub.key", "old.key");
    move_file("new.key", "hub.key");
    move_file("old.key", "new.key");
    until_followed(&office, 1);
    dials_anew(&office, 2);
    // The old one gives way to one that is for the next time.
    Flotilla::run(&["hub", "key", "--key", &office.path("next.key")]).expect_ok();
    move_file("next.key", "new.key");
    until_followed(&office, 2);
    dials_anew(&office, 3);
    goes_on_without_a_gap(&log);
    // A key that no agent was told of is not shown.
    Flotilla::run(&["hub", "key", "--key", &office.path("strange.key")]).expect_ok();
    move_file("strange.key", "hub.key");
    eventually(LIMIT, "the hub says why it does not follow", || {
        let log = office.hub_log();
        let is_said = log.contains("the first key is one that agents were not told of");
        is_said.then_some(()).ok_or(log)
    });
    dials_anew(&office, 4);
}

#[test]
fn old_and_new_keys_are_valid_side_by_side_and_no_stream_drops() {
    let office = Office::open_with(&[], &["--new-key", "new.key"]);
    let log = followed(&office);
    let file = merge(&office, "is to be added");
    let message = office.repository.message("main");
    assert!(message.contains(", from 127.0.0.1, since "), "{message}");
    assert_eq!(file.matches("ed25519:").count(), 2, "both are valid: {file}");
    eventually(LIMIT, "the agent goes over to the new key", || {
        let text = office.agent_log();
        let is_over = text.contains("The hub lets the agent's new key in; dial with it at once.");
        (is_over && text.matches("Connected to hub.").count() == 2)
            .then_some(())
            .ok_or(text)
    });

    // The old key goes: until then the log is told through the tunnel that was made with it.
    eventually(LIMIT, "its removal is proposed", || {
        let told = office.described();
        told.contains("is to be taken out").then_some(()).ok_or(told)
    });
    goes_on_without_a_gap(&log);

    let file = merge(&office, "is to be taken out");
    assert_eq!(file.matches("ed25519:").count(), 1, "{file}");
    eventually(LIMIT, "the agent knows that the old key is over", || {
        let text = office.agent_log();
        text.contains("The old key counts no more").then_some(()).ok_or(text)
    });
    eventually(LIMIT, "the branch is gone", || {
        let head = office
            .repository
            .git_bare(&["rev-parse", "--verify", "--quiet", "flotilla/keys"]);
        head.ok().err().map(drop).ok_or("it is there".to_owned())
    });
    office
        .kubectl("ada", &["get", "configmap", "greeting", "-n", "shop"])
        .expect_ok();
}
