//! The door's socket: connections in, with limits on how many, from where, and how long they say nothing.

use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};

use http::Request;
use hyper::body::Incoming;
use hyper::server::conn::{http1, http2};
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use rustls::ServerConfig;
use socket2::{SockRef, TcpKeepalive};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::time::{sleep, timeout};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;
use tokio_util::sync::CancellationToken;
use tracing::Instrument as _;

use super::answered::Answers;
use super::certified::Certified;
use super::login::Proven;
use super::porter::{Peer, Porter};
use crate::hub::doorstep::{self, Doorstep, Known, Place};
use crate::limits::{
    API_DRAIN_TIMEOUT, API_HEADER_BYTES_MAX, API_HEADER_TIMEOUT, DOOR_CLOSES_AFTER, DOOR_CONNECTIONS_MAX,
    DOOR_HANDSHAKE_TIMEOUT, DOOR_IDLE_MAX, DOOR_JUDGED_AGAIN, DOOR_KEEPALIVE, DOOR_KEEPALIVES, DOOR_NEWCOMER_MAX,
    DOOR_NEWCOMERS_MAX, DOOR_STREAMS_MAX, DOOR_WINDOW_BYTES, DRAIN_TIMEOUT,
};

/// The place of a caller who has not logged in yet. It is given back with the first login that counts.
pub(super) struct Newcomer {
    place: Mutex<Option<Place>>,
    from: IpAddr,
    known: Arc<Known>,
}

impl Newcomer {
    /// Somebody is logged in.
    pub(super) fn is_known(&self) {
        let place = self.place.lock().unwrap_or_else(PoisonError::into_inner).take();
        if place.is_some() {
            self.known.proven(self.from);
        }
    }

    /// Waits until the caller should have logged in and has not.
    async fn overdue(&self) {
        sleep(DOOR_NEWCOMER_MAX).await;
        let is_known = self.place.lock().unwrap_or_else(PoisonError::into_inner).is_none();
        if is_known {
            std::future::pending::<()>().await;
        }
    }
}

/// Who has how many places.
struct Places {
    all: Doorstep,
    new: Doorstep,
    known: Arc<Known>,
}

impl Default for Places {
    fn default() -> Self {
        let known = Arc::<Known>::default();
        Self {
            all: Doorstep::new(DOOR_CONNECTIONS_MAX, Arc::clone(&known)),
            new: Doorstep::new(DOOR_NEWCOMERS_MAX, Arc::clone(&known)),
            known,
        }
    }
}

impl Places {
    /// `None`: there is no place, or the network has its share.
    fn place(&self, from: IpAddr) -> Option<(Place, Newcomer)> {
        let place = self.all.place(from)?;
        let newcomer = Newcomer {
            place: Mutex::new(Some(self.new.place(from)?)),
            from,
            known: Arc::clone(&self.known),
        };
        Some((place, newcomer))
    }
}

/// Serves until shutdown, and then a while longer: who was sent here a moment ago is still let in, and what is under way may
/// come to its end.
pub(super) async fn run(listener: TcpListener, porter: Arc<Porter>, shutdown: CancellationToken) {
    let (places, cut) = (Places::default(), CancellationToken::new());
    let closing = async {
        shutdown.cancelled().await;
        sleep(DOOR_CLOSES_AFTER).await;
    };
    let place = |from| {
        let place = places.place(from);
        if place.is_none() {
            porter.tally.turned_away();
        }
        place
    };
    let serve = |socket: TcpStream, from: SocketAddr, (place, newcomer)| {
        let (porter, shutdown, cut) = (Arc::clone(&porter), shutdown.clone(), cut.clone());
        let serve = async move {
            set_up(&socket);
            let tls = Arc::clone(&porter.logins.tls.now().config);
            if let Some(stream) = secured(socket, &tls).await {
                let conversation = Box::pin(converse(stream, from.ip(), newcomer, porter, shutdown));
                cut.run_until_cancelled(conversation).await;
            }
            drop(place);
        };
        serve.instrument(tracing::debug_span!("caller"))
    };
    let callers = doorstep::run(listener, place, serve, closing).await;
    let drained = timeout(DRAIN_TIMEOUT - DOOR_CLOSES_AFTER, callers.wait()).await;
    if drained.is_err() {
        // What has not ended by now is cut off, and has its line.
        cut.cancel();
        let _ended = timeout(API_DRAIN_TIMEOUT, callers.wait()).await;
    }
}

/// Answers are written whole, and a caller whose machine is gone without a word is noticed: the silent stream of a watch or a
/// log would keep its place.
fn set_up(socket: &TcpStream) {
    let alive = TcpKeepalive::new()
        .with_time(DOOR_KEEPALIVE)
        .with_interval(DOOR_KEEPALIVE)
        .with_retries(DOOR_KEEPALIVES);
    let _set = (
        socket.set_nodelay(true),
        SockRef::from(socket).set_tcp_keepalive(&alive),
    );
}

async fn secured<S>(socket: S, tls: &Arc<ServerConfig>) -> Option<TlsStream<S>>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let handshake = TlsAcceptor::from(Arc::clone(tls)).accept(socket);
    match timeout(DOOR_HANDSHAKE_TIMEOUT, handshake).await {
        Ok(Ok(stream)) => Some(stream),
        Ok(Err(error)) => {
            tracing::debug!(%error, "A caller spoke no TLS that counts.");
            None
        }
        Err(_) => {
            tracing::debug!("A caller did not speak in time.");
            None
        }
    }
}

