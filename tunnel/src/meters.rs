//! What the tunnels of a process did and refused, in numbers that only rise, and what they hold now.
//!
//! One value serves all tunnels, on any thread; how it is shown, and under which names, is the caller's matter.
//! Nothing here names a peer or a target.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use tokio::time::Instant;

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

/// What became of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Handshake {
    /// It is a tunnel.
    Agreed,
    /// It took too long.
    TimedOut,
    /// No TLS came about.
    NoTls,
    /// It was no request for a tunnel.
    NoUpgrade,
    /// The peer is not who it should be, or does not speak our protocol.
    NotAgreed,
    /// There was no room for it.
    TurnedAway,
}

impl Handshake {
    /// Every outcome.
    pub const ALL: [Self; 6] = [
        Self::Agreed,
        Self::TimedOut,
        Self::NoTls,
        Self::NoUpgrade,
        Self::NotAgreed,
        Self::TurnedAway,
    ];

    /// Its name in metrics.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Agreed => "Agreed",
            Self::TimedOut => "TimedOut",
            Self::NoTls => "NoTls",
            Self::NoUpgrade => "NoUpgrade",
            Self::NotAgreed => "NotAgreed",
            Self::TurnedAway => "TurnedAway",
        }
    }
}

/// A step of a connection that becomes a tunnel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HandshakeStep {
    /// TLS, where it ends here.
    Tls,
    /// The request for a WebSocket, and its answer.
    Upgrade,
    /// HELLO, HELLO and AUTH.
    Agreement,
}

impl HandshakeStep {
    /// Every step, in order.
    pub const ALL: [Self; 3] = [Self::Tls, Self::Upgrade, Self::Agreement];

    /// Its name in metrics.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Tls => "Tls",
            Self::Upgrade => "Upgrade",
            Self::Agreement => "Agreement",
        }
    }
}

/// A step that is under way; it is counted when this is dropped, also where the step is cut off.
pub(crate) struct Timed<'a> {
    meters: &'a Meters,
    step: HandshakeStep,
    began: Instant,
}

impl Drop for Timed<'_> {
    fn drop(&mut self) {
        self.meters.handshake_times[self.step as usize].took(self.began.elapsed());
    }
}

/// Why a tunnel is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// This side closed it.
    Local,
    /// The peer did.
    Peer,
    /// The peer gave no sign of life, or took nothing.
    Dead,
    /// The peer broke the protocol.
    Violation,
    /// The socket failed.
    Connection,
    /// The process ends.
    Aborted,
}

impl End {
    /// Every end.
    pub const ALL: [Self; 6] = [
        Self::Local,
        Self::Peer,
        Self::Dead,
        Self::Violation,
        Self::Connection,
        Self::Aborted,
    ];

    /// Its name in metrics.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Local => "Local",
            Self::Peer => "Peer",
            Self::Dead => "Dead",
            Self::Violation => "Violation",
            Self::Connection => "Connection",
            Self::Aborted => "Aborted",
        }
    }
}

/// What the writer of a stream waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WaitsFor {
    /// That the peer's reader takes what it has.
    Credit,
    /// That the connection takes what is queued.
    Socket,
}

impl WaitsFor {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Credit, Self::Socket];

    /// Its name in metrics.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Credit => "Credit",
            Self::Socket => "Socket",
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

/// Upper bounds of the buckets of [`Times`], in seconds; one more has none.
const SECONDS: [f64; 10] = [0.001, 0.005, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 10.0];

/// Times, sorted by how long.
#[derive(Clone, Debug)]
pub struct Times {
    /// Upper bound in seconds, and how many are within it and above the one before.
    pub buckets: Vec<(f64, u64)>,
    /// All of them together.
    pub sum: Duration,
}

/// Times as they are counted.
#[derive(Debug, Default)]
struct Clocked {
    buckets: [AtomicU64; SECONDS.len() + 1],
    micros: AtomicU64,
}

