//! The tunnel's state and what our own side may ask of it.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;

use super::liveness::{Liveness, Tick};
use super::outbox::Outbox;
use super::pace::Pace;
use super::rate::Rate;
use super::stream::{Phase, Stream};
use super::window::Budget;
use super::{Death, Event, Taken};
use crate::allowance::Allowance;
use crate::frame::{Frame, GoAway, GoAwayReason, Kind, Open, OpenCode, Reset, encode};
use crate::identity::Role;
use crate::limits::{
    BANDWIDTH_BURST, CONTROL_FRAMES_MAX, HEADER_BYTES, OPENS_BURST, OPENS_PER_SECOND, PENDING_OPENS_MAX,
    SEND_QUEUE_BYTES, SEND_QUEUE_BYTES_CROWDED, TUNNEL_QUEUE_BYTES_CROWDED,
};
use crate::meters::{Direction, Limit, Meters};
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
    opens_out: Rate,
    bandwidth: Option<Rate>,
    pace: Pace,
    /// Bytes that all streams have queued.
    queued: usize,
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

    /// Asks the peer for a stream. Bytes may be written before it answers; they count as its credit.
    ///
    /// Fails with `Gone` after a GOAWAY of either side and with `Limit` when too much is open or waiting.
    pub fn open(&mut self, open: &Open, now: Duration) -> Result<u32, Reset> {
        if self.refuses_opens || self.peer_refuses_opens {
            return Err(Reset::new(OpenCode::Gone, "tunnel is closing"));
        }
        let unread = self.outbox.control_len() >= CONTROL_FRAMES_MAX / 2;
        let limit = if unread { Some(Limit::ControlFrames) } else { None };
        if let Some(limit) = limit.or_else(|| self.crowded(self.opening, self.opens_out.is_due(now))) {
            return Err(self.limited(limit));
        }
        open.check().map_err(|what| Reset::new(OpenCode::Internal, what))?;
        let id = self.next_id;
        let frame =
            encode(&Frame::Open(id, open.clone())).map_err(|_| Reset::new(OpenCode::Internal, "open exceeds 4 KiB"))?;
        if !self.insert(id, Phase::Opening, now) {
            return Err(self.limited(Limit::Memory));
        }
        self.use_up(id);
        self.outbox.control(frame);
        self.opens_out.spend(1.0, now);
        self.opening += 1;
        // The answer may be long, and it comes after one way there and back.
        self.widen(id);
        Ok(id)
    }

    /// What speaks against one more stream; `pending` opens of its side wait for an answer.
    pub(super) fn crowded(&self, pending: usize, in_time: bool) -> Option<Limit> {
        if self.streams.len() >= self.terms.streams_max {
            Some(Limit::Streams)
        } else if pending >= PENDING_OPENS_MAX {
            Some(Limit::PendingOpens)
        } else if in_time {
            None
        } else {
            Some(Limit::OpenRate)
        }
    }

    /// A refusal that was counted.
    pub(super) fn limited(&self, limit: Limit) -> Reset {
        self.meters.refused(limit);
        Reset::new(OpenCode::Limit, limit.text())
    }

    /// Ids are never reused; when they run out, the tunnel drains and the agent dials anew.
    fn use_up(&mut self, id: u32) {
        match id.checked_add(2) {
            Some(next) => self.next_id = next,
            None => self.go_away(GoAway::new(GoAwayReason::Drain, "stream ids are used up")),
        }
    }

    /// Whether the peer granted the stream we opened; `Err` if it refused.
    ///
    /// A stream that was granted and is over already counts as granted: it may hold a whole answer.
    pub fn is_opened(&self, id: u32) -> Result<bool, Reset> {
        match self.streams.get(&id) {
            Some(stream) if stream.phase == Phase::Open => Ok(true),
            Some(stream) => stream.ended.clone().map_or(Ok(false), Err),
            None => Err(gone()),
        }
    }

    /// Grants a stream the peer asked for; false if it is over already.
    pub fn accept(&mut self, id: u32) -> bool {
        let Some(stream) = self.streams.get_mut(&id) else {
            return false;
        };
        if stream.phase != Phase::Incoming || stream.ended.is_some() {
            return false;
        }
        stream.phase = Phase::Open;
        self.incoming -= 1;
        self.control(&Frame::OpenOk(id));
        self.widen(id);
        true
    }

    /// Gives a new stream the window that memory allows.
    fn widen(&mut self, id: u32) {
        // What a peer has finished already needs no credit.
        let open = self.streams.get_mut(&id).filter(|stream| !stream.recv.is_finished());
        let Some(stream) = open else { return };
        let window = self.budget.start(stream.recv.window());
        stream.recv.widen(window);
        self.grant_if_due(id);
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

    /// Refuses a stream the peer asked for and releases its id.
    pub fn refuse(&mut self, id: u32, reset: Reset) {
        self.reset(id, reset);
        self.release(id);
    }

    /// Takes bytes to send; 0 of a non-empty slice means wait for `Event::Writable`.
    ///
    /// Fails when the stream is over or was finished by us.
    pub fn write(&mut self, id: u32, bytes: &[u8]) -> Result<usize, Reset> {
        let stream = self.streams.get_mut(&id).ok_or_else(gone)?;
        if let Some(reset) = &stream.ended {
            return Err(reset.clone());
        }
        if stream.send.is_finishing() {
            return Err(Reset::new(OpenCode::Internal, "write after finish"));
        }
        let queue_max = if self.queued < TUNNEL_QUEUE_BYTES_CROWDED {
            SEND_QUEUE_BYTES
        } else {
            SEND_QUEUE_BYTES_CROWDED
        };
        let frame_bytes_max = self.pace.frame_bytes(self.terms.frame_bytes_out);
        let taken = stream.send.push(bytes, frame_bytes_max, queue_max);
        self.queued += taken;
        self.meters.queued(taken);
        self.schedule(id);
        Ok(taken)
    }

    /// Ends our direction after all bytes written; true once the FIN is out.
    pub fn finish(&mut self, id: u32) -> Result<bool, Reset> {
        let stream = self.streams.get_mut(&id).ok_or_else(gone)?;
        if stream.is_complete() {
            return Ok(true);
        }
        if let Some(reset) = &stream.ended {
            return Err(reset.clone());
        }
        let sent = stream.send.finish();
        self.schedule(id);
        Ok(sent)
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
        }
    }

    pub(super) fn unqueue(&mut self, bytes: usize) {
        self.queued -= bytes;
        self.meters.unqueued(bytes);
    }

    /// Bytes written to streams that wait for their turn.
    #[must_use]
    pub fn queued_bytes(&self) -> usize {
        self.queued
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
            self.budget.give(stream.recv.reclaim());
            self.events.push_back(Event::Ended(*id));
        }
        self.unqueue(unsent);
    }

    /// The next thing to tell a stream's owner.
    pub fn next_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// Whether [`Mux::next_frame`] may have something; false means it has not.
    #[must_use]
    pub fn has_output(&self) -> bool {
        !self.outbox.is_empty()
    }

    /// The next message for the peer. Whoever takes it says [`Mux::flushed`] once the socket has it.
    pub fn next_frame(&mut self, now: Duration) -> Option<Bytes> {
        let frame = self.next_control_frame().or_else(|| self.next_data(now))?;
        self.liveness.taken_out(now);
        self.pace.taken_out(frame.len(), now);
        if let Some(kind) = Kind::of(&frame) {
            self.meters.frame(Direction::Out, kind);
        }
        Some(frame)
    }

    /// When [`Mux::next_frame`] has something again that is held back now to keep to the bandwidth.
    #[must_use]
    pub fn held_until(&self) -> Option<Duration> {
        let rate = self.bandwidth.as_ref().filter(|_| self.has_output());
        rate.map(Rate::due)
    }

    /// Bytes to take out before they are flushed.
    #[must_use]
    pub fn batch_bytes(&self) -> usize {
        self.pace.batch_bytes()
    }

    fn next_data(&mut self, now: Duration) -> Option<Bytes> {
        if self.bandwidth.as_ref().is_some_and(|rate| !rate.is_due(now)) {
            return None;
        }
        let frame = self.next_stream_frame()?;
        if let Some(rate) = &mut self.bandwidth {
            rate.spend(frame.len() as f64, now);
        }
        Some(frame)
    }

    fn next_control_frame(&mut self) -> Option<Bytes> {
        if let Some(frame) = self.outbox.next_control() {
            return Some(frame);
        }
        if let Some(echo) = self.outbox.next_pong() {
            return encode(&Frame::Pong(echo)).ok();
        }
        while let Some(id) = self.outbox.next_grant() {
            let live = self.streams.get_mut(&id).filter(|stream| stream.ended.is_none());
            if let Some(credit) = live.and_then(|stream| stream.recv.grant()) {
                return encode(&Frame::Window(id, credit)).ok();
            }
        }
        None
    }

    fn next_stream_frame(&mut self) -> Option<Bytes> {
        while let Some(id) = self.outbox.next_stream() {
            let Some(stream) = self.streams.get_mut(&id) else {
                continue;
            };
            let frame = stream.send.pop(id);
            stream.send.scheduled = stream.ended.is_none() && stream.send.has_output();
            if stream.send.scheduled {
                self.outbox.stays_busy(id);
            }
            if stream.send.unblocks() {
                self.events.push_back(Event::Writable(id));
            }
            if let Some(frame) = frame {
                let payload = frame.len() - HEADER_BYTES;
                self.unqueue(payload);
                self.meters.data(Direction::Out, payload);
                return Some(frame);
            }
        }
        None
    }

    /// All that was taken out has reached the socket.
    pub fn flushed(&mut self, now: Duration) {
        self.liveness.flushed();
        self.pace.flushed(now);
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

    /// False if there is no memory for it.
    pub(super) fn insert(&mut self, id: u32, phase: Phase, now: Duration) -> bool {
        if !self.budget.stream(self.terms.window_in) {
            return false;
        }
        let stream = Stream::new(phase, self.terms.window_out, self.terms.window_in, now);
        self.streams.insert(id, stream);
        self.meters.stream_began();
        true
    }

    /// Asks for the round-trip time if it is not known, or old.
    pub(super) fn probe(&mut self, now: Duration) {
        if let Some(echo) = self.liveness.probe(now) {
            self.control(&Frame::Ping(echo));
        }
    }

    /// A stream in this phase waits no more.
    pub(super) fn settle(&mut self, phase: Phase) {
        match phase {
            Phase::Opening => self.opening -= 1,
            Phase::Incoming => self.incoming -= 1,
            Phase::Open => {}
        }
    }

    /// Only HELLO and OPEN can exceed their size, and neither comes this way.
    pub(super) fn control(&mut self, frame: &Frame) {
        if let Ok(bytes) = encode(frame) {
            self.outbox.control(bytes);
        }
    }

    fn schedule(&mut self, id: u32) {
        if let Some(stream) = self.streams.get_mut(&id)
            && !stream.send.scheduled
            && stream.send.has_output()
        {
            stream.send.scheduled = true;
            self.outbox.was_idle(id);
        }
    }
}

impl Drop for Mux {
    fn drop(&mut self) {
        self.meters.streams_ended(self.streams.len());
        self.meters.unqueued(self.queued);
    }
}

fn gone() -> Reset {
    Reset::new(OpenCode::Gone, "stream is over")
}
