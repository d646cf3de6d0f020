//! Who asks to be let in and is not: told once to people for each caller, and to nobody else.
//!
//! Callers choose what they say, so that all of it is bounded, and whoever stays away is forgotten. Who may come in is
//! decided elsewhere.

use std::collections::BTreeMap;

use render::ClusterName;
use tunnel::PublicKey;

use crate::limits::{KNOCK_FORGOTTEN_SECONDS, KNOCKS_MAX};

/// One caller that is not let in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Knock {
    /// The cluster that it says it is.
    pub cluster: ClusterName,
    /// The key that it proved to hold; absent where it proved none.
    pub key: Option<PublicKey>,
    /// Why it is not let in.
    pub why: Why,
    /// When it asked first, in seconds since 1970.
    pub first: i64,
    /// When it asked last.
    pub last: i64,
    /// How often it asked.
    pub count: u64,
}

/// Why a caller is not let in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Why {
    /// No file says that there is such a cluster.
    NotRegistered,
    /// The cluster's file names other keys.
    OtherKey,
    /// The key is another cluster's.
    RegisteredAs {
        /// Whose it is.
        name: ClusterName,
    },
    /// The deny list has its name or its key.
    Denied,
    /// It has a token, and its file waits for a person to merge it.
    Proposed,
    /// Its token is worth nothing: it is none, of another cluster, too old, or used by somebody else.
    TokenRefused,
    /// Another agent with this key is there already.
    DuplicateAgent,
}

impl Why {
    /// A CamelCase word for tools.
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::NotRegistered => "NotRegistered",
            Self::OtherKey => "OtherKey",
            Self::RegisteredAs { .. } => "RegisteredAs",
            Self::Denied => "Denied",
            Self::Proposed => "Proposed",
            Self::TokenRefused => "TokenRefused",
            Self::DuplicateAgent => "DuplicateAgent",
        }
    }
}

impl Why {
    /// How much somebody has to have who is refused so: nothing, a cluster's name, or a secret.
    fn weight(&self) -> u8 {
        match self {
            Self::NotRegistered | Self::TokenRefused => 0,
            Self::OtherKey | Self::Denied => 1,
            Self::RegisteredAs { .. } | Self::Proposed | Self::DuplicateAgent => 2,
        }
    }
}

impl Knock {
    /// What is so, and what a person does about it.
    pub fn message(&self) -> String {
        let cluster = &self.cluster;
        let key = match &self.key {
            Some(key) => format!("the key {key}"),
            None => "a key that it did not prove".to_owned(),
        };
        match &self.why {
            Why::NotRegistered => format!("an agent with {key} asks to be cluster {cluster}, which has no file"),
            Why::OtherKey => format!(
                "an agent with {key} asks to be cluster {cluster}, whose file names others: add it to spec.publicKeys if the \
                 agent was installed anew, else look who that is"
            ),
            Why::RegisteredAs { name } => format!(
                "an agent with {key} asks to be cluster {cluster}, and that key is cluster {name}'s: start it with \
                 --cluster {name}, or rename the file"
            ),
            Why::Denied => format!("an agent with {key} asks to be cluster {cluster}, and the hub's deny list has it"),
            Why::Proposed => format!(
                "an agent with {key} asks to be cluster {cluster} and has a bootstrap token: its file waits for a person to \
                 merge it"
            ),
            Why::TokenRefused => format!(
                "an agent with {key} asks to be cluster {cluster} with a bootstrap token that is unknown, of another cluster, \
                 too old or used by another agent"
            ),
            Why::DuplicateAgent => format!(
                "a second agent with {key} asks to be cluster {cluster}: end it if it is a copy, and give both new keys if \
                 nobody knows it"
            ),
        }
    }
}

/// The callers that asked lately.
#[derive(Debug, Default)]
pub(super) struct Table {
    callers: BTreeMap<(ClusterName, Option<[u8; 32]>), Knock>,
    changed: bool,
}

impl Table {
    /// A caller was refused.
    pub(super) fn knock(&mut self, cluster: ClusterName, key: Option<PublicKey>, why: Why, now: i64) {
        let at = (cluster.clone(), key.map(|key| *key.as_bytes()));
        if !self.callers.contains_key(&at) && self.callers.len() >= KNOCKS_MAX {
            self.drop_one();
        }
        let caller = self.callers.entry(at).or_insert(Knock {
            cluster,
            key,
            why: why.clone(),
            first: now,
            last: now,
            count: 0,
        });
        (caller.why, caller.last) = (why, now);
        caller.count = caller.count.saturating_add(1);
        self.changed = true;
    }

