//! The API as a client meets it. kubectl itself judges it in the journeys of `tests/`.

mod bounds;
mod mute;
mod renamed;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use axum::body::{Body, Bytes};
use http::{Request, StatusCode, header};
use http_body_util::BodyExt as _;
use render::predictor::{Outcome, Predicted};
use render::{Digest, Finding, ObjectKey};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;
use tower::ServiceExt as _;

use super::context::Context;
use super::router::router;
use super::store::Store;
use super::{GitTimes, KeysDated, Listen, Routes, ServeError, bind, run};
use crate::apply::HelmOptions;
use crate::hub::Predictor;
use crate::hub::asking::Asking;
use crate::hub::clock::seconds;
use crate::hub::engine::State;
use crate::hub::observe::fixture::{World, cluster, unit, units};
use crate::hub::peers::FirstWords;
use crate::hub::predictors::Predictors;
use crate::key_sets::KeysKnown;
use crate::wire::{Facts, Health, NodeFacts, UnitState};

const GROUP: &str = "/apis/fleet.flotilla.dev/v1alpha1";
const TABLE: &str = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json";

/// Every commit was made a minute after 1970 began, but those of twos, which nobody knows.
fn times() -> GitTimes {
    GitTimes {
        commits: Box::new(|revision| (!revision.as_str().starts_with('2')).then_some(60)),
        keys: Box::new(|_, wanted| KeysDated {
            since: wanted.iter().map(|sought| (sought.clone(), 120)).collect(),
            is_looking: false,
        }),
    }
}

/// An API over a world that may change under it.
struct Api {
    world: World,
    state: Arc<RwLock<State>>,
    store: Arc<Store>,
    router: axum::Router,
    stop: CancellationToken,
}

impl Api {
    fn new(world: World) -> Self {
        let state = Arc::new(RwLock::new(world.state.clone()));
        let stop = CancellationToken::new();
        let store = Arc::new(Store::new(Arc::clone(&state), times()));
        Self {
            world,
            state,
            router: router(Context::new(Arc::clone(&store), true, stop.clone())),
            store,
            stop,
        }
    }

    /// Clusters a and b, with shop/web on both; a is well, and b is away.
    fn settled() -> Self {
        let mut world = World::new();
        world.push('1', &["a", "b"], &["a", "b"]);
        for name in ["a", "b"] {
            world.connect(name);
            world.report(name, UnitState::Applied, Health::Current);
        }
        world.disconnect("b");
        Self::new(world)
    }

    /// The same, where each of them has one key.
    fn with_one_key() -> Self {
        let mut api = Self::settled();
        api.change(|world| {
            let mut fleet = world.state.fleet.as_deref().cloned().expect("it was planned");
            for cluster in fleet.clusters.values_mut() {
                cluster.public_keys = vec!["ed25519:A".to_owned()];
            }
            world.state.fleet = Some(Arc::new(fleet));
            world.state.version += 1;
        });
        api
    }

    fn change(&mut self, change: impl FnOnce(&mut World)) {
        change(&mut self.world);
        *self.state.write().unwrap_or_else(PoisonError::into_inner) = self.world.state.clone();
    }

    async fn ask(&self, method: &str, path: &str, accept: &str) -> (StatusCode, Body) {
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header(header::HOST, "localhost:7070");
        let request = request
            .header(header::ACCEPT, accept)
            .body(Body::empty())
            .expect("a request");
        let response = self
            .router
            .clone()
            .oneshot(request)
            .await
            .expect("a router cannot fail");
        (response.status(), response.into_body())
    }

    async fn get(&self, path: &str, accept: &str) -> (StatusCode, Value) {
        let (status, body) = self.ask("GET", path, accept).await;
        let bytes = body.collect().await.expect("a whole body").to_bytes();
        (status, serde_json::from_slice(&bytes).expect("JSON"))
    }

    async fn list(&self, path: &str) -> Value {
        let (status, list) = self.get(&format!("{GROUP}{path}"), "application/json").await;
        assert_eq!(status, StatusCode::OK, "{list}");
        list
    }

