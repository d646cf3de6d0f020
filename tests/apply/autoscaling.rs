//! Fields that are left to others: replicas of autoscalers, and what rules name.

use std::time::Duration;

use flotilla_tests::wait;
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
