//! An answer on its way to the caller: what it holds, what it counts, and its end, at which the audit line is written.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};

use axum::body::Body;
use bytes::Bytes;
use http_body::{Body as HttpBody, Frame, SizeHint};
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;
use tokio::io::copy_bidirectional;
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::{Instant, Interval, MissedTickBehavior, interval_at};
use tracing::Instrument as _;

use super::audit::{Audit, Line};
use super::tally::Tally;
use crate::limits::DOOR_JUDGED_AGAIN;

/// Whether a caller may still have what is on its way.
pub(super) type Judge = Box<dyn Fn() -> bool + Send + Sync>;

/// What an answer needs for as long as it lasts.
#[derive(Default)]
pub(super) struct Holding {
    place: Option<OwnedSemaphorePermit>,
    spliced: Option<(OnUpgrade, OnUpgrade)>,
}

impl Holding {
    /// A place among the requests to its cluster.
    pub(super) fn keep(&mut self, place: OwnedSemaphorePermit) {
        self.place = Some(place);
    }

    /// Both sides of what became another protocol.
    pub(super) fn splice(&mut self, caller: OnUpgrade, there: OnUpgrade) {
        self.spliced = Some((caller, there));
    }
}

/// Writes one request's line when it is dropped.
pub(super) struct Record {
    pub(super) line: Line,
    begun: Instant,
    audit: Arc<Audit>,
    tally: Arc<Tally>,
    up: AtomicU64,
    down: AtomicU64,
}

impl Record {
    pub(super) fn begin(line: Line, audit: Arc<Audit>, tally: Arc<Tally>) -> Self {
        Self {
            line,
            begun: Instant::now(),
            audit,
            tally,
            up: AtomicU64::new(0),
            down: AtomicU64::new(0),
        }
    }

    /// Notes bytes that the caller sent.
    pub(super) fn sent(&self, bytes: u64) {
        self.up.fetch_add(bytes, Ordering::Relaxed);
    }
}

impl Drop for Record {
    fn drop(&mut self) {
        let mut line = std::mem::take(&mut self.line);
        line.bytes_up = self.up.load(Ordering::Relaxed);
        line.bytes_down = self.down.load(Ordering::Relaxed);
        line.duration_ms = u64::try_from(self.begun.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.tally.answered(line.class, line.code);
        self.audit.write(line);
    }
}

/// A body that is counted, and that ends when its caller may not have it any more.
pub(super) struct Told {
    body: Body,
    record: Record,
    _holding: Holding,
    judge: Option<(Judge, Interval)>,
    /// Counts as a request of its connection.
    _busy: Box<dyn std::any::Any + Send>,
}

impl Told {
    /// Wraps an answer. `judge` is asked again and again while it lasts.
    pub(super) fn wrap(
        body: Body,
        record: Record,
        mut holding: Holding,
        judge: Option<Judge>,
        busy: Box<dyn std::any::Any + Send>,
    ) -> Body {
        let judge = judge.map(|judge| {
            let mut again = interval_at(Instant::now() + DOOR_JUDGED_AGAIN, DOOR_JUDGED_AGAIN);
            again.set_missed_tick_behavior(MissedTickBehavior::Delay);
            (judge, again)
        });
        if let Some((caller, there)) = holding.spliced.take() {
            // The answer's head is all of its body; what follows is bytes both ways.
            tokio::spawn(splice(caller, there, record, holding, judge, busy).in_current_span());
            return body;
        }
        Body::new(Self {
            body,
            record,
            _holding: holding,
            judge,
            _busy: busy,
        })
    }
}

async fn splice(
    caller: OnUpgrade,
    there: OnUpgrade,
    record: Record,
    _holding: Holding,
    judge: Option<(Judge, Interval)>,
    _busy: Box<dyn std::any::Any + Send>,
) {
    let carried = async {
        let (caller, there) = tokio::try_join!(caller, there).ok()?;
        copy_bidirectional(&mut TokioIo::new(caller), &mut TokioIo::new(there))
            .await
            .ok()
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
        () = refused => {}
        carried = carried => if let Some((up, down)) = carried {
            record.sent(up);
            record.down.fetch_add(down, Ordering::Relaxed);
        },
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
                return Poll::Ready(Some(Err(axum::Error::new("the right to read this was taken away"))));
            }
        }
        let polled = Pin::new(&mut self.body).poll_frame(cx);
        if let Poll::Ready(Some(Ok(frame))) = &polled {
            let bytes = frame.data_ref().map_or(0, Bytes::len);
            self.record.down.fetch_add(bytes as u64, Ordering::Relaxed);
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
