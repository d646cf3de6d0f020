//! Who applies to a cluster, and what the hub may reach there: changed by commits while all goes on.

use std::fs;

use flotilla_tests::{Flotilla, eventually, pool};
use serde_json::Value;

use super::support::*;

const CLUSTER: &str = "bogota";

/// Says in Git which mode a cluster has.
fn set(fleet: &Fleet, cluster: &str, mode: &str) {
    let path = format!("clusters/{cluster}.yaml");
    let file = fs::read_to_string(fleet.repository.work().join(&path)).expect("the cluster is registered");
    let before = ["Dual", "Pull", "Push"]
        .into_iter()
        .find(|mode| file.contains(&format!("syncMode: {mode}")))
        .expect("its file names a mode");
    let file = file.replace(&format!("syncMode: {before}"), &format!("syncMode: {mode}"));
    fleet.push(&format!("Keep {cluster} by {mode}"), &[(&path, &file)]);
}

/// Who holds the applier's Lease, and how often it changed hands.
fn lease(fleet: &Fleet) -> (String, i64) {
    let lease = fleet.cluster(CLUSTER).get("flotilla-system", "lease/flotilla-applier");
    let lease = lease.expect("whoever applies made it");
    let holder = lease["spec"]["holderIdentity"].as_str().unwrap_or_default().to_owned();
    (holder, lease["spec"]["leaseTransitions"].as_i64().unwrap_or_default())
}

/// Waits until the Lease has changed hands so often, and says who has it.
#[track_caller]
fn until_turn(fleet: &Fleet, turn: i64) -> String {
    let mut holder = String::new();
    eventually(LIMIT, &format!("the Lease is in its {turn}. hands"), || {
        let (found, transitions) = lease(fleet);
        let is_held = !found.is_empty() && transitions >= turn;
        holder.clone_from(&found);
        if is_held {
            Ok(())
        } else {
            Err(format!("{found:?} after {transitions}"))
        }
    });
    assert_eq!(lease(fleet).1, turn, "nobody else had it in between");
    holder
}

#[track_caller]
fn greet(fleet: &Fleet, text: &str) {
    let file = config_map("shop", "greeting", text);
    fleet.push(&format!("Say {text}"), &[("feeds/web/greeting.yaml", &file)]);
    fleet.until_text(&pool::NAMES, GREETING, text);
}

/// What the agent wrote down of a class of streams.
fn lines(fleet: &Fleet, class: &str) -> Vec<Value> {
    let log = fs::read_to_string(fleet.folder().join("audit.log")).unwrap_or_default();
    let lines = log
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).expect("a line is JSON"));
    lines.filter(|line| line["class"] == class).collect()
}

fn asked(fleet: &Fleet, arguments: &[&str]) -> String {
    Flotilla::run(&[arguments, &["--server", &fleet.api()]].concat()).stdout
}

/// The agent applies, then the hub with the agent's credential, then the agent again: one Lease, one holder, and no turn
/// that nobody asked for.
#[test]
fn the_mode_changes_by_commit_while_all_goes_on_and_never_two_apply() {
    let mut fleet = Fleet::prepare();
    fleet.start_hub(&[]);
    let audit = fleet.folder().join("audit.log").display().to_string();
    let lends = ["--allow", "read", "--allow", "push", "--audit-log", &audit];
    fleet.start_agent_with(CLUSTER, &lends);
    fleet.start_agent("amsterdam");
    fleet.start_agent("colombo");
    fleet.open_for_use();
    let (agent, turn) = lease(&fleet);

    set(&fleet, CLUSTER, "Push");
    let hub = until_turn(&fleet, turn + 1);
    assert_ne!(hub, agent, "the hub has it now");
    greet(&fleet, "by the hub");
    eventually(LIMIT, "what the hub applies is told as what agents apply", || {
        let told = asked(&fleet, &["get", "managedclusters", CLUSTER, "-o", "json"]);
        let is_ready = told.contains("\"syncMode\": \"Push\"") && told.contains("2 of 2 units");
        if is_ready { Ok(()) } else { Err(told) }
    });
    assert!(
        asked(&fleet, &["get", "capacity"]).contains(CLUSTER),
        "room is counted by the hub's applier"
    );
    // Drift is put right by whoever applies.
    fleet
        .cluster(CLUSTER)
        .kubectl(&["--namespace", "shop", "delete", "configmap", "farewell"])
        .expect_ok();
    fleet.until_text(&[CLUSTER], FAREWELL, "goodbye");

    // A hub that starts anew goes on, and its agent goes on standing by.
    fleet.kill_hub();
    fleet.start_hub(&[]);
    greet(&fleet, "by a new hub");
    let (again, turn) = lease(&fleet);
    assert_ne!(again, agent, "still not the agent");

    set(&fleet, CLUSTER, "Pull");
    let holder = until_turn(&fleet, turn + 1);
    assert!(holder != hub && holder != again, "the agent took it back: {holder}");
    assert!(
        !fleet.logs().contains("Failed to give the applier lease back"),
        "the agent waited for nothing to run out"
    );
    eventually(
        LIMIT,
        "streams of the hub's applier are closed and written down",
        || {
            let lines = lines(&fleet, "push");
            if lines.is_empty() {
                Err("nothing was written down".to_owned())
            } else {
                Ok(())
            }
        },
    );
    let pushed = lines(&fleet, "push").len();
    greet(&fleet, "by the agent");

    set(&fleet, CLUSTER, "Dual");
    greet(&fleet, "by the agent still");
    assert_eq!(
        lease(&fleet),
        (holder, turn + 1),
        "from Pull to Dual nobody else applies"
    );
    assert_eq!(
        lines(&fleet, "push").len(),
        pushed,
        "and the hub opened nothing to push"
    );
    assert_verified(&fleet.repository);
}

#[test]
fn an_agent_that_does_not_lend_its_rights_says_what_to_do() {
    let fleet = Fleet::start_in_use();
    set(&fleet, CLUSTER, "Push");
    eventually(LIMIT, "the cluster says what is wrong and what to do", || {
        let told = asked(&fleet, &["get", "managedclusters", CLUSTER, "-o", "json"]);
        let is_told = told.contains("the agent does not allow push") && told.contains("--allow push");
        if is_told { Ok(()) } else { Err(told) }
    });
    // And nobody else applies behind its back, until Git says so.
    let unheard = config_map("shop", "greeting", "unheard");
    let commit = fleet.push("Say it", &[("feeds/web/greeting.yaml", &unheard)]);
    fleet.until_released(&commit);
    fleet.until_text(&["amsterdam", "colombo"], GREETING, "unheard");
    assert_eq!(fleet.text(CLUSTER, GREETING).as_deref(), Some("hello"));
    eventually(LIMIT, "nobody has the Lease", || match lease(&fleet).0 {
        holder if holder.is_empty() => Ok(()),
        holder => Err(holder),
    });
    set(&fleet, CLUSTER, "Dual");
    greet(&fleet, "by the agent again");
}
