//! A cluster that is lost: others take over what it had, and it removes that when it comes back.

use flotilla_tests::{Flotilla, eventually, pool};
use serde_json::Value;

use super::still::{Picture, assert_unchanged};
use super::support::*;

const POLICY: &str = "\
apiVersion: fleet.flotilla.dev/v1alpha1
kind: Fleet
metadata: {name: fleet}
spec:
  approval: none
  scheduling:
    failover: {after: 4s, returnAfter: 1s, budget: {clusters: 1, per: 1h}}
";

const DEPLOYMENT: &str = "\
apiVersion: apps/v1
kind: Deployment
metadata: {namespace: harbour, name: crew}
spec:
  replicas: 9
  selector: {matchLabels: {app: crew}}
  template:
    metadata: {labels: {app: crew}}
    spec:
      containers:
        - {name: sailor, image: sailor.example/sailor:1}
";

const SUBSCRIPTION: &str = "\
apiVersion: fleet.flotilla.dev/v1alpha1
kind: Subscription
metadata: {namespace: sea, name: harbour}
spec:
  schedulingStrategy: Dividing
  dividingScheduling: {type: Static}
  subscribers: [{clusterAffinity: {}}]
  feeds: [{path: 'feeds/harbour/**'}]
";

#[test]
fn the_others_take_over_what_a_lost_cluster_had_and_it_gives_it_up_when_it_is_back() {
    let mut fleet = Fleet::start();
    open(&fleet);
    let lost = pool::NAMES[2];
    fleet.kill_agent(lost);
    until(&fleet, "the others have all nine", |ready| {
        ready[..2].iter().flatten().sum::<u64>() == 9
    });
    assert_eq!(of_crew(&fleet, lost), Some(3), "a dead cluster is told nothing");
    let read = |path: &str| {
        let file = fleet.repository.read("flotilla/rendered", path);
        file.expect("it is there")
    };
    let placement = read("placements/sea/harbour.yaml");
    let said = format!("of {lost}, which is silent since");
    assert!(
        placement.contains("takes over") && placement.contains(&said),
        "{placement}"
    );
    assert!(
        placement.contains("lost:") && placement.contains("movedAt:"),
        "{placement}"
    );
    let record = read("release.yaml");
    assert!(record.contains("cause: failover"), "{record}");

    // What is not delivered to it any more, it removes.
    fleet.start_agent(lost);
    until(&fleet, "what was lost is gone there", |ready| ready[2].is_none());
    let picture = Picture::of(&fleet);
    assert_unchanged(&fleet, &picture, "its return moves nothing back");
    assert_verified(&fleet.repository);
}

/// The hub applies to this cluster itself, and hears of it as long as its API server answers.
#[test]
fn a_cluster_without_an_agent_is_lost_once_its_api_server_answers_no_more() {
    let mut fleet = Fleet::prepare();
    let direct = "apiVersion: fleet.flotilla.dev/v1alpha1\nkind: ManagedCluster\nmetadata: {name: colombo}\n\
                  spec: {kubeconfigContext: colombo, syncMode: Push}\n";
    fleet.push("Reach colombo by kubeconfig", &[("clusters/colombo.yaml", direct)]);
    let kubeconfig = fleet.cluster("colombo").kubeconfig().display().to_string();
    fleet.start_hub(&["--kubeconfig", &kubeconfig]);
    fleet.start_agent("amsterdam");
    fleet.start_agent("bogota");
    open(&fleet);
    until_status(&fleet, ["cluster", "colombo"], "session", "Connected");

    fleet.cluster_mut("colombo").stop_apiserver();
    until_status(&fleet, ["cluster", "colombo"], "session", "Disconnected");
    until(&fleet, "the others have all nine", |ready| {
        ready[..2].iter().flatten().sum::<u64>() == 9
    });

    fleet.cluster_mut("colombo").start_apiserver();
    until_status(&fleet, ["cluster", "colombo"], "session", "Connected");
    until(&fleet, "what was lost is gone there", |ready| ready[2].is_none());
    let picture = Picture::of(&fleet);
    assert_unchanged(&fleet, &picture, "its return moves nothing back");
    assert_verified(&fleet.repository);
}

