//! Replicas that are divided by the room that clusters have.

use flotilla_tests::{Flotilla, Output, eventually, pool, scratch};
use serde_json::Value;

use super::support::*;
use super::taking::in_clone;

pub(super) const DEPLOYMENT: &str = "\
apiVersion: apps/v1
kind: Deployment
metadata: {namespace: harbour, name: crew}
spec:
  replicas: 30
  selector: {matchLabels: {app: crew}}
  template:
    metadata: {labels: {app: crew}}
    spec:
      containers:
        - {name: sailor, image: sailor.example/sailor:1, resources: {requests: {cpu: '8'}}}
";

pub(super) const SUBSCRIPTION: &str = "\
apiVersion: fleet.flotilla.dev/v1alpha1
kind: Subscription
metadata: {namespace: sea, name: harbour}
spec:
  schedulingStrategy: Dividing
  dividingScheduling: {type: Dynamic, dynamicDividing: {strategy: Spread}}
  subscribers: [{clusterAffinity: {}}]
  feeds: [{path: 'feeds/harbour/**'}]
";

/// Each node has 32 cores, which are four replicas; each cluster has three.
#[test]
fn replicas_go_where_nodes_have_room_stay_there_and_follow_when_room_comes() {
    let fleet = Fleet::start();
    let nodes = |cluster: &str, verb: &str, node: &str| nodes(&fleet, cluster, verb, node);
    nodes("bogota", "cordon", "node-1");
    nodes("colombo", "cordon", "node-1");
    nodes("colombo", "cordon", "node-2");
    open(&fleet);
    let replicas = |expected| until_replicas(&fleet, expected);
    replicas([12, 8, 4]);
    let placement = || {
        let file = fleet
            .repository
            .read("flotilla/rendered", "placements/sea/harbour.yaml");
        file.expect("it is placed")
    };
    let text = placement();
    assert!(
        text.contains("replicas: 6") && text.contains("of: 30"),
        "what has no place is told: {text}"
    );
    assert!(text.contains("has room for 8"), "and why each has what it has: {text}");

    answers_about_room(&fleet);

    // A node that takes nothing more moves nothing that is placed.
    let before = fleet.repository.commits("flotilla/rendered");
    nodes("amsterdam", "cordon", "node-0");
    // Room that comes is used, and nothing is taken from where it is.
    nodes("colombo", "uncordon", "node-1");
    replicas([12, 8, 8]);
    nodes("colombo", "uncordon", "node-2");
    replicas([12, 8, 10]);
    let text = placement();
    assert!(!text.contains("unplaced"), "{text}");
    let commits = fleet.repository.commits("flotilla/rendered");
    assert_eq!(commits, before + 2, "one commit for each decision");
    nodes("amsterdam", "uncordon", "node-0");
    nodes("bogota", "uncordon", "node-1");

    eventually(LIMIT, "it is told that every node takes pods", || {
        let told = Flotilla::run(&["get", "capacity", "-o", "json", "--server", &fleet.api()]).stdout;
        let is_told = told.contains("clusters") && !told.contains("node.kubernetes.io/unschedulable");
        if is_told { Ok(()) } else { Err(told) }
    });

    // A revert restores what was, and not what room would say today.
    let fewer = DEPLOYMENT.replace("replicas: 30", "replicas: 20");
    fleet.push("Send ten home", &[("feeds/harbour/crew.yaml", &fewer)]);
    replicas([8, 5, 7]);
    fleet.repository.git(&["revert", "--no-edit", "HEAD"]);
    fleet.repository.push();
    replicas([12, 8, 10]);
    assert!(placement().contains("as it was at "), "{}", placement());

    // What would move if it were placed anew is shown, and moves once a commit asks for it.
    let rebalance = |more: &[&str]| {
        let api = fleet.api();
        in_clone(
            &fleet,
            &[&["rebalance", "sea/harbour", "--server", &api], more].concat(),
        )
    };
    let shown = rebalance(&[]);
    assert_eq!(shown.code(), Some(1), "{shown:?}");
    assert!(
        shown.stdout.contains("sea/harbour") && shown.stdout.contains("12 -> 10"),
        "{shown:?}"
    );
    rebalance(&["--commit", "--push", "-m", "Spread the crew"]).expect_ok();
    assert!(
        fleet
            .repository
            .message("main")
            .contains("\n\nRebalance: sea/harbour\n")
    );
    replicas([10, 10, 10]);
    let record = fleet.repository.read("flotilla/rendered", "release.yaml");
    assert!(record.is_some_and(|record| record.contains("cause: rebalance")));
    let again = rebalance(&[]);
    assert_eq!(again.code(), Some(0), "nothing more would move: {again:?}");
    assert_verified(&fleet.repository);
}

