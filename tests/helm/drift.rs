//! Objects of a release that somebody changed.

use std::time::Duration;

use flotilla_tests::{eventually, wait};
use serde_json::json;

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
