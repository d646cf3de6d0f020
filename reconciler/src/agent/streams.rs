//! Streams that the hub opens: each class goes to the one place that serves it, and what is not served is refused.

use std::sync::Arc;

use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tracing::Instrument as _;
use tunnel::{IncomingOpen, TargetClass};

use super::deliver::{self, Holdings};
use super::gate::Gate;

/// What the hub's streams go to.
pub(super) struct Streams {
    /// What is lent of the cluster.
    pub(super) gate: Arc<Gate>,
    pub(super) holdings: Arc<Holdings>,
}

impl Streams {
    /// Serves a stream in a task of its own, which ends with its session, or refuses it.
    pub(super) fn opened(&self, opened: IncomingOpen, tasks: &TaskTracker, ended: &CancellationToken) {
        let IncomingOpen { open, responder } = opened;
        match open.class {
            TargetClass::Deliver => {
                let Ok(stream) = responder.accept() else { return };
                let holdings = Arc::clone(&self.holdings);
                let serve = async move {
                    if let Err(error) = deliver::serve(&holdings, stream).await {
                        let error_told = &error as &dyn std::error::Error;
                        // With a tunnel its streams end, and why is said once, for the tunnel.
                        if error.is_stream() {
                            tracing::debug!(error = error_told, "Lost deliver stream.");
                        } else {
                            tracing::warn!(error = error_told, "Lost deliver stream.");
                        }
                    }
                };
                spawn(tasks, ended, serve, "deliver");
            }
            // What is no agent's to answer is refused there, and leaves a line as well.
            TargetClass::ApiServer
            | TargetClass::Interactive
            | TargetClass::Push
            | TargetClass::Dial
            | TargetClass::Look
            | TargetClass::Report
            | TargetClass::Keys
            | TargetClass::Peer
            | TargetClass::Unknown(_) => {
                let (gate, ended) = (Arc::clone(&self.gate), ended.clone());
                let class = open.class.as_str().to_owned();
                let serve = async move { gate.open(IncomingOpen { open, responder }, &ended).await };
                // It ends by itself with its session, and then writes its line.
                tasks.spawn(serve.instrument(tracing::info_span!("stream", class)));
            }
        }
    }
}

/// Runs `work` until it is done or its session ended.
pub(super) fn spawn(
    tasks: &TaskTracker,
    ended: &CancellationToken,
    work: impl Future<Output = ()> + Send + 'static,
    name: &'static str,
) {
    let ended = ended.clone();
    let until = async move {
        tokio::select! {
            biased;
            () = ended.cancelled() => {}
            () = work => {}
        }
    };
    tasks.spawn(until.instrument(tracing::info_span!("stream", class = name)));
}
