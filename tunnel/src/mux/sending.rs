//! Bytes and frames for the peer: what is taken from our streams, and in which order it goes out.

use std::time::Duration;

use bytes::Bytes;

use super::machine::gone;
use super::rate::Rate;
use super::{Event, Mux};
use crate::frame::{Frame, Kind, OpenCode, Reset, encode};
use crate::limits::{HEADER_BYTES, SEND_QUEUE_BYTES, SEND_QUEUE_BYTES_CROWDED, TUNNEL_QUEUE_BYTES_CROWDED};
use crate::meters::Direction;

impl Mux {
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
        self.count_wait(id);
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

    pub(super) fn unqueue(&mut self, bytes: usize) {
        self.queued -= bytes;
        self.meters.unqueued(bytes);
    }

    /// Bytes written to streams that wait for their turn.
    #[must_use]
    pub fn queued_bytes(&self) -> usize {
        self.queued
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
            self.meters.waits(stream.send.wait_changed());
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

    /// Only HELLO and OPEN can exceed their size, and neither comes this way.
    pub(super) fn control(&mut self, frame: &Frame) {
        if let Ok(bytes) = encode(frame) {
            self.outbox.control(bytes);
        }
    }

    /// Gives a stream its turn.
    fn schedule(&mut self, id: u32) {
        if let Some(stream) = self.streams.get_mut(&id)
            && !stream.send.scheduled
            && stream.send.has_output()
        {
            stream.send.scheduled = true;
            self.outbox.was_idle(id);
        }
    }

    /// Counts what a stream's writer waits for now.
    pub(super) fn count_wait(&mut self, id: u32) {
        if let Some(stream) = self.streams.get_mut(&id) {
            self.meters.waits(stream.send.wait_changed());
        }
    }
}
