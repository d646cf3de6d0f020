//! What changed lately: the window that watches and continued lists look back through.

use std::collections::VecDeque;
use std::sync::Arc;

use super::{Key, Stored};

/// A change of one object.
#[derive(Clone, Debug)]
pub(crate) struct Event {
    /// The cluster's version with it.
    pub version: u64,
    /// Where it happened.
    pub shelf: Arc<str>,
    pub key: Key,
    pub change: Change,
}

/// What happened to it.
#[derive(Clone, Debug)]
pub(crate) enum Change {
    Added(Arc<Stored>),
    Modified {
        before: Arc<Stored>,
        after: Arc<Stored>,
    },
    /// The last state, at the version of its removal.
    Deleted {
        before: Arc<Stored>,
        last: Arc<Stored>,
    },
}

/// The newest events, in order.
#[derive(Debug, Default)]
pub(super) struct History {
    events: VecDeque<Event>,
    /// Events up to here are forgotten.
    forgotten: u64,
}

impl History {
    pub(super) fn push(&mut self, event: Event, window: usize) {
        self.events.push_back(event);
        while self.events.len() > window {
            if let Some(dropped) = self.events.pop_front() {
                self.forgotten = dropped.version;
            }
        }
    }

    /// Forgets everything up to a version, as a server does that starts anew.
    pub(super) fn restart(&mut self, version: u64) {
        self.events.clear();
        self.forgotten = version;
    }

    /// The events after a version; `None` when some of them are forgotten.
    pub(super) fn since(&self, version: u64) -> Option<impl DoubleEndedIterator<Item = &Event>> {
        if version < self.forgotten {
            return None;
        }
        let first = self.events.partition_point(|event| event.version <= version);
        Some(self.events.range(first..))
    }

    pub(super) fn forgotten(&self) -> u64 {
        self.forgotten
    }
}
