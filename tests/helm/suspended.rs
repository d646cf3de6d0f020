//! HelmCharts that are suspended, and what waits for releases.

use std::time::Duration;

use flotilla_tests::{ControlPlane, eventually, wait};
use reconciler::wire::{ObjectState, UnitState};
use render::ObjectKey;
use render::describe::Content;
use render::model::{ApplyPolicy, SuspendedObject};
use serde_json::{Value, json};

use super::applier::*;
use super::charts;

const SETTINGS: &str = "configmap/web-settings";

fn web(colour: &str) -> Content {
    folder_chart("web", &charts::settings(), json!({"values": {"colour": colour}}))
}

/// Suspends HelmChart `fleet/web`, under a name of its that people use.
fn suspending(api_version: &str) -> ApplyPolicy {
    ApplyPolicy {
        suspended: vec![SuspendedObject {
            object: ObjectKey::new(api_version, "HelmChart", "fleet", "web"),
            clusters: Vec::new(),
            until: None,
            by: "Suspension fair (audit)".to_owned(),
        }],
        ..ApplyPolicy::default()
    }
}

#[track_caller]
fn colour(cluster: &ControlPlane) -> Value {
    cluster.get("shop", SETTINGS).unwrap()["data"]["colour"].clone()
}

#[track_caller]
fn paint(cluster: &ControlPlane, colour: &str) {
    let patch = json!({"data": {"colour": colour}}).to_string();
    let arguments = ["-n", "shop", "patch", SETTINGS, "--type=merge", "--patch", &patch];
    cluster.kubectl(&arguments).expect_ok();
}

#[track_caller]
fn until_colour(cluster: &ControlPlane, wanted: &str, what: &str) {
    eventually(wait::LONG, what, || {
        let found = cluster.get("shop", SETTINGS)?["data"]["colour"].clone();
        (found == wanted).then_some(()).ok_or_else(|| found.to_string())
    });
}

#[test]
fn a_suspended_release_is_left_alone_by_itself_and_goes_on_when_it_is_resumed() {
    let cluster = cluster("helm-suspended");
    let mut applier = Applier::start(&cluster, "helm-suspended");
    let other = |colour: &str| folder_chart("other", &charts::settings(), json!({"values": {"colour": colour}}));
    applier.deliver(&[("shop/web", vec![web("blue"), other("blue")])]);
    applier.until_well("shop/web");

    let policy = suspending("fleet.flotilla.dev/v1alpha1");
    applier.deliver_under(&[("shop/web", vec![web("green"), other("green")])], &policy);
    applier.until_told("web", ObjectState::Suspended, "suspended by Suspension fair (audit)");
    eventually(wait::LONG, "the other release of its unit is upgraded", || {
        let now = history(&cluster, "other");
        (now.len() == 2).then_some(()).ok_or_else(|| format!("{now:?}"))
    });
    let report = applier.until("all of it is applied or suspended", |report| {
        report.units.values().all(|unit| unit.state == UnitState::Applied)
    });
    assert!(
        report.units.values().all(|unit| unit.counts.suspended == 1),
        "{report:#?}"
    );
    paint(&cluster, "red");
    applier.until("what somebody changes is told", |report| {
        report.units.values().any(|unit| unit.counts.drifted == 1)
    });
    // Under both names of its kind, whichever its file has.
    for group in ["apps.clusternet.io/v1alpha1", "fleet.flotilla.dev/v1alpha1"] {
        applier.deliver_under(&[("shop/web", vec![other("green")])], &suspending(group));
        applier.until_told("web", ObjectState::Kept, "suspended by Suspension fair (audit)");
    }
    wait::throughout(
        Duration::from_secs(3),
        "it is neither upgraded, put right nor removed",
        || {
            let now = (history(&cluster, "web"), colour(&cluster));
            let is_left = now == (vec![(1, "deployed".to_owned())], json!("red"));
            is_left.then_some(()).ok_or_else(|| format!("{now:?}"))
        },
    );
    let sequence = applier.sequence();
    applier.stop();

    // As Clusternet's kind, and after a restart.
    let mut applier = Applier::start_with(&cluster, "helm-suspended-again", sequence, None);
    let policy = suspending("apps.clusternet.io/v1alpha1");
    applier.deliver_under(&[("shop/web", vec![web("green"), other("green")])], &policy);
    applier.until_told("web", ObjectState::Suspended, "suspended by Suspension fair (audit)");
    applier.deliver(&[("shop/web", vec![web("green"), other("green")])]);
    until_colour(&cluster, "green", "what is resumed is brought up to date");
    applier.until_well("shop/web");
    assert_eq!(history(&cluster, "web").len(), 2);
    applier.stop();
}

