//! The socket: on this machine only, with limits on callers and their time.

use std::fmt;
use std::fs::Permissions;
use std::io;
use std::net::SocketAddr;
use std::os::unix::fs::{FileTypeExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tracing::Instrument as _;

use super::routes::Routes;
use crate::limits::{
    API_CONNECTION_MAX, API_CONNECTIONS_MAX, API_DRAIN_TIMEOUT, API_HEADER_BYTES_MAX, API_HEADER_TIMEOUT,
};

/// Where the API answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Listen {
    /// An address of this machine's loopback.
    Tcp(SocketAddr),
    /// A unix socket, for the user that the hub runs as.
    Unix(PathBuf),
}

/// A place to answer that cannot be.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// Neither an address nor a path.
    #[error("{text:?} is neither an address like 127.0.0.1:7070 nor unix:/path")]
    Unclear {
        /// What was given.
        text: String,
    },
    /// Others than this machine could ask.
    #[error(
        "{address} is not a loopback address; this API knows no callers and answers on this machine only: name 127.0.0.1 or unix:/path"
    )]
    NotLoopback {
        /// What was given.
        address: SocketAddr,
    },
    /// The address or path is taken or forbidden.
    #[error("failed to listen on {listen}; hint: end what listens there, or name another place with --api")]
    Bind {
        /// Where.
        listen: Listen,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// Another process answers on the socket.
    #[error("another process answers on {path}")]
    Taken {
        /// Which.
        path: PathBuf,
    },
}

impl FromStr for Listen {
    type Err = ServeError;

    fn from_str(text: &str) -> Result<Self, ServeError> {
        if let Some(path) = text.strip_prefix("unix:").filter(|path| !path.is_empty()) {
            return Ok(Self::Unix(path.into()));
        }
        let address = text
            .parse()
            .map_err(|_| ServeError::Unclear { text: text.to_owned() })?;
        loopback(address).map(Self::Tcp)
    }
}

impl fmt::Display for Listen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(address) => write!(f, "{address}"),
            Self::Unix(path) => write!(f, "unix:{}", path.display()),
        }
    }
}

/// A socket that is bound, and not served yet.
#[derive(Debug)]
pub struct Bound(Listener);

#[derive(Debug)]
enum Listener {
    Tcp(TcpListener),
    Unix(UnixListener, PathBuf),
}

enum Caller {
    Tcp(TcpStream),
    Unix(UnixStream),
}

impl Bound {
    /// Where it answers: for port 0, the port that was given.
    pub fn listen(&self) -> io::Result<Listen> {
        match &self.0 {
            Listener::Tcp(listener) => listener.local_addr().map(Listen::Tcp),
            Listener::Unix(_, path) => Ok(Listen::Unix(path.clone())),
        }
    }

    async fn accept(&self) -> io::Result<Caller> {
        match &self.0 {
            Listener::Tcp(listener) => listener.accept().await.map(|(stream, _)| Caller::Tcp(stream)),
            Listener::Unix(listener, _) => listener.accept().await.map(|(stream, _)| Caller::Unix(stream)),
        }
    }
}

impl Drop for Bound {
    fn drop(&mut self) {
        if let Listener::Unix(_, path) = &self.0 {
            // The next hub takes the file away if this fails.
            let _removed = std::fs::remove_file(path);
        }
    }
}

/// Binds the socket.
pub async fn bind(listen: &Listen) -> Result<Bound, ServeError> {
    let failed = |source| ServeError::Bind {
        listen: listen.clone(),
        source,
    };
    match listen {
        Listen::Tcp(address) => {
            let listener = TcpListener::bind(loopback(*address)?).await.map_err(failed)?;
            Ok(Bound(Listener::Tcp(listener)))
        }
        Listen::Unix(path) => {
            remove_stale(path).await?;
            let listener = UnixListener::bind(path).map_err(failed)?;
            std::fs::set_permissions(path, Permissions::from_mode(0o600)).map_err(failed)?;
            Ok(Bound(Listener::Unix(listener, path.clone())))
        }
    }
}

fn loopback(address: SocketAddr) -> Result<SocketAddr, ServeError> {
    if address.ip().is_loopback() {
        Ok(address)
    } else {
        Err(ServeError::NotLoopback { address })
    }
}

