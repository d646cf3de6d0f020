//! Which objects are ours, in eight bytes each.

use std::hash::{DefaultHasher, Hash, Hasher};

use render::ObjectKey;

/// A set of keys, as hashes. Two keys with one hash cost a look at somebody else's object and nothing else.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in crate::apply) struct OwnedKeys(Vec<u64>);

impl OwnedKeys {
    /// The set of these.
    pub(super) fn of<'a>(keys: impl Iterator<Item = &'a ObjectKey>) -> Self {
        let mut hashes: Vec<_> = keys.map(hash).collect();
        hashes.sort_unstable();
        hashes.dedup();
        Self(hashes)
    }

    /// Whether a key is among them.
    pub(in crate::apply) fn contains(&self, key: &ObjectKey) -> bool {
        self.0.binary_search(&hash(key)).is_ok()
    }
}

fn hash(key: &ObjectKey) -> u64 {
    let mut hasher = DefaultHasher::new();
    key.hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ours_are_told_from_others() {
        let key = |name: &str| ObjectKey::new("v1", "ConfigMap", "shop", name);
        let ours = [key("b"), key("a"), key("b")];
        let owned = OwnedKeys::of(ours.iter());
        assert!(ours.iter().all(|key| owned.contains(key)));
        assert!(!owned.contains(&key("c")));
        assert_eq!(owned, OwnedKeys::of([key("a"), key("b")].iter()));
    }
}
