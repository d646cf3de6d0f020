//! The hub's read-only API on loopback or a unix socket.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::str::FromStr;

use axum::Router;
use axum::routing::get;
use tokio::net::{TcpListener, UnixListener};
use tokio_util::sync::CancellationToken;

use super::run::SharedState;

/// Where the API answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Listen {
    /// A loopback address.
    Tcp(SocketAddr),
    /// A unix socket.
    Unix(PathBuf),
}

/// An address that is neither a loopback address nor `unix:PATH`.
#[derive(Debug, thiserror::Error)]
#[error("{0:?} is neither a loopback address with a port nor unix:PATH")]
pub struct InvalidListen(String);

impl FromStr for Listen {
    type Err = InvalidListen;
    fn from_str(text: &str) -> Result<Self, InvalidListen> {
        if let Some(path) = text.strip_prefix("unix:") {
            return Ok(Self::Unix(PathBuf::from(path)));
        }
        let address: Option<SocketAddr> = text.parse().ok();
        let loopback = address.filter(|address| address.ip().is_loopback());
        loopback.map(Self::Tcp).ok_or_else(|| InvalidListen(text.to_owned()))
    }
}

/// Why the API could not be served.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The address could not be used.
    #[error("failed to listen on {0:?}")]
    Bind(Listen, #[source] std::io::Error),
    /// Serving ended.
    #[error("the server ended")]
    Serve(#[source] std::io::Error),
}

/// A bound listener.
pub(super) enum Bound {
    Tcp(TcpListener),
    Unix(UnixListener),
}

pub(super) async fn bind(listen: &Listen) -> Result<Bound, ServeError> {
    let bound = match listen {
        Listen::Tcp(address) => TcpListener::bind(address).await.map(Bound::Tcp),
        Listen::Unix(path) => UnixListener::bind(path).map(Bound::Unix),
    };
    bound.map_err(|error| ServeError::Bind(listen.clone(), error))
}

pub(super) async fn run(bound: Bound, _state: SharedState, shutdown: CancellationToken) -> Result<(), ServeError> {
    let router = Router::new().route("/healthz", get(|| async { "ok" }));
    let until = async move { shutdown.cancelled().await };
    let served = match bound {
        Bound::Tcp(listener) => axum::serve(listener, router).with_graceful_shutdown(until).await,
        Bound::Unix(listener) => axum::serve(listener, router).with_graceful_shutdown(until).await,
    };
    served.map_err(ServeError::Serve)
}
