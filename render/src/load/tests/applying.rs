//! How a Subscription is applied: what it says, and what is wrong with it.

use super::*;
use crate::model::{ApplyPolicy, DeletionPolicy, Dependency, DependencyClusters, DriftMode, IgnoreRule, Replace};

fn loaded_unit(group: &str, extra: &str) -> (ApplyPolicy, Option<DriftMode>, Vec<Finding>) {
    let text = subscription("[{apiVersion: v1, kind: ConfigMap, namespace: shop, name: x}]")
        .replace("fleet.flotilla.dev", group);
    let text = format!("{text}{extra}");
    let (fleet, findings) = loaded(&[
        ("c.yaml", CLUSTER),
        ("s.yaml", &text),
        ("feeds/x.yaml", &config_map("x")),
    ]);
    let unit = fleet.units.values().next().expect("the unit stands, whatever it says");
    (unit.subscription.apply.clone(), unit.subscription.drift, findings)
}

#[track_caller]
fn check(extra: &str, expected: &[&str]) {
    let (_, _, findings) = loaded_unit("fleet.flotilla.dev", extra);
    assert_eq!(shown(&findings), expected, "{findings:#?}");
}

#[test]
fn a_subscription_says_how_it_is_applied() {
    let (policy, drift, findings) = loaded_unit(
        "fleet.flotilla.dev",
        "  dependsOn: [{name: base}, {namespace: infra, name: crds, clusters: All}]
  replace: WhenImmutable
  timeout: 1h30m
  drift: {mode: Report, ignore: [{kind: Deployment, paths: [/spec/replicas], managers: [keda]}]}
  deletionPolicy: Orphan
  decryption: {secret: team-keys}
",
    );
    let missing = [
        "s.yaml:7 Error DependencyNotFound spec.dependsOn[0]",
        "s.yaml:7 Error DependencyNotFound spec.dependsOn[1]",
    ];
    assert_eq!(shown(&findings), missing, "all it says is read");
    let expected = ApplyPolicy {
        suspended: Vec::new(),
        replica_paths: Vec::new(),
        enforce_for_seconds: None,
        apply_set_labels: false,
        depends_on: vec![
            Dependency {
                unit: "team/base".parse().expect("valid"),
                clusters: DependencyClusters::Same,
            },
            Dependency {
                unit: "infra/crds".parse().expect("valid"),
                clusters: DependencyClusters::All,
            },
        ],
        replace: Replace::WhenImmutable,
        timeout_seconds: Some(5_400),
        health_checks: Vec::new(),
        ignore: vec![IgnoreRule {
            kind: "Deployment".to_owned(),
            paths: vec!["/spec/replicas".to_owned()],
            managers: vec!["keda".to_owned()],
            ..IgnoreRule::default()
        }],
        deletion: DeletionPolicy::Orphan,
        decryption_secret: Some("team-keys".to_owned()),
    };
    assert_eq!((policy, drift), (expected, Some(DriftMode::Report)));
}

#[test]
fn its_mistakes_name_their_field() {
    check("  replace: Always\n", &["s.yaml:7 Error FieldInvalid spec.replace"]);
    check("  timeout: '5'\n", &["s.yaml:7 Error FieldInvalid spec.timeout"]);
    check("  timeout: 0s\n", &["s.yaml:7 Error FieldInvalid spec.timeout"]);
    check(
        "  drift: {mode: correct}\n",
        &["s.yaml:7 Error FieldInvalid spec.drift.mode"],
    );
    check(
        "  drift: {ignore: [{kind: Deployment}]}\n",
        &["s.yaml:7 Error FieldMissing spec.drift.ignore[0]"],
    );
    check(
        "  drift: {ignore: [{paths: [spec.replicas]}]}\n",
        &["s.yaml:7 Error FieldInvalid spec.drift.ignore[0].paths[0]"],
    );
    check(
        "  dependsOn: [{name: app}]\n",
        &["s.yaml:7 Error FieldInvalid spec.dependsOn[0].name"],
    );
    check(
        "  dependsOn: [{}]\n",
        &["s.yaml:7 Error FieldMissing spec.dependsOn[0].name"],
    );
    check(
        "  decryption: {}\n",
        &["s.yaml:7 Error FieldMissing spec.decryption.secret"],
    );
    check(
        "  healthChecks: [{apiVersion: a/v1, kind: A}]\n",
        &["s.yaml:7 Error FieldMissing spec.healthChecks[0].current"],
    );
    check(
        "  healthChecks: [{apiVersion: a/v1, kind: A, current: 'objct.status', failed: 'object.'}]\n",
        &[
            "s.yaml:7 Error FieldInvalid spec.healthChecks[0].current",
            "s.yaml:7 Error FieldInvalid spec.healthChecks[0].failed",
        ],
    );
}

#[test]
fn clusternets_subscription_has_none_of_it() {
    let (policy, drift, findings) = loaded_unit("apps.clusternet.io", "  timeout: 5m\n");
    assert_eq!((policy, drift), (ApplyPolicy::default(), None));
    assert_eq!(shown(&findings), ["s.yaml:7 Warning UnknownField spec.timeout"]);
}

/// A rule for a kind of group `example.dev`.
fn rule(name: &str, kind: &str, current: &str) -> String {
    format!(
        "apiVersion: fleet.flotilla.dev/v1alpha1
kind: HealthRule
metadata: {{name: {name}}}
spec: {{apiVersion: example.dev/v1, kind: {kind}, current: \"{current}\"}}
"
    )
}

#[test]
fn the_fleets_rules_of_health_reach_the_units_that_have_such_kinds() {
    let feed =
        "[{apiVersion: example.dev/v1, kind: Database, name: db}, {apiVersion: example.dev/v1, kind: Queue, name: q}]";
    let text = subscription(feed) + "  healthChecks: [{apiVersion: example.dev/v2, kind: Queue, current: 'true'}]\n";
    let object =
        |kind: &str, name: &str| format!("apiVersion: example.dev/v1\nkind: {kind}\nmetadata: {{name: {name}}}\n");
    let (fleet, findings) = loaded(&[
        ("c.yaml", CLUSTER),
        ("s.yaml", &text),
        ("feeds/db.yaml", &object("Database", "db")),
        ("feeds/q.yaml", &object("Queue", "q")),
        ("health/a.yaml", &rule("a", "Database", "object.status.ready")),
        ("health/b.yaml", &rule("b", "Queue", "object.status.ready")),
        ("health/c.yaml", &rule("c", "Unused", "object.status.ready")),
        ("health/d.yaml", &rule("d", "Database", "object.status.other")),
        ("health/e.yaml", &rule("e", "Broken", "object.status.")),
    ]);
    let checks: Vec<_> = unit(&fleet)
        .subscription
        .apply
        .health_checks
        .iter()
        .map(|check| (check.kind.as_str(), check.current.as_str()))
        .collect();
    assert_eq!(
        checks,
        [("Queue", "true"), ("Database", "object.status.ready")],
        "its own word counts first"
    );
    assert_eq!(
        shown(&findings),
        [
            "health/d.yaml:1 Error HealthRuleTwice",
            "health/e.yaml:4 Error FieldInvalid spec.current"
        ]
    );
}
