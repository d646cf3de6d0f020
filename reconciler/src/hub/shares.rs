//! Parts of a whole that several share: who has how many now, so that nobody has all.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

/// How many parts each has.
#[derive(Debug)]
pub(super) struct Shares<K: Ord>(Mutex<BTreeMap<K, usize>>);

/// One part. It is given back when it is dropped.
#[derive(Debug)]
pub(super) struct Part<K: Ord> {
    shares: Arc<Shares<K>>,
    of: K,
}

impl<K: Ord> Default for Shares<K> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<K: Ord + Clone> Shares<K> {
    /// One part more; `None`: they have `most` already.
    pub(super) fn part(self: &Arc<Self>, of: K, most: usize) -> Option<Part<K>> {
        let mut shares = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let parts = shares.entry(of.clone()).or_default();
        if *parts >= most {
            return None;
        }
        *parts += 1;
        Some(Part {
            shares: Arc::clone(self),
            of,
        })
    }
}

impl<K: Ord> Drop for Part<K> {
    fn drop(&mut self) {
        let mut shares = self.shares.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(parts) = shares.get_mut(&self.of) {
            *parts -= 1;
            if *parts == 0 {
                shares.remove(&self.of);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_has_a_share_of_their_own_and_nothing_is_left_behind() {
        let shares = Arc::<Shares<&str>>::default();
        let mut parts: Vec<_> = (0..3).map(|_| shares.part("ada", 3)).collect();
        assert!(parts.iter().all(Option::is_some));
        assert!(shares.part("ada", 3).is_none());
        assert!(shares.part("bob", 3).is_some(), "another one has theirs");
        parts.pop();
        assert!(shares.part("ada", 3).is_some(), "one was given back");
        drop(parts);
        assert!(shares.0.lock().expect("nobody panicked").is_empty());
    }
}
