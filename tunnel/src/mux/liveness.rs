//! When silence asks for a ping, and when it means death.

use std::time::Duration;

use super::Death;
use crate::limits::{DEAD_AFTER, PING_AFTER, RTT_AGE_MAX, RTT_QUIET_AGE_MAX};

/// The times a tunnel lives by, all since its beginning.
#[derive(Debug)]
pub(super) struct Liveness {
    ping_after: Duration,
    received: Duration,
    pinged: Option<Duration>,
    unflushed: Option<Duration>,
    rtt: Option<Duration>,
    /// When the last answer that told it came.
    measured: Option<Duration>,
}

/// What the time asks for.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Tick {
    Nothing,
    Ping([u8; 8]),
    Dead(Death),
}

impl Liveness {
    /// `jitter` in `0.0..=1.0` spreads the pings of many tunnels over +-10 %.
    pub(super) fn new(jitter: f64, now: Duration) -> Self {
        let jitter = if jitter.is_nan() { 0.5 } else { jitter.clamp(0.0, 1.0) };
        let ping_after = PING_AFTER.mul_f64(0.9 + 0.2 * jitter);
        Self {
            ping_after,
            received: now,
            pinged: None,
            unflushed: None,
            rtt: None,
            measured: None,
        }
    }

    /// A ping that is sent for the round-trip time alone, unless that is known well enough or on its way.
    pub(super) fn probe(&mut self, now: Duration) -> Option<[u8; 8]> {
        let is_young = |time: Duration| now.saturating_sub(time) < RTT_AGE_MAX;
        let is_known = self.measured.is_some_and(is_young);
        let is_asked = self.pinged.is_some_and(is_young);
        (!is_known && !is_asked).then(|| self.ping(now))
    }

    /// The same where the peer asks first, so that no ping of our own falls due.
    pub(super) fn probe_in_turn(&mut self, now: Duration) -> Option<[u8; 8]> {
        let is_old = now.saturating_sub(self.measured.unwrap_or_default()) >= RTT_QUIET_AGE_MAX;
        is_old.then(|| self.probe(now)).flatten()
    }

    fn ping(&mut self, now: Duration) -> [u8; 8] {
        let nanos = now.as_nanos() as u64;
        self.pinged = Some(Duration::from_nanos(nanos));
        nanos.to_be_bytes()
    }

    /// Any message counts, not only a PONG: bulk must never kill a tunnel.
    pub(super) fn received(&mut self, now: Duration) {
        self.received = now;
    }

    /// The ping carries its own time, so that an answer needs no table. Says how long it took.
    pub(super) fn ponged(&mut self, echo: [u8; 8], now: Duration) -> Option<Duration> {
        let sent = Duration::from_nanos(u64::from_be_bytes(echo));
        if Some(sent) != self.pinged {
            return None;
        }
        self.rtt = Some(now.saturating_sub(sent));
        self.measured = Some(now);
        self.rtt
    }

    pub(super) fn taken_out(&mut self, now: Duration) {
        self.unflushed.get_or_insert(now);
    }

    pub(super) fn flushed(&mut self) {
        self.unflushed = None;
    }

    pub(super) fn rtt(&self) -> Option<Duration> {
        self.rtt
    }

    fn ping_due(&self) -> Duration {
        self.pinged.map_or(self.received, |pinged| pinged.max(self.received)) + self.ping_after
    }

    /// When to tick next.
    pub(super) fn due(&self) -> Duration {
        let dead = self
            .unflushed
            .map_or(self.received, |unflushed| unflushed.min(self.received))
            + DEAD_AFTER;
        dead.min(self.ping_due())
    }

    pub(super) fn tick(&mut self, now: Duration) -> Tick {
        let silence = now.saturating_sub(self.received);
        if silence >= DEAD_AFTER {
            return Tick::Dead(Death::Silent(silence));
        }
        let stuck = self
            .unflushed
            .map_or(Duration::ZERO, |unflushed| now.saturating_sub(unflushed));
        if stuck >= DEAD_AFTER {
            return Tick::Dead(Death::Stuck(stuck));
        }
        if now < self.ping_due() {
            return Tick::Nothing;
        }
        Tick::Ping(self.ping(now))
    }
}