async fn converse<S>(
    stream: TlsStream<S>,
    address: IpAddr,
    newcomer: Newcomer,
    porter: Arc<Porter>,
    shutdown: CancellationToken,
) where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let (_, session) = stream.get_ref();
    let is_http2 = session.alpn_protocol() == Some(b"h2");
    let certified = session.peer_certificates().and_then(Certified::read).map(Arc::new);
    if certified.is_some() {
        newcomer.is_known();
    }
    let peer = Arc::new(Peer {
        address,
        certified,
        newcomer,
        proven: Proven::default(),
        answers: Answers::default(),
    });
    // Each request holds a receiver for as long as its answer lasts.
    let (requests, _) = watch::channel(());
    let asked = CancellationToken::new();
    let service = {
        let (requests, peer, porter) = (requests.clone(), Arc::clone(&peer), Arc::clone(&porter));
        let asked = asked.clone();
        service_fn(move |request: Request<Incoming>| {
            asked.cancel();
            let busy = Box::new(requests.subscribe());
            let answer = Arc::clone(&porter).answer(Arc::clone(&peer), request, busy);
            async move { Ok::<_, std::convert::Infallible>(Box::pin(answer).await) }
        })
    };
    let leaving = leaving(&shutdown, &asked);
    let end = end(&requests, &peer, &porter, leaving);
    // The last bytes of an answer that is over are in no answer any more: also a connection that ends waits for them no longer
    // than for a request.
    let unread = async {
        tokio::select! {
            () = peer.answers.unread() => {}
            () = idle(&requests) => {}
        }
    };
    let io = TokioIo::new(stream);
    let ended = if is_http2 {
        let mut http = http2::Builder::new(TokioExecutor::new());
        http.timer(TokioTimer::new())
            .max_concurrent_streams(DOOR_STREAMS_MAX)
            .initial_stream_window_size(DOOR_WINDOW_BYTES)
            .initial_connection_window_size(DOOR_WINDOW_BYTES)
            .max_header_list_size(u32::try_from(API_HEADER_BYTES_MAX).unwrap_or(u32::MAX))
            .keep_alive_interval(Some(API_HEADER_TIMEOUT));
        let connection = std::pin::pin!(http.serve_connection(io, service));
        until(connection, http2::Connection::graceful_shutdown, end, unread).await
    } else {
        let mut http = http1::Builder::new();
        http.timer(TokioTimer::new())
            .header_read_timeout(API_HEADER_TIMEOUT)
            .max_buf_size(API_HEADER_BYTES_MAX);
        let connection = std::pin::pin!(http.serve_connection(io, service).with_upgrades());
        until(connection, http1::UpgradeableConnection::graceful_shutdown, end, unread).await
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "A caller went away.");
    }
    // What became another protocol goes on without the connection, and has its place.
    requests.closed().await;
}

/// How a connection is ended here.
enum End {
    /// What is asked is still answered.
    Gracefully,
    /// Nothing is asked.
    AtOnce,
}

/// Waits for what ends a connection.
async fn end(requests: &watch::Sender<()>, peer: &Peer, porter: &Porter, leaving: impl Future<Output = ()>) -> End {
    tokio::select! {
        biased;
        () = leaving => End::Gracefully,
        () = outdated(peer, porter) => End::Gracefully,
        () = peer.newcomer.overdue() => End::AtOnce,
        () = idle(requests) => End::AtOnce,
    }
}

/// A connection, to its own end or to one from here. `unread`: its caller reads nothing, also not what is still answered.
async fn until<C, E>(
    mut connection: Pin<&mut C>,
    shut_down: fn(Pin<&mut C>),
    end: impl Future<Output = End>,
    unread: impl Future<Output = ()>,
) -> Result<(), E>
where
    C: Future<Output = Result<(), E>>,
{
    let mut unread = std::pin::pin!(unread);
    let end = tokio::select! {
        biased;
        ended = connection.as_mut() => return ended,
        end = end => end,
        () = unread.as_mut() => End::AtOnce,
    };
    match end {
        End::AtOnce => Ok(()),
        End::Gracefully => {
            shut_down(connection.as_mut());
            tokio::select! {
                biased;
                ended = connection => ended,
                () = unread => Ok(()),
            }
        }
    }
}

/// Waits until a hub that ends may take leave of a caller: one who has just come asks first.
async fn leaving(shutdown: &CancellationToken, asked: &CancellationToken) {
    shutdown.cancelled().await;
    let _asked = timeout(DOOR_CLOSES_AFTER, asked.cancelled()).await;
}

/// Waits until the certificate of a connection counts no more; for ever where it has none.
async fn outdated(peer: &Peer, porter: &Porter) {
    let Some(certified) = &peer.certified else {
        return std::future::pending().await;
    };
    while porter.logins.tls.now().believes(&certified.chain) {
        sleep(DOOR_JUDGED_AGAIN).await;
    }
}

/// Waits until nothing was asked for a while.
async fn idle(requests: &watch::Sender<()>) {
    loop {
        requests.closed().await;
        // A request that begins in between begins the wait anew, when it ended.
        tokio::time::sleep(DOOR_IDLE_MAX).await;
        if requests.is_closed() {
            return;
        }
    }
}

#[cfg(test)]
mod tests;
