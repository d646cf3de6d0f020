//! What others do to our objects is put right at once, or told and left, as the unit's mode says.

use std::time::Duration;

use flotilla_tests::{ControlPlane, Options, eventually, wait};
use reconciler::wire::{UnitReport, UnitState};
use render::model::{ANNOTATION_UNIT, DriftMode};
use serde_json::{Value, json};

use super::delivery::*;

/// So long that nothing is ever compared in a test: whatever is seen, a watch told.
const NEVER: Duration = Duration::from_secs(3_600);

const UNIT: &str = "shop/web";

/// A ConfigMap with a label and two entries.
fn settings() -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": "settings", "namespace": "default", "labels": {"team": "shop"}},
        "data": {"level": "3", "file": "line one\nline two\n"}})
}

/// Waits until an object of the cluster fits.
#[track_caller]
fn until(cluster: &ControlPlane, resource: &str, what: &str, fits: impl Fn(&Value) -> bool) -> Value {
    eventually(wait::LONG, what, || match cluster.get("default", resource) {
        Ok(object) if fits(&object) => Ok(object),
        other => Err(format!("{other:#?}")),
    })
}

/// The paths that a report names of an object, with the manager of each.
fn paths(report: &UnitReport, name: &str) -> Vec<(String, String)> {
    let object = report.drift.iter().find(|drift| drift.object.name == name);
    let fields = object.map(|object| object.fields.as_slice()).unwrap_or_default();
    fields
        .iter()
        .map(|field| (field.path.clone(), field.manager.clone()))
        .collect()
}

#[test]
fn what_a_person_takes_out_is_put_back_at_once_also_where_no_health_is_read() {
    let cluster = cluster("drift-taken");
    let mut applier = Applier::start_with(&cluster, "drift-taken", NEVER);
    applier.deliver(&[(UNIT, vec![settings(), deployment("default", "web", 1)])]);
    applier.until_unit(UNIT, UnitState::Applied);
    cluster.kubectl(&["label", "configmap/settings", "team-"]).expect_ok();
    until(&cluster, "configmap/settings", "the label is back", |object| {
        object["metadata"]["labels"]["team"] == "shop"
    });
    let uid = metadata(&cluster, "default", "configmap/settings", "uid");
    cluster.kubectl(&["delete", "configmap/settings"]).expect_ok();
    until(&cluster, "configmap/settings", "it was made again", |object| {
        object["metadata"]["uid"] != uid.as_str() && object["data"]["level"] == "3"
    });
    applier.until_unit(UNIT, UnitState::Applied);
    applier.stop();
}

#[test]
fn what_others_add_or_say_of_the_status_is_no_reason_to_write() {
    let cluster = cluster("drift-beside");
    let mut applier = Applier::start_with(&cluster, "drift-beside", NEVER);
    applier.deliver(&[(UNIT, vec![settings(), deployment("default", "web", 1)])]);
    applier.until_unit(UNIT, UnitState::Applied);
    let ours = |resource: &str| our_last_write(&cluster, resource);
    let before = (ours("configmap/settings"), ours("deployment/web"));
    cluster
        .kubectl(&["annotate", "configmap/settings", "note=theirs"])
        .expect_ok();
    let status = r#"{"status":{"observedGeneration":1,"replicas":1}}"#;
    cluster
        .kubectl(&[
            "patch",
            "deployment",
            "web",
            "--subresource=status",
            "--type=merge",
            "-p",
            status,
        ])
        .expect_ok();
    // A change that is put right tells that those before it were seen: one watch tells in order.
    for resource in ["configmap/settings", "deployment/web"] {
        cluster.kubectl(&["label", resource, "theirs=1"]).expect_ok();
    }
    cluster
        .kubectl(&[
            "annotate",
            "configmap/settings",
            "deployment/web",
            &format!("{ANNOTATION_UNIT}-"),
        ])
        .expect_ok();
    for resource in ["configmap/settings", "deployment/web"] {
        until(&cluster, resource, "our annotation is back", |object| {
            object["metadata"]["annotations"][ANNOTATION_UNIT] == UNIT
        });
    }
    let config = cluster.get("default", "configmap/settings").unwrap();
    assert_eq!(config["metadata"]["annotations"]["note"], "theirs");
    assert_eq!(config["metadata"]["labels"]["theirs"], "1");
    assert_eq!(before.0.0, ours("configmap/settings").0, "what we own is the same");
    assert_eq!(before.1.0, ours("deployment/web").0, "what we own is the same");
    applier.stop();
}

