//! What others own stays theirs.

use reconciler::wire::UnitState;
use serde_json::json;

use super::delivery::*;

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

#[test]
fn an_object_moved_between_units_is_applied_once_and_keeps_its_uid() {
    let cluster = cluster("moved");
    let mut applier = Applier::start(&cluster, "moved");
    let web = || vec![deployment("default", "web", 0)];
    applier.deliver(&[("shop/a", web())]);
    applier.until_unit("shop/a", UnitState::Applied);
    let before = cluster.get("default", "deployment/web").unwrap();
    applier.deliver(&[("shop/b", web())]);
    applier.until_unit("shop/b", UnitState::Applied);
    applier.until_gone("shop/a");
    let after = cluster.get("default", "deployment/web").unwrap();
    assert_eq!(after["metadata"]["uid"], before["metadata"]["uid"]);
    assert_eq!(after["metadata"]["annotations"]["fleet.flotilla.dev/unit"], "shop/b");
    assert_eq!(after["spec"], before["spec"]);
    // The label that only the first unit set goes with the same apply, and nothing is refused.
    let mut labelled = deployment("default", "web", 0);
    labelled["metadata"]["labels"] = json!({"tier": "front"});
    applier.deliver(&[("shop/b", vec![labelled])]);
    applier.until_unit("shop/b", UnitState::Applied);
    applier.deliver(&[("shop/c", web())]);
    applier.until_unit("shop/c", UnitState::Applied);
    assert_eq!(field(&cluster, "deployment/web", "/metadata/labels/tier"), json!(null));
    assert_eq!(
        field(&cluster, "deployment/web", "/metadata/uid"),
        before["metadata"]["uid"]
    );
    applier.stop();
}
