//! Explanations of small fleets.

use std::sync::Arc;

use serde_json::json;

use super::*;
use crate::digest::Digest;
use crate::fixture::{
    base, cluster, cluster_name, fleet, globalization, localization, revision, step, subscriber, subscription,
};
use crate::model::{OverrideStepType, Taint, TaintEffect};
use crate::name::{ObjectKey, VariantName};
use crate::published::{Placement, UnitPlacement, Variant};

fn secret() -> serde_json::Value {
    json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s", "namespace": "shop"},
        "stringData": {"password": "hunter1"}})
}

fn tainted(effect: TaintEffect) -> Cluster {
    let taint = Taint {
        key: "maintenance".to_owned(),
        value: String::new(),
        effect,
    };
    Cluster {
        taints: vec![taint],
        ..cluster("c", &[("env", "prod")])
    }
}

/// Cluster a matches, b is elsewhere, c matches and is tainted.
fn world(effect: TaintEffect) -> Fleet {
    let clusters = [
        cluster("a", &[("env", "prod")]),
        cluster("b", &[("env", "test")]),
        tainted(effect),
    ];
    let subscribers = vec![
        subscriber(&[("env", "prod")], None),
        subscriber(&[("region", "eu")], None),
    ];
    fleet(
        clusters,
        subscription(Scheduling::Replication, subscribers),
        base([secret()]),
    )
}

fn placed(names: &[&str]) -> Published {
    let placement = Placement {
        variant: VariantName::default_variant(),
        replicas: BTreeMap::new(),
        drift: Default::default(),
        revision: revision(),
        reasons: Vec::new(),
        inputs: Digest::of_bytes(b""),
    };
    let variant = Variant {
        digest: Digest::of_bytes(b""),
        revision: revision(),
        overrides: Vec::new(),
    };
    let unit = UnitPlacement {
        depends_on: Default::default(),
        removed_after: Vec::new(),
        variants: BTreeMap::from([(VariantName::default_variant(), variant)]),
        clusters: names
            .iter()
            .map(|name| (cluster_name(name), placement.clone()))
            .collect(),
    };
    Published {
        record: None,
        units: BTreeMap::from([(key(), unit)]),
    }
}

fn key() -> UnitKey {
    UnitKey::new("default", "web").expect("a valid unit")
}

fn explained(fleet: &Fleet, published: &Published) -> Explanation {
    explain(fleet, published, &key(), None).expect("the unit is declared")
}

#[track_caller]
fn check(explanation: &Explanation, cluster: &str, decision: Decision, reason: &str) {
    let found = explanation
        .clusters
        .iter()
        .find(|found| found.cluster.as_str() == cluster);
    let found = found.expect("every cluster is explained");
    assert_eq!(found.decision, decision, "{found:#?}");
    assert!(found.reasons.iter().any(|text| text.contains(reason)), "{found:#?}");
}

#[test]
fn every_cluster_says_why_it_is_chosen_or_not() {
    let explanation = explained(&world(TaintEffect::NoSchedule), &Published::default());
    check(&explanation, "a", Decision::Chosen, "matches subscriber 1 (env=prod)");
    check(&explanation, "b", Decision::NotMatched, "no subscriber matches");
    check(
        &explanation,
        "c",
        Decision::Tainted,
        "taint maintenance:NoSchedule is not tolerated",
    );
    let unmet: Vec<_> = explanation.clusters[1]
        .subscribers
        .iter()
        .map(|found| found.unmet.join("; "))
        .collect();
    assert_eq!(
        unmet,
        ["env=prod: it has env=test", "region=eu: it has no label region"]
    );
    assert_eq!(explanation.variants[0].clusters, [cluster_name("a")]);
}