/// What a person asks while six of thirty find no place.
fn answers_about_room(fleet: &Fleet) {
    let api = fleet.api();
    let capacity = asked(&["get", "capacity", "--server", &api]);
    check(
        &capacity,
        0,
        &["NAME", "amsterdam   3 ", "bogota      3 ", "colombo     3 "],
    );
    let record = scratch::folder("record").join("capacity.json");
    let recorded = asked(&["get", "rooms", "-o", "json", "--server", &api]);
    check(&recorded, 0, &["\"kind\": \"Capacity\""]);
    std::fs::write(&record, &recorded.stdout).expect("it is writable");
    check(
        &asked(&["explain", "sea/harbour", "--server", &api]),
        0,
        &[
            "Unplaced: 6 of 30 of Deployment harbour/crew",
            "room for 12 of Deployment harbour/crew on 3 nodes",
            "room for 4 of Deployment harbour/crew on 1 node, ",
            ", 2 refuse: taint; said ",
            "Deployment harbour/crew: 30 replicas of cpu 8",
        ],
    );
    fleet.repository.git(&["fetch", "--quiet"]);
    let (work, record) = (
        fleet.repository.work().display().to_string(),
        record.display().to_string(),
    );
    let what_if = [
        "simulate",
        "--repository",
        &work,
        "--without-cluster",
        "amsterdam",
        "--scale",
        "sea/harbour=-12",
    ];
    let differs = [
        "- on amsterdam",
        "Deployment harbour/crew: 12 -> none",
        "the cluster is lost",
        "unplaced of Deployment harbour/crew: 6 of 30 -> 6 of 18",
    ];
    check(&asked(&[&what_if[..], &["--server", &api]].concat()), 1, &differs);
    let nobody = ["--server", "unix:/nowhere/flotilla.sock", "--reports", &record];
    check(&asked(&[&what_if[..], &nobody].concat()), 1, &differs);
    // Before it is pushed: six fewer find no place, and nothing that is placed moves.
    let fewer = DEPLOYMENT.replace("replicas: 30", "replicas: 27");
    fleet.repository.write("feeds/harbour/crew.yaml", &fewer);
    fleet.repository.commit("Ask for fewer");
    let plan = ["plan", "--repository", &work, "--server"];
    let planned = asked(&[&plan[..], &[&api]].concat());
    check(&planned, 1, &["unplaced of Deployment crew: 6 of 30 -> 3 of 27"]);
    assert!(
        !planned.stdout.contains("replicas of Deployment"),
        "nothing moves: {planned:?}"
    );
    let unasked = asked(&[&plan[..], &["unix:/nowhere/flotilla.sock"]].concat());
    assert!(
        unasked.stderr.contains("note: what room clusters have is not known"),
        "{unasked:?}"
    );
    fleet.repository.git(&["reset", "--quiet", "--hard", "HEAD~1"]);
}

fn asked(arguments: &[&str]) -> Output {
    Flotilla::run(arguments)
}

#[track_caller]
fn check(output: &Output, code: i32, words: &[&str]) {
    let all = format!("{}{}", output.stdout, output.stderr);
    assert_eq!(output.code(), Some(code), "{all}");
    for word in words {
        assert!(all.contains(word), "{word:?} is not in:\n{all}");
    }
}

/// The hub's own applier looks at the nodes of a cluster that has no agent.
#[test]
fn a_cluster_by_kubeconfig_says_what_room_it_has_and_gets_its_share() {
    let mut fleet = Fleet::prepare();
    let direct = "apiVersion: fleet.flotilla.dev/v1alpha1\nkind: ManagedCluster\nmetadata: {name: colombo}\n\
                  spec: {kubeconfigContext: colombo, syncMode: Push}\n";
    fleet.push("Reach colombo by kubeconfig", &[("clusters/colombo.yaml", direct)]);
    let kubeconfig = fleet.cluster("colombo").kubeconfig().display().to_string();
    fleet.start_hub(&["--kubeconfig", &kubeconfig]);
    fleet.start_agent("amsterdam");
    fleet.start_agent("bogota");
    nodes(&fleet, "bogota", "cordon", "node-1");
    nodes(&fleet, "colombo", "cordon", "node-1");
    open(&fleet);
    until_replicas(&fleet, [12, 8, 8]);
    nodes(&fleet, "colombo", "uncordon", "node-1");
    until_replicas(&fleet, [12, 8, 10]);
    nodes(&fleet, "bogota", "uncordon", "node-1");
}

fn nodes(fleet: &Fleet, cluster: &str, verb: &str, node: &str) {
    fleet.cluster(cluster).kubectl(&[verb, node]).expect_ok();
}

fn open(fleet: &Fleet) {
    fleet.push(
        "Open the harbour",
        &[
            ("subscriptions/sea/harbour.yaml", SUBSCRIPTION),
            ("feeds/harbour/namespace.yaml", &namespace("harbour")),
            ("feeds/harbour/crew.yaml", DEPLOYMENT),
        ],
    );
}

#[track_caller]
fn until_replicas(fleet: &Fleet, expected: [u64; 3]) {
    eventually(LIMIT * 3, &format!("replicas are {expected:?}"), || {
        let found = pool::NAMES.map(|name| of_crew(fleet, name));
        if found == expected.map(|count| Some((count, count))) {
            Ok(())
        } else {
            Err(format!("{found:?}"))
        }
    });
}

/// How many replicas a cluster was told, and how many are ready.
pub(super) fn of_crew(fleet: &Fleet, cluster: &str) -> Option<(u64, u64)> {
    let crew: Value = fleet.cluster(cluster).get("harbour", "deployment/crew").ok()?;
    let number = |pointer: &str| crew.pointer(pointer).and_then(Value::as_u64);
    Some((
        number("/spec/replicas")?,
        number("/status/readyReplicas").unwrap_or_default(),
    ))
}
