//! What stands on disk is enough to go on, and what is lost is never taken for empty.

use std::time::Duration;

use flotilla_tests::pool;

use super::still::{
    Picture, assert_objects_unchanged, assert_unchanged, copy, git_bare, objects, pass, until_connected, until_reason,
};
use super::support::{FAREWELL, FLEET, Fleet, GREETING, LIMIT, RULES, config_map, subscription};

const ALL: &[&str] = &pool::NAMES;

/// Pushes another text of the greeting.
fn greet(fleet: &Fleet, text: &str) -> String {
    fleet.push(
        "Greet otherwise",
        &[("feeds/web/greeting.yaml", &config_map(GREETING.0, GREETING.1, text))],
    )
}

#[test]
fn an_agent_restarted_without_its_hub_keeps_enforcing() {
    let mut fleet = Fleet::start_in_use();
    fleet.kill_hub();
    // One ends in good order, and one as in a power cut.
    fleet.agent("amsterdam").terminate(LIMIT);
    for cluster in ["amsterdam", "bogota"] {
        fleet.kill_agent(cluster);
        let deleted = fleet
            .cluster(cluster)
            .kubectl(&["delete", "configmap", "greeting", "--namespace=shop"]);
        deleted.expect_ok();
        fleet.start_agent(cluster);
    }
    fleet.until_text(&["amsterdam", "bogota"], GREETING, "hello");
}

#[test]
fn an_agent_that_comes_back_takes_the_newest_alone_and_removes_nothing_that_came_back_meanwhile() {
    let mut fleet = Fleet::start_in_use();
    let uid = |fleet: &Fleet, namespace: &str, resource: &str| {
        let found = fleet
            .cluster("amsterdam")
            .get(namespace, resource)
            .expect("it is there");
        found["metadata"]["uid"].clone()
    };
    let of_office = |fleet: &Fleet| {
        [
            uid(fleet, "office", "configmap/rules"),
            uid(fleet, "", "namespace/office"),
        ]
    };
    let before = of_office(&fleet);
    fleet.kill_agent("amsterdam");
    fleet.repository.remove("subscriptions/staff/office.yaml");
    fleet.push("Close the office", &[]);
    fleet.until_gone(&["bogota", "colombo"], "office", "configmap/rules");
    fleet.push(
        "Open it again",
        &[("subscriptions/staff/office.yaml", &subscription("staff", "office"))],
    );
    fleet.until_text(&["bogota", "colombo"], RULES, "none");
    fleet.start_agent("amsterdam");
    greet(&fleet, "back again");
    fleet.until_text(ALL, GREETING, "back again");
    assert_eq!(of_office(&fleet), before, "the same objects, that nobody removed");
}

#[test]
fn a_hub_needs_its_repository_and_its_key_and_nothing_else() {
    let mut fleet = Fleet::start_in_use();
    let before = Picture::of(&fleet);
    fleet.kill_hub();
    fleet.start_hub(&[]);
    until_connected(&fleet);
    assert_unchanged(&fleet, &before, "a hub that starts anew writes nothing");
    greet(&fleet, "hello again");
    fleet.until_text(ALL, GREETING, "hello again");
}

