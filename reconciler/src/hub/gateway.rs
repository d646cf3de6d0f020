//! The door that agents dial: connections in, proven tunnels out to `session`.

use std::sync::Arc;

use render::ClusterName;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tracing::Instrument as _;
use tunnel::AcceptOptions;

use super::session::Sessions;
use crate::limits::{ACCEPT_PAUSE, HANDSHAKES_MAX};

/// Accepts agents until shutdown, then waits for their sessions to end.
pub(super) async fn run(
    listener: TcpListener,
    options: AcceptOptions,
    sessions: Sessions,
    shutdown: CancellationToken,
) {
    let handshakes = Arc::new(Semaphore::new(HANDSHAKES_MAX));
    let options = Arc::new(options);
    let tasks = TaskTracker::new();
    loop {
        let accepted = tokio::select! {
            biased;
            () = shutdown.cancelled() => break,
            accepted = accept(&listener, &handshakes) => accepted,
        };
        let Some((socket, permit)) = accepted else { break };
        let (options, sessions, shutdown) = (Arc::clone(&options), sessions.clone(), shutdown.clone());
        let serve = async move {
            // Who is refused may be looked for by its address; a socket that is gone already has none.
            let peer = socket.peer_addr().ok();
            let tunnel = Box::pin(tunnel::accept(socket, &options)).await;
            drop(permit);
            match tunnel {
                Ok(tunnel) => match ClusterName::parse(tunnel.peer.cluster.clone()) {
                    Ok(cluster) => Box::pin(sessions.serve(cluster, tunnel, &shutdown)).await,
                    Err(error) => {
                        tracing::warn!(peer = peer.map(tracing::field::display), %error, "Refused an agent with a bad name.")
                    }
                },
                Err(error) => {
                    tracing::warn!(
                        peer = peer.map(tracing::field::display),
                        error = &error as &dyn std::error::Error,
                        "Refused an agent."
                    );
                }
            }
        };
        tasks.spawn(serve.instrument(tracing::info_span!("agent")));
    }
    tasks.close();
    tasks.wait().await;
}

async fn accept(
    listener: &TcpListener,
    handshakes: &Arc<Semaphore>,
) -> Option<(TcpStream, tokio::sync::OwnedSemaphorePermit)> {
    // The semaphore is never closed.
    let permit = Arc::clone(handshakes).acquire_owned().await.ok()?;
    loop {
        match listener.accept().await {
            Ok((socket, _)) => return Some((socket, permit)),
            Err(error) => {
                tracing::warn!(%error, "Could not accept a connection.");
                sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}
