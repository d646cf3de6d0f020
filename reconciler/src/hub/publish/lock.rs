//! Lock files that a killed process left beside our refs; nothing could be written until they are gone.

use std::path::{Path, PathBuf};

use tracing::warn;

use super::StateRefs;
use crate::limits::REF_LOCK_STALE;

/// Removes the locks of our refs, and of `packed-refs`, that are too old to be held by anybody.
pub(super) fn remove_stale(common_dir: &Path, refs: &StateRefs) {
    let ours = [
        refs.rendered.as_str(),
        refs.released.as_str(),
        refs.followed.as_str(),
        "packed-refs",
    ];
    let mut locks: Vec<PathBuf> = ours
        .iter()
        .map(|name| common_dir.join(format!("{name}.lock")))
        .collect();
    locks.extend(inside(&common_dir.join(&refs.proposed_prefix)));
    for lock in locks.iter().filter(|lock| is_stale(lock)) {
        if std::fs::remove_file(lock).is_ok() {
            warn!(object = %lock.display(), "Removed a stale lock.");
        }
    }
}

/// The locks in a folder; none where it cannot be read, since a lock is only ever in the way.
fn inside(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let paths = entries.map(|entry| entry.path());
    paths
        .filter(|path| path.extension().is_some_and(|extension| extension == "lock"))
        .collect()
}

fn is_stale(lock: &Path) -> bool {
    let age = std::fs::metadata(lock)
        .and_then(|metadata| metadata.modified())
        .map(|modified| modified.elapsed().unwrap_or_default());
    age.is_ok_and(|age| age > REF_LOCK_STALE)
}
