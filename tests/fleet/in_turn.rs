//! Replicas that move from cluster to cluster, where workloads are not ready at once.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use flotilla_tests::eventually;
use futures_util::StreamExt as _;
use k8s_openapi::api::apps::v1::Deployment;
use kube::Api;
use kube::api::{WatchEvent, WatchParams};

use super::support::*;

const NAMES: [&str; 2] = ["site-1", "site-2"];

/// The unit `web` with these replicas, which the two clusters share by these weights.
fn files(replicas: u64, weights: [u64; 2]) -> [(&'static str, String); 2] {
    let subscribers = NAMES.iter().zip(weights).map(|(name, weight)| {
        format!(
            "    - {{clusterAffinity: {{matchLabels: {{clusters.clusternet.io/cluster-name: {name}}}}}, weight: {weight}}}\n"
        )
    });
    let subscription = format!(
        "apiVersion: fleet.flotilla.dev/v1alpha1
kind: Subscription
metadata: {{namespace: team, name: web}}
spec:
  schedulingStrategy: Dividing
  dividingScheduling: {{type: Static}}
  subscribers:
{}  feeds: [{{path: 'feeds/web/**'}}]
",
        subscribers.collect::<String>()
    );
    let deployment = format!(
        "apiVersion: apps/v1
kind: Deployment
metadata: {{namespace: default, name: web}}
spec:
  replicas: {replicas}
  selector: {{matchLabels: {{app: web}}}}
  template:
    metadata: {{labels: {{app: web}}}}
    spec: {{containers: [{{name: web, image: 'registry.example/web:1'}}]}}
"
    );
    [
        ("subscriptions/web.yaml", subscription),
        ("feeds/web/web.yaml", deployment),
    ]
}

#[track_caller]
fn push(fleet: &Fleet, replicas: u64, weights: [u64; 2]) {
    let files = files(replicas, weights);
    fleet.push("divide", &files.each_ref().map(|(path, text)| (*path, text.as_str())));
}

fn deployments(fleet: &Fleet, cluster: &str) -> Api<Deployment> {
    let _in_runtime = fleet.runtime.enter();
    Api::namespaced(fleet.clusters[cluster].client(), "default")
}

/// How many replicas a cluster should have, and how many of those are ready.
fn replicas(fleet: &Fleet, cluster: &str) -> (i32, i32) {
    let found = fleet
        .runtime
        .block_on(deployments(fleet, cluster).get_opt("web"))
        .unwrap();
    let Some(found) = found else { return (0, 0) };
    let wanted = found.spec.and_then(|spec| spec.replicas).unwrap_or_default();
    let ready = found
        .status
        .and_then(|status| status.ready_replicas)
        .unwrap_or_default();
    (wanted, ready.min(wanted))
}

#[track_caller]
fn until_ready(fleet: &Fleet, expected: [i32; 2], mut look: impl FnMut([(i32, i32); 2])) {
    eventually(LIMIT, &format!("{expected:?} are ready"), || {
        let found = NAMES.map(|name| replicas(fleet, name));
        look(found);
        match found == expected.map(|count| (count, count)) {
            true => Ok(()),
            false => Err(format!("{found:?}")),
        }
    });
}

#[test]
fn replicas_that_move_are_ready_there_before_they_go_here() {
    let fleet = Fleet::start_slow(2, Duration::from_secs(2));
    push(&fleet, 10, [1, 0]);
    until_ready(&fleet, [10, 0], |_| {});
    push(&fleet, 10, [1, 1]);
    let mut least = 10;
    // Who loses is looked at first: what the other one has by then, it had before.
    until_ready(&fleet, [5, 5], |found| {
        least = least.min(found[0].1 + found[1].1);
    });
    assert_eq!(least, 10, "all ten are ready at any time");
    fleet.until_settled();
    let placement = fleet.repository.read("flotilla/released", "placements/team/web.yaml");
    let placement = placement.expect("it is released");
    assert!(
        !placement.contains("awaited"),
        "nothing is left of the move: {placement}"
    );
}

/// Every number of replicas that a cluster's Deployment has, from now on.
fn follow(fleet: &Fleet, cluster: &str) -> Arc<Mutex<BTreeSet<i32>>> {
    let seen = Arc::new(Mutex::new(BTreeSet::new()));
    let (api, told) = (deployments(fleet, cluster), Arc::clone(&seen));
    fleet.runtime.spawn(async move {
        let mut events = api.watch(&WatchParams::default(), "0").await.unwrap().boxed();
        while let Some(Ok(event)) = events.next().await {
            if let WatchEvent::Added(found) | WatchEvent::Modified(found) = event {
                told.lock().unwrap().extend(found.spec.and_then(|spec| spec.replicas));
            }
        }
    });
    seen
}

#[test]
fn many_quick_commits_never_tell_a_cluster_what_no_commit_asks_for() {
    let fleet = Fleet::start_slow(2, Duration::from_millis(50));
    let seen = NAMES.map(|name| follow(&fleet, name));
    let mut asked = NAMES.map(|_| BTreeSet::new());
    let mut last = [0, 0];
    for commit in 0..long_or(100, 25) {
        // Shares of both clusters, neither of which is ever 0.
        let shares = [1 + commit % 4, 1 + commit % 3].map(|share| u64::try_from(share).unwrap());
        push(&fleet, shares.iter().sum(), shares);
        last = shares.map(|share| i32::try_from(share).unwrap());
        for (asked, share) in asked.iter_mut().zip(last) {
            asked.insert(share);
        }
    }
    until_ready(&fleet, last, |_| {});
    for (seen, asked) in seen.iter().zip(asked) {
        let seen = seen.lock().unwrap();
        assert!(!seen.is_empty(), "the watch saw them");
        assert!(seen.is_subset(&asked), "told {seen:?}, of {asked:?}");
    }
}
