//! A cluster on a socket, for kubectl and whoever else speaks HTTP.

use std::time::Duration;

use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use hyper_util::service::TowerToHyperService;
use std::sync::Arc;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tracing::Instrument as _;

use crate::cluster::ApiServer;
use crate::limits::{CONNECTIONS_MAX, DRAIN_TIMEOUT, HEADER_TIMEOUT};

impl ApiServer {
    /// Serves plain HTTP/1.1 and HTTP/2 until shutdown.
    pub async fn serve(&self, listener: TcpListener, shutdown: CancellationToken) {
        let callers = Arc::new(Semaphore::new(CONNECTIONS_MAX));
        let connections = TaskTracker::new();
        loop {
            let Ok(permit) = Arc::clone(&callers).acquire_owned().await else {
                break;
            };
            let accepted = tokio::select! {
                biased;
                () = shutdown.cancelled() => break,
                accepted = listener.accept() => accepted,
            };
            match accepted {
                Ok((stream, _)) => {
                    let conversation = converse(stream, self.clone(), shutdown.clone());
                    let conversation = async move {
                        conversation.await;
                        drop(permit);
                    };
                    connections.spawn(conversation.instrument(tracing::debug_span!("caller")));
                }
                Err(error) => {
                    tracing::warn!(%error, "Could not accept a caller.");
                    tokio::time::sleep(Duration::from_millis(100)).await;
                }
            }
        }
        connections.close();
        // Who has not read its answer by now does not get it.
        let _drained = tokio::time::timeout(DRAIN_TIMEOUT, connections.wait()).await;
    }
}

async fn converse(stream: TcpStream, server: ApiServer, shutdown: CancellationToken) {
    let mut http = auto::Builder::new(TokioExecutor::new());
    http.http1()
        .timer(TokioTimer::new())
        .header_read_timeout(HEADER_TIMEOUT);
    http.http2().timer(TokioTimer::new());
    let service = TowerToHyperService::new(server);
    let mut connection = std::pin::pin!(http.serve_connection(TokioIo::new(stream), service));
    let ended = tokio::select! {
        biased;
        () = shutdown.cancelled() => {
            connection.as_mut().graceful_shutdown();
            // A watch would go on until its own end.
            tokio::time::timeout(DRAIN_TIMEOUT, connection).await.unwrap_or(Ok(()))
        }
        ended = connection.as_mut() => ended,
    };
    if let Err(error) = ended {
        tracing::debug!(error, "A caller went away.");
    }
}