/// A hub that was killed leaves its socket behind. Nothing but a socket that nobody answers on is removed.
async fn remove_stale(path: &Path) -> Result<(), ServeError> {
    // Of an ordinary file Linux says "connection refused" as well.
    let is_socket = std::fs::symlink_metadata(path).is_ok_and(|found| found.file_type().is_socket());
    if !is_socket {
        return Ok(());
    }
    match UnixStream::connect(path).await {
        Ok(_) => Err(ServeError::Taken { path: path.to_owned() }),
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
            // If this fails, binding says why.
            let _removed = std::fs::remove_file(path);
            Ok(())
        }
        Err(_) => Ok(()),
    }
}

/// Serves until shutdown.
pub(in crate::hub) async fn run(bound: Bound, routes: &Routes, shutdown: CancellationToken) -> Result<(), ServeError> {
    let router = routes.unjudged(matches!(bound.0, Listener::Tcp(_)));
    if let Ok(listen) = bound.listen() {
        tracing::info!(address = %listen, "Serving the read-only API.");
    }
    let callers = Arc::new(Semaphore::new(API_CONNECTIONS_MAX));
    let connections = TaskTracker::new();
    loop {
        let next = tokio::select! {
            biased;
            () = shutdown.cancelled() => break,
            next = next_caller(&bound, &callers) => next,
        };
        if let Some((caller, permit)) = next {
            let served = serve(caller, router.clone(), permit, shutdown.clone());
            connections.spawn(served.instrument(tracing::debug_span!("caller")));
        }
    }
    connections.close();
    // Who has not read its answer by now does not get it.
    let _drained = tokio::time::timeout(API_DRAIN_TIMEOUT, connections.wait()).await;
    Ok(())
}

async fn next_caller(bound: &Bound, callers: &Arc<Semaphore>) -> Option<(Caller, OwnedSemaphorePermit)> {
    let permit = Arc::clone(callers).acquire_owned().await.ok()?;
    match bound.accept().await {
        Ok(caller) => Some((caller, permit)),
        Err(error) => {
            tracing::warn!(%error, "Could not accept a caller.");
            // Out of files, most likely: some will be closed soon.
            tokio::time::sleep(Duration::from_millis(100)).await;
            None
        }
    }
}

async fn serve(caller: Caller, router: Router, permit: OwnedSemaphorePermit, shutdown: CancellationToken) {
    match caller {
        Caller::Tcp(stream) => converse(stream, router, shutdown).await,
        Caller::Unix(stream) => converse(stream, router, shutdown).await,
    }
    drop(permit);
}

async fn converse<S>(stream: S, router: Router, shutdown: CancellationToken)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new())
        .header_read_timeout(API_HEADER_TIMEOUT)
        .max_buf_size(API_HEADER_BYTES_MAX);
    let mut connection = std::pin::pin!(http.serve_connection(TokioIo::new(stream), TowerToHyperService::new(router)));
    let ended = tokio::select! {
        biased;
        () = shutdown.cancelled() => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
        ended = connection.as_mut() => ended,
        () = tokio::time::sleep(API_CONNECTION_MAX) => return,
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "A caller went away.");
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn who_says_headers_slowly_on_this_machine_is_hung_up_on_in_time() {
        // What is served by a unix socket is the same as over TCP.
        for beginning in ["", "GET /healthz HTTP/1.1\r\nx: "] {
            let (caller, stream) = tokio::io::duplex(1 << 10);
            let begun = tokio::time::Instant::now();
            let served = converse(stream, Router::new(), CancellationToken::new());
            let drip = async {
                let (mut reader, mut writer) = tokio::io::split(caller);
                let _said = writer.write_all(beginning.as_bytes()).await;
                let drip = async {
                    while writer.write_all(b"a").await.is_ok() {
                        tokio::time::sleep(Duration::from_secs(1)).await;
                    }
                };
                let mut told = Vec::new();
                let _gone = tokio::join!(drip, reader.read_to_end(&mut told));
            };
            tokio::join!(served, drip);
            let late = API_HEADER_TIMEOUT + Duration::from_secs(3);
            assert!(begun.elapsed() <= late, "{beginning:?}: {:?}", begun.elapsed());
        }
    }
}
