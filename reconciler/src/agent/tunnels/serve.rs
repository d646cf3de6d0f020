//! One tunnel from its handshake to its end.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{oneshot, watch};
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tunnel::backoff::Outcome;
use tunnel::{GoAwayReason, Opener, PublicKey, TargetClass, Tunnel};

use super::Dialer;
use crate::agent::counts::Left;
use crate::agent::hub_keys;
use crate::agent::own_keys::{self, Which};
use crate::agent::reports::{self, Sources};
use crate::agent::streams::spawn;
use crate::key_wish::KeyStand;
use crate::limits::{DRAIN_TIMEOUT, REPLACED_DRAIN_TIMEOUT, REPORT_OPEN_TIMEOUT};

/// Serves a tunnel to its end, and says what that means for the next dial. A hub that wants to be left is told of by
/// `leave` before, with how long the tunnel had lived: then the next one may be dialled while the streams of this one end.
/// `stand` hears how the agent's keys stand, and `denies` which other hubs this one denies.
pub(super) async fn serve(
    dialer: &Dialer,
    tunnel: Tunnel,
    (used, stand, denies): (
        Which,
        watch::Sender<KeyStand>,
        impl Fn(BTreeSet<PublicKey>) + Send + 'static,
    ),
    leave: oneshot::Sender<(Outcome, Duration)>,
    shutdown: &CancellationToken,
) -> Outcome {
    let born = Instant::now();
    let Tunnel {
        peer,
        opener,
        mut incoming,
        session,
        hub_time: _,
    } = tunnel;
    let tasks = TaskTracker::new();
    // Everything of this session ends with it.
    let ended = shutdown.child_token();
    let _end = ended.clone().drop_guard();
    let silent = CancellationToken::new();
    let keys = hub_keys::ask(Arc::clone(&dialer.holdings), opener.clone(), denies);
    spawn(&tasks, &ended, keys, "keys");
    let which = (dialer.cluster.clone(), used);
    let wish = own_keys::wish(dialer.keys.clone(), which, (opener.clone(), peer), stand);
    spawn(&tasks, &ended, wish, "wish");
    spawn(&tasks, &ended, report(dialer, opener, silent.clone()), "report");
    let mut leave = Some(leave);
    // Until then the streams of a tunnel that is left may go on.
    let mut deadline = None;
    loop {
        let open = tokio::select! {
            biased;
            () = shutdown.cancelled() => return Outcome::Lived(born.elapsed()),
            reason = session.closed() => {
                tracing::info!(%reason, "Lost connection to hub.");
                if leave.is_some() {
                    dialer.counts.left(Left::from(&reason));
                }
                return reason.outcome(born.elapsed());
            }
            away = session.draining(), if leave.is_some() => {
                tracing::info!(reason = %away.reason, "Hub asked to reconnect.");
                dialer.counts.left(Left::Asked);
                let outcome = Outcome::told_by(&away).unwrap_or_else(|| Outcome::Lived(born.elapsed()));
                // Nobody listens where this tunnel was left already.
                let _told = leave.take().map(|leave| leave.send((outcome, born.elapsed())));
                let drain = match away.reason {
                    GoAwayReason::Replaced => REPLACED_DRAIN_TIMEOUT,
                    _ => DRAIN_TIMEOUT,
                };
                deadline = Some(born.elapsed() + drain);
                continue;
            }
            () = until(deadline.map(|deadline| born + deadline)) => return Outcome::Lived(born.elapsed()),
            // A hub that hears nothing would show old news; a new session begins with a whole report.
            () = silent.cancelled(), if leave.is_some() => return Outcome::Lived(born.elapsed()),
            open = incoming.next() => open,
        };
        match open {
            Some(open) => dialer.streams.opened(open, &tasks, &ended),
            None => return Outcome::Lived(born.elapsed()),
        }
    }
}

/// Reports until the stream ends, and says when that is.
fn report(dialer: &Dialer, opener: Opener, silent: CancellationToken) -> impl Future<Output = ()> + Send + 'static {
    let sources = Sources {
        cluster: dialer.cluster.clone(),
        desired: dialer.holdings.desired(),
        refused: dialer.holdings.refused(),
        applied: dialer.applied.clone(),
        presence: dialer.keeper.presence(),
        kept: dialer.holdings.kept(),
        counts: dialer.counts.told(),
        counts_due: Instant::now(),
    };
    async move {
        let _silent_when_dropped = silent.drop_guard();
        match opener.open(TargetClass::Report, "", REPORT_OPEN_TIMEOUT).await {
            Ok(stream) => {
                if let Err(error) = reports::send(sources, stream).await {
                    tracing::debug!(error = &error as &dyn std::error::Error, "Lost report stream.");
                }
            }
            Err(error) => tracing::warn!(%error, "Hub took no report stream."),
        }
    }
}

async fn until(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => sleep_until(deadline).await,
        None => std::future::pending().await,
    }
}
