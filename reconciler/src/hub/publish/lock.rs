//! Lock files that a killed process left beside our refs; nothing could be written until they are gone.

use std::path::{Path, PathBuf};

use tracing::warn;

use super::StateRefs;
use crate::limits::REF_LOCK_STALE;

/// Removes the locks of our refs, and of `packed-refs`, that are too old to be held by anybody.
pub(super) fn remove_stale(common_dir: &Path, refs: &StateRefs) {
    for name in [refs.rendered.as_str(), refs.released.as_str(), "packed-refs"] {
        let lock = common_dir.join(format!("{name}.lock"));
        if is_stale(&lock) && std::fs::remove_file(&lock).is_ok() {
            warn!(object = %lock.display(), "Removed a stale lock.");
        }
    }
}

fn is_stale(lock: &PathBuf) -> bool {
    let age = std::fs::metadata(lock)
        .and_then(|metadata| metadata.modified())
        .map(|modified| modified.elapsed().unwrap_or_default());
    age.is_ok_and(|age| age > REF_LOCK_STALE)
}
