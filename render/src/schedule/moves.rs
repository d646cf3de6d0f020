//! What people and the past ask of a decision beside the fleet's files.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::name::UnitKey;
use crate::published::UnitPlacement;

/// What may move placements in this decision, beside what the files say.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Moves {
    /// Units that commits since the last decision ask to place anew: trailer `Rebalance`.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub rebalance: BTreeMap<UnitKey, Rebalance>,
    /// Units that asked for the same before: how they were placed then. Empty where a commit since the last decision
    /// has the trailer `Reschedule: true`.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub remembered: BTreeMap<UnitKey, UnitPlacement>,
    /// Whether the revision was decided on before, so that no source commit asks for the decision: a unit that such a
    /// decision moved just now stays, and none takes the room of another.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub decided: bool,
}

/// What of a unit is placed anew.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Rebalance {
    /// All of it.
    All,
    /// The replicas that no node of their cluster takes.
    Pending,
}

/// What a trailer `Rebalance` asks for: `team/web`, or `team/*` for all of a namespace, with ` pending` behind it where
/// only that is meant.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct RebalanceWord {
    namespace: String,
    /// `None`: all.
    name: Option<String>,
    is_pending: bool,
}

impl RebalanceWord {
    /// The name of the trailer.
    pub const TRAILER: &str = "Rebalance";

    /// The word for one unit.
    pub fn of_unit(unit: &UnitKey, what: Rebalance) -> Self {
        Self {
            namespace: unit.namespace().to_owned(),
            name: Some(unit.name().to_owned()),
            is_pending: what == Rebalance::Pending,
        }
    }

    /// The word for all units of a namespace.
    pub fn of_namespace(namespace: &str, what: Rebalance) -> Self {
        Self {
            namespace: namespace.to_owned(),
            name: None,
            is_pending: what == Rebalance::Pending,
        }
    }

    /// Reads a trailer's value; `None` where it is none.
    pub fn parse(text: &str) -> Option<Self> {
        let mut words = text.split_whitespace();
        let (namespace, name) = words.next()?.split_once('/')?;
        let is_pending = match words.next() {
            None => false,
            Some("pending") => true,
            Some(_) => return None,
        };
        let name = (name != "*").then(|| name.to_owned());
        // What can be no unit's name names none.
        let example = UnitKey::new(namespace, name.as_deref().unwrap_or("any"));
        let is_one = words.next().is_none() && example.is_ok();
        is_one.then(|| Self {
            namespace: namespace.to_owned(),
            name,
            is_pending,
        })
    }

    /// Whether it is about a unit.
    pub fn names(&self, unit: &UnitKey) -> bool {
        unit.namespace() == self.namespace && self.name.as_deref().is_none_or(|name| name == unit.name())
    }

    /// What of the unit is placed anew.
    pub fn what(&self) -> Rebalance {
        match self.is_pending {
            true => Rebalance::Pending,
            false => Rebalance::All,
        }
    }
}

/// A trailer's value.
impl fmt::Display for RebalanceWord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let suffix = if self.is_pending { " pending" } else { "" };
        write!(f, "{}/{}{suffix}", self.namespace, self.name.as_deref().unwrap_or("*"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_to_rebalance_names_a_unit_or_a_namespace() {
        let unit = |text: &str| text.parse::<UnitKey>().expect("a valid unit");
        let word = |text: &str| RebalanceWord::parse(text).expect("it is one");
        assert!(word("team/web").names(&unit("team/web")) && !word("team/web").names(&unit("team/api")));
        assert!(word(" team/* ").names(&unit("team/api")) && !word("team/*").names(&unit("other/api")));
        assert_eq!(word("team/web").what(), Rebalance::All);
        assert_eq!(word("team/web  pending").what(), Rebalance::Pending);
        for text in ["team/web", "team/* pending"] {
            assert_eq!(word(text).to_string(), text);
        }
        for wrong in [
            "",
            "web",
            "team/",
            "/web",
            "*/web",
            "team/web soon",
            "team/web pending now",
            "team/We b",
        ] {
            assert_eq!(RebalanceWord::parse(wrong), None, "{wrong:?}");
        }
    }
}
