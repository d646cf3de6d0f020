//! What a tunnel's driver and its streams share: the state machine under a lock, and who waits for what.
//!
//! The lock is held for single operations on the state machine and never across an await. Wakers of streams
//! are collected under it and woken after it, because a waker may be the last to hold a task and its streams.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Waker};
use std::time::Duration;

use bytes::Bytes;
use futures_util::task::AtomicWaker;
use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::{mpsc, watch};
use tokio::time::Instant;

use crate::allowance::Allowance;
use crate::backoff::Outcome;
use crate::frame::{GoAway, Open, OpenCode, Reset};
use crate::limits::PENDING_OPENS_MAX;
use crate::meters::{End, Meters};
use crate::mux::{Death, Event, Mux, Terms, Violation};

/// Why a tunnel is over.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CloseReason {
    /// We closed it and said this.
    #[error("closed by this side: {}", .0.reason)]
    Local(GoAway),
    /// The peer closed it, after this GOAWAY if it sent one.
    #[error("closed by the peer{}", .0.as_ref().map(said).unwrap_or_default())]
    Peer(Option<GoAway>),
    /// The peer gave no sign of life.
    #[error("peer is dead")]
    Dead(#[source] Death),
    /// The peer broke the protocol.
    #[error("peer broke the protocol")]
    Violation(#[source] Violation),
    /// The peer sent something that is no binary WebSocket message, or the socket failed.
    #[error("connection failed: {0}")]
    Connection(String),
    /// The task that drives the tunnel ended before its time, as at the end of a runtime.
    #[error("driver ended")]
    Aborted,
}

/// What a GOAWAY says, for people.
fn said(away: &GoAway) -> String {
    match away.text.as_str() {
        "" => format!(": {}", away.reason),
        text => format!(": {} ({text})", away.reason),
    }
}

impl CloseReason {
    fn end(&self) -> End {
        match self {
            Self::Local(_) => End::Local,
            Self::Peer(_) => End::Peer,
            Self::Dead(_) => End::Dead,
            Self::Violation(_) => End::Violation,
            Self::Connection(_) => End::Connection,
            Self::Aborted => End::Aborted,
        }
    }

    /// What this means for the next attempt, after a tunnel that lived for `life`.
    #[must_use]
    pub fn outcome(&self, life: Duration) -> Outcome {
        match self {
            Self::Peer(Some(away)) => Outcome::told_by(away).unwrap_or(Outcome::Lived(life)),
            _ => Outcome::Lived(life),
        }
    }
}

/// Which side of a stream waits.
#[derive(Clone, Copy)]
pub(crate) enum Waiting {
    Read,
    Write,
    Opening,
}

#[derive(Default)]
struct Wakers([Option<Waker>; 3]);

struct State {
    mux: Mux,
    wakers: HashMap<u32, Wakers>,
    incoming: Option<mpsc::Sender<(u32, Open)>>,
    stop: Option<GoAway>,
}

/// One tunnel, as all its parts see it.
pub(crate) struct Shared {
    state: Mutex<State>,
    driver: AtomicWaker,
    began: Instant,
    meters: Arc<Meters>,
    closed: watch::Sender<Option<CloseReason>>,
    draining: watch::Sender<Option<GoAway>>,
}

impl Shared {
    pub(crate) fn new(terms: Terms, allowance: Allowance) -> (Arc<Self>, mpsc::Receiver<(u32, Open)>) {
        // The state machine lets this many opens be undecided. Those the peer took back may stand here as well.
        let meters = Arc::clone(&allowance.meters);
        meters.tunnel_began();
        let (incoming, opens) = mpsc::channel(PENDING_OPENS_MAX);
        let mux = Mux::with_allowance(terms, allowance, Duration::ZERO);
        let state = State {
            mux,
            wakers: HashMap::new(),
            incoming: Some(incoming),
            stop: None,
        };
        let shared = Self {
            state: Mutex::new(state),
            driver: AtomicWaker::new(),
            began: Instant::now(),
            meters,
            closed: watch::Sender::new(None),
            draining: watch::Sender::new(None),
        };
        (Arc::new(shared), opens)
    }

    /// A panic under the lock would be a bug of ours; going on keeps the other streams alive.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn now(&self) -> Duration {
        self.began.elapsed()
    }

    fn with<T>(&self, act: impl FnOnce(&mut Mux) -> T) -> T {
        let mut woken = Vec::new();
        let mut state = self.lock();
        let outcome = act(&mut state.mux);
        self.dispatch(&mut state, &mut woken);
        drop(state);
        woken.into_iter().for_each(Waker::wake);
        outcome
    }

    fn dispatch(&self, state: &mut State, woken: &mut Vec<Waker>) {
        while let Some(event) = state.mux.next_event() {
            let (id, waiting): (u32, &[Waiting]) = match event {
                Event::Opened(id) => (id, &[Waiting::Opening]),
                Event::Readable(id) => (id, &[Waiting::Read]),
                Event::Writable(id) => (id, &[Waiting::Write]),
                Event::Ended(id) => (id, &[Waiting::Opening, Waiting::Read, Waiting::Write]),
                Event::Incoming(id, open) => {
                    offer(state, id, open);
                    continue;
                }
                Event::GoAway(away) => {
                    self.draining.send_replace(Some(away));
                    continue;
                }
            };
            if let Some(wakers) = state.wakers.get_mut(&id) {
                woken.extend(waiting.iter().filter_map(|waiting| wakers.0[*waiting as usize].take()));
            }
        }
    }

    /// Does something for a stream and lets the driver carry out what follows from it.
    pub(crate) fn act<T>(&self, act: impl FnOnce(&mut Mux) -> T) -> T {
        let (outcome, output) = self.with(|mux| (act(mux), mux.has_output()));
        self.wake_driver(output);
        outcome
    }

    /// Does something for a stream; if `act` gives `None`, the task waits to be woken.
    pub(crate) fn act_or_wait<T>(
        &self,
        id: u32,
        waiting: Waiting,
        cx: &Context<'_>,
        act: impl FnOnce(&mut Mux) -> Option<T>,
    ) -> Option<T> {
        let mut state = self.lock();
        let outcome = act(&mut state.mux);
        if outcome.is_none() {
            state.wakers.entry(id).or_default().0[waiting as usize] = Some(cx.waker().clone());
        }
        let mut woken = Vec::new();
        self.dispatch(&mut state, &mut woken);
        let output = state.mux.has_output();
        drop(state);
        woken.into_iter().for_each(Waker::wake);
        self.wake_driver(output);
        outcome
    }

    fn wake_driver(&self, output: bool) {
        if output {
            self.driver.wake();
        }
    }

    /// Gives a stream's id back; what it had waiting is forgotten.
    pub(crate) fn release(&self, id: u32) {
        let forgotten = {
            let mut state = self.lock();
            state.mux.release(id);
            state.wakers.remove(&id)
        };
        // Outside of the lock, because a waker may be the last to hold a task. Whoever still waits for the peer's answer
        // hears that the stream is gone.
        forgotten
            .into_iter()
            .flat_map(|wakers| wakers.0)
            .flatten()
            .for_each(Waker::wake);
        self.act(|_| ());
    }

    pub(crate) fn on_message(&self, message: Bytes) -> Result<(), Violation> {
        let now = self.now();
        self.with(|mux| mux.on_frame(message, now))
    }

    /// Moves a batch of frames out of the state machine, and at least one if there is one. Without any: when
    /// to ask again for what the bandwidth holds back.
    pub(crate) fn batch(&self, frames: &mut Vec<Bytes>) -> Option<Instant> {
        let now = self.now();
        let held_until = self.with(|mux| {
            let (mut bytes, bytes_max) = (0, mux.batch_bytes());
            while bytes < bytes_max
                && let Some(frame) = mux.next_frame(now)
            {
                bytes += frame.len();
                frames.push(frame);
            }
            if bytes == 0 { mux.held_until() } else { None }
        });
        held_until.map(|due| self.began + due)
    }

    /// Whether a batch may have something, were the bandwidth there; false means it has not.
    pub(crate) fn has_output(&self) -> bool {
        self.lock().mux.has_output()
    }

    /// The socket answers something of the WebSocket's own.
    pub(crate) fn answers(&self) {
        let now = self.now();
        self.with(|mux| mux.answers(now));
    }

    pub(crate) fn flushed(&self) {
        let now = self.now();
        self.with(|mux| mux.flushed(now));
    }

    /// Counts an open of ours that the peer did not answer in time.
    pub(crate) fn unanswered(&self, after: Duration) {
        self.meters.opened(Some(OpenCode::DialTimeout), after);
    }

    pub(crate) fn tick(&self) -> Result<Instant, Death> {
        let now = self.now();
        self.with(|mux| mux.tick(now).map(|()| mux.tick_due()))
            .map(|due| self.began + due)
    }

    pub(crate) fn rtt(&self) -> Option<Duration> {
        self.lock().mux.rtt()
    }

    pub(crate) fn streams(&self) -> usize {
        self.lock().mux.streams()
    }

    pub(crate) fn register_driver(&self, waker: &Waker) {
        self.driver.register(waker);
    }

    /// Asks the driver to end the tunnel.
    pub(crate) fn stop(&self, away: GoAway) {
        self.lock().stop.get_or_insert(away);
        self.driver.wake();
    }

    pub(crate) fn stopping(&self) -> Option<GoAway> {
        self.lock().stop.clone()
    }

    /// Ends everything at once: streams fail, waiters wake, no open comes in any more.
    pub(crate) fn close(&self, reason: CloseReason) {
        let first = self.closed.send_if_modified(|closed| {
            let first = closed.is_none();
            closed.get_or_insert(reason);
            first
        });
        if first {
            let end = self.closed.borrow().as_ref().map(CloseReason::end);
            self.meters.tunnel_ended(end.unwrap_or(End::Aborted));
            self.lock().incoming = None;
            self.with(|mux| mux.close(&Reset::new(OpenCode::Gone, "tunnel is over")));
        }
    }

    pub(crate) fn closed(&self) -> watch::Receiver<Option<CloseReason>> {
        self.closed.subscribe()
    }

    pub(crate) fn draining(&self) -> watch::Receiver<Option<GoAway>> {
        self.draining.subscribe()
    }
}

/// Hands an open to whoever answers them; without such a one, or behind too many, it is refused.
fn offer(state: &mut State, id: u32, open: Open) {
    let offered = match &state.incoming {
        Some(incoming) => incoming.try_send((id, open)),
        None => Err(TrySendError::Closed((id, open))),
    };
    let refusal = match offered {
        Ok(()) => return,
        Err(TrySendError::Full(_)) => Reset::new(OpenCode::Limit, "too many opens wait for an answer"),
        Err(TrySendError::Closed(_)) => Reset::new(OpenCode::NotAllowed, "nobody takes streams here"),
    };
    state.mux.refuse(id, refusal);
}
