//! Which keys a hub has: what it says of them on a `keys` stream, and when an agent believes it.
//!
//! The agent asks with a nonce of its own. The hub answers with all its keys, each of which signs the nonce and the whole
//! list, so that no server in between can leave one out, add one, or tell an answer of before. An agent that knows one of
//! the keys believes the list. Other hubs ask as agents do. Where it is kept, and what is dialled with it, is deliberately not
//! here.

mod ask;
mod known;

use std::collections::BTreeSet;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};
use tunnel::{PublicKey, SecretKey};

pub use self::ask::{AskError, ask};
pub use self::known::KeysKnown;
use crate::limits::{HUB_KEY_SETS_MAX, HUB_KEYS_MAX, HUBS_ASKED_ABOUT_MAX};

/// The agent's question.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct KeyQuestion {
    /// Base64 of 32 random bytes.
    pub nonce: String,
    /// Keys of hubs that the agent knows, of which it wants to hear whether they are denied.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hubs: Vec<String>,
}

/// The hub's answer: its keys, the one that it shows first.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct KeyAnswer {
    /// All of them.
    pub keys: Vec<SignedKey>,
    /// Those of the agent's hubs that this hub's deny list has; none from an older hub.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub denied: Option<SignedDenials>,
}

/// Which hubs are denied, as the hub's first key signs it for one question.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SignedDenials {
    /// Their keys, as text.
    pub hubs: Vec<String>,
    /// Base64 of the signature over nonce and list.
    pub signature: String,
}

/// One of the hub's keys, with its own signature.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SignedKey {
    /// The public key as text.
    pub key: String,
    /// Base64 of its signature over nonce and list.
    pub signature: String,
}

/// The agent's word for an answer: the keys outlive it now.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct KeysKept {
    /// How many it was told.
    pub keys: usize,
}

/// The keys of one hub, as an agent was told them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Vec<String>", into = "Vec<String>")]
pub struct KeySet(BTreeSet<PublicKey>);

/// What a hub told of its keys, and which of those that a person gave vouch for it: when the agent is given others, it
/// counts no more.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Noted", into = "Noted")]
pub struct Vouched {
    keys: KeySet,
    /// Empty for what an agent kept that did not know of it yet.
    by: BTreeSet<PublicKey>,
}

/// As it is kept.
#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum Noted {
    Vouched {
        keys: KeySet,
        by: KeySet,
    },
    /// Of an older agent.
    Keys(KeySet),
}

/// Keys that are not told, or not believed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HubKeysError {
    /// Whoever asks would choose what is signed.
    #[error("the nonce is not base64 of 32 bytes")]
    Nonce,
    /// There are none, too many, or one twice.
    #[error("a hub has 1 to {HUB_KEYS_MAX} different keys, and {0} are said")]
    Count(usize),
    /// A key that is none.
    #[error("{0:?} is no key")]
    NotAKey(String),
    /// A key whose owner did not sign.
    #[error("key {0} did not sign the list")]
    NotSigned(PublicKey),
    /// Nobody vouches for them.
    #[error("none of the hub's keys is one that this agent knows")]
    Unknown,
}

impl KeyQuestion {
    /// A question with these random bytes.
    pub fn new(nonce: [u8; 32]) -> Self {
        Self {
            nonce: STANDARD.encode(nonce),
            hubs: Vec::new(),
        }
    }

    /// The same, asking about these hubs.
    pub fn about(self, hubs: &[PublicKey]) -> Self {
        Self {
            hubs: hubs
                .iter()
                .take(HUBS_ASKED_ABOUT_MAX)
                .map(ToString::to_string)
                .collect(),
            ..self
        }
    }

    /// The hubs that it asks about. What is no key is none.
    pub fn hubs(&self) -> BTreeSet<PublicKey> {
        let hubs = self.hubs.iter().take(HUBS_ASKED_ABOUT_MAX);
        hubs.filter_map(|key| key.parse().ok()).collect()
    }

    fn denial_bytes(&self, hubs: &[String]) -> Vec<u8> {
        let mut text = format!("flotilla denied hubs v1\n{}\n", self.nonce);
        for key in hubs {
            text.push_str(key);
            text.push('\n');
        }
        text.into_bytes()
    }

