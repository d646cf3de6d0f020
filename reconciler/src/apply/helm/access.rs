//! Helm's way to the API server: an address on this machine's loopback that forwards through our own client.
//!
//! It works for clusters behind a tunnel too, no credential ever lies on disk, and a helm that outlives its
//! agent reaches nothing any more. A word of 32 random bytes in the path, made for one run and written only
//! into that run's kubeconfig, keeps other processes out: client-go sends a bearer token over TLS alone, and
//! a certificate for one run would buy nothing on a loopback.

use std::convert::Infallible;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderMap, Request, Response, StatusCode, Uri, header};
use http_body_util::{BodyExt as _, Limited};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use kube::Client;
use kube::client::Body;
use serde_json::json;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio_util::task::AbortOnDropHandle;
use tracing::{Instrument as _, info_span};

use crate::limits::{HELM_CONNECTIONS_MAX, HELM_REQUEST_BYTES_MAX};

/// The address; it is closed when this is dropped.
pub(super) struct Access {
    address: SocketAddr,
    word: String,
    _serving: AbortOnDropHandle<()>,
}

impl Access {
    /// Opens it.
    pub(super) async fn open(client: Client) -> std::io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let address = listener.local_addr()?;
        let word = word()?;
        let path: Arc<str> = format!("/{word}/").into();
        let serving = serve(listener, client, path).instrument(info_span!("helm_access"));
        Ok(Self {
            address,
            word,
            _serving: AbortOnDropHandle::new(tokio::spawn(serving)),
        })
    }

    /// A kubeconfig that knows nothing but this address.
    pub(super) fn kubeconfig(&self, namespace: &str) -> String {
        let server = format!("http://{}/{}", self.address, self.word);
        json!({
            "apiVersion": "v1", "kind": "Config", "current-context": "cluster",
            "clusters": [{"name": "cluster", "cluster": {"server": server}}],
            "users": [{"name": "agent", "user": {}}],
            "contexts": [{"name": "cluster", "context": {"cluster": "cluster", "user": "agent", "namespace": namespace}}],
        })
        .to_string()
    }
}

/// 32 random bytes.
fn word() -> std::io::Result<String> {
    let mut bytes = [0_u8; 32];
    let random = rustls::crypto::ring::default_provider().secure_random;
    random
        .fill(&mut bytes)
        .map_err(|_| std::io::Error::other("no random bytes"))?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

async fn serve(listener: TcpListener, client: Client, path: Arc<str>) {
    let room = Arc::new(Semaphore::new(HELM_CONNECTIONS_MAX));
    // Aborted with this task.
    let mut connections = JoinSet::new();
    while let Ok(permit) = room.clone().acquire_owned().await {
        let Ok((stream, _)) = listener.accept().await else {
            return;
        };
        while connections.try_join_next().is_some() {}
        let (client, path) = (client.clone(), path.clone());
        connections.spawn(async move {
            connection(stream, client, path).await;
            drop(permit);
        });
    }
}

async fn connection(stream: TcpStream, client: Client, path: Arc<str>) {
    let service = service_fn(move |request| {
        let (client, path) = (client.clone(), path.clone());
        async move { Ok::<_, Infallible>(forward(request, &client, &path).await) }
    });
    let serving = hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), service);
    if let Err(error) = serving.await {
        tracing::debug!(error = crate::fault::line(&error), "Lost helm's connection.");
    }
}

async fn forward(request: Request<Incoming>, client: &Client, path: &str) -> Response<Body> {
    let Some(target) = target(request.uri(), path) else {
        return refusal(StatusCode::UNAUTHORIZED, "this address is another's");
    };
    let (parts, body) = request.into_parts();
    let Ok(body) = Limited::new(body, HELM_REQUEST_BYTES_MAX).collect().await else {
        return refusal(StatusCode::PAYLOAD_TOO_LARGE, "the request is too large");
    };
    let mut forwarded = Request::new(Body::from(body.to_bytes()));
    *forwarded.method_mut() = parts.method;
    *forwarded.uri_mut() = target;
    *forwarded.headers_mut() = parts.headers;
    without_hop(forwarded.headers_mut());
    match client.send(forwarded).await {
        Ok(mut answer) => {
            without_hop(answer.headers_mut());
            answer
        }
        Err(error) => refusal(StatusCode::BAD_GATEWAY, &crate::fault::line(&error)),
    }
}

/// What is asked of the API server; `None` for who does not know the word.
fn target(uri: &Uri, path: &str) -> Option<Uri> {
    let asked = uri.path_and_query()?.as_str();
    let rest = asked.strip_prefix(path)?;
    format!("/{rest}").parse().ok()
}

/// Drops what belongs to one connection, and whatever credential helm might send.
fn without_hop(headers: &mut HeaderMap) {
    for name in [
        header::AUTHORIZATION,
        header::CONNECTION,
        header::CONTENT_LENGTH,
        header::HOST,
        header::TE,
        header::TRAILER,
        header::TRANSFER_ENCODING,
        header::UPGRADE,
    ] {
        headers.remove(name);
    }
}

fn refusal(code: StatusCode, words: &str) -> Response<Body> {
    let status = json!({
        "apiVersion": "v1", "kind": "Status", "status": "Failure", "message": words, "code": code.as_u16(),
    });
    let mut response = Response::new(Body::from(Bytes::from(status.to_string())));
    *response.status_mut() = code;
    let json = header::HeaderValue::from_static("application/json");
    response.headers_mut().insert(header::CONTENT_TYPE, json);
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_who_knows_the_word_is_let_through() {
        let ask = |uri: &str| target(&uri.parse().expect("a valid URI"), "/w0rd/").map(|uri| uri.to_string());
        assert_eq!(
            ask("/w0rd/api/v1/pods?limit=5").as_deref(),
            Some("/api/v1/pods?limit=5")
        );
        assert_eq!(ask("/w0rd/").as_deref(), Some("/"));
        for other in ["/api/v1/pods", "/w0rd", "/w0rdx/api", "/other/api", "/"] {
            assert_eq!(ask(other), None, "{other}");
        }
    }

    #[test]
    fn each_run_has_its_own_word() {
        let (one, other) = (word().expect("random bytes"), word().expect("random bytes"));
        assert_eq!(one.len(), 64);
        assert_ne!(one, other);
    }
}
