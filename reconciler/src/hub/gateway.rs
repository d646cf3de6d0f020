//! The doors that agents dial: connections in, proven tunnels out to `session`.
//!
//! One door ends TLS itself; the other one stands behind a server that did. Both share the queue, so that neither
//! starves the other.

use std::net::SocketAddr;
use std::sync::Arc;

use render::ClusterName;
use tokio::net::{TcpListener, TcpStream};
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tracing::Instrument as _;
use tunnel::limits::PROBE_EPOCH;
use tunnel::{AcceptError, AcceptOptions, GoAway, GoAwayReason, HandshakeError, Tunnel};

use super::session::Sessions;
use crate::fault::line;
use crate::limits::{ACCEPT_PAUSE, SESSION_CLOSE_TIMEOUT};

/// Where agents come in.
pub(super) struct Doors {
    /// TLS ends here.
    pub(super) secured: TcpListener,
    /// TLS ended at a server before this one.
    pub(super) plain: Option<TcpListener>,
}

/// Accepts agents until shutdown, then waits for their sessions to end.
pub(super) async fn run(doors: Doors, options: AcceptOptions, sessions: Sessions, shutdown: CancellationToken) {
    let options = Arc::new(options);
    let tasks = TaskTracker::new();
    loop {
        let (socket, is_plain) = tokio::select! {
            biased;
            () = shutdown.cancelled() => break,
            socket = accept(Some(&doors.secured)) => (socket, false),
            socket = accept(doors.plain.as_ref()) => (socket, true),
        };
        let Some(place) = sessions.arrivals.place() else {
            tracing::warn!("Sent an agent away, since too many are waiting.");
            continue;
        };
        let (options, sessions, shutdown) = (Arc::clone(&options), sessions.clone(), shutdown.clone());
        let serve = async move {
            // Who is refused may be looked for by its address; a socket that is gone already has none.
            let peer = socket.peer_addr().ok();
            let greeted = sessions.arrivals.greet(handshake(socket, is_plain, &options)).await;
            drop(place);
            match greeted {
                Some(Ok(tunnel)) => Box::pin(serve(&sessions, tunnel, peer, &shutdown)).await,
                Some(Err(error)) => refused(&sessions, &error, peer),
                None => tracing::warn!(
                    peer = peer.map(tracing::field::display),
                    "Let an agent wait for too long."
                ),
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

async fn serve(sessions: &Sessions, tunnel: Tunnel, peer: Option<SocketAddr>, shutdown: &CancellationToken) {
    if tunnel.peer.epoch == PROBE_EPOCH {
        // Somebody asks whether this agent would be let in. The tunnel that stands is left alone.
        tracing::info!(cluster = %tunnel.peer.cluster, peer = peer.map(tracing::field::display), "Answered a probe.");
        tunnel
            .session
            .close(GoAway::new(GoAwayReason::Drain, "this was a probe"));
        let _gone = timeout(SESSION_CLOSE_TIMEOUT, tunnel.session.closed()).await;
        return;
    }
    match ClusterName::parse(tunnel.peer.cluster.clone()) {
        Ok(cluster) => Box::pin(sessions.serve(cluster, tunnel, shutdown)).await,
        Err(error) => {
            tracing::warn!(peer = peer.map(tracing::field::display), %error, "Refused an agent with a bad name.");
        }
    }
}

fn refused(sessions: &Sessions, error: &AcceptError, peer: Option<SocketAddr>) {
    // Names that nobody registered are not remembered: there is no end of them.
    let named = match error {
        AcceptError::Handshake(
            HandshakeError::AgentNotProven { cluster, .. } | HandshakeError::Version { cluster, .. },
        ) => ClusterName::parse(cluster.clone())
            .ok()
            .filter(|name| sessions.registry.has(name)),
        _ => None,
    };
    if let Some(cluster) = named {
        sessions.connections.refused(&cluster, line(error), peer);
    }
    tracing::warn!(
        peer = peer.map(tracing::field::display),
        error = error as &dyn std::error::Error,
        "Refused an agent."
    );
}

/// The next connection of a door; never, of one that is not there.
async fn accept(listener: Option<&TcpListener>) -> TcpStream {
    let Some(listener) = listener else {
        return std::future::pending().await;
    };
    loop {
        match listener.accept().await {
            Ok((socket, _)) => return socket,
            Err(error) => {
                tracing::warn!(%error, "Could not accept a connection.");
                sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}
