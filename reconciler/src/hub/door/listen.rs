//! The door's socket: connections in, with limits on how many, from where, and how long they say nothing.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};

use http::Request;
use hyper::body::Incoming;
use hyper::server::conn::{http1, http2};
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use rustls::ServerConfig;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tracing::Instrument as _;

use super::failures::network;
use super::files::Kept;
use super::login::certified;
use super::porter::{Peer, Porter};
use crate::limits::{
    ACCEPT_PAUSE, API_DRAIN_TIMEOUT, API_HEADER_BYTES_MAX, API_HEADER_TIMEOUT, DOOR_CONNECTIONS_MAX,
    DOOR_CONNECTIONS_OF_PLACE_MAX, DOOR_HANDSHAKE_TIMEOUT, DOOR_HANDSHAKES_MAX, DOOR_IDLE_MAX, DOOR_STREAMS_MAX,
};

/// Connections of each place.
#[derive(Debug, Default)]
struct Places(Mutex<BTreeMap<IpAddr, usize>>);

/// One connection's part of its place.
struct Part {
    places: Arc<Places>,
    place: IpAddr,
}

impl Places {
    /// `None`: the place has too many.
    fn part(self: &Arc<Self>, address: IpAddr) -> Option<Part> {
        let place = network(address);
        let mut places = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let connections = places.entry(place).or_default();
        if *connections >= DOOR_CONNECTIONS_OF_PLACE_MAX {
            return None;
        }
        *connections += 1;
        Some(Part {
            places: Arc::clone(self),
            place,
        })
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        let mut places = self.places.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(connections) = places.get_mut(&self.place) {
            *connections -= 1;
            if *connections == 0 {
                places.remove(&self.place);
            }
        }
    }
}

