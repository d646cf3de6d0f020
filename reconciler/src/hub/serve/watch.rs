//! A watch: the difference between what a client was sent and what is so, again and again.
//!
//! It reacts to levels: however often something changed between two looks, the client hears of the last.
//! What waits to be sent is one difference, as pointers to objects that all answers share, so a client that reads slowly
//! costs nothing more; they become text when they are sent.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::Stream;
use serde_json::{Value, json};
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

use super::answer::Refused;
use super::query::Query;
use super::shelf::{Item, Shelf};
use super::store::{Store, WATCH_POLL};
use super::table::Shape;
use crate::limits::API_BATCH;

/// How often a client that wants them hears a version without a change.
const BOOKMARK_EVERY: Duration = Duration::from_secs(60);

/// One watch.
pub(super) struct Watch {
    pub(super) store: Arc<Store>,
    pub(super) shape: Shape,
    pub(super) query: Query,
    pub(super) shutdown: CancellationToken,
    /// Its place among the watches that run at once.
    pub(super) _permit: OwnedSemaphorePermit,
}

/// What the client was sent, and what waits to be sent.
struct Progress {
    watch: Watch,
    /// The shelf that the client knows, as far as it asked for it.
    sent: Arc<Shelf>,
    waiting: VecDeque<Event>,
    version: u64,
    started: bool,
    ended: bool,
    deadline: Instant,
    bookmark: Instant,
}

/// What is to be sent.
enum Event {
    /// An object came, changed or went, at a version.
    Object(&'static str, Arc<Item>, u64),
    /// A version without a change; whether the objects that there were are all sent.
    Bookmark(u64, bool),
    /// The client has to list again.
    Expired,
}

impl Watch {
    /// Its events, one JSON object a line, until its time is over.
    pub(super) fn events(self) -> impl Stream<Item = Result<Bytes, Infallible>> + Send {
        let now = Instant::now();
        let progress = Progress {
            deadline: now + self.query.watch_timeout(),
            bookmark: now + BOOKMARK_EVERY,
            watch: self,
            sent: Arc::default(),
            waiting: VecDeque::new(),
            version: 0,
            started: false,
            ended: false,
        };
        futures_util::stream::unfold(progress, |mut progress| async move {
            let chunk = progress.chunk().await?;
            Some((Ok(chunk), progress))
        })
    }
}

impl Progress {
    /// The next events; `None` at the end.
    async fn chunk(&mut self) -> Option<Bytes> {
        while self.waiting.is_empty() {
            if self.ended || Instant::now() >= self.deadline {
                return None;
            }
            if self.started {
                tokio::select! {
                    biased;
                    () = self.watch.shutdown.cancelled() => return None,
                    () = sleep(WATCH_POLL) => {}
                }
            }
            let shelf = self.watch.store.shelf(self.watch.shape.resource).await;
            if self.started {
                self.look(&shelf);
            } else {
                self.start(&shelf);
            }
        }
        let count = self.waiting.len().min(API_BATCH);
        let mut chunk = Vec::new();
        for event in self.waiting.drain(..count) {
            chunk.extend_from_slice(written(&self.watch.shape, event).to_string().as_bytes());
            chunk.push(b'\n');
        }
        Some(Bytes::from(chunk))
    }

    fn start(&mut self, shelf: &Arc<Shelf>) {
        self.started = true;
        let from = self.watch.query.resource_version.as_str();
        if matches!(from, "" | "0") || self.watch.query.initial_events {
            self.look(shelf);
            if self.watch.query.initial_events && self.watch.query.bookmarks {
                self.waiting.push_back(Event::Bookmark(shelf.version, true));
            }
            return;
        }
        let known = from.parse().ok();
        match known.and_then(|version| Some((version, shelf.gone_since(version)?))) {
            Some((version, gone)) => {
                let deleted: Vec<_> = gone
                    .filter(|item| self.watch.query.selects(&item.object))
                    .cloned()
                    .collect();
                for item in deleted {
                    let version = item.version;
                    self.push("DELETED", &item, version);
                }
                self.resume(shelf, version);
            }
            None => {
                self.waiting.push_back(Event::Expired);
                self.ended = true;
            }
        }
    }

    /// Goes on from a version that the client has.
    fn resume(&mut self, shelf: &Arc<Shelf>, version: u64) {
        self.version = shelf.version;
        for item in shelf.items.values().filter(|item| item.version > version) {
            let (selected, known) = (self.watch.query.selects(&item.object), item.created <= version);
            match (selected, known) {
                (true, true) => self.push("MODIFIED", item, item.version),
                (true, false) => self.push("ADDED", item, item.version),
                // Its labels may have been others before; a client that never heard of it lets this be.
                (false, true) if self.watch.query.names(&item.object) => self.push("DELETED", item, item.version),
                (false, _) => {}
            }
        }
        self.sent = Arc::clone(shelf);
    }

    fn look(&mut self, shelf: &Arc<Shelf>) {
        if self.version != shelf.version {
            self.version = shelf.version;
            self.difference(shelf);
        } else if self.watch.query.bookmarks && Instant::now() >= self.bookmark {
            self.bookmark = Instant::now() + BOOKMARK_EVERY;
            self.waiting.push_back(Event::Bookmark(shelf.version, false));
        }
    }

    fn difference(&mut self, shelf: &Arc<Shelf>) {
        let before = std::mem::replace(&mut self.sent, Arc::clone(shelf));
        for (key, item) in &shelf.items {
            let known = before.items.get(key);
            // Most are as they were, and are not asked about again.
            if known.is_some_and(|known| Arc::ptr_eq(known, item)) || !self.selects(item) {
                continue;
            }
            match known.filter(|known| self.selects(known)) {
                None => self.push("ADDED", item, item.version),
                Some(known) if known.created != item.created => {
                    self.push("DELETED", known, known.version);
                    self.push("ADDED", item, item.version);
                }
                Some(known) if known.version != item.version => self.push("MODIFIED", item, item.version),
                Some(_) => {}
            }
        }
        for (key, item) in &before.items {
            let stays = shelf.items.get(key);
            let stays = stays.is_some_and(|now| Arc::ptr_eq(now, item) || self.selects(now));
            if !stays && self.selects(item) {
                // The version at which it went, so that a client that goes on from here does not hear it twice.
                self.push("DELETED", item, shelf.version);
            }
        }
    }

    fn selects(&self, item: &Item) -> bool {
        self.watch.query.selects(&item.object)
    }

    fn push(&mut self, kind: &'static str, item: &Arc<Item>, version: u64) {
        self.waiting.push_back(Event::Object(kind, Arc::clone(item), version));
    }
}

/// An event as the client reads it.
fn written(shape: &Shape, event: Event) -> Value {
    match event {
        Event::Object(kind, item, version) if item.version == version => {
            json!({ "type": kind, "object": shape.one(&item) })
        }
        Event::Object(kind, item, version) => {
            let item = Item {
                version,
                ..Item::clone(&item)
            };
            json!({ "type": kind, "object": shape.one(&Arc::new(item)) })
        }
        Event::Bookmark(version, initial_events_end) => {
            let object = shape.bookmark(version, initial_events_end);
            json!({ "type": "BOOKMARK", "object": object })
        }
        Event::Expired => json!({ "type": "ERROR", "object": Refused::expired().status() }),
    }
}
