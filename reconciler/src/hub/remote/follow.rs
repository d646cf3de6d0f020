//! When the remote is asked: at every poll, and at once when somebody says so.

use std::sync::{Arc, PoisonError};
use std::time::Duration;

use tokio::sync::{mpsc, watch};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::remote_copy::{Remote, tell};
use crate::apply::Backoff;
use crate::hub::SharedState;
use crate::hub::engine::{Event, RemoteSeen};
use crate::hub::source::{Look, Source, WatchState};
use crate::limits::{REMOTE_GAP, REMOTE_RETRY_MAX};
use crate::telemetry::elapsed_ms;

impl Remote {
    /// Asks again and again until `shutdown`, and says "look" after each answer. Polls of many hubs drift apart;
    /// failures are asked about less and less often.
    pub(crate) async fn follow(
        self: Arc<Self>,
        source: Arc<Source>,
        state: SharedState,
        events: mpsc::Sender<Event>,
        looks: watch::Sender<Look>,
        poll: Duration,
        shutdown: CancellationToken,
    ) {
        let mut polls = Backoff::new(poll, poll);
        let mut retries = Backoff::new(poll.min(REMOTE_RETRY_MAX), REMOTE_RETRY_MAX);
        let mut told: Option<String> = None;
        let mut next = Duration::ZERO;
        loop {
            // Each arm only waits, so that a dropped one loses nothing: `Notify` keeps its permit.
            tokio::select! {
                biased;
                () = shutdown.cancelled() => return,
                () = self.wake.notified() => {}
                () = tokio::time::sleep(next) => {}
            }
            let accepted = state
                .read()
                .unwrap_or_else(PoisonError::into_inner)
                .accepted_or_published();
            let started = Instant::now();
            let refreshed = tokio::select! {
                biased;
                () = shutdown.cancelled() => return,
                refreshed = self.refresh(&source, accepted) => refreshed,
            };
            match refreshed {
                Ok(()) => {
                    tracing::debug!(component = %self.url(), elapsed_ms = elapsed_ms(started), "Asked the remote.");
                    retries.reset();
                    next = polls.wait();
                    told = None;
                    tell(&events, RemoteSeen::Reached(None)).await;
                    looks.send_modify(|look| {
                        look.count += 1;
                        look.state = WatchState::Watching;
                    });
                }
                Err(failure) => {
                    next = retries.wait();
                    if told.as_ref() != Some(&failure.message) {
                        tracing::warn!(component = %self.url(), error = failure.message, "Could not fetch.");
                        told = Some(failure.message.clone());
                    }
                    tell(&events, RemoteSeen::Reached(Some(failure.into()))).await;
                }
            }
            // A storm of webhooks is one question per moment.
            tokio::select! {
                biased;
                () = shutdown.cancelled() => return,
                () = tokio::time::sleep(REMOTE_GAP) => {}
            }
        }
    }
}
