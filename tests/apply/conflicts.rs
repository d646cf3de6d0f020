//! Fields that somebody else changed, or has: what is put right, what is refused, what is only reported.

use std::time::Duration;

use flotilla_tests::{ControlPlane, eventually, wait};
use reconciler::wire::{ObjectState, UnitState};
use render::ObjectKey;
use render::model::{ApplyPolicy, DriftMode, SuspendedObject};
use serde_json::{Value, json};

use super::delivery::*;

fn settings(data: &Value) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "settings"}, "data": data})
}

#[track_caller]
fn data(cluster: &ControlPlane) -> Value {
    field(cluster, "configmap/settings", "/data")
}

#[test]
fn a_field_that_git_newly_claims_is_refused_and_the_rest_is_applied() {
    let cluster = cluster("claimed");
    let mut applier = Applier::start(&cluster, "claimed");
    let other = || config_map("default", "other", "1");
    applier.deliver(&[("shop/web", vec![settings(&json!({"value": "1"}))])]);
    applier.until_unit("shop/web", UnitState::Applied);
    patch_as(
        &cluster,
        "somebody",
        "configmap/settings",
        &json!({"data": {"extra": "theirs"}}),
    );
    let claimed = || vec![settings(&json!({"value": "2", "extra": "ours"})), other()];
    applier.deliver(&[("shop/web", claimed())]);
    let report = applier.until_unit("shop/web", UnitState::Failed);
    let conflict = result(&report, "settings");
    assert_eq!(conflict.state, ObjectState::Conflict);
    assert!(
        conflict.message.contains("\"somebody\"") && conflict.message.contains(".data.extra"),
        "{}",
        conflict.message
    );
    let applied = json!({"value": "2", "extra": "theirs"});
    assert_eq!(data(&cluster), applied, "the rest of the object is applied");
    assert!(cluster.has("default", "configmap/other"), "other objects go on");
    // It stays refused: at the next tries, and for a process that knows nothing of the first.
    wait::throughout(Duration::from_secs(3), "it stays theirs", || {
        (data(&cluster) == applied)
            .then_some(())
            .ok_or_else(|| data(&cluster).to_string())
    });
    applier.stop();
    let mut applier = Applier::start(&cluster, "claimed-again");
    applier.deliver(&[("shop/web", claimed())]);
    let report = applier.until_unit("shop/web", UnitState::Failed);
    assert_eq!(result(&report, "settings").state, ObjectState::Conflict);
    assert_eq!(data(&cluster), applied);
    // What was applied is put right meanwhile, also beside a refused field.
    patch_as(
        &cluster,
        "somebody",
        "configmap/settings",
        &json!({"data": {"value": "3"}}),
    );
    until_field(&cluster, "configmap/settings", "/data", &applied);
    // Suspended, it is left as it is, which is not what Git says.
    let suspended = SuspendedObject {
        object: ObjectKey::new("v1", "ConfigMap", "default", "settings"),
        clusters: Vec::new(),
        until: None,
        by: "Suspension fair".to_owned(),
    };
    let policy = ApplyPolicy {
        suspended: vec![suspended],
        ..ApplyPolicy::default()
    };
    applier.govern("shop/web", policy);
    applier.deliver(&[("shop/web", claimed())]);
    applier.until("it is not as Git says", |report| {
        let mut units = report.units.values();
        units.all(|unit| (unit.counts.suspended, unit.counts.behind) == (1, 1))
    });
    applier.govern("shop/web", ApplyPolicy::default());
    // Git lets it be.
    applier.deliver(&[("shop/web", vec![settings(&json!({"value": "2"})), other()])]);
    applier.until_unit("shop/web", UnitState::Applied);
    assert_eq!(data(&cluster), applied);
    applier.stop();
}

