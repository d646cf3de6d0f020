//! When the keys of clusters came to their files, as Git says.
//!
//! In: a revision, and keys in files. Out: since when each is there, as far as it is known by now. A history may be long, so
//! that it is read beside whoever asks, who waits for it a moment.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use render::Revision;
use tokio::runtime::Handle;

use crate::hub::serve::{KeyTimes, KeysDated};
use crate::hub::source::{Sought, Source, SourceError};
use crate::limits::{KEY_AGES_PATIENCE, KEY_COMMITS_MAX};

/// Each key is looked up once, and forgotten when nobody asks for it any more: one that a commit takes out and another
/// brings back is as old as the latter. A look that fails is tried again when something changed.
pub(super) fn key_times(source: Arc<Source>) -> KeyTimes {
    let look = move |revision: &Revision, new: &[Sought]| source.introduced(revision, new, KEY_COMMITS_MAX);
    let ages = Arc::new(Ages::by(look, KEY_AGES_PATIENCE));
    Box::new(move |revision, wanted| ages.known(revision, wanted))
}

type Look = dyn Fn(&Revision, &[Sought]) -> Result<Vec<Option<i64>>, SourceError> + Send + Sync;

struct Ages {
    look: Box<Look>,
    patience: Duration,
    known: Mutex<Known>,
    looked: Condvar,
    /// Where history is read.
    threads: Handle,
}

#[derive(Default)]
struct Known {
    since: BTreeMap<Sought, Option<i64>>,
    turn: Turn,
}

/// History is read once at a time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Turn {
    #[default]
    Rests,
    Looks,
    /// It could not be read, and whoever asked has not been told so yet.
    Failed,
}

impl Ages {
    /// By whoever reads history. For use within a runtime.
    fn by(
        look: impl Fn(&Revision, &[Sought]) -> Result<Vec<Option<i64>>, SourceError> + Send + Sync + 'static,
        patience: Duration,
    ) -> Self {
        Self {
            look: Box::new(look),
            patience,
            known: Mutex::default(),
            looked: Condvar::new(),
            threads: Handle::current(),
        }
    }

    fn known(self: &Arc<Self>, revision: &Revision, wanted: &BTreeSet<Sought>) -> KeysDated {
        let mut known = self.lock();
        known.since.retain(|sought, _| wanted.contains(sought));
        let new: Vec<_> = wanted
            .iter()
            .filter(|sought| !known.since.contains_key(*sought))
            .cloned()
            .collect();
        if !new.is_empty() {
            known = self.soon(known, revision, new);
        }
        let is_looking = known.turn == Turn::Looks;
        if known.turn == Turn::Failed {
            known.turn = Turn::Rests;
        }
        let since = known.since.iter();
        KeysDated {
            since: since
                .filter_map(|(sought, since)| Some((sought.clone(), (*since)?)))
                .collect(),
            is_looking,
        }
    }

    /// Begins to look, unless that is under way or was in vain just now, and waits for it a moment.
    fn soon<'a>(
        self: &'a Arc<Self>,
        mut known: MutexGuard<'a, Known>,
        revision: &Revision,
        new: Vec<Sought>,
    ) -> MutexGuard<'a, Known> {
        if known.turn == Turn::Rests {
            known.turn = Turn::Looks;
            let (ages, revision) = (Arc::clone(self), revision.clone());
            self.threads.spawn_blocking(move || ages.look(&revision, new));
        }
        let looks = |known: &mut Known| known.turn == Turn::Looks;
        let waited = self.looked.wait_timeout_while(known, self.patience, looks);
        waited.unwrap_or_else(PoisonError::into_inner).0
    }

    fn look(&self, revision: &Revision, new: Vec<Sought>) {
        let mut looking = Looking {
            ages: self,
            is_over: false,
        };
        let found = (self.look)(revision, &new);
        looking.is_over = true;
        let mut known = self.lock();
        known.turn = match found {
            Ok(found) => {
                known.since.extend(new.into_iter().zip(found));
                Turn::Rests
            }
            Err(error) => {
                let error = &error as &dyn std::error::Error;
                tracing::debug!(error, "Could not look up since when clusters have their keys.");
                Turn::Failed
            }
        };
        drop(known);
        self.looked.notify_all();
    }

    fn lock(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A look that is under way. One that panics has failed: it is nobody's turn for ever.
struct Looking<'a> {
    ages: &'a Ages,
    is_over: bool,
}

