//! Objects of a release that somebody changed.

use std::time::Duration;

use flotilla_tests::{ControlPlane, eventually, wait};
use reconciler::apply::ApplyReport;
use reconciler::wire::{ObjectDrift, ObjectState};
use render::model::{ApplyPolicy, DriftMode, IgnoreRule};
use serde_json::{Value, json};

use super::applier::*;
use super::charts;

#[test]
fn drift_of_a_release_is_put_right_without_a_revision() {
    let cluster = cluster("helm-drift");
    let mut applier = Applier::start(&cluster, "helm-drift");
    let chart = folder_chart("web", &charts::deployment(), json!({"values": {"replicas": 0}}));
    applier.deliver(&[("shop/web", vec![chart])]);
    applier.until_well("shop/web");
    let patch = r#"{"data":{"colour":"red","mine":"1"}}"#;
    cluster
        .kubectl(&["-n", "shop", "patch", "configmap", "web-settings", "--patch", patch])
        .expect_ok();
    eventually(wait::LONG, "the colour is the chart's again", || {
        let data = cluster.get("shop", "configmap/web-settings")?["data"].clone();
        if data["colour"] == "blue" {
            Ok(data)
        } else {
            Err(data.to_string())
        }
    });
    let data = cluster.get("shop", "configmap/web-settings").unwrap()["data"].clone();
    assert_eq!(data["mine"], "1", "what others add stays, as with Helm");
    cluster
        .kubectl(&["-n", "shop", "delete", "configmap", "web-settings"])
        .expect_ok();
    eventually(wait::LONG, "it is there again", || {
        cluster.get("shop", "configmap/web-settings")
    });
    assert_eq!(history(&cluster, "web"), [(1, "deployed".to_owned())]);

    cluster
        .kubectl(&["-n", "shop", "scale", "deployment", "web", "--replicas=2"])
        .expect_ok();
    wait::throughout(Duration::from_secs(5), "who scales it keeps the word", || {
        let replicas = cluster.get("shop", "deployment/web")?["spec"]["replicas"].clone();
        if replicas == 2 {
            Ok(())
        } else {
            Err(replicas.to_string())
        }
    });

    let chart = folder_chart("web", &charts::settings(), json!({"values": {"colour": "green"}}));
    applier.deliver(&[("shop/web", vec![chart])]);
    applier.until_well("shop/web");
    let settings = cluster.get("shop", "configmap/web-settings").unwrap();
    assert_eq!(settings["data"]["colour"], "green", "Helm's next upgrade goes through");
    assert!(
        !cluster.has("shop", "deployment/web"),
        "and takes away what the chart lost"
    );
    applier.stop();
}

const SETTINGS: &str = "configmap/web-settings";

/// Changes the ConfigMap of the release, as a person with `kubectl patch`.
#[track_caller]
fn patch(cluster: &ControlPlane, data: &Value) {
    let patch = json!({ "data": data }).to_string();
    let arguments = ["-n", "shop", "patch", SETTINGS, "--type=merge", "--patch", &patch];
    cluster.kubectl(&arguments).expect_ok();
}

#[track_caller]
fn until_colour(cluster: &ControlPlane, colour: &str, what: &str) {
    eventually(wait::LONG, what, || {
        let data = cluster.get("shop", SETTINGS)?["data"].clone();
        (data["colour"] == colour).then_some(()).ok_or_else(|| data.to_string())
    });
}

/// What a report tells of differences.
fn told(report: &ApplyReport) -> Vec<&ObjectDrift> {
    report.units.values().flat_map(|unit| &unit.drift).collect()
}

#[track_caller]
fn version(cluster: &ControlPlane, resource: &str) -> Value {
    cluster.get("shop", resource).unwrap()["metadata"]["resourceVersion"].clone()
}

