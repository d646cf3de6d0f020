//! A mutating webhook of the cluster that puts a sidecar into what is applied: it stays, and nobody writes for it.

use std::convert::Infallible;
use std::net::TcpListener;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use flotilla_tests::{ControlPlane, wait};
use http::{Request, Response};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper_util::rt::TokioIo;
use reconciler::wire::UnitState;
use serde_json::{Value, json};
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;

use super::delivery::*;
use crate::helm::servers::Certificate;

/// The webhook: it gives every pod, and every template of one, a container `proxy` and an annotation.
struct Injector {
    port: u16,
    authority: String,
    asked: Arc<AtomicUsize>,
    /// The first thing that went wrong.
    broken: Arc<Mutex<Option<String>>>,
    stop: CancellationToken,
}

impl Injector {
    fn start() -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).expect("loopback has free ports");
        let port = listener.local_addr().expect("it is bound").port();
        let certificate = Certificate::new(port);
        let acceptor = certificate.acceptor();
        let (asked, broken, stop) = (Arc::default(), Arc::default(), CancellationToken::new());
        let (counter, trouble) = (Arc::clone(&asked), Arc::clone(&broken));
        let stopping = stop.clone();
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_multi_thread()
                .worker_threads(1)
                .enable_all()
                .build();
            let runtime = runtime.expect("a runtime can be made");
            let serving = serve(listener, acceptor, counter, trouble);
            runtime.block_on(stopping.run_until_cancelled(serving));
        });
        Self {
            port,
            authority: certificate.authority,
            asked,
            broken,
            stop,
        }
    }

    /// Has the cluster ask it about each Deployment and Pod that somebody writes, also where nothing is to be written.
    fn install(&self, cluster: &ControlPlane) {
        let rules = json!([
            {"apiGroups": ["apps"], "apiVersions": ["v1"], "resources": ["deployments"], "operations": ["CREATE", "UPDATE"]},
            {"apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"], "operations": ["CREATE", "UPDATE"]},
        ]);
        let url = format!("https://localhost:{}/inject", self.port);
        let bundle = STANDARD.encode(&self.authority);
        let webhook = json!({
            "apiVersion": "admissionregistration.k8s.io/v1", "kind": "MutatingWebhookConfiguration",
            "metadata": {"name": "injector"},
            "webhooks": [{"name": "injector.example.org", "admissionReviewVersions": ["v1"], "sideEffects": "None",
                "clientConfig": {"url": url, "caBundle": bundle}, "rules": rules, "failurePolicy": "Fail",
                "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "default"}}}],
        });
        cluster.apply(&webhook.to_string());
        // The API server learns of it a moment later.
        flotilla_tests::eventually(wait::LONG, "the webhook is asked", || {
            let probe = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "probe", "namespace": "default"},
                "spec": {"containers": [{"name": "web", "image": "web:1"}]}});
            cluster.apply(&probe.to_string());
            let found = containers(cluster, "pod/probe", "/spec");
            cluster
                .kubectl(&["delete", "pod", "probe", "--force", "--grace-period=0"])
                .expect_ok();
            (found == ["web", "proxy"])
                .then_some(())
                .ok_or_else(|| format!("{found:?}, {:?}", self.broken()))
        });
    }

    fn asked(&self) -> usize {
        self.asked.load(Ordering::SeqCst)
    }

    fn broken(&self) -> Option<String> {
        self.broken.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Drop for Injector {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

async fn serve(
    listener: TcpListener,
    acceptor: TlsAcceptor,
    asked: Arc<AtomicUsize>,
    broken: Arc<Mutex<Option<String>>>,
) {
    listener.set_nonblocking(true).expect("a listener can be asked to");
    let listener = tokio::net::TcpListener::from_std(listener).expect("it is a listener");
    while let Ok((stream, _)) = listener.accept().await {
        let (acceptor, asked, broken) = (acceptor.clone(), Arc::clone(&asked), Arc::clone(&broken));
        tokio::spawn(async move {
            let service = hyper::service::service_fn(move |request: Request<Incoming>| {
                let asked = Arc::clone(&asked);
                async move {
                    let body = request.into_body().collect().await.expect("a whole body").to_bytes();
                    asked.fetch_add(1, Ordering::SeqCst);
                    let review: Value = serde_json::from_slice(&body).expect("a review");
                    Ok::<_, Infallible>(Response::new(Full::new(Bytes::from(answer(&review).to_string()))))
                }
            });
            let served = match acceptor.accept(stream).await {
                Ok(stream) => {
                    let http = hyper::server::conn::http1::Builder::new();
                    let served = http.serve_connection(TokioIo::new(stream), service).await;
                    served.map_err(|error| error.to_string())
                }
                Err(error) => Err(error.to_string()),
            };
            if let Err(error) = served {
                broken
                    .lock()
                    .unwrap_or_else(PoisonError::into_inner)
                    .get_or_insert(error);
            }
        });
    }
}

/// What the webhook says of an object: a JSON patch, also where the object has all of it.
fn answer(review: &Value) -> Value {
    let object = &review["request"]["object"];
    let at = if object["kind"] == "Pod" { "" } else { "/spec/template" };
    let pod = object.pointer(at).unwrap_or(object);
    let mut patch = Vec::new();
    let names = pod["spec"]["containers"].as_array().into_iter().flatten();
    if !names.into_iter().any(|container| container["name"] == "proxy") {
        let proxy = json!({"name": "proxy", "image": "registry.example/proxy:1"});
        patch.push(json!({"op": "add", "path": format!("{at}/spec/containers/-"), "value": proxy}));
    }
    if pod["metadata"]["annotations"].is_null() {
        patch.push(json!({"op": "add", "path": format!("{at}/metadata/annotations"), "value": {}}));
    }
    patch.push(json!({"op": "add", "path": format!("{at}/metadata/annotations/injected"), "value": "yes"}));
    json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": {
        "uid": review["request"]["uid"], "allowed": true, "patchType": "JSONPatch",
        "patch": STANDARD.encode(Value::from(patch).to_string())}})
}

