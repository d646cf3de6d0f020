//! How often an applier put right what others changed, over all its sessions.

use std::sync::Arc;

use tokio::sync::watch;

use crate::wire::Corrections;

/// The count; its copies are one.
#[derive(Clone, Debug, Default)]
pub(in crate::apply) struct Tally(Arc<watch::Sender<Corrections>>);

impl Tally {
    /// Adds to it.
    pub(in crate::apply) fn add(&self, more: &Corrections) {
        self.0.send_modify(|sum| *sum = sum.and(*more));
    }

    /// All of it.
    pub(in crate::apply) fn sum(&self) -> Corrections {
        *self.0.borrow()
    }
}
