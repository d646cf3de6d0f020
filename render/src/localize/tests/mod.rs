//! What overrides make of objects.

mod order;

use std::sync::Arc;

use serde_json::{Value, json};

use super::*;
use crate::describe::{CarriedStep, Content, DescribedObject};
use crate::finding::Finding;
use crate::fixture::{base, encrypted, globalization, localization, step};
use crate::fleet::Base;
use crate::model::{Dividing, FieldFormat, OverrideStep, OverrideStepType, Scheduling};
use crate::name::ObjectKey;
use crate::schedule::Divided;

const JSON_PATCH: OverrideStepType = OverrideStepType::JsonPatch;
const MERGE: OverrideStepType = OverrideStepType::MergePatch;
const HELM: OverrideStepType = OverrideStepType::Helm;

fn field_merge(pointer: &str, format: FieldFormat) -> OverrideStepType {
    OverrideStepType::FieldMergePatch {
        field_path: pointer.to_owned(),
        format,
    }
}

fn field_json(pointer: &str, format: FieldFormat) -> OverrideStepType {
    OverrideStepType::FieldJsonPatch {
        field_path: pointer.to_owned(),
        format,
    }
}

fn chart_step(value: &str) -> OverrideStep {
    OverrideStep {
        override_chart: true,
        ..step(HELM, value)
    }
}

fn config(data: Value) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "web"}, "data": data})
}

fn deployment(spec: Value) -> Value {
    json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "spec": spec})
}

fn chart(spec: Value) -> Value {
    json!({"apiVersion": "apps.clusternet.io/v1alpha1", "kind": "HelmChart", "metadata": {"name": "db"}, "spec": spec})
}

/// Localizes one object with one Localization of these steps.
fn how(divided: bool) -> Divided {
    let subscription = crate::fixture::subscription(Scheduling::Dividing(Dividing::Static), Vec::new());
    if divided {
        Divided::of(&subscription)
    } else {
        Divided::none()
    }
}

fn run(object: Value, steps: Vec<OverrideStep>, divided: bool) -> Result<DescribedObject, Box<Finding>> {
    let base = base([object]);
    let meets = Arc::new(localization("local", &base.objects[0].key, steps));
    match localize(&base, &[&meets], &how(divided)) {
        Ok(mut description) => Ok(description.objects.remove(0)),
        Err(mut findings) => Err(Box::new(findings.remove(0))),
    }
}

fn plain(object: &DescribedObject) -> &Value {
    match &object.content {
        Content::Chart { object, .. } | Content::Plain { object } => object,
        Content::Encrypted { .. } => unreachable!("the object is not encrypted"),
    }
}

#[track_caller]
fn check(object: Value, steps: Vec<OverrideStep>, expected: Value) {
    let described = run(object, steps, false).expect("the override fits");
    assert_eq!(*plain(&described), expected);
}

#[track_caller]
fn check_refused(object: Value, steps: Vec<OverrideStep>, reason: &str, problem: &str) {
    let finding = run(object, steps, true).expect_err("the override does not fit");
    assert_eq!(finding.reason, reason, "{finding}");
    assert!(finding.message.ends_with(problem), "{finding}");
    assert!(!finding.to_string().contains("s3cret"), "a value is told: {finding}");
    assert_eq!((finding.file.as_str(), finding.line), ("local.yaml", 7));
}

#[test]
fn steps_apply_in_list_order_each_on_the_outcome_of_the_one_before() {
    let steps = vec![
        step(MERGE, "data: {a: one}"),
        step(
            JSON_PATCH,
            r#"[{"op": "test", "path": "/data/a", "value": "one"}, {"op": "add", "path": "/data/b", "value": "two"}]"#,
        ),
        step(MERGE, "{\"data\": {\"a\": null}}"),
    ];
    check(config(json!({"c": "0"})), steps, config(json!({"b": "two", "c": "0"})));
}

#[test]
fn a_blank_value_does_nothing() {
    let steps = ["", "  \n", "# later", "null"].map(|value| step(MERGE, value)).to_vec();
    check(config(json!({"a": "b"})), steps, config(json!({"a": "b"})));
}