/// What waits for a person holds nothing else up: who merged the policy approved what follows from it.
#[test]
fn a_cluster_is_failed_over_by_what_is_merged_while_a_commit_waits_for_its_merge() {
    let mut fleet = Fleet::start();
    open(&fleet);
    let gated = POLICY.replace("approval: none", "approval: required");
    let merged = fleet.push("Ask before anything changes", &[("fleet.yaml", &gated)]);
    until_status(&fleet, ["fleet", "fleet"], "accepted", &format!("main@sha1:{merged}"));
    let more = DEPLOYMENT.replace("replicas: 9", "replicas: 12");
    fleet.push("Hire three", &[("feeds/harbour/crew.yaml", &more)]);
    until_proposal(&fleet, "replicas of Deployment crew: 4 of 12");

    let lost = pool::NAMES[2];
    fleet.kill_agent(lost);
    until(&fleet, "the others have all nine", |ready| {
        ready[..2].iter().flatten().sum::<u64>() == 9
    });
    let record = fleet.repository.read("flotilla/rendered", "release.yaml");
    let record = record.expect("it is there");
    assert!(
        record.contains("cause: failover") && record.contains(&merged),
        "{record}"
    );

    // On top of it, what waits is proposed as before.
    let proposal = until_proposal(&fleet, "replicas of Deployment crew: 6 of 12");
    let merge = [
        "push",
        "--quiet",
        "origin",
        &format!("origin/{proposal}:flotilla/rendered"),
    ];
    fleet.repository.git(&["fetch", "--quiet"]);
    fleet.repository.git(&merge);
    until(&fleet, "the others have all twelve", |ready| {
        ready[..2] == [Some(6), Some(6)]
    });
    assert_eq!(of_crew(&fleet, lost), Some(3), "a dead cluster is told nothing");
}

/// Waits until one proposal stands on `rendered` that has these words in the placement, and gives its branch.
fn until_proposal(fleet: &Fleet, words: &str) -> String {
    let list = [
        "for-each-ref",
        "--format=%(refname:lstrip=2)",
        "refs/heads/flotilla/proposed/",
    ];
    eventually(LIMIT * 3, &format!("{words:?} is proposed"), || {
        let listed = fleet.repository.git_bare(&list).ok()?;
        let [one] = listed.lines().collect::<Vec<_>>()[..] else {
            return Err(listed);
        };
        let base = fleet.repository.git_bare(&["rev-parse", &format!("{one}~1")]).ok()?;
        let placement = fleet
            .repository
            .read(one, "placements/sea/harbour.yaml")
            .unwrap_or_default();
        let is_newest = Some(base.trim()) == fleet.repository.head("flotilla/rendered").as_deref();
        (is_newest && placement.contains(words))
            .then(|| one.to_owned())
            .ok_or(placement)
    })
}

fn open(fleet: &Fleet) {
    fleet.push(
        "Open the harbour",
        &[
            ("fleet.yaml", POLICY),
            ("subscriptions/sea/harbour.yaml", SUBSCRIPTION),
            ("feeds/harbour/namespace.yaml", &namespace("harbour")),
            ("feeds/harbour/crew.yaml", DEPLOYMENT),
        ],
    );
    until(fleet, "each has three", |ready| ready == [Some(3), Some(3), Some(3)]);
}

/// Waits until the hub says so of a kind and a name.
fn until_status(fleet: &Fleet, [kind, name]: [&str; 2], field: &str, expected: &str) {
    eventually(LIMIT * 3, &format!("{field} of {kind} {name} is {expected}"), || {
        let shown = Flotilla::run(&["get", kind, name, "-o", "json", "--server", &fleet.api()]).ok()?;
        let shown: Value = serde_json::from_str(&shown).map_err(|error| error.to_string())?;
        let found = &shown["status"][field];
        (found == expected).then_some(()).ok_or_else(|| found.to_string())
    });
}

/// How many replicas of the crew are ready, cluster by cluster; `None` where there is no crew.
fn until(fleet: &Fleet, what: &str, is_so: impl Fn([Option<u64>; 3]) -> bool) {
    eventually(LIMIT * 3, what, || {
        let found = pool::NAMES.map(|name| of_crew(fleet, name));
        if is_so(found) {
            Ok(())
        } else {
            Err(format!("{found:?}"))
        }
    });
}

fn of_crew(fleet: &Fleet, cluster: &str) -> Option<u64> {
    let crew: Value = fleet.cluster(cluster).get("harbour", "deployment/crew").ok()?;
    let ready = crew.pointer("/status/readyReplicas").and_then(Value::as_u64);
    Some(ready.unwrap_or_default())
}