impl Clocked {
    fn took(&self, time: Duration) {
        let seconds = time.as_secs_f64();
        let bucket = SECONDS.iter().position(|bound| seconds <= *bound);
        add(&self.buckets[bucket.unwrap_or(SECONDS.len())], 1);
        add(&self.micros, time.as_micros() as u64);
    }

    fn times(&self) -> Times {
        let bounds = SECONDS.into_iter().chain([f64::INFINITY]);
        Times {
            buckets: bounds.zip(self.buckets.iter().map(read)).collect(),
            sum: Duration::from_micros(read(&self.micros)),
        }
    }
}

/// Numbers of all tunnels of a process.
#[derive(Debug, Default)]
pub struct Meters {
    frames: [[AtomicU64; Kind::ALL.len()]; 2],
    bytes: [AtomicU64; 2],
    refusals: [AtomicU64; Limit::ALL.len()],
    go_aways: [[AtomicU64; GoAwayReason::ALL.len()]; 2],
    /// Granted, then by code.
    opens: [AtomicU64; 1 + OpenCode::ALL.len()],
    open_times: Clocked,
    handshakes: [AtomicU64; Handshake::ALL.len()],
    handshake_times: [Clocked; HandshakeStep::ALL.len()],
    rtts: Clocked,
    ends: [AtomicU64; End::ALL.len()],
    tunnels: AtomicU64,
    streams: AtomicU64,
    queued: AtomicU64,
    waiting: [AtomicU64; WaitsFor::ALL.len()],
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

    /// How long those answers took.
    #[must_use]
    pub fn open_times(&self) -> Times {
        self.open_times.times()
    }

    /// Connections that a hub accepted, by what became of them.
    #[must_use]
    pub fn handshakes(&self, end: Handshake) -> u64 {
        read(&self.handshakes[end as usize])
    }

    /// How long a step of those took, however it ended.
    #[must_use]
    pub fn handshake_times(&self, step: HandshakeStep) -> Times {
        self.handshake_times[step as usize].times()
    }

    /// Round trips, as pings measured them.
    #[must_use]
    pub fn rtts(&self) -> Times {
        self.rtts.times()
    }

    /// Tunnels that are over.
    #[must_use]
    pub fn ends(&self, end: End) -> u64 {
        read(&self.ends[end as usize])
    }

    /// Tunnels that are up.
    #[must_use]
    pub fn tunnels(&self) -> u64 {
        read(&self.tunnels)
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

    /// Streams whose writer waits.
    #[must_use]
    pub fn waiting(&self, waits_for: WaitsFor) -> u64 {
        read(&self.waiting[waits_for as usize])
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
        self.open_times.took(took);
    }

    /// Begins to time a step of a handshake.
    pub(crate) fn time(&self, step: HandshakeStep) -> Timed<'_> {
        Timed {
            meters: self,
            step,
            began: Instant::now(),
        }
    }

    pub(crate) fn shook_hands(&self, end: Handshake) {
        add(&self.handshakes[end as usize], 1);
    }

    /// A connection came that nobody had room for.
    pub fn turned_away(&self) {
        add(&self.handshakes[Handshake::TurnedAway as usize], 1);
    }

    pub(crate) fn round_trip(&self, time: Duration) {
        self.rtts.took(time);
    }

    pub(crate) fn tunnel_began(&self) {
        add(&self.tunnels, 1);
    }

    pub(crate) fn tunnel_ended(&self, end: End) {
        add(&self.ends[end as usize], 1);
        self.tunnels.fetch_sub(1, Ordering::Relaxed);
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

    pub(crate) fn waits(&self, [before, now]: [Option<WaitsFor>; 2]) {
        if before == now {
            return;
        }
        if let Some(waits_for) = before {
            self.waiting[waits_for as usize].fetch_sub(1, Ordering::Relaxed);
        }
        if let Some(waits_for) = now {
            add(&self.waiting[waits_for as usize], 1);
        }
    }
}