/// What we own of an object, and its generation.
fn our_last_write(cluster: &ControlPlane, resource: &str) -> (Value, Value) {
    let object = cluster.kubectl(&["get", resource, "-o", "json", "--show-managed-fields"]);
    let object: Value = serde_json::from_str(&object.expect_ok()).expect("JSON");
    let entries = object["metadata"]["managedFields"]
        .as_array()
        .expect("it has managed fields");
    let ours = entries.iter().find(|entry| entry["manager"] == "flotilla");
    (
        ours.expect("we applied it")["fieldsV1"].clone(),
        object["metadata"]["generation"].clone(),
    )
}

#[test]
fn what_differs_in_mode_report_is_told_field_by_field_and_left() {
    let cluster = cluster("drift-report");
    let mut applier = Applier::start_with(&cluster, "drift-report", NEVER);
    applier.change_drift_mode(DriftMode::Report);
    applier.deliver(&[(UNIT, vec![settings(), deployment("default", "web", 1)])]);
    let report = applier.until_unit(UNIT, UnitState::Applied);
    assert_eq!(report.counts.drifted, 0, "defaults are no difference: {report:#?}");
    let patch = r#"{"data":{"level":"2","theirs":"1"}}"#;
    cluster
        .kubectl(&["patch", "configmap", "settings", "--type=merge", "-p", patch])
        .expect_ok();
    cluster
        .kubectl(&["set", "image", "deployment/web", "web=registry.example/web:2"])
        .expect_ok();
    cluster
        .kubectl(&["scale", "deployment/web", "--replicas=3"])
        .expect_ok();
    let unit = unit_key(UNIT);
    let report = applier.until("the differences are told", |report| {
        let unit = &report.units[&unit];
        paths(unit, "settings").len() == 1 && paths(unit, "web").len() == 2
    });
    let report = &report.units[&unit];
    assert_eq!(
        paths(report, "settings"),
        [("/data/level".to_owned(), "kubectl-patch".to_owned())]
    );
    let found = report
        .drift
        .iter()
        .find(|drift| drift.object.name == "settings")
        .unwrap();
    assert_eq!(found.fields[0].wanted, Some(json!("3")));
    assert_eq!(found.fields[0].found, Some(json!("2")));
    let image = "/spec/template/spec/containers/0/image";
    let web = paths(report, "web");
    assert_eq!(web[0].0, "/spec/replicas");
    assert_eq!(web[1], (image.to_owned(), "kubectl-set".to_owned()));
    assert_eq!((report.counts.drifted, report.state), (2, UnitState::Applied));
    assert_eq!(
        cluster.get("default", "configmap/settings").unwrap()["data"]["level"],
        "2",
        "it is left"
    );
    // Whoever changes it back has ended the difference.
    let patch = r#"{"data":{"level":"3"}}"#;
    cluster
        .kubectl(&["patch", "configmap", "settings", "--type=merge", "-p", patch])
        .expect_ok();
    applier.until("one difference is over", |report| {
        report.units[&unit].counts.drifted == 1
    });
    applier.stop();
    // Whoever begins anew tells the same.
    let mut applier = Applier::start_with(&cluster, "drift-report", NEVER);
    applier.change_drift_mode(DriftMode::Report);
    applier.deliver(&[(UNIT, vec![settings(), deployment("default", "web", 1)])]);
    let report = applier.until("the differences are told again", |report| {
        report.units.get(&unit).is_some_and(|unit| unit.counts.drifted == 1)
    });
    assert_eq!(paths(&report.units[&unit], "web").len(), 2);
    // The other mode alone, with nothing else, puts it right.
    applier.change_drift_mode(DriftMode::Correct);
    applier.deliver(&[(UNIT, vec![settings(), deployment("default", "web", 1)])]);
    eventually(wait::LONG, "what was left is put right", || {
        let web = cluster.get("default", "deployment/web")?;
        let spec = &web["spec"];
        let is_right =
            spec["replicas"] == 1 && spec["template"]["spec"]["containers"][0]["image"] != "registry.example/web:2";
        is_right.then_some(()).ok_or_else(|| spec.to_string())
    });
    applier.stop();
}

