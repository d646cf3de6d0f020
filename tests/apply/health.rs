//! Health as clusters have it.

use std::time::Duration;

use flotilla_tests::{eventually, three_clusters};
use reconciler::wire::{Health, ObjectState, UnitState};

use super::delivery::*;

#[test]
fn a_deployment_becomes_current() {
    let clusters = three_clusters();
    let mut applier = Applier::start(&clusters[0], "health");
    applier.deliver(&[("shop/web", vec![namespace("shop"), deployment("shop", "web", 2)])]);
    applier.until_unit("shop/web", UnitState::Applied);
    applier.until("the unit is healthy", |report| {
        report.units[&unit_key("shop/web")].health == Health::Current
    });
    let live = clusters[0].get("shop", "deployment/web").unwrap();
    assert_eq!(
        live["status"]["availableReplicas"], 2,
        "it was not called Current too early"
    );
    // A change of the template rolls out again, and the report follows.
    let mut changed = deployment("shop", "web", 2);
    changed["spec"]["template"]["spec"]["containers"][0]["image"] = "registry.example/web:2".into();
    applier.deliver(&[("shop/web", vec![namespace("shop"), changed])]);
    applier.until_unit("shop/web", UnitState::Applied);
    applier.until("the unit is healthy again", |report| {
        report.units[&unit_key("shop/web")].health == Health::Current
    });
    applier.stop();
}

#[test]
fn a_workload_changed_or_deleted_by_hand_is_seen_at_once() {
    let cluster = cluster("watched");
    let mut applier = Applier::start_with(&cluster, "watched", Duration::from_secs(300));
    let unit = vec![deployment("default", "web", 0), deployment("default", "other", 0)];
    applier.deliver(&[("shop/web", unit)]);
    applier.until_unit("shop/web", UnitState::Applied);
    // Long before unchanged objects are compared again.
    let soon = Duration::from_secs(20);
    cluster.kubectl(&["delete", "deployment", "other"]).expect_ok();
    eventually(soon, "it is there again", || cluster.get("default", "deployment/other"));
    cluster
        .kubectl(&["scale", "deployment", "web", "--replicas=1"])
        .expect_ok();
    let report = applier.until_unit("shop/web", UnitState::Failed);
    let web = result(&report, "web");
    assert_eq!(web.state, ObjectState::Conflict);
    assert!(web.message.contains(".spec.replicas"), "{}", web.message);
    applier.stop();
}
