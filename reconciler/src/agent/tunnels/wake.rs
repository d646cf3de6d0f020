//! Why a line dials at once: somebody said so (SIGHUP), or this machine has another address on the way to the hub.

use std::net::{IpAddr, SocketAddr};

use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::time::sleep;
use tunnel::endpoint::addresses;

use crate::agent::own_address::own_address;
use crate::limits::ADDRESS_LOOK;

/// What a line listens to.
#[derive(Debug)]
pub(super) struct Wake {
    /// `None` where signals cannot be had.
    hang_up: Option<Signal>,
    /// What is dialled first; `None` for an address that nobody understands.
    stop: Option<(String, u16)>,
}

impl Wake {
    pub(super) fn new(stop: Option<(String, u16)>) -> Self {
        Self {
            hang_up: signal(SignalKind::hangup()).ok(),
            stop,
        }
    }

    /// While there is no tunnel: waits for a reason to dial before the time, and says which. Cancel-safe.
    pub(super) async fn before_the_time(&mut self) -> &'static str {
        let mut before = leaves_from(self.remote().await).await;
        loop {
            if self.is_told_within_a_look().await {
                return "SIGHUP";
            }
            let now = leaves_from(self.remote().await).await;
            // Without an address there is no network, and no use in dialling.
            if now.is_some() && now != before {
                return "another address of this machine";
            }
            before = now;
        }
    }

    /// While there is a tunnel: waits for a reason to have another one, and says which. Cancel-safe.
    pub(super) async fn instead(&mut self) -> &'static str {
        // Looked up once: names move by themselves, and a tunnel that stands has nothing to do with that.
        let remote = self.remote().await;
        let before = leaves_from(remote).await;
        loop {
            if self.is_told_within_a_look().await {
                return "SIGHUP";
            }
            let now = leaves_from(remote).await;
            if now.is_some() && now != before {
                return "another address of this machine";
            }
        }
    }

    async fn is_told_within_a_look(&mut self) -> bool {
        tokio::select! {
            biased;
            () = told(self.hang_up.as_mut()) => true,
            () = sleep(ADDRESS_LOOK) => false,
        }
    }

    async fn remote(&self) -> Option<SocketAddr> {
        let (host, port) = self.stop.as_ref()?;
        addresses(host, *port).await.ok()?.first().copied()
    }
}

async fn leaves_from(remote: Option<SocketAddr>) -> Option<IpAddr> {
    own_address(remote?).await
}

async fn told(hang_up: Option<&mut Signal>) {
    match hang_up {
        Some(signal) => {
            let _told = signal.recv().await;
        }
        None => std::future::pending().await,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_hub_that_nobody_knows_is_reached_from_nowhere() {
        let nowhere = Wake::new(Some(("no.such.host.invalid".to_owned(), 9)));
        assert_eq!(leaves_from(nowhere.remote().await).await, None);
    }
}
