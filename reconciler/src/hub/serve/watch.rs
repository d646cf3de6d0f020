//! A watch: the difference between what a client was sent and what is so, again and again.
//!
//! It reacts to levels: however often something changed between two looks, the client hears of the last.
//! What waits to be sent is one difference, so a client that reads slowly costs nothing more.

use std::collections::{BTreeMap, VecDeque};
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
use super::shelf::{Item, Key, Shelf};
use super::store::{Store, WATCH_POLL};
use super::table::Shape;

/// How often a client that wants them hears a version without a change.
const BOOKMARK_EVERY: Duration = Duration::from_secs(60);

/// Events written at once.
const BATCH: usize = 64;

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
    sent: BTreeMap<Key, Arc<Item>>,
    waiting: VecDeque<Value>,
    version: u64,
    started: bool,
    ended: bool,
    deadline: Instant,
    bookmark: Instant,
}

impl Watch {
    /// Its events, one JSON object a line, until its time is over.
    pub(super) fn events(self) -> impl Stream<Item = Result<Bytes, Infallible>> + Send {
        let now = Instant::now();
        let progress = Progress {
            deadline: now + self.query.watch_timeout(),
            bookmark: now + BOOKMARK_EVERY,
            watch: self,
            sent: BTreeMap::new(),
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
                self.look(&shelf)
            } else {
                self.start(&shelf)
            }
        }
        let count = self.waiting.len().min(BATCH);
        let mut chunk = Vec::new();
        for event in self.waiting.drain(..count) {
            chunk.extend_from_slice(event.to_string().as_bytes());
            chunk.push(b'\n');
        }
        Some(Bytes::from(chunk))
    }

    fn start(&mut self, shelf: &Shelf) {
        self.started = true;
        let from = self.watch.query.resource_version.as_str();
        if matches!(from, "" | "0") || self.watch.query.initial_events {
            self.look(shelf);
            if self.watch.query.initial_events && self.watch.query.bookmarks {
                self.waiting.push_back(self.bookmark(shelf.version, true));
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
                    self.push("DELETED", &item);
                }
                self.resume(shelf, version);
            }
            None => {
                self.waiting
                    .push_back(json!({ "type": "ERROR", "object": Refused::expired().status() }));
                self.ended = true;
            }
        }
    }

    /// Goes on from a version that the client has.
    fn resume(&mut self, shelf: &Shelf, version: u64) {
        self.version = shelf.version;
        for (key, item) in &shelf.items {
            let (selected, known) = (self.watch.query.selects(&item.object), item.created <= version);
            if item.version > version {
                match (selected, known) {
                    (true, true) => self.push("MODIFIED", item),
                    (true, false) => self.push("ADDED", item),
                    // It may have been selected before; a client that never heard of it lets this be.
                    (false, true) => self.push("DELETED", item),
                    (false, false) => {}
                }
            }
            if selected {
                self.sent.insert(key.clone(), Arc::clone(item));
            }
        }
    }

    fn look(&mut self, shelf: &Shelf) {
        if self.version != shelf.version {
            self.version = shelf.version;
            self.difference(shelf);
        } else if self.watch.query.bookmarks && Instant::now() >= self.bookmark {
            self.bookmark = Instant::now() + BOOKMARK_EVERY;
            self.waiting.push_back(self.bookmark(shelf.version, false));
        }
    }

    fn difference(&mut self, shelf: &Shelf) {
        let query = &self.watch.query;
        let selected = shelf.items.iter().filter(|(_, item)| query.selects(&item.object));
        let selected: BTreeMap<_, _> = selected.map(|(key, item)| (key.clone(), Arc::clone(item))).collect();
        let before = std::mem::replace(&mut self.sent, selected.clone());
        for (key, item) in &selected {
            match before.get(key) {
                None => self.push("ADDED", item),
                Some(before) if before.created != item.created => {
                    self.push("DELETED", before);
                    self.push("ADDED", item);
                }
                Some(before) if before.version != item.version => self.push("MODIFIED", item),
                Some(_) => {}
            }
        }
        for (_, item) in before.iter().filter(|(key, _)| !selected.contains_key(*key)) {
            // The version at which it went, so that a client that goes on from here does not hear it twice.
            let item = Item {
                version: shelf.version,
                ..Item::clone(item)
            };
            self.push("DELETED", &Arc::new(item));
        }
    }

    fn push(&mut self, kind: &str, item: &Arc<Item>) {
        self.waiting
            .push_back(json!({ "type": kind, "object": self.watch.shape.one(item) }));
    }

    fn bookmark(&self, version: u64, initial_events_end: bool) -> Value {
        let object = self.watch.shape.bookmark(version, initial_events_end);
        json!({ "type": "BOOKMARK", "object": object })
    }
}