impl Drop for Looking<'_> {
    fn drop(&mut self) {
        if !self.is_over {
            self.ages.lock().turn = Turn::Failed;
            self.ages.looked.notify_all();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;
    use crate::hub::repository::fixture::Fixture;

    /// More than any history here takes.
    const LONG: Duration = Duration::from_secs(600);

    fn one(text: &str) -> BTreeSet<Sought> {
        let path = "clusters/a.yaml".to_owned();
        let text = text.to_owned();
        BTreeSet::from([Sought { path, text }])
    }

    #[tokio::test]
    async fn a_key_that_is_taken_out_and_brought_back_is_as_old_as_its_return() {
        let fixture = Fixture::new();
        fixture.import([("clusters/a.yaml".to_owned(), "key".to_owned())], &[]);
        let first = Revision::parse(fixture.head()).expect("git prints full ids");
        let source = Source::open(fixture.path(), "main").expect("a repository");
        let look = move |revision: &Revision, new: &[Sought]| source.introduced(revision, new, KEY_COMMITS_MAX);
        let ages = Arc::new(Ages::by(look, LONG));
        let times = |revision: &Revision, text: &str| {
            let dated = ages.known(revision, &one(text));
            assert!(!dated.is_looking, "it was waited for");
            dated.since.len()
        };
        assert_eq!(times(&first, "key"), 1);
        assert_eq!(times(&first, "another"), 0, "it is nowhere, and nothing is made up");
        let missing = Revision::parse("7".repeat(40)).expect("forty digits");
        assert_eq!(times(&missing, "key"), 0, "unreadable is not known");
        assert_eq!(times(&first, "key"), 1, "and is asked for again");
    }

    #[tokio::test]
    async fn nobody_waits_for_a_long_history_and_it_is_read_once_at_a_time() {
        let (go, gone) = mpsc::sync_channel::<()>(1);
        let gone = Mutex::new(gone);
        let look = move |_: &Revision, new: &[Sought]| {
            // As long as the test wants.
            let _gone = gone.lock().expect("one at a time").recv();
            Ok(vec![Some(7); new.len()])
        };
        let ages = Arc::new(Ages::by(look, Duration::ZERO));
        let revision = Revision::parse("1".repeat(40)).expect("forty digits");
        for _ in 0..3 {
            let dated = ages.known(&revision, &one("key"));
            assert!(dated.is_looking && dated.since.is_empty(), "{dated:?}");
        }
        go.send(()).expect("it is waited for");
        let mut known = ages.lock();
        while known.turn == Turn::Looks {
            known = ages.looked.wait(known).expect("nobody panicked");
        }
        drop(known);
        let dated = ages.known(&revision, &one("key"));
        assert!(!dated.is_looking, "three asked, and it was read once");
        assert_eq!(dated.since.values().collect::<Vec<_>>(), [&7]);
    }

    #[tokio::test]
    async fn a_look_that_panics_is_tried_again() {
        let looks = std::sync::atomic::AtomicUsize::new(0);
        let look = move |_: &Revision, new: &[Sought]| {
            let before = looks.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            assert!(before > 0, "the first one panics");
            Ok(vec![Some(7); new.len()])
        };
        // As long as it takes the test to fail.
        let ages = Arc::new(Ages::by(look, Duration::from_secs(20)));
        let revision = Revision::parse("1".repeat(40)).expect("forty digits");
        let dated = ages.known(&revision, &one("key"));
        assert!(!dated.is_looking && dated.since.is_empty(), "{dated:?}");
        let dated = ages.known(&revision, &one("key"));
        assert_eq!(dated.since.values().collect::<Vec<_>>(), [&7]);
    }
}
