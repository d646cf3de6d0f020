//! All objects of one kind as they were at one look, with what changed from look to look.
//!
//! A shelf never changes: the next look makes the next one from it. Versions count from the milliseconds
//! at which the hub started, so that a version of an earlier hub is always an older one.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use super::object::Object;
use crate::limits::GONE_OBJECTS_MAX;

/// Namespace and name.
pub(super) type Key = (String, String);

/// All objects of one kind.
#[derive(Clone, Debug, Default)]
pub(super) struct Shelf {
    pub(super) items: BTreeMap<Key, Arc<Item>>,
    /// The newest version.
    pub(super) version: u64,
    /// Removed objects with the version at which they went, oldest first.
    gone: VecDeque<(u64, Arc<Item>)>,
    /// What went at or before this version may be forgotten.
    horizon: u64,
}

/// An object on a shelf.
#[derive(Clone, Debug)]
pub(super) struct Item {
    pub(super) object: Object,
    /// Since when it is as it is.
    pub(super) version: u64,
    /// Since when it is there.
    pub(super) created: u64,
    /// Counts changes of its spec since the hub started.
    pub(super) generation: u64,
}

impl Shelf {
    /// An empty shelf of a hub that started at this version.
    pub(super) fn new(version: u64) -> Self {
        Self {
            version,
            horizon: version,
            ..Self::default()
        }
    }

    /// The next shelf. `next` is the version that changes get; without a change the shelf is as it was.
    pub(super) fn next(self: &Arc<Self>, objects: Vec<Object>, next: u64) -> Arc<Self> {
        let mut items = BTreeMap::new();
        let mut changed = false;
        for object in objects {
            let key = (object.namespace.clone(), object.name.clone());
            let item = match self.items.get(&key) {
                Some(before) if before.object == object => Arc::clone(before),
                before => {
                    changed = true;
                    Arc::new(item(before, object, next))
                }
            };
            items.insert(key, item);
        }
        let removed = self.items.iter().filter(|(key, _)| !items.contains_key(*key));
        let removed: Vec<_> = removed.map(|(_, item)| (next, Arc::clone(item))).collect();
        if !changed && removed.is_empty() {
            return Arc::clone(self);
        }
        let (mut gone, mut horizon) = (self.gone.clone(), self.horizon);
        gone.extend(removed);
        while gone.len() > GONE_OBJECTS_MAX {
            horizon = gone.pop_front().map_or(horizon, |(version, _)| version);
        }
        Arc::new(Self {
            items,
            version: next,
            gone,
            horizon,
        })
    }

    /// What went after a version; `None` when that may be forgotten, or the version is not one of this hub.
    pub(super) fn gone_since(&self, version: u64) -> Option<impl Iterator<Item = &Arc<Item>>> {
        let known = (self.horizon..=self.version).contains(&version);
        known.then(|| {
            self.gone
                .iter()
                .filter(move |(went, _)| *went > version)
                .map(|(_, item)| item)
        })
    }
}

fn item(before: Option<&Arc<Item>>, object: Object, version: u64) -> Item {
    match before {
        None => Item {
            object,
            version,
            created: version,
            generation: 1,
        },
        Some(before) => {
            let generation = before.generation + u64::from(before.object.spec != object.spec);
            Item {
                object,
                version,
                created: before.created,
                generation,
            }
        }
    }
}
