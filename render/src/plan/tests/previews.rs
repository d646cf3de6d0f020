//! What predictions of charts hold back, and what is said of them.

use super::*;
use crate::chart::{Capabilities, Preview, PreviewMode, Previews};

fn chart(replicas: u64) -> Arc<ManifestObject> {
    manifest(
        json!({"apiVersion": "fleet.flotilla.dev/v1alpha1", "kind": "HelmChart", "metadata": {"name": "web"},
        "spec": {"repo": "https://x", "chart": "web", "version": "1.0.0", "targetNamespace": "shop",
            "values": {"replicas": replicas}}}),
    )
}

fn steady() -> Preview {
    Preview::Predicted {
        objects: Vec::new(),
        unsteady: Vec::new(),
    }
}

/// Clusters a and b have said what they are, c has not; `say` is what is known for each version.
fn with_previews(units: u64, digit: char, before: &Plan, say: impl Fn(&str) -> Option<Preview>) -> Plan {
    let objects = vec![chart(units), config_map("beside", &units.to_string())];
    let mut snapshot = snapshot(digit, vec![unit("shop/web", objects)], Vec::new(), before);
    let said = |version: &str| Arc::new(Capabilities::new(version.to_owned(), Vec::new()));
    let named = |name: &str| ClusterName::parse(name).expect("a valid cluster");
    let mut previews = Previews {
        mode: PreviewMode::On,
        capabilities: BTreeMap::from([(named("a"), said("v1.33.0")), (named("b"), said("v1.24.0"))]),
        known: BTreeMap::new(),
    };
    // What is wanted is what a plan asks for, and is answered once.
    snapshot.chart_previews = previews.clone();
    for (key, request) in planned(&snapshot).pending {
        if let Some(preview) = say(request.capabilities.kubernetes_version()) {
            previews.known.insert(key, Arc::new(preview));
        }
    }
    snapshot.chart_previews = previews;
    planned(&snapshot)
}

fn shown(plan: &Plan) -> Vec<String> {
    let shown = |finding: &Finding| {
        let cluster = finding.cluster.as_ref().map(ToString::to_string);
        format!("{} {} {}", finding.reason, cluster.unwrap_or_default(), finding.message)
    };
    plan.findings.iter().map(shown).collect()
}

const SILENT: &str = "ChartNotPredicted c what the chart web brings is not predicted: the cluster has not said its version and kinds yet";

#[test]
fn a_chart_that_helm_refuses_keeps_its_cluster_at_the_last_good_content() {
    let before = with_previews(1, '1', &Plan::default(), |_| Some(steady()));
    assert_eq!(shown(&before), [SILENT]);
    let words = "web/templates/a.yaml: no such value";
    let after = with_previews(2, '2', &before, |version| match version {
        "v1.24.0" => Some(Preview::Failed {
            words: words.to_owned(),
        }),
        _ => Some(steady()),
    });
    let digest = |plan: &Plan, cluster| digest_at(plan, "shop/web", cluster);
    assert_ne!(digest(&after, "a"), digest(&before, "a"), "a moved on");
    assert_eq!(
        digest(&after, "b"),
        digest(&before, "b"),
        "b keeps the whole unit, the ConfigMap as well"
    );
    assert_ne!(digest(&after, "c"), digest(&before, "c"), "nothing is known against c");
    assert_eq!(
        shown(&after),
        [
            SILENT.to_owned(),
            format!("ChartFails b helm refuses the chart web: {words}")
        ]
    );
    assert!(after.pending.is_empty());
}

