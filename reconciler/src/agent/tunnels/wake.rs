//! Why a line dials at once: somebody said so (SIGHUP), or this machine has another address on the way to the hub.

use std::net::{IpAddr, SocketAddr};

use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;
use tokio::time::sleep;
use tracing::Instrument as _;
use tunnel::endpoint::addresses;

use crate::agent::own_address::own_address;
use crate::limits::ADDRESS_LOOK;

/// How often somebody said that an agent shall dial anew.
pub(in crate::agent) type HangUps = watch::Receiver<u32>;

/// Counts SIGHUPs of this process, for as long as somebody listens; none where signals cannot be had.
pub(in crate::agent) fn hang_ups() -> HangUps {
    let (count, counted) = watch::channel(0_u32);
    if let Ok(mut signals) = signal(SignalKind::hangup()) {
        let counting = async move {
            loop {
                tokio::select! {
                    biased;
                    () = count.closed() => return,
                    Some(()) = signals.recv() => count.send_modify(|count| *count = count.wrapping_add(1)),
                }
            }
        };
        tokio::spawn(counting.instrument(tracing::info_span!("signals")));
    }
    counted
}

/// What a line listens to.
#[derive(Debug)]
pub(super) struct Wake {
    hang_ups: HangUps,
    /// What is dialled first; `None` for an address that nobody understands.
    stop: Option<(String, u16)>,
}

impl Wake {
    pub(super) fn new(hang_ups: HangUps, stop: Option<(String, u16)>) -> Self {
        Self { hang_ups, stop }
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
            () = told(&mut self.hang_ups) => true,
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

async fn told(hang_ups: &mut HangUps) {
    if hang_ups.changed().await.is_err() {
        std::future::pending::<()>().await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_hub_that_nobody_knows_is_reached_from_nowhere() {
        let nowhere = Wake::new(watch::channel(0).1, Some(("no.such.host.invalid".to_owned(), 9)));
        assert_eq!(leaves_from(nowhere.remote().await).await, None);
    }

    #[tokio::test]
    async fn a_sighup_wakes_whoever_waits_for_a_dial() {
        let mut wake = Wake::new(hang_ups(), None);
        let pid = std::process::id().to_string();
        let sent = std::process::Command::new("kill").args(["-HUP", &pid]).status();
        assert!(sent.expect("kill runs").success());
        assert_eq!(wake.before_the_time().await, "SIGHUP");
    }
}
