//! Whether each other hub has told once who is connected to it, or could not be reached once.
//!
//! Until then this hub would answer for half of the fleet, and tell its agents of half of the hubs.

use std::collections::BTreeSet;

use tokio::sync::watch;

/// The hubs that are waited for.
#[derive(Debug, Default)]
pub(in crate::hub) struct FirstWords(watch::Sender<BTreeSet<String>>);

impl FirstWords {
    /// Of these hubs, by address.
    pub(in crate::hub) fn of(peers: impl IntoIterator<Item = String>) -> Self {
        Self(watch::Sender::new(peers.into_iter().collect()))
    }

    /// A hub told, or could not be reached. Nobody waits for it any more, whatever comes after.
    pub(in crate::hub) fn tried(&self, peer: &str) {
        self.0.send_if_modified(|awaited| awaited.remove(peer));
    }

    /// Whether nobody is waited for.
    pub(in crate::hub) fn are_over(&self) -> bool {
        self.0.borrow().is_empty()
    }

    /// Waits until nobody is.
    pub(in crate::hub) async fn over(&self) {
        // The sender is here as long as somebody waits.
        let mut awaited = self.0.subscribe();
        let _over = awaited.wait_for(BTreeSet::is_empty).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn every_other_hub_is_waited_for_once() {
        assert!(FirstWords::default().are_over(), "there is no other hub");
        let words = FirstWords::of(["b".to_owned(), "c".to_owned()]);
        words.tried("b");
        words.tried("b");
        assert!(!words.are_over());
        let (_, ()) = tokio::join!(words.over(), async { words.tried("c") });
        assert!(words.are_over());
    }
}
