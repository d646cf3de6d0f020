//! Two machines and a lossless wire, against a model that only counts: nothing is lost, reordered or stuck,
//! whatever is done in whatever order.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use proptest::prelude::*;

use super::fuzz::{START, open, terms};
use super::{Event, Mux, Taken, Terms};
use crate::allowance::Allowance;
use crate::frame::{Frame, OpenCode, decode};
use crate::identity::Role;
use crate::limits::FRAME_PAYLOAD_BYTES_MAX;
use crate::pool::Pool;

/// One thing somebody does; numbers are taken modulo what there is.
#[derive(Clone, Debug)]
enum Op {
    Open,
    Write { stream: usize, bytes: usize },
    Finish { stream: usize },
    Take { stream: usize },
    Cancel { stream: usize },
    Carry { frames: usize },
    Wait { millis: u64 },
}

fn op() -> impl Strategy<Value = (bool, Op)> {
    let stream = || 0..8_usize;
    let what = prop_oneof![
        2 => Just(Op::Open),
        8 => (stream(), 1..90_000_usize).prop_map(|(stream, bytes)| Op::Write { stream, bytes }),
        3 => (stream(), 1..40_usize).prop_map(|(stream, bytes)| Op::Write { stream, bytes }),
        1 => stream().prop_map(|stream| Op::Finish { stream }),
        8 => stream().prop_map(|stream| Op::Take { stream }),
        1 => stream().prop_map(|stream| Op::Cancel { stream }),
        8 => (1..12_usize).prop_map(|frames| Op::Carry { frames }),
        2 => (1..60_u64).prop_map(|millis| Op::Wait { millis }),
        1 => Just(Op::Wait { millis: 11_000 }),
    ];
    (any::<bool>(), what)
}

/// What is known of one direction of one stream, seen from its writer.
#[derive(Default)]
struct Direction {
    written: usize,
    read: usize,
    finished: bool,
    end_seen: bool,
    writer_sleeps: bool,
    reader_sleeps: bool,
}

/// One side, with the ids it still has to release.
struct Side {
    mux: Mux,
    pool: Arc<Pool>,
    held: Vec<u32>,
    towards_peer: VecDeque<Bytes>,
}

struct World {
    sides: [Side; 2],
    /// By id and writing side.
    directions: BTreeMap<(u32, usize), Direction>,
    cancelled: Vec<u32>,
    now: Duration,
}

/// The byte at a place of a direction, so that a swap or a gap shows at once.
fn byte(id: u32, side: usize, at: usize) -> u8 {
    (at as u32)
        .wrapping_mul(2_654_435_761)
        .wrapping_add(id * 7 + side as u32)
        .to_be_bytes()[0]
}

impl World {
    /// With a pool of so many first credits, each side's windows may grow little or much.
    fn new(window: u32, frame_bytes: usize, credits: u64) -> Self {
        let side = |role| {
            let terms = Terms {
                window_in: window,
                window_out: window,
                frame_bytes_out: frame_bytes,
                ..terms(role)
            };
            let allowance = Allowance {
                pool: Pool::of(credits * u64::from(window)),
                meters: Arc::default(),
                bandwidth: None,
            };
            Side {
                pool: Arc::clone(&allowance.pool),
                mux: Mux::with_allowance(terms, allowance, START),
                held: Vec::new(),
                towards_peer: VecDeque::new(),
            }
        };
        Self {
            sides: [side(Role::Hub), side(Role::Agent)],
            directions: BTreeMap::new(),
            cancelled: Vec::new(),
            now: START,
        }
    }

    fn pick(&self, side: usize, stream: usize) -> Option<u32> {
        let held = &self.sides[side].held;
        (!held.is_empty()).then(|| held[stream % held.len()])
    }

    fn apply(&mut self, side: usize, op: &Op) {
        match *op {
            Op::Open => self.open(side),
            Op::Write { stream, bytes } => self
                .pick(side, stream)
                .into_iter()
                .for_each(|id| self.write(side, id, bytes)),
            Op::Finish { stream } => self.pick(side, stream).into_iter().for_each(|id| self.finish(side, id)),
            Op::Take { stream } => self.pick(side, stream).into_iter().for_each(|id| {
                self.take(side, id);
            }),
            Op::Cancel { stream } => self.pick(side, stream).into_iter().for_each(|id| self.cancel(side, id)),
            Op::Carry { frames } => {
                self.carry(side, frames);
            }
            Op::Wait { millis } => self.now += Duration::from_millis(millis),
        }
        self.check_budget();
        self.check_conservation();
    }

