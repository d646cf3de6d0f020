//! What the audit log says of one stream: a line in all, or one of each request where those of a person follow one another.

use std::mem;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use jiff::Timestamp;
use render::access::Attributes;
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::{Instant, sleep, timeout_at};

use crate::audit::{AuditLog, Begun, Folded, Reserved, Share, StreamLine};
use crate::limits::{AUDIT_BEGUN_AFTER, AUDIT_LOOK, AUDIT_ROOM_TIMEOUT};
use crate::wire::Caller;

/// How a stream or a request ended that nobody cut off.
pub(super) const DONE: &str = "done";

/// The audit log of streams, in which watches that are alike share a line.
pub(super) struct Log {
    pub(super) audit: AuditLog,
    folded: Mutex<Folded<StreamLine>>,
}

/// What is told of one stream.
pub(in crate::agent) struct Talk {
    log: Arc<Log>,
    now: Mutex<Now>,
}

struct Now {
    /// What each line of the stream says.
    stream: StreamLine,
    /// The last line; what became of its requests is told in it once it is written.
    begun: Begun,
    /// It is written down, and no other request came yet.
    is_between: bool,
    /// Bytes that had gone over the stream by then.
    before: [u64; 2],
    /// It is written that it lasts.
    is_told: bool,
    /// Each request has a line of its own.
    is_kept: bool,
    /// All of the answer was taken from where it came.
    is_over: bool,
    requests: u64,
    asked: Option<Attributes>,
    code: Option<u16>,
    /// What the request that is under way holds until it is answered.
    holds: Holds,
}

/// What a request holds.
#[derive(Default)]
struct Holds {
    line: Option<Reserved>,
    place: Option<OwnedSemaphorePermit>,
}

impl Log {
    pub(super) fn new(audit: AuditLog) -> Self {
        Self {
            audit,
            folded: Mutex::default(),
        }
    }

    fn folded(&self) -> MutexGuard<'_, Folded<StreamLine>> {
        self.folded.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn fold(&self, line: StreamLine) -> Option<StreamLine> {
        self.folded().fold(line, Instant::now())
    }

    /// Writes what it left out of watches that are alike, and tells of lines that were lost by `tell`, for ever.
    pub(super) async fn write_folded(&self, tell: impl Fn()) {
        loop {
            sleep(AUDIT_LOOK).await;
            let due = self.folded().due(Instant::now());
            self.write_all(due, Instant::now() + AUDIT_ROOM_TIMEOUT).await;
            tell();
        }
    }

    /// Writes all that it left out.
    pub(super) async fn write_rest(&self, deadline: Instant) {
        let rest = self.folded().rest();
        self.write_all(rest, deadline).await;
    }

    async fn write_all(&self, lines: Vec<StreamLine>, deadline: Instant) {
        for line in lines {
            self.audit.write_until(&line, deadline).await;
        }
    }
}

impl Talk {
    /// Of a stream that was asked for now.
    pub(super) fn begin(stream: StreamLine, log: Arc<Log>) -> Arc<Self> {
        let now = Now {
            begun: Begun::new(stream.clone()),
            stream,
            is_between: false,
            before: [0; 2],
            is_told: false,
            is_kept: false,
            is_over: false,
            requests: 0,
            asked: None,
            code: None,
            holds: Holds::default(),
        };
        Arc::new(Self {
            log,
            now: Mutex::new(now),
        })
    }

    fn now(&self) -> MutexGuard<'_, Now> {
        self.now.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes over who asks.
    pub(super) fn is_of(&self, caller: &Caller) {
        let mut now = self.now();
        now.stream.asked_by(caller);
        now.begun.tell(|line| line.asked_by(caller));
    }

    /// Takes over the address that was dialled.
    pub(super) fn leads_to(&self, address: String) {
        self.now().begun.tell(|line| line.address = address);
    }

    pub(super) fn up(&self, bytes: usize) {
        self.now().begun.bytes.up(bytes);
    }

    pub(super) fn down(&self, bytes: usize) {
        self.now().begun.bytes.down(bytes);
    }

    /// Makes sure that the next line can be written; whoever is served without it may be seen by nobody.
    pub(super) async fn reserve(&self) -> bool {
        let line = self.log.audit.reserve().await;
        let is_reserved = line.is_some();
        self.now().holds.line = line;
        is_reserved
    }

    /// Whether a request that comes now follows another one that has its line.
    pub(super) fn is_between(&self) -> bool {
        self.now().is_between
    }

