//! What a peer's frames do. Nothing a peer sends may panic, and nothing it sends on one stream may hurt another.

use std::time::Duration;

use bytes::Bytes;

use super::stream::{Phase, Stream};
use super::window::Wish;
use super::{Event, Mux, Violation};
use crate::frame::{Frame, FrameError, GoAway, Kind, Open, OpenCode, Reset, decode};
use crate::identity::Role;
use crate::limits::CONTROL_FRAMES_MAX;
use crate::meters::{Direction, Limit};

impl Mux {
    /// Takes one message of the peer. After an error the tunnel must be closed.
    pub fn on_frame(&mut self, message: Bytes, now: Duration) -> Result<(), Violation> {
        self.liveness.received(now);
        if let Some(kind) = Kind::of(&message) {
            self.meters.frame(Direction::In, kind);
        }
        match decode(message, self.terms.frame_bytes_in) {
            Ok(Some(frame)) => self.on_known(frame, now)?,
            Ok(None) => {}
            Err(error) => self.on_invalid(error)?,
        }
        let waiting = self.outbox.control_len();
        if waiting > CONTROL_FRAMES_MAX {
            self.meters.refused(Limit::ControlFrames);
            Err(Violation::Flood { waiting })
        } else {
            Ok(())
        }
    }

    fn on_known(&mut self, frame: Frame, now: Duration) -> Result<(), Violation> {
        match frame {
            Frame::Hello(_) => Err(Violation::Unexpected(Kind::Hello)),
            Frame::Auth(_) => Err(Violation::Unexpected(Kind::Auth)),
            Frame::Open(id, open) => self.on_open(id, open, now),
            Frame::OpenOk(id) => self.on_open_ok(id, now),
            Frame::Data(id, payload) => self.on_data(id, payload, now),
            Frame::Fin(id) => {
                self.on_stream(id, |stream| stream.recv.finish())?;
                self.reclaim(id);
                Ok(())
            }
            Frame::Window(id, credit) => self.on_stream(id, |stream| stream.send.grant(credit)),
            Frame::Rst(id, reset) => self.on_rst(id, reset, now),
            Frame::Ping(echo) => {
                self.outbox.pong(echo);
                if let Some(echo) = self.liveness.probe_in_turn(now) {
                    self.control(&Frame::Ping(echo));
                }
                Ok(())
            }
            Frame::Pong(echo) => {
                if let Some(rtt) = self.liveness.ponged(echo, now) {
                    self.meters.round_trip(rtt);
                }
                Ok(())
            }
            Frame::GoAway(away) => {
                self.on_go_away(away);
                Ok(())
            }
        }
    }

    /// A frame whose header was sound and whose stream is known hurts only that stream.
    fn on_invalid(&mut self, error: FrameError) -> Result<(), Violation> {
        let FrameError::Malformed { kind, stream, what } = error else {
            return Err(Violation::Frame(error));
        };
        let broken = Reset::new(OpenCode::Internal, what);
        match kind {
            Kind::Open => {
                self.claim(stream)?;
                self.control(&Frame::Rst(stream, broken));
                Ok(())
            }
            Kind::Data | Kind::Window | Kind::Rst => self.on_stream(stream, |_| Err(broken)),
            _ => Err(Violation::Frame(error)),
        }
    }

    fn is_ours(&self, id: u32) -> bool {
        (id % 2 == 1) == (self.terms.role == Role::Hub)
    }

    /// Marks an id of the peer's as used: odd or even as its side is, and above all before it.
    fn claim(&mut self, id: u32) -> Result<(), Violation> {
        if self.is_ours(id) || id <= self.last_peer_id {
            return Err(Violation::StreamId {
                stream: id,
                last: self.last_peer_id,
            });
        }
        self.last_peer_id = id;
        Ok(())
    }

    fn on_open(&mut self, id: u32, open: Open, now: Duration) -> Result<(), Violation> {
        self.claim(id)?;
        match self.admit(id, now) {
            Ok(()) => {
                self.incoming += 1;
                self.events.push_back(Event::Incoming(id, open));
            }
            Err(reset) => self.control(&Frame::Rst(id, reset)),
        }
        Ok(())
    }