#[test]
fn a_field_changed_by_hand_or_by_a_controller_is_put_right() {
    let cluster = cluster("corrected");
    let mut applier = Applier::start(&cluster, "corrected");
    let text = "a: 1\nb: |\n  *** \u{fc}\n";
    let definition = json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "frees.example.org"},
        "spec": {"group": "example.org", "scope": "Namespaced",
            "names": {"kind": "Free", "listKind": "FreeList", "plural": "frees", "singular": "free"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {"type": "object",
                "properties": {"spec": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}}}}]}});
    let free = json!({"apiVersion": "example.org/v1", "kind": "Free", "metadata": {"name": "free", "labels": {"a": "1"}},
        "spec": {"config": {"deep": {"level": 3}, "list": ["a", "b"]}}});
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "secret"},
        "stringData": {"config": "line 1\nline 2\n"}});
    let unit = vec![
        deployment("default", "web", 0),
        settings(&json!({"config.yaml": text, "a": "1"})),
        secret,
        definition,
        free,
    ];
    applier.deliver(&[("shop/web", unit)]);
    applier.until_unit("shop/web", UnitState::Applied);
    let image = "/spec/template/spec/containers/0/image";
    cluster
        .kubectl(&["set", "image", "deployment/web", "web=registry.example/web:bad"])
        .expect_ok();
    until_field(&cluster, "deployment/web", image, &json!("registry.example/web:1"));
    for manager in ["kubectl-edit", "operator"] {
        let changed = json!({"data": {"config.yaml": "***", "a": "2"}});
        patch_as(&cluster, manager, "configmap/settings", &changed);
        until_field(&cluster, "configmap/settings", "/data/config.yaml", &json!(text));
        until_field(&cluster, "configmap/settings", "/data/a", &json!("1"));
        let changed =
            json!({"metadata": {"labels": {"a": "2"}}, "spec": {"config": {"deep": {"level": 2}, "list": ["a"]}}});
        patch_as(&cluster, manager, "frees.example.org/free", &changed);
        until_field(&cluster, "frees.example.org/free", "/spec/config/deep/level", &json!(3));
        until_field(
            &cluster,
            "frees.example.org/free",
            "/spec/config/list",
            &json!(["a", "b"]),
        );
        until_field(&cluster, "frees.example.org/free", "/metadata/labels/a", &json!("1"));
        patch_as(&cluster, manager, "secret/secret", &json!({"data": {"config": "eA=="}}));
        until_field(
            &cluster,
            "secret/secret",
            "/data/config",
            &json!("bGluZSAxCmxpbmUgMgo="),
        );
    }
    applier.until_unit("shop/web", UnitState::Applied);
    let report = format!("{:?}", applier.report());
    assert!(!report.contains("line 1"), "a secret's value is in {report}");
    applier.stop();
}

#[test]
fn a_change_by_hand_does_not_outlive_an_agent_that_is_away() {
    let cluster = cluster("changed-away");
    let mut applier = Applier::start(&cluster, "away");
    applier.deliver(&[("shop/web", vec![deployment("default", "web", 0)])]);
    applier.until_unit("shop/web", UnitState::Applied);
    applier.stop();
    cluster
        .kubectl(&["set", "image", "deployment/web", "web=registry.example/web:bad"])
        .expect_ok();
    // Git changes it too, while nobody remembers what was applied.
    let mut changed = deployment("default", "web", 0);
    changed["spec"]["template"]["spec"]["containers"][0]["image"] = "registry.example/web:2".into();
    let mut applier = Applier::start(&cluster, "back");
    applier.deliver(&[("shop/web", vec![changed])]);
    applier.until_unit("shop/web", UnitState::Applied);
    let image = field(&cluster, "deployment/web", "/spec/template/spec/containers/0/image");
    assert_eq!(image, "registry.example/web:2");
    applier.stop();
}

#[test]
fn nothing_is_forced_where_differences_are_reported() {
    let cluster = cluster("reported");
    let mut applier = Applier::start(&cluster, "reported");
    applier.change_drift_mode(DriftMode::Report);
    let unit = |a: &str, b: &str| vec![settings(&json!({"a": a, "b": b}))];
    applier.deliver(&[("shop/web", unit("1", "1"))]);
    applier.until_unit("shop/web", UnitState::Applied);
    patch_as(
        &cluster,
        "kubectl-edit",
        "configmap/settings",
        &json!({"data": {"a": "hand"}}),
    );
    wait::throughout(Duration::from_secs(5), "it stays as it was changed", || {
        let data = data(&cluster);
        (data["a"] == "hand").then_some(()).ok_or_else(|| data.to_string())
    });
    applier.until_unit("shop/web", UnitState::Applied);
    // What Git changes is applied all the same.
    applier.deliver(&[("shop/web", unit("1", "2"))]);
    applier.until_unit("shop/web", UnitState::Applied);
    assert_eq!(data(&cluster), json!({"a": "hand", "b": "2"}));
    applier.change_drift_mode(DriftMode::Correct);
    applier.deliver(&[("shop/web", unit("1", "3"))]);
    until_field(&cluster, "configmap/settings", "/data", &json!({"a": "1", "b": "3"}));
    applier.stop();
}