#[test]
fn a_value_that_does_not_fit_its_type_is_refused() {
    let refused = |step_type, value, reason, problem| {
        check_refused(config(json!({})), vec![step(step_type, value)], reason, problem);
    };
    refused(MERGE, "[]", "OverrideInvalid", "its value is not a mapping");
    refused(MERGE, "s3cret", "OverrideInvalid", "its value is not a mapping");
    refused(
        JSON_PATCH,
        "{}",
        "OverrideInvalid",
        "its value is not a list of operations",
    );
    refused(
        MERGE,
        "a: b\n---\nc: d",
        "OverrideUnreadable",
        "its value is more than one document",
    );
    refused(HELM, "{a: b}", "OverrideDoesNotFit", "type Helm is for HelmCharts");
    let field = || field_merge("/data/a", FieldFormat::Yaml);
    refused(field(), "[s3cret]", "OverrideInvalid", "its value is not a mapping");
    refused(
        field(),
        "{a: b}",
        "OverrideDoesNotFit",
        "the object has no field /data/a",
    );
}

#[test]
fn a_value_that_is_not_yaml_is_refused_without_being_told() {
    let finding = run(config(json!({})), vec![step(MERGE, "a: [s3cret")], false).expect_err("it is not YAML");
    assert_eq!(finding.reason, "OverrideUnreadable");
    assert!(!finding.to_string().contains("s3cret"), "{finding}");
}

#[test]
fn a_failing_step_is_told_with_override_step_object_and_path() {
    let mut bad = step(
        JSON_PATCH,
        r#"[{"op": "replace", "path": "/data/a", "value": "s3cret"}]"#,
    );
    bad.name = "address".to_owned();
    let finding = run(deployment(json!({})), vec![step(MERGE, ""), bad], false).expect_err("the path is missing");
    assert_eq!(
        finding.message,
        "step 2 (address) of Localization a/local does not fit Deployment web: operation 1 does not find /data/a"
    );
    assert_eq!(finding.field, "spec.overrides[1]");
}

