//! What only the in-memory server has: it says what it lacks, forgets, fails when told to, and is small.

use std::time::Duration;

use http::Request;
use kube::Client;
use kube::api::{Api, ApiResource, DynamicObject, ListParams, PostParams};
use kube::client::Body;
use serde_json::{Value, json};

use harness::{ApiServer, Fault, Options, Requests};

use super::runtime;

async fn ask(client: &Client, method: &str, path: &str, media: &str) -> Value {
    let builder = Request::builder()
        .method(method)
        .uri(path)
        .header("content-type", media);
    let response = client.send(builder.body(Body::empty()).unwrap()).await.unwrap();
    let code = response.status().as_u16();
    let bytes = http_body_util::BodyExt::collect(response.into_body())
        .await
        .unwrap()
        .to_bytes();
    let mut body: Value = serde_json::from_slice(&bytes).unwrap_or_default();
    body["code"] = code.into();
    body
}

#[test]
fn what_the_in_memory_server_lacks_it_refuses_by_name() {
    runtime().block_on(async {
        let client = ApiServer::default().client();
        for (method, path, feature) in [
            ("GET", "/api/v1/namespaces/default/pods/web/log", "pods/log"),
            ("POST", "/api/v1/namespaces/default/pods/web/exec", "pods/exec"),
            ("POST", "/api/v1/namespaces/default/pods/web/eviction", "pods/eviction"),
            (
                "POST",
                "/api/v1/namespaces/default/serviceaccounts/x/token",
                "serviceaccounts/token",
            ),
            ("GET", "/openapi/v2", "OpenAPI v2"),
        ] {
            let answer = ask(&client, method, path, "application/json").await;
            assert_eq!(
                (&answer["code"], &answer["reason"]),
                (&json!(501), &json!("NotImplemented")),
                "{path}: {answer}"
            );
            assert!(answer["message"].as_str().unwrap().contains(feature), "{answer}");
        }
    });
}

fn config_maps(client: &Client) -> Api<DynamicObject> {
    let resource = ApiResource {
        group: String::new(),
        version: "v1".to_owned(),
        api_version: "v1".to_owned(),
        kind: "ConfigMap".to_owned(),
        plural: "configmaps".to_owned(),
    };
    Api::namespaced_with(client.clone(), "default", &resource)
}

fn config_map(name: &str) -> DynamicObject {
    serde_json::from_value(json!({"metadata": {"name": name}, "data": {"a": "b"}})).unwrap()
}

#[test]
fn every_fault_shows_as_a_real_cluster_shows_it() {
    runtime().block_on(async {
        let server = ApiServer::default();
        let client = server.client();
        let maps = config_maps(&client);
        let code = |error: kube::Error| match error {
            kube::Error::Api(status) => (
                status.code,
                status.details.map_or(0, |details| details.retry_after_seconds),
            ),
            other => panic!("{other:?}"),
        };
        let busy = Fault::TooManyRequests {
            retry_after: Duration::from_secs(7),
        };
        let id = server.faults().set(busy, Requests::default());
        assert_eq!(code(maps.list(&ListParams::default()).await.unwrap_err()), (429, 7));
        server.faults().clear(id);
        server.faults().take_away_group("apps");
        let groups = client.list_api_groups_aggregated().await.unwrap();
        let apps = groups.items.iter().find(|group| {
            let metadata = group.metadata.as_ref();
            metadata.is_some_and(|metadata| metadata.name.as_deref() == Some("apps"))
        });
        assert_eq!(apps.unwrap().versions[0].freshness.as_deref(), Some("Stale"));
        let answer = ask(&client, "GET", "/apis/apps/v1/deployments", "application/json").await;
        assert_eq!(answer["code"], 503);
        server.faults().clear_all();
        let answer = ask(&client, "GET", "/apis/apps/v1/deployments", "application/json").await;
        assert_eq!(answer["code"], 200);
    });
}

