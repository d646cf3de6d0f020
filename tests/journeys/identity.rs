//! Who is let in: copies, strangers, renamed and denied clusters, each as people see it.

use std::fs;
use std::time::Duration;

use flotilla_tests::{Flotilla, eventually, wait};
use serde_json::Value;

use super::support::*;

/// An agent that is none of the fleet's own: its name, its key's file, and whose API server it has.
fn agent(fleet: &Fleet, cluster: &str, key: &str, place: &str) -> Flotilla {
    let [journal, key] = ["journal", "key"].map(|ending| match ending {
        "journal" => fleet.folder().join(format!("{cluster}-{place}-2.journal")),
        _ => fleet.folder().join(key),
    });
    let kubeconfig = fleet.cluster(place).kubeconfig();
    let hub_key = fleet.hub_secret_key().public().to_string();
    let [journal, key, kubeconfig] = [journal, key, kubeconfig].map(|path| path.display().to_string());
    Flotilla::agent(&[
        "--cluster",
        cluster,
        "--hub",
        &fleet.hub_address(),
        "--hub-key",
        &hub_key,
        "--key",
        &key,
        "--journal",
        &journal,
        "--kubeconfig",
        &kubeconfig,
    ])
}

/// `flotilla get managedclusters NAME -o json`.
fn shown(fleet: &Fleet, name: &str) -> Result<Value, String> {
    let arguments = [
        "get",
        "managedclusters",
        name,
        "-n",
        name,
        "--server",
        &fleet.api(),
        "-o",
        "json",
    ];
    let text = Flotilla::run(&arguments).ok()?;
    serde_json::from_str(&text).map_err(|error| error.to_string())
}

/// The condition that others ask to be this cluster.
fn callers(fleet: &Fleet, name: &str) -> Result<(String, String), String> {
    let cluster = shown(fleet, name)?;
    let conditions = cluster["status"]["conditions"].as_array().cloned().unwrap_or_default();
    let found = conditions.iter().find(|condition| condition["type"] == "OtherCallers");
    let word = |condition: &Value, field: &str| condition[field].as_str().unwrap_or_default().to_owned();
    found
        .map(|condition| (word(condition, "reason"), word(condition, "message")))
        .ok_or_else(|| cluster.to_string())
}

fn status(fleet: &Fleet) -> String {
    Flotilla::run(&["status", "--server", &fleet.api()]).stdout
}

#[track_caller]
fn until_logged(agent: &Flotilla, limit: Duration, words: &str) {
    eventually(limit, &format!("the agent logs {words:?}"), || {
        let log = agent.log();
        log.contains(words).then_some(()).ok_or(log)
    });
}

#[test]
fn a_copied_agent_is_called_a_duplicate_and_one_of_the_two_stays() {
    let mut fleet = Fleet::start_in_use();
    // A machine that was cloned with its cluster: the same name and key, and an API server of its own.
    fleet.kill_agent("bogota");
    let copy = agent(&fleet, "amsterdam", "amsterdam.key", "bogota");
    until_logged(&copy, LIMIT, "Connected to hub.");
    // It waits a minute before it dials again; nobody has to wait with it.
    until_logged(fleet.agent("amsterdam"), LIMIT, "Put off the next dial.");
    // While the copy waits for the Lease of the agent that was killed, whoever comes back takes its place.
    until_logged(&copy, LIMIT, "Applied delivery.");
    wait::throughout(Duration::from_secs(2), "the copy keeps its tunnel", || {
        let log = copy.log();
        (!log.contains("Put off the next dial.")).then_some(()).ok_or(log)
    });
    fleet.agent("amsterdam").signal("HUP");
    until_logged(fleet.agent("amsterdam"), LIMIT, "duplicate agent");
    let (reason, message) = eventually(LIMIT, "the duplicate is shown", || callers(&fleet, "amsterdam"));
    assert_eq!(reason, "DuplicateAgent", "{message}");
    let ready = Flotilla::run(&["get", "managedclusters", "-n", "amsterdam", "--server", &fleet.api()]).expect_ok();
    assert!(ready.contains("DuplicateAgent"), "{ready}");
    let said = status(&fleet);
    assert!(
        said.contains("Knocking: 1 caller") && said.contains("second agent"),
        "{said}"
    );
    // The one that came last keeps its tunnel, and nothing goes to and fro.
    let log = copy.log();
    assert_eq!(log.matches("Connected to hub.").count(), 1, "{log}");
    // What was killed and started again takes its place at once.
    drop(copy);
    fleet.start_agent("amsterdam");
    fleet.push(
        "Greet anew",
        &[("feeds/web/greeting.yaml", &config_map("shop", "greeting", "hi"))],
    );
    fleet.until_text(&["amsterdam"], GREETING, "hi");
}