#[test]
fn a_lost_state_repository_is_recovered_from_a_backup_or_by_a_named_lineage() {
    let mut fleet = Fleet::prepare();
    // One of the clusters has no agent: the hub applies to it itself.
    let direct = "apiVersion: fleet.flotilla.dev/v1alpha1\nkind: ManagedCluster\nmetadata: {name: colombo}\n\
                  spec: {kubeconfigContext: colombo}\n";
    fleet.push("Reach colombo by kubeconfig", &[("clusters/colombo.yaml", direct)]);
    let kubeconfig = fleet.cluster("colombo").kubeconfig().display().to_string();
    let [state, backup] = ["state.git", "backup.git"].map(|name| fleet.folder().join(name).display().to_string());
    let arguments = [
        "--kubeconfig",
        &kubeconfig,
        "--state-repository",
        &state,
        "--recovery-grace-seconds",
        "5",
    ];
    fleet.start_hub(&arguments);
    fleet.start_agent("amsterdam");
    fleet.start_agent("bogota");
    fleet.open_for_use();
    assert_eq!(
        fleet.repository.head("flotilla/released"),
        None,
        "the source's repository gets no ref of the hub"
    );

    fleet.kill_hub();
    copy(&state, &backup);
    std::fs::remove_dir_all(&state).unwrap();
    let before = objects(&fleet);
    fleet.start_hub(&arguments);
    until_reason(&fleet, "StateKept", "Recovering");
    fleet.repository.remove("feeds/web/farewell.yaml");
    greet(&fleet, "while recovering");
    assert_objects_unchanged(&fleet, &before, "a hub that recovers schedules and prunes nothing");
    until_reason(&fleet, "StateKept", "Recovering");

    fleet.kill_hub();
    std::fs::remove_dir_all(&state).unwrap();
    std::fs::rename(&backup, &state).unwrap();
    fleet.start_hub(&arguments);
    fleet.until_text(ALL, GREETING, "while recovering");
    fleet.until_gone(ALL, FAREWELL.0, "configmap/farewell");

    fleet.kill_hub();
    std::fs::remove_dir_all(&state).unwrap();
    let before = objects(&fleet);
    fleet.start_hub(&[&arguments[..], &["--new-lineage"]].concat());
    fleet.until_hub_logged("Envelope was refused.");
    fleet.until_hub_logged("Refused envelope.");
    greet(&fleet, "in another lineage");
    assert_objects_unchanged(
        &fleet,
        &before,
        "a lineage that fleet.yaml does not name changes nothing",
    );
    let root = root(&state);
    let spec = format!("spec: {{approval: none, lineage: {root}}}");
    let named = FLEET.replace("spec: {approval: none}", &spec);
    fleet.push("Name the lineage", &[("fleet.yaml", &named)]);
    fleet.until_text(ALL, GREETING, "in another lineage");
    fleet.repository.remove("feeds/office/rules.yaml");
    fleet.push(
        "Office has other rules",
        &[("feeds/office/other.yaml", &config_map("office", "other", "some"))],
    );
    fleet.until_gone(ALL, "office", "configmap/rules");
}

/// The first commit of `released`.
fn root(state: &str) -> String {
    let list = ["rev-list", "--max-parents=0", "flotilla/released"];
    let roots = flotilla_tests::repository::git(state.as_ref(), &list).expect_ok();
    roots.trim().to_owned()
}

#[test]
fn a_hub_killed_at_any_moment_ends_at_the_newest() {
    let mut fleet = Fleet::start_in_use();
    let mut last = String::new();
    // Moments that differ by as much as a decision takes, wherever in it they fall.
    for (round, millis) in [0, 40, 90, 150, 10, 220, 310, 60, 420, 120].into_iter().enumerate() {
        last = format!("round {round}");
        greet(&fleet, &last);
        pass(Duration::from_millis(millis));
        fleet.kill_hub();
        fleet.start_hub(&[]);
        pass(Duration::from_millis(400));
    }
    fleet.until_text(ALL, GREETING, &last);
    let complaints = git_bare(&fleet, &["fsck", "--strict", "--no-dangling"]);
    assert_eq!(complaints, "", "what a killed hub leaves is a sound repository");
    let commits = git_bare(&fleet, &["rev-list", "--reverse", "flotilla/released"]);
    let sequences: Vec<u64> = commits.lines().map(|commit| sequence(&fleet, commit)).collect();
    let expected: Vec<u64> = (1..=sequences.len() as u64).collect();
    assert_eq!(sequences, expected, "sequences rise by one");
    assert!(sequences.len() > 2, "{sequences:?}");
}

#[track_caller]
fn sequence(fleet: &Fleet, commit: &str) -> u64 {
    let record = fleet.repository.read(commit, "release.yaml").unwrap();
    let line = record.lines().find_map(|line| line.trim().strip_prefix("sequence: "));
    line.unwrap_or_else(|| panic!("{record}")).parse().unwrap()
}
