//! What waits for what: units and objects, on the way in and on the way out.

use flotilla_tests::{ControlPlane, Options, three_clusters};
use reconciler::wire::{Health, ObjectState, UnitReport, UnitState};
use render::model::{ApplyPolicy, Dependency};
use serde_json::{Value, json};

use super::delivery::*;

fn needing(unit: &str) -> ApplyPolicy {
    ApplyPolicy {
        depends_on: vec![Dependency {
            unit: unit_key(unit),
            clusters: Default::default(),
        }],
        ..ApplyPolicy::default()
    }
}

/// A Deployment that no node has room for.
fn too_large(namespace: &str, name: &str) -> Value {
    let mut deployment = deployment(namespace, name, 1);
    deployment["spec"]["template"]["spec"]["containers"][0]["resources"] = json!({"requests": {"cpu": "64"}});
    deployment
}

/// Waits until a unit says this of itself.
#[track_caller]
fn until_said(applier: &Applier, unit: &str, words: &str) -> UnitReport {
    let key = unit_key(unit);
    let report = applier.until(&format!("{unit} says {words:?}"), |report| {
        report.units.get(&key).is_some_and(|unit| unit.message.contains(words))
    });
    report.units[&key].clone()
}

#[test]
fn a_unit_waits_for_the_unit_that_it_needs_and_that_is_no_failure() {
    let clusters = three_clusters();
    let cluster = &clusters[0];
    let mut applier = Applier::start(cluster, "waits");
    applier.govern("shop/web", needing("infra/db"));
    let web = || ("shop/web", vec![config_map("default", "web", "1")]);
    let other = || ("shop/other", vec![config_map("default", "other", "1")]);
    applier.deliver(&[("infra/db", vec![too_large("default", "db")]), web(), other()]);
    let said = until_said(&applier, "shop/web", "waits for infra/db");
    assert_eq!(
        (said.state, said.counts.failed, said.counts.waiting),
        (UnitState::Waiting, 0, 1)
    );
    applier.until_unit("shop/other", UnitState::Applied);
    assert!(!cluster.has("default", "configmap/web"), "it was not applied too early");
    applier.deliver(&[("infra/db", vec![deployment("default", "db", 1)]), web(), other()]);
    let done = applier.until_unit("shop/web", UnitState::Applied);
    assert_eq!(done.message, "");
    // What it needs goes bad again: what was applied is kept as it is, also against changes by hand.
    applier.deliver(&[("infra/db", vec![too_large("default", "db")]), web(), other()]);
    applier.until("the database is on its way again", |report| {
        report.units[&unit_key("infra/db")].health != Health::Current
    });
    cluster.kubectl(&["delete", "configmap", "web"]).expect_ok();
    flotilla_tests::eventually(flotilla_tests::wait::LONG, "it is there again", || {
        cluster.get("default", "configmap/web")
    });
    applier.stop();
}

#[test]
fn a_unit_is_blocked_by_one_that_failed_which_says_why_in_the_servers_own_words() {
    let cluster = cluster("blocked");
    let mut applier = Applier::start(&cluster, "blocked");
    applier.govern("shop/web", needing("infra/db"));
    applier.govern("shop/page", needing("shop/web"));
    let mut wrong = config_map("default", "db", "1");
    wrong["data"] = json!({"value": {"a": "map"}});
    let rest = || {
        [
            ("shop/web", vec![config_map("default", "web", "1")]),
            ("shop/page", vec![config_map("default", "page", "1")]),
        ]
    };
    let [web, page] = rest();
    let whole = config_map("default", "whole", "1");
    applier.deliver(&[("infra/db", vec![whole.clone(), wrong]), web, page]);
    let web = until_said(&applier, "shop/web", "blocked by infra/db (failed)");
    assert_eq!(
        (web.state, web.worst[0].state, web.counts.failed),
        (UnitState::Waiting, ObjectState::Blocked, 0)
    );
    until_said(&applier, "shop/page", "blocked by shop/web (blocked)");
    let failed = applier.until_unit("infra/db", UnitState::Failed);
    assert!(
        failed.message.starts_with("ConfigMap default/db: ") && failed.message.contains("data"),
        "{}",
        failed.message
    );
    assert!(
        cluster.has("default", "configmap/whole"),
        "what does not need it is applied"
    );
    let [web, page] = rest();
    applier.deliver(&[("infra/db", vec![whole, config_map("default", "db", "1")]), web, page]);
    applier.until_unit("shop/page", UnitState::Applied);
    applier.stop();
}

#[test]
fn definitions_of_one_unit_and_resources_of_another_come_in_one_push() {
    let cluster = cluster("two-units");
    let mut applier = Applier::start(&cluster, "two-units");
    applier.govern("shop/web", needing("infra/crds"));
    applier.deliver(&[
        ("shop/web", vec![widget("default", "w")]),
        ("infra/crds", vec![widgets()]),
    ]);
    applier.until_unit("shop/web", UnitState::Applied);
    assert!(cluster.has("default", "widget/w"));
    applier.stop();
}