    async fn watch(&self, path: &str) -> Events {
        let (status, body) = self.ask("GET", &format!("{GROUP}{path}"), "application/json").await;
        assert_eq!(status, StatusCode::OK);
        Events {
            body,
            waiting: Vec::new(),
        }
    }
}

/// The events of a watch.
struct Events {
    body: Body,
    waiting: Vec<Value>,
}

impl Events {
    /// The next event as `TYPE name`; `None` at the end.
    async fn next(&mut self) -> Option<String> {
        if self.waiting.is_empty() {
            let frame = self.body.frame().await?.expect("a frame").into_data().expect("data");
            let lines = frame.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
            self.waiting = lines.map(|line| serde_json::from_slice(line).expect("JSON")).collect();
        }
        let event = self.waiting.remove(0);
        let name = event
            .pointer("/object/metadata/name")
            .or(event.pointer("/object/reason"));
        Some(format!(
            "{} {}",
            event["type"].as_str().unwrap_or_default(),
            name.and_then(Value::as_str).unwrap_or_default()
        ))
    }
}

fn names(list: &Value) -> Vec<&str> {
    let items = list["items"].as_array().expect("items").iter();
    items
        .filter_map(|item| item.pointer("/metadata/name")?.as_str())
        .collect()
}

#[tokio::test]
async fn lists_select_by_namespace_label_and_field() {
    let api = Api::settled();
    assert_eq!(names(&api.list("/managedclusters").await), ["a", "b"]);
    assert_eq!(names(&api.list("/namespaces/b/managedclusters").await), ["b"]);
    assert_eq!(
        names(&api.list("/managedclusters?labelSelector=env%3Dtest").await),
        [""; 0]
    );
    assert_eq!(
        names(&api.list("/managedclusters?fieldSelector=metadata.name%3Db").await),
        ["b"]
    );
    let of_a = "/placements?labelSelector=clusters.clusternet.io%2Fcluster-name%3Da";
    assert_eq!(names(&api.list(of_a).await), ["web.a"]);
}

#[tokio::test]
async fn a_list_in_pages_names_each_object_once() {
    let api = Api::settled();
    let first = api.list("/managedclusters?limit=1").await;
    assert_eq!(names(&first), ["a"]);
    assert_eq!(first.pointer("/metadata/remainingItemCount"), Some(&json!(1)));
    let token = first
        .pointer("/metadata/continue")
        .and_then(Value::as_str)
        .expect("a token")
        .replace('/', "%2F");
    let second = api.list(&format!("/managedclusters?limit=1&continue={token}")).await;
    assert_eq!(names(&second), ["b"]);
    assert_eq!(second.pointer("/metadata/continue"), None);
}

#[tokio::test]
async fn an_object_carries_kstatus_conditions_of_its_generation() {
    let api = Api::settled();
    let (_, web) = api
        .get(
            &format!("{GROUP}/namespaces/shop/subscriptions/web"),
            "application/json",
        )
        .await;
    assert_eq!(
        web.pointer("/status/observedGeneration"),
        web.pointer("/metadata/generation")
    );
    let conditions = web
        .pointer("/status/conditions")
        .and_then(Value::as_array)
        .expect("conditions");
    let kinds: Vec<_> = conditions
        .iter()
        .filter_map(|condition| condition["type"].as_str())
        .collect();
    let ladder = [
        "SourceVerified",
        "Scheduled",
        "Rendered",
        "Approved",
        "Released",
        "Applied",
        "Healthy",
    ];
    assert_eq!(
        kinds,
        [&["Ready"][..], &ladder].concat(),
        "an offline cluster reconciles nothing"
    );
    assert_eq!(web.pointer("/status/clusters/offline"), Some(&json!(1)));
    assert_eq!(
        web.pointer("/status/revision"),
        Some(&json!(format!("main@sha1:{}", "1".repeat(40))))
    );
}

