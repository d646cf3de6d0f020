//! All objects of one cluster, and the number that counts its changes.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;

use jiff::Timestamp;
use serde_json::Value;

use super::history::{Change, Event, History};
use super::stored::uid_text;
use super::{Key, Stored};
use crate::kinds::{Kind, builtin_kinds, from_definition};

/// The objects of one kind.
pub(crate) type Shelf = BTreeMap<Key, Arc<Stored>>;

/// The shelf of definitions.
pub(crate) const DEFINITIONS: &str = "customresourcedefinitions.apiextensions.k8s.io";

/// The objects of a cluster.
#[derive(Debug)]
pub(crate) struct State {
    /// Counts changes.
    version: u64,
    shelves: BTreeMap<Arc<str>, Shelf>,
    history: History,
    window: usize,
    /// Kinds of definitions, by the definition's name.
    custom: BTreeMap<Box<str>, Vec<Arc<Kind>>>,
    hasher: RandomState,
    made: u64,
    /// Changed objects that controllers have not looked at.
    pub(crate) unsettled: VecDeque<(Arc<str>, Key)>,
}

/// A cluster's objects at one moment.
#[derive(Clone, Debug)]
pub(crate) struct Saved {
    version: u64,
    shelves: BTreeMap<Arc<str>, Shelf>,
}

impl State {
    pub(crate) fn new(window: usize) -> Self {
        Self {
            version: 1,
            shelves: BTreeMap::new(),
            history: History::default(),
            window,
            custom: BTreeMap::new(),
            hasher: RandomState::new(),
            made: 0,
            unsettled: VecDeque::new(),
        }
    }

    pub(crate) fn version(&self) -> u64 {
        self.version
    }

    /// All kinds: built-in ones first.
    pub(crate) fn kinds(&self) -> Vec<Arc<Kind>> {
        let custom = self.custom.values().flatten();
        builtin_kinds().iter().chain(custom).cloned().collect()
    }

    /// The kind at a path.
    pub(crate) fn kind(&self, group: &str, version: &str, plural: &str) -> Option<Arc<Kind>> {
        let is = |kind: &&Arc<Kind>| &*kind.group == group && &*kind.version == version && &*kind.plural == plural;
        let custom = self.custom.values().flatten();
        builtin_kinds().iter().chain(custom).find(is).cloned()
    }

    /// Whether anything is served under a group and version.
    pub(crate) fn serves(&self, group: &str, version: &str) -> bool {
        let custom = self.custom.values().flatten();
        let mut kinds = builtin_kinds().iter().chain(custom);
        kinds.any(|kind| &*kind.group == group && &*kind.version == version)
    }

    /// Any version of the kind that a shelf holds.
    pub(crate) fn kind_of_shelf(&self, shelf: &str) -> Option<Arc<Kind>> {
        let custom = self.custom.values().flatten();
        builtin_kinds()
            .iter()
            .chain(custom)
            .find(|kind| &*kind.shelf == shelf)
            .cloned()
    }

    pub(crate) fn find(&self, shelf: &str, key: &Key) -> Option<&Arc<Stored>> {
        self.shelves.get(shelf)?.get(key)
    }

