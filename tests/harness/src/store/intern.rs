//! Equal byte strings once per process: a thousand clusters mostly hold the same objects.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::{Arc, LazyLock, Mutex, PoisonError, Weak};

static TABLE: LazyLock<Mutex<Table>> = LazyLock::new(Mutex::default);

#[derive(Default)]
struct Table {
    hasher: RandomState,
    /// By hash; two strings of one hash are simply not shared.
    known: HashMap<u64, Weak<[u8]>>,
    /// Entries at which those that nobody holds any more are dropped.
    sweep_at: usize,
}

/// These bytes, shared with whoever holds the same.
pub(super) fn intern(bytes: &[u8]) -> Arc<[u8]> {
    let mut table = TABLE.lock().unwrap_or_else(PoisonError::into_inner);
    let hash = table.hasher.hash_one(bytes);
    if let Some(known) = table.known.get(&hash).and_then(Weak::upgrade)
        && *known == *bytes
    {
        return known;
    }
    if table.known.len() >= table.sweep_at {
        table.known.retain(|_, known| known.strong_count() > 0);
        table.sweep_at = (table.known.len() * 2).max(1_024);
    }
    let made: Arc<[u8]> = bytes.into();
    table.known.insert(hash, Arc::downgrade(&made));
    made
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_bytes_are_held_once() {
        let (one, two) = (intern(b"the same"), intern(b"the same"));
        assert!(Arc::ptr_eq(&one, &two));
        assert!(!Arc::ptr_eq(&one, &intern(b"another")));
    }
}
