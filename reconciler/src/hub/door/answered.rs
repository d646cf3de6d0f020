//! An answer on its way to the caller: what it holds, what it counts, and its end, at which the audit line is written.

use std::any::Any;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::{Context, Poll};

use axum::body::Body;
use bytes::Bytes;
use futures_util::task::AtomicWaker;
use http::Response;
use http_body::{Body as HttpBody, Frame, SizeHint};
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;
use tokio::io::copy_bidirectional;
use tokio::time::{Instant, sleep};
use tracing::Instrument as _;

use super::audit::{Audit, Line};
use super::carry::{Carried, NotCarried, broken};
use crate::hub::tally::Tally;
use crate::limits::{AUDIT_BEGUN_AFTER, DOOR_JUDGED_AGAIN, DOOR_UNREAD_MAX};
use crate::telemetry::elapsed_ms;

/// Whether a caller may still have what is on its way.
pub(super) type Judge = Box<dyn Fn() -> bool + Send + Sync>;

/// What an answer holds for as long as it lasts: its place, and its part of its connection.
pub(super) type Held = Vec<Box<dyn Any + Send>>;

/// Writes one request's line when it is dropped.
pub(super) struct Record {
    pub(super) line: Line,
    begun: Instant,
    audit: Arc<Audit>,
    tally: Arc<Tally>,
}

impl Record {
    pub(super) fn begin(line: Line, audit: Arc<Audit>, tally: Arc<Tally>) -> Self {
        Self {
            line,
            begun: Instant::now(),
            audit,
            tally,
        }
    }

    /// Writes that what lasts has begun.
    fn begun(&self) {
        let mut line = self.line.clone();
        line.stage = "begun";
        line.duration_ms = elapsed_ms(self.begun);
        self.audit.write(line);
    }
}

impl Drop for Record {
    fn drop(&mut self) {
        let mut line = std::mem::take(&mut self.line);
        line.duration_ms = elapsed_ms(self.begun);
        self.tally.answered(line.class, line.code);
        self.audit.write(line);
    }
}

/// Answers that are on their way over one connection. They are looked at by time: a body is asked for more only while its
/// caller reads.
#[derive(Default)]
pub(super) struct Answers(Mutex<Vec<Weak<OnTheWay>>>);

/// One answer, for whoever writes it and whoever looks at it.
struct OnTheWay {
    judge: Judge,
    /// Who writes it, while it waits for more of it.
    writer: AtomicWaker,
    now: Mutex<Now>,
}

struct Now {
    record: Record,
    /// Since when what was written last waits for its caller; `None`: the answer itself is waited for.
    unread_since: Option<Instant>,
    /// Its caller may not have it any more.
    is_revoked: bool,
    /// Whether it was written that it lasts, or need not be.
    lasts: bool,
}

impl Answers {
    /// Waits until the connection has to end, since its caller reads nothing: neither within [`DOOR_UNREAD_MAX`] nor that a
    /// right was taken away. Whoever reads is told by the answer alone.
    pub(super) async fn unread(&self) {
        loop {
            sleep(DOOR_JUDGED_AGAIN).await;
            let mut answers = self.answers();
            answers.retain(|answer| answer.strong_count() > 0);
            let answers: Vec<_> = answers.iter().filter_map(Weak::upgrade).collect();
            // All of them are looked at, whatever comes of the first.
            let unread = answers.iter().filter(|answer| answer.look(Instant::now())).count();
            if unread > 0 {
                return;
            }
        }
    }

    /// Those that are over make place before there is more of it, so that there is no more than there was at a time.
    fn begin(&self, answer: &Arc<OnTheWay>) {
        let mut answers = self.answers();
        if answers.len() == answers.capacity() {
            answers.retain(|answer| answer.strong_count() > 0);
        }
        answers.push(Arc::downgrade(answer));
    }

    fn answers(&self) -> MutexGuard<'_, Vec<Weak<OnTheWay>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl OnTheWay {
    /// Whether its connection has to end.
    fn look(&self, at: Instant) -> bool {
        let is_allowed = (self.judge)();
        let mut now = self.now();
        if !is_allowed {
            now.is_revoked = true;
            now.record.line.close = REVOKED;
            self.writer.wake();
            return now.unread_since.is_some();
        }
        if now.unread_since.is_some_and(|since| at - since >= DOOR_UNREAD_MAX) {
            now.record.line.close = UNREAD;
            return true;
        }
        if !now.lasts && now.record.begun.elapsed() >= AUDIT_BEGUN_AFTER {
            now.lasts = true;
            now.record.begun();
        }
        false
    }

