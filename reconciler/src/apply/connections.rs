//! Connections to an API server with one credential. Whoever asks carries a connection as long as it answers; then it waits a
//! little for the next request.
//!
//! kube's own client goes by hyper's pool, which has a task for each connection that every request and every piece of an answer
//! wakes.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use http::header::{HOST, InvalidHeaderValue};
use http::uri::{InvalidUri, PathAndQuery};
use http::{HeaderValue, Request, Response, Uri};
use hyper_timeout::TimeoutConnector;
use hyper_util::client::legacy::connect::HttpConnector;
use kube::Config;
use kube::client::{Body, ConfigExt as _, middleware};
use tower::util::{BoxCloneSyncService, Either};
use tower::{BoxError, Layer, Service, ServiceExt as _};
use tracing::Instrument as _;

use crate::exchange::{Answer, Line, Room, Shelf, Stream, Unanswered};
use crate::limits::{API_IDLE_FOR, API_IDLE_LOOK, API_IDLE_MAX};

/// The connections of one credential. Clones share them.
#[derive(Clone)]
pub(super) struct Connections(Credential);

/// What gives a request its credential, where one goes by header.
type Credential = Either<<middleware::AuthLayer as Layer<Lines>>::Service, Lines>;

/// No connection was made.
#[derive(Debug, thiserror::Error)]
#[error("failed to connect")]
pub(super) struct NotConnected(#[source] BoxError);

/// Asks without a credential, but for that of TLS.
#[derive(Clone)]
struct Lines(Arc<Shared>);

struct Shared {
    connect: Connect,
    server: Server,
    idle: Shelf<(), (), Body>,
}

type Connect = BoxCloneSyncService<(), Line<Body>, BoxError>;

const ROOM: Room = Room {
    in_all: API_IDLE_MAX,
    at_place: API_IDLE_MAX,
    stay: API_IDLE_FOR,
    look: API_IDLE_LOOK,
};

/// What an API server is called.
struct Server {
    host: HeaderValue,
    /// What its own paths come after; mostly empty.
    path: String,
}

impl Connections {
    /// By a configuration without a proxy, and without headers of its own.
    pub(super) fn new(config: &Config) -> kube::Result<Self> {
        let mut tcp = HttpConnector::new();
        tcp.enforce_http(false);
        tcp.set_nodelay(true);
        let mut connector = TimeoutConnector::new(config.rustls_https_connector_with_connector(tcp)?);
        connector.set_connect_timeout(config.connect_timeout);
        connector.set_read_timeout(config.read_timeout);
        connector.set_write_timeout(config.write_timeout);
        let uri = config.cluster_url.clone();
        let server = Server::at(&uri).map_err(|error| kube::Error::HttpError(error.into()))?;
        let lines = Lines::new(ROOM, connect(connector.map_request(move |()| uri.clone())), server);
        Ok(Self(match config.auth_layer()? {
            Some(credential) => Either::Left(credential.layer(lines)),
            None => Either::Right(lines),
        }))
    }

    /// Asks, and gives the answer once it begins.
    pub(super) async fn send(&self, request: Request<Body>) -> kube::Result<Response<Answer<Body>>> {
        self.0.clone().oneshot(request).await.map_err(error)
    }
}

/// kube's client over streams of somebody else's to a server that has one name there and asks for no credential.
#[cfg(feature = "hub")]
pub(crate) fn client_over<C>(streams: C, host: &'static str, room: Room) -> kube::Client
where
    C: Service<(), Response: Stream, Error: Into<BoxError>, Future: Send> + Clone + Send + Sync + 'static,
{
    let server = Server {
        host: HeaderValue::from_static(host),
        path: String::new(),
    };
    kube::Client::new(Lines::new(room, connect(streams), server), "default")
}

fn connect<C>(streams: C) -> Connect
where
    C: Service<(), Response: Stream, Error: Into<BoxError>, Future: Send> + Clone + Send + Sync + 'static,
{
    let connect = streams
        .map_err(|error| BoxError::from(NotConnected(error.into())))
        // Somebody may ask for another protocol, and the next one on that connection not.
        .and_then(async |stream| Ok(Line::changing(stream).await?));
    BoxCloneSyncService::new(connect)
}

/// As kube's client tells errors apart.
fn error(error: BoxError) -> kube::Error {
    let error = error.downcast::<kube::Error>().map(|error| *error);
    error
        .or_else(|error| {
            error
                .downcast::<hyper::Error>()
                .map(|error| kube::Error::HyperError(*error))
        })
        .unwrap_or_else(kube::Error::Service)
}

impl Service<Request<Body>> for Lines {
    type Response = Response<Answer<Body>>;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, BoxError>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        Box::pin(self.clone().ask(request))
    }
}

impl Lines {
    fn new(room: Room, connect: Connect, server: Server) -> Self {
        let idle = Shelf::new(room);
        tokio::spawn(idle.let_go().instrument(tracing::info_span!("connections")));
        Self(Arc::new(Shared { connect, server, idle }))
    }

    async fn ask(self, mut request: Request<Body>) -> Result<Response<Answer<Body>>, BoxError> {
        self.0.server.address(&mut request)?;
        let home = || Some(self.0.idle.home((), ()));
        // Of those that wait one may have ended meanwhile.
        while let Some(line) = self.0.idle.take(&(), &()) {
            match line.ask(request, home()).await {
                Ok(answer) => return Ok(answer),
                Err(Unanswered { error, unsent }) => request = *unsent.ok_or(error)?,
            }
        }
        let line = self.0.connect.clone().oneshot(()).await?;
        let answer = line.ask(request, home()).await;
        Ok(answer.map_err(|unanswered| unanswered.error)?)
    }
}

impl Server {
    fn at(uri: &Uri) -> Result<Self, InvalidHeaderValue> {
        let authority = uri.authority().map_or("", |authority| authority.as_str());
        // Without a name and a password, which are no part of a host, and without the port that goes without saying.
        let host = authority.rsplit('@').next().unwrap_or_default();
        let usual = match uri.scheme_str() {
            Some("http") => ":80",
            _ => ":443",
        };
        let host = host.strip_suffix(usual).unwrap_or(host);
        Ok(Self {
            host: HeaderValue::from_str(host)?,
            path: uri.path().trim_end_matches('/').to_owned(),
        })
    }

    /// Has a request ask this server for what its path names.
    fn address(&self, request: &mut Request<Body>) -> Result<(), InvalidUri> {
        request.headers_mut().insert(HOST, self.host.clone());
        let uri = request.uri();
        if !self.path.is_empty() || uri.authority().is_some() {
            let asked = uri.path_and_query().map_or("/", PathAndQuery::as_str);
            *request.uri_mut() = format!("{}{asked}", self.path).parse()?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
