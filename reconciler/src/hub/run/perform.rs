//! Does what the engine decided: each effect begins here, and its outcome is an event.

use std::collections::BTreeSet;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use render::{ClusterName, Digest};
use tracing::Instrument as _;

use super::turn::Hub;
use crate::hub::blocking::blocking;
use crate::hub::clock::seconds;
use crate::hub::engine::{Effect, Event, StateCommit, Write};
use crate::hub::git;
use crate::hub::keeper::chain;
use crate::limits::{RELEASES_PER_HOUSEKEEPING, WRITE_RETRY};
use crate::wire::Envelope;

impl Hub {
    /// Begins one effect. Nothing here waits.
    pub(super) fn perform(&self, effect: Effect) {
        match effect {
            Effect::LookAtSource => self.look_at_source.notify_one(),
            Effect::LookAtState => self.look_at_state.notify_one(),
            Effect::LookAgain => self.look_again(),
            Effect::Plan { .. } => self.plan(effect),
            Effect::Weigh { contents } => self.weigh(contents),
            Effect::Write(write) => self.write(write),
            Effect::Dispatch(cluster) => self.tell(&cluster),
            Effect::Disconnect(cluster) => self.dispatch.forget(&cluster),
            Effect::Register => {
                let state = self.state.read().unwrap_or_else(PoisonError::into_inner);
                if let Some(fleet) = &state.fleet {
                    let departed = state.departures();
                    self.registry.replace(fleet, &departed);
                    self.clusters.replace(fleet, &departed);
                }
            }
        }
    }

    /// Says which objects contents have.
    fn weigh(&self, contents: BTreeSet<Digest>) {
        let keeper = Arc::clone(&self.keeper);
        self.answer(move || {
            let holdings = contents.into_iter().map(|digest| {
                let found = keeper.holdings(None, &digest).map(Arc::new);
                (digest, found)
            });
            Event::Weighed {
                holdings: holdings.collect(),
            }
        });
    }

    /// Writes here, and where the refs are a remote's, pushes before it counts.
    fn write(&self, write: Write) {
        let keeper = Arc::clone(&self.keeper);
        let write = move || keeper.write(write, seconds());
        let Some(remote) = self.remote.clone().filter(|remote| remote.holds_state()) else {
            return self.answer(write);
        };
        let (source, events) = (Arc::clone(&self.source), self.events.clone());
        self.watch_over(async move {
            let event = remote.write(&source, &events, write).await;
            let _sent = events.send(event).await;
        });
    }

    /// Has a cluster told what it should have.
    fn tell(&self, cluster: &ClusterName) {
        let state = self.state.read().unwrap_or_else(PoisonError::into_inner);
        let keys = self.keys.borrow().clone();
        // The first one, which every agent knows.
        let sign = |bytes: &[u8]| keys.first().map(|key| key.sign(bytes).to_vec()).unwrap_or_default();
        let envelope = state.envelope(cluster).map(|envelope| Envelope {
            lineage_grant: state.lineage_grant(cluster, sign),
            ..envelope
        });
        self.dispatch.set(cluster, envelope);
    }

    /// Does blocking work whose outcome is an event.
    fn answer(&self, work: impl FnOnce() -> Event + Send + 'static) {
        let (events, refusals) = (self.events.clone(), Arc::clone(&self.refusals));
        self.watch_over(async move {
            let event = blocking(work).await;
            let rest = match &event {
                // Whoever moved the ref is given a moment, and whoever is to free the disk a longer one each time.
                Event::WriteRefused => WRITE_RETRY,
                Event::WriteFailed { .. } => refusals.lock().unwrap_or_else(PoisonError::into_inner).wait(),
                Event::Planned(_) | Event::PlanFailed { .. } | Event::Weighed { .. } => Duration::ZERO,
                _ => {
                    refusals.lock().unwrap_or_else(PoisonError::into_inner).reset();
                    Duration::ZERO
                }
            };
            if !rest.is_zero() {
                tokio::time::sleep(rest).await;
            }
            // The engine is gone only when the hub is ending.
            let _sent = events.send(event).await;
        });
    }

    /// Packs what commits left, once in a while. A copy of a remote is packed between two fetches.
    pub(super) fn housekeep_after(&self, released: &StateCommit) {
        if self.remote.as_ref().is_some_and(|remote| remote.holds_state()) {
            return;
        }
        let sequence = released.published.record.as_ref().and_then(|record| record.sequence);
        if sequence.is_none_or(|sequence| sequence % RELEASES_PER_HOUSEKEEPING != 0) {
            return;
        }
        let path = self.keeper.path().to_owned();
        let pack = async move {
            if let Err(error) = git::housekeep(&path).await {
                tracing::warn!(error = chain(&error), "Could not pack the state repository.");
            }
        };
        self.tasks.spawn(pack.instrument(tracing::info_span!("housekeep")));
    }
}