    fn now(&self) -> MutexGuard<'_, Now> {
        self.now.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A body that is counted, and that ends when its caller may not have it any more.
pub(super) struct Told {
    body: Body,
    answer: Arc<OnTheWay>,
    _held: Held,
}

impl Told {
    /// Wraps an answer. `judge` is asked again and again while it lasts.
    pub(super) fn wrap(
        carried: Carried,
        record: Record,
        held: Held,
        judge: Option<Judge>,
        answers: &Answers,
    ) -> Response<Body> {
        let Carried { response, spliced } = carried;
        if let Some(both) = spliced {
            // The answer's head is all of its body; what follows is bytes both ways.
            tokio::spawn(splice(both, record, held, judge).in_current_span());
            return response;
        }
        // A refusal and what anybody may have last no longer than their caller lets them wait.
        let is_judged = judge.is_some();
        let answer = Arc::new(OnTheWay {
            judge: judge.unwrap_or_else(|| Box::new(|| true)),
            writer: AtomicWaker::new(),
            now: Mutex::new(Now {
                record,
                unread_since: None,
                is_revoked: false,
                lasts: !is_judged,
            }),
        });
        answers.begin(&answer);
        response.map(|body| {
            Body::new(Self {
                body,
                answer,
                _held: held,
            })
        })
    }
}

async fn splice((caller, there): (OnUpgrade, OnUpgrade), mut record: Record, _held: Held, judge: Option<Judge>) {
    record.begun();
    let carried = async {
        let both = tokio::try_join!(caller, there);
        let (caller, there) = both.map_err(|error| close(&error))?;
        let copied = copy_bidirectional(&mut TokioIo::new(caller), &mut TokioIo::new(there)).await;
        copied.map_err(|error| close(&error))
    };
    let refused = async {
        match judge {
            None => std::future::pending().await,
            Some(judge) => {
                while judge() {
                    sleep(DOOR_JUDGED_AGAIN).await;
                }
            }
        }
    };
    tokio::select! {
        biased;
        () = refused => record.line.close = REVOKED,
        carried = carried => match carried {
            Ok((up, down)) => {
                record.line.bytes_up += up;
                record.line.bytes_down += down;
                record.line.close = DONE;
            }
            Err(close) => record.line.close = close,
        },
    }
}

const DONE: &str = "done";
const REVOKED: &str = "revoked";
const UNREAD: &str = "unread";

/// How an answer ended that broke: with the tunnel's own code where there is one.
fn close(error: &(dyn std::error::Error + 'static)) -> &'static str {
    match broken(error) {
        NotCarried::Refused(code, _) => code.as_str(),
        _ => "broken",
    }
}

impl Drop for Told {
    fn drop(&mut self) {
        let close = &mut self.answer.now().record.line.close;
        if close.is_empty() {
            *close = if self.body.is_end_stream() { DONE } else { "cancelled" };
        }
    }
}

impl HttpBody for Told {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        self.answer.writer.register(cx.waker());
        if self.answer.now().is_revoked {
            return Poll::Ready(Some(Err(axum::Error::new("the right to read this was taken away"))));
        }
        let polled = Pin::new(&mut self.body).poll_frame(cx);
        let mut now = self.answer.now();
        now.unread_since = polled.is_ready().then(Instant::now);
        match &polled {
            Poll::Ready(Some(Ok(frame))) => {
                let bytes = frame.data_ref().map_or(0, Bytes::len);
                now.record.line.bytes_down += bytes as u64;
            }
            Poll::Ready(Some(Err(error))) => now.record.line.close = close(error),
            Poll::Ready(None) => now.record.line.close = DONE,
            Poll::Pending => {}
        }
        drop(now);
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

    use http_body_util::BodyExt as _;
    use tokio::sync::mpsc;
    use tokio::time::timeout;

    use super::*;
    use crate::audit::AuditLog;

    struct Way {
        answers: Answers,
        allowed: Arc<AtomicBool>,
        body: Body,
        lines: mpsc::Receiver<String>,
    }

    /// An answer of so many pieces, after which it says nothing more and does not end.
    fn way(pieces: usize) -> Way {
        way_of(pieces, true)
    }

    /// The same, which may be a refusal, of which nobody is asked whether its caller may have it.
    fn way_of(pieces: usize, is_judged: bool) -> Way {
        let (log, lines) = AuditLog::read(10);
        let tally: Arc<Tally> = Arc::default();
        let audit = Audit::begin(log, tokio_util::sync::CancellationToken::new());
        let line = Line {
            user: "ada".to_owned(),
            verb: "get",
            ..Line::default()
        };
        let record = Record::begin(line, audit, tally);
        let some = futures_util::stream::iter((0..pieces).map(|_| Ok::<_, std::convert::Infallible>("some")));
        let endless = futures_util::StreamExt::chain(some, futures_util::stream::pending());
        let (answers, allowed) = (Answers::default(), Arc::new(AtomicBool::new(true)));
        let judged = Arc::clone(&allowed);
        let judge: Judge = Box::new(move || judged.load(Ordering::Relaxed));
        let carried = Response::new(Body::from_stream(endless)).into();
        let judge = is_judged.then_some(judge);
        let response = Told::wrap(carried, record, Held::new(), judge, &answers);
        Way {
            answers,
            allowed,
            body: response.into_body(),
            lines,
        }
    }

    /// How the answer ended, as its line says.
    fn ended(way: Way) -> String {
        let Way { body, mut lines, .. } = way;
        drop(body);
        let mut last = String::new();
        while let Ok(line) = lines.try_recv() {
            last = line;
        }
        let line: serde_json::Value = serde_json::from_str(&last).expect("a line");
        line["close"].as_str().unwrap_or_default().to_owned()
    }

    #[tokio::test(start_paused = true)]
    async fn a_right_that_is_taken_away_ends_what_its_caller_does_not_read() {
        let mut way = way(100);
        let _piece = way.body.frame().await.expect("a piece").expect("it is good");
        // From here on nothing is read.
        let early = timeout(DOOR_JUDGED_AGAIN * 10, way.answers.unread()).await;
        assert!(early.is_err(), "she may have it");
        way.allowed.store(false, Ordering::Relaxed);
        let begun = Instant::now();
        way.answers.unread().await;
        assert!(begun.elapsed() <= DOOR_JUDGED_AGAIN, "{:?}", begun.elapsed());
        assert_eq!(ended(way), "revoked");
    }

    #[tokio::test(start_paused = true)]
    async fn who_does_not_read_an_answer_loses_its_place_in_time() {
        let mut way = way(100);
        let begun = Instant::now();
        let _piece = way.body.frame().await.expect("a piece").expect("it is good");
        way.answers.unread().await;
        assert!(begun.elapsed() >= DOOR_UNREAD_MAX);
        assert!(begun.elapsed() <= DOOR_UNREAD_MAX + DOOR_JUDGED_AGAIN);
        assert_eq!(ended(way), "unread");
    }

    #[tokio::test(start_paused = true)]
    async fn a_refusal_that_its_caller_does_not_read_ends_in_time_and_is_one_line() {
        let mut way = way_of(100, false);
        let begun = Instant::now();
        let _piece = way.body.frame().await.expect("a piece").expect("it is good");
        let ended = timeout(DOOR_UNREAD_MAX * 2, way.answers.unread()).await;
        assert!(ended.is_ok(), "it is looked at too");
        assert!(begun.elapsed() >= DOOR_UNREAD_MAX);
        assert!(way.lines.try_recv().is_err(), "nothing went on");
        assert_eq!(self::ended(way), "unread");
    }

    #[tokio::test(start_paused = true)]
    async fn an_answer_that_has_nothing_to_say_is_waited_for_and_ends_with_its_right() {
        let mut way = way(1);
        let _piece = way.body.frame().await.expect("a piece").expect("it is good");
        let reading = async {
            tokio::select! {
                frame = way.body.frame() => frame,
                () = way.answers.unread() => panic!("whoever reads keeps the connection"),
            }
        };
        let mut reading = Box::pin(reading);
        assert!(
            timeout(DOOR_UNREAD_MAX * 3, reading.as_mut()).await.is_err(),
            "it lasts"
        );
        way.allowed.store(false, Ordering::Relaxed);
        let told = timeout(DOOR_JUDGED_AGAIN * 2, reading)
            .await
            .expect("it is told in time");
        assert!(told.expect("a word").is_err());
        assert_eq!(ended(way), "revoked");
    }
}
