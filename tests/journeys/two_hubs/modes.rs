//! A hub that lags behind in Git, and what its agents go by.

use std::fs;
use std::os::unix::fs::symlink;

use flotilla_tests::{Flotilla, eventually};
use serde_json::Value;

use super::super::support::LIMIT;
use super::one_agent::{ACCESS, Person, serve_people, until_logged};
use super::pair::Two;

const CLUSTER: &str = "amsterdam";

fn set_mode(two: &Two, mode: &str) -> String {
    let path = format!("clusters/{CLUSTER}.yaml");
    let file = fs::read_to_string(two.fleet.repository.work().join(&path)).expect("it is registered");
    let before = ["Dual", "Pull"]
        .into_iter()
        .find(|mode| file.contains(&format!("syncMode: {mode}")));
    let before = before.expect("its file names a mode");
    let file = file.replace(&format!("syncMode: {before}"), &format!("syncMode: {mode}"));
    two.fleet.push(&format!("Keep it by {mode}"), &[(&path, &file)])
}

/// What a hub says of whether the cluster goes by its mode; nothing while it does.
fn other_mode(api: &str) -> Result<String, String> {
    let text = Flotilla::run(&["get", "managedclusters", CLUSTER, "-o", "json", "--server", api]).ok()?;
    let shown: Value = serde_json::from_str(&text).map_err(|error| error.to_string())?;
    let conditions = shown["status"]["conditions"].as_array().cloned().unwrap_or_default();
    let found = conditions.iter().find(|condition| condition["type"] == "SyncModeTaken");
    Ok(found.map_or(String::new(), |found| found["message"].to_string()))
}

#[test]
fn a_hub_whose_fetch_is_cut_off_takes_no_mode_back_and_reaches_nothing_by_an_older_one() {
    let mut two = Two::prepare();
    let people = serve_people(&mut two);
    // The second hub's way to the repository is one that can be cut.
    let way = two.fleet.folder().join("way.git");
    symlink(two.fleet.repository.bare(), &way).unwrap();
    two.second_url = Some(format!("file://{}", way.display()));
    two.fleet
        .repository
        .push_files("Let ada read", &[("access/ops.yaml", ACCESS)]);
    two.start_first();
    two.start_second();
    let (hub, key) = (two.second.listen.clone(), two.second.key.clone());
    let both = ["--hub", &hub, "--hub-key", &key];
    two.fleet.start_agent_with(CLUSTER, &both);
    two.fleet.start_agent("bogota");
    two.fleet.start_agent("colombo");
    two.fleet.open_for_use();
    let ada = Person::new(&two, "ada", &people);
    let reads = |hub: &'static str| {
        eventually(LIMIT, &format!("ada reads by the {hub} hub"), || {
            let said = ada.greeting(hub, CLUSTER).ok()?;
            (said == "hello").then_some(()).ok_or(said)
        });
    };
    reads("first");
    reads("second");

    fs::remove_file(&way).unwrap();
    let commit = set_mode(&two, "Pull");
    let [_, second] = two.apis();
    eventually(LIMIT, "the second hub says which commit the cluster goes by", || {
        let said = other_mode(&second)?;
        let is_told = said.contains("it goes by Pull") && said.contains(&commit);
        is_told.then_some(()).ok_or(said)
    });
    // Whoever dials a hub anew is told what it holds not yet; an agent holds its mode over a restart.
    two.fleet.start_agent_with(CLUSTER, &both);
    until_logged(&mut two, 1, &["Agent connected.", "cluster=amsterdam"], 2);
    eventually(LIMIT, "the restarted agent has reported", || {
        let said = other_mode(&second)?;
        said.contains("it goes by Pull").then_some(()).ok_or(said)
    });
    let asked = ada.greeting("second", CLUSTER);
    let refused = asked.ok().expect_err("nothing is reached");
    assert!(refused.contains("sync mode Pull"), "{refused}");
    assert!(!other_mode(&second).unwrap().is_empty(), "and it is still so");

    // With its way back the hub agrees, and then either hub may say the next mode.
    symlink(two.fleet.repository.bare(), &way).unwrap();
    eventually(LIMIT, "the second hub has seen the commit", || {
        let said = other_mode(&second)?;
        said.is_empty().then_some(()).ok_or(said)
    });
    set_mode(&two, "Dual");
    reads("first");
    reads("second");
}