#[test]
fn a_chart_that_helm_refuses_for_two_clusters_marks_both() {
    let before = with_previews(1, '1', &Plan::default(), |_| Some(steady()));
    let failed = |_: &str| {
        Some(Preview::Failed {
            words: "no such value".to_owned(),
        })
    };
    let after = with_previews(2, '2', &before, failed);
    let finding = after.findings.iter().find(|finding| finding.reason == "ChartFails");
    let finding = finding.expect("it is said");
    for (cluster, is_held) in [("a", true), ("b", true), ("c", false)] {
        let name = ClusterName::parse(cluster).expect("a valid cluster");
        assert_eq!(finding.concerns(&name), is_held, "{cluster}: {finding:#?}");
        let digest = |plan: &Plan| digest_at(plan, "shop/web", cluster);
        assert_eq!(digest(&after) == digest(&before), is_held, "{cluster}");
    }
}

#[test]
fn a_chart_waits_for_its_prediction_and_for_nothing_else() {
    let first = with_previews(1, '1', &Plan::default(), |_| None);
    assert_eq!(first.pending.len(), 2, "one for each version");
    let having: Vec<_> = ["a", "b", "c"]
        .map(|cluster| digest_at(&first, "shop/web", cluster).is_some())
        .into();
    assert_eq!(
        having,
        [false, false, true],
        "what a silent cluster is, nobody waits for"
    );
    let second = with_previews(1, '1', &first, |_| Some(steady()));
    assert!(digest_at(&second, "shop/web", "a").is_some());
    // After a restart nothing is known: what clusters have already stays with them, and nothing is written.
    let again = with_previews(1, '1', &second, |_| None);
    assert_eq!(again.units, second.units);
    assert_eq!(again.pending.len(), 2);
}

#[test]
fn a_chart_that_prints_something_else_each_time_is_warned_of() {
    let plan = with_previews(1, '1', &Plan::default(), |_| {
        Some(Preview::Predicted {
            objects: Vec::new(),
            unsteady: vec!["web/templates/secret.yaml".to_owned()],
        })
    });
    assert!(
        digest_at(&plan, "shop/web", "a").is_some(),
        "it is delivered all the same"
    );
    let said = "ChartUnsteady a the chart web prints something else each time in web/templates/secret.yaml, also on 1 other cluster";
    assert_eq!(shown(&plan), [SILENT, said]);
}

#[test]
fn what_cannot_be_predicted_is_said_and_holds_nothing() {
    let plan = with_previews(1, '1', &Plan::default(), |_| {
        Some(Preview::Unknown {
            why: "the chart's repository asks for a login".to_owned(),
        })
    });
    assert!(digest_at(&plan, "shop/web", "a").is_some());
    assert_eq!(plan.findings.len(), 2);
    let mut without = snapshot(
        '1',
        vec![unit("shop/web", vec![chart(1)])],
        Vec::new(),
        &Plan::default(),
    );
    without.chart_previews.mode = PreviewMode::NoHelm;
    let plan = planned(&without);
    assert!(digest_at(&plan, "shop/web", "a").is_some());
    assert_eq!(
        shown(&plan),
        ["HelmMissing  the hub has no helm, so what charts bring is not predicted"]
    );
}

#[test]
fn an_upgraded_cluster_is_predicted_anew_without_a_commit() {
    let plan = with_previews(1, '1', &Plan::default(), |_| Some(steady()));
    let mut snapshot = snapshot('1', vec![unit("shop/web", vec![chart(1)])], Vec::new(), &plan);
    snapshot.chart_previews.mode = PreviewMode::On;
    let mut memo = Memo::default();
    let version = |version: &str| Arc::new(Capabilities::new(version.to_owned(), Vec::new()));
    let name = ClusterName::parse("a").expect("a valid cluster");
    snapshot
        .chart_previews
        .capabilities
        .insert(name.clone(), version("v1.33.0"));
    let before = super::plan(&snapshot, &mut memo).pending;
    snapshot.chart_previews.capabilities.insert(name, version("v1.34.0"));
    let after = super::plan(&snapshot, &mut memo).pending;
    assert_eq!((before.len(), after.len()), (1, 1));
    assert_ne!(before.keys().next(), after.keys().next());
}
