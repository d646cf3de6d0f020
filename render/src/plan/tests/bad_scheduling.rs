//! What people get wrong when they say where a unit goes: each slip is told at plan time with its file, line and field
//! and what to do about it, and what was placed well stays.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::*;
use crate::finding::Finding;
use crate::load::load;
use crate::tree::{Previous, SourceTree};

const CLUSTERS: &str = "\
apiVersion: clusters.clusternet.io/v1beta1
kind: ManagedCluster
metadata: {name: a, labels: {area: one}}
---
apiVersion: clusters.clusternet.io/v1beta1
kind: ManagedCluster
metadata: {name: b, labels: {area: two}}
";

const SUBSCRIPTION: &str = "\
apiVersion: apps.clusternet.io/v1alpha1
kind: Subscription
metadata: {name: app, namespace: team}
spec:
  schedulingStrategy: Dividing
  dividingScheduling: {type: Static}
  clusters: {min: 1}
  subscribers:
    - clusterAffinity: {matchLabels: {area: one}}
      weight: 1
    - clusterAffinity: {matchLabels: {area: two}}
      weight: 2
  feeds: [{apiVersion: apps/v1, kind: Deployment, name: web}]
";

const DEPLOYMENT: &str = "\
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 6
";

/// The plan of these files after another one, and what load and the plan found.
fn of_files(files: &BTreeMap<&str, String>, previous: &Plan) -> (Plan, Vec<Finding>) {
    let files = files
        .iter()
        .map(|(path, text)| (path.to_string(), text.clone().into_bytes()));
    let tree = SourceTree::from_files(revision('1'), files.collect::<Vec<_>>());
    let (fleet, mut findings) = load(&tree, &Previous::default());
    let mut snapshot = snapshot('1', Vec::new(), Vec::new(), previous);
    snapshot.fleet = Arc::new(fleet);
    let plan = planned(&snapshot);
    findings.extend(plan.findings.iter().cloned());
    (plan, findings)
}

/// Cluster, replicas and digest.
fn placed(plan: &Plan) -> Vec<String> {
    let unit = &plan.units[&UnitKey::new("team", "app").expect("it is a valid unit")];
    let line = |cluster: &ClusterName| {
        let (placement, variant) = unit.entry(cluster).expect("a placement names a variant of its unit");
        format!("{cluster} {:?} {}", placement.replicas, variant.digest)
    };
    unit.clusters.keys().map(line).collect()
}

/// What is wrong with what is said of a good repository with one text changed, if anything is.
fn mistake(file: &str, (good, bad): (&str, &str), expected: &str) -> Option<String> {
    let files = [
        ("app.yaml", SUBSCRIPTION),
        ("clusters.yaml", CLUSTERS),
        ("web.yaml", DEPLOYMENT),
    ];
    let mut files: BTreeMap<&str, String> = files.map(|(path, text)| (path, text.to_owned())).into();
    let (before, findings) = of_files(&files, &Plan::default());
    assert_eq!(findings, [], "the repository is good");
    assert_eq!(placed(&before).len(), 2, "and placed on both clusters");
    let text = files.get_mut(file).expect("the file is there");
    assert!(text.contains(good), "{good} is in {file}");
    *text = text.replacen(good, bad, 1);
    let (after, findings) = of_files(&files, &before);
    let shown = |finding: &Finding| {
        let Finding {
            file,
            line,
            reason,
            field,
            severity,
            ..
        } = finding;
        format!("{file}:{line} {severity:?} {reason} {field}")
            .trim_end()
            .to_owned()
    };
    let Some(told) = findings.iter().find(|finding| shown(finding) == expected) else {
        let all: Vec<_> = findings.iter().map(shown).collect();
        return Some(format!("{bad}: {expected} is not among {all:?}"));
    };
    if told.message.is_empty() || told.hint.is_empty() {
        return Some(format!(
            "{bad}: {expected} says what is wrong, and what to do: {told:?}"
        ));
    }
    (placed(&after) != placed(&before))
        .then(|| format!("{bad}: what was placed well stays, and not {:?}", placed(&after)))
}