/// Serves until shutdown.
pub(super) async fn run(
    listener: TcpListener,
    tls: Kept<Arc<ServerConfig>>,
    porter: Arc<Porter>,
    shutdown: CancellationToken,
) {
    let (all, handshakes) = (
        Arc::new(Semaphore::new(DOOR_CONNECTIONS_MAX)),
        Arc::new(Semaphore::new(DOOR_HANDSHAKES_MAX)),
    );
    let (places, connections) = (Arc::new(Places::default()), TaskTracker::new());
    loop {
        let accepted = tokio::select! {
            biased;
            () = shutdown.cancelled() => break,
            accepted = listener.accept() => accepted,
        };
        let (socket, from) = match accepted {
            Ok(accepted) => accepted,
            Err(error) => {
                tracing::warn!(%error, "Could not accept a caller.");
                tokio::time::sleep(ACCEPT_PAUSE).await;
                continue;
            }
        };
        // Whoever finds no place is closed at once: a queue would be filled by those who do not mind waiting.
        let permits = (
            Arc::clone(&all).try_acquire_owned(),
            Arc::clone(&handshakes).try_acquire_owned(),
            places.part(from.ip()),
        );
        let (Ok(permit), Ok(handshake), Some(part)) = permits else {
            porter.tally.turned_away();
            continue;
        };
        let (tls, porter, shutdown) = (tls.now(), Arc::clone(&porter), shutdown.clone());
        let serve = async move {
            // Answers are written whole.
            let _set = socket.set_nodelay(true);
            if let Some(stream) = secured(socket, &tls).await {
                drop(handshake);
                Box::pin(converse(stream, from, porter, shutdown)).await;
            }
            drop((permit, part));
        };
        connections.spawn(serve.instrument(tracing::debug_span!("caller")));
    }
    connections.close();
    // Who has not read its answer by now does not get it.
    let _drained = timeout(API_DRAIN_TIMEOUT, connections.wait()).await;
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

async fn converse(stream: TlsStream<TcpStream>, from: SocketAddr, porter: Arc<Porter>, shutdown: CancellationToken) {
    let (_, session) = stream.get_ref();
    let is_http2 = session.alpn_protocol() == Some(b"h2");
    let certificate = session.peer_certificates().and_then(<[_]>::first);
    let peer = Arc::new(Peer {
        address: from.ip(),
        certified: certificate.and_then(certified).map(Arc::new),
    });
    // Each request holds a receiver for as long as its answer lasts.
    let (requests, _) = watch::channel(());
    let service = {
        let requests = requests.clone();
        service_fn(move |request: Request<Incoming>| {
            let busy = Box::new(requests.subscribe());
            let answer = Arc::clone(&porter).answer(Arc::clone(&peer), request, busy);
            async move { Ok::<_, std::convert::Infallible>(Box::pin(answer).await) }
        })
    };
    let io = TokioIo::new(stream);
    let ended = if is_http2 {
        let mut http = http2::Builder::new(TokioExecutor::new());
        http.timer(TokioTimer::new())
            .max_concurrent_streams(DOOR_STREAMS_MAX)
            .max_header_list_size(u32::try_from(API_HEADER_BYTES_MAX).unwrap_or(u32::MAX))
            .keep_alive_interval(Some(API_HEADER_TIMEOUT));
        let mut connection = std::pin::pin!(http.serve_connection(io, service));
        tokio::select! {
            biased;
            () = shutdown.cancelled() => {
                connection.as_mut().graceful_shutdown();
                connection.await
            }
            ended = connection.as_mut() => ended,
            () = idle(&requests) => Ok(()),
        }
    } else {
        let mut http = http1::Builder::new();
        http.timer(TokioTimer::new())
            .header_read_timeout(API_HEADER_TIMEOUT)
            .max_buf_size(API_HEADER_BYTES_MAX);
        let mut connection = std::pin::pin!(http.serve_connection(io, service).with_upgrades());
        tokio::select! {
            biased;
            () = shutdown.cancelled() => {
                connection.as_mut().graceful_shutdown();
                connection.await
            }
            ended = connection.as_mut() => ended,
            () = idle(&requests) => Ok(()),
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "A caller went away.");
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
mod tests {
    use tokio::io::AsyncWriteExt as _;

    use super::super::certificate::{Authority, config};
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn who_says_nothing_or_says_it_slowly_is_closed_in_time() {
        let folder = tempfile::tempdir().expect("a folder");
        let authority = Authority::read_or_make(&folder.path().join("ca.key")).expect("it is made");
        let shown = authority.certificate_for(&["localhost".to_owned()]).expect("it signs");
        let tls = config(&shown, None).expect("it is one");
        for slowly in [false, true] {
            let (mut caller, socket) = tokio::io::duplex(1_024);
            let begin = tokio::time::Instant::now();
            let drip = async {
                // A byte a second of a record that claims to be a long one.
                for byte in [22, 3, 1, 16, 0].into_iter().chain(std::iter::repeat(1)) {
                    if !slowly || caller.write_u8(byte).await.is_err() {
                        break;
                    }
                    tokio::time::sleep(std::time::Duration::from_secs(1)).await;
                }
                std::future::pending().await
            };
            tokio::select! {
                () = drip => {}
                secured = secured(socket, &tls) => assert!(secured.is_none()),
            }
            let late = DOOR_HANDSHAKE_TIMEOUT + std::time::Duration::from_secs(1);
            assert!(begin.elapsed() < late, "slowly: {slowly}");
        }
    }

    #[test]
    fn one_address_takes_a_part_of_all_connections_at_most() {
        let (places, here) = (Arc::new(Places::default()), "192.0.2.1".parse().expect("an address"));
        let mut parts: Vec<_> = (0..DOOR_CONNECTIONS_OF_PLACE_MAX).map(|_| places.part(here)).collect();
        assert!(parts.iter().all(Option::is_some));
        assert!(places.part(here).is_none());
        assert!(places.part("192.0.2.2".parse().expect("an address")).is_some());
        parts.pop();
        assert!(places.part(here).is_some(), "one went away");
        drop(parts);
        assert!(
            places.0.lock().expect("nobody panicked").is_empty(),
            "nothing is left behind"
        );
    }
}
