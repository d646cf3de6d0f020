//! One question over HTTP: TLS is always verified, no redirect is followed, every answer has a limit, and nobody is
//! asked where clouds give credentials out, whatever a name leads to.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::BoxFuture;
use http::{Request, Response, StatusCode, Uri, header};
use http_body_util::{BodyExt as _, Full, LengthLimitError, Limited};
use hyper::body::Incoming;
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::client::legacy::connect::dns::Name;
use hyper_util::rt::TokioExecutor;
use kube::Config;
use kube::client::ConfigExt as _;
use render::predictor::{InvalidAnswer, Question, is_forbidden, predicted_replicas};
use tokio::time::timeout;

use crate::fault::line;
use crate::limits::{API_CONNECT_TIMEOUT, PREDICTION_BYTES_MAX};

/// Why there is no answer that can be used.
#[derive(Debug, thiserror::Error)]
pub(super) enum NoAnswer {
    #[error("this hub cannot ask over TLS: {0}")]
    Tls(String),
    #[error("its address is none")]
    Address,
    #[error("it leads to an address of the link itself")]
    Forbidden,
    #[error("it cannot be reached, or not be trusted: {0}")]
    Unreachable(String),
    #[error("it gave no answer within {} s", .0.as_secs())]
    TooLong(Duration),
    #[error("it answers with {0}")]
    Status(StatusCode),
    #[error("its answer has more than {PREDICTION_BYTES_MAX} bytes")]
    TooLarge,
    #[error(transparent)]
    Invalid(InvalidAnswer),
}

type Answering = BoxFuture<'static, Result<Response<Incoming>, hyper_util::client::legacy::Error>>;

/// The client, whose connector has a type that is longer than what it does.
type Sending = Box<dyn Fn(Request<Full<Bytes>>) -> Answering + Send + Sync>;

/// Asks predictors.
pub(super) struct Asker {
    send: Result<Sending, String>,
}

impl Asker {
    pub(super) fn new() -> Self {
        let resolver = tower::service_fn(|name: Name| async move {
            let found = tokio::net::lookup_host((name.as_str(), 0)).await?;
            let (forbidden, allowed): (Vec<SocketAddr>, Vec<SocketAddr>) =
                found.partition(|address| is_forbidden(address.ip()));
            match forbidden.is_empty() {
                true => Ok(allowed.into_iter()),
                false => Err(std::io::Error::other(NoAnswer::Forbidden.to_string())),
            }
        });
        let mut connector = HttpConnector::new_with_resolver(resolver);
        connector.enforce_http(false);
        connector.set_connect_timeout(Some(API_CONNECT_TIMEOUT));
        // kube's TLS, with the roots of this machine; the address of the configuration is not used.
        let tls = Config::new(Uri::from_static("https://localhost")).rustls_https_connector_with_connector(connector);
        let send = tls.map_err(|error| error.to_string()).map(|connector| {
            let client = Client::builder(TokioExecutor::new())
                .pool_max_idle_per_host(0)
                .build::<_, Full<Bytes>>(connector);
            let send = move |request| -> Answering { Box::pin(client.request(request)) };
            Box::new(send) as Sending
        });
        Self { send }
    }

    /// How many replicas more fit, as the predictor says.
    pub(super) async fn ask(&self, question: &Question) -> Result<u64, NoAnswer> {
        let patience = Duration::from_secs(question.predictor.timeout_seconds);
        let asking = timeout(patience, self.once(question));
        asking.await.unwrap_or(Err(NoAnswer::TooLong(patience)))
    }

    async fn once(&self, question: &Question) -> Result<u64, NoAnswer> {
        let send = self.send.as_ref().map_err(|error| NoAnswer::Tls(error.clone()))?;
        let response = send(request(question)?)
            .await
            .map_err(|error| NoAnswer::Unreachable(line(&error)))?;
        // A redirect leads where nobody merged that it may lead.
        if !response.status().is_success() {
            return Err(NoAnswer::Status(response.status()));
        }
        let body = Limited::new(response.into_body(), PREDICTION_BYTES_MAX).collect().await;
        let body = body.map_err(|error| match error.is::<LengthLimitError>() {
            true => NoAnswer::TooLarge,
            false => NoAnswer::Unreachable(error.to_string()),
        })?;
        predicted_replicas(&body.to_bytes()).map_err(NoAnswer::Invalid)
    }
}

fn request(question: &Question) -> Result<Request<Full<Bytes>>, NoAnswer> {
    let uri: Uri = format!("{}/replicas/predict", question.predictor.url)
        .parse()
        .map_err(|_| NoAnswer::Address)?;
    // The resolver is not asked of an address that is a number already.
    let host = uri.host().unwrap_or_default().trim_matches(['[', ']']);
    if host.parse::<IpAddr>().is_ok_and(is_forbidden) {
        return Err(NoAnswer::Forbidden);
    }
    Request::post(uri)
        .header(header::CONTENT_TYPE, "application/json")
        .header(header::USER_AGENT, concat!("flotilla/", env!("CARGO_PKG_VERSION")))
        .header("Cluster-ID", &question.cluster_id)
        .body(Full::new(Bytes::from(question.body.to_string())))
        .map_err(|_| NoAnswer::Address)
}
