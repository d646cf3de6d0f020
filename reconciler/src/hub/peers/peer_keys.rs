//! Which keys other hubs have: those that this one was started with, and those that they tell while they replace one.
//!
//! A hub's keys are believed as an agent believes them: each signs the list, and one that counts already vouches. What was
//! told is forgotten with this process: the next one goes by its flags.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tunnel::PublicKey;

use super::Peer;
use crate::key_sets::{HubKeysError, KeySet, Vouched, all, believe};

/// Other hub, by address → its keys.
#[derive(Debug, Default)]
pub(in crate::hub) struct PeerKeys {
    given: BTreeMap<String, Vec<PublicKey>>,
    told: Mutex<BTreeMap<String, Vec<Vouched>>>,
}

impl PeerKeys {
    /// Those that flags name.
    pub(in crate::hub) fn of(peers: &[Peer]) -> Self {
        let given = peers.iter().map(|peer| (peer.url.clone(), peer.keys.clone()));
        Self {
            given: given.collect(),
            told: Mutex::default(),
        }
    }

    fn told(&self) -> MutexGuard<'_, BTreeMap<String, Vec<Vouched>>> {
        self.told.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Those of one hub.
    pub(super) fn keys(&self, peer: &str) -> Vec<PublicKey> {
        let given = self.given.get(peer).map_or(&[][..], Vec::as_slice);
        let told = self.told();
        all(given, told.get(peer).map_or(&[], Vec::as_slice))
    }

    /// Those of all.
    pub(in crate::hub) fn all(&self) -> Vec<PublicKey> {
        self.given.keys().flat_map(|peer| self.keys(peer)).collect()
    }

    /// A hub proved to have these keys; whether they are others than were known.
    pub(super) fn take(&self, peer: &str, keys: KeySet) -> Result<bool, HubKeysError> {
        let given = self.given.get(peer).ok_or(HubKeysError::Unknown)?;
        let mut told = self.told();
        let before = told.entry(peer.to_owned()).or_default();
        let believed = believe(given, before, keys)?;
        let is_new = *before != believed;
        *before = believed;
        Ok(is_new)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_hub_tells_of_its_keys_counts_for_it_alone_and_beside_what_flags_name() {
        let [first, next, other, strange] = [1, 2, 3, 4].map(|number| PublicKey::from_bytes([number; 32]));
        let peer = |url: &str, key| Peer {
            url: url.to_owned(),
            keys: vec![key],
        };
        let keys = PeerKeys::of(&[peer("wss://b", first), peer("wss://c", other)]);
        let set = |keys: &[PublicKey]| KeySet::try_from(keys.iter().map(ToString::to_string).collect::<Vec<_>>());
        let set = |keys: &[PublicKey]| set(keys).expect("they are keys");
        assert_eq!(keys.take("wss://b", set(&[first, next])), Ok(true));
        assert_eq!(keys.take("wss://b", set(&[first, next])), Ok(false));
        assert_eq!(keys.keys("wss://b"), [first, next]);
        assert_eq!(keys.keys("wss://c"), [other]);
        assert_eq!(keys.take("wss://c", set(&[strange])), Err(HubKeysError::Unknown));
        assert_eq!(
            keys.take("wss://c", set(&[first, next])),
            Err(HubKeysError::Unknown),
            "another hub's"
        );
        assert_eq!(
            keys.take("wss://d", set(&[first])),
            Err(HubKeysError::Unknown),
            "no flag names it"
        );
        assert_eq!(
            keys.take("wss://b", set(&[next])),
            Ok(true),
            "the old one is over there"
        );
        assert_eq!(keys.all(), [first, next, other], "a flag names it still");
    }
}