#[test]
fn a_watch_from_a_forgotten_version_is_told_so_and_one_that_is_dropped_ends() {
    runtime().block_on(async {
        let options = Options {
            watch_window: 4,
            ..Options::default()
        };
        let server = ApiServer::new(options);
        let client = server.client();
        let maps = config_maps(&client);
        for number in 0..10 {
            maps.create(&PostParams::default(), &config_map(&format!("c{number}")))
                .await
                .unwrap();
        }
        let watched = |version: &str| {
            let path = format!("/api/v1/configmaps?watch=true&timeoutSeconds=30&resourceVersion={version}");
            client.send(Request::get(path).body(Body::empty()).unwrap())
        };
        let body = watched("2").await.unwrap().into_body();
        let text = http_body_util::BodyExt::collect(body).await.unwrap().to_bytes();
        let event: Value = serde_json::from_slice(&text).unwrap();
        assert_eq!(
            (&event["type"], &event["object"]["code"], &event["object"]["reason"]),
            (&json!("ERROR"), &json!(410), &json!("Expired"))
        );
        let version = maps
            .list(&ListParams::default())
            .await
            .unwrap()
            .metadata
            .resource_version
            .unwrap();
        let body = watched(&version).await.unwrap().into_body();
        let ended = tokio::spawn(http_body_util::BodyExt::collect(body));
        tokio::task::yield_now().await;
        server.faults().drop_watches();
        let ended = tokio::time::timeout(Duration::from_secs(5), ended).await;
        assert!(ended.is_ok(), "the watch ends long before its timeout");
    });
}

#[test]
fn a_restored_backup_has_lower_versions_and_ends_watches() {
    runtime().block_on(async {
        let server = ApiServer::default();
        let client = server.client();
        let maps = config_maps(&client);
        maps.create(&PostParams::default(), &config_map("before"))
            .await
            .unwrap();
        let backup = server.backup();
        let version = |list: kube::core::ObjectList<DynamicObject>| -> u64 {
            list.metadata.resource_version.unwrap().parse().unwrap()
        };
        let saved = version(maps.list(&ListParams::default()).await.unwrap());
        maps.create(&PostParams::default(), &config_map("after")).await.unwrap();
        server.restore(&backup);
        let list = maps.list(&ListParams::default()).await.unwrap();
        assert_eq!(list.items.len(), 1);
        assert_eq!(version(list), saved);
    });
}

/// Resident memory of this process in MiB.
fn resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() / 1024
}

/// A hundred clusters; a thousand in the long form, whose limit is the goal.
#[test]
fn a_thousand_clusters_of_a_hundred_objects_fit_in_one_process() {
    let long = std::env::var_os("FLOTILLA_LONG").is_some();
    let (clusters, limit) = if long { (1_000, 2_048) } else { (100, 205) };
    let before = resident();
    let servers: Vec<_> = (0..clusters).map(|_| ApiServer::default()).collect();
    runtime().block_on(async {
        for server in &servers {
            let client = server.client();
            for number in 0..100 {
                let (path, object) = object(number);
                let request = Request::patch(format!("{path}?fieldManager=flotilla"))
                    .header("content-type", "application/apply-patch+yaml");
                let body = Body::from(object.to_string().into_bytes());
                let answer = client.send(request.body(body).unwrap()).await.unwrap();
                assert_eq!(answer.status().as_u16(), 201);
            }
        }
    });
    assert!(servers.iter().all(|server| server.len() >= 100));
    let used = resident().saturating_sub(before);
    println!("{clusters} clusters of 100 objects: {used} MiB");
    assert!(used < limit, "{used} MiB; a thousand clusters have 2 GiB");
}

/// One of a hundred objects such as clusters have.
fn object(number: usize) -> (String, Value) {
    let name = format!("object-{number}");
    let metadata = json!({"name": name, "labels": {"app.kubernetes.io/name": name, "app.kubernetes.io/part-of": "shop"},
        "annotations": {"fleet.flotilla.dev/unit": "shop/web"}});
    if number.is_multiple_of(5) {
        let object = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": {"replicas": 2,
            "selector": {"matchLabels": {"app": name}}, "template": {"metadata": {"labels": {"app": name}}, "spec": {
                "containers": [{"name": "main", "image": "registry.example.org/main:1", "ports": [{"containerPort": 80}],
                    "env": [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}],
                    "resources": {"requests": {"cpu": "100m", "memory": "64Mi"}}}]}}}});
        return (format!("/apis/apps/v1/namespaces/default/deployments/{name}"), object);
    }
    let object =
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"settings": "x".repeat(500)}});
    (format!("/api/v1/namespaces/default/configmaps/{name}"), object)
}