    /// What is promised to the peer is counted, and never more than there is.
    fn check_budget(&self) {
        for side in &self.sides {
            let windows = side.mux.streams.values().map(|stream| u64::from(stream.recv.window()));
            assert_eq!(windows.sum::<u64>(), side.pool.used(), "all windows are counted");
            assert!(side.pool.used() <= side.pool.bytes_max(), "no more than the budget");
            let queued = side.mux.streams.values().map(|stream| stream.send.account().1 as usize);
            assert_eq!(queued.sum::<usize>(), side.mux.queued_bytes(), "all queues are counted");
        }
    }

    /// At any moment each byte that a reader lets come is in one place: as credit with the writer, in its queue, or on the
    /// wire, as a byte on its way there or as credit on its way back. And the reader's window is what it lets come, what it
    /// has not read, and what it has read and not granted again.
    fn check_conservation(&self) {
        let (mut bytes, mut credits) = (BTreeMap::new(), BTreeMap::new());
        for (side, from) in self.sides.iter().enumerate() {
            for frame in &from.towards_peer {
                match decode(frame.clone(), FRAME_PAYLOAD_BYTES_MAX) {
                    Ok(Some(Frame::Data(id, data))) => *bytes.entry((id, side)).or_insert(0) += data.len() as u32,
                    Ok(Some(Frame::Window(id, credit))) => *credits.entry((id, 1 - side)).or_insert(0) += credit,
                    Ok(_) => {}
                    Err(error) => unreachable!("an honest side sends frames: {error}"),
                }
            }
        }
        let live = self.directions.iter().filter(|(_, direction)| !direction.finished);
        for (of @ (id, writer), _) in live.filter(|((id, _), _)| !self.cancelled.contains(id)) {
            let [ours, theirs] = [*writer, 1 - writer].map(|side| self.sides[side].mux.streams.get(id));
            let (Some(ours), Some(theirs)) = (ours, theirs) else {
                continue;
            };
            if ours.ended.is_some() || theirs.ended.is_some() {
                continue;
            }
            let (credit, queued) = ours.send.account();
            let (unread, granted, taken) = theirs.recv.account();
            let on_the_wire = [&bytes, &credits].map(|carried| carried.get(of).copied().unwrap_or_default());
            assert_eq!(
                unread + granted + taken,
                theirs.recv.window(),
                "the reader's books of stream {id}"
            );
            assert_eq!(
                credit + queued + on_the_wire[0] + on_the_wire[1],
                granted,
                "credit of stream {id} is neither lost nor made"
            );
        }
    }

    fn open(&mut self, side: usize) {
        if let Ok(id) = self.sides[side].mux.open(&open(), self.now) {
            self.sides[side].held.push(id);
            (0..2).for_each(|writer| {
                self.directions.insert((id, writer), Direction::default());
            });
        }
    }

    fn write(&mut self, side: usize, id: u32, bytes: usize) {
        let direction = self.directions.get_mut(&(id, side)).expect("opened");
        let payload: Vec<u8> = (0..bytes).map(|at| byte(id, side, direction.written + at)).collect();
        match self.sides[side].mux.write(id, &payload) {
            Ok(taken) => {
                direction.written += taken;
                direction.writer_sleeps = taken == 0;
            }
            Err(_) => assert!(
                direction.finished || self.cancelled.contains(&id),
                "only a reason ends a stream"
            ),
        }
    }

    fn finish(&mut self, side: usize, id: u32) {
        let finished = self.sides[side].mux.finish(id).is_ok();
        self.directions.get_mut(&(id, side)).expect("opened").finished |= finished;
    }

    /// Reads one chunk; false if there was none.
    fn take(&mut self, side: usize, id: u32) -> bool {
        let direction = self.directions.get_mut(&(id, 1 - side)).expect("opened");
        match self.sides[side].mux.take(id) {
            Taken::Chunk(chunk) => {
                assert!(
                    !direction.reader_sleeps,
                    "the reader of stream {id} was told of its bytes"
                );
                let expected = (0..chunk.len()).map(|at| byte(id, 1 - side, direction.read + at));
                assert!(
                    chunk.iter().copied().eq(expected),
                    "bytes of stream {id} in their order"
                );
                direction.read += chunk.len();
                assert!(direction.read <= direction.written, "nobody reads what nobody wrote");
                return true;
            }
            Taken::Finished => {
                assert!(
                    direction.finished && direction.read == direction.written,
                    "an end comes after the last byte"
                );
                direction.end_seen = true;
            }
            Taken::Ended(_) => assert!(self.cancelled.contains(&id), "only a cancel cuts a stream off"),
            Taken::Nothing => direction.reader_sleeps = true,
        }
        false
    }