#[test]
fn what_somebody_does_to_an_object_of_a_release_is_seen_by_a_watch_and_put_right_at_once() {
    let cluster = cluster("helm-watched");
    let mut applier = Applier::start_watching(&cluster, "helm-watched");
    let chart = |name: &str| folder_chart(name, &charts::deployment(), json!({"values": {"replicas": 0}}));
    applier.deliver(&[("shop/web", vec![chart("web")])]);
    applier.until_well("shop/web");
    let rest = version(&cluster, SETTINGS);
    patch(&cluster, &json!({"colour": "red", "mine": "1"}));
    until_colour(&cluster, "blue", "the colour is the chart's again");
    assert_eq!(
        cluster.get("shop", SETTINGS).unwrap()["data"]["mine"],
        "1",
        "what others add stays"
    );
    assert_ne!(version(&cluster, SETTINGS), rest);
    // The second release has objects of kinds and in a namespace that are watched already.
    applier.deliver(&[("shop/web", vec![chart("web")]), ("shop/other", vec![chart("other")])]);
    applier.until_well("shop/other");
    cluster
        .kubectl(&["-n", "shop", "delete", SETTINGS, "configmap/other-settings"])
        .expect_ok();
    for settings in [SETTINGS, "configmap/other-settings"] {
        eventually(wait::LONG, "it was made again", || cluster.get("shop", settings));
    }
    applier.until("what was put right is counted", |report| {
        (report.corrections.release_changed, report.corrections.release_removed) == (1, 2)
    });
    assert_eq!(history(&cluster, "web"), [(1, "deployed".to_owned())]);
    assert_eq!(history(&cluster, "other"), [(1, "deployed".to_owned())]);

    // A status, a label and an annotation of others are nothing to us.
    let before = version(&cluster, "configmap/other-settings");
    let status = r#"{"status":{"observedGeneration":1,"replicas":0}}"#;
    let arguments = [
        "-n",
        "shop",
        "patch",
        "deployment/web",
        "--subresource=status",
        "--type=merge",
        "-p",
        status,
    ];
    cluster.kubectl(&arguments).expect_ok();
    cluster
        .kubectl(&["-n", "shop", "label", "deployment/web", "theirs=1"])
        .expect_ok();
    let theirs = version(&cluster, "deployment/web");
    patch(&cluster, &json!({"colour": "red"}));
    until_colour(&cluster, "blue", "what is seen later is put right");
    wait::throughout(Duration::from_secs(3), "nothing is written at rest", || {
        let now = (
            version(&cluster, "configmap/other-settings"),
            version(&cluster, "deployment/web"),
        );
        (now == (before.clone(), theirs.clone()))
            .then_some(())
            .ok_or_else(|| format!("{now:?}"))
    });
    applier.stop();
}

#[test]
fn what_differs_of_a_release_in_mode_report_or_freeze_is_told_field_by_field_and_left() {
    let cluster = cluster("helm-report");
    let mut applier = Applier::start_watching(&cluster, "helm-report");
    let unit = |colour: &str| {
        let chart = folder_chart("web", &charts::settings(), json!({"values": {"colour": colour}}));
        vec![("shop/web", vec![chart])]
    };
    applier.change_drift_mode(DriftMode::Report);
    // Another unit delivers the same HelmChart, and has no say.
    let twice = ["shop/web", "shop/zoo"].map(|name| (name, unit("blue").remove(0).1));
    applier.deliver(&twice);
    applier.until_well("shop/web");
    applier.until_told("web", ObjectState::Conflict, "unit shop/web delivers it too");
    patch(&cluster, &json!({"colour": "red", "mine": "1"}));
    let report = applier.until("the difference is told", |report| !told(report).is_empty());
    let drift = told(&report)[0];
    assert_eq!(told(&report).len(), 1, "{report:#?}");
    assert_eq!(
        (drift.object.name.as_str(), drift.fields.len()),
        ("web-settings", 1),
        "{drift:?}"
    );
    let field = &drift.fields[0];
    assert_eq!(
        (field.path.as_str(), field.manager.as_str()),
        ("/data/colour", "kubectl-patch")
    );
    assert_eq!(
        (field.wanted.clone(), field.found.clone()),
        (Some(json!("blue")), Some(json!("red")))
    );
    assert_eq!(drift.chart.as_ref().map(|chart| chart.name.as_str()), Some("web"));
    let drifted = report.units.iter().filter(|(_, unit)| unit.counts.drifted == 1);
    let drifted: Vec<_> = drifted.map(|(key, _)| key.to_string()).collect();
    assert_eq!(drifted, ["shop/web"], "whose it is, tells it");
    applier.deliver(&unit("blue"));
    patch(&cluster, &json!({"colour": "blue"}));
    applier.until("whoever changes it back ended the difference", |report| {
        told(report).is_empty()
    });
    cluster.kubectl(&["-n", "shop", "delete", SETTINGS]).expect_ok();
    until_colour(
        &cluster,
        "blue",
        "what is gone is made again, as any object in this mode",
    );

    applier.change_drift_mode(DriftMode::Freeze);
    applier.deliver(&unit("blue"));
    patch(&cluster, &json!({"colour": "red"}));
    applier.until("it is told in mode Freeze too", |report| {
        told(report)
            .iter()
            .any(|drift| drift.fields.iter().any(|field| field.found == Some(json!("red"))))
    });
    applier.deliver(&unit("green"));
    applier.until_told("web", ObjectState::Suspended, "drift.mode is Freeze");
    assert_eq!(cluster.get("shop", SETTINGS).unwrap()["data"]["colour"], "red");
    applier.change_drift_mode(DriftMode::Report);
    applier.deliver(&unit("blue"));
    applier.until("it goes on as it was", |report| told(report).len() == 1);
    // The other mode alone, with nothing else, puts it right.
    applier.change_drift_mode(DriftMode::Correct);
    applier.deliver(&unit("blue"));
    until_colour(&cluster, "blue", "what was left is put right");
    applier.until("nothing differs any more", |report| told(report).is_empty());
    assert_eq!(history(&cluster, "web"), [(1, "deployed".to_owned())]);
    applier.stop();
}

