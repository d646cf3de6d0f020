//! What else hangs on the lease: who may write only while this process holds it, and what is read anew when it was taken.

use std::fmt;

use futures_util::future::BoxFuture;
use tokio::sync::watch;

use super::lease::LeaseState;

/// Whether this process holds the applier's Lease. Clones tell of the same.
#[derive(Clone, Debug)]
pub struct Tenure(pub(super) watch::Sender<LeaseState>);

/// Something that whoever held the lease before may have changed.
pub trait Prepare: fmt::Debug + Send + Sync {
    /// Reads it anew, before anything is applied; why that does not work, in a sentence for people.
    fn prepare(&self) -> BoxFuture<'_, Result<(), String>>;
}

impl Default for Tenure {
    fn default() -> Self {
        Self(watch::Sender::new(LeaseState::Asking))
    }
}

impl Tenure {
    /// Whether this process may write now.
    pub fn is_held(&self) -> bool {
        self.0.borrow().is_held()
    }

    /// Waits until this process may write. Cancel-safe.
    pub async fn held(&self) {
        let mut state = self.0.subscribe();
        // The sender lives as long as this.
        let _held = state.wait_for(LeaseState::is_held).await;
    }
}
