//! What is sent, and what is not: large objects, defaults, kinds and namespaces that go away.

use std::time::Duration;

use flotilla_tests::{eventually, wait};
use reconciler::wire::{ObjectState, UnitState};
use serde_json::{Value, json};

use super::delivery::*;

#[test]
fn a_definition_of_850_kib_is_applied_without_a_copy_in_it() {
    let cluster = cluster("large");
    let mut applier = Applier::start(&cluster, "large");
    let mut definition = widgets();
    let properties: serde_json::Map<_, _> = (0..850)
        .map(|number| {
            (
                format!("field{number}"),
                json!({"type": "string", "description": "d".repeat(1_000)}),
            )
        })
        .collect();
    let schema = &mut definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
    schema["properties"]["spec"]["properties"] = properties.into();
    assert!(definition.to_string().len() > 850 << 10);
    applier.deliver(&[("shop/web", vec![definition.clone()])]);
    applier.until_unit("shop/web", UnitState::Applied);
    let resource = "customresourcedefinition/widgets.example.org";
    let annotations = field(&cluster, resource, "/metadata/annotations");
    assert!(annotations.to_string().len() < 1 << 10, "{annotations}");
    until_field(&cluster, resource, "/status/conditions/1/status", &json!("True"));
    let version = field(&cluster, resource, "/metadata/resourceVersion");
    applier.deliver(&[("shop/web", vec![definition])]);
    wait::throughout(Duration::from_secs(4), "nothing is written again", || {
        let now = field(&cluster, resource, "/metadata/resourceVersion");
        (now == version).then_some(()).ok_or_else(|| now.to_string())
    });
    applier.stop();
}