#[test]
fn an_annotation_in_git_suspends_a_release() {
    let cluster = cluster("helm-annotated");
    let mut applier = Applier::start(&cluster, "helm-annotated");
    let words = json!({"fleet.flotilla.dev/reconcile": "disabled"});
    applier.deliver(&[("shop/web", vec![annotated(web("blue"), &words)])]);
    let name = "its annotation fleet.flotilla.dev/reconcile";
    applier.until_told("web", ObjectState::Suspended, name);
    assert!(history(&cluster, "web").is_empty(), "nor is it installed");
    applier.deliver(&[("shop/web", vec![web("blue")])]);
    applier.until_well("shop/web");
    applier.deliver(&[("shop/web", vec![annotated(web("green"), &words)])]);
    applier.until_told("web", ObjectState::Suspended, name);
    paint(&cluster, "red");
    wait::throughout(Duration::from_secs(4), "it is left", || {
        let found = colour(&cluster);
        (found == "red").then_some(()).ok_or_else(|| found.to_string())
    });
    assert_eq!(history(&cluster, "web"), [(1, "deployed".to_owned())]);
    applier.deliver(&[("shop/web", vec![web("blue")])]);
    until_colour(&cluster, "blue", "what was changed meanwhile is put right");
    assert_eq!(history(&cluster, "web"), [(1, "deployed".to_owned())]);
    applier.stop();
}

#[test]
fn what_names_a_helm_chart_waits_until_its_release_is_healthy_across_units() {
    let cluster = cluster("helm-needed");
    let mut applier = Applier::start(&cluster, "helm-needed");
    let first = |replicas: u64| {
        let values = json!({"values": {"replicas": replicas}});
        vec![folder_chart("first", &charts::deployment(), values)]
    };
    let needing = |name: &str, group: &str| {
        plain(
            json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "default",
            "annotations": {"fleet.flotilla.dev/depends-on": format!("{group}/HelmChart/fleet/first")}}}),
        )
    };
    let second = || {
        vec![
            needing("second", "fleet.flotilla.dev"),
            needing("third", "apps.clusternet.io"),
            annotated(
                web("blue"),
                &json!({"fleet.flotilla.dev/depends-on": "/ConfigMap/default/second"}),
            ),
        ]
    };
    applier.deliver(&[("shop/first", first(1)), ("shop/second", second())]);
    applier.until("both objects and the release wait", |report| {
        let unit = report.units.values().find(|unit| unit.counts.objects == 3);
        unit.is_some_and(|unit| {
            let said = |words: &str| unit.worst.iter().filter(|object| object.message == words).count();
            said("waits for HelmChart fleet/first") == 2 && said("waits for ConfigMap default/second") == 1
        })
    });
    eventually(wait::LONG, "what is needed is installed", || {
        let now = history(&cluster, "first");
        (now.len() == 1).then_some(()).ok_or_else(|| format!("{now:?}"))
    });
    assert!(!cluster.has("default", "configmap/second"));
    assert!(history(&cluster, "web").is_empty());
    applier.deliver(&[("shop/first", first(0)), ("shop/second", second())]);
    applier.until_well("shop/second");
    assert!(cluster.has("default", "configmap/third"));
    applier.stop();
}
