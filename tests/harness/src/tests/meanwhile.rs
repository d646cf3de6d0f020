//! What others write while the applier decides about an object.

use std::collections::BTreeMap;
use std::time::Duration;

use kube::api::PostParams;
use render::model::{ApplyPolicy, IgnoreRule};
use serde_json::{Value, json};

use super::applier::*;
use crate::{ApiServer, Fault, Requests};

fn settings() -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": "default"},
        "data": {"ours": "git", "shared": "git"}})
}

fn data(server: &ApiServer) -> Value {
    stored(server, "configmaps.", "default", "a").map_or(Value::Null, |object| object["data"].clone())
}

/// Replaces one entry, as a program that reads and writes whole objects.
async fn write(server: &ApiServer, manager: &str, entry: &str, text: &str) {
    let api = api(server.client(), "ConfigMap", "default");
    let mut object = api.get("a").await.expect("it is there");
    object.data["data"][entry] = json!(text);
    object.metadata.managed_fields = None;
    let params = PostParams {
        field_manager: Some(manager.to_owned()),
        ..PostParams::default()
    };
    api.replace("a", &params, &object).await.expect("it is written");
}

#[tokio::test(start_paused = true)]
async fn what_somebody_writes_while_a_field_is_put_right_is_not_overwritten_unseen() {
    let server = ApiServer::default();
    let mut applier = Applier::start(server.client());
    let policy = ApplyPolicy {
        ignore: vec![IgnoreRule {
            managers: vec!["filler".to_owned()],
            ..IgnoreRule::default()
        }],
        ..ApplyPolicy::default()
    };
    let key = unit_key("shop/web");
    let (envelope, contents) = enveloped(1, &BTreeMap::from([(&key, governed(&[settings()], policy))]));
    applier.deliver_this(envelope, contents);
    applier.until_settled().await;
    // Each apply takes five seconds to arrive: the one that does not force, and the one that does.
    let slow = Requests {
        verb: Some("patch".to_owned()),
        resource: Some("configmaps".to_owned()),
        ..Requests::default()
    };
    server.faults().set(Fault::Latency(Duration::from_secs(5)), slow);
    write(&server, "hand", "ours", "by hand").await;
    tokio::time::sleep(Duration::from_secs(8)).await;
    assert_eq!(data(&server)["ours"], "by hand", "it is on its way");
    write(&server, "filler", "shared", "filled").await;
    let expected = json!({"ours": "git", "shared": "filled"});
    within(Duration::from_secs(60), "what is ours is back", || {
        data(&server)["ours"] == "git"
    })
    .await;
    assert_eq!(data(&server), expected, "and what is another's by a rule stays");
    tokio::time::sleep(Duration::from_secs(30)).await;
    assert_eq!(data(&server), expected);
    applier.stop().await;
}

#[tokio::test(start_paused = true)]
async fn what_is_ours_comes_back_though_somebody_writes_all_the_time() {
    let server = ApiServer::default();
    let mut applier = Applier::start(server.client());
    applier.deliver(&[("shop/web", vec![settings()])]);
    applier.until_settled().await;
    let slow = Requests {
        verb: Some("patch".to_owned()),
        resource: Some("configmaps".to_owned()),
        name: Some("a".to_owned()),
        ..Requests::default()
    };
    server.faults().set(Fault::Latency(Duration::from_secs(2)), slow);
    write(&server, "hand", "ours", "by hand").await;
    let writer = {
        let server = server.clone();
        tokio::spawn(async move {
            for number in 0..120 {
                write(&server, "counter", "count", &number.to_string()).await;
                tokio::time::sleep(Duration::from_millis(500)).await;
            }
        })
    };
    within(Duration::from_secs(60), "what is ours is back", || {
        data(&server)["ours"] == "git"
    })
    .await;
    writer.abort();
    applier.stop().await;
}
