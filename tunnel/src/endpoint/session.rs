//! The life of a tunnel: how it is ended, and how one learns that it is over.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;

use crate::frame::{GoAway, GoAwayReason};
use crate::shared::{CloseReason, Shared};

/// Keeps a tunnel alive; dropping it closes the tunnel and fails its streams.
pub struct Session {
    shared: Arc<Shared>,
}

impl Session {
    pub(super) fn new(shared: Arc<Shared>) -> Self {
        Self { shared }
    }

    /// Tells the peer that no new streams are taken, and why; those that are open go on.
    pub fn go_away(&self, away: GoAway) {
        self.shared.act(|mux| mux.go_away(away));
    }

    /// Ends the tunnel now, telling the peer why if it still listens. `closed` tells when it is over.
    pub fn close(&self, away: GoAway) {
        self.shared.stop(away);
    }

    /// Waits until the tunnel is over, and says why. Cancel-safe, and may be asked again.
    pub async fn closed(&self) -> CloseReason {
        some(self.shared.closed()).await
    }

    /// Waits until the peer wants no new streams. Cancel-safe; never ends if the tunnel just breaks.
    pub async fn draining(&self) -> GoAway {
        some(self.shared.draining()).await
    }

    /// Round-trip time of the last answered ping; `None` while traffic makes pings needless.
    #[must_use]
    pub fn rtt(&self) -> Option<Duration> {
        self.shared.rtt()
    }

    /// Streams that are open or being opened.
    #[must_use]
    pub fn streams(&self) -> usize {
        self.shared.streams()
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.shared.stop(GoAway::new(GoAwayReason::Shutdown, ""));
    }
}

/// The sender lives in the same `Shared` that the caller holds, so the channel cannot end first.
async fn some<T: Clone>(mut receiver: watch::Receiver<Option<T>>) -> T {
    loop {
        if let Some(value) = receiver.borrow_and_update().clone() {
            return value;
        }
        if receiver.changed().await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}
