//! The doors that agents dial: connections in, proven tunnels out to `session`.
//!
//! One door ends TLS itself; the other one stands behind a server that did. Both share the queue, so that neither
//! starves the other.

use std::net::SocketAddr;
use std::sync::Arc;

use render::ClusterName;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tracing::Instrument as _;
use tunnel::limits::PROBE_EPOCH;
use tunnel::{AcceptError, AcceptOptions, GoAway, GoAwayReason, HandshakeError, Tunnel};

use super::doorstep;
use super::session::Sessions;
use super::turned_away::{Who, Why};
use crate::fault::line;
use crate::limits::{SESSION_CLOSE_TIMEOUT, TURNED_AWAY_MAX, TURNED_AWAY_TIMEOUT};

/// Where agents come in.
pub(super) struct Doors {
    /// TLS ends here.
    pub(super) secured: TcpListener,
    /// TLS ended at a server before this one.
    pub(super) plain: Option<TcpListener>,
}

/// Accepts agents until shutdown, then waits for their sessions to end.
pub(super) async fn run(
    doors: Doors,
    accepts: watch::Receiver<Arc<AcceptOptions>>,
    sessions: Sessions,
    shutdown: CancellationToken,
) {
    let (tasks, leaving) = (TaskTracker::new(), Arc::new(Semaphore::new(TURNED_AWAY_MAX)));
    loop {
        let ((socket, peer), is_plain) = tokio::select! {
            biased;
            () = shutdown.cancelled() => break,
            socket = accept(Some(&doors.secured)) => (socket, false),
            socket = accept(doors.plain.as_ref()) => (socket, true),
        };
        let options = accepts.borrow().clone();
        let Some(place) = sessions.arrivals.place(peer.ip(), is_plain) else {
            if let Some(more) = sessions.arrivals.turned_away.says(Why::NoRoom, Who::at(peer.ip())) {
                tracing::warn!(%peer, more, "Sent an agent away, since too many are waiting.");
            }
            options.allowance.meters.turned_away();
            if let Some(permit) = is_plain
                .then(|| Arc::clone(&leaving).try_acquire_owned().ok())
                .flatten()
            {
                tasks.spawn(async move {
                    turn_away(socket).await;
                    drop(permit);
                });
            }
            continue;
        };
        let (sessions, shutdown) = (sessions.clone(), shutdown.clone());
        let serve = async move {
            let Some(turn) = sessions.arrivals.turn(&place).await else {
                if let Some(more) = sessions.arrivals.turned_away.says(Why::Late, Who::at(peer.ip())) {
                    tracing::warn!(%peer, more, "Let an agent wait for too long.");
                }
                options.allowance.meters.turned_away();
                if is_plain {
                    turn_away(socket).await;
                }
                return;
            };
            let greeted = handshake(socket, is_plain, &options).await;
            drop((turn, place));
            match greeted {
                Ok(tunnel) => {
                    sessions.arrivals.arrived((!is_plain).then_some(peer.ip()));
                    Box::pin(serve(&sessions, tunnel, (peer, is_plain), &shutdown)).await;
                }
                // Who is refused may be looked for by its address.
                Err(error) => refused(&sessions, &error, (peer, is_plain)),
            }
        };
        tasks.spawn(serve.instrument(tracing::info_span!("agent")));
    }
    // Nobody is greeted by a hub that ends.
    drop(doors);
    tasks.close();
    tasks.wait().await;
}

async fn handshake(socket: TcpStream, is_plain: bool, options: &AcceptOptions) -> Result<Tunnel, AcceptError> {
    if is_plain {
        Box::pin(tunnel::accept_plain(socket, options)).await
    } else {
        Box::pin(tunnel::accept(socket, options)).await
    }
}

async fn serve(
    sessions: &Sessions,
    tunnel: Tunnel,
    (peer, is_plain): (SocketAddr, bool),
    shutdown: &CancellationToken,
) {
    if tunnel.peer.epoch == PROBE_EPOCH {
        // Somebody asks whether this agent would be let in. The tunnel that stands is left alone.
        tracing::info!(cluster = %tunnel.peer.cluster, %peer, "Answered a probe.");
        tunnel
            .session
            .close(GoAway::new(GoAwayReason::Drain, "this was a probe"));
        let _gone = timeout(SESSION_CLOSE_TIMEOUT, tunnel.session.closed()).await;
        return;
    }
    match ClusterName::parse(tunnel.peer.cluster.clone()) {
        Ok(cluster) => {
            // A server that ends TLS has one address for all agents behind it: by that nobody is judged.
            let from = (!is_plain).then_some(peer.ip());
            Box::pin(sessions.serve(cluster, (tunnel, from), shutdown)).await;
        }
        Err(error) => {
            if let Some(more) = sessions.arrivals.turned_away.says(Why::BadName, Who::at(peer.ip())) {
                tracing::warn!(%peer, %error, more, "Refused an agent with a bad name.");
            }
        }
    }
}

