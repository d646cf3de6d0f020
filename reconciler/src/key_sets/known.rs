//! Since when an agent knows the keys of its hubs.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use tunnel::PublicKey;

use crate::limits::HUB_KEYS_KNOWN_MAX;

/// Key → since when an agent believes it, in seconds since 1970 by the agent's clock, as far as it noted that. What is no key
/// is left out, and so is what is too much: this is told to people, and decides nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "BTreeMap<String, i64>", into = "BTreeMap<String, i64>")]
pub struct KeysKnown(BTreeMap<PublicKey, i64>);

impl KeysKnown {
    /// The note once these keys are believed and no others: of one that was believed before, when that began.
    #[must_use]
    pub fn now_that(&self, believed: &[PublicKey], now: i64) -> Self {
        let since = |key: &PublicKey| (*key, self.0.get(key).copied().unwrap_or(now));
        Self(believed.iter().map(since).take(HUB_KEYS_KNOWN_MAX).collect())
    }

    /// What two agents of one cluster noted: of a key that both know, the earlier.
    #[must_use]
    pub fn and(&self, other: &Self) -> Self {
        let mut all = self.0.clone();
        for (key, since) in &other.0 {
            let earlier = all.get(key).map_or(*since, |own| *own.min(since));
            all.insert(*key, earlier);
        }
        Self(all)
    }

    /// Whether nothing is noted.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Each key, sorted, and since when it is known.
    pub fn iter(&self) -> impl Iterator<Item = (PublicKey, i64)> {
        self.0.iter().map(|(key, since)| (*key, *since))
    }
}

impl From<BTreeMap<String, i64>> for KeysKnown {
    fn from(noted: BTreeMap<String, i64>) -> Self {
        let parsed = noted
            .into_iter()
            .filter_map(|(key, since)| Some((key.parse().ok()?, since)));
        Self(parsed.take(HUB_KEYS_KNOWN_MAX).collect())
    }
}

impl From<KeysKnown> for BTreeMap<String, i64> {
    fn from(known: KeysKnown) -> Self {
        known.iter().map(|(key, since)| (key.to_string(), since)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(number: u8) -> PublicKey {
        PublicKey::from_bytes([number; 32])
    }

    fn known(keys: &[(u8, i64)]) -> KeysKnown {
        KeysKnown(keys.iter().map(|&(number, since)| (key(number), since)).collect())
    }

    #[test]
    fn a_key_is_known_since_it_was_believed_first_for_as_long_as_it_is() {
        let first = KeysKnown::default().now_that(&[key(1)], 100);
        assert_eq!(first, known(&[(1, 100)]));
        let both = first.now_that(&[key(1), key(2)], 200);
        assert_eq!(both, known(&[(1, 100), (2, 200)]));
        let later = both.now_that(&[key(2)], 300);
        assert_eq!(later, known(&[(2, 200)]), "what is believed no more is forgotten");
        assert_eq!(
            later.now_that(&[key(1), key(2)], 400),
            known(&[(1, 400), (2, 200)]),
            "and begins anew"
        );
    }

    #[test]
    fn of_two_agents_of_a_cluster_the_earlier_note_counts() {
        let (one, other) = (known(&[(1, 100), (2, 300)]), known(&[(2, 200), (3, 50)]));
        let both = known(&[(1, 100), (2, 200), (3, 50)]);
        assert_eq!((one.and(&other), other.and(&one)), (both.clone(), both));
    }

    #[test]
    fn a_note_outlives_what_is_no_key_and_what_is_too_much() {
        let text = serde_json::to_string(&known(&[(1, 100)])).expect("it is written");
        let read = |text: &str| serde_json::from_str::<KeysKnown>(text).expect("it is read");
        assert_eq!(read(&text), known(&[(1, 100)]));
        assert_eq!(read(&text.replace('}', r#","nobody":5}"#)), known(&[(1, 100)]));
        let many = (0..=HUB_KEYS_KNOWN_MAX).map(|at| {
            let mut bytes = [0; 32];
            bytes[..8].copy_from_slice(&at.to_be_bytes());
            (PublicKey::from_bytes(bytes).to_string(), 1)
        });
        let many: BTreeMap<_, _> = many.collect();
        assert_eq!(KeysKnown::from(many).iter().count(), HUB_KEYS_KNOWN_MAX);
    }
}