#[test]
fn one_object_that_does_not_fit_leaves_no_partial_outcome() {
    let base = base([config(json!({})), deployment(json!({}))]);
    let steps = || vec![step(JSON_PATCH, r#"[{"op": "remove", "path": "/data/a"}]"#)];
    let overrides = [0, 1].map(|index| Arc::new(localization("local", &base.objects[index].key, steps())));
    let overrides: Vec<_> = overrides.iter().collect();
    let findings = localize(&base, &overrides, &Divided::none()).expect_err("neither fits");
    assert_eq!(findings.len(), 2, "every object is told");
}

#[test]
fn a_directive_of_strategic_merge_is_refused() {
    let problem = "is a directive of strategic merge patches, which would reach the cluster as data";
    for (step_type, value) in [
        (MERGE, r#"{"$patch": "delete"}"#),
        (MERGE, r#"{"data": {"list": [{"$setElementOrder/ports": []}]}}"#),
        (
            JSON_PATCH,
            r#"[{"op": "add", "path": "/data", "value": {"$retainKeys": []}}]"#,
        ),
    ] {
        check_refused(
            config(json!({})),
            vec![step(step_type, value)],
            "OverrideDirective",
            problem,
        );
    }
}

#[test]
fn an_override_does_not_make_another_object() {
    for (value, field) in [
        ("kind: Secret", "kind"),
        ("apiVersion: v2", "apiVersion"),
        ("metadata: {name: s3cret}", "metadata.name"),
        ("metadata: {namespace: s3cret}", "metadata.namespace"),
        ("metadata: null", "metadata.name"),
    ] {
        let problem = format!("an override may not change {field}");
        check_refused(
            config(json!({})),
            vec![step(MERGE, value)],
            "OverrideIdentity",
            &problem,
        );
    }
}

#[test]
fn divided_replicas_are_not_overridden() {
    let steps = || vec![step(MERGE, "spec: {replicas: 3}")];
    let problem = "spec.replicas is divided by the Subscription, and an override of it would be lost";
    check_refused(deployment(json!({"replicas": 2})), steps(), "OverrideReplicas", problem);
    check_refused(deployment(json!({})), steps(), "OverrideReplicas", problem);
    check_refused(
        deployment(json!({"replicas": 2})),
        vec![step(MERGE, "spec: null")],
        "OverrideReplicas",
        problem,
    );

    check(
        deployment(json!({"replicas": 2})),
        steps(),
        deployment(json!({"replicas": 3})),
    );
    check_refused(deployment(json!({"replicas": 3})), steps(), "OverrideReplicas", problem);
    let whole = vec![step(JSON_PATCH, "[{op: replace, path: /spec, value: {replicas: 3}}]")];
    check_refused(deployment(json!({"replicas": 3})), whole, "OverrideReplicas", problem);
    let beside = vec![step(
        JSON_PATCH,
        "[{op: test, path: /spec/replicas, value: 3}, {op: add, path: /spec/paused, value: true}]",
    )];
    assert!(run(deployment(json!({"replicas": 3})), beside, true).is_ok());
}

#[test]
fn text_in_a_field_is_patched_as_what_it_is() {
    check(
        config(json!({"conf": "{\"b\": 1, \"a\": {\"c\": [1]}}"})),
        vec![step(
            field_json("/data/conf", FieldFormat::Json),
            "[{op: add, path: /a/c/-, value: 2}]",
        )],
        config(
            json!({"conf": "{\n    \"a\": {\n        \"c\": [\n            1,\n            2\n        ]\n    },\n    \"b\": 1\n}"}),
        ),
    );
    check(
        config(json!({"conf": "b: 1\na: 2\n"})),
        vec![step(field_merge("/data/conf", FieldFormat::Yaml), "{a: 3}")],
        config(json!({"conf": "a: 3\nb: 1\n"})),
    );
    check(
        config(json!({"a/b": "{}"})),
        vec![step(field_merge("/data/a~1b", FieldFormat::Json), "{}")],
        config(json!({"a/b": "{}"})),
    );
}

#[test]
fn blank_text_in_a_field_is_left_alone() {
    let steps = || vec![step(field_merge("/data/conf", FieldFormat::Yaml), "{a: 3}")];
    for text in ["", " \n"] {
        check(config(json!({"conf": text})), steps(), config(json!({"conf": text})));
    }
}

#[test]
fn text_that_is_not_what_the_step_says_is_refused_without_being_told() {
    let refused = |text: &str, format, problem: &str| {
        let steps = vec![step(field_merge("/data/conf", format), "{a: 3}")];
        let finding = run(config(json!({"conf": text})), steps, false).expect_err("the text does not fit");
        assert!(finding.message.contains(problem), "{finding}");
        assert!(!finding.to_string().contains("s3cret"), "{finding}");
    };
    refused(
        "s3cret: [",
        FieldFormat::Yaml,
        "the text in field /data/conf is not YAML: ",
    );
    refused(
        "{s3cret",
        FieldFormat::Json,
        "the text in field /data/conf is not JSON: mistake in line 1",
    );
    let digits = "an integer of more than 64 bits";
    refused("{\"a\": 123456789012345678901234567890}", FieldFormat::Json, digits);
    refused("{\"b\": 1, \"b\": 2}", FieldFormat::Json, "stands twice");
    refused("a: 1\n---\nb: 2", FieldFormat::Yaml, "it is more than one document");
    let steps = vec![step(field_merge("/data", FieldFormat::Yaml), "{a: 3}")];
    check_refused(
        config(json!({})),
        steps,
        "OverrideDoesNotFit",
        "field /data is not text",
    );
}

#[test]
fn a_chart_is_described_in_our_group_with_its_values() {
    let steps = vec![
        step(HELM, "image: {tag: 1}\nports: [80]"),
        step(HELM, "image: {pull: Always}\nports: [81]"),
        chart_step("spec: {version: 2.0.0}\nmetadata: {labels: {a: b}}"),
    ];
    let object = chart(json!({"chart": "db", "targetNamespace": "db", "version": "1.0.0"}));
    let described = run(object, steps, false).expect("the override fits");
    assert_eq!(
        described.key,
        ObjectKey::new("fleet.flotilla.dev/v1alpha1", "HelmChart", "", "db")
    );
    assert_eq!(
        *plain(&described),
        json!({
            "apiVersion": "fleet.flotilla.dev/v1alpha1",
            "kind": "HelmChart",
            "metadata": {"name": "db", "labels": {"a": "b"}},
            "spec": {
                "chart": "db", "targetNamespace": "db", "version": "2.0.0",
                "values": {"image": {"tag": 1, "pull": "Always"}, "ports": [81]},
            },
        })
    );
}

#[test]
fn a_chart_keeps_its_name_and_target_and_takes_helm_steps_only() {
    let object = || chart(json!({"chart": "db", "targetNamespace": "db", "values": 3}));
    let identity = "an override may not change spec.targetNamespace";
    check_refused(
        object(),
        vec![chart_step("spec: {targetNamespace: x}")],
        "OverrideIdentity",
        identity,
    );
    let identity = "an override may not change spec.chart";
    check_refused(
        object(),
        vec![chart_step("spec: {chart: null}")],
        "OverrideIdentity",
        identity,
    );
    let helm_only = "a HelmChart takes steps of type Helm only";
    check_refused(
        object(),
        vec![step(MERGE, "spec: {version: 2}")],
        "OverrideDoesNotFit",
        helm_only,
    );
    let values = "the HelmChart's spec.values is not a mapping";
    check_refused(object(), vec![step(HELM, "{a: 1}")], "OverrideDoesNotFit", values);
}

#[test]
fn a_value_named_status_stays_while_an_objects_status_goes() {
    let object = json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": "web", "uid": "1", "creationTimestamp": null, "managedFields": []},
        "status": {"a": 1},
    });
    check(
        object,
        Vec::new(),
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "web"}}),
    );
    let described = run(chart(json!({"chart": "db"})), vec![step(HELM, "{status: up}")], false);
    let described = described.expect("the override fits");
    assert_eq!(plain(&described)["spec"]["values"], json!({"status": "up"}));
}

