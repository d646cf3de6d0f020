//! Fields that are left to others: replicas of autoscalers, and what rules name.

use std::time::Duration;

use flotilla_tests::{ControlPlane, wait};
use reconciler::wire::UnitState;
use render::model::{ApplyPolicy, IgnoreRule};
use serde_json::{Value, json};

use super::delivery::*;

fn autoscaler(min: u64, max: u64) -> Value {
    json!({"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": "web", "namespace": "default"},
        "spec": {"minReplicas": min, "maxReplicas": max,
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
            "metrics": [{"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 50}}}]}})
}

fn web(replicas: u64, image: &str) -> Value {
    let mut web = deployment("default", "web", replicas);
    web["spec"]["template"]["spec"]["containers"][0]["image"] = image.into();
    web
}

const IMAGE: &str = "/spec/template/spec/containers/0/image";

#[test]
fn replicas_that_an_autoscaler_sets_are_left_to_it() {
    let cluster = cluster("scaled");
    let mut applier = Applier::start(&cluster, "scaled");
    // The API server's own autoscaler raises to its minimum without any metrics.
    applier.deliver(&[("shop/web", vec![web(2, "web:1"), autoscaler(3, 5)])]);
    until_field(&cluster, "deployment/web", "/spec/replicas", &json!(3));
    wait::throughout(Duration::from_secs(5), "they stay", || {
        let replicas = field(&cluster, "deployment/web", "/spec/replicas");
        (replicas == 3).then_some(()).ok_or_else(|| replicas.to_string())
    });
    applier.deliver(&[("shop/web", vec![web(2, "web:2"), autoscaler(3, 5)])]);
    applier.until_unit("shop/web", UnitState::Applied);
    assert_eq!(field(&cluster, "deployment/web", IMAGE), "web:2");
    assert_eq!(field(&cluster, "deployment/web", "/spec/replicas"), 3);
    // Also without the autoscaler in the same delivery: whoever scales owns them.
    applier.deliver(&[
        ("shop/web", vec![web(2, "web:3")]),
        ("shop/scale", vec![autoscaler(3, 5)]),
    ]);
    applier.until_unit("shop/web", UnitState::Applied);
    assert_eq!(field(&cluster, "deployment/web", "/spec/replicas"), 3);
    applier.stop();
}

#[test]
fn replicas_keep_their_value_when_an_autoscaler_comes() {
    let cluster = cluster("scaled-later");
    let mut applier = Applier::start(&cluster, "scaled-later");
    applier.deliver(&[("shop/web", vec![web(4, "web:1")])]);
    applier.until_unit("shop/web", UnitState::Applied);
    // A hand is no autoscaler.
    cluster
        .kubectl(&["scale", "deployment/web", "--replicas=1"])
        .expect_ok();
    until_field(&cluster, "deployment/web", "/spec/replicas", &json!(4));
    applier.deliver(&[("shop/web", vec![web(2, "web:2"), autoscaler(1, 10)])]);
    applier.until_unit("shop/web", UnitState::Applied);
    assert_eq!(field(&cluster, "deployment/web", IMAGE), "web:2");
    wait::throughout(
        Duration::from_secs(4),
        "nobody's field would fall back to its default",
        || {
            let replicas = field(&cluster, "deployment/web", "/spec/replicas");
            (replicas == 4).then_some(()).ok_or_else(|| replicas.to_string())
        },
    );
    applier.stop();
}

/// Sets replicas through `scale`, as autoscalers do.
#[track_caller]
fn scale_as(cluster: &ControlPlane, manager: &str, name: &str, replicas: u64) {
    let patch = json!({"spec": {"replicas": replicas}});
    through(cluster, manager, "scale", &format!("deployment/{name}"), &patch);
}

/// Writes through a subresource, under a field manager.
#[track_caller]
fn through(cluster: &ControlPlane, manager: &str, subresource: &str, resource: &str, patch: &Value) {
    let (subresource, manager) = (
        format!("--subresource={subresource}"),
        format!("--field-manager={manager}"),
    );
    let patch = patch.to_string();
    // A strategic merge finds a container by its name, where the resource has one.
    let kind = if subresource.ends_with("resize") {
        "strategic"
    } else {
        "merge"
    };
    let arguments = ["patch", resource, &subresource, &manager, "--type", kind, "-p", &patch];
    cluster.kubectl(&arguments).expect_ok();
}

/// A definition without rules of its own: what the add-ons' kinds are to whoever applies them.
fn definition(group: &str, version: &str, kind: &str, plural: &str) -> Value {
    let open = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{plural}.{group}"),
            // As the add-on's own: its group is one of Kubernetes'.
            "annotations": {"api-approved.kubernetes.io": "https://github.com/kubernetes/kubernetes/pull/63797"}},
        "spec": {"group": group, "scope": "Namespaced",
            "names": {"kind": kind, "listKind": format!("{kind}List"), "plural": plural, "singular": kind.to_lowercase()},
            "versions": [{"name": version, "served": true, "storage": true, "schema": {"openAPIV3Schema": open}}]}})
}

#[test]
fn what_keda_scales_through_its_own_manager_is_left_to_it() {
    let cluster = cluster("scaled-by-keda");
    let mut applier = Applier::start(&cluster, "scaled-by-keda");
    let other = |image: &str| {
        let mut other = deployment("default", "other", 2);
        other["spec"]["template"]["spec"]["containers"][0]["image"] = image.into();
        other
    };
    let scaler = json!({"apiVersion": "keda.sh/v1alpha1", "kind": "ScaledObject",
        "metadata": {"name": "web", "namespace": "default"},
        "spec": {"scaleTargetRef": {"name": "web"}, "minReplicaCount": 0, "maxReplicaCount": 9,
            "triggers": [{"type": "cron", "metadata": {"timezone": "UTC"}}]}});
    let kind = definition("keda.sh", "v1alpha1", "ScaledObject", "scaledobjects");
    let unit = |image: &str| vec![web(2, image), other(image), scaler.clone(), kind.clone()];
    applier.deliver(&[("shop/web", unit("web:1"))]);
    applier.until_unit("shop/web", UnitState::Applied);
    // KEDA wakes and puts to sleep itself, and between one and many its HPA does. Nothing in the delivery is about `other`.
    for (manager, replicas) in [("keda", 0), ("keda", 1), ("kube-controller-manager", 6)] {
        // The API server notes nobody for a scale to 0: only the ScaledObject says then whose the replicas are.
        let names: &[&str] = if replicas == 0 { &["web"] } else { &["web", "other"] };
        for name in names {
            scale_as(&cluster, manager, name, replicas);
        }
        wait::throughout(Duration::from_secs(3), "they stay", || {
            let at = |name: &&str| field(&cluster, &format!("deployment/{name}"), "/spec/replicas");
            let now: Vec<_> = names.iter().map(at).collect();
            now.iter()
                .all(|found| *found == replicas)
                .then_some(())
                .ok_or_else(|| format!("{now:?}"))
        });
    }
    // KEDA writes its marks and its status at the object itself.
    let marks = json!({"metadata": {"finalizers": ["finalizer.keda.sh"], "labels": {"scaledobject.keda.sh/name": "web"}},
        "status": {"hpaName": "keda-hpa-web", "conditions": [{"type": "Ready", "status": "True"}]}});
    patch_as(&cluster, "keda", "scaledobject/web", &marks);
    applier.deliver(&[("shop/web", unit("web:2"))]);
    let report = applier.until_unit("shop/web", UnitState::Applied);
    assert_eq!(report.counts.drifted, 0, "{report:#?}");
    for name in ["deployment/web", "deployment/other"] {
        assert_eq!(field(&cluster, name, IMAGE), "web:2");
        assert_eq!(field(&cluster, name, "/spec/replicas"), 6);
    }
    assert_eq!(field(&cluster, "scaledobject/web", "/status/hpaName"), "keda-hpa-web");
    assert!(
        applier.report().corrections.are_none(),
        "{:?}",
        applier.report().corrections
    );
    // The marks are its own to take away, and so is the object then.
    patch_as(
        &cluster,
        "keda",
        "scaledobject/web",
        &json!({"metadata": {"finalizers": null}}),
    );
    applier.stop();
}

#[test]
fn what_a_vertical_autoscaler_resizes_through_its_own_manager_is_left_to_it() {
    let cluster = cluster("resized");
    let mut applier = Applier::start(&cluster, "resized");
    let vertical = json!({"apiVersion": "autoscaling.k8s.io/v1", "kind": "VerticalPodAutoscaler",
        "metadata": {"name": "solo", "namespace": "default"},
        "spec": {"targetRef": {"apiVersion": "v1", "kind": "Pod", "name": "solo"}, "updatePolicy": {"updateMode": "InPlaceOrRecreate"}}});
    let solo = |team: &str| {
        let resources = json!({"requests": {"cpu": "100m", "memory": "32Mi"}});
        json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "solo", "namespace": "default", "labels": {"team": team}},
            "spec": {"containers": [{"name": "web", "image": "web:1", "resources": resources}]}})
    };
    let kind = definition(
        "autoscaling.k8s.io",
        "v1",
        "VerticalPodAutoscaler",
        "verticalpodautoscalers",
    );
    let unit = |team: &str| vec![solo(team), vertical.clone(), kind.clone()];
    applier.deliver(&[("shop/web", unit("a"))]);
    applier.until_unit("shop/web", UnitState::Applied);
    let status = json!({"status": {"recommendation": {"containerRecommendations": [{"containerName": "web", "target": {"cpu": "250m"}}]}}});
    patch_as(&cluster, "recommender", "verticalpodautoscaler/solo", &status);
    let resize = json!({"spec": {"containers": [{"name": "web", "resources": {"requests": {"cpu": "250m", "memory": "64Mi"}}}]}});
    through(&cluster, "updater", "resize", "pod/solo", &resize);
    let cpu = "/spec/containers/0/resources/requests/cpu";
    wait::throughout(Duration::from_secs(5), "what it gave stays", || {
        let now = field(&cluster, "pod/solo", cpu);
        (now == "250m").then_some(()).ok_or_else(|| now.to_string())
    });
    applier.until_unit("shop/web", UnitState::Applied);
    applier.deliver(&[("shop/web", unit("b"))]);
    let report = applier.until_unit("shop/web", UnitState::Applied);
    assert_eq!(report.counts.drifted, 0, "{report:#?}");
    assert_eq!(field(&cluster, "pod/solo", "/metadata/labels/team"), "b");
    assert_eq!(field(&cluster, "pod/solo", cpu), "250m");
    assert!(!field(&cluster, "verticalpodautoscaler/solo", "/status").is_null());
    assert!(
        applier.report().corrections.are_none(),
        "{:?}",
        applier.report().corrections
    );
    applier.stop();
}