#[test]
fn a_fight_over_an_object_of_a_release_is_named_and_backed_off_from() {
    let cluster = cluster("helm-fight");
    let mut applier = Applier::start_watching(&cluster, "helm-fight");
    let unit = |colour: &str| {
        let chart = folder_chart("web", &charts::settings(), json!({"values": {"colour": colour}}));
        vec![("shop/web", vec![chart])]
    };
    applier.deliver(&unit("blue"));
    applier.until_well("shop/web");
    // An opponent that changes it whenever somebody looks.
    let report = applier.until("the fight is told", |report| {
        patch(&cluster, &json!({"colour": "red"}));
        told(report).iter().any(|drift| {
            drift
                .message
                .contains("fights with manager kubectl-patch over /data/colour")
        })
    });
    assert!(report.corrections.release_changed >= 5, "{:?}", report.corrections);
    applier.deliver(&unit("green"));
    until_colour(&cluster, "green", "a new word of Git is there at once");
    applier.until("and ends the fight", |report| told(report).is_empty());
    applier.stop();
}

#[test]
fn fields_of_a_release_that_a_rule_leaves_to_others_are_left() {
    let cluster = cluster("helm-ignored");
    let mut applier = Applier::start_watching(&cluster, "helm-ignored");
    let policy = ApplyPolicy {
        ignore: vec![IgnoreRule {
            kind: "ConfigMap".to_owned(),
            paths: vec!["/data/colour".to_owned()],
            ..IgnoreRule::default()
        }],
        ..ApplyPolicy::default()
    };
    let chart = folder_chart("web", &charts::settings(), json!({}));
    applier.deliver_under(&[("shop/web", vec![chart])], &policy);
    applier.until_well("shop/web");
    patch(&cluster, &json!({"colour": "red"}));
    let mark = "app.kubernetes.io/managed-by-";
    cluster.kubectl(&["-n", "shop", "label", SETTINGS, mark]).expect_ok();
    eventually(wait::LONG, "what no rule names is put right", || {
        let settings = cluster.get("shop", SETTINGS)?;
        let labels = &settings["metadata"]["labels"];
        (labels["app.kubernetes.io/managed-by"] == "Helm")
            .then_some(())
            .ok_or_else(|| labels.to_string())
    });
    assert_eq!(
        cluster.get("shop", SETTINGS).unwrap()["data"]["colour"],
        "red",
        "it is left"
    );
    let report = applier.until("the label was put right", |report| {
        report.corrections.release_changed == 1
    });
    assert!(told(&report).is_empty(), "nor is it told: {report:#?}");
    applier.stop();
}

#[test]
fn a_field_of_a_secret_that_its_chart_writes_as_text_is_left_to_others_by_a_rule() {
    let cluster = cluster("helm-secret");
    let mut applier = Applier::start_watching(&cluster, "helm-secret");
    let policy = ApplyPolicy {
        ignore: vec![IgnoreRule {
            kind: "Secret".to_owned(),
            paths: vec!["/data/colour".to_owned()],
            ..IgnoreRule::default()
        }],
        ..ApplyPolicy::default()
    };
    let chart = folder_chart("web", &charts::secret(), json!({}));
    applier.deliver_under(&[("shop/web", vec![chart])], &policy);
    applier.until_well("shop/web");
    let (red, round) = ("cmVk", "cm91bmQ=");
    let patch = json!({"data": {"colour": red, "shape": red}}).to_string();
    let arguments = [
        "-n",
        "shop",
        "patch",
        "secret/web-settings",
        "--type=merge",
        "--patch",
        &patch,
    ];
    cluster.kubectl(&arguments).expect_ok();
    eventually(wait::LONG, "what no rule names is put right", || {
        let shape = cluster.get("shop", "secret/web-settings")?["data"]["shape"].clone();
        (shape == round).then_some(()).ok_or_else(|| shape.to_string())
    });
    let secret = cluster.get("shop", "secret/web-settings").unwrap();
    assert_eq!(secret["data"]["colour"], red, "it is left");
    let report = applier.until("it was put right once", |report| {
        report.corrections.release_changed == 1
    });
    assert!(told(&report).is_empty(), "nor is it told: {report:#?}");
    applier.stop();
}