#[test]
fn nothing_of_a_frozen_unit_is_written() {
    let cluster = cluster("frozen");
    let mut applier = Applier::start(&cluster, "frozen");
    let unit = |value: &str| vec![config_map("default", "settings", value)];
    let leaving = config_map("default", "leaving", "1");
    applier.deliver(&[("shop/web", [unit("1"), vec![leaving]].concat())]);
    applier.until_unit("shop/web", UnitState::Applied);
    applier.change_drift_mode(DriftMode::Freeze);
    applier.deliver(&[("shop/web", unit("2"))]);
    applier.until_unit("shop/web", UnitState::Applied);
    // What leaves is looked at after what is there.
    let report = applier.until("what leaves is kept", |report| {
        let unit = report.units.get(&unit_key("shop/web"));
        let mut worst = unit.into_iter().flat_map(|unit| &unit.worst);
        worst.any(|result| result.object.name == "leaving" && result.state == ObjectState::Kept)
    });
    let report = &report.units[&unit_key("shop/web")];
    assert_eq!(result(report, "settings").state, ObjectState::Suspended, "{report:#?}");
    assert_eq!(report.counts.suspended, 1);
    assert_eq!(field(&cluster, "configmap/settings", "/data/value"), "1");
    assert!(cluster.has("default", "configmap/leaving"));
    applier.change_drift_mode(DriftMode::Correct);
    applier.deliver(&[("shop/web", unit("2"))]);
    until_field(&cluster, "configmap/settings", "/data/value", &json!("2"));
    applier.stop();
}

#[test]
fn what_others_add_stays_and_is_no_difference() {
    let cluster = cluster("injected");
    let mut applier = Applier::start(&cluster, "injected");
    let hook = json!({"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": "nothing"}, "webhooks": [{"name": "x.example.org", "sideEffects": "None",
            "admissionReviewVersions": ["v1"], "failurePolicy": "Ignore",
            "clientConfig": {"url": "https://127.0.0.1:1/"},
            "rules": [{"apiGroups": ["none.example.org"], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["none"]}]}]});
    applier.deliver(&[("shop/web", vec![hook])]);
    applier.until_unit("shop/web", UnitState::Applied);
    // Any certificate will do, and every cluster has one.
    let bundle = authority(&cluster);
    let patch = json!([{"op": "add", "path": "/webhooks/0/clientConfig/caBundle", "value": bundle}]).to_string();
    let hook = "validatingwebhookconfiguration/nothing";
    cluster
        .kubectl(&["patch", hook, "--type=json", "--field-manager=injector", "-p", &patch])
        .expect_ok();
    let version = field(&cluster, hook, "/metadata/resourceVersion");
    // Two comparisons of unchanged objects.
    wait::throughout(Duration::from_secs(5), "nothing is written", || {
        let now = field(&cluster, hook, "/metadata/resourceVersion");
        (now == version).then_some(()).ok_or_else(|| now.to_string())
    });
    assert_eq!(field(&cluster, hook, "/webhooks/0/clientConfig/caBundle"), bundle);
    applier.until_unit("shop/web", UnitState::Applied);
    applier.stop();
}

/// The certificate of the cluster's own authority, in base64.
fn authority(cluster: &ControlPlane) -> Value {
    use base64::Engine as _;
    let authority = eventually(wait::LONG, "the cluster has told its authority", || {
        cluster.get("default", "configmap/kube-root-ca.crt")
    });
    let pem = &authority["data"]["ca.crt"];
    base64::engine::general_purpose::STANDARD
        .encode(pem.as_str().unwrap())
        .into()
}
