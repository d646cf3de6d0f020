//! Which keys a hub has: what it says of them on a `keys` stream, and when an agent believes it.
//!
//! The agent asks with a nonce of its own. The hub answers with all its keys, each of which signs the nonce and the whole
//! list, so that no server in between can leave one out, add one, or tell an answer of before. An agent that knows one of
//! the keys believes the list. Other hubs ask as agents do. Where it is kept, and what is dialled with it, is deliberately not
//! here.

mod ask;

use std::collections::BTreeSet;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};
use tunnel::{PublicKey, SecretKey};

pub use self::ask::{AskError, ask};
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
mod tests {
    use super::*;

    fn secret() -> SecretKey {
        SecretKey::generate().expect("there is randomness")
    }

    fn key(number: usize) -> PublicKey {
        let mut bytes = [0; 32];
        bytes[..8].copy_from_slice(&number.to_be_bytes());
        PublicKey::from_bytes(bytes)
    }

    fn set<const N: usize>(numbers: [usize; N]) -> KeySet {
        KeySet(numbers.map(key).into())
    }

    /// A set that the key of this number vouches for.
    fn by<const N: usize>(number: usize, numbers: [usize; N]) -> Vouched {
        Vouched {
            keys: set(numbers),
            by: [key(number)].into(),
        }
    }

    #[track_caller]
    fn check(given: &[usize], sets: &[Vouched], told: KeySet, expected: Result<Vec<Vouched>, HubKeysError>) {
        let given: Vec<_> = given.iter().copied().map(key).collect();
        assert_eq!(believe(&given, sets, told), expected);
    }

    #[test]
    fn an_agent_that_is_given_another_key_believes_no_more_what_the_old_one_vouched_for() {
        let (old, new) = ([key(1)], [key(5)]);
        // Somebody who had the old key for a moment vouched for one of his own, and that one for the next.
        let first = believe(&old, &[], set([1, 8])).expect("the old key vouches");
        let then = believe(&old, &first, set([8, 9])).expect("what was told vouches");
        assert_eq!(then, [by(1, [8, 9])]);
        assert_eq!(all(&old, &then), [1, 8, 9].map(key));
        assert_eq!(all(&new, &then), new);
        assert!(taken_up(&new, then.clone()).is_empty());
        check(&[5], &then, set([9]), Err(HubKeysError::Unknown));
        check(&[5], &then, set([5, 6]), Ok(vec![by(5, [5, 6])]));
        // While both are given, both count.
        assert_eq!(taken_up(&[key(1), key(5)], then.clone()), then);
        // What is kept without a word of it is taken up once, and then as by the keys of that time.
        let kept: Vec<Vouched> = serde_json::from_value(serde_json::json!([[key(3).to_string()]])).expect("of before");
        let taken = taken_up(&old, kept);
        assert_eq!(taken, [by(1, [3])]);
        assert!(taken_up(&new, taken).is_empty());
    }

    #[test]
    fn keys_are_believed_only_from_a_hub_that_has_a_known_one() {
        check(&[1], &[], set([1, 2]), Ok(vec![by(1, [1, 2])]));
        check(&[1], &[by(1, [1, 2])], set([2, 3]), Ok(vec![by(1, [2, 3])]));
        check(&[1], &[], set([2, 3]), Err(HubKeysError::Unknown));
        check(&[1], &[by(1, [1, 2])], set([3]), Err(HubKeysError::Unknown));
    }

    #[test]
    fn a_key_that_the_hub_has_no_more_is_forgotten_unless_a_person_gave_it() {
        check(&[1], &[by(1, [1, 2])], set([2]), Ok(vec![by(1, [2])]));
        check(&[1], &[by(1, [2, 3])], set([3]), Ok(vec![by(1, [3])]));
        check(&[1], &[by(1, [1, 2])], set([1]), Ok(Vec::new()));
        check(&[1, 2], &[], set([1, 2]), Ok(Vec::new()));
        assert_eq!(all(&[key(1)], &[by(1, [2, 3])]), [1, 2, 3].map(key));
    }

    #[test]
    fn what_one_hub_says_leaves_another_hub_s_keys_alone() {
        check(
            &[1, 5],
            &[by(1, [1, 2])],
            set([5, 6]),
            Ok(vec![by(1, [1, 2]), by(5, [5, 6])]),
        );
        let mut sets = Vec::new();
        for number in 1..=3 * HUB_KEY_SETS_MAX {
            let given: Vec<_> = (1..=3 * HUB_KEY_SETS_MAX).map(key).collect();
            sets = believe(&given, &sets, set([number, 1_000 + number])).expect("it is known");
        }
        assert_eq!(sets.len(), HUB_KEY_SETS_MAX, "there is no end of hubs otherwise");
    }

