//! What others own stays theirs.

use reconciler::wire::{ObjectState, UnitState};
use serde_json::json;

use super::delivery::*;

#[test]
fn a_conflict_is_shown_and_never_forced() {
    let cluster = cluster("conflict");
    let theirs = config_map("default", "settings", "theirs").to_string();
    let file = cluster.folder().join("theirs.json");
    std::fs::write(&file, theirs).unwrap();
    let file = file.display().to_string();
    cluster
        .kubectl(&["apply", "--server-side", "--field-manager=somebody", "-f", &file])
        .expect_ok();
    let mut applier = Applier::start(&cluster, "conflict");
    applier.deliver(&[(
        "shop/web",
        vec![
            config_map("default", "settings", "ours"),
            config_map("default", "other", "ours"),
        ],
    )]);
    let report = applier.until_unit("shop/web", UnitState::Failed);
    let conflict = result(&report, "settings");
    assert_eq!(conflict.state, ObjectState::Conflict);
    assert!(
        conflict.message.contains("somebody") && conflict.message.contains(".data.value"),
        "{}",
        conflict.message
    );
    let settings = cluster.get("default", "configmap/settings").unwrap();
    assert_eq!(settings["data"]["value"], "theirs");
    assert!(cluster.has("default", "configmap/other"), "other objects go on");
    // Removing it from the delivery leaves what was never ours.
    applier.deliver(&[("shop/web", vec![config_map("default", "other", "ours")])]);
    applier.until_unit("shop/web", UnitState::Applied);
    assert!(cluster.has("default", "configmap/settings"));
    applier.stop();
}

#[test]
fn fields_of_others_stay_and_fields_taken_out_go() {
    let cluster = cluster("fields");
    let mut applier = Applier::start(&cluster, "fields");
    let with = |data| json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "settings"}, "data": data});
    applier.deliver(&[("shop/web", vec![with(json!({"a": "1", "b": "1"}))])]);
    applier.until_unit("shop/web", UnitState::Applied);
    let patch = r#"{"data":{"theirs":"1"}}"#;
    cluster
        .kubectl(&["patch", "configmap", "settings", "--type=merge", "-p", patch])
        .expect_ok();
    applier.deliver(&[("shop/web", vec![with(json!({"a": "2"}))])]);
    applier.until_unit("shop/web", UnitState::Applied);
    let settings = cluster.get("default", "configmap/settings").unwrap();
    assert_eq!(settings["data"], json!({"a": "2", "theirs": "1"}));
    applier.stop();
}

#[test]
fn an_object_that_two_units_deliver_is_applied_once_and_said() {
    let cluster = cluster("twice");
    let mut applier = Applier::start(&cluster, "twice");
    let settings = |value| vec![config_map("default", "settings", value)];
    applier.deliver(&[("shop/a", settings("a")), ("shop/b", settings("b"))]);
    applier.until_unit("shop/a", UnitState::Applied);
    let report = applier.until_unit("shop/b", UnitState::Failed);
    assert!(result(&report, "settings").message.contains("shop/a"), "{report:#?}");
    let uid = metadata(&cluster, "default", "configmap/settings", "uid");
    // When the first lets it go, the second has it: the same object.
    applier.deliver(&[("shop/b", settings("b"))]);
    applier.until_unit("shop/b", UnitState::Applied);
    applier.until_gone("shop/a");
    assert_eq!(metadata(&cluster, "default", "configmap/settings", "uid"), uid);
    assert_eq!(
        cluster.get("default", "configmap/settings").unwrap()["data"]["value"],
        "b"
    );
    applier.stop();
}