#[tokio::test]
async fn every_kind_is_a_table_whose_rows_fit_its_columns() {
    let mut world = Api::settled().world;
    let finding = Finding::error("PatchDoesNotFit", "no such field").unit(&unit("shop/web"));
    world.push_with('2', &["a", "b"], units('2', &["a", "b"]), vec![finding]);
    world.suspend("shop/web", "a");
    let api = Api::new(world);
    for resource in super::resource::Resource::ALL {
        let plural = resource.names().plural;
        let (_, table) = api.get(&format!("{GROUP}/{plural}"), TABLE).await;
        assert_eq!(table["kind"], "Table", "{plural}");
        let columns = table["columnDefinitions"].as_array().expect("columns").len();
        let rows = table["rows"].as_array().expect("rows");
        assert!(!rows.is_empty(), "{plural} has rows");
        for row in rows {
            assert_eq!(row["cells"].as_array().map(Vec::len), Some(columns), "{plural}: {row}");
        }
    }
}

#[tokio::test]
async fn a_suspension_says_what_it_holds_and_whether_it_still_does() {
    let shown = async |ends_now: bool| {
        let mut world = Api::settled().world;
        world.suspend("shop/web", "a");
        if ends_now {
            let mut fleet = world.state.fleet.as_deref().cloned().expect("it was planned");
            Arc::make_mut(&mut fleet.suspensions[0]).until = Some(world.state.now);
            world.state.fleet = Some(Arc::new(fleet));
        }
        Api::new(world).list("/suspensions").await["items"][0].clone()
    };
    let held = shown(false).await;
    assert_eq!(
        held["metadata"]["annotations"],
        json!({ "fleet.flotilla.dev/declared-in": "policies/held.yaml:1" })
    );
    let spec = json!({
        "subscription": { "namespace": "shop", "name": "web" },
        "clusters": ["a"],
        "reason": "frozen",
    });
    assert_eq!(held["spec"], spec);
    assert_eq!(held["status"], json!({ "inForce": true, "holds": 1 }));
    let over = shown(true).await;
    assert_eq!(
        over["status"],
        json!({ "inForce": false, "holds": 0 }),
        "its time is over"
    );
}

#[tokio::test]
async fn the_query_path_cannot_write() {
    let api = Api::settled();
    let path = format!("{GROUP}/namespaces/shop/subscriptions/web");
    for method in [
        "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "CONNECT", "TRACE", "PROPFIND",
    ] {
        let (status, body) = api.ask(method, &path, "*/*").await;
        assert_eq!(status, StatusCode::METHOD_NOT_ALLOWED, "{method}");
        let bytes = body.collect().await.expect("a whole body").to_bytes();
        let answer: Value = serde_json::from_slice(&bytes).expect("a Status");
        let message = answer["message"].as_str().unwrap_or_default();
        assert!(
            message.contains("git push") && message.contains("subscriptions/web.yaml:1"),
            "{method}: {message}"
        );
    }
}

#[tokio::test]
async fn what_is_not_there_is_a_status() {
    let api = Api::settled();
    for path in [
        "/namespaces/shop/subscriptions/nope",
        "/pods",
        "/namespaces/shop/findings",
    ] {
        let (status, answer) = api.get(&format!("{GROUP}{path}"), "application/json").await;
        assert_eq!(
            (status, &answer["kind"]),
            (StatusCode::NOT_FOUND, &json!("Status")),
            "{path}"
        );
    }
    let (status, _) = api
        .get(&format!("{GROUP}/subscriptions"), "application/vnd.kubernetes.protobuf")
        .await;
    assert_eq!(status, StatusCode::NOT_ACCEPTABLE);
    let (status, _) = api
        .get(&format!("{GROUP}/subscriptions?fieldSelector=spec.x%3D1"), "*/*")
        .await;
    assert_eq!(
        status,
        StatusCode::BAD_REQUEST,
        "a selector that is not understood is not ignored"
    );
}

#[tokio::test]
async fn a_web_page_cannot_read_it_through_a_browser() {
    let api = Api::settled();
    let request = Request::builder()
        .uri("/apis")
        .header(header::HOST, "page.example:7070");
    let request = request.body(Body::empty()).expect("a request");
    let response = api.router.clone().oneshot(request).await.expect("a router cannot fail");
    assert_eq!(response.status(), StatusCode::FORBIDDEN);
}