    #[test]
    fn of_two_agents_each_knows_what_the_other_was_told() {
        let (found, own) = ([by(1, [1, 2]), by(7, [7])], [by(1, [2, 3])]);
        assert_eq!(merge(&found, &own), [by(7, [7]), by(1, [2, 3])]);
        assert_eq!(merge(&[], &own), own);
        assert_eq!(merge(&found, &[]), found);
    }

    #[test]
    fn an_answer_is_proven_by_each_key_for_one_question_and_one_list() {
        let (old, new) = (secret(), secret());
        let question = KeyQuestion::new([7; 32]);
        let answer = KeyAnswer::new(&question, [&old, &new].into_iter()).expect("it is signed");
        let proven = answer.proven(&question).expect("each key signed");
        assert_eq!(proven, KeySet([old.public(), new.public()].into()));
        let repeated = answer.proven(&KeyQuestion::new([8; 32]));
        assert_eq!(repeated, Err(HubKeysError::NotSigned(old.public())));
        let less = KeyAnswer {
            keys: answer.keys[..1].to_vec(),
            denied: None,
        };
        assert_eq!(
            less.proven(&question),
            Err(HubKeysError::NotSigned(old.public())),
            "none was left out"
        );
        let mut forged = answer.clone();
        forged.keys[1].key = secret().public().to_string();
        assert!(forged.proven(&question).is_err());
    }

    #[test]
    fn which_hubs_are_denied_is_signed_for_one_question_and_about_those_that_were_asked_about() {
        let (hub, other, third) = (secret(), secret().public(), secret().public());
        let question = KeyQuestion::new([7; 32]).about(&[other, third]);
        let answer = KeyAnswer::new(&question, std::iter::once(&hub)).expect("it is signed");
        assert_eq!(answer.denied(&question), Ok(None), "an older hub");
        let denied = BTreeSet::from([other]);
        let answer = answer.with_denied(&question, &hub, &denied);
        assert_eq!(answer.denied(&question), Ok(Some(denied.clone())));
        assert!(answer.proven(&question).is_ok(), "its keys are proven as before");
        // Another question, a list of somebody in between, and a hub that nobody asked about.
        let again = KeyQuestion::new([8; 32]).about(&[other, third]);
        assert!(answer.denied(&again).is_err());
        let mut forged = answer.clone();
        forged.denied.as_mut().expect("it is there").hubs = vec![third.to_string()];
        assert!(forged.denied(&question).is_err());
        let of_one = KeyQuestion::new([7; 32]).about(&[third]);
        assert_eq!(answer.denied(&of_one), Ok(Some(BTreeSet::new())));
        let silent = KeyQuestion::new([7; 32]);
        let plain = KeyAnswer::new(&silent, std::iter::once(&hub)).expect("it is signed");
        assert_eq!(
            plain.clone().with_denied(&silent, &hub, &denied),
            plain,
            "an older agent"
        );
    }

    #[test]
    fn what_is_no_list_of_keys_is_no_list() {
        let question = KeyQuestion::new([7; 32]);
        let secret = secret();
        let answer = |count| KeyAnswer::new(&question, std::iter::repeat_n(&secret, count)).expect("it is signed");
        for count in [0, 2, HUB_KEYS_MAX + 1] {
            let proven = answer(count).proven(&question);
            assert_eq!(proven, Err(HubKeysError::Count(count)));
        }
        let mut odd = answer(1);
        odd.keys[0].key = "ed25519:?".to_owned();
        assert_eq!(
            odd.proven(&question),
            Err(HubKeysError::NotAKey("ed25519:?".to_owned()))
        );
    }

    #[test]
    fn nobody_is_made_to_sign_another_text() {
        let secret = secret();
        for nonce in ["", "AAAA", "flotilla lineage v1\nnorth\n"] {
            let question = KeyQuestion {
                nonce: nonce.to_owned(),
                hubs: Vec::new(),
            };
            let answer = KeyAnswer::new(&question, std::iter::once(&secret));
            assert_eq!(answer, Err(HubKeysError::Nonce), "{nonce}");
        }
    }

    #[test]
    fn a_set_reads_back_as_it_was_kept() {
        let kept = serde_json::to_string(&by(1, [1, 2])).expect("it is JSON");
        assert_eq!(
            serde_json::from_str::<Vouched>(&kept).expect("it reads back"),
            by(1, [1, 2])
        );
        assert!(serde_json::from_str::<Vouched>("[]").is_err());
        assert!(serde_json::from_str::<Vouched>(r#"["x"]"#).is_err());
    }
}