#[track_caller]
fn containers(cluster: &ControlPlane, resource: &str, pod: &str) -> Vec<String> {
    let containers = field(cluster, resource, &format!("{pod}/containers"));
    let names = containers.as_array().into_iter().flatten();
    names
        .filter_map(|container| Some(container["name"].as_str()?.to_owned()))
        .collect()
}

#[test]
fn a_sidecar_that_a_webhook_injects_stays_and_is_no_reason_to_write() {
    let cluster = cluster("injected");
    let injector = Injector::start();
    injector.install(&cluster);
    let mut applier = Applier::start(&cluster, "injected");
    let solo = |team: &str| {
        json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "solo", "namespace": "default", "labels": {"team": team}},
            "spec": {"containers": [{"name": "web", "image": "registry.example/web:1"}]}})
    };
    let web = |image: &str| {
        let mut web = deployment("default", "web", 1);
        web["spec"]["template"]["spec"]["containers"][0]["image"] = image.into();
        web
    };
    let template = "/spec/template/spec";
    let has_proxies = || {
        assert_eq!(containers(&cluster, "deployment/web", template), ["web", "proxy"]);
        assert_eq!(containers(&cluster, "pod/solo", "/spec"), ["web", "proxy"]);
        let injected = field(
            &cluster,
            "deployment/web",
            "/spec/template/metadata/annotations/injected",
        );
        assert_eq!(injected, "yes");
    };
    applier.deliver(&[("shop/web", vec![web("registry.example/web:1"), solo("a")])]);
    applier.until_unit("shop/web", UnitState::Applied);
    has_proxies();
    // Several times of a resync, each of which compares all.
    let rest = |generation: u64| {
        wait::eventually(wait::LONG, "controllers are done", || {
            let status = field(&cluster, "deployment/web", "/status/observedGeneration");
            let pods = cluster.names("default", "pods").len();
            (status == generation && u64::try_from(pods).is_ok_and(|pods| pods > generation))
                .then_some(())
                .ok_or_else(|| format!("{status} {pods}"))
        });
        let asked = injector.asked();
        wait::throughout(Duration::from_secs(8), "nobody writes, nor tries to", || {
            let now = (
                field(&cluster, "deployment/web", "/metadata/generation"),
                injector.asked(),
            );
            (now == (json!(generation), asked))
                .then_some(())
                .ok_or_else(|| format!("{now:?}, {asked} before"))
        });
    };
    rest(1);
    let report = applier.until_unit("shop/web", UnitState::Applied);
    assert_eq!(report.counts.drifted, 0, "{report:#?}");

    // What is ours is put right beside it, and changed beside it.
    patch_as(
        &cluster,
        "kubectl-edit",
        "pod/solo",
        &json!({"metadata": {"labels": {"team": "b"}}}),
    );
    until_field(&cluster, "pod/solo", "/metadata/labels/team", &json!("a"));
    applier.deliver(&[("shop/web", vec![web("registry.example/web:2"), solo("c")])]);
    until_field(&cluster, "pod/solo", "/metadata/labels/team", &json!("c"));
    until_field(&cluster, "deployment/web", "/metadata/generation", &json!(2));
    has_proxies();
    rest(2);
    assert_eq!(
        applier.report().corrections.unit_changed,
        1,
        "no fight: only the hand was corrected"
    );
    assert_eq!(injector.broken(), None);
    applier.stop();
}