    /// The objects of a kind, of one namespace or of all, in order.
    pub(crate) fn list<'a>(
        &'a self,
        shelf: &str,
        namespace: &'a str,
    ) -> impl Iterator<Item = (&'a Key, &'a Arc<Stored>)> {
        let found = self.shelves.get(shelf).into_iter().flatten();
        found.filter(move |(key, _)| namespace.is_empty() || &*key.namespace == namespace)
    }

    /// The objects of a kind as they were at a version; `None` when that is forgotten.
    pub(crate) fn list_at(&self, shelf: &str, version: u64) -> Option<Shelf> {
        let events = self.history.since(version)?;
        let mut found = self.shelves.get(shelf).cloned().unwrap_or_default();
        for event in events.rev().filter(|event| &*event.shelf == shelf) {
            match &event.change {
                Change::Added(_) => found.remove(&event.key),
                Change::Modified { before, .. } | Change::Deleted { before, .. } => {
                    found.insert(event.key.clone(), before.clone())
                }
            };
        }
        Some(found)
    }

    /// Up to so many events of a kind after a version; `None` when some of them are forgotten.
    pub(crate) fn events(&self, shelf: &str, after: u64, count: usize) -> Option<Vec<Event>> {
        let events = self.history.since(after)?;
        Some(
            events
                .filter(|event| &*event.shelf == shelf)
                .take(count)
                .cloned()
                .collect(),
        )
    }

    /// The oldest version that can still be gone on from.
    pub(crate) fn oldest(&self) -> u64 {
        self.history.forgotten()
    }

    /// Every shelf with something on it.
    pub(crate) fn shelves(&self) -> impl Iterator<Item = (&Arc<str>, &Shelf)> {
        self.shelves.iter()
    }

    /// How many objects there are.
    pub(crate) fn len(&self) -> usize {
        self.shelves.values().map(BTreeMap::len).sum()
    }

    /// Writes an object; it comes back with its new version.
    pub(crate) fn put(&mut self, shelf: &Arc<str>, object: Value) -> Value {
        self.version += 1;
        let key = Key::of(&object);
        let after = Arc::new(Stored::new(object, self.version));
        let whole = after.object();
        let shelf_items = self.shelves.entry(shelf.clone()).or_default();
        let change = match shelf_items.insert(key.clone(), after.clone()) {
            None => Change::Added(after),
            Some(before) => Change::Modified { before, after },
        };
        self.happened(shelf, key, change);
        if &**shelf == DEFINITIONS {
            self.define(&whole);
        }
        whole
    }

    /// Removes an object for good; its last state comes back.
    pub(crate) fn remove(&mut self, shelf: &Arc<str>, key: &Key) -> Option<Value> {
        let before = self.shelves.get_mut(shelf)?.remove(key)?;
        self.version += 1;
        let whole = before.object();
        let last = Arc::new(before.at(self.version));
        self.happened(shelf, key.clone(), Change::Deleted { before, last });
        if &**shelf == DEFINITIONS {
            self.custom.remove(&key.name);
        }
        Some(whole)
    }

    fn happened(&mut self, shelf: &Arc<str>, key: Key, change: Change) {
        let event = Event {
            version: self.version,
            shelf: shelf.clone(),
            key: key.clone(),
            change,
        };
        self.history.push(event, self.window);
        self.unsettled.push_back((shelf.clone(), key));
    }

    /// Serves what a definition says, once it is established.
    fn define(&mut self, definition: &Value) {
        let name = definition["metadata"]["name"].as_str().unwrap_or_default();
        let conditions = definition["status"]["conditions"].as_array().into_iter().flatten();
        let mut established = conditions.filter(|condition| condition["type"] == "Established");
        if established.any(|condition| condition["status"] == "True") {
            self.custom.insert(name.into(), from_definition(definition));
        }
    }

    /// A UID that no object had before.
    pub(crate) fn new_uid(&mut self) -> String {
        self.made += 1;
        let half = |salt: u64| u128::from(self.hasher.hash_one((salt, self.made)));
        let random = half(1) << 64 | half(2);
        // Marked as a random UUID.
        let number = random & !(0xf << 76) & !(0x3 << 62) | 0x4 << 76 | 0x2 << 62;
        uid_text(number)
    }

    /// Five letters for a generated name.
    pub(crate) fn new_suffix(&mut self) -> String {
        const LETTERS: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";
        self.made += 1;
        let mut random = self.hasher.hash_one((3u64, self.made));
        let mut suffix = String::new();
        for _ in 0..5 {
            let at = usize::try_from(random % LETTERS.len() as u64).unwrap_or_default();
            suffix.push(char::from(LETTERS[at]));
            random /= LETTERS.len() as u64;
        }
        suffix
    }

    /// This moment, to be restored later. Objects are shared with it, not copied.
    pub(crate) fn save(&self) -> Saved {
        Saved {
            version: self.version,
            shelves: self.shelves.clone(),
        }
    }

    /// Forgets what happened, and keeps what there is.
    pub(crate) fn forget_events(&mut self) {
        self.history.restart(self.version);
    }

    /// Goes back to a moment, lower version included, and forgets all events.
    pub(crate) fn restore(&mut self, saved: &Saved) {
        self.version = saved.version;
        self.shelves = saved.shelves.clone();
        self.history.restart(saved.version);
        self.unsettled.clear();
        self.custom.clear();
        let definitions: Vec<_> = self.list(DEFINITIONS, "").map(|(_, stored)| stored.object()).collect();
        definitions.iter().for_each(|definition| self.define(definition));
    }
}

/// Now, in whole seconds, as metadata says it.
pub(crate) fn now() -> String {
    let seconds = Timestamp::now().as_second();
    Timestamp::from_second(seconds).map_or_else(|_| String::new(), |now| now.to_string())
}

/// Shelves that hold objects in a namespace.
pub(crate) fn in_namespace(state: &State, namespace: &str) -> Vec<(Arc<str>, Key)> {
    let mut found = Vec::new();
    let mut seen = BTreeSet::new();
    for (shelf, items) in state.shelves() {
        for key in items.keys().filter(|key| &*key.namespace == namespace) {
            if seen.insert((shelf.clone(), key.clone())) {
                found.push((shelf.clone(), key.clone()));
            }
        }
    }
    found
}
