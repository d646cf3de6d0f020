//! What the agent holds: envelopes and contents in, what is to be applied out. `stream` hears and answers its hub.

mod stream;

use std::fmt;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use jiff::Timestamp;
use render::describe::Description;
use render::model::SyncMode;
use render::{ClusterName, Digest, Revision};
use tokio::sync::{Mutex, watch};
use tokio_util::task::AbortOnDropHandle;
use tracing::Instrument as _;

use super::journal::JournalError;
use super::record::record;
use super::store::{Absence, Kept, Store};
use crate::apply::{Desired, Prepare};
use crate::computing::computing;
use crate::key_sets::{self, HubKeysError, KeySet, Vouched};
use crate::wire::{Accepted, Envelope, Held, Intake, Refusal};

pub use stream::{DeliverError, serve};

/// What the agent holds, shared by the sessions that follow one another.
pub struct Holdings {
    shared: Arc<Shared>,
    _recording: AbortOnDropHandle<()>,
}

impl fmt::Debug for Holdings {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Holdings").finish_non_exhaustive()
    }
}

impl Prepare for Holdings {
    fn prepare(&self) -> BoxFuture<'_, Result<(), String>> {
        Box::pin(async {
            self.shared
                .read_newer()
                .await
                .map_err(|error| crate::fault::line(&error))
        })
    }
}

/// The same, shared with who records it.
pub(super) struct Shared {
    cluster: ClusterName,
    taken: Mutex<Taken>,
    pub(super) store: Arc<dyn Store>,
    /// Keys of hubs that a person gave; those that it was told are in `kept`.
    hub_keys: Vec<tunnel::PublicKey>,
    desired: watch::Sender<Option<Arc<Desired>>>,
    mode: watch::Sender<SyncMode>,
    refused: watch::Sender<Option<(u64, Refusal)>>,
    kept: watch::Sender<Arc<Kept>>,
    /// The newest envelope that stands in the journal, with its contents.
    pub(super) recorded: watch::Sender<Option<Mark>>,
    /// The keys of hubs that stand there.
    pub(super) recorded_keys: watch::Sender<Vec<Vouched>>,
}

/// An envelope, told from all others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Mark {
    lineage: Revision,
    sequence: u64,
    /// One envelope may be told again in another mode.
    pub(super) mode: SyncMode,
    mode_source: Option<Revision>,
}

impl Mark {
    /// The mark of what is held.
    pub(super) fn of(held: &Held) -> Self {
        Self {
            lineage: held.lineage.clone(),
            sequence: held.sequence,
            mode: held.mode,
            mode_source: held.mode_source.clone(),
        }
    }
}

/// What was taken, and whether the applier was told of all of it.
struct Taken {
    intake: Intake,
    /// Something new waits for the rest of the contents: one pass with all of them is better than one without them and
    /// another with them. Where one does not come, the others are not kept waiting for it.
    waits: bool,
    /// Whether a hub said what is held since the journal was read.
    was_told: bool,
    /// The commit whose mode was left last, of which the log has said so.
    left: Option<Revision>,
}

impl Holdings {
    /// Starts with what was kept, and keeps what follows; `notes` says for how long there is no hub.
    pub fn new(
        cluster: ClusterName,
        kept: Kept,
        store: Arc<dyn Store>,
        hub_keys: Vec<tunnel::PublicKey>,
        notes: watch::Receiver<Option<Absence>>,
    ) -> Self {
        // What other keys than these vouched for counts no more.
        let mut kept = kept;
        kept.hub_keys = key_sets::taken_up(&hub_keys, kept.hub_keys);
        let is_noted = note_keys(&mut kept, &hub_keys);
        let intake = kept.intake(cluster.clone());
        let mark = kept.held.as_ref().map(Mark::of);
        let shared = Arc::new(Shared {
            cluster,
            desired: watch::Sender::new(intake.desired().map(Arc::new)),
            mode: watch::Sender::new(intake.mode()),
            taken: Mutex::new(Taken {
                intake,
                waits: false,
                was_told: false,
                left: None,
            }),
            store,
            hub_keys,
            refused: watch::Sender::new(None),
            recorded_keys: watch::Sender::new(kept.hub_keys.clone()),
            kept: watch::Sender::new(Arc::new(kept)),
            recorded: watch::Sender::new(mark),
        });
        let recording = record(Arc::clone(&shared), notes, is_noted).instrument(tracing::info_span!("journal"));
        Self {
            _recording: AbortOnDropHandle::new(tokio::spawn(recording)),
            shared,
        }
    }

    /// What should be in the cluster, newest first.
    pub fn desired(&self) -> watch::Receiver<Option<Arc<Desired>>> {
        self.shared.desired.subscribe()
    }

    /// Who applies, and what the hub may reach, as was told last.
    pub(super) fn mode(&self) -> watch::Receiver<SyncMode> {
        self.shared.mode.subscribe()
    }