#[test]
fn a_denied_cluster_is_out_at_once_while_git_is_away_and_in_again_when_it_is_struck_off() {
    let mut fleet = Fleet::prepare();
    let deny = fleet.folder().join("deny");
    fs::write(&deny, "# nobody yet\n").unwrap();
    fleet.start_hub(&["--deny-file", &deny.display().to_string()]);
    for name in ["amsterdam", "bogota"] {
        fleet.start_agent(name);
        until_logged(fleet.agent(name), LIMIT, "Connected to hub.");
    }
    let (here, away) = (fleet.repository.bare().to_owned(), fleet.folder().join("away.git"));
    fs::rename(&here, &away).unwrap();
    let key = fs::read_to_string(fleet.repository.work().join("clusters/bogota.yaml")).unwrap();
    let key = key.lines().find_map(|line| line.trim().strip_prefix("- ")).unwrap();
    fs::write(&deny, format!("amsterdam # by its name\n{key} # by its key\n")).unwrap();
    for name in ["amsterdam", "bogota"] {
        until_logged(fleet.agent(name), Duration::from_secs(15), "revoked");
    }
    fleet.until_hub_logged("the hub's deny list has this cluster or its key");
    // A list that cannot be read leaves what was read.
    fs::write(&deny, "amsterdam bogota\n").unwrap();
    fleet.until_hub_logged("line 1 of the deny list");
    fleet.start_agent("amsterdam");
    until_logged(
        fleet.agent("amsterdam"),
        LIMIT,
        "does not know this cluster with this key",
    );
    let (reason, _) = eventually(LIMIT, "it is shown as denied", || callers(&fleet, "amsterdam"));
    assert_eq!(reason, "Denied");
    fs::write(&deny, "").unwrap();
    fs::rename(&away, &here).unwrap();
    eventually(LIMIT, "the hub took over both lists", || {
        let log = fleet.logs();
        let count = log.matches("Took over the deny list.").count();
        (count == 2).then_some(()).ok_or(log)
    });
    fleet.start_agent("amsterdam");
    until_logged(fleet.agent("amsterdam"), LIMIT, "Connected to hub.");
    let missing = fleet.folder().join("nothing").display().to_string();
    let key = fleet.folder().join("refused.key").display().to_string();
    let refused = Flotilla::run(&[
        "hub",
        "--key",
        &key,
        "--repository",
        &here.display().to_string(),
        "--deny-file",
        &missing,
    ]);
    assert!(
        refused.ok().is_err(),
        "a list that is named and not there lets nobody in"
    );
}

#[test]
fn each_caller_that_is_not_let_in_is_told_apart() {
    let mut fleet = Fleet::prepare();
    fleet.start_hub(&[]);
    fleet.join("stranger");
    // Nobody registered it.
    let stranger = agent(&fleet, "stranger", "stranger.key", "amsterdam");
    until_logged(&stranger, LIMIT, "The hub does not know this cluster with this key");
    // It was installed anew, with a new key.
    let anew = agent(&fleet, "amsterdam", "stranger.key", "amsterdam");
    until_logged(&anew, LIMIT, "The hub does not know this cluster with this key");
    // Its file bears another name by now.
    let renamed = agent(&fleet, "bogota-old", "bogota.key", "bogota");
    until_logged(&renamed, LIMIT, "this key is registered as cluster bogota");
    let said = eventually(LIMIT, "all are listed", || {
        let said = status(&fleet);
        said.contains("Knocking: 3 callers").then_some(said.clone()).ok_or(said)
    });
    for words in [
        "asks to be cluster stranger, which has no file",
        "asks to be cluster amsterdam, whose file names others",
        "that key is cluster bogota's",
    ] {
        assert!(said.contains(words), "{words}: {said}");
    }
    let reasons = ["amsterdam", "bogota"].map(|name| callers(&fleet, name).map(|(reason, _)| reason));
    assert_eq!(reasons, [Ok("OtherKey".to_owned()), Ok("RegisteredAs".to_owned())]);
    // The words name a public key and nothing that is secret.
    assert!(!said.contains("PRIVATE"), "{said}");
}

