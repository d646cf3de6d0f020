//! Streams begin: what our side asks for, and what is granted to the peer.

use std::time::Duration;

use super::Mux;
use super::machine::gone;
use super::stream::{Phase, Stream};
use crate::frame::{Frame, GoAway, GoAwayReason, Open, OpenCode, Reset, encode};
use crate::limits::{CONTROL_FRAMES_MAX, PENDING_OPENS_MAX};
use crate::meters::Limit;

impl Mux {
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

    /// Refuses a stream the peer asked for and releases its id.
    pub fn refuse(&mut self, id: u32, reset: Reset) {
        self.reset(id, reset);
        self.release(id);
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

    /// A stream in this phase waits no more.
    pub(super) fn settle(&mut self, phase: Phase) {
        match phase {
            Phase::Opening => self.opening -= 1,
            Phase::Incoming => self.incoming -= 1,
            Phase::Open => {}
        }
    }
}
