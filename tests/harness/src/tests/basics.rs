//! Requests of every verb.

use futures_util::TryStreamExt as _;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use kube::api::{Api, DeleteParams, ListParams, Patch, PatchParams, PostParams, WatchEvent, WatchParams};
use serde_json::{Value, json};

use crate::{ApiServer, Fault, Options, Requests};

fn config_map(name: &str, value: &str) -> ConfigMap {
    let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"a": value}});
    serde_json::from_value(object).expect("a config map")
}

#[tokio::test]
async fn an_object_is_made_read_changed_watched_and_removed() {
    let server = ApiServer::default();
    let api: Api<ConfigMap> = Api::default_namespaced(server.client());
    let made = api
        .create(&PostParams::default(), &config_map("one", "1"))
        .await
        .expect("it is made");
    let version = made.metadata.resource_version.clone().expect("it has a version");
    assert!(made.metadata.uid.is_some() && made.metadata.creation_timestamp.is_some());
    let mut changed = made.clone();
    changed.data = Some([("a".to_owned(), "2".to_owned())].into());
    let changed = api
        .replace("one", &PostParams::default(), &changed)
        .await
        .expect("it is replaced");
    let error = api
        .replace("one", &PostParams::default(), &made)
        .await
        .expect_err("it is out of date");
    assert!(matches!(error, kube::Error::Api(status) if status.reason == "Conflict"));
    api.delete("one", &DeleteParams::default())
        .await
        .expect("it is removed");
    assert!(api.get_opt("one").await.expect("an answer").is_none());
    let watch = api
        .watch(&WatchParams::default().timeout(1), &version)
        .await
        .expect("a watch");
    let events: Vec<_> = watch.try_collect().await.expect("events");
    let kinds: Vec<_> = events
        .iter()
        .map(|event| match event {
            WatchEvent::Modified(object) => ("modified", object.data == changed.data),
            WatchEvent::Deleted(object) => ("deleted", object.data == changed.data),
            _ => ("else", false),
        })
        .collect();
    assert_eq!(kinds, [("modified", true), ("deleted", true)]);
}

#[tokio::test]
async fn a_list_goes_on_in_the_moment_it_began() {
    let server = ApiServer::default();
    let api: Api<ConfigMap> = Api::default_namespaced(server.client());
    for number in 0..5 {
        api.create(&PostParams::default(), &config_map(&format!("c{number}"), "1"))
            .await
            .expect("it is made");
    }
    let first = api.list(&ListParams::default().limit(2)).await.expect("a page");
    assert_eq!(first.items.len(), 2);
    assert_eq!(first.metadata.remaining_item_count, Some(3));
    api.delete("c3", &DeleteParams::default()).await.expect("it is removed");
    let token = first.metadata.continue_.expect("it goes on");
    let rest = api
        .list(&ListParams::default().continue_token(&token))
        .await
        .expect("the rest");
    let names: Vec<_> = rest
        .items
        .iter()
        .filter_map(|item| item.metadata.name.clone())
        .collect();
    assert_eq!(names, ["c2", "c3", "c4"], "what was removed since is still listed");
    let old = ApiServer::new(Options {
        watch_window: 2,
        ..Options::default()
    });
    let api: Api<ConfigMap> = Api::default_namespaced(old.client());
    for number in 0..5 {
        api.create(&PostParams::default(), &config_map(&format!("c{number}"), "1"))
            .await
            .expect("it is made");
    }
    let page = api
        .list(&ListParams::default().limit(1))
        .await
        .expect("a page")
        .metadata
        .continue_
        .expect("more");
    for number in 5..9 {
        api.create(&PostParams::default(), &config_map(&format!("c{number}"), "1"))
            .await
            .expect("it is made");
    }
    let error = api
        .list(&ListParams::default().continue_token(&page))
        .await
        .expect_err("it is forgotten");
    assert!(matches!(error, kube::Error::Api(status) if status.code == 410 && status.reason == "Expired"));
}

#[tokio::test]
async fn a_namespace_goes_with_what_is_in_it() {
    let server = ApiServer::default();
    let namespaces: Api<Namespace> = Api::all(server.client());
    let shop: Namespace = serde_json::from_value(json!({"metadata": {"name": "shop"}})).expect("a namespace");
    namespaces
        .create(&PostParams::default(), &shop)
        .await
        .expect("it is made");
    let api: Api<ConfigMap> = Api::namespaced(server.client(), "shop");
    api.create(&PostParams::default(), &config_map("one", "1"))
        .await
        .expect("it is made");
    let before = server.len();
    namespaces
        .delete("shop", &DeleteParams::default())
        .await
        .expect("it goes");
    assert!(namespaces.get_opt("shop").await.expect("an answer").is_none());
    assert_eq!(server.len(), before - 2);
}

#[tokio::test]
async fn a_workload_becomes_ready_and_an_unchanged_apply_writes_nothing() {
    let server = ApiServer::default();
    let api: Api<k8s_openapi::api::apps::v1::Deployment> = Api::default_namespaced(server.client());
    let web = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "spec": {"replicas": 3,
        "selector": {"matchLabels": {"a": "b"}}, "template": {"metadata": {"labels": {"a": "b"}},
            "spec": {"containers": [{"name": "web", "image": "web:1", "ports": [{"containerPort": 80}]}]}}}});
    let params = PatchParams::apply("test");
    let applied = api
        .patch("web", &params, &Patch::Apply(&web))
        .await
        .expect("it is applied");
    assert_eq!(applied.metadata.generation, Some(1));
    let ready = api.get("web").await.expect("it is there");
    assert_eq!(ready.status.as_ref().and_then(|status| status.ready_replicas), Some(3));
    let again = api
        .patch("web", &params, &Patch::Apply(&web))
        .await
        .expect("it is applied");
    assert_eq!(again.metadata.resource_version, ready.metadata.resource_version);
    let owned: Vec<Value> = serde_json::from_value(json!(again.metadata.managed_fields)).expect("entries");
    assert_eq!(owned.len(), 2, "{owned:#?}");
}

#[tokio::test]
async fn a_fault_is_answered_and_ends() {
    let server = ApiServer::default();
    let api: Api<ConfigMap> = Api::default_namespaced(server.client());
    let next = Requests {
        next: Some(1),
        ..Requests::default()
    };
    server.faults().set(Fault::ServerError { code: 500 }, next);
    let error = api.list(&ListParams::default()).await.expect_err("it fails once");
    assert!(matches!(error, kube::Error::Api(status) if status.code == 500));
    api.list(&ListParams::default()).await.expect("and then it does not");
    let backup = server.backup();
    api.create(&PostParams::default(), &config_map("one", "1"))
        .await
        .expect("it is made");
    server.restore(&backup);
    assert!(
        api.get_opt("one").await.expect("an answer").is_none(),
        "it was not in the backup"
    );
}
