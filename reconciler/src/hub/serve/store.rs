//! The shelves of all kinds, looked at again when somebody asks and something may have changed.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use tokio::sync::Mutex;
use tokio::time::Instant;

use render::Revision;

use super::kinds;
use super::live::Live;
use super::object::Object;
use super::resource::Resource;
use super::shelf::Shelf;
use crate::hub::SharedState;
use crate::hub::engine::State;
use crate::hub::observe::Observation;
use crate::hub::source::Sought;

/// A kind is looked at again after this many times the time that its last look took: answering never
/// takes more than a fifth of one core, however fast reports come in.
const REST_FACTOR: u32 = 4;

/// All shelves.
pub(super) struct Store {
    state: SharedState,
    times: GitTimes,
    shelves: [Mutex<Looked>; Resource::ALL.len()],
    version: AtomicU64,
}

/// When a commit was made, in seconds since 1970; `None` where Git does not know it.
pub type CommitTimes = Box<dyn Fn(&Revision) -> Option<i64> + Send + Sync>;

/// When texts came to the files that have them at a revision, in the same way. It waits for no long history.
pub(in crate::hub) type KeyTimes = Box<dyn Fn(&Revision, &BTreeSet<Sought>) -> KeysDated + Send + Sync>;

/// What is known of when texts came to their files.
#[derive(Debug, Default)]
pub(in crate::hub) struct KeysDated {
    /// Those that are known.
    pub(in crate::hub) since: BTreeMap<Sought, i64>,
    /// Whether history is still being read for more.
    pub(in crate::hub) is_looking: bool,
}

/// What Git knows of times.
pub(in crate::hub) struct GitTimes {
    pub(in crate::hub) commits: CommitTimes,
    pub(in crate::hub) keys: KeyTimes,
}

impl GitTimes {
    /// It knows nothing.
    #[cfg(test)]
    pub(super) fn none() -> Self {
        Self {
            commits: Box::new(|_| None),
            keys: Box::new(|_, _| KeysDated::default()),
        }
    }
}

/// A shelf, and when it was looked at.
struct Looked {
    shelf: Arc<Shelf>,
    /// The state's version at the look.
    state: Option<u64>,
    next: Instant,
}

impl Store {
    pub(super) fn new(state: SharedState, times: GitTimes) -> Self {
        let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let start = u64::try_from(since_1970.as_millis()).unwrap_or_default();
        let empty = |_| {
            let shelf = Arc::new(Shelf::new(start));
            Mutex::new(Looked {
                shelf,
                state: None,
                next: Instant::now(),
            })
        };
        Self {
            state,
            times,
            shelves: Resource::ALL.map(empty),
            version: AtomicU64::new(start),
        }
    }

    /// The objects of a kind, as new as they may be.
    pub(super) async fn shelf(self: &Arc<Self>, resource: Resource) -> Arc<Shelf> {
        let mut looked = self.shelves[resource as usize].lock().await;
        let now = Instant::now();
        if looked.state == Some(self.state_version()) || now < looked.next {
            return Arc::clone(&looked.shelf);
        }
        let (store, before) = (Arc::clone(self), Arc::clone(&looked.shelf));
        let look = tokio::task::spawn_blocking(move || {
            let state = store.snapshot();
            let mut objects = kinds::objects(resource, &Observation::new(&state));
            for object in &mut objects {
                object.created = object.made_by.iter().filter_map(&store.times.commits).min();
            }
            let is_looking = store.date_keys(&state, &mut objects);
            let version = store.version.fetch_add(1, Ordering::Relaxed) + 1;
            // What is not known yet is looked at again, although nothing changes.
            ((!is_looking).then_some(state.version), before.next(objects, version))
        });
        // A look that panicked leaves the shelf as it was; the panic itself is on stderr.
        if let Ok((state, shelf)) = look.await {
            let cost = now.elapsed();
            *looked = Looked {
                shelf,
                state,
                next: now + cost * REST_FACTOR,
            };
        }
        Arc::clone(&looked.shelf)
    }

    /// Says of the keys in clusters' files since when they are there; whether more will be known soon.
    fn date_keys(&self, state: &State, objects: &mut [Object]) -> bool {
        let Some(accepted) = state.accepted_or_published() else {
            return false;
        };
        let wanted = objects.iter().filter_map(|object| object.live.as_ref());
        let wanted: BTreeSet<_> = wanted.flat_map(Live::sought).collect();
        if wanted.is_empty() {
            return false;
        }
        let found = (self.times.keys)(&accepted, &wanted);
        for object in objects {
            object.date_keys(&found.since);
        }
        found.is_looking
    }

    /// A copy of the state: its large parts are shared, so that nothing is computed under the lock.
    pub(super) fn snapshot(&self) -> State {
        self.state.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// See [`State::has_looked`]. Whoever has no login asks for it, and as often as they like: nothing is copied.
    pub(super) fn has_looked(&self) -> bool {
        self.state.read().unwrap_or_else(PoisonError::into_inner).has_looked()
    }

    fn state_version(&self) -> u64 {
        self.state.read().unwrap_or_else(PoisonError::into_inner).version
    }
}

/// How often a watch asks for its shelf. A person sees no difference below this.
pub(super) const WATCH_POLL: Duration = Duration::from_millis(200);
