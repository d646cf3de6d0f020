//! What people and the past ask of a decision beside the fleet's files.

use std::collections::BTreeMap;

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
    /// No source commit asks for the decision, so that a unit which such a decision moved just now stays.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub unasked: bool,
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
