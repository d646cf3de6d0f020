//! Predictors over real sockets.

use std::convert::Infallible;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use render::model::Predictor;
use serde_json::json;
use tokio::net::TcpListener;

use super::*;
use crate::limits::PREDICTION_BYTES_MAX;

/// A server that answers every request in this way. Its address.
async fn serve<F>(answer: fn(Request<Bytes>) -> F) -> String
where
    F: Future<Output = Response<Full<Bytes>>> + Send + 'static,
{
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port is free");
    let address = listener.local_addr().expect("it is bound");
    tokio::spawn(async move {
        loop {
            let Ok((stream, _)) = listener.accept().await else {
                return;
            };
            let service = service_fn(move |request: Request<Incoming>| async move {
                let (parts, body) = request.into_parts();
                let body = body.collect().await.expect("the body comes whole").to_bytes();
                Ok::<_, Infallible>(answer(Request::from_parts(parts, body)).await)
            });
            tokio::spawn(hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), service));
        }
    });
    format!("http://{address}")
}

fn question(url: &str) -> Question {
    Question {
        cluster: ClusterName::parse("a").expect("a valid name"),
        cluster_id: "0-1-2".to_owned(),
        predictor: Predictor {
            url: url.to_owned(),
            timeout_seconds: 20,
        },
        body: json!({ "resources": { "requests": { "cpu": "500m" } } }),
    }
}

/// What is remembered after one question.
async fn outcome(predictors: &Arc<Predictors>, url: &str) -> Outcome {
    let question = question(url);
    let key = (question.cluster.clone(), question.key());
    let questions = BTreeMap::from([(key.clone(), question)]);
    for (key, question) in predictors.take_up(questions, seconds()) {
        Arc::clone(predictors).ask(key, question).await;
    }
    predictors.answers(seconds())[&key.0][&key.1].outcome.clone()
}

async fn check(url: &str, expected: &str) {
    match outcome(&Arc::new(Predictors::new()), url).await {
        Outcome::Trouble(why) => assert!(why.contains(expected), "{why}"),
        answer @ Outcome::Replicas(_) => panic!("{expected} is no answer, and {answer:?} is none of it"),
    }
}

fn said(status: u16, body: impl Into<Bytes>) -> Response<Full<Bytes>> {
    let response = Response::builder().status(status);
    response.body(Full::new(body.into())).expect("it is a valid response")
}

#[tokio::test]
async fn a_predictor_is_asked_in_clusternets_words_and_its_answer_is_remembered() {
    let url = serve(|request| async move {
        let is_asked = request.method() == "POST"
            && request.uri().path() == "/replicas/predict"
            && request.headers()["Cluster-ID"] == "0-1-2"
            && request.headers()["Content-Type"] == "application/json"
            && request.body() == r#"{"resources":{"requests":{"cpu":"500m"}}}"#;
        said(
            200,
            if is_asked {
                r#"{"replicas": {"default": 7}}"#
            } else {
                "{}"
            },
        )
    })
    .await;
    let predictors = Arc::new(Predictors::new());
    assert_eq!(outcome(&predictors, &url).await, Outcome::Replicas(7));
    let asked = question(&url);
    let key = (asked.cluster.clone(), asked.key());
    let again = |now| {
        predictors
            .take_up(BTreeMap::from([(key.clone(), asked.clone())]), now)
            .len()
    };
    assert_eq!(again(seconds()), 0, "a storm of reports asks nobody again");
    predictors.forget();
    assert_eq!(again(seconds()), 1, "what was released since takes room");
    assert_eq!(again(seconds()), 0, "and it is asked once at a time");
}

#[tokio::test]
async fn what_is_no_answer_is_told_and_is_never_no_room() {
    let status = r#"{"kind": "Status", "apiVersion": "v1", "status": "Failure", "message": "no nodes", "code": 500}"#;
    assert!(status.len() < PREDICTION_BYTES_MAX);
    let failing = serve(|_| async { said(500, r#"{"kind": "Status", "message": "no feasible nodes found"}"#) }).await;
    check(&failing, "it answers with 500").await;
    let polite = serve(|_| async { said(200, r#"{"kind": "Status", "message": "no feasible nodes found"}"#) }).await;
    check(&polite, "no feasible nodes found").await;
    let garbage = serve(|_| async { said(200, "<html>") }).await;
    check(&garbage, "its answer is no JSON").await;
    let huge = serve(|_| async { said(200, vec![b' '; PREDICTION_BYTES_MAX + 1]) }).await;
    check(&huge, "more than 65536 bytes").await;
    check("http://127.0.0.1:1", "cannot be reached").await;
}

#[tokio::test]
async fn nobody_is_led_elsewhere() {
    let redirect = serve(|_| async {
        let mut response = said(307, "");
        let elsewhere = http::HeaderValue::from_static("http://169.254.169.254/latest");
        response.headers_mut().insert(http::header::LOCATION, elsewhere);
        response
    })
    .await;
    check(&redirect, "it answers with 307").await;
    check("http://169.254.169.254", "an address of the link itself").await;
    check("http://[fe80::1]:80", "an address of the link itself").await;
    let plain = serve(|_| async { said(200, "{}") }).await;
    check(
        &plain.replace("http://", "https://"),
        "cannot be reached, or not be trusted",
    )
    .await;
}

#[tokio::test]
async fn a_slow_predictor_has_a_timeout_of_its_own() {
    static ASKED: tokio::sync::Notify = tokio::sync::Notify::const_new();
    let slow = serve(|_| {
        ASKED.notify_one();
        std::future::pending()
    })
    .await;
    let hurry = async {
        ASKED.notified().await;
        // What is left to wait for is its time alone.
        tokio::time::pause();
    };
    tokio::join!(hurry, check(&slow, "it gave no answer within 20 s"));
}