    /// The keys of hubs that are believed now.
    pub(super) fn hub_keys(&self) -> Vec<tunnel::PublicKey> {
        self.shared.hub_keys()
    }

    /// Believes what a hub proved of its keys, if one of them is known, and waits until that stands in the journal.
    pub(super) async fn take_hub_keys(&self, told: KeySet) -> Result<(), HubKeysError> {
        let believed = self.shared.take_hub_keys(told).await?;
        let mut recorded = self.shared.recorded_keys.subscribe();
        // Whoever records ends with the agent.
        let _recorded = recorded.wait_for(|recorded| *recorded == believed).await;
        Ok(())
    }

    /// The newest envelope that stands in the journal.
    pub(super) fn recorded(&self) -> watch::Receiver<Option<Mark>> {
        self.shared.recorded.subscribe()
    }

    /// All that is to stand there.
    pub(super) fn kept(&self) -> watch::Receiver<Arc<Kept>> {
        self.shared.kept()
    }

    /// The envelope that was refused last, unless one was taken since.
    pub(super) fn refused(&self) -> watch::Receiver<Option<(u64, Refusal)>> {
        self.shared.refused.subscribe()
    }
}

impl Shared {
    pub(super) fn kept(&self) -> watch::Receiver<Arc<Kept>> {
        self.kept.subscribe()
    }

    fn hub_keys(&self) -> Vec<tunnel::PublicKey> {
        key_sets::all(&self.hub_keys, &self.kept.borrow().hub_keys)
    }

    async fn take_hub_keys(&self, told: KeySet) -> Result<Vec<Vouched>, HubKeysError> {
        // Whoever has this publishes what is kept.
        let _taken = self.taken.lock().await;
        let before = self.kept.borrow().hub_keys.clone();
        let believed = key_sets::believe(&self.hub_keys, &before, told)?;
        if believed != before {
            self.kept.send_modify(|kept| {
                let kept = Arc::make_mut(kept);
                kept.hub_keys.clone_from(&believed);
                note_keys(kept, &self.hub_keys);
            });
            tracing::info!(keys = self.hub_keys().len(), "Took the hub's keys.");
        }
        Ok(believed)
    }

    /// Takes over what another agent of this cluster kept since this one read or wrote, where that is newer.
    pub(super) async fn read_newer(&self) -> Result<(), JournalError> {
        let mut taken = self.taken.lock().await;
        let Some(kept) = self.store.read_newer().await? else {
            return Ok(());
        };
        let found = key_sets::taken_up(&self.hub_keys, kept.hub_keys.clone());
        self.kept.send_if_modified(|own| {
            let mut merged = Kept::clone(own);
            merged.hub_keys = key_sets::merge(&found, &own.hub_keys);
            merged.hub_keys_known = own.hub_keys_known.and(&kept.hub_keys_known);
            note_keys(&mut merged, &self.hub_keys);
            let changes = merged.hub_keys != own.hub_keys || merged.hub_keys_known != own.hub_keys_known;
            if changes {
                *own = Arc::new(merged);
            }
            changes
        });
        let own = taken.intake.held();
        let is_newer = match (own, &kept.held) {
            (_, None) => false,
            (None, Some(_)) => true,
            // A hub that speaks now knows of its lineages; without one, who wrote last does.
            (Some(own), Some(found)) if own.lineage != found.lineage => !taken.was_told,
            // A mode is told without a new sequence, and only who was told it knows which is the newer one.
            (Some(own), Some(found)) if own.sequence == found.sequence => {
                own.mode_source != found.mode_source && !taken.was_told
            }
            (Some(own), Some(found)) => own.sequence < found.sequence,
        };
        if is_newer {
            let sequence = kept.held.as_ref().map(|held| held.sequence);
            tracing::info!(sequence, "Took over what another agent of this cluster had taken.");
            taken.intake = kept.intake(self.cluster.clone());
            taken.waits = true;
            taken.was_told = false;
            self.publish(&mut taken);
            self.tell_mode(&taken);
        }
        Ok(())
    }

