//! Kind Suspension: what it says, and that nothing loosens by a mistake in it.

use std::sync::Arc;

use super::*;
use crate::tree::SourceFile;

fn suspension(name: &str, spec: &str) -> String {
    format!("apiVersion: fleet.flotilla.dev/v1alpha1\nkind: Suspension\nmetadata: {{name: {name}}}\nspec: {spec}\n")
}

const OF_UNIT: &str = "{subscription: {namespace: team, name: app}, reason: frozen, until: 2026-12-01T09:00:00Z}";

/// The labels of the Suspensions that a repository with cluster a and unit team/app declares.
fn declared(file: &str, previous: &Previous) -> (Vec<String>, Vec<Finding>) {
    let subscription = subscription("[{path: feeds}]");
    let files = [
        ("c.yaml", CLUSTER),
        ("s.yaml", &subscription),
        ("feeds/x.yaml", &config_map("x")),
        ("policies/held.yaml", file),
    ];
    let (fleet, findings) = load(&tree(&files), previous);
    (fleet.suspensions.iter().map(|held| held.label()).collect(), findings)
}

#[track_caller]
fn check(spec: &str, expected: &[&str]) {
    let (_, findings) = declared(&suspension("held", spec), &Previous::default());
    assert_eq!(shown(&findings), expected, "{findings:#?}");
}

#[test]
fn a_suspension_says_what_it_holds_why_and_until_when() {
    let (labels, findings) = declared(&suspension("held", OF_UNIT), &Previous::default());
    assert_eq!(labels, ["policies/held.yaml:1 (frozen), until 2026-12-01T09:00:00Z"]);
    assert_eq!(findings, []);
    check("{clusters: [a]}", &[]);
    check("{clusterAffinity: {}}", &[]);
}

#[test]
fn a_suspension_of_objects_names_each_of_them() {
    check(
        "{objects: [{apiVersion: v1, kind: ConfigMap, namespace: shop, name: x}]}",
        &[],
    );
    check(
        "{objects: []}",
        &["policies/held.yaml:4 Error FieldInvalid spec.objects"],
    );
    check(
        "{objects: [{kind: ConfigMap, name: x}]}",
        &["policies/held.yaml:4 Error FieldMissing spec.objects[0].apiVersion"],
    );
    check(
        "{objects: [{apiVersion: v1, kind: ConfigMap, name: none}]}",
        &["policies/held.yaml:4 Warning SuspensionOfNothing spec.objects[0]"],
    );
}

#[test]
fn its_mistakes_name_their_field() {
    check("{}", &["policies/held.yaml:4 Error FieldMissing spec"]);
    check("{reason: because}", &["policies/held.yaml:4 Error FieldMissing spec"]);
    check(
        "{clusters: [A]}",
        &["policies/held.yaml:4 Error FieldInvalid spec.clusters[0]"],
    );
    check(
        "{clusters: [a], until: tomorrow}",
        &["policies/held.yaml:4 Error FieldInvalid spec.until"],
    );
    check(
        "{clusters: [a], color: red}",
        &["policies/held.yaml:4 Error UnknownField spec.color"],
    );
    check(
        "{subscription: {name: app}}",
        &["policies/held.yaml:4 Error FieldMissing spec.subscription.namespace"],
    );
}

#[test]
fn what_names_nothing_that_exists_is_a_warning() {
    let warning = |field: &str| format!("policies/held.yaml:4 Warning SuspensionOfNothing spec.{field}");
    check(
        "{subscription: {namespace: team, name: ap}}",
        &[&warning("subscription")],
    );
    check("{clusters: [a, b]}", &[&warning("clusters[1]")]);
    check(
        "{clusterAffinity: {matchLabels: {zone: x}}}",
        &[&warning("clusterAffinity")],
    );
}

#[test]
fn the_hint_about_what_was_taken_out_does_not_lead_to_its_removal() {
    let hint = |spec: &str| {
        let (_, findings) = declared(&suspension("held", spec), &Previous::default());
        let found = findings.iter().find(|finding| finding.reason == "SuspensionOfNothing");
        found.expect("it is warned of").hint.clone()
    };
    let keeps = "this Suspension is what keeps it in the clusters, and without it it is removed there";
    for (spec, source) in [
        (
            "{subscription: {namespace: team, name: gone}}",
            "put its Subscription back first",
        ),
        (
            "{subscription: {namespace: team, name: ap}}",
            "did you mean team/app? if team/ap was taken out",
        ),
        ("{clusters: [gone]}", "put its file back first"),
        (
            "{objects: [{apiVersion: v1, kind: ConfigMap, name: none}]}",
            "put its manifest back first",
        ),
    ] {
        let hint = hint(spec);
        assert!(hint.contains(keeps) && hint.contains(source), "{spec}: {hint}");
    }
}

#[test]
fn a_broken_policies_file_loosens_nothing() {
    let good = suspension("held", OF_UNIT);
    let mut previous = Previous::default();
    let file = SourceFile::from_bytes(good.as_bytes());
    previous.last_good.insert("policies/held.yaml".into(), file);
    for broken in [
        "a: {",
        &good.replace("until: 2026", "until: year 2026"),
        &good.replace("subscription", "subscripton"),
    ] {
        let (labels, findings) = declared(broken, &previous);
        assert_eq!(labels.len(), 1, "{broken}");
        assert!(findings.iter().any(Finding::is_error), "{broken}");
    }
    let twice = format!("{good}---\n{}", suspension("held", "{clusters: [a]}"));
    let (labels, findings) = declared(&twice, &Previous::default());
    assert_eq!(labels.len(), 2, "of two with one name both hold");
    assert_eq!(reasons(&findings), ["DeclaredTwice"]);
    let mut vanished = Previous {
        new_files: vec![Arc::from("new.yaml")],
        ..Previous::default()
    };
    vanished
        .vanished
        .insert("policies/old.yaml".into(), SourceFile::from_bytes(good.as_bytes()));
    let (fleet, _) = load(&tree(&[("c.yaml", CLUSTER), ("new.yaml", "a: {")]), &vanished);
    assert_eq!(
        fleet.suspensions.len(),
        1,
        "it may have moved into the file that cannot be read"
    );
}
