//! Explanations of small fleets.

mod room;

use std::sync::Arc;

use serde_json::json;

use super::*;
use crate::chart::{Capabilities, PredictedObject, Preview, PreviewMode, Previews};
use crate::digest::Digest;
use crate::fixture::{
    base, cluster, cluster_name, fleet, globalization, localization, revision, step, subscriber, subscription,
};
use crate::localize;
use crate::model::{DriftMode, OverrideStepType, Scheduling, Taint, TaintEffect};
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
        replicas: Default::default(),
        drift: Default::default(),
        revision: revision(),
        reasons: Default::default(),
        inputs: Digest::of_bytes(b""),
        capacity: None,
        leaves_at: None,
    };
    let variant = Variant {
        digest: Digest::of_bytes(b""),
        revision: revision(),
        overrides: Vec::new(),
    };
    let unit = UnitPlacement {
        variants: BTreeMap::from([(VariantName::default_variant(), variant)]),
        clusters: names
            .iter()
            .map(|name| (cluster_name(name), placement.clone()))
            .collect(),
        ..UnitPlacement::default()
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
    explained_with(fleet, published, &[])
}

fn explained_with(fleet: &Fleet, published: &Published, findings: &[Finding]) -> Explanation {
    explain(&looking(fleet, published, findings), &key(), None).expect("the unit is declared")
}

fn looking<'a>(fleet: &'a Fleet, published: &'a Published, findings: &'a [Finding]) -> Context<'a> {
    Context {
        fleet,
        published,
        findings,
        reports: Box::leak(Box::default()),
        now: 0,
    }
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
        let nothing = Published::default();
        let one = explain(&looking(&world, &nothing, &[]), &key(), Some(&cluster.cluster));
        assert_eq!(one.expect("it is declared").clusters, std::slice::from_ref(cluster));
    }
    let other = UnitKey::new("default", "other").expect("a valid unit");
    assert!(explain(&looking(&world, &Published::default(), &[]), &other, None).is_none());
}

/// An Error of the plan that holds the unit on these clusters.
fn holding(reason: &str, clusters: &[&str]) -> Finding {
    let names: Vec<_> = clusters.iter().map(|name| cluster_name(name)).collect();
    Finding::error(reason, "it would go")
        .at("subscriptions/web.yaml", 1)
        .unit(&key())
        .clusters(&names)
}

#[test]
fn what_the_plan_holds_is_held_on_every_cluster_that_it_names() {
    let world = world(TaintEffect::NoSchedule);
    let there = placed(&["a", "b"]);
    let guarded = holding("PruneBudgetExceeded", &["a", "b"]);
    let explanation = explained_with(&world, &there, &[guarded]);
    let by = "keeps what it had: PruneBudgetExceeded at subscriptions/web.yaml:1";
    check(&explanation, "b", Decision::Held, by);
    check(&explanation, "a", Decision::Held, "PruneBudgetExceeded");
    let having = explanation.clusters.iter().filter(|cluster| cluster.decision.has_it());
    assert_eq!(having.count(), 2, "what is held is there: {explanation:#?}");
    // Where nobody has it yet, nothing is kept.
    let explanation = explained_with(&world, &Published::default(), &[holding("ChartFails", &["a", "c"])]);
    check(
        &explanation,
        "a",
        Decision::Blocked,
        "ChartFails at subscriptions/web.yaml:1",
    );
    check(&explanation, "c", Decision::Blocked, "ChartFails");
    check(&explanation, "b", Decision::NotMatched, "no subscriber matches");
}

#[test]
fn a_held_variant_is_told_with_the_overrides_that_made_it() {
    let world = world(TaintEffect::NoSchedule);
    let mut there = placed(&["a"]);
    let unit = there.units.get_mut(&key()).expect("it is published");
    for variant in unit.variants.values_mut() {
        variant.overrides = vec!["Localization a/tint".to_owned()];
    }
    let explanation = explained_with(&world, &there, &[holding("OverrideUnusable", &["a"])]);
    let [held] = &explanation.variants[..] else {
        panic!("one variant, and not {explanation:#?}")
    };
    assert_eq!(
        (held.standing, &held.clusters[..]),
        (Standing::Held, &[cluster_name("a")][..])
    );
    assert_eq!(held.overrides, ["Localization a/tint"]);
    assert_eq!(held.made_from, Some(revision()));
}

#[test]
fn the_drift_mode_that_counts_is_told_for_each_cluster_that_has_it() {
    let mut world = world(TaintEffect::NoSchedule);
    let unit = world.units.get_mut(&key()).expect("it is declared");
    let subscription = Arc::make_mut(&mut unit.subscription);
    subscription.drift = Some(DriftMode::Report);
    let frozen = world.clusters.get_mut(&cluster_name("c")).expect("it is registered");
    (frozen.drift, frozen.taints) = (Some(DriftMode::Freeze), Vec::new());
    let modes: Vec<_> = explained(&world, &Published::default())
        .clusters
        .iter()
        .map(|cluster| cluster.drift)
        .collect();
    assert_eq!(modes, [Some(DriftMode::Report), None, Some(DriftMode::Freeze)]);
}

#[test]
fn what_a_chart_brings_is_told_where_it_is_predicted() {
    let chart = json!({"apiVersion": "fleet.flotilla.dev/v1alpha1", "kind": "HelmChart", "metadata": {"name": "web"},
        "spec": {"repo": "https://x", "chart": "web", "version": "1.0.0", "targetNamespace": "shop"}});
    let clusters = ["a", "b", "c"].map(|name| cluster(name, &[("env", "prod")]));
    let subscribers = vec![subscriber(&[("env", "prod")], None)];
    let fleet = fleet(
        clusters,
        subscription(Scheduling::Replication, subscribers),
        base([chart]),
    );
    let said = |version: &str| Arc::new(Capabilities::new(version.to_owned(), Vec::new()));
    let versions = [("a", "v1.33.0"), ("b", "v1.24.0"), ("c", "v1.33.0")];
    let mut previews = Previews {
        mode: PreviewMode::On,
        capabilities: versions
            .map(|(name, version)| (cluster_name(name), said(version)))
            .into(),
        ..Previews::default()
    };
    let explanation = explained(&fleet, &Published::default());
    let unit = &fleet.units[&key()];
    let content =
        localize::localize(&unit.base, &[], &crate::schedule::Divided::none()).expect("nothing is overridden");
    let (_, request) = previews.requests(&content, &cluster_name("a")).remove(0);
    let object = |name: &str, hook| PredictedObject {
        key: ObjectKey::new("v1", "ConfigMap", "shop", name),
        value: Arc::new(json!({})),
        template: format!("web/templates/{name}.yaml"),
        hook,
    };
    let preview = Preview::Predicted {
        objects: vec![object("made", false), object("hook", true)],
        unsteady: Vec::new(),
    };
    previews.known.insert(request.key(), Arc::new(preview));
    let told = predicted(&fleet, &explanation, &previews);
    let lines: Vec<_> = told
        .iter()
        .map(|chart| {
            let clusters: Vec<_> = chart.clusters.iter().map(|cluster| cluster.as_str()).collect();
            let objects: Vec<_> = chart.objects.iter().map(|object| object.template.as_str()).collect();
            format!(
                "{} {:?} {:?} {}",
                chart.chart.name, clusters, objects, chart.not_predicted
            )
        })
        .collect();
    let expected = [
        r#"web ["a", "c"] ["web/templates/made.yaml"] "#,
        r#"web ["b"] [] it is not predicted yet"#,
    ];
    assert_eq!(lines, expected);
}
