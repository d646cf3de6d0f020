//! A cluster's key is replaced while somebody follows a log through it.

use flotilla_tests::eventually;

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

#[test]
fn old_and_new_keys_are_valid_side_by_side_and_no_stream_drops() {
    let office = Office::open_with(&[], &["--new-key", "new.key"]);
    office.pod_with_a_log();
    let log = office.follow("log", &["logs", "-f", "teller", "-n", "shop"]);
    eventually(LIMIT, "the log begins", || {
        let text = log.log();
        text.contains("line 5\n").then_some(()).ok_or(text)
    });

    let file = merge(&office, "is to be added");
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