#[tokio::test]
async fn a_webhook_of_any_host_makes_the_hub_look_and_is_not_read() {
    let look_now = Arc::new(tokio::sync::Notify::new());
    let store = Arc::new(Store::new(Arc::default(), times()));
    let router = router(Context::new(store, true, CancellationToken::new()).looking(Arc::clone(&look_now)));
    let ask = async |method: &str, body: Vec<u8>| {
        let request = Request::builder()
            .method(method)
            .uri("/reconcile")
            .header(header::HOST, "hooks.example.com");
        let request = request.body(Body::from(body)).expect("a request");
        let response = router.clone().oneshot(request).await.expect("a router cannot fail");
        response.status()
    };
    let looks = async || {
        tokio::time::timeout(std::time::Duration::ZERO, look_now.notified())
            .await
            .is_ok()
    };
    assert_eq!(ask("POST", b"\xff not JSON".to_vec()).await, StatusCode::ACCEPTED);
    assert_eq!(ask("POST", Vec::new()).await, StatusCode::ACCEPTED);
    assert!(looks().await, "a look is asked for");
    assert!(!looks().await, "two calls are one look");
    assert_eq!(ask("POST", vec![b'x'; 9 << 20]).await, StatusCode::PAYLOAD_TOO_LARGE);
    assert_eq!(
        ask("GET", Vec::new()).await,
        StatusCode::FORBIDDEN,
        "nothing is read under a foreign name"
    );
    assert!(!looks().await);
}

#[tokio::test(start_paused = true)]
async fn a_watch_tells_what_changed_and_nothing_twice() {
    let mut api = Api::settled();
    let mut events = api.watch("/managedclusters?watch=1").await;
    assert_eq!(events.next().await.as_deref(), Some("ADDED a"));
    assert_eq!(events.next().await.as_deref(), Some("ADDED b"));
    api.change(|world| world.connect("b"));
    assert_eq!(events.next().await.as_deref(), Some("MODIFIED b"), "a did not change");
    api.change(|world| world.push('2', &["a"], &["a"]));
    let left = [events.next().await, events.next().await].map(Option::unwrap_or_default);
    assert_eq!(
        left,
        ["MODIFIED a", "DELETED b"],
        "a is told something new, and b is gone"
    );
    api.stop.cancel();
    assert_eq!(events.next().await, None, "it ends with the hub");
}