#[test]
fn what_was_placed_is_kept_or_leaves_and_says_so() {
    let there = placed(&["a", "b", "c"]);
    let explanation = explained(&world(TaintEffect::NoSchedule), &there);
    check(
        &explanation,
        "c",
        Decision::Chosen,
        "which only keeps new placements out",
    );
    check(&explanation, "b", Decision::NotMatched, "leaves with this revision");
    let explanation = explained(&world(TaintEffect::NoExecute), &there);
    check(&explanation, "c", Decision::Tainted, "leaves with this revision");
    // With no feasible cluster the last placement stays, and a finding says so.
    let mut nowhere = world(TaintEffect::NoExecute);
    nowhere.clusters.retain(|name, _| name.as_str() != "a");
    let explanation = explained(&nowhere, &there);
    check(&explanation, "b", Decision::Kept, "no cluster is feasible");
    assert_eq!(explanation.findings[0].reason, "NoFeasibleCluster");
}

#[test]
fn an_error_holds_what_is_there_and_blocks_what_is_not() {
    let mut world = world(TaintEffect::NoSchedule);
    let unit = world.units.get_mut(&key()).expect("it is declared");
    unit.blocked = vec![Finding::error("Unreadable", "no YAML").at("feeds/web.yaml", 3)];
    let explanation = explained(&world, &placed(&["b"]));
    check(&explanation, "b", Decision::Held, "has an error");
    check(
        &explanation,
        "a",
        Decision::Blocked,
        "not placed while the unit has an error",
    );
    assert_eq!(explanation.findings[0].file, "feeds/web.yaml");
}

#[test]
fn overrides_are_told_in_their_order_by_field_and_never_by_value() {
    let object = ObjectKey::new("v1", "Secret", "shop", "s");
    let patch = |value: &str| step(OverrideStepType::MergePatch, value);
    let mut world = world(TaintEffect::NoSchedule);
    world.overrides = vec![
        Arc::new(globalization(
            "all",
            &object,
            None,
            vec![patch("stringData: {password: hunter2}")],
        )),
        Arc::new(localization(
            "a",
            &object,
            vec![patch("stringData: {password: hunter3, more: hunter4}"), patch("{}")],
        )),
    ];
    let explanation = explained(&world, &Published::default());
    let steps: Vec<_> = explanation.variants[0]
        .steps
        .iter()
        .map(|step| (step.by.as_str(), step.step, step.fields.join(" ")))
        .collect();
    let both = "/stringData/more /stringData/password".to_owned();
    let expected = [
        ("Globalization all", 1, "/stringData/password".to_owned()),
        ("Localization a/a", 1, both),
        ("Localization a/a", 2, String::new()),
    ];
    assert_eq!(steps, expected);
    let text = serde_json::to_string(&explanation).expect("an explanation is JSON");
    assert!(!text.contains("hunter"), "{text}");
}

#[test]
fn a_step_that_does_not_fit_is_told_where_it_stands() {
    let object = ObjectKey::new("v1", "Secret", "shop", "s");
    let operation = r#"[{"op": "replace", "path": "/nowhere/at/all", "value": 1}]"#;
    let mut world = world(TaintEffect::NoSchedule);
    let steps = vec![
        step(OverrideStepType::JsonPatch, operation),
        step(OverrideStepType::MergePatch, "{a: 1}"),
    ];
    world.overrides = vec![Arc::new(localization("a", &object, steps))];
    let explanation = explained(&world, &Published::default());
    assert_eq!(explanation.variants[0].steps.len(), 1, "nothing is applied after it");
    let finding = &explanation.findings[0];
    assert_eq!((finding.file.as_str(), finding.line), ("a.yaml", 7));
    assert_eq!(finding.cluster.as_ref().map(ClusterName::as_str), Some("a"));
}

#[test]
fn one_cluster_alone_is_explained_as_among_all() {
    let world = world(TaintEffect::NoSchedule);
    let all = explained(&world, &Published::default());
    for cluster in &all.clusters {
        let one = explain(&world, &Published::default(), &key(), Some(&cluster.cluster));
        assert_eq!(one.expect("it is declared").clusters, std::slice::from_ref(cluster));
    }
    let other = UnitKey::new("default", "other").expect("a valid unit");
    assert!(explain(&world, &Published::default(), &other, None).is_none());
}