#[test]
fn what_contradicts_itself_in_scheduling_is_told_with_its_field_and_keeps_what_is_placed() {
    const WEIGHT: &str = "weight: 1";
    const WEIGHTS: &str = "weight: 1\n    - clusterAffinity: {matchLabels: {area: two}}\n      weight: 2";
    const SELECTORS: &str = "{area: one}}\n      weight: 1\n    - clusterAffinity: {matchLabels: {area: two}}";
    let nothing = SELECTORS.replace("one", "oen").replace("two", "tow");
    let mut wrong = Vec::new();
    let zero = WEIGHTS.replace(['1', '2'], "0");
    let mut app = |change, expected: &str| wrong.extend(mistake("app.yaml", change, &format!("app.yaml:{expected}")));
    for bad in ["weight: -1", "weight: 2147483648", "weight: 9223372036854775807"] {
        app((WEIGHT, bad), "10 Error FieldInvalid spec.subscribers[0].weight");
    }
    for bad in ["weight: '1'", "weight: 1.5", "weight: heavy"] {
        app((WEIGHT, bad), "10 Error FieldType spec.subscribers[0].weight");
    }
    app((WEIGHTS, &zero), "1 Error NoWeight spec.subscribers");
    app((SELECTORS, &nothing), "1 Error NoFeasibleCluster spec.subscribers");
    let bounds = "weight: 1\n      replicas: {min: 5, max: 4}";
    app(
        (WEIGHT, bounds),
        "11 Error FieldInvalid spec.subscribers[0].replicas.min",
    );
    let apart = "weight: 1\n      replicas: {min: 5}\n    - clusterAffinity: {}\n      replicas: {max: 4}";
    app((WEIGHT, apart), "1 Error ContradictoryBounds spec.subscribers");
    app(
        ("{min: 1}", "{min: 3, max: 2}"),
        "7 Error FieldInvalid spec.clusters.min",
    );
    app(("{min: 1}", "{min: 3}"), "1 Warning TooFewClusters spec.clusters.min");
    let groups = "{spread: [{topologyKey: area, minGroups: 3, maxGroups: 2}]}";
    app(
        ("{min: 1}", groups),
        "7 Error FieldInvalid spec.clusters.spread[0].minGroups",
    );
    for bad in ["replicas: '6'", "replicas: -6", "replicas: 6.5", "replicas: 2147483648"] {
        let expected = "web.yaml:1 Error InvalidReplicas spec.replicas";
        wrong.extend(mistake("web.yaml", ("replicas: 6", bad), expected));
    }
    let third = "two}}\n---\napiVersion: clusters.clusternet.io/v1beta1\nkind: ManagedCluster\nmetadata: {name: a}\n";
    wrong.extend(mistake(
        "clusters.yaml",
        ("two}}\n", third),
        "clusters.yaml:9 Error DeclaredTwice",
    ));
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_cluster_that_took_the_name_of_another_gets_nothing_of_its_share() {
    let renamed = CLUSTERS.replace("name: b", "name: a");
    let files = |clusters: &str| {
        let texts = [
            ("app.yaml", SUBSCRIPTION),
            ("clusters.yaml", clusters),
            ("web.yaml", DEPLOYMENT),
        ];
        texts.map(|(path, text)| (path, text.to_owned())).into()
    };
    let (before, _) = of_files(&files(CLUSTERS), &Plan::default());
    let (after, findings) = of_files(&files(&renamed), &before);
    assert_eq!(placed(&after), placed(&before)[..1], "a has what it had; b has no file");
    let of_unit = findings.iter().find(|finding| finding.unit.is_some());
    assert_eq!(of_unit.map(|finding| finding.reason.as_str()), Some("ClusterUnclear"));
}