    /// A request came, under this id if it has one of its own.
    pub(super) fn asks(&self, request_id: Option<&str>, asked: Option<Attributes>) {
        let mut now = self.now();
        if now.is_between {
            let line = StreamLine {
                time: Timestamp::now().to_string(),
                ..now.stream.clone()
            };
            now.begun = now.begun.next(line, now.before);
            now.is_between = false;
        }
        if let Some(id) = request_id {
            now.begun.tell(|line| id.clone_into(&mut line.request_id));
        }
        now.requests += 1;
        now.asked = asked;
    }

    pub(super) fn is_answered(&self, code: u16) {
        self.now().code = Some(code);
    }

    /// The request has its line once it is answered, and gives its place back then: another may follow it.
    pub(super) fn keep(&self, place: OwnedSemaphorePermit) {
        let mut now = self.now();
        now.is_kept = true;
        now.holds.place = Some(place);
    }

    /// None follows this request.
    pub(super) fn is_last(&self) {
        self.now().is_kept = false;
    }

    /// All of an answer was taken from where it came.
    pub(super) fn is_over(&self) {
        self.now().is_over = true;
    }

    /// All that was taken is on the stream.
    pub(super) fn is_flushed(&self) {
        let ended = {
            let mut now = self.now();
            (now.is_kept && now.is_over).then(|| now.end(DONE))
        };
        if let Some((Some(line), holds)) = ended {
            self.write_soon(line, holds);
        }
    }

    fn write_soon(&self, line: StreamLine, holds: Holds) {
        match (self.log.fold(line), holds.line) {
            (Some(line), Some(reserved)) => reserved.write(&line),
            (Some(line), None) => self.log.audit.write_soon(&line, Share::Whole),
            (None, _) => {}
        }
    }

    /// Waits for what is carried. What lasts has a line while it does.
    pub(super) async fn lasting<T>(&self, carried: impl Future<Output = T>) -> T {
        let mut carried = std::pin::pin!(carried);
        loop {
            let Some(look) = self.now().next_look() else {
                return carried.await;
            };
            if let Ok(ended) = timeout_at(look, carried.as_mut()).await {
                return ended;
            }
            let lasts = self.now().lasts();
            if let Some(line) = lasts {
                self.write_soon(line, Holds::default());
            }
        }
    }

    /// The stream ended so: what it was at has its line.
    pub(super) async fn end(&self, close: &'static str) {
        let (line, holds) = self.now().end(close);
        let Some(line) = line else { return };
        if holds.line.is_some() {
            self.write_soon(line, holds);
        } else if let Some(line) = self.log.fold(line) {
            self.log.audit.write(&line).await;
        }
    }

    /// The stream was not served. It has no place, so that nothing bounds how many would wait.
    pub(super) fn refuse(&self, close: &'static str) {
        if let (Some(line), _) = self.now().end(close) {
            self.log.audit.write_soon(&line, Share::Half);
        }
    }
}

impl Now {
    /// When a line is due at the earliest that says that something lasts. What is yet to come is due later.
    fn next_look(&self) -> Option<Instant> {
        match self.is_between || self.is_told {
            false => Some(self.begun.lasts_at()),
            true => (self.is_kept || self.requests == 0).then(|| Instant::now() + AUDIT_BEGUN_AFTER),
        }
    }

    fn lasts(&mut self) -> Option<StreamLine> {
        let is_due = !self.is_between && !self.is_told && self.begun.lasts_at() <= Instant::now();
        is_due.then(|| {
            self.is_told = true;
            self.with_answers(self.begun.lasts())
        })
    }

    /// The line of what ended so, unless it has one, and what it held.
    fn end(&mut self, close: &'static str) -> (Option<StreamLine>, Holds) {
        let line = (!self.is_between).then(|| self.with_answers(self.begun.ended(close)));
        self.before = self.begun.bytes.so_far();
        (self.is_between, self.is_told, self.is_over) = (true, false, false);
        (self.requests, self.asked, self.code) = (0, None, None);
        (line, mem::take(&mut self.holds))
    }

    /// With what was asked, and how it was answered. Of several requests only their number is told.
    fn with_answers(&self, mut line: StreamLine) -> StreamLine {
        line.code = self.code;
        if self.requests > 1 {
            line.requests = self.requests;
        } else if let Some(attributes) = &self.asked {
            line.asked(attributes);
        }
        line
    }
}