#[test]
fn a_fight_is_named_backed_off_from_and_ended_by_a_new_commit() {
    let cluster = cluster("drift-fight");
    let mut applier = Applier::start_with(&cluster, "drift-fight", NEVER);
    applier.deliver(&[(UNIT, vec![settings()])]);
    applier.until_unit(UNIT, UnitState::Applied);
    let unit = unit_key(UNIT);
    // An opponent that takes the label out whenever somebody looks.
    let report = applier.until("the fight is told", |report| {
        cluster.kubectl(&["label", "configmap/settings", "team-"]).expect_ok();
        let drift = report.units.get(&unit).and_then(|unit| unit.drift.first());
        drift.is_some_and(|object| object.message.contains("fights with manager"))
    });
    let report = &report.units[&unit];
    assert_eq!(report.counts.drifted, 1);
    assert!(report.drift[0].message.contains("/metadata/labels"), "{report:#?}");
    let mut newer = settings();
    newer["data"]["level"] = "4".into();
    applier.deliver(&[(UNIT, vec![newer])]);
    until(
        &cluster,
        "configmap/settings",
        "the new commit is there at once, with the label",
        |object| object["data"]["level"] == "4" && object["metadata"]["labels"]["team"] == "shop",
    );
    applier.until("nothing is told any more", |report| {
        report.units[&unit].counts.drifted == 0
    });
    applier.stop();
}

#[test]
fn a_watch_comes_back_with_its_api_server() {
    // A controller manager that is still starting would not outlive its API server.
    let options = Options {
        controller_manager: false,
        ..Options::default()
    };
    let mut cluster = ControlPlane::start("drift-away", options);
    let mut applier = Applier::start_with(&cluster, "drift-away", NEVER);
    applier.deliver(&[(UNIT, vec![settings()])]);
    applier.until_unit(UNIT, UnitState::Applied);
    cluster.stop_apiserver();
    cluster.start_apiserver();
    cluster.kubectl(&["label", "configmap/settings", "team-"]).expect_ok();
    until(&cluster, "configmap/settings", "the label is back", |object| {
        object["metadata"]["labels"]["team"] == "shop"
    });
    applier.stop();
}

#[test]
fn nothing_of_a_unit_in_mode_freeze_is_changed_or_removed() {
    let cluster = cluster("drift-freeze");
    let mut applier = Applier::start_with(&cluster, "drift-freeze", NEVER);
    applier.deliver(&[(UNIT, vec![settings(), config_map("default", "other", "1")])]);
    applier.until_unit(UNIT, UnitState::Applied);
    let mut newer = settings();
    newer["data"]["level"] = "4".into();
    applier.change_drift_mode(DriftMode::Freeze);
    applier.deliver(&[(UNIT, vec![newer.clone()])]);
    let unit = unit_key(UNIT);
    let report = applier.until("what Git says anew is told as a difference", |report| {
        report.units.get(&unit).is_some_and(|unit| unit.counts.drifted == 1)
    });
    assert_eq!(paths(&report.units[&unit], "settings")[0].0, "/data/level");
    assert!(cluster.has("default", "configmap/other"), "nothing is removed");
    assert_eq!(
        cluster.get("default", "configmap/settings").unwrap()["data"]["level"],
        "3"
    );
    applier.change_drift_mode(DriftMode::Correct);
    applier.deliver(&[(UNIT, vec![newer])]);
    applier.until_unit(UNIT, UnitState::Applied);
    until(&cluster, "configmap/settings", "it goes on where it was", |object| {
        object["data"]["level"] == "4"
    });
    assert!(!cluster.has("default", "configmap/other"), "and what left is removed");
    applier.stop();
}