#[test]
fn every_changed_field_knows_its_last_writer() {
    let base = base([config(json!({"a": "0", "gone": "1"}))]);
    let key = &base.objects[0].key;
    let first = globalization(
        "first",
        key,
        None,
        vec![step(MERGE, "data: {a: x, b: {c: y}, gone: null}\nstatus: {d: 1}")],
    );
    let second = localization("second", key, vec![step(MERGE, "data: {b: z}")]);
    let overrides = [Arc::new(first), Arc::new(second)];
    let overrides: Vec<_> = overrides.iter().collect();
    let description = localize(&base, &overrides, &Divided::none()).expect("the overrides fit");
    let written: Vec<_> = description.objects[0]
        .provenance
        .iter()
        .map(|written| (written.field.as_str(), written.by.as_str(), written.at.as_str()))
        .collect();
    assert_eq!(
        written,
        [
            ("/data/a", "Globalization first", "first.yaml:7"),
            ("/data/b", "Localization a/second", "second.yaml:7"),
            ("/data/gone", "Globalization first", "first.yaml:7"),
        ]
    );
}

#[test]
fn an_encrypted_object_keeps_its_bytes_and_carries_its_steps() {
    let object = encrypted(config(json!({"a": "ENC[x]"})), "original text");
    let base = Base::new(vec![Arc::new(object)]);
    let key = &base.objects[0].key;
    let steps = vec![
        step(MERGE, "data: {b: c}"),
        step(field_merge("/data/a", FieldFormat::Json), "{d: 1}"),
    ];
    let meets = Arc::new(localization("local", key, steps));
    let description = localize(&base, &[&meets], &Divided::none()).expect("the override fits");
    let carried = |step_type: &str, value, field: Option<(&str, &str)>| CarriedStep {
        step_type: step_type.to_owned(),
        value,
        field_path: field.map(|(path, _)| path.to_owned()),
        field_format: field.map(|(_, format)| format.to_owned()),
    };
    let expected = Content::Encrypted {
        key: key.clone(),
        original: "original text".into(),
        overrides: vec![
            carried("MergePatch", json!({"data": {"b": "c"}}), None),
            carried("FieldMergePatch", json!({"d": 1}), Some(("/data/a", "JSON"))),
        ],
    };
    assert_eq!(description.objects[0].content, expected);
    let fields: Vec<_> = description.objects[0]
        .provenance
        .iter()
        .map(|written| &written.field)
        .collect();
    assert_eq!(fields, ["/data/a", "/data/b"]);

    for bad in [
        step(JSON_PATCH, "[{op: replace, path: /metadata, value: {labels: {a: b}}}]"),
        step(MERGE, "metadata: {name: x}"),
        step(JSON_PATCH, "[{op: remove, path: /metadata}]"),
    ] {
        let meets = Arc::new(localization("local", key, vec![bad]));
        let findings = localize(&base, &[&meets], &Divided::none()).expect_err("the identity would change");
        assert_eq!(findings[0].reason, "OverrideIdentity");
    }
}

