use k8s_openapi::apimachinery::pkg::apis::meta::v1::FieldsV1;
use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::apply::FIELD_MANAGER;

fn entry(manager: &str, operation: &str, fields: Value) -> ManagedFieldsEntry {
    ManagedFieldsEntry {
        manager: Some(manager.to_owned()),
        operation: Some(operation.to_owned()),
        fields_v1: Some(FieldsV1(fields)),
        ..ManagedFieldsEntry::default()
    }
}

fn ours(fields: Value) -> ManagedFieldsEntry {
    entry(FIELD_MANAGER, "Apply", fields)
}

fn drift(sent: &Value, live: Live<'_>, managed: &[ManagedFieldsEntry]) -> Vec<FieldDrift> {
    super::drift(sent, live, managed, Basis::Applied)
}

#[track_caller]
fn check(sent: &Value, live: &Value, managed: &[ManagedFieldsEntry], expected: &[(&str, Value, Value, &str)]) {
    let found = drift(sent, Live::Whole(live), managed);
    let found: Vec<_> = found
        .iter()
        .map(|field| {
            let value = |value: &Option<Value>| value.clone().unwrap_or(Value::Null);
            (
                field.path.as_str(),
                value(&field.wanted),
                value(&field.found),
                field.manager.as_str(),
            )
        })
        .collect();
    assert_eq!(found, expected);
    let named = drift(sent, Live::Metadata, managed);
    for (path, ..) in expected {
        assert!(
            named
                .iter()
                .any(|field| path.starts_with(&field.path) || field.path.starts_with(path)),
            "{path} is not named by its metadata alone"
        );
    }
}

fn deployment() -> Value {
    json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web", "namespace": "shop",
            "labels": {"app": "web"}},
        "spec": {"replicas": 3, "selector": {"matchLabels": {"app": "web"}},
            "template": {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [
                {"name": "log", "image": "log:1"},
                {"name": "web", "image": "web:1", "args": ["a", "b"], "resources": {"limits": {"cpu": "1000m"}},
                    "ports": [{"containerPort": 80}]}]}}}})
}

fn owned_deployment() -> Value {
    json!({"f:metadata": {"f:labels": {"f:app": {}}},
        "f:spec": {"f:replicas": {}, "f:selector": {}, "f:template": {"f:metadata": {"f:labels": {"f:app": {}}},
            "f:spec": {"f:containers": {
                "k:{\"name\":\"log\"}": {".": {}, "f:name": {}, "f:image": {}},
                "k:{\"name\":\"web\"}": {".": {}, "f:name": {}, "f:image": {}, "f:args": {},
                    "f:resources": {"f:limits": {"f:cpu": {}}},
                    "f:ports": {"k:{\"containerPort\":80,\"protocol\":\"TCP\"}": {".": {}, "f:containerPort": {}}}}}}}}})
}

/// As the server would give it back: defaults filled in, a quantity written its own way, an injected container first.
fn live_deployment() -> Value {
    let mut live = deployment();
    live["spec"]["strategy"] = json!({"type": "RollingUpdate"});
    let containers = &mut live["spec"]["template"]["spec"]["containers"];
    containers[1]["resources"]["limits"]["cpu"] = "1".into();
    containers[1]["ports"][0]["protocol"] = "TCP".into();
    containers[1]["imagePullPolicy"] = "Always".into();
    containers
        .as_array_mut()
        .unwrap()
        .insert(0, json!({"name": "proxy", "image": "proxy:1"}));
    live
}

#[test]
fn what_the_server_or_others_add_is_no_drift() {
    let managed = [
        ours(owned_deployment()),
        entry(
            "injector",
            "Update",
            json!({"f:spec": {"f:template": {"f:spec":
        {"f:containers": {"k:{\"name\":\"proxy\"}": {".": {}, "f:image": {}}}}}}}),
        ),
    ];
    check(&deployment(), &live_deployment(), &managed, &[]);
}