/// Tells whoever speaks HTTP to come back later. Before TLS nothing can be said.
async fn turn_away(mut socket: TcpStream) {
    let said = async {
        socket.write_all(BUSY).await?;
        socket.shutdown().await?;
        // What is closed with bytes unread takes the answer along.
        tokio::io::copy(&mut (&mut socket).take(BUSY_READ_MAX), &mut tokio::io::sink()).await
    };
    // Whoever does not read it is gone.
    let _said = timeout(TURNED_AWAY_TIMEOUT, said).await;
}

/// Ten seconds: as long as the queue is at most.
const BUSY: &[u8] =
    b"HTTP/1.1 503 Service Unavailable\r\nretry-after: 10\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";

/// Bytes that are read of whoever is told so: the head of a request.
const BUSY_READ_MAX: u64 = 64 << 10;

fn refused(sessions: &Sessions, error: &AcceptError, (peer, is_plain): (SocketAddr, bool)) {
    let named = named(error);
    // Beyond the log, names that nobody registered are not remembered: there is no end of them.
    let registered = named.as_ref().filter(|cluster| sessions.registry.has(cluster));
    if let Some(cluster) = registered {
        sessions.connections.refused(cluster, line(error), peer);
    }
    // Behind a server that ends TLS all have one address, and the fleet's own names are told apart however many they are.
    let is_apart = is_plain && registered.is_some();
    let (why, turned_away) = (Why::of(error), &sessions.arrivals.turned_away);
    let said = match named {
        None => turned_away.says(why, Who::at(peer.ip())),
        Some(cluster) if is_apart => turned_away.says(why, Who::Cluster(cluster)),
        Some(cluster) => turned_away.says_of_name(why, cluster, peer.ip()),
    };
    if let Some(more) = said {
        tracing::warn!(%peer, error = error as &dyn std::error::Error, more, "Refused an agent.");
    }
}

/// The name that it gave who is refused.
fn named(error: &AcceptError) -> Option<ClusterName> {
    match error {
        AcceptError::Handshake(
            HandshakeError::AgentNotProven { cluster, .. }
            | HandshakeError::UnknownCluster { cluster, .. }
            | HandshakeError::Version { cluster, .. },
        ) => ClusterName::parse(cluster.clone()).ok(),
        _ => None,
    }
}

/// The next connection of a door; never, of one that is not there.
async fn accept(listener: Option<&TcpListener>) -> (TcpStream, SocketAddr) {
    match listener {
        Some(listener) => doorstep::accept(listener).await,
        None => std::future::pending().await,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agents_behind_one_server_are_told_apart_by_the_names_they_give() {
        let unknown = |cluster: &str| {
            let (cluster, told) = (cluster.to_owned(), None);
            named(&AcceptError::Handshake(HandshakeError::UnknownCluster {
                cluster,
                told,
            }))
        };
        assert!(unknown("oslo").is_some_and(|name| name.as_str() == "oslo"));
        assert_ne!(unknown("oslo"), unknown("rome"));
        assert_eq!(unknown("No Name"), None, "what cannot be a name is none");
        assert_eq!(named(&AcceptError::Timeout), None);
    }

    #[tokio::test]
    async fn who_finds_no_room_behind_a_server_is_told_when_to_come_back() {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("loopback has a port");
        let address = listener.local_addr().expect("it is bound");
        let (caller, accepted) = tokio::join!(TcpStream::connect(address), listener.accept());
        let (mut caller, (socket, _)) = (caller.expect("it listens"), accepted.expect("it comes"));
        let asked = async {
            caller
                .write_all(b"GET /tunnel HTTP/1.1\r\nhost: hub\r\n\r\n")
                .await
                .expect("it is open");
            let mut answer = String::new();
            caller.read_to_string(&mut answer).await.expect("it is not reset");
            answer
        };
        let (answer, ()) = tokio::join!(asked, turn_away(socket));
        assert!(answer.starts_with("HTTP/1.1 503 "), "{answer}");
        assert!(answer.contains("retry-after: 10\r\n"), "{answer}");
    }
}
