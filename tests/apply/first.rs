//! What one delivery brings, and that nothing is written twice.

use std::time::Duration;

use flotilla_tests::{ControlPlane, eventually, wait};
use reconciler::wire::{Health, ObjectState, UnitState};
use serde_json::json;

use super::delivery::*;

#[test]
fn one_delivery_brings_definition_namespace_and_their_objects() {
    let cluster = cluster("first");
    let mut applier = Applier::start(&cluster, "first");
    let hook = json!({"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": "nothing"}, "webhooks": []});
    let everything = vec![
        widget("shop", "w"),
        hook,
        config_map("shop", "settings", "1"),
        namespace("shop"),
        widgets(),
    ];
    applier.deliver(&[("shop/web", everything)]);
    let report = applier.until_unit("shop/web", UnitState::Applied);
    assert_eq!(report.counts.applied, 5, "{report:#?}");
    assert_eq!(report.health, Health::Current, "{report:#?}");
    assert!(cluster.has("shop", "widgets.example.org/w"));
    let settings = cluster.get("shop", "configmap/settings").unwrap();
    assert_eq!(
        settings["metadata"]["annotations"]["fleet.flotilla.dev/unit"],
        "shop/web"
    );
    assert_eq!(
        applier
            .report()
            .kubernetes_version
            .as_deref()
            .map(|version| version.starts_with('v')),
        Some(true)
    );
    applier.stop();
}

#[test]
fn an_unchanged_delivery_writes_nothing_not_even_after_a_restart() {
    let cluster = cluster("quiet");
    let unit = || {
        let many = (0..20).map(|number| config_map("shop", &format!("c{number}"), "1"));
        many.chain([namespace("shop"), deployment("shop", "web", 0)])
            .collect::<Vec<_>>()
    };
    let mut applier = Applier::start(&cluster, "quiet");
    applier.deliver(&[("shop/web", unit())]);
    applier.until_unit("shop/web", UnitState::Applied);
    let before = versions(&cluster);
    assert_eq!(before.len(), 22, "objects and the inventory: {before:?}");
    // Two comparisons of unchanged objects, and a delivery that says the same.
    applier.deliver(&[("shop/web", unit())]);
    wait::throughout(Duration::from_secs(5), "nothing is written", || {
        unchanged(&cluster, &before)
    });
    applier.stop();
    let mut applier = Applier::start(&cluster, "quiet-again");
    applier.deliver(&[("shop/web", unit())]);
    applier.until_unit("shop/web", UnitState::Applied);
    unchanged(&cluster, &before).unwrap();
    applier.stop();
}

fn unchanged(cluster: &ControlPlane, before: &[(String, String)]) -> Result<(), String> {
    let now = versions(cluster);
    let changed: Vec<_> = now.iter().filter(|version| !before.contains(version)).collect();
    if changed.is_empty() {
        Ok(())
    } else {
        Err(format!("{changed:?} were written"))
    }
}

/// Every object of ours with its resource version. A Deployment's status is its controller's.
fn versions(cluster: &ControlPlane) -> Vec<(String, String)> {
    let mut versions = Vec::new();
    for namespace in ["shop", "flotilla-system"] {
        let list = cluster.get(namespace, "configmaps,deployments").unwrap();
        for item in list["items"].as_array().unwrap() {
            let name = item["metadata"]["name"].to_string();
            let field = if item["kind"] == "Deployment" {
                "generation"
            } else {
                "resourceVersion"
            };
            if !name.contains("kube-root-ca") {
                versions.push((name, item["metadata"][field].to_string()));
            }
        }
    }
    versions
}

#[test]
fn a_bad_object_does_not_stop_the_others() {
    let cluster = cluster("bad");
    let mut applier = Applier::start(&cluster, "bad");
    let misspelt = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "misspelt"}, "dta": {}});
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "typed"},
        "stringData": {"user": "MARK-7f3", "pw": 12345, "cert": {"a": "MARK-7f3"}}});
    let chart =
        json!({"apiVersion": "apps.clusternet.io/v1alpha1", "kind": "HelmChart", "metadata": {"name": "chart"}});
    let scoped =
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "inside", "namespace": "default"}});
    let unknown = json!({"apiVersion": "nowhere.example.org/v1", "kind": "Ghost", "metadata": {"name": "ghost"}});
    let objects = vec![
        misspelt,
        secret,
        chart,
        scoped,
        unknown,
        config_map("default", "good", "1"),
    ];
    applier.deliver(&[
        ("shop/bad", objects),
        ("shop/good", vec![config_map("default", "other", "1")]),
    ]);
    applier.until_unit("shop/good", UnitState::Applied);
    let report = applier.until_unit("shop/bad", UnitState::Failed);
    assert!(cluster.has("default", "configmap/good"));
    assert_eq!(
        (report.counts.objects, report.counts.applied, report.counts.failed),
        (6, 1, 4),
        "{report:#?}"
    );
    assert!(result(&report, "misspelt").message.contains("dta"), "{report:#?}");
    assert!(result(&report, "chart").message.contains("is missing"), "{report:#?}");
    assert!(
        result(&report, "inside").message.contains("no namespaces"),
        "{report:#?}"
    );
    assert_eq!(result(&report, "ghost").state, ObjectState::Waiting);
    let words = result(&report, "typed").message.clone();
    assert!(
        !words.contains("MARK") && !words.contains("12345"),
        "a secret's value is in {words:?}"
    );
    assert!(!words.is_empty());
    applier.stop();
}

#[test]
fn objects_wait_for_a_namespace_and_a_definition_that_come_later() {
    let cluster = cluster("later");
    let mut applier = Applier::start(&cluster, "later");
    let objects = vec![config_map("shop", "settings", "1"), widget("shop", "w")];
    applier.deliver(&[("shop/web", objects)]);
    applier.until("both wait", |report| {
        let unit = report.units.get(&unit_key("shop/web"));
        unit.is_some_and(|unit| {
            unit.worst
                .iter()
                .filter(|object| object.state == ObjectState::Waiting && !object.message.is_empty())
                .count()
                == 2
        })
    });
    cluster.kubectl(&["create", "namespace", "shop"]).expect_ok();
    cluster.apply(&widgets().to_string());
    applier.until_unit("shop/web", UnitState::Applied);
    applier.stop();
}

#[test]
fn an_object_deleted_by_hand_comes_back() {
    let cluster = cluster("restored");
    let mut applier = Applier::start(&cluster, "restored");
    applier.deliver(&[("shop/web", vec![config_map("default", "settings", "1")])]);
    applier.until_unit("shop/web", UnitState::Applied);
    cluster.kubectl(&["delete", "configmap", "settings"]).expect_ok();
    eventually(wait::LONG, "it is there again", || {
        cluster.get("default", "configmap/settings")
    });
    applier.stop();
    cluster.kubectl(&["delete", "configmap", "settings"]).expect_ok();
    let mut applier = Applier::start(&cluster, "restored-again");
    applier.deliver(&[("shop/web", vec![config_map("default", "settings", "1")])]);
    eventually(wait::LONG, "it is there again after a restart", || {
        cluster.get("default", "configmap/settings")
    });
    applier.stop();
}