#[test]
fn an_ignored_field_is_made_once_and_then_left() {
    let cluster = cluster("ignored");
    let mut applier = Applier::start(&cluster, "ignored");
    let rule = |paths: &[&str], managers: &[&str]| IgnoreRule {
        kind: "ConfigMap".to_owned(),
        paths: paths.iter().map(|&path| path.to_owned()).collect(),
        managers: managers.iter().map(|&manager| manager.to_owned()).collect(),
        ..IgnoreRule::default()
    };
    let policy = ApplyPolicy {
        ignore: vec![rule(&["/data/filled"], &[]), rule(&[], &["filler"])],
        ..ApplyPolicy::default()
    };
    applier.govern("shop/web", policy);
    let settings = |kept: &str| {
        vec![
            json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "settings"},
            "data": {"filled": "", "kept": kept, "shared": "git"}}),
        ]
    };
    applier.deliver(&[("shop/web", settings("1"))]);
    applier.until_unit("shop/web", UnitState::Applied);
    assert_eq!(field(&cluster, "configmap/settings", "/data/filled"), "", "it is made");
    let patch = json!({"data": {"filled": "by a job", "kept": "by hand"}});
    patch_as(&cluster, "kubectl-edit", "configmap/settings", &patch);
    patch_as(
        &cluster,
        "filler",
        "configmap/settings",
        &json!({"data": {"shared": "filled"}}),
    );
    until_field(&cluster, "configmap/settings", "/data/kept", &json!("1"));
    applier.deliver(&[("shop/web", settings("2"))]);
    applier.until_unit("shop/web", UnitState::Applied);
    let expected = json!({"filled": "by a job", "kept": "2", "shared": "filled"});
    wait::throughout(Duration::from_secs(4), "what is ignored stays", || {
        let data = field(&cluster, "configmap/settings", "/data");
        (data == expected).then_some(()).ok_or_else(|| data.to_string())
    });
    applier.until_unit("shop/web", UnitState::Applied);
    applier.stop();
}
