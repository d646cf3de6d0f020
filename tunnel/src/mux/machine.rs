//! The tunnel's state and what our own side may ask of it.

use std::collections::{HashMap, VecDeque};
use std::time::Duration;

use bytes::Bytes;

use super::liveness::{Liveness, Tick};
use super::outbox::Outbox;
use super::stream::{Phase, Stream};
use super::{Death, Event, Taken};
use crate::frame::{Frame, GoAway, GoAwayReason, Open, OpenCode, Reset, encode};
use crate::identity::Role;
use crate::limits::{CONTROL_FRAMES_MAX, PENDING_OPENS_MAX};

/// What both HELLOs agreed on, from our side.
#[derive(Clone, Copy, Debug)]
pub struct Terms {
    /// Who we are: the hub's ids are odd, the agent's even.
    pub role: Role,
    /// Largest payload we take.
    pub frame_bytes_in: usize,
    /// Largest payload we send.
    pub frame_bytes_out: usize,
    /// Credit a stream has towards us at its start.
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
    pub(super) refuses_opens: bool,
    pub(super) peer_refuses_opens: bool,
}

impl Mux {
    /// A tunnel whose handshake has just ended.
    #[must_use]
    pub fn new(terms: Terms, now: Duration) -> Self {
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
    pub fn open(&mut self, open: &Open) -> Result<u32, Reset> {
        if self.refuses_opens || self.peer_refuses_opens {
            return Err(Reset::new(OpenCode::Gone, "tunnel is closing"));
        }
        let crowded = self.streams.len() >= self.terms.streams_max
            || self.opening >= PENDING_OPENS_MAX
            || self.outbox.control_len() >= CONTROL_FRAMES_MAX / 2;
        if crowded {
            return Err(Reset::new(OpenCode::Limit, "too many streams are open or being opened"));
        }
        open.check().map_err(|what| Reset::new(OpenCode::Internal, what))?;
        let id = self.next_id;
        let frame =
            encode(&Frame::Open(id, open.clone())).map_err(|_| Reset::new(OpenCode::Internal, "open exceeds 4 KiB"))?;
        self.use_up(id);
        self.outbox.control(frame);
        self.insert(id, Phase::Opening);
        self.opening += 1;
        Ok(id)
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
        true
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
        let taken = stream.send.push(bytes, self.terms.frame_bytes_out);
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
        if stream.ended.is_none() && stream.recv.schedules_grant() {
            self.outbox.grant(id);
        }
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
        stream.end(reset.clone());
        self.settle(phase);
        self.control(&Frame::Rst(id, reset));
        self.events.push_back(Event::Ended(id));
    }

    /// Gives the id back. A stream that is not complete is cancelled, so nothing is left on either side.
    pub fn release(&mut self, id: u32) {
        self.reset(id, Reset::new(OpenCode::Cancelled, ""));
        self.streams.remove(&id);
    }

    /// Announces that we take no new streams; those that are open go on.
    pub fn go_away(&mut self, away: GoAway) {
        if !std::mem::replace(&mut self.refuses_opens, true) {
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
        for (id, stream) in &mut self.streams {
            stream.end(reset.clone());
            self.events.push_back(Event::Ended(*id));
        }
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
        let frame = self.next_control_frame().or_else(|| self.next_stream_frame())?;
        self.liveness.taken_out(now);
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
            if frame.is_some() {
                return frame;
            }
        }
        None
    }

    /// All that was taken out has reached the socket.
    pub fn flushed(&mut self) {
        self.liveness.flushed();
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

    pub(super) fn insert(&mut self, id: u32, phase: Phase) {
        self.streams
            .insert(id, Stream::new(phase, self.terms.window_out, self.terms.window_in));
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

fn gone() -> Reset {
    Reset::new(OpenCode::Gone, "stream is over")
}