    fn admit(&mut self, id: u32, now: Duration) -> Result<(), Reset> {
        if self.refuses_opens {
            return Err(Reset::new(OpenCode::Gone, "tunnel is closing"));
        }
        let in_time = self.opens_in.is_due(now);
        self.opens_in.spend(if in_time { 1.0 } else { 0.0 }, now);
        if let Some(limit) = self.crowded(self.incoming, in_time) {
            return Err(self.limited(limit));
        }
        if self.insert(id, Phase::Incoming, now) {
            Ok(())
        } else {
            Err(self.limited(Limit::Memory))
        }
    }

    fn on_data(&mut self, id: u32, payload: Bytes, now: Duration) -> Result<(), Violation> {
        self.meters.data(Direction::In, payload.len());
        self.on_stream(id, |stream| stream.recv.data(payload))?;
        let rtt = self.liveness.rtt();
        let Some(stream) = self.streams.get_mut(&id).filter(|stream| stream.ended.is_none()) else {
            return Ok(());
        };
        let window = stream.recv.window();
        match stream.recv.wish(now, rtt) {
            Wish::Nothing => {}
            Wish::Rtt => self.probe(now),
            Wish::Window(wider) => {
                if self.budget.grow(window, wider) {
                    stream.recv.widen(wider);
                    self.grant_if_due(id);
                }
                self.probe(now);
            }
        }
        Ok(())
    }

    /// The stream a frame is for; `None` if it is over and the frame was on its way when that happened.
    fn live(&mut self, id: u32) -> Result<Option<&mut Stream>, Violation> {
        let used = if self.is_ours(id) {
            id < self.next_id
        } else {
            id <= self.last_peer_id
        };
        if !used {
            return Err(Violation::UnknownStream { stream: id });
        }
        Ok(self.streams.get_mut(&id).filter(|stream| stream.ended.is_none()))
    }

    fn on_open_ok(&mut self, id: u32, now: Duration) -> Result<(), Violation> {
        let Some(stream) = self.live(id)? else { return Ok(()) };
        if stream.phase != Phase::Opening {
            self.reset(id, Reset::new(OpenCode::Internal, "open-ok for a stream that is open"));
            return Ok(());
        }
        stream.phase = Phase::Open;
        let took = now.saturating_sub(stream.began);
        self.opening -= 1;
        self.meters.opened(None, took);
        self.events.push_back(Event::Opened(id));
        Ok(())
    }

    /// Applies a frame to its stream; a rule it breaks resets that stream alone.
    fn on_stream(&mut self, id: u32, apply: impl FnOnce(&mut Stream) -> Result<(), Reset>) -> Result<(), Violation> {
        let Some(stream) = self.live(id)? else { return Ok(()) };
        let applied = match stream.phase {
            Phase::Opening => Err(Reset::new(OpenCode::Internal, "frame before open-ok")),
            Phase::Incoming | Phase::Open => apply(stream),
        };
        match applied {
            Ok(()) => self.wake(id),
            Err(reset) => self.reset(id, reset),
        }
        Ok(())
    }

    fn wake(&mut self, id: u32) {
        let Some(stream) = self.streams.get_mut(&id) else {
            return;
        };
        if stream.recv.wakes_reader() {
            self.events.push_back(Event::Readable(id));
        }
        if stream.send.unblocks() {
            self.events.push_back(Event::Writable(id));
        }
        self.meters.waits(stream.send.wait_changed());
    }

    fn on_rst(&mut self, id: u32, reset: Reset, now: Duration) -> Result<(), Violation> {
        let Some(stream) = self.live(id)? else { return Ok(()) };
        let phase = stream.phase;
        let (code, took) = (reset.code, now.saturating_sub(stream.began));
        let unsent = stream.end(reset);
        if phase == Phase::Opening {
            self.meters.opened(Some(code), took);
        }
        self.unqueue(unsent);
        self.count_wait(id);
        self.settle(phase);
        self.reclaim(id);
        self.events.push_back(Event::Ended(id));
        Ok(())
    }

    fn on_go_away(&mut self, away: GoAway) {
        self.peer_refuses_opens = true;
        self.meters.go_away(Direction::In, away.reason);
        let gone = Reset::new(OpenCode::Gone, "peer went away before it saw this stream");
        let is_unseen = |id: &u32| *id > away.last_stream && self.is_ours(*id);
        let unseen: Vec<u32> = self.streams.keys().copied().filter(is_unseen).collect();
        for id in unseen {
            // The peer is free to have it in flight, so it is told as well.
            self.reset(id, gone.clone());
        }
        self.events.push_back(Event::GoAway(away));
    }
}
