//! Which clusters are better than others for a unit.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::digest::Digest;
use crate::model::Preference;
use crate::name::{ClusterName, UnitKey};
use crate::schedule::clusternet;

/// What speaks for a cluster, part by part. The greater is the better.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Default, Serialize)]
pub struct Score {
    /// It has the unit already.
    pub placed: i64,
    /// The weights of the preferences that it meets.
    pub preferred: i64,
    /// A taint asks to prefer others.
    pub taint: i64,
}

/// What is placed stays, whatever is preferred by now: to move it is a decision of its own.
pub(super) const PLACED: i64 = 1_000_000;

/// As much as a preference can weigh.
pub(super) const TAINTED: i64 = -100;

impl Score {
    /// All parts together.
    pub fn total(&self) -> i64 {
        self.placed + self.preferred + self.taint
    }
}

/// The weights of the preferences that these labels meet.
pub(super) fn preferred(preferences: &[Preference], labels: &BTreeMap<String, String>) -> i64 {
    let met = preferences
        .iter()
        .filter(|preference| preference.preference.matches(labels));
    met.map(|preference| i64::try_from(preference.weight).unwrap_or(i64::MAX))
        .sum()
}

/// The same by Clusternet's arithmetic: what is placed stays only where nothing else tells clusters apart.
pub(super) fn as_clusternet(scores: &mut BTreeMap<&ClusterName, Score>) {
    let taints = |score: &Score| u64::try_from(score.taint / TAINTED).unwrap_or_default();
    let most = scores.values().map(taints).max().unwrap_or_default();
    for score in scores.values_mut() {
        score.taint = i64::try_from(clusternet::taint_score(taints(score), most)).unwrap_or_default();
        score.placed = score.placed.min(1);
    }
}

/// The clusters from best to worst. Equal ones stand in an order of the unit's own, so that many units do not all
/// prefer the first by name.
pub(super) fn ranked<'a>(unit: &UnitKey, scores: &BTreeMap<&'a ClusterName, Score>) -> Vec<&'a ClusterName> {
    let mut order: Vec<_> = scores.iter().map(|(name, score)| (*name, score.total())).collect();
    order.sort_by_cached_key(|(name, total)| (std::cmp::Reverse(*total), tie(unit, name), (*name).clone()));
    order.into_iter().map(|(name, _)| name).collect()
}

/// Tells equal clusters apart, for each unit in another way and for one unit always in the same.
pub(super) fn tie(unit: &UnitKey, cluster: &ClusterName) -> Digest {
    Digest::of_bytes(format!("{unit} {cluster}").as_bytes())
}