    /// What is signed for it. The nonce is checked, so that nobody is made to sign another text.
    fn signed_bytes<'a>(&self, keys: impl Iterator<Item = &'a str>) -> Result<Vec<u8>, HubKeysError> {
        let nonce = STANDARD.decode(&self.nonce).map_err(|_| HubKeysError::Nonce)?;
        if nonce.len() != 32 {
            return Err(HubKeysError::Nonce);
        }
        let mut text = format!("flotilla hub keys v1\n{}\n", self.nonce);
        for key in keys {
            text.push_str(key);
            text.push('\n');
        }
        Ok(text.into_bytes())
    }
}

impl KeyAnswer {
    /// The answer of a hub that has these keys.
    pub fn new<'a>(
        question: &KeyQuestion,
        keys: impl Iterator<Item = &'a SecretKey> + Clone,
    ) -> Result<Self, HubKeysError> {
        let texts: Vec<_> = keys.clone().map(|key| key.public().to_string()).collect();
        let bytes = question.signed_bytes(texts.iter().map(String::as_str))?;
        let sign = |(key, secret): (String, &SecretKey)| SignedKey {
            key,
            signature: STANDARD.encode(secret.sign(&bytes)),
        };
        Ok(Self {
            keys: texts.into_iter().zip(keys).map(sign).collect(),
            denied: None,
        })
    }

    /// The same, with which of the hubs that it was asked about are denied; `key` is the first of the hub's. Of a question
    /// that is checked.
    #[must_use]
    pub fn with_denied(self, question: &KeyQuestion, key: &SecretKey, denied: &BTreeSet<PublicKey>) -> Self {
        if question.hubs.is_empty() {
            return self;
        }
        let hubs: Vec<_> = denied.iter().map(ToString::to_string).collect();
        let signature = STANDARD.encode(key.sign(&question.denial_bytes(&hubs)));
        Self {
            denied: Some(SignedDenials { hubs, signature }),
            ..self
        }
    }

    /// Which of the hubs that were asked about are denied, if the answer's first key signed it. `None` where the hub says
    /// nothing of it.
    pub fn denied(&self, question: &KeyQuestion) -> Result<Option<BTreeSet<PublicKey>>, HubKeysError> {
        let Some(denied) = &self.denied else { return Ok(None) };
        let first = self.keys.first().ok_or(HubKeysError::Count(0))?;
        let key: PublicKey = first
            .key
            .parse()
            .map_err(|_| HubKeysError::NotAKey(first.key.clone()))?;
        let signature = STANDARD.decode(&denied.signature).unwrap_or_default();
        if !key.verifies(&question.denial_bytes(&denied.hubs), &signature) {
            return Err(HubKeysError::NotSigned(key));
        }
        let asked = question.hubs();
        let parsed = denied.hubs.iter().filter_map(|key| key.parse().ok());
        Ok(Some(parsed.filter(|key| asked.contains(key)).collect()))
    }

    /// The keys, if each of them signed this list for this question.
    pub fn proven(&self, question: &KeyQuestion) -> Result<KeySet, HubKeysError> {
        let set = KeySet::try_from(self.keys.iter().map(|signed| signed.key.clone()).collect::<Vec<_>>())?;
        let bytes = question.signed_bytes(self.keys.iter().map(|signed| signed.key.as_str()))?;
        let signatures = self.keys.iter().map(|signed| STANDARD.decode(&signed.signature));
        for (signed, signature) in self.keys.iter().zip(signatures) {
            let key: PublicKey = signed
                .key
                .parse()
                .map_err(|_| HubKeysError::NotAKey(signed.key.clone()))?;
            if !signature.is_ok_and(|signature| key.verifies(&bytes, &signature)) {
                return Err(HubKeysError::NotSigned(key));
            }
        }
        Ok(set)
    }
}

impl KeySet {
    /// Its keys, sorted.
    pub fn iter(&self) -> impl Iterator<Item = PublicKey> {
        self.0.iter().copied()
    }

    fn shares_a_key_with(&self, other: &Self) -> bool {
        !self.0.is_disjoint(&other.0)
    }
}

impl TryFrom<Vec<String>> for KeySet {
    type Error = HubKeysError;

    fn try_from(texts: Vec<String>) -> Result<Self, HubKeysError> {
        let parse = |text: &String| text.parse().map_err(|_| HubKeysError::NotAKey(text.clone()));
        if texts.is_empty() || texts.len() > HUB_KEYS_MAX {
            return Err(HubKeysError::Count(texts.len()));
        }
        let keys = texts.iter().map(parse).collect::<Result<BTreeSet<PublicKey>, _>>()?;
        if keys.len() < texts.len() {
            return Err(HubKeysError::Count(texts.len()));
        }
        Ok(Self(keys))
    }
}

