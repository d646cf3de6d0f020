//! What the tunnels of a process did and refused, in numbers that only rise, and what they hold now.
//!
//! One value serves all tunnels, on any thread; how it is shown, and under which names, is the caller's matter.
//! Nothing here names a peer or a target.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use crate::frame::{GoAwayReason, Kind, OpenCode};

/// A limit that something was refused by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// Too many streams are open.
    Streams,
    /// Too many opens wait for an answer.
    PendingOpens,
    /// Too many opens came within too short a time.
    OpenRate,
    /// The process's memory for windows is used up.
    Memory,
    /// Too many control frames wait for a peer that does not read.
    ControlFrames,
}

impl Limit {
    /// Every limit.
    pub const ALL: [Self; 5] = [
        Self::Streams,
        Self::PendingOpens,
        Self::OpenRate,
        Self::Memory,
        Self::ControlFrames,
    ];

    /// Its name in metrics.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Streams => "Streams",
            Self::PendingOpens => "PendingOpens",
            Self::OpenRate => "OpenRate",
            Self::Memory => "Memory",
            Self::ControlFrames => "ControlFrames",
        }
    }

    /// What whoever is refused by it is told.
    pub(crate) fn text(self) -> &'static str {
        match self {
            Self::Streams => "too many streams are open",
            Self::PendingOpens => "too many opens wait for an answer",
            Self::OpenRate => "too many opens within a second",
            Self::Memory => "memory for streams is used up",
            Self::ControlFrames => "the peer does not read",
        }
    }
}

/// Which way something went, seen from this process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// From the peer.
    In,
    /// To the peer.
    Out,
}

/// Upper bounds of the times in [`Meters::open_times`], in seconds; one more bucket has none.
pub const OPEN_SECONDS: [f64; 8] = [0.001, 0.005, 0.02, 0.05, 0.1, 0.5, 2.0, 10.0];

/// Numbers of all tunnels of a process.
#[derive(Debug, Default)]
pub struct Meters {
    frames: [[AtomicU64; Kind::ALL.len()]; 2],
    bytes: [AtomicU64; 2],
    refusals: [AtomicU64; Limit::ALL.len()],
    go_aways: [[AtomicU64; GoAwayReason::ALL.len()]; 2],
    /// Granted, then by code.
    opens: [AtomicU64; 1 + OpenCode::ALL.len()],
    open_buckets: [AtomicU64; OPEN_SECONDS.len() + 1],
    open_micros: AtomicU64,
    streams: AtomicU64,
    queued: AtomicU64,
}

fn read(counter: &AtomicU64) -> u64 {
    counter.load(Ordering::Relaxed)
}

fn add(counter: &AtomicU64, number: u64) {
    counter.fetch_add(number, Ordering::Relaxed);
}

impl Meters {
    /// The one of this process.
    #[must_use]
    pub fn of_process() -> Arc<Self> {
        static METERS: LazyLock<Arc<Meters>> = LazyLock::new(Arc::default);
        Arc::clone(&METERS)
    }

    /// Frames of a kind.
    #[must_use]
    pub fn frames(&self, direction: Direction, kind: Kind) -> u64 {
        read(&self.frames[direction as usize][kind.index()])
    }

    /// Payload of DATA frames.
    #[must_use]
    pub fn bytes(&self, direction: Direction) -> u64 {
        read(&self.bytes[direction as usize])
    }

    /// What a limit refused, of the peer's and of ours.
    #[must_use]
    pub fn refusals(&self, limit: Limit) -> u64 {
        read(&self.refusals[limit as usize])
    }

    /// GOAWAYs for a reason.
    #[must_use]
    pub fn go_aways(&self, direction: Direction, reason: GoAwayReason) -> u64 {
        read(&self.go_aways[direction as usize][reason.index()])
    }

    /// Opens of ours that were answered: granted (`None`) or refused with a code.
    #[must_use]
    pub fn opens(&self, refused: Option<OpenCode>) -> u64 {
        read(&self.opens[refused.map_or(0, |code| 1 + code.index())])
    }

    /// How many of our opens were answered within each bound of [`OPEN_SECONDS`] and above the one before; the
    /// last number is of those above all. Beside it the sum of all times.
    #[must_use]
    pub fn open_times(&self) -> ([u64; OPEN_SECONDS.len() + 1], Duration) {
        let buckets = std::array::from_fn(|bucket| read(&self.open_buckets[bucket]));
        (buckets, Duration::from_micros(read(&self.open_micros)))
    }

    /// Streams whose ids are not yet released.
    #[must_use]
    pub fn streams(&self) -> u64 {
        read(&self.streams)
    }

    /// Bytes that were written to streams and wait for their turn on the wire.
    #[must_use]
    pub fn queued_bytes(&self) -> u64 {
        read(&self.queued)
    }

    pub(crate) fn frame(&self, direction: Direction, kind: Kind) {
        add(&self.frames[direction as usize][kind.index()], 1);
    }

    pub(crate) fn data(&self, direction: Direction, bytes: usize) {
        add(&self.bytes[direction as usize], bytes as u64);
    }

    pub(crate) fn refused(&self, limit: Limit) {
        add(&self.refusals[limit as usize], 1);
    }

    pub(crate) fn go_away(&self, direction: Direction, reason: GoAwayReason) {
        add(&self.go_aways[direction as usize][reason.index()], 1);
    }

    pub(crate) fn opened(&self, refused: Option<OpenCode>, took: Duration) {
        add(&self.opens[refused.map_or(0, |code| 1 + code.index())], 1);
        let seconds = took.as_secs_f64();
        let bucket = OPEN_SECONDS.iter().position(|bound| seconds <= *bound);
        add(&self.open_buckets[bucket.unwrap_or(OPEN_SECONDS.len())], 1);
        add(&self.open_micros, took.as_micros() as u64);
    }

    pub(crate) fn stream_began(&self) {
        add(&self.streams, 1);
    }

    pub(crate) fn streams_ended(&self, count: usize) {
        self.streams.fetch_sub(count as u64, Ordering::Relaxed);
    }

    pub(crate) fn queued(&self, bytes: usize) {
        add(&self.queued, bytes as u64);
    }

    pub(crate) fn unqueued(&self, bytes: usize) {
        self.queued.fetch_sub(bytes as u64, Ordering::Relaxed);
    }
}
