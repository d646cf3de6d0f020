//! Follows a watch: what is there, what happens, and where it stands when nothing does. In: a plan. Out: a
//! body of JSON lines that ends with the watch's time, a dropped connection, or a gap in what is remembered.

use std::collections::VecDeque;
use std::io;

use bytes::Bytes;
use futures_util::stream;
use http::{Response, header};
use http_body::Frame;
use http_body_util::{BodyExt as _, StreamBody};
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};

use crate::cluster::{ApiServer, Body};
use crate::failure::Failure;
use crate::limits::{BOOKMARK_EVERY, WATCH_BATCH_EVENTS_MAX};
use crate::store::{Change, Event};
use crate::table;
use crate::verbs::Plan;

/// A watch under way.
struct Watching {
    server: ApiServer,
    plan: Plan,
    lines: VecDeque<Bytes>,
    changes: watch::Receiver<u64>,
    drops: watch::Receiver<u64>,
    silences: watch::Receiver<u64>,
    /// Whether a row was shown, so that the next ones need no columns.
    shown: bool,
    ended: bool,
    ends: Instant,
    bookmark: Instant,
}

/// The response that a watch is.
pub(crate) fn response(server: ApiServer, plan: Plan) -> Response<Body> {
    let watching = Watching::new(server, plan);
    let frames = stream::unfold(watching, |mut watching| async move {
        let line = watching.next().await?;
        Some((Ok::<_, io::Error>(Frame::data(line)), watching))
    });
    Response::builder()
        .header(header::CONTENT_TYPE, "application/json")
        .body(StreamBody::new(frames).boxed_unsync())
        .expect("a constant header is valid")
}

impl Watching {
    fn new(server: ApiServer, mut plan: Plan) -> Self {
        let now = Instant::now();
        let initial = std::mem::take(&mut plan.initial);
        let mut watching = Self {
            changes: server.changes(),
            drops: server.faults().watch_drops(),
            silences: server.faults().watch_silences(),
            server,
            lines: VecDeque::new(),
            shown: false,
            ended: false,
            ends: now + plan.lasts,
            bookmark: now + BOOKMARK_EVERY,
            plan,
        };
        for object in initial {
            watching.push("ADDED", &object);
        }
        if watching.plan.mark_end {
            watching.push_bookmark(true);
        }
        watching
    }

    /// The next line. Cancel-safe: nothing is taken before it is returned.
    async fn next(&mut self) -> Option<Bytes> {
        loop {
            if let Some(line) = self.lines.pop_front() {
                return Some(line);
            }
            if self.ended {
                return None;
            }
            self.changes.borrow_and_update();
            if self.read() {
                continue;
            }
            tokio::select! {
                biased;
                _ = self.drops.changed() => return None,
                _ = self.silences.changed() => std::future::pending().await,
                () = sleep_until(self.ends) => self.ended = true,
                changed = self.changes.changed() => self.ended = changed.is_err(),
                () = sleep_until(self.bookmark) => {
                    self.bookmark = Instant::now() + BOOKMARK_EVERY;
                    if self.plan.bookmarks {
                        self.push_bookmark(false);
                    }
                }
            }
        }
    }

    /// Reads what happened since; whether there may be more to say.
    fn read(&mut self) -> bool {
        let (events, version, oldest) = {
            let state = self.server.state();
            let events = state.events(&self.plan.kind.shelf, self.plan.after, WATCH_BATCH_EVENTS_MAX);
            (events, state.version(), state.oldest())
        };
        let Some(events) = events else {
            let message = format!("too old resource version: {} ({oldest})", self.plan.after);
            self.line("ERROR", &Failure::expired(message).status());
            self.ended = true;
            return true;
        };
        let full = events.len() == WATCH_BATCH_EVENTS_MAX;
        let some = !events.is_empty();
        for event in events {
            self.plan.after = event.version;
            self.tell(&event);
        }
        if !full {
            // A version from the future stays: nothing is told until the cluster comes by it.
            self.plan.after = self.plan.after.max(version);
        }
        some
    }

    fn tell(&mut self, event: &Event) {
        match &event.change {
            Change::Added(after) => {
                if let Some(object) = self.plan.shown(after) {
                    self.push("ADDED", &object);
                }
            }
            Change::Modified { before, after } => {
                let was = self.plan.shown(&before.at(event.version));
                match (was, self.plan.shown(after)) {
                    (Some(_), Some(object)) => self.push("MODIFIED", &object),
                    (None, Some(object)) => self.push("ADDED", &object),
                    (Some(was), None) => self.push("DELETED", &was),
                    (None, None) => {}
                }
            }
            Change::Deleted { last, .. } => {
                if let Some(object) = self.plan.shown(last) {
                    self.push("DELETED", &object);
                }
            }
        }
    }

    fn push(&mut self, kind: &str, object: &Value) {
        let shown = table::watched(&self.plan.kind, self.plan.form, object, &self.plan.query, !self.shown);
        self.shown = true;
        self.line(kind, &shown);
    }

    fn push_bookmark(&mut self, ends_initial: bool) {
        let bookmark = table::bookmark(&self.plan.kind, self.plan.form, self.plan.after, ends_initial);
        self.line("BOOKMARK", &bookmark);
    }

    fn line(&mut self, kind: &str, object: &Value) {
        let line = format!("{}\n", json!({"type": kind, "object": object}));
        self.lines.push_back(line.into());
    }
}
