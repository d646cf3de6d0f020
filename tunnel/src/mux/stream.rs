//! One stream: two directions with credit of their own, and how it ended.

use std::collections::VecDeque;

use std::time::Duration;

use bytes::{Bytes, BytesMut};

use super::Taken;
use super::window::{Usage, Wish};
use crate::frame::header::{reserve, seal};
use crate::frame::{Kind, OpenCode, Reset};
use crate::limits::{GATHERED_BYTES, HEADER_BYTES, SEND_QUEUE_BYTES, SMALL_PAYLOAD_BYTES};
use crate::meters::WaitsFor;

/// How far a stream's opening has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// We asked and wait.
    Opening,
    /// The peer asked and waits.
    Incoming,
    /// Granted.
    Open,
}

/// Our FIN.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fin {
    No,
    Queued,
    Sent,
}

#[derive(Debug)]
pub(super) struct Stream {
    pub(super) phase: Phase,
    pub(super) began: Duration,
    pub(super) send: Sending,
    pub(super) recv: Receiving,
    pub(super) ended: Option<Reset>,
}

impl Stream {
    pub(super) fn new(phase: Phase, window_out: u32, window_in: u32, now: Duration) -> Self {
        Self {
            phase,
            began: now,
            send: Sending::new(window_out),
            recv: Receiving::new(window_in, now),
            ended: None,
        }
    }

    /// Both FINs are out: nothing more can come, and no RST is needed to end it.
    pub(super) fn is_complete(&self) -> bool {
        self.send.fin == Fin::Sent && self.recv.finished
    }

    /// What the peer completed stays readable: an RST after its FIN only stops our writing. Says how many bytes
    /// will not be sent.
    pub(super) fn end(&mut self, reset: Reset) -> usize {
        self.ended.get_or_insert(reset);
        if !self.recv.finished {
            self.recv.clear();
        }
        self.recv.closed = true;
        self.send.clear()
    }

    pub(super) fn take(&mut self) -> Taken {
        if let Some(chunk) = self.recv.pop() {
            return Taken::Chunk(chunk);
        }
        if self.recv.finished {
            return Taken::Finished;
        }
        match &self.ended {
            Some(reset) => Taken::Ended(reset.clone()),
            None => {
                self.recv.reader_waits = true;
                Taken::Nothing
            }
        }
    }
}

/// The direction towards the peer: ready-made frames, within the peer's credit.
#[derive(Debug)]
pub(super) struct Sending {
    credit: u32,
    /// Frames with the place of their header kept free; the last one may still grow.
    frames: VecDeque<BytesMut>,
    queued_bytes: usize,
    fin: Fin,
    writer_waits: bool,
    /// What the writer waited for when it was counted last.
    waits_for: Option<WaitsFor>,
    /// Stands in one of the outbox's queues.
    pub(super) scheduled: bool,
}

impl Sending {
    fn new(credit: u32) -> Self {
        Self {
            credit,
            frames: VecDeque::new(),
            queued_bytes: 0,
            fin: Fin::No,
            writer_waits: false,
            waits_for: None,
            scheduled: false,
        }
    }

    /// Drops what waits to go out; says how many bytes that were.
    pub(super) fn clear(&mut self) -> usize {
        self.writer_waits = false;
        self.frames = VecDeque::new();
        std::mem::take(&mut self.queued_bytes)
    }

    /// Takes what credit and queue allow; 0 means wait for `Writable`.
    pub(super) fn push(&mut self, bytes: &[u8], frame_bytes_max: usize, queue_bytes_max: usize) -> usize {
        let room = queue_bytes_max
            .saturating_sub(self.queued_bytes)
            .min(self.credit as usize);
        let taken = room.min(bytes.len());
        self.append(&bytes[..taken], frame_bytes_max);
        self.credit -= taken as u32;
        self.queued_bytes += taken;
        self.writer_waits |= taken == 0;
        taken
    }