#[tokio::test(start_paused = true)]
async fn a_watch_goes_on_from_the_version_of_a_list() {
    let mut api = Api::settled();
    let list = api.list("/managedclusters").await;
    let version = list
        .pointer("/metadata/resourceVersion")
        .and_then(Value::as_str)
        .expect("a version");
    api.change(|world| world.push('2', &["a"], &["a"]));
    let mut events = api
        .watch(&format!(
            "/managedclusters?watch=1&resourceVersion={version}&timeoutSeconds=5"
        ))
        .await;
    assert_eq!(events.next().await.as_deref(), Some("DELETED b"));
    assert_eq!(events.next().await.as_deref(), Some("MODIFIED a"));
    assert_eq!(events.next().await, None, "and ends when it said it would");
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_goes_on_tells_of_no_object_that_it_was_not_asked_for() {
    let mut api = Api::settled();
    let version = api.list("/managedclusters").await["metadata"]["resourceVersion"].clone();
    let version = version.as_str().expect("a version");
    // Both change: a is told something new, and b comes back.
    api.change(|world| {
        world.push('2', &["a", "b"], &["a", "b"]);
        world.connect("b");
    });
    for path in [
        "/namespaces/a/managedclusters?",
        "/managedclusters?fieldSelector=metadata.name%3Da&",
    ] {
        let watch = format!("{path}watch=1&resourceVersion={version}&timeoutSeconds=5");
        let mut events = api.watch(&watch).await;
        assert_eq!(events.next().await.as_deref(), Some("MODIFIED a"), "{path}");
        assert_eq!(events.next().await, None, "b is somebody else's: {path}");
    }
}

#[tokio::test]
async fn a_version_of_an_earlier_hub_is_gone() {
    let api = Api::settled();
    let mut events = api.watch("/managedclusters?watch=1&resourceVersion=5").await;
    assert_eq!(events.next().await.as_deref(), Some("ERROR Expired"));
    assert_eq!(events.next().await, None);
}

#[tokio::test]
async fn a_streamed_list_ends_with_its_bookmark() {
    let api = Api::settled();
    let path =
        "/subscriptions?watch=1&sendInitialEvents=true&allowWatchBookmarks=true&resourceVersionMatch=NotOlderThan";
    let mut events = api.watch(path).await;
    assert_eq!(events.next().await.as_deref(), Some("ADDED web"));
    assert_eq!(events.next().await.as_deref(), Some("BOOKMARK "));
}

#[tokio::test]
async fn no_secret_value_is_served() {
    let mut world = World::new();
    world.push('1', &["a"], &["a"]);
    world.give_object(
        ObjectKey::new("v1", "Secret", "shop", "keys"),
        json!({ "stringData": { "token": "hunter2" } }),
    );
    let api = Api::new(world);
    for resource in super::resource::Resource::ALL {
        let list = api.list(&format!("/{}", resource.names().plural)).await.to_string();
        assert!(!list.contains("hunter2"), "{list}");
    }
    let descriptions = api.list("/descriptions").await;
    let objects = descriptions.pointer("/items/0/spec/objects");
    assert_eq!(
        objects,
        Some(&json!(["/Secret/shop/keys"])),
        "keys are named, contents are not"
    );
}

#[tokio::test]
async fn metrics_and_readiness_tell_of_the_state() {
    let api = Api::settled();
    let (status, body) = api.ask("GET", "/metrics", "*/*").await;
    let text = body.collect().await.expect("a whole body").to_bytes();
    let text = String::from_utf8(text.to_vec()).expect("text");
    assert_eq!(status, StatusCode::OK);
    for line in [
        "flotilla_clusters{state=\"Connected\"} 1",
        "flotilla_clusters{state=\"Disconnected\"} 1",
        "flotilla_units{state=\"Unknown\"} 1",
        "flotilla_released_sequence 1",
        "flotilla_clusters_with_hub_keys 0",
        "flotilla_source_followed 1",
        "flotilla_recovering 0",
        "flotilla_away_sequence 1",
        "flotilla_away_since_seconds 7200",
        // Of the process, so other tests may have moved their values.
        "# TYPE flotilla_tunnel_frames counter",
        "flotilla_tunnel_frames_total{direction=\"Out\",kind=\"Data\"} ",
        "flotilla_tunnel_limit_refusals_total{limit=\"OpenRate\"} ",
        "flotilla_tunnel_opens_total{result=\"Granted\"} ",
        "# TYPE flotilla_tunnel_rtt_seconds histogram",
        "flotilla_tunnel_rtt_seconds_bucket{le=\"+Inf\"} ",
        "# TYPE flotilla_tunnel_handshake_seconds histogram",
        "flotilla_tunnel_handshake_seconds_bucket{le=\"+Inf\",step=\"Tls\"} ",
        "flotilla_tunnel_handshake_seconds_count{step=\"Agreement\"} ",
        "flotilla_door_certificate_expiry_seconds 0",
        "flotilla_tunnel_closes_total{reason=\"Dead\"} ",
        "flotilla_tunnel_window_bytes ",
    ] {
        assert!(text.contains(line), "{line} is missing in {text}");
    }
    assert_eq!(api.ask("GET", "/readyz", "*/*").await.0, StatusCode::OK);
    let fresh = Api {
        state: Arc::default(),
        ..Api::new(World::new())
    };
    let store = Arc::new(Store::new(Arc::clone(&fresh.state), times()));
    let fresh = Api {
        router: router(Context::new(store, true, CancellationToken::new())),
        ..fresh
    };
    assert_eq!(
        fresh.ask("GET", "/readyz", "*/*").await.0,
        StatusCode::SERVICE_UNAVAILABLE
    );
    assert_eq!(fresh.ask("GET", "/healthz", "*/*").await.0, StatusCode::OK);
}

#[tokio::test]
async fn a_hub_is_ready_once_others_have_told_and_not_any_more_when_it_ends() {
    let api = Api::settled();
    let (stop, first_words) = (CancellationToken::new(), Arc::new(FirstWords::of(["b".to_owned()])));
    let store = Arc::new(Store::new(Arc::clone(&api.state), times()));
    let context = Context::new(store, true, stop.clone()).after(Arc::clone(&first_words));
    let api = Api {
        router: router(context),
        ..api
    };
    let status = async |path: &str| api.ask("GET", path, "*/*").await.0;
    assert_eq!(status("/readyz").await, StatusCode::SERVICE_UNAVAILABLE);
    first_words.tried("b");
    assert_eq!(status("/readyz").await, StatusCode::OK);
    stop.cancel();
    assert_eq!(status("/readyz").await, StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(status("/healthz").await, StatusCode::OK, "it is nothing to kill it for");
}

#[tokio::test]
async fn what_was_put_right_is_counted_over_restarts_of_agents() {
    let mut api = Api::settled();
    // The first report of the fixture counted nothing; an agent that restarts begins at nothing again.
    for (changed, removed) in [(2, 0), (3, 1), (1, 1)] {
        api.change(|world| {
            world.report_with("a", |report| {
                report.corrections.unit_changed = changed;
                report.corrections.release_removed = removed;
                report.agent.left_dead = changed;
                report.agent.refused_push = removed;
                report.agent.audit_lines_lost = changed;
            });
        });
    }
    let (_, body) = api.ask("GET", "/metrics", "*/*").await;
    let text = body.collect().await.expect("a whole body").to_bytes();
    let text = String::from_utf8(text.to_vec()).expect("text");
    for line in [
        "# TYPE flotilla_drift_corrected counter",
        "flotilla_drift_corrected_total{owner=\"Unit\",cause=\"Changed\"} 4",
        "flotilla_drift_corrected_total{owner=\"Unit\",cause=\"Removed\"} 0",
        "flotilla_drift_corrected_total{owner=\"Release\",cause=\"Changed\"} 0",
        "flotilla_drift_corrected_total{owner=\"Release\",cause=\"Removed\"} 2",
        "flotilla_agent_tunnels_left_total{reason=\"Dead\"} 4",
        "flotilla_agent_tunnels_left_total{reason=\"Cut\"} 0",
        "flotilla_agent_refusals_total{class=\"push\"} 2",
        "flotilla_agent_audit_lines_lost_total 4",
    ] {
        assert!(text.contains(line), "{line} is missing in {text}");
    }
}

#[tokio::test]
async fn only_this_machine_is_served() {
    for text in ["0.0.0.0:0", "192.0.2.1:7070", "[::]:7070"] {
        let refused = text.parse::<Listen>();
        assert!(
            matches!(refused, Err(ServeError::NotLoopback { .. })),
            "{text}: {refused:?}"
        );
        let listen = Listen::Tcp(text.parse().expect("an address"));
        assert!(
            matches!(bind(&listen).await, Err(ServeError::NotLoopback { .. })),
            "{text}"
        );
    }
    for text in ["", "unix:", "localhost", "localhost:7070"] {
        assert!(
            matches!(text.parse::<Listen>(), Err(ServeError::Unclear { .. })),
            "{text}"
        );
    }
}

#[tokio::test]
async fn a_file_in_the_place_of_the_socket_is_left_alone() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("notes.txt");
    std::fs::write(&path, "kept").expect("a file");
    let bound = bind(&Listen::Unix(path.clone())).await;
    assert!(matches!(bound, Err(ServeError::Bind { .. })), "{bound:?}");
    assert_eq!(std::fs::read_to_string(&path).ok().as_deref(), Some("kept"));
}

#[tokio::test]
async fn a_cluster_that_is_away_says_since_when_and_its_keys_how_old_they_are() {
    let mut api = Api::with_one_key();
    api.change(|world| {
        let (_, known) = world.state.clusters.iter_mut().next().expect("it has one");
        let report = known.report.as_mut().expect("it reported");
        let keys = [tunnel::PublicKey::from_bytes([7; 32])];
        Arc::make_mut(report).hub_keys_known = KeysKnown::default().now_that(&keys, 100);
        world.state.version += 1;
    });
    let list = api.list("/managedclusters").await;
    let [a, b] = [0, 1].map(|at| list["items"][at]["status"].clone());
    assert_eq!(
        (&a["awaySince"], &b["awaySince"]),
        (&Value::Null, &json!("1970-01-01T02:00:00Z"))
    );
    assert_eq!(
        a["keys"],
        json!([{ "key": "ed25519:A", "introduced": "1970-01-01T00:02:00Z" }])
    );
    let hub_key = tunnel::PublicKey::from_bytes([7; 32]);
    assert_eq!(
        (&a["hubKeys"], &b["hubKeys"]),
        (
            &json!([{ "key": hub_key.to_string(), "known": "1970-01-01T00:01:40Z" }]),
            &Value::Null
        ),
        "as an agent says that says it"
    );
    let (_, table) = api.get(&format!("{GROUP}/managedclusters"), TABLE).await;
    let columns: Vec<_> = table["columnDefinitions"].as_array().expect("columns").iter().collect();
    let cell = |row: usize, name: &str| {
        let at = columns
            .iter()
            .position(|column| column["name"] == name)
            .expect("a column");
        table["rows"][row]["cells"][at].as_str().expect("text").to_owned()
    };
    assert_eq!(cell(0, "Away"), "-");
    assert!(cell(1, "Away").ends_with('y'), "since 1970: {}", cell(1, "Away"));
    assert!(cell(0, "Key-Age").ends_with('y'), "{}", cell(0, "Key-Age"));
    let rows = table["rows"].as_array().expect("rows");
    let is_filled = |row: &Value| {
        row["cells"]
            .as_array()
            .expect("cells")
            .iter()
            .all(|cell| !cell.is_null())
    };
    assert!(rows.iter().all(is_filled), "{rows:#?}");
}

#[tokio::test(start_paused = true)]
async fn the_age_of_a_key_that_is_not_known_yet_comes_with_the_next_answer_although_nothing_changed() {
    let api = Api::with_one_key();
    let asked = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&asked);
    let later = GitTimes {
        keys: Box::new(move |revision, wanted| match count.fetch_add(1, Ordering::Relaxed) {
            0 => KeysDated {
                since: BTreeMap::new(),
                is_looking: true,
            },
            _ => (times().keys)(revision, wanted),
        }),
        ..times()
    };
    let store = Arc::new(Store::new(Arc::clone(&api.state), later));
    let api = Api {
        router: router(Context::new(store, true, api.stop.clone())),
        ..api
    };
    let mut introduced = Vec::new();
    for _ in 0..3 {
        let list = api.list("/managedclusters").await;
        introduced.push(list["items"][0]["status"]["keys"][0]["introduced"].clone());
    }
    let known = json!("1970-01-01T00:02:00Z");
    assert_eq!(introduced, [Value::Null, known.clone(), known]);
    assert_eq!(asked.load(Ordering::Relaxed), 2, "what is known is asked for no more");
}