    /// Takes an envelope when it is believed, and starts applying it.
    /// What is held then may differ from it in the mode.
    async fn take(&self, envelope: &Envelope) -> Result<Option<Mark>, Refusal> {
        let verify = |bytes: &[u8], signature: &[u8]| self.hub_keys().iter().any(|key| key.verifies(bytes, signature));
        let sequence = envelope.sequence;
        let mut taken = self.taken.lock().await;
        let before = taken.intake.held().map(Mark::of);
        let accepted = taken.intake.envelope(envelope, verify);
        // An older mode than what is held, which it may say as well, is no word for what is held.
        let is_held = |held: &Held| held.mode_source == envelope.mode_source;
        taken.was_told |= accepted.is_ok() && taken.intake.held().is_some_and(is_held);
        match &accepted {
            Err(refusal) => {
                tracing::warn!(sequence, error = %refusal, "Refused envelope.");
                self.refused.send_replace(Some((sequence, refusal.clone())));
            }
            Ok(Accepted::Same) if taken.intake.held().map(Mark::of) != before => {
                taken.waits = true;
                self.publish(&mut taken);
            }
            Ok(Accepted::Same) => {}
            Ok(Accepted::New) => {
                tracing::info!(sequence, units = envelope.units.len(), "Took envelope.");
                self.refused.send_replace(None);
                taken.waits = true;
                taken.was_told = true;
                self.publish_if_complete(&mut taken);
            }
        }
        self.keep_mode(&taken);
        self.tell_mode(&taken);
        let mark = taken.intake.held().map(Mark::of);
        if accepted.is_ok() && mark.as_ref().is_some_and(|mark| mark.mode != envelope.mode) {
            const LEFT: &str = "Left the sync mode as it is: what was told does not come after it.";
            // Each envelope of a hub that lags says it again.
            if std::mem::replace(&mut taken.left, envelope.mode_source.clone()) == envelope.mode_source {
                tracing::debug!(sequence, told = ?envelope.mode, "{LEFT}");
            } else {
                tracing::info!(sequence, told = ?envelope.mode, "{LEFT}");
            }
        }
        accepted.map(|_| mark)
    }

    /// A mode does not wait for contents, neither at the gate nor in the journal: an agent that ends before they come starts
    /// again in the mode that it was told, with the list that it had. One that had none starts as any agent does that was told
    /// nothing yet.
    fn keep_mode(&self, taken: &Taken) {
        let Some(told) = taken.intake.held() else { return };
        self.kept.send_if_modified(|kept| {
            let is_other = |held: &&Held| (held.mode, &held.mode_source) != (told.mode, &told.mode_source);
            let Some(held) = kept.held.as_ref().filter(is_other) else {
                return false;
            };
            let held = Held {
                mode: told.mode,
                mode_source: told.mode_source.clone(),
                ..held.clone()
            };
            Arc::make_mut(kept).held = Some(held);
            true
        });
    }

    fn tell_mode(&self, taken: &Taken) {
        let mode = taken.intake.mode();
        let changed = self.mode.send_if_modified(|told| std::mem::replace(told, mode) != mode);
        if changed {
            tracing::info!(?mode, "Took sync mode.");
        }
    }

    async fn missing(&self) -> Vec<Digest> {
        self.taken.lock().await.intake.missing()
    }

    async fn content(&self, digest: Digest, bytes: Vec<u8>) {
        if !self.missing().await.contains(&digest) {
            return;
        }
        let checked = computing(move || Description::from_json(&bytes, digest)).await;
        let mut taken = self.taken.lock().await;
        // Another stream may have brought it, or something newer, meanwhile.
        if !taken.intake.missing().contains(&digest) {
            return;
        }
        match checked {
            Ok(content) => taken.intake.trusted(Arc::new(content)),
            Err(error) => {
                tracing::warn!(%digest, error = &error as &dyn std::error::Error, "Refused content.");
                return self.publish(&mut taken);
            }
        }
        // Also where the applier was told already, since another content did not come as it should.
        taken.waits = true;
        self.publish_if_complete(&mut taken);
    }

    /// Tells the applier of what is here, when an envelope waits for contents that will not come.
    async fn wait_no_longer(&self) {
        self.publish(&mut *self.taken.lock().await);
    }

    fn publish_if_complete(&self, taken: &mut Taken) {
        if taken.intake.missing().is_empty() {
            taken.intake.drop_unwanted();
            self.publish(taken);
        }
    }

    /// Applied while it is journalled: a crash in between costs a repeated delivery, no more.
    fn publish(&self, taken: &mut Taken) {
        if std::mem::take(&mut taken.waits) {
            self.desired.send_replace(taken.intake.desired().map(Arc::new));
            self.kept.send_modify(|kept| {
                let next = Kept {
                    hub_keys: kept.hub_keys.clone(),
                    hub_keys_known: kept.hub_keys_known.clone(),
                    ..Kept::of(&taken.intake)
                };
                *kept = Arc::new(next);
            });
        }
    }
}

/// Notes since when the keys of hubs are known that are believed now, and says whether that is another note; `given` are those
/// that a person gave.
fn note_keys(kept: &mut Kept, given: &[tunnel::PublicKey]) -> bool {
    let believed = key_sets::all(given, &kept.hub_keys);
    let known = kept.hub_keys_known.now_that(&believed, Timestamp::now().as_second());
    let is_other = known != kept.hub_keys_known;
    kept.hub_keys_known = known;
    is_other
}

#[cfg(test)]
mod tests;
