//! Inventories far above what one object may hold.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use http::{Request, Response, StatusCode};
use http_body_util::BodyExt as _;
use kube::Client;
use kube::api::Api;
use kube::client::Body;
use render::{ObjectKey, UnitKey};
use serde_json::{Value, json};

use super::{Entry, Inventory};

/// etcd's limit for a request, which kube-apiserver leaves as it is.
const ETCD_REQUEST_BYTES_MAX: usize = 1_572_864;

/// Name of a shard → its text, as an API server got them.
type Shards = Arc<Mutex<BTreeMap<String, String>>>;

/// An API server that takes shards, but for one of that name.
fn server(shards: &Shards, broken: Arc<Mutex<Option<String>>>) -> Api<k8s_openapi::api::core::v1::ConfigMap> {
    let shards = Arc::clone(shards);
    let service = tower::service_fn(move |request: Request<Body>| {
        let (shards, broken) = (Arc::clone(&shards), Arc::clone(&broken));
        async move {
            let bytes = request.into_body().collect().await.expect("a body").to_bytes();
            assert!(bytes.len() < ETCD_REQUEST_BYTES_MAX, "a shard of {} bytes", bytes.len());
            let mut object: Value = serde_json::from_slice(&bytes).expect("a ConfigMap");
            let name = object["metadata"]["name"].as_str().unwrap_or_default().to_owned();
            let is_broken = broken.lock().expect("no test panics here").as_ref() == Some(&name);
            let (code, answer) = if is_broken {
                let status = json!({"kind": "Status", "status": "Failure", "code": 500, "reason": "InternalError",
                    "message": "etcdserver: request timed out", "metadata": {}});
                (StatusCode::INTERNAL_SERVER_ERROR, status)
            } else {
                let text = object["data"]["inventory.json"].as_str().unwrap_or_default().to_owned();
                shards.lock().expect("no test panics here").insert(name, text);
                object["metadata"]["resourceVersion"] = "1".into();
                (StatusCode::CREATED, object)
            };
            let response = Response::builder()
                .status(code)
                .body(Body::from(answer.to_string().into_bytes()));
            Ok::<_, std::io::Error>(response.expect("a response"))
        }
    });
    Api::namespaced(Client::new(service, "default"), "flotilla-system")
}

/// Names as long as they may be.
fn key(number: usize) -> ObjectKey {
    let name = format!("{number:0>253}");
    ObjectKey::new("networking.k8s.io/v1", "NetworkPolicy", &"n".repeat(63), &name)
}

fn entry() -> Entry {
    Entry {
        unit: UnitKey::new("u".repeat(63), "v".repeat(63)).expect("a valid unit"),
        api_version: "networking.k8s.io/v1".to_owned(),
        uid: Some("c9b2f1d0-6f0c-4a8e-9d29-6a1f64cd5f51".to_owned()),
        applied: Some("0".repeat(32)),
        resource_version: Some("1234567890".to_owned()),
        lineage: "a".repeat(12),
        sequence: 1_000_000,
        orphan: true,
        replacing: false,
    }
}

#[tokio::test]
async fn an_inventory_of_20_000_objects_is_written_in_parts_that_etcd_takes() {
    let shards = Shards::default();
    let api = server(&shards, Arc::default());
    let mut inventory = Inventory::empty();
    (0..20_000).for_each(|number| inventory.put(key(number), entry()));
    inventory.flush(&api).await.expect("every shard is taken");
    assert_eq!(shards.lock().expect("no test panics here").len(), 20);
}

#[tokio::test]
async fn a_part_of_the_inventory_that_is_not_taken_is_named_and_written_again() {
    let shards = Shards::default();
    let broken = Arc::new(Mutex::new(Some("flotilla-inventory-01".to_owned())));
    let api = server(&shards, Arc::clone(&broken));
    let mut inventory = Inventory::empty();
    (0..2_500).for_each(|number| inventory.put(key(number), entry()));
    let error = inventory.flush(&api).await.expect_err("one shard is refused");
    assert!(
        crate::fault::line(&error).contains("flotilla-inventory-01"),
        "{error:?}"
    );
    assert_eq!(
        shards.lock().expect("no test panics here").len(),
        2,
        "the others are written all the same"
    );
    *broken.lock().expect("no test panics here") = None;
    shards.lock().expect("no test panics here").clear();
    inventory.flush(&api).await.expect("now it is taken");
    let written: Vec<_> = shards.lock().expect("no test panics here").keys().cloned().collect();
    assert_eq!(written, ["flotilla-inventory-01"], "and only that one is written again");
}
