//! Health as clusters have it.

use std::time::Duration;

use flotilla_tests::{eventually, three_clusters};
use reconciler::wire::{Health, UnitState};
use render::model::{ApplyPolicy, HealthCheck};
use serde_json::json;

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
    eventually(soon, "it is scaled back", || {
        let replicas = field(&cluster, "deployment/web", "/spec/replicas");
        if replicas == 0 {
            Ok(())
        } else {
            Err(replicas.to_string())
        }
    });
    applier.until_unit("shop/web", UnitState::Applied);
    applier.stop();
}

/// A workload with pods of this size.
fn workload(kind: &str, cpu: &str) -> serde_json::Value {
    let mut object = deployment("default", "load", 2);
    object["kind"] = kind.into();
    object["spec"]["template"]["spec"]["containers"][0]["resources"] = json!({"requests": {"cpu": cpu}});
    match kind {
        "Deployment" => object["spec"]["progressDeadlineSeconds"] = 5.into(),
        "StatefulSet" => {
            object["spec"]["serviceName"] = "load".into();
            // In order, a broken pod is never replaced by a mended one.
            object["spec"]["podManagementPolicy"] = "Parallel".into();
        }
        _ => {
            let spec = object["spec"].as_object_mut().expect("a spec");
            spec.remove("replicas");
        }
    }
    object
}

#[test]
fn judgements_agree_with_kubectl_rollout_status_through_good_broken_and_mended() {
    let clusters = three_clusters();
    let cluster = &clusters[0];
    let mut applier = Applier::start(cluster, "rollout");
    for kind in ["Deployment", "StatefulSet", "DaemonSet"] {
        let unit = format!("shop/{}", kind.to_lowercase());
        let name = format!("{}/load", kind.to_lowercase());
        let rolled_out = |limit: &str| {
            let output = cluster.kubectl(&["rollout", "status", &name, &format!("--timeout={limit}")]);
            output.code() == Some(0)
        };
        for (cpu, is_good) in [("1", true), ("64", false), ("2", true)] {
            applier.deliver(&[(unit.as_str(), vec![workload(kind, cpu)])]);
            applier.until_unit(&unit, UnitState::Applied);
            if is_good {
                applier.until(&format!("{kind} is healthy"), |report| {
                    report.units[&unit_key(&unit)].health == Health::Current
                });
                assert!(rolled_out("1s"), "{kind} with {cpu} CPUs");
            } else {
                // A Deployment has a deadline of its own, and its end is final.
                let expected = if kind == "Deployment" {
                    Health::Failed
                } else {
                    Health::InProgress
                };
                applier.until(&format!("{kind} is {expected:?}"), |report| {
                    report.units[&unit_key(&unit)].health == expected
                });
                assert!(!rolled_out("1s"), "{kind} with {cpu} CPUs");
            }
        }
        applier.deliver(&[]);
        applier.until_gone(&unit);
    }
    applier.stop();
}

#[test]
fn what_is_not_healthy_in_its_time_has_failed_until_it_is_mended() {
    let clusters = three_clusters();
    let mut applier = Applier::start(&clusters[0], "timeout");
    let policy = ApplyPolicy {
        timeout_seconds: Some(3),
        ..ApplyPolicy::default()
    };
    applier.govern("shop/web", policy);
    applier.deliver(&[("shop/web", vec![workload("StatefulSet", "64")])]);
    let report = applier.until("its time is over", |report| {
        let unit = report.units.get(&unit_key("shop/web"));
        unit.is_some_and(|unit| unit.health == Health::Failed)
    });
    let unit = &report.units[&unit_key("shop/web")];
    assert_eq!(unit.state, UnitState::Applied, "it was applied all the same");
    let words = "StatefulSet default/load: not healthy after 3s: 0 of 2 replicas are ready";
    assert_eq!(unit.message, words);
    applier.deliver(&[("shop/web", vec![workload("StatefulSet", "1")])]);
    applier.until("a new commit interrupts it", |report| {
        let unit = &report.units[&unit_key("shop/web")];
        unit.health == Health::Current && unit.message.is_empty()
    });
    applier.stop();
}

/// A definition with a status that its controller writes.
fn definition(group: &str, kind: &str) -> serde_json::Value {
    let plural = format!("{}s", kind.to_lowercase());
    json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{plural}.{group}")},
        "spec": {"group": group, "scope": "Namespaced",
            "names": {"kind": kind, "listKind": format!("{kind}List"), "plural": plural, "singular": kind.to_lowercase()},
            "versions": [{"name": "v1", "served": true, "storage": true, "subresources": {"status": {}},
                "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}}]}})
}

#[test]
fn a_kind_that_is_known_to_report_is_not_healthy_before_it_did() {
    let cluster = cluster("silent");
    let mut applier = Applier::start(&cluster, "silent");
    let certificate = json!({"apiVersion": "cert-manager.io/v1", "kind": "Certificate",
        "metadata": {"name": "web", "namespace": "default"}, "spec": {"secretName": "web"}});
    applier.deliver(&[(
        "shop/web",
        vec![definition("cert-manager.io", "Certificate"), certificate],
    )]);
    let unit = applier.until_unit("shop/web", UnitState::Applied);
    assert_eq!(unit.health, Health::InProgress, "its controller is off");
    assert!(
        unit.message.contains("its controller has not said anything yet"),
        "{}",
        unit.message
    );
    let status =
        r#"{"status":{"observedGeneration":1,"conditions":[{"type":"Ready","status":"True","observedGeneration":1}]}}"#;
    let patch = [
        "patch",
        "certificate",
        "web",
        "--subresource=status",
        "--type=merge",
        "--patch",
        status,
    ];
    cluster.kubectl(&patch).expect_ok();
    applier.until("its controller said that it is ready", |report| {
        report.units[&unit_key("shop/web")].health == Health::Current
    });
    applier.stop();
}

#[test]
fn a_kind_is_judged_by_the_expressions_that_people_wrote_for_it() {
    let cluster = cluster("expressions");
    let mut applier = Applier::start(&cluster, "expressions");
    let check = HealthCheck {
        api_version: "example.dev/v1".to_owned(),
        kind: "Database".to_owned(),
        current: "object.status.phase == 'Running'".to_owned(),
        in_progress: String::new(),
        failed: "object.status.phase == 'Lost'".to_owned(),
    };
    let policy = ApplyPolicy {
        health_checks: vec![check],
        ..ApplyPolicy::default()
    };
    applier.govern("shop/web", policy);
    let database = json!({"apiVersion": "example.dev/v1", "kind": "Database",
        "metadata": {"name": "db", "namespace": "default"}, "spec": {"size": 1}});
    applier.deliver(&[("shop/web", vec![definition("example.dev", "Database"), database])]);
    let unit = applier.until_unit("shop/web", UnitState::Applied);
    assert_eq!(unit.health, Health::InProgress, "nothing was said of it");
    for (phase, expected) in [
        ("Lost", Health::Failed),
        ("Starting", Health::InProgress),
        ("Running", Health::Current),
    ] {
        let status = format!(r#"{{"status":{{"phase":"{phase}"}}}}"#);
        let patch = [
            "patch",
            "database",
            "db",
            "--subresource=status",
            "--type=merge",
            "--patch",
            &status,
        ];
        cluster.kubectl(&patch).expect_ok();
        applier.until(&format!("it is {expected:?} while {phase}"), |report| {
            report.units[&unit_key("shop/web")].health == expected
        });
    }
    applier.stop();
}