    /// A caller with this key was let in as this cluster: it is no stranger any more.
    pub(super) fn let_in(&mut self, cluster: &ClusterName, key: &PublicKey) {
        let at = (cluster.clone(), Some(*key.as_bytes()));
        let is_over = |knock: &Knock| knock.why != Why::DuplicateAgent;
        if self.callers.get(&at).is_some_and(is_over) {
            self.callers.remove(&at);
            self.changed = true;
        }
    }

    /// What there is now, where it is other than what was taken last.
    pub(super) fn news(&mut self, now: i64) -> Option<Vec<Knock>> {
        let before = self.callers.len();
        self.callers
            .retain(|_, caller| now.saturating_sub(caller.last) < KNOCK_FORGOTTEN_SECONDS);
        let changed = std::mem::take(&mut self.changed) || self.callers.len() != before;
        changed.then(|| self.callers.values().cloned().collect())
    }

    /// Whoever asked longest ago is dropped for a new one. A flood of made-up names and keys pushes out others of its kind
    /// first, and never what nobody can make up.
    fn drop_one(&mut self) {
        let rank = |caller: &Knock| (caller.key.is_some(), caller.why.weight(), caller.last);
        let oldest = self.callers.iter().min_by_key(|(_, caller)| rank(caller));
        if let Some(at) = oldest.map(|(at, _)| at.clone()) {
            self.callers.remove(&at);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(text: &str) -> ClusterName {
        ClusterName::parse(text).expect("a valid name")
    }

    fn key(number: u8) -> PublicKey {
        PublicKey::from_bytes([number; 32])
    }

    #[test]
    fn fifty_dials_of_one_agent_are_one_caller() {
        let mut table = Table::default();
        for now in 0..50 {
            table.knock(name("oslo"), Some(key(1)), Why::NotRegistered, now);
        }
        let news = table.news(50).expect("it is new");
        assert_eq!(
            news.iter()
                .map(|knock| (knock.first, knock.last, knock.count))
                .collect::<Vec<_>>(),
            [(0, 49, 50)]
        );
        assert_eq!(table.news(50), None, "nothing happened since");
    }

    #[test]
    fn who_stays_away_is_forgotten_and_so_is_who_is_let_in() {
        let mut table = Table::default();
        table.knock(name("oslo"), Some(key(1)), Why::NotRegistered, 0);
        table.knock(name("rome"), Some(key(2)), Why::NotRegistered, 0);
        table.let_in(&name("oslo"), &key(1));
        assert_eq!(table.news(1).map(|news| news.len()), Some(1));
        assert_eq!(table.news(KNOCK_FORGOTTEN_SECONDS), Some(Vec::new()));
    }

    #[test]
    fn a_flood_of_names_pushes_out_no_agent_of_a_registered_cluster() {
        let mut table = Table::default();
        table.knock(name("oslo"), Some(key(1)), Why::OtherKey, 0);
        table.knock(name("rome"), Some(key(3)), Why::DuplicateAgent, 0);
        for number in 0..3 * KNOCKS_MAX {
            let made_up = || name(&format!("made-up-{number}"));
            table.knock(made_up(), Some(key(2)), Why::NotRegistered, 1);
            table.knock(made_up(), Some(key(2)), Why::TokenRefused, 1);
            table.knock(made_up(), None, Why::OtherKey, 1);
        }
        let news = table.news(2).expect("it is new");
        assert_eq!(news.len(), KNOCKS_MAX);
        let is_there = |news: &[Knock], cluster| news.iter().any(|knock| knock.cluster == name(cluster));
        assert!(is_there(&news, "oslo") && is_there(&news, "rome"), "{news:?}");
        // Who knows a name has as many keys as it likes.
        for number in 0..3 * KNOCKS_MAX {
            let mut bytes = [9; 32];
            bytes[..8].copy_from_slice(&number.to_be_bytes());
            table.knock(name("oslo"), Some(PublicKey::from_bytes(bytes)), Why::OtherKey, 3);
        }
        let news = table.news(4).expect("it is new");
        assert!(is_there(&news, "rome"), "the copied key is still told of: {news:?}");
    }
}