impl From<KeySet> for Vec<String> {
    fn from(set: KeySet) -> Self {
        set.iter().map(|key| key.to_string()).collect()
    }
}

impl From<Noted> for Vouched {
    fn from(noted: Noted) -> Self {
        match noted {
            Noted::Vouched { keys, by } => Self { keys, by: by.0 },
            Noted::Keys(keys) => keys.into(),
        }
    }
}

impl From<Vouched> for Noted {
    fn from(Vouched { keys, by }: Vouched) -> Self {
        match by.is_empty() {
            true => Self::Keys(keys),
            false => Self::Vouched { keys, by: KeySet(by) },
        }
    }
}

impl From<KeySet> for Vouched {
    /// As an older agent kept it.
    fn from(keys: KeySet) -> Self {
        Self {
            keys,
            by: BTreeSet::new(),
        }
    }
}

impl Vouched {
    /// Those of the given keys that vouch for it.
    fn by_given(&self, given: &[PublicKey]) -> impl Iterator<Item = PublicKey> {
        self.by.iter().copied().filter(|key| given.contains(key))
    }

    fn counts(&self, given: &[PublicKey]) -> bool {
        self.by_given(given).next().is_some()
    }
}

/// What counts of what an agent kept, now that it is given these keys. What was kept without a word of who vouches for it is
/// taken as vouched for by them.
pub fn taken_up(given: &[PublicKey], kept: Vec<Vouched>) -> Vec<Vouched> {
    let adopted = kept.into_iter().map(|set| match set.by.is_empty() {
        true => Vouched {
            by: given.iter().take(HUB_KEYS_MAX).copied().collect(),
            ..set
        },
        false => set,
    });
    adopted.filter(|set| set.counts(given)).collect()
}

/// The sets that an agent believes once a hub proved that it has the keys `told`. `given` are those that a person gave the
/// agent, and `sets` what it was told before, the oldest first.
///
/// What shares a key with `told` was said of the same hub, and counts no more: this is how a key is forgotten. A set that
/// says nothing beyond `given` is not kept. What is kept notes who vouches for it, also by way of sets of before.
pub fn believe(given: &[PublicKey], sets: &[Vouched], told: KeySet) -> Result<Vec<Vouched>, HubKeysError> {
    let direct = told.iter().filter(|key| given.contains(key));
    let of_this_hub = sets.iter().filter(|set| set.keys.shares_a_key_with(&told));
    let by: BTreeSet<_> = direct.chain(of_this_hub.flat_map(|set| set.by_given(given))).collect();
    let by: BTreeSet<_> = by.into_iter().take(HUB_KEYS_MAX).collect();
    if by.is_empty() {
        return Err(HubKeysError::Unknown);
    }
    let others = sets.iter().filter(|set| !set.keys.shares_a_key_with(&told));
    let mut believed: Vec<_> = others.filter(|set| set.counts(given)).cloned().collect();
    if told.iter().any(|key| !given.contains(&key)) {
        believed.push(Vouched { keys: told, by });
    }
    Ok(newest(believed))
}

/// What two agents of one cluster were told: of a hub that both know of, what `own` says counts.
pub fn merge(found: &[Vouched], own: &[Vouched]) -> Vec<Vouched> {
    let is_new = |set: &&Vouched| !own.iter().any(|own| own.keys.shares_a_key_with(&set.keys));
    newest(found.iter().filter(is_new).chain(own).cloned().collect())
}

fn newest(mut sets: Vec<Vouched>) -> Vec<Vouched> {
    let too_many = sets.len().saturating_sub(HUB_KEY_SETS_MAX);
    sets.drain(..too_many);
    sets
}

/// The keys that an agent believes: those that a person gave it, and those that it was told and that one of these vouches for.
pub fn all(given: &[PublicKey], sets: &[Vouched]) -> Vec<PublicKey> {
    let mut keys = given.to_vec();
    for key in sets
        .iter()
        .filter(|set| set.counts(given))
        .flat_map(|set| set.keys.iter())
    {
        if !keys.contains(&key) {
            keys.push(key);
        }
    }
    keys
}

#[cfg(test)]
mod tests;