#[test]
fn a_changed_field_of_a_list_item_is_named_where_git_has_it() {
    let mut live = live_deployment();
    live["spec"]["template"]["spec"]["containers"][2]["image"] = "web:2".into();
    let mut owned = owned_deployment();
    let web = &mut owned["f:spec"]["f:template"]["f:spec"]["f:containers"]["k:{\"name\":\"web\"}"];
    web.as_object_mut().unwrap().remove("f:image");
    let theirs = json!({"f:spec": {"f:template": {"f:spec": {"f:containers":
        {"k:{\"name\":\"web\"}": {"f:image": {}}}}}}});
    let managed = [entry("kubectl-set", "Update", theirs), ours(owned)];
    let path = "/spec/template/spec/containers/1/image";
    check(
        &deployment(),
        &live,
        &managed,
        &[(path, json!("web:1"), json!("web:2"), "kubectl-set")],
    );
}

#[test]
fn a_removed_item_label_or_map_is_named_once_with_what_was_wanted() {
    let mut live = live_deployment();
    live["spec"]["template"]["spec"]["containers"]
        .as_array_mut()
        .unwrap()
        .remove(1);
    live["metadata"].as_object_mut().unwrap().remove("labels");
    let mut owned = owned_deployment();
    owned["f:spec"]["f:template"]["f:spec"]["f:containers"]
        .as_object_mut()
        .unwrap()
        .remove("k:{\"name\":\"log\"}");
    owned.as_object_mut().unwrap().remove("f:metadata");
    check(
        &deployment(),
        &live,
        &[ours(owned)],
        &[
            ("/metadata/labels", json!({"app": "web"}), Value::Null, ""),
            (
                "/spec/template/spec/containers/0",
                json!({"name": "log", "image": "log:1"}),
                Value::Null,
                "",
            ),
        ],
    );
}

#[test]
fn free_form_parts_are_compared_at_any_depth() {
    let sent = json!({"apiVersion": "x.io/v1", "kind": "Widget", "metadata": {"name": "w"},
        "spec": {"config": {"level": 3, "a/b": {"~c": true}, "list": [1, 2]}}});
    let mut live = sent.clone();
    live["spec"]["config"] = json!({"level": 2, "a/b": {"~c": false}, "list": [2, 1]});
    let theirs = json!({"f:spec": {"f:config": {"f:level": {}, "f:a/b": {"f:~c": {}}, "f:list": {}}}});
    check(
        &sent,
        &live,
        &[entry("kubectl-edit", "Update", theirs)],
        &[
            ("/spec/config/a~1b/~0c", json!(true), json!(false), "kubectl-edit"),
            ("/spec/config/level", json!(3), json!(2), "kubectl-edit"),
            ("/spec/config/list", json!([1, 2]), json!([2, 1]), "kubectl-edit"),
        ],
    );
}

#[test]
fn an_empty_bundle_that_an_injector_fills_is_a_difference_with_its_name() {
    let webhook = |config: Value| {
        json!({"apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingWebhookConfiguration", "metadata": {"name": "v"},
        "webhooks": [{"name": "a.b.c", "clientConfig": config}]})
    };
    let live = webhook(json!({"caBundle": "eA==", "url": "https://x"}));
    let theirs = entry(
        "injector",
        "Update",
        json!({"f:webhooks": {"k:{\"name\":\"a.b.c\"}":
        {"f:clientConfig": {"f:caBundle": {}}}}}),
    );
    let owned = ours(json!({"f:webhooks": {"k:{\"name\":\"a.b.c\"}": {".": {}, "f:name": {},
        "f:clientConfig": {"f:url": {}}}}}));
    let managed = [owned, theirs];
    check(&webhook(json!({"url": "https://x"})), &live, &managed, &[]);
    check(
        &webhook(json!({"caBundle": "", "url": "https://x"})),
        &live,
        &managed,
        &[(
            "/webhooks/0/clientConfig/caBundle",
            json!(""),
            json!("eA=="),
            "injector",
        )],
    );
}

#[test]
fn a_secrets_values_are_never_told_and_its_plain_form_is_what_it_becomes() {
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "db", "labels": {"a": "b"}},
        "stringData": {"token": "hunter2"}, "data": {"pin": "Nw=="}});
    let live = json!({"metadata": {"labels": {"a": "c"}}, "data": {"token": "aHVudGVyMg==", "pin": "OA=="}});
    let found = drift(&secret, Live::Whole(&live), &[]);
    let paths: Vec<_> = found.iter().map(|field| (field.path.as_str(), field.hidden)).collect();
    assert_eq!(paths, [("/data/pin", true), ("/metadata/labels/a", false)]);
    let told = format!("{found:?}");
    for value in ["hunter2", "aHVudGVyMg", "Nw==", "OA=="] {
        assert!(!told.contains(value), "{value} is in {told}");
    }
}