    fn append(&mut self, mut rest: &[u8], frame_bytes_max: usize) {
        if let Some(last) = self.frames.back_mut() {
            let (now, later) = rest.split_at(
                rest.len()
                    .min((HEADER_BYTES + frame_bytes_max).saturating_sub(last.len())),
            );
            last.extend_from_slice(now);
            rest = later;
        }
        for payload in rest.chunks(frame_bytes_max) {
            let mut frame = reserve(payload.len());
            frame.extend_from_slice(payload);
            self.frames.push_back(frame);
        }
    }

    /// Whether bytes or a FIN wait to go out.
    pub(super) fn has_output(&self) -> bool {
        !self.frames.is_empty() || self.fin == Fin::Queued
    }

    pub(super) fn is_finishing(&self) -> bool {
        self.fin != Fin::No
    }

    /// Queues the FIN behind the bytes and says whether it is out.
    pub(super) fn finish(&mut self) -> bool {
        if self.fin == Fin::No {
            self.fin = Fin::Queued;
        }
        self.writer_waits |= self.fin == Fin::Queued;
        self.fin == Fin::Sent
    }

    pub(super) fn pop(&mut self, id: u32) -> Option<Bytes> {
        if let Some(frame) = self.frames.pop_front() {
            self.queued_bytes -= frame.len() - HEADER_BYTES;
            return Some(seal(frame, Kind::Data, id));
        }
        (self.fin == Fin::Queued).then(|| {
            self.fin = Fin::Sent;
            seal(reserve(0), Kind::Fin, id)
        })
    }

    /// Whether the writer should look again. Not before half the queue is empty: waking it for every frame
    /// costs a third more CPU.
    pub(super) fn unblocks(&mut self) -> bool {
        let room = self.credit > 0 && self.queued_bytes <= SEND_QUEUE_BYTES / 2;
        let ready = match self.fin {
            Fin::No => room,
            Fin::Queued => false,
            Fin::Sent => true,
        };
        ready && std::mem::take(&mut self.writer_waits)
    }

    /// What the writer waited for when this was asked last, and what it waits for now.
    pub(super) fn wait_changed(&mut self) -> [Option<WaitsFor>; 2] {
        let waits_for = match self.credit {
            0 => WaitsFor::Credit,
            _ => WaitsFor::Socket,
        };
        let now = (self.writer_waits && self.fin == Fin::No).then_some(waits_for);
        [std::mem::replace(&mut self.waits_for, now), now]
    }

    /// Credit left and bytes queued.
    #[cfg(test)]
    pub(super) fn account(&self) -> (u32, u32) {
        (self.credit, self.queued_bytes as u32)
    }

    /// More credit; beyond what 31 bits hold it is the peer's mistake.
    pub(super) fn grant(&mut self, credit: u32) -> Result<(), Reset> {
        let total = self
            .credit
            .checked_add(credit)
            .filter(|total| *total <= i32::MAX as u32);
        self.credit = total.ok_or_else(|| Reset::new(OpenCode::Limit, "credit overflows"))?;
        Ok(())
    }
}

/// The direction from the peer: bytes nobody took yet, never more than we granted.
#[derive(Debug)]
pub(super) struct Receiving {
    window: u32,
    /// What the peer may still send.
    credit: u32,
    /// Taken by the reader and not yet granted again.
    taken: u32,
    chunks: VecDeque<Bytes>,
    gathered: BytesMut,
    finished: bool,
    /// Nothing more comes, so no credit is needed.
    closed: bool,
    reader_waits: bool,
    grant_scheduled: bool,
    usage: Usage,
    /// Taken since the last look at it.
    read: usize,
    /// Narrower than the window after a rest: what is taken is then not granted again.
    aim: u32,
}

impl Receiving {
    fn new(window: u32, now: Duration) -> Self {
        Self {
            window,
            credit: window,
            taken: 0,
            chunks: VecDeque::new(),
            gathered: BytesMut::new(),
            finished: false,
            closed: false,
            reader_waits: false,
            grant_scheduled: false,
            usage: Usage::new(now),
            read: 0,
            aim: window,
        }
    }

    /// Unread bytes, what the peer may still send, and what was taken and not yet granted again: all three.
    pub(super) fn window(&self) -> u32 {
        self.window
    }

    pub(super) fn is_finished(&self) -> bool {
        self.finished
    }