/// An agent of a cluster that nobody registered, with a token.
fn bootstrapping(fleet: &Fleet, token: &str) -> Flotilla {
    fleet.join("stranger");
    let path = |name: &str| fleet.folder().join(name).display().to_string();
    let kubeconfig = fleet.cluster("colombo").kubeconfig().display().to_string();
    Flotilla::agent(&[
        "--cluster",
        "stranger",
        "--hub",
        &fleet.hub_address(),
        "--hub-key",
        &fleet.hub_secret_key().public().to_string(),
        "--key",
        &path("stranger.key"),
        "--journal",
        &path("stranger.journal"),
        "--kubeconfig",
        &kubeconfig,
        "--bootstrap-token",
        token,
    ])
}

fn token(fleet: &Fleet, cluster: &str) -> String {
    let tokens = fleet.folder().join("tokens").display().to_string();
    let create = ["hub", "token", "create", "--cluster", cluster, "--tokens", &tokens];
    Flotilla::run(&create).expect_ok().trim().to_owned()
}

#[test]
fn an_agent_with_a_token_is_proposed_and_let_in_once_a_person_merged_it() {
    let mut fleet = Fleet::prepare();
    let tokens = fleet.folder().join("tokens").display().to_string();
    fleet.start_hub(&["--tokens", &tokens]);
    let token = token(&fleet, "stranger");
    let agent = bootstrapping(&fleet, &token);
    until_logged(&agent, LIMIT, "proposed as branch flotilla/register-stranger; merge it");
    let branch = "flotilla/register-stranger";
    let file = eventually(LIMIT, "the file is proposed", || {
        let file = fleet.repository.read(branch, "clusters/stranger.yaml");
        file.ok_or_else(|| "no branch".to_owned())
    });
    assert!(file.contains("name: stranger") && file.contains("ed25519:"), "{file}");
    eventually(LIMIT, "status says what to merge", || {
        let said = status(&fleet);
        said.contains("merge branch flotilla/register-stranger")
            .then_some(())
            .ok_or(said)
    });
    drop(agent);
    // The hub restarts, and the agent asks again: it is the same branch, and the token is still its own.
    let before = fleet.repository.head(branch);
    fleet.start_hub(&["--tokens", &tokens]);
    let agent = bootstrapping(&fleet, &token);
    until_logged(&agent, LIMIT, "proposed as branch flotilla/register-stranger; merge it");
    assert_eq!(fleet.repository.head(branch), before);
    let log = agent.log();
    assert!(!log.contains("its bootstrap token is unknown"), "{log}");
    drop(agent);
    fleet
        .repository
        .git(&["pull", "--quiet", "--no-edit", "origin", branch]);
    fleet.repository.push();
    eventually(LIMIT, "the branch is gone once it was merged", || {
        match fleet.repository.head(branch) {
            None => Ok(()),
            Some(head) => Err(head),
        }
    });
    let agent = bootstrapping(&fleet, &token);
    until_logged(&agent, LIMIT, "Connected to hub.");
    let logs = format!("{}{}", fleet.logs(), agent.log());
    assert!(!logs.contains(&token), "the token is in no log");
}

#[test]
fn a_hub_that_may_not_write_shows_the_file_to_push() {
    let mut fleet = Fleet::prepare();
    let [tokens, state] = ["tokens", "state.git"].map(|name| fleet.folder().join(name).display().to_string());
    fleet.start_hub(&["--tokens", &tokens, "--state-repository", &state]);
    let agent = bootstrapping(&fleet, &token(&fleet, "stranger"));
    until_logged(&agent, LIMIT, "the hub may not write to the repository");
    let said = eventually(LIMIT, "status shows the file", || {
        let said = status(&fleet);
        said.contains("push this as clusters/stranger.yaml")
            .then_some(said.clone())
            .ok_or(said)
    });
    assert!(
        said.contains("kind: ManagedCluster") && said.contains("ed25519:"),
        "{said}"
    );
    assert_eq!(fleet.repository.head("flotilla/register-stranger"), None);
    drop(agent);
    // A token of another cluster, or none that was made, gives nothing.
    for other in [token(&fleet, "elsewhere"), "flotilla-join-guess".to_owned()] {
        let agent = bootstrapping(&fleet, &other);
        until_logged(&agent, LIMIT, "its bootstrap token is unknown");
    }
}