#[tokio::test]
async fn a_clusters_status_is_in_clusternets_words_and_every_field_of_it_is_explained() {
    let mut api = Api::settled();
    api.change(|world| {
        world.report_with("a", |report| {
            report.kubernetes_version = Some("v1.36.3".to_owned());
            report.facts = Some(Arc::new(Facts {
                platform: "linux/amd64".to_owned(),
                api_server: "https://10.0.0.1:6443".to_owned(),
                agent_version: "0.1.0".to_owned(),
                pod_cidrs: vec!["10.244.0.0/16".to_owned(), "fd00::/56".to_owned()],
                service_cidrs: vec!["10.96.0.0/12".to_owned()],
                healthz: Some(true),
                livez: Some(true),
                readyz: Some(false),
            }));
            let mut nodes = NodeFacts::default();
            nodes.statistics.ready_nodes = 2;
            nodes.statistics.lost_nodes = 1;
            nodes.capacity.set("cpu", 12_000);
            report.nodes = Some(Arc::new(nodes));
        });
    });
    let list = api.list("/managedclusters").await;
    let [a, b] = [0, 1].map(|at| list["items"][at]["status"].clone());
    for (field, expected) in [
        ("k8sVersion", json!("v1.36.3")),
        ("platform", json!("linux/amd64")),
        ("apiserverURL", json!("https://10.0.0.1:6443")),
        ("clusterCIDR", json!("10.244.0.0/16,fd00::/56")),
        ("serviceCIDR", json!("10.96.0.0/12")),
        ("readyz", json!(false)),
        (
            "nodeStatistics",
            json!({ "readyNodes": 2, "notReadyNodes": 0, "unknownNodes": 0, "lostNodes": 1 }),
        ),
        ("capacity", json!({ "cpu": "12" })),
        ("appPusher", json!(false)),
        ("useSocket", json!(false)),
    ] {
        assert_eq!(a[field], expected, "{field}");
    }
    assert_eq!(b["nodeStatistics"], Value::Null, "what nobody said is not none");
    let document = super::openapi::document();
    let schema = &document["components"]["schemas"]["dev.flotilla.fleet.v1alpha1.ManagedCluster"];
    let explained = &schema["properties"]["status"]["properties"];
    let status = a
        .as_object()
        .expect("an object")
        .iter()
        .chain(b.as_object().expect("an object"));
    for (field, _) in status {
        assert!(explained[field]["description"].is_string(), "{field} is not explained");
    }
}