#[test]
fn long_values_are_left_out_and_their_path_is_kept() {
    let map =
        |text: &str| json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"a": text}});
    let found = drift(&map("short"), Live::Whole(&map(&"x".repeat(1_000))), &[]);
    assert!(
        found[0].hidden && found[0].found.is_none() && found[0].path == "/data/a",
        "{found:?}"
    );
}

#[test]
fn members_of_a_set_are_compared_one_by_one() {
    let sent =
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "finalizers": ["x/a", "x/b"]}});
    let live = json!({"metadata": {"finalizers": ["y/c", "x/b"]}});
    let managed = [ours(json!({"f:metadata": {"f:finalizers": {"v:\"x/b\"": {}}}}))];
    check(
        &sent,
        &live,
        &managed,
        &[("/metadata/finalizers/0", json!("x/a"), Value::Null, "")],
    );
}

/// Free-form values: what a custom resource may hold.
fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        any::<bool>().prop_map(Value::from),
        (0..5_u8).prop_map(Value::from),
        "[a-c]{1,3}".prop_map(Value::from)
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        prop::collection::btree_map("[a-d/~]{1,2}", inner, 1..4)
            .prop_map(|fields| Value::Object(fields.into_iter().collect()))
    })
}

fn object(spec: &Value) -> Value {
    json!({"apiVersion": "x.io/v1", "kind": "Widget", "metadata": {"name": "w"}, "spec": spec})
}

/// The fields of a value, in the form FieldsV1.
fn owned(value: &Value) -> Value {
    match value {
        Value::Object(fields) => fields
            .iter()
            .map(|(name, value)| (format!("f:{name}"), owned(value)))
            .collect(),
        _ => json!({}),
    }
}

/// Puts defaults beside every field.
fn with_defaults(value: &Value) -> Value {
    match value {
        Value::Object(fields) => {
            let mut fields: Map<_, _> = fields
                .iter()
                .map(|(name, value)| (name.clone(), with_defaults(value)))
                .collect();
            fields.insert("defaulted".to_owned(), "TCP".into());
            Value::Object(fields)
        }
        _ => value.clone(),
    }
}

proptest! {
    #[test]
    fn what_is_as_it_was_sent_has_no_drift_whatever_was_filled_in_beside_it(spec in value()) {
        let live = object(&with_defaults(&spec));
        let managed = [ours(json!({"f:spec": owned(&spec)}))];
        prop_assert_eq!(drift(&object(&spec), Live::Whole(&live), &managed), []);
        prop_assert_eq!(drift(&object(&spec), Live::Metadata, &managed), []);
        // Also without the book: a server that lost it makes no differences.
        prop_assert_eq!(drift(&object(&spec), Live::Whole(&live), &[]), []);
    }

    #[test]
    fn every_difference_has_a_path_with_both_values_and_accepting_them_ends_it(sent in value(), live in value()) {
        let (sent, live) = (object(&json!({"a": sent})), object(&json!({"a": live})));
        let found = drift(&sent, Live::Whole(&live), &[]);
        let mut accepted = sent.clone();
        for field in &found {
            prop_assert_eq!(sent.pointer(&field.path), field.wanted.as_ref());
            prop_assert!(field.wanted != field.found);
            match &field.found {
                Some(value) => *accepted.pointer_mut(&field.path).unwrap() = value.clone(),
                None => remove(&mut accepted, &field.path),
            }
        }
        prop_assert_eq!(drift(&accepted, Live::Whole(&live), &[]), []);
    }
}

fn remove(object: &mut Value, path: &str) {
    let (parent, name) = path.rsplit_once('/').unwrap();
    let name = name.replace("~1", "/").replace("~0", "~");
    object
        .pointer_mut(parent)
        .unwrap()
        .as_object_mut()
        .unwrap()
        .remove(&name);
}

#[test]
fn what_git_says_anew_differs_also_where_the_old_value_is_ours() {
    let map = |level: &str| json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"level": level}});
    let managed = [ours(json!({"f:data": {"f:level": {}}}))];
    assert_eq!(drift(&map("4"), Live::Whole(&map("3")), &managed), []);
    let found = super::drift(&map("4"), Live::Whole(&map("3")), &managed, Basis::Another);
    assert_eq!((found.len(), found[0].path.as_str()), (1, "/data/level"));
}
