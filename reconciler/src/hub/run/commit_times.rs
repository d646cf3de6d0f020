//! When commits were made, as Git says.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use render::Revision;

use crate::hub::keeper::Keeper;
use crate::hub::serve::CommitTimes;
use crate::hub::source::Source;
use crate::limits::COMMIT_TIMES_MAX;

/// When commits were made, each looked up once: a commit never changes.
pub(super) fn commit_times(source: Arc<Source>, keeper: Arc<Keeper>) -> CommitTimes {
    let known: Mutex<BTreeMap<Revision, Option<i64>>> = Mutex::default();
    Box::new(move |revision| {
        let mut known = known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(seconds) = known.get(revision) {
            return *seconds;
        }
        if known.len() >= COMMIT_TIMES_MAX {
            known.clear();
        }
        let own = || keeper.commit_seconds(revision);
        let seconds = source.commit_seconds(revision).or_else(own);
        known.insert(revision.clone(), seconds);
        seconds
    })
}