    /// The window is this wide from now on; what it gained is granted with the next WINDOW.
    pub(super) fn widen(&mut self, window: u32) {
        self.taken += window.saturating_sub(self.window);
        self.window = self.window.max(window);
        self.aim = self.window;
    }

    /// What the stream wants now that bytes came, going by those that its reader took: one that sleeps needs no more.
    pub(super) fn wish(&mut self, now: Duration, rtt: Option<Duration>) -> Wish {
        let read = std::mem::take(&mut self.read);
        match self.usage.of(read, self.window, now, rtt) {
            Wish::Window(narrower) if narrower < self.window => {
                self.aim = narrower;
                Wish::Nothing
            }
            wish => wish,
        }
    }

    /// Makes the window narrower by what it no longer needs, and says by how much.
    pub(super) fn reclaim(&mut self) -> u32 {
        let surplus = if self.finished || self.closed {
            let surplus = self.credit + self.taken;
            (self.credit, self.taken) = (0, 0);
            surplus
        } else {
            let surplus = self.window.saturating_sub(self.aim).min(self.taken);
            self.taken -= surplus;
            surplus
        };
        self.window -= surplus;
        surplus
    }

    /// Forgets what nobody took.
    fn clear(&mut self) {
        self.taken += self.unread();
        self.chunks = VecDeque::new();
        self.gathered = BytesMut::new();
    }

    fn unread(&self) -> u32 {
        (self.chunks.iter().map(Bytes::len).sum::<usize>() + self.gathered.len()) as u32
    }

    pub(super) fn data(&mut self, payload: Bytes) -> Result<(), Reset> {
        if self.finished {
            return Err(Reset::new(OpenCode::Internal, "data after fin"));
        }
        let left = u32::try_from(payload.len())
            .ok()
            .and_then(|bytes| self.credit.checked_sub(bytes));
        self.credit = left.ok_or_else(|| Reset::new(OpenCode::Limit, "data beyond credit"))?;
        if payload.len() < SMALL_PAYLOAD_BYTES {
            self.gathered.extend_from_slice(&payload);
            if self.gathered.len() >= GATHERED_BYTES {
                self.close_gathered();
            }
        } else {
            self.close_gathered();
            self.chunks.push_back(payload);
        }
        Ok(())
    }

    fn close_gathered(&mut self) {
        if !self.gathered.is_empty() {
            self.chunks.push_back(std::mem::take(&mut self.gathered).freeze());
        }
    }

    pub(super) fn finish(&mut self) -> Result<(), Reset> {
        if std::mem::replace(&mut self.finished, true) {
            return Err(Reset::new(OpenCode::Internal, "second fin"));
        }
        Ok(())
    }

    /// Whether the reader waits for what has come now.
    pub(super) fn wakes_reader(&mut self) -> bool {
        let news = self.finished || !self.chunks.is_empty() || !self.gathered.is_empty();
        news && std::mem::take(&mut self.reader_waits)
    }

    fn pop(&mut self) -> Option<Bytes> {
        if self.chunks.is_empty() {
            self.close_gathered();
        }
        let chunk = self.chunks.pop_front()?;
        self.taken += chunk.len() as u32;
        self.read += chunk.len();
        Some(chunk)
    }

    /// Whether a WINDOW is due that is not yet waiting to go out: half-window steps, and none after a FIN.
    pub(super) fn schedules_grant(&mut self) -> bool {
        let due = !self.finished && !self.grant_scheduled && self.taken >= self.window / 2;
        self.grant_scheduled |= due;
        due
    }

    /// What to grant now that the WINDOW goes out: all that was taken up to this moment.
    pub(super) fn grant(&mut self) -> Option<u32> {
        self.grant_scheduled = false;
        let credit = std::mem::take(&mut self.taken);
        self.credit += credit;
        (credit > 0 && !self.finished).then_some(credit)
    }

    /// Bytes nobody took, what the peer may send, and what was taken and not yet granted again.
    #[cfg(test)]
    pub(super) fn account(&self) -> (u32, u32, u32) {
        (self.unread(), self.credit, self.taken)
    }
}
