//! One tunnel after another: dial, serve what the hub opens, dial again.

use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use render::ClusterName;
use tokio::sync::watch;
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tunnel::backoff::{Backoff, Outcome};
use tunnel::{
    Allowance, ConnectError, ConnectOptions, GoAwayReason, HandshakeError, PublicKey, SecretKey, TargetClass, Token,
    Tunnel,
};

use super::deliver::Holdings;
use super::presence::Keeper;
use super::reports::{self, Sources};
use super::streams::{Streams, spawn};
use crate::apply::ApplyReport;
use crate::limits::REPORT_OPEN_TIMEOUT;

/// What every session of this agent has in common.
pub(super) struct Dialer {
    pub(super) cluster: ClusterName,
    pub(super) url: String,
    pub(super) hub_keys: Vec<PublicKey>,
    pub(super) key: Arc<SecretKey>,
    pub(super) allowance: Allowance,
    /// What the hub's streams go to.
    pub(super) streams: Streams,
    pub(super) holdings: Arc<Holdings>,
    pub(super) applied: watch::Receiver<ApplyReport>,
    pub(super) keeper: Arc<Keeper>,
    /// Which process of the cluster's agents this is.
    pub(super) instance: String,
    /// A bootstrap token; mostly none.
    pub(super) token: Token,
}

impl Dialer {
    /// Keeps a tunnel until shutdown.
    pub(super) async fn run(self: Arc<Self>, shutdown: CancellationToken) {
        let mut backoff = Backoff::default();
        loop {
            let outcome = tokio::select! {
                biased;
                () = shutdown.cancelled() => return,
                outcome = self.session(&shutdown) => outcome,
            };
            self.keeper.lost();
            let held = self
                .holdings
                .desired()
                .borrow()
                .as_ref()
                .map(|desired| desired.held.sequence);
            self.keeper.tell(held);
            let (next, wait) = backoff.after(outcome, tunnel::backoff::random());
            backoff = next;
            let (wait_ms, attempt) = (wait.as_millis(), backoff.failures());
            if outcome == Outcome::Refused {
                // Longer than anybody expects who has just pushed the cluster's file.
                tracing::info!(wait_ms, attempt, "Put off the next dial.");
            } else {
                tracing::debug!(wait_ms, attempt, "Put off the next dial.");
            }
            tokio::select! {
                biased;
                () = shutdown.cancelled() => return,
                () = sleep(wait) => {}
            }
        }
    }

    async fn session(&self, shutdown: &CancellationToken) -> Outcome {
        let cluster = self.cluster.to_string();
        let options = ConnectOptions::new(
            self.url.clone(),
            self.hub_keys.clone(),
            cluster,
            Arc::clone(&self.key),
            epoch(),
        );
        let options = ConnectOptions {
            allowance: self.allowance.clone(),
            instance: self.instance.clone(),
            token: self.token.clone(),
            ..options
        };
        match tunnel::connect(&options).await {
            Ok(tunnel) => {
                tracing::info!(peer = %self.url, "Connected to hub.");
                self.keeper.connected();
                self.serve(tunnel, shutdown).await
            }
            Err(error) => {
                self.tell(&error);
                error.outcome()
            }
        }
    }

    fn tell(&self, error: &ConnectError) {
        // Whoever is told more needs no advice beside it.
        let is_unknown = matches!(error, ConnectError::Handshake(HandshakeError::Refused(away))
            if away.reason == GoAwayReason::IdentityRefused && away.text == tunnel::NOT_REGISTERED);
        let error = error as &dyn std::error::Error;
        tracing::warn!(peer = %self.url, error, "Could not connect to hub.");
        if is_unknown {
            // What only a commit can change; docs/register-a-cluster.md quotes this line.
            tracing::warn!(
                cluster = %self.cluster,
                "The hub does not know this cluster with this key. Push its file, as flotilla agent join prints it, to clusters/ of the fleet repository."
            );
        }
    }

    /// Serves one tunnel to its end, and says what that means for the next.
    async fn serve(&self, tunnel: Tunnel, shutdown: &CancellationToken) -> Outcome {
        let born = Instant::now();
        let Tunnel {
            opener,
            mut incoming,
            session,
            ..
        } = tunnel;
        let tasks = TaskTracker::new();
        // Everything of this session ends with it.
        let ended = shutdown.child_token();
        let _end = ended.clone().drop_guard();
        let sources = Sources {
            cluster: self.cluster.clone(),
            desired: self.holdings.desired(),
            refused: self.holdings.refused(),
            applied: self.applied.clone(),
            presence: self.keeper.presence(),
        };
        let silent = CancellationToken::new();
        let reported = silent.clone();
        let report = async move {
            let _silent_when_dropped = reported.drop_guard();
            match opener.open(TargetClass::Report, "", REPORT_OPEN_TIMEOUT).await {
                Ok(stream) => {
                    if let Err(error) = reports::send(sources, stream).await {
                        tracing::debug!(error = &error as &dyn std::error::Error, "Lost report stream.");
                    }
                }
                Err(error) => tracing::warn!(%error, "Hub took no report stream."),
            }
        };
        spawn(&tasks, &ended, report, "report");
        loop {
            let open = tokio::select! {
                biased;
                () = shutdown.cancelled() => return Outcome::Lived(born.elapsed()),
                reason = session.closed() => {
                    tracing::info!(%reason, "Lost connection to hub.");
                    return reason.outcome(born.elapsed());
                }
                // A hub that drains is left at once, so that another one takes over.
                away = session.draining() => {
                    tracing::info!(reason = %away.reason, "Hub asked to reconnect.");
                    return Outcome::told_by(&away).unwrap_or_else(|| Outcome::Lived(born.elapsed()));
                }
                // A hub that hears nothing would show old news; a new session begins with a whole report.
                () = silent.cancelled() => return Outcome::Lived(born.elapsed()),
                open = incoming.next() => open,
            };
            match open {
                Some(open) => self.streams.opened(open, &tasks, &ended),
                None => return Outcome::Lived(born.elapsed()),
            }
        }
    }
}

/// A number that is higher in each later session of this cluster: milliseconds since 1970. A clock that
/// was put back makes the hub prefer the older session until that one is seen dead.
fn epoch() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(now.as_millis()).unwrap_or(u64::MAX)
}