/// Kinds with as little in their specs as the API server takes; the rest are its defaults.
fn minimal(image: &str) -> Vec<Value> {
    let pod = || {
        json!({"metadata": {"labels": {"app": "x"}}, "spec": {"containers": [{"name": "c", "image": image,
        "ports": [{"containerPort": 9190}], "readinessProbe": {"httpGet": {"path": "/", "port": 9190}}}]}})
    };
    let object = |api_version: &str, kind: &str, spec: Value| json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": "x", "namespace": "default"}, "spec": spec});
    let selector = json!({"matchLabels": {"app": "x"}});
    let job = || {
        let mut template = pod();
        template["spec"]["restartPolicy"] = "Never".into();
        template["spec"]["containers"][0]["image"] = "registry.example/job:1".into();
        json!({"template": template})
    };
    vec![
        object(
            "apps/v1",
            "Deployment",
            json!({"selector": selector, "template": pod()}),
        ),
        object("apps/v1", "DaemonSet", json!({"selector": selector, "template": pod()})),
        object(
            "apps/v1",
            "StatefulSet",
            json!({"selector": selector, "template": pod(), "serviceName": "x", "minReadySeconds": 1,
                "volumeClaimTemplates": [{"metadata": {"name": "data"},
                    "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}}]}),
        ),
        object("batch/v1", "Job", job()),
        object(
            "batch/v1",
            "CronJob",
            json!({"schedule": "0 0 1 1 *", "jobTemplate": {"spec": job()}}),
        ),
        object("v1", "Service", json!({"ports": [{"port": 80}]})),
        object("networking.k8s.io/v1", "NetworkPolicy", json!({"podSelector": {}})),
        object(
            "policy/v1",
            "PodDisruptionBudget",
            json!({"maxUnavailable": 1, "selector": selector}),
        ),
        object(
            "networking.k8s.io/v1",
            "Ingress",
            json!({"defaultBackend": {"service": {"name": "x", "port": {"number": 80}}}}),
        ),
        object(
            "v1",
            "LimitRange",
            json!({"limits": [{"type": "Container", "max": {"cpu": "1000m"}}]}),
        ),
        object("v1", "ResourceQuota", json!({"hard": {"pods": "100"}})),
        object(
            "v1",
            "PersistentVolumeClaim",
            json!({"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1024Mi"}}}),
        ),
    ]
}

#[test]
fn defaults_and_other_spellings_are_no_difference_and_a_change_is_one_write() {
    let cluster = cluster("defaults");
    let mut applier = Applier::start(&cluster, "defaults");
    applier.deliver(&[("shop/web", minimal("registry.example/x:1"))]);
    applier.until_unit("shop/web", UnitState::Applied);
    let generations = || -> Vec<String> {
        minimal("")
            .iter()
            .map(|object| format!("{}/x", object["kind"].as_str().unwrap().to_lowercase()))
            .map(|resource| format!("{resource} {}", field(&cluster, &resource, "/metadata/generation")))
            .collect()
    };
    let before = generations();
    wait::throughout(Duration::from_secs(5), "no spec is written again", || {
        let now = generations();
        (now == before).then_some(()).ok_or_else(|| format!("{now:?}"))
    });
    applier.deliver(&[("shop/web", minimal("registry.example/x:2"))]);
    applier.until_unit("shop/web", UnitState::Applied);
    for resource in ["deployment/x", "daemonset/x", "statefulset/x"] {
        assert_eq!(
            field(&cluster, resource, "/metadata/generation"),
            2,
            "{resource}: one write"
        );
        let image = field(&cluster, resource, "/spec/template/spec/containers/0/image");
        assert_eq!(image, "registry.example/x:2");
    }
    applier.stop();
}

#[test]
fn a_kind_that_goes_away_waits_while_others_go_on_and_heals_when_it_returns() {
    let cluster = cluster("unserved");
    cluster.apply(&widgets().to_string());
    let mut applier = Applier::start(&cluster, "unserved");
    let unit = |more: &[&str]| {
        let maps = more.iter().map(|name| config_map("default", name, "1"));
        maps.chain([widget("default", "w")]).collect::<Vec<_>>()
    };
    applier.deliver(&[("shop/web", unit(&["a", "b"]))]);
    applier.until_unit("shop/web", UnitState::Applied);
    cluster
        .kubectl(&["delete", "customresourcedefinition", "widgets.example.org"])
        .expect_ok();
    applier.until("it says so", |report| {
        let unit = report.units.get(&unit_key("shop/web"));
        unit.is_some_and(|unit| {
            unit.worst.iter().any(|object| {
                object.state == ObjectState::Waiting
                    && object.message.contains("does not serve kind Widget of example.org/v1")
            })
        })
    });
    // Others are applied and removed meanwhile.
    applier.deliver(&[("shop/web", unit(&["b", "c"]))]);
    eventually(wait::LONG, "c is there", || cluster.get("default", "configmap/c"));
    eventually(wait::LONG, "a is gone", || {
        match cluster.has("default", "configmap/a") {
            true => Err("it is there".to_owned()),
            false => Ok(()),
        }
    });
    cluster.apply(&widgets().to_string());
    applier.until_unit("shop/web", UnitState::Applied);
    assert!(cluster.has("default", "widgets.example.org/w"));
    applier.stop();
}

#[test]
fn a_namespace_that_was_deleted_by_hand_is_restored_when_it_is_gone() {
    let cluster = cluster("terminating");
    let mut applier = Applier::start(&cluster, "terminating");
    let unit = || {
        vec![
            namespace("team"),
            config_map("team", "a", "1"),
            config_map("team", "b", "1"),
        ]
    };
    applier.deliver(&[("shop/web", unit())]);
    applier.until_unit("shop/web", UnitState::Applied);
    // Something else in it holds it.
    cluster
        .kubectl(&["create", "configmap", "held", "--namespace=team"])
        .expect_ok();
    let finalizers = |list: &str| {
        let patch = format!(r#"{{"metadata":{{"finalizers":{list}}}}}"#);
        cluster
            .kubectl(&[
                "patch",
                "configmap",
                "held",
                "--namespace=team",
                "--type=merge",
                "-p",
                &patch,
            ])
            .expect_ok();
    };
    finalizers(r#"["example.org/hold"]"#);
    cluster
        .kubectl(&["delete", "namespace", "team", "--wait=false"])
        .expect_ok();
    applier.until("it says what it waits for", |report| {
        let unit = report.units.get(&unit_key("shop/web"));
        unit.is_some_and(|unit| {
            let waits = |object: &&_| {
                let object: &reconciler::wire::ObjectResult = object;
                object.state == ObjectState::Waiting && object.message.contains("namespace team is being deleted")
            };
            unit.worst.iter().filter(waits).count() == 2
        })
    });
    finalizers("null");
    for name in ["configmap/a", "configmap/b"] {
        eventually(wait::LONG, &format!("{name} is there again"), || {
            cluster.get("team", name)
        });
    }
    applier.until_unit("shop/web", UnitState::Applied);
    applier.stop();
}
