//! What load asks for is what the schemas have: the two know the same fields.

use std::collections::BTreeSet;

use super::super::fields::asked;
use super::super::kinds::OwnKind;
use super::*;
use crate::schema::{SOURCE_KINDS, SourceKind, paths};

/// A declaration of each kind that brings load into every map it knows, whatever it says of them.
fn probe(kind: &str) -> &'static str {
    match kind {
        "Fleet" => {
            "{approval: none, render: {mode: commits}, offline: {enforceFor: 1h}, policies: {applySetLabels: true},
   scheduling: {failover: {after: 5m, budget: {clusters: 1, per: 1h}}}}"
        }
        "ManagedCluster" => "{taints: [{key: a, effect: NoSchedule}], drift: {mode: Report},
   predictor: {url: 'https://a', timeout: 5s}}",
        "Subscription" => {
            "subscribers: [{clusterAffinity: {matchLabels: {a: b}, matchExpressions: [{key: a, operator: Exists}]},
    replicas: {min: 1}, subGroupStrategy: {minClusters: 1}}]
  clusters: {preferred: [{weight: 1, preference: {matchLabels: {a: b}, matchExpressions: [{key: a, operator: Exists}]}}],
    spread: [{topologyKey: a}]}
  replicaPaths: [{apiVersion: a/v1, kind: A, replicas: /spec/a}]
  clusterTolerations: [{key: a}]
  dividingScheduling: {dynamicDividing: {strategy: Spread,
    preferredClusters: [{weight: 1, preference: {matchLabels: {a: b}, matchExpressions: [{key: a, operator: Exists}]}}],
    topologySpreadConstraints: [{topologyKey: a}]}}
  dependsOn: [{name: other}]
  healthChecks: [{apiVersion: a/v1, kind: A, current: 'true'}]
  drift: {mode: Report, ignore: [{kind: A, paths: [/spec/a]}]}
  decryption: {secret: keys}
  feeds:
    - {path: 'feeds/**', exclude: [feeds/a.yaml]}
    - {selector: {matchLabels: {a: b}, matchExpressions: [{key: a, operator: Exists}]}}
    - {apiVersion: v1, kind: ConfigMap, name: a}"
        }
        "Localization" => {
            "feed: {apiVersion: v1, kind: ConfigMap, name: a}
  overrides:
    - {type: MergePatch, value: 'a: b'}
    - {type: FieldMergePatch, value: 'a: b', fieldPath: /a, fieldFormat: YAML}"
        }
        "Globalization" => {
            "feed: {apiVersion: v1, kind: ConfigMap, name: a}
  clusterAffinity: {matchLabels: {a: b}, matchExpressions: [{key: a, operator: Exists}]}
  overrides:
    - {type: MergePatch, value: 'a: b'}
    - {type: FieldMergePatch, value: 'a: b', fieldPath: /a, fieldFormat: YAML}"
        }
        "Suspension" => {
            "{subscription: {namespace: a, name: a}, clusters: [a],
   objects: [{apiVersion: a, kind: a, namespace: a, name: a}],
   clusterAffinity: {matchLabels: {a: b}, matchExpressions: [{key: a, operator: Exists}]}}"
        }
        "PruneBudget" => {
            "{subscription: {namespace: a, name: a}, clusters: [a], maxObjects: 1, maxPercent: 1,
   clusterAffinity: {matchLabels: {a: b}, matchExpressions: [{key: a, operator: Exists}]}}"
        }
        "HealthRule" => "{apiVersion: a/v1, kind: A, current: 'true', inProgress: 'true', failed: 'true'}",
        "HelmChart" => "{repo: 'https://a', chart: a, targetNamespace: a, chartPullSecret: {name: a}}",
        other => unreachable!("{other} has no probe: write one that has every map of it"),
    }
}

fn known_to_load(kind: &SourceKind) -> BTreeSet<String> {
    let spec = probe(kind.kind);
    let spec = if spec.starts_with('{') {
        format!(" {spec}")
    } else {
        format!("\n  {spec}")
    };
    let name = kind.kind;
    let text = format!(
        "apiVersion: fleet.flotilla.dev/v1alpha1\nkind: {name}\nmetadata: {{name: a, namespace: a}}\nspec:{spec}\n"
    );
    asked::take();
    let (_, findings) = loaded(&[("a.yaml", &text)]);
    let unreadable = findings.iter().find(|finding| finding.reason == "NotYaml");
    assert!(unreadable.is_none(), "the probe of {name} is YAML: {unreadable:?}");
    let own = |path: &String| !path.starts_with("metadata.");
    asked::take().into_iter().filter(own).collect()
}

#[test]
fn the_schemas_have_every_field_that_load_knows_and_no_other() {
    for kind in SOURCE_KINDS {
        let schema = paths(&kind.schema(serde_json::json!({})));
        let load = known_to_load(kind);
        let missing: Vec<_> = load.difference(&schema).collect();
        assert!(
            missing.is_empty(),
            "load knows fields of {} that its schema lacks: {missing:?}",
            kind.kind
        );
        let unknown: Vec<_> = schema.difference(&load).collect();
        assert!(
            unknown.is_empty(),
            "the schema of {} has fields that load does not know: {unknown:?}",
            kind.kind
        );
    }
}

#[test]
fn every_kind_that_load_knows_has_a_schema() {
    let schemas: BTreeSet<_> = SOURCE_KINDS.iter().map(|kind| kind.kind).collect();
    for kind in OwnKind::ALL {
        assert!(schemas.contains(kind.name()), "{} has no schema", kind.name());
    }
}

#[test]
fn every_field_of_a_schema_is_described() {
    for kind in SOURCE_KINDS {
        let mut open = vec![(kind.spec)()];
        while let Some(schema) = open.pop() {
            for (name, field) in schema["properties"].as_object().into_iter().flatten() {
                assert!(field["description"].is_string(), "{}: {name}", kind.kind);
                open.extend([field.clone(), field["items"].clone()]);
            }
        }
    }
}
