//! An answer on its way to the caller: what it holds, what it counts, and its end, at which the audit line is written.

use std::any::Any;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use axum::body::Body;
use bytes::Bytes;
use http::Response;
use http_body::{Body as HttpBody, Frame, SizeHint};
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;
use tokio::io::copy_bidirectional;
use tokio::time::{Instant, Interval, MissedTickBehavior, interval_at};
use tracing::Instrument as _;

use super::audit::{Audit, Line};
use super::carry::{Carried, NotCarried, broken};
use super::tally::Tally;
use crate::limits::{AUDIT_BEGUN_AFTER, DOOR_JUDGED_AGAIN};
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

/// A body that is counted, and that ends when its caller may not have it any more.
pub(super) struct Told {
    body: Body,
    record: Record,
    _held: Held,
    judge: Option<(Judge, Interval)>,
    /// Whether it was written that it lasts.
    lasts: bool,
}

impl Told {
    /// Wraps an answer. `judge` is asked again and again while it lasts.
    pub(super) fn wrap(carried: Carried, record: Record, held: Held, judge: Option<Judge>) -> Response<Body> {
        let judge = judge.map(|judge| {
            let mut again = interval_at(Instant::now() + DOOR_JUDGED_AGAIN, DOOR_JUDGED_AGAIN);
            again.set_missed_tick_behavior(MissedTickBehavior::Delay);
            (judge, again)
        });
        let Carried { response, spliced } = carried;
        if let Some(both) = spliced {
            // The answer's head is all of its body; what follows is bytes both ways.
            tokio::spawn(splice(both, record, held, judge).in_current_span());
            return response;
        }
        response.map(|body| {
            Body::new(Self {
                body,
                record,
                _held: held,
                judge,
                lasts: false,
            })
        })
    }
}

async fn splice(
    (caller, there): (OnUpgrade, OnUpgrade),
    mut record: Record,
    _held: Held,
    judge: Option<(Judge, Interval)>,
) {
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
            Some((judge, mut again)) => {
                while judge() {
                    again.tick().await;
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

/// How an answer ended that broke: with the tunnel's own code where there is one.
fn close(error: &(dyn std::error::Error + 'static)) -> &'static str {
    match broken(error) {
        NotCarried::Refused(code, _) => code.as_str(),
        _ => "broken",
    }
}

impl Drop for Told {
    fn drop(&mut self) {
        if self.record.line.close.is_empty() {
            let is_whole = self.body.is_end_stream();
            self.record.line.close = if is_whole { DONE } else { "cancelled" };
        }
    }
}

impl HttpBody for Told {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        if let Some((judge, again)) = &mut self.judge
            && again.poll_tick(cx).is_ready()
        {
            // Also asks to be woken at the next one.
            let _next = again.poll_tick(cx);
            if !judge() {
                self.record.line.close = REVOKED;
                return Poll::Ready(Some(Err(axum::Error::new("the right to read this was taken away"))));
            }
            if !self.lasts && self.record.begun.elapsed() >= AUDIT_BEGUN_AFTER {
                self.lasts = true;
                self.record.begun();
            }
        }
        let polled = Pin::new(&mut self.body).poll_frame(cx);
        match &polled {
            Poll::Ready(Some(Ok(frame))) => {
                let bytes = frame.data_ref().map_or(0, Bytes::len);
                self.record.line.bytes_down += bytes as u64;
            }
            Poll::Ready(Some(Err(error))) => self.record.line.close = close(error),
            Poll::Ready(None) => self.record.line.close = DONE,
            Poll::Pending => {}
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