fn asking(predictors: Predictors) -> Asking {
    let predictor = Predictor::new(HelmOptions::default());
    Asking::new(
        Arc::default(),
        Arc::new(predictor),
        Arc::new(predictors),
        Default::default(),
    )
}

#[tokio::test]
async fn rooms_tell_what_predictors_said() {
    let predictors = Predictors::new();
    let key = (cluster("a"), Digest::of_bytes(b"a question"));
    let answer = Predicted {
        at: seconds(),
        outcome: Outcome::Replicas(7),
    };
    predictors.remember(key.clone(), answer, 0);
    let mut api = Api::settled();
    let store = Arc::new(Store::new(Arc::clone(&api.state), times()));
    api.router = router(Context::new(store, true, api.stop.clone()).asking(asking(predictors)));
    let rooms = api.list("/rooms").await;
    let said = &rooms["predicted"]["a"][key.1.to_string()]["outcome"];
    assert_eq!(*said, json!({ "replicas": 7 }), "{rooms:#}");
}

#[tokio::test]
async fn a_unix_socket_is_taken_over_from_a_dead_hub_only() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("hub.sock");
    let listen = Listen::Unix(path.clone());
    drop(std::os::unix::net::UnixListener::bind(&path).expect("a socket that nobody answers on"));
    let bound = bind(&listen).await.expect("a stale socket is replaced");
    assert!(
        matches!(bind(&listen).await, Err(ServeError::Taken { .. })),
        "a live one is not"
    );
    let stop = CancellationToken::new();
    let world = Arc::new(RwLock::new(World::new().state));
    let (routes, ending) = (Routes::alone(world, stop.clone()), stop.clone());
    let served = tokio::spawn(async move { run(bound, &routes, ending).await });
    let stream = tokio::net::UnixStream::connect(&path).await.expect("it answers");
    let (mut sender, connection) = hyper::client::conn::http1::handshake(hyper_util::rt::TokioIo::new(stream))
        .await
        .expect("a connection");
    let connection = tokio::spawn(connection);
    let request = Request::builder()
        .uri("/healthz")
        .header(header::HOST, "hub")
        .body(http_body_util::Empty::<Bytes>::new());
    let response = sender
        .send_request(request.expect("a request"))
        .await
        .expect("an answer");
    assert_eq!(response.status(), StatusCode::OK);
    drop((sender, response));
    stop.cancel();
    served.await.expect("no panic").expect("a clean end");
    drop(connection.await);
    assert!(!path.exists(), "the socket is cleared away");
}
