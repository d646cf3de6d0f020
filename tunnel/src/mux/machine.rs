//! The tunnel's state, its streams' ends, and its own.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use super::liveness::{Liveness, Tick};
use super::outbox::Outbox;
use super::pace::Pace;
use super::rate::Rate;
use super::stream::Stream;
use super::window::Budget;
use super::{Death, Event, Taken};
use crate::allowance::Allowance;
use crate::frame::{Frame, GoAway, OpenCode, Reset};
use crate::identity::Role;
use crate::limits::{BANDWIDTH_BURST, OPENS_BURST, OPENS_PER_SECOND};
use crate::meters::{Direction, Meters};
use crate::pool::Pool;

/// What both HELLOs agreed on, from our side.
#[derive(Clone, Copy, Debug)]
pub struct Terms {
    /// Who we are: the hub's ids are odd, the agent's even.
    pub role: Role,
    /// Largest payload we take.
    pub frame_bytes_in: usize,
    /// Largest payload we send.
    pub frame_bytes_out: usize,
    /// Credit a stream has towards us before we add to it.
    pub window_in: u32,
    /// Credit a stream has towards the peer at its start.
    pub window_out: u32,
    /// Streams at once, the smaller of both sides' numbers.
    pub streams_max: usize,
    /// `0.0..=1.0`, spreads the pings of many tunnels.
    pub ping_jitter: f64,
}

/// The state of one tunnel after its handshake.
#[derive(Debug)]
pub struct Mux {
    pub(super) terms: Terms,
    pub(super) streams: HashMap<u32, Stream>,
    pub(super) next_id: u32,
    pub(super) last_peer_id: u32,
    pub(super) opening: usize,
    pub(super) incoming: usize,
    pub(super) outbox: Outbox,
    pub(super) events: VecDeque<Event>,
    pub(super) liveness: Liveness,
    pub(super) budget: Budget,
    pub(super) meters: Arc<Meters>,
    /// Opens of the peer's.
    pub(super) opens_in: Rate,
    pub(super) opens_out: Rate,
    pub(super) bandwidth: Option<Rate>,
    pub(super) pace: Pace,
    /// Bytes that all streams have queued.
    pub(super) queued: usize,
    pub(super) refuses_opens: bool,
    pub(super) peer_refuses_opens: bool,
}

impl Mux {
    /// A tunnel whose handshake has just ended, with memory and meters of its own.
    #[must_use]
    pub fn new(terms: Terms, now: Duration) -> Self {
        let allowance = Allowance {
            pool: Pool::of(u64::MAX),
            meters: Arc::default(),
            bandwidth: None,
        };
        Self::with_allowance(terms, allowance, now)
    }

    /// A tunnel that shares memory and meters with others.
    #[must_use]
    pub fn with_allowance(terms: Terms, allowance: Allowance, now: Duration) -> Self {
        let opens = || Rate::new(OPENS_PER_SECOND, OPENS_BURST);
        let bandwidth = allowance
            .bandwidth
            .map(|bytes| Rate::new(bytes.get() as f64, BANDWIDTH_BURST));
        Self {
            terms,
            streams: HashMap::new(),
            next_id: if terms.role == Role::Hub { 1 } else { 2 },
            last_peer_id: 0,
            opening: 0,
            incoming: 0,
            outbox: Outbox::default(),
            events: VecDeque::new(),
            liveness: Liveness::new(terms.ping_jitter, now),
            budget: Budget::new(allowance.pool),
            meters: allowance.meters,
            opens_in: opens(),
            opens_out: opens(),
            bandwidth,
            pace: Pace::new(),
            queued: 0,
            refuses_opens: false,
            peer_refuses_opens: false,
        }
    }

    /// Streams whose ids are not yet released.
    #[must_use]
    pub fn streams(&self) -> usize {
        self.streams.len()
    }

    /// Round-trip time of the last answered ping.
    #[must_use]
    pub fn rtt(&self) -> Option<Duration> {
        self.liveness.rtt()
    }

    pub(super) fn grant_if_due(&mut self, id: u32) {
        if let Some(stream) = self.streams.get_mut(&id)
            && stream.ended.is_none()
            && stream.recv.schedules_grant()
        {
            self.outbox.grant(id);
        }
    }

