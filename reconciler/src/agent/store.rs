//! What an agent keeps over a restart, and what it asks of the place where it keeps it: a folder (`journal`), or Secrets
//! of its cluster (`secrets`).

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use render::describe::Description;
use render::{ClusterName, Digest};
use serde::{Deserialize, Serialize};

use super::journal::JournalError;
use crate::key_sets::{KeysKnown, Vouched};
use crate::wire::{Held, Intake};

/// What is kept.
#[derive(Clone, Debug, Default)]
pub struct Kept {
    /// The newest believed envelope.
    pub held: Option<Held>,
    /// The contents it names, those that are here.
    pub contents: BTreeMap<Digest, Arc<Description>>,
    /// For how long no hub was heard of.
    pub absence: Option<Absence>,
    /// Keys of hubs, as they told them.
    pub hub_keys: Vec<Vouched>,
    /// Since when each key of a hub that is believed is known; empty from agents that did not note it.
    pub hub_keys_known: KeysKnown,
}

/// For how long no hub was heard of, when it was written down.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Absence {
    /// Since when, in seconds since 1970.
    pub since: i64,
    /// How many seconds of that were counted: a clock that is set back takes none of them away.
    #[serde(default)]
    pub lasted: i64,
}

/// A place to keep it in. Whatever ends a process at whatever moment, what is read back is what was kept last, or what
/// was kept before that, and never a mixture; and what cannot be read is an error, never nothing.
pub trait Store: fmt::Debug + Send + Sync {
    /// Reads all of it. A content that is damaged is left out, since the hub can send it again.
    fn read(&self) -> BoxFuture<'_, Result<Kept, JournalError>>;

    /// Reads what another process may have kept here since this one read or wrote; `None` where none did.
    fn read_newer(&self) -> BoxFuture<'_, Result<Option<Kept>, JournalError>> {
        Box::pin(async { Ok(None) })
    }

    /// Waits until this process may write. Cancel-safe.
    fn ready(&self) -> BoxFuture<'_, ()> {
        Box::pin(async {})
    }

    /// Keeps this in place of what was kept before: contents first, then the envelope that names them; what nothing names
    /// any more goes last.
    fn write(&self, kept: Kept) -> BoxFuture<'_, Result<(), JournalError>>;
}

impl Kept {
    /// What an agent has taken.
    pub(super) fn of(intake: &Intake) -> Self {
        Self {
            held: intake.held().cloned(),
            contents: intake.contents().clone(),
            ..Self::default()
        }
    }

    /// The same as an agent takes it up again.
    pub fn intake(&self, cluster: ClusterName) -> Intake {
        let mut intake = Intake::new(cluster, self.held.clone());
        self.contents
            .values()
            .cloned()
            .for_each(|content| intake.trusted(content));
        intake
    }
}