    fn cancel(&mut self, side: usize, id: u32) {
        self.sides[side].mux.release(id);
        self.sides[side].held.retain(|held| *held != id);
        self.cancelled.push(id);
    }

    /// Moves frames onto the wire and off it on the other side; false if there were none.
    fn carry(&mut self, side: usize, frames: usize) -> bool {
        let ours = &mut self.sides[side];
        let made = std::iter::from_fn(|| ours.mux.next_frame(self.now)).take(frames);
        ours.towards_peer.extend(made);
        let moved = ours.towards_peer.len().min(frames);
        let arriving: Vec<Bytes> = ours.towards_peer.drain(..moved).collect();
        let theirs = &mut self.sides[1 - side];
        for frame in arriving {
            theirs
                .mux
                .on_frame(frame, self.now)
                .expect("an honest peer breaks no rule");
        }
        (0..2).for_each(|side| self.listen(side));
        moved > 0
    }

    fn listen(&mut self, side: usize) {
        let ours = &mut self.sides[side];
        while let Some(event) = ours.mux.next_event() {
            match event {
                Event::Incoming(id, _) => {
                    ours.held.push(id);
                    ours.mux.accept(id);
                }
                Event::Writable(id) => self.directions.entry((id, side)).or_default().writer_sleeps = false,
                Event::Readable(id) => self.directions.entry((id, 1 - side)).or_default().reader_sleeps = false,
                Event::Ended(id) if !self.cancelled.contains(&id) => {
                    let refused = ours.mux.is_opened(id).expect_err("it has ended");
                    assert_eq!(refused.code, OpenCode::Limit, "only memory speaks against a stream");
                    self.cancelled.push(id);
                }
                Event::Opened(_) | Event::Ended(_) | Event::GoAway(_) => {}
            }
        }
    }

    /// Carries and reads until nothing moves.
    fn settle(&mut self) {
        loop {
            let mut moved = false;
            for side in 0..2 {
                moved |= self.carry(side, usize::MAX);
                for id in self.sides[side].held.clone() {
                    moved |= self.take(side, id);
                }
            }
            if !moved {
                return;
            }
        }
    }

    /// With nothing on the wire and all read, every byte of credit is in exactly one place, and enough of it
    /// is with the writer that it can go on; nobody sleeps who could.
    fn check_credit(&self) {
        let live = self
            .directions
            .iter()
            .filter(|((id, _), _)| !self.cancelled.contains(id));
        for ((id, writer), direction) in live.filter(|(_, direction)| !direction.finished) {
            let (credit, queued) = self.sides[*writer].mux.streams[id].send.account();
            let recv = &self.sides[1 - *writer].mux.streams[id].recv;
            let (window, (unread, granted, taken)) = (recv.window(), recv.account());
            assert_eq!(unread + granted + taken, window, "the reader's books of stream {id}");
            assert_eq!(
                (queued, unread, credit),
                (0, 0, granted),
                "all is read, and both count the same credit"
            );
            assert!(credit > window / 2, "half a window that was read is granted again");
            assert!(
                !direction.writer_sleeps,
                "the writer of stream {id} was told that there is room"
            );
        }
    }

    /// Finishes everything, and finds everything finished.
    fn finish_all(&mut self) {
        for side in 0..2 {
            self.sides[side]
                .held
                .clone()
                .into_iter()
                .for_each(|id| self.finish(side, id));
        }
        self.settle();
        for ((id, writer), direction) in &self.directions {
            if !self.cancelled.contains(id) {
                assert!(direction.end_seen, "stream {id} written by {writer} reached its end");
            }
        }
        for side in &mut self.sides {
            side.held.drain(..).for_each(|id| side.mux.release(id));
        }
        self.settle();
        for side in &self.sides {
            assert_eq!(side.mux.streams(), 0, "nothing is left behind");
            assert_eq!(
                (side.pool.used(), side.mux.queued_bytes()),
                (0, 0),
                "all memory came back"
            );
            assert_eq!((side.mux.opening, side.mux.incoming), (0, 0), "nobody waits");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_order_of_doings_loses_reorders_or_blocks_a_byte(
        window in 4_096..300_000_u32,
        credits in prop_oneof![1..40_u64, 40..4_000_u64],
        frame_bytes in 1_usize..=32_768,
        ops in proptest::collection::vec(op(), 1..120),
    ) {
        // Frames of a few bytes make a run slow and show nothing that 64 do not.
        let mut world = World::new(window, frame_bytes.max(64), credits);
        for (agent, op) in &ops {
            world.apply(usize::from(*agent), op);
        }
        world.settle();
        world.check_credit();
        world.finish_all();
    }
}