    /// Takes back what a stream's window no longer needs.
    pub(super) fn reclaim(&mut self, id: u32) {
        if let Some(stream) = self.streams.get_mut(&id) {
            self.budget.give(stream.recv.reclaim());
        }
    }

    /// Takes the next bytes the peer sent, and gives their credit back.
    pub fn take(&mut self, id: u32) -> Taken {
        let Some(stream) = self.streams.get_mut(&id) else {
            return Taken::Ended(gone());
        };
        let taken = stream.take();
        self.reclaim(id);
        self.grant_if_due(id);
        taken
    }

    /// Ends a stream in both directions and tells the peer why.
    pub fn reset(&mut self, id: u32, reset: Reset) {
        let Some(stream) = self.streams.get_mut(&id) else {
            return;
        };
        if stream.ended.is_some() || stream.is_complete() {
            return;
        }
        let phase = stream.phase;
        let unsent = stream.end(reset.clone());
        self.unqueue(unsent);
        self.count_wait(id);
        self.settle(phase);
        self.reclaim(id);
        self.control(&Frame::Rst(id, reset));
        self.events.push_back(Event::Ended(id));
    }

    /// Gives the id back. A stream that is not complete is cancelled, so nothing is left on either side.
    pub fn release(&mut self, id: u32) {
        self.reset(id, Reset::new(OpenCode::Cancelled, ""));
        if let Some(stream) = self.streams.remove(&id) {
            self.budget.give(stream.recv.window());
            self.meters.streams_ended(1);
            self.outbox.forget(|id| self.streams.contains_key(&id));
        }
    }

    /// Bytes that the peer may make us hold.
    #[must_use]
    pub fn window_bytes(&self) -> u64 {
        self.budget.used()
    }

    /// Announces that we take no new streams; those that are open go on.
    pub fn go_away(&mut self, away: GoAway) {
        if !std::mem::replace(&mut self.refuses_opens, true) {
            self.meters.go_away(Direction::Out, away.reason);
            self.control(&Frame::GoAway(GoAway {
                last_stream: self.last_peer_id,
                ..away
            }));
        }
    }

    /// Ends every stream at once, because the tunnel itself is over. What a peer completed stays readable.
    pub fn close(&mut self, reset: &Reset) {
        self.outbox.clear();
        (self.refuses_opens, self.peer_refuses_opens) = (true, true);
        (self.opening, self.incoming) = (0, 0);
        let mut unsent = 0;
        for (id, stream) in &mut self.streams {
            unsent += stream.end(reset.clone());
            self.meters.waits(stream.send.wait_changed());
            self.budget.give(stream.recv.reclaim());
            self.events.push_back(Event::Ended(*id));
        }
        self.unqueue(unsent);
    }

    /// The next thing to tell a stream's owner.
    pub fn next_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// When [`Mux::tick`] has something to do next.
    #[must_use]
    pub fn tick_due(&self) -> Duration {
        self.liveness.due()
    }

    /// Sends a ping if one is due; fails when the peer is dead.
    pub fn tick(&mut self, now: Duration) -> Result<(), Death> {
        match self.liveness.tick(now) {
            Tick::Nothing => Ok(()),
            Tick::Ping(echo) => {
                self.control(&Frame::Ping(echo));
                Ok(())
            }
            Tick::Dead(death) => Err(death),
        }
    }

    /// The socket has bytes to take that are no frame.
    pub fn answers(&mut self, now: Duration) {
        self.liveness.taken_out(now);
    }

    /// Asks for the round-trip time if it is not known, or old.
    pub(super) fn probe(&mut self, now: Duration) {
        if let Some(echo) = self.liveness.probe(now) {
            self.control(&Frame::Ping(echo));
        }
    }
}

impl Drop for Mux {
    fn drop(&mut self) {
        self.meters.streams_ended(self.streams.len());
        self.meters.unqueued(self.queued);
        for stream in self.streams.values_mut() {
            stream.send.clear();
            self.meters.waits(stream.send.wait_changed());
        }
    }
}

pub(super) fn gone() -> Reset {
    Reset::new(OpenCode::Gone, "stream is over")
}