#[test]
fn carried_steps_change_what_was_decrypted_as_they_would_have_changed_it_before() {
    let plain = config(json!({"a": "{\"x\": 1}", "b": "1"}));
    let steps = || {
        vec![
            step(MERGE, "data: {b: null, c: d}"),
            step(JSON_PATCH, "[{op: add, path: /metadata/labels, value: {tier: front}}]"),
            step(field_merge("/data/a", FieldFormat::Json), "{y: 2}"),
        ]
    };
    let before = plain.clone();
    let open = base([plain.clone()]);
    let key = open.objects[0].key.clone();
    let meets = Arc::new(localization("local", &key, steps()));
    let outright = localize(&open, &[&meets], &Divided::none()).expect("the override fits");
    let Content::Plain { object: expected } = &outright.objects[0].content else {
        unreachable!("the object is plain")
    };
    let sealed = Base::new(vec![Arc::new(encrypted(plain, "original text"))]);
    let sealed = localize(&sealed, &[&meets], &Divided::none()).expect("the override fits");
    let Content::Encrypted { overrides, .. } = &sealed.objects[0].content else {
        unreachable!("the object is encrypted")
    };
    let mut decrypted = before.clone();
    apply_carried(&mut decrypted, overrides).expect("the steps fit");
    assert_eq!(decrypted, **expected);

    let mut other = before;
    other["data"] = json!({"a": "hunter2"});
    let problem = apply_carried(&mut other, overrides)
        .expect_err("the text is no JSON")
        .to_string();
    assert!(
        problem.starts_with("step 3 of its overrides does not fit:"),
        "{problem}"
    );
    assert!(!problem.contains("hunter2"), "{problem}");
}

#[test]
fn an_object_without_overrides_is_shared_and_not_copied() {
    let base = base([config(json!({"a": "b"}))]);
    let description = localize(&base, &[], &Divided::none()).expect("there is nothing to fit");
    let Content::Plain { object } = &description.objects[0].content else {
        unreachable!("the object is plain")
    };
    assert!(Arc::ptr_eq(object, &base.objects[0].value));
}

#[test]
fn an_outcome_that_is_nested_too_deep_is_refused() {
    let operations: Vec<Value> = (1..70)
        .map(|depth| json!({"op": "add", "path": format!("/data{}", "/a".repeat(depth)), "value": {}}))
        .collect();
    let steps = vec![step(JSON_PATCH, &Value::Array(operations).to_string())];
    let problem = "the outcome is nested deeper than 64 levels";
    check_refused(config(json!({})), steps, "OverrideDoesNotFit", problem);
}

#[test]
fn a_merge_patch_replaces_a_list_whatever_the_kind() {
    let containers = |list: Value| json!({"template": {"spec": {"containers": list}}});
    let before = containers(json!([{"name": "a", "image": "x", "env": [{"name": "K", "value": "v"}]}]));
    let patch = "spec: {template: {spec: {containers: [{name: a, image: new}]}}}";
    let after = containers(json!([{"name": "a", "image": "new"}]));
    check(
        deployment(before.clone()),
        vec![step(MERGE, patch)],
        deployment(after.clone()),
    );
    let rollout = |spec| json!({"apiVersion": "x.io/v1", "kind": "Rollout", "metadata": {"name": "web"}, "spec": spec});
    check(rollout(before), vec![step(MERGE, patch)], rollout(after));
}

#[test]
fn a_changed_override_leaves_no_trace_of_the_old_one_and_a_deleted_one_none_at_all() {
    let base = base([deployment(json!({"replicas": 2}))]);
    let described = |steps: &[OverrideStep]| {
        let meets = Arc::new(localization("local", &base.objects[0].key, steps.to_vec()));
        let overrides: Vec<_> = steps.iter().map(|_| &meets).collect();
        localize(&base, &overrides, &Divided::none()).expect("the override fits")
    };
    let first = described(&[step(
        JSON_PATCH,
        "[{op: add, path: /metadata/annotations, value: {aa: bb}}]",
    )]);
    let second = described(&[step(
        JSON_PATCH,
        "[{op: add, path: /metadata/annotations, value: {bb: cc}}]",
    )]);
    assert_ne!(first.digest, second.digest);
    assert_eq!(
        plain(&second.objects[0])["metadata"]["annotations"],
        json!({"bb": "cc"})
    );
    let without = described(&[]);
    assert_eq!(*plain(&without.objects[0]), deployment(json!({"replicas": 2})));
}