#[test]
fn an_object_waits_for_the_object_that_it_names_in_its_unit_and_in_another() {
    let clusters = three_clusters();
    let cluster = &clusters[0];
    let mut applier = Applier::start(cluster, "objects");
    let late = |name: &str, annotation: &str, needed: &str| {
        let mut late = config_map("default", name, "1");
        late["metadata"]["annotations"] = json!({annotation: needed});
        late
    };
    let units = |early: Value| {
        let within = late(
            "within",
            "fleet.flotilla.dev/depends-on",
            "apps/Deployment/default/early",
        );
        let across = late(
            "across",
            "config.kubernetes.io/depends-on",
            "apps/namespaces/default/Deployment/early",
        );
        let absent = late(
            "absent",
            "fleet.flotilla.dev/depends-on",
            "/ConfigMap/default/elsewhere",
        );
        [("shop/web", vec![early, within, absent]), ("shop/other", vec![across])]
    };
    applier.deliver(&units(too_large("default", "early")));
    let said = until_said(
        &applier,
        "shop/other",
        "ConfigMap default/across: waits for Deployment default/early",
    );
    assert_eq!(said.state, UnitState::Waiting);
    until_said(&applier, "shop/web", "waits for Deployment default/early");
    assert!(
        cluster.has("default", "configmap/absent"),
        "what is in no delivery is not waited for"
    );
    assert!(!cluster.has("default", "configmap/within") && !cluster.has("default", "configmap/across"));
    applier.deliver(&units(deployment("default", "early", 1)));
    applier.until_unit("shop/web", UnitState::Applied);
    applier.until_unit("shop/other", UnitState::Applied);
    applier.stop();
}

#[test]
fn what_leaves_together_leaves_in_reverse() {
    let cluster = cluster("reverse");
    let mut applier = Applier::start(&cluster, "reverse");
    applier.govern("shop/web", needing("infra/base"));
    let mut web = config_map("default", "web", "1");
    web["metadata"]["finalizers"] = json!(["example.org/held"]);
    applier.deliver(&[
        ("infra/base", vec![config_map("default", "base", "1")]),
        ("shop/web", vec![web]),
    ]);
    applier.until_unit("shop/web", UnitState::Applied);
    applier.deliver(&[]);
    applier.until("the base waits", |report| {
        let base = report.units.get(&unit_key("infra/base"));
        base.is_some_and(|base| {
            base.worst
                .iter()
                .any(|object| object.message == "waits until shop/web, which needs it, is gone")
        })
    });
    assert!(cluster.has("default", "configmap/base"));
    cluster
        .kubectl(&[
            "patch",
            "configmap",
            "web",
            "--type=merge",
            "--patch",
            r#"{"metadata":{"finalizers":null}}"#,
        ])
        .expect_ok();
    applier.until_gone("shop/web");
    applier.until_gone("infra/base");
    assert!(!cluster.has("default", "configmap/base"));
    applier.stop();
}

/// Notes every request, without what is in it.
const AUDIT_POLICY: &str = "apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules: [{level: Metadata}]
";

#[test]
fn one_push_from_empty_follows_the_order_whatever_files_are_called_and_meets_no_refusal() {
    let folder = flotilla_tests::scratch::folder("audit");
    let (policy, log) = (folder.join("policy.yaml"), folder.join("audit.log"));
    std::fs::write(&policy, AUDIT_POLICY).expect("the scratch folder is writable");
    let options = Options {
        apiserver_flags: vec![
            format!("--audit-policy-file={}", policy.display()),
            format!("--audit-log-path={}", log.display()),
        ],
        ..Options::default()
    };
    let cluster = ControlPlane::start("audited", options);
    let mut applier = Applier::start(&cluster, "audited");
    let named = |api_version: &str, kind: &str, name: &str, namespace: Option<&str>| {
        let mut object = json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": name}});
        if let Some(namespace) = namespace {
            object["metadata"]["namespace"] = namespace.into();
        }
        object
    };
    let mut hook = named(
        "admissionregistration.k8s.io/v1",
        "ValidatingWebhookConfiguration",
        "a-hook",
        None,
    );
    hook["webhooks"] = json!([]);
    let mut role = named("rbac.authorization.k8s.io/v1", "ClusterRole", "z-role", None);
    role["rules"] = json!([]);
    let mut claim = named("v1", "PersistentVolumeClaim", "a-claim", Some("team"));
    claim["spec"] = json!({"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}});
    let objects = vec![
        named("v1", "Secret", "a-secret", Some("team")),
        deployment("team", "a-web", 0),
        widget("team", "a-widget"),
        hook,
        claim,
        named("v1", "ServiceAccount", "z-account", Some("team")),
        role,
        widgets(),
        named("v1", "Namespace", "team", None),
    ];
    applier.deliver(&[("team/app", objects)]);
    applier.until_unit("team/app", UnitState::Applied);
    applier.stop();
    let lines = std::fs::read_to_string(&log).expect("the API server wrote its log");
    let mut order: Vec<String> = Vec::new();
    for line in lines.lines() {
        let event: Value = serde_json::from_str(line).expect("each line is an event");
        let uri = event["requestURI"].as_str().unwrap_or_default();
        let resource = event["objectRef"]["resource"].as_str().unwrap_or_default().to_owned();
        if !uri.contains("fieldManager=flotilla") || event["objectRef"]["namespace"] == "flotilla-system" {
            continue;
        }
        let code = event["responseStatus"]["code"].as_i64().unwrap_or_default();
        assert!((200..300).contains(&code), "{resource} was refused with {code}: {line}");
        if !order.contains(&resource) {
            order.push(resource);
        }
    }
    let stages: [&[&str]; 8] = [
        &["namespaces"],
        &["customresourcedefinitions"],
        &["clusterroles", "serviceaccounts"],
        &["secrets"],
        &["persistentvolumeclaims"],
        &["deployments"],
        &["widgets"],
        &["validatingwebhookconfigurations"],
    ];
    let stage = |resource: &String| stages.iter().position(|stage| stage.contains(&resource.as_str()));
    let walked: Vec<_> = order.iter().map(|resource| stage(resource).expect(resource)).collect();
    assert!(walked.is_sorted() && order.len() == 9, "{order:?}");
}
