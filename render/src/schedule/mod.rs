//! Which clusters get a unit, and how many replicas each. Next room: `render::localize`.
//!
//! In: a [`Fleet`], what clusters reported, and the placements published before. Out: for every unit that
//! is not blocked, its clusters with replicas and reasons. What a cluster's variant says is deliberately
//! not here, and neither is the moment at which a decision reaches a cluster.

mod candidates;
mod desired;
mod divide;
mod inputs;
mod kept;
mod taints;
mod unit;

use std::collections::BTreeMap;

use crate::digest::Digest;
use crate::finding::Finding;
use crate::fleet::Fleet;
use crate::name::{ClusterName, ObjectKey, UnitKey};
use crate::plan::Reports;
use crate::published::UnitPlacement;

pub use desired::{desired_replicas, is_divisible};
pub use divide::divide;
pub use taints::{Verdict, tolerates, verdict};
pub use unit::{Context, schedule_unit};

/// Unit → its clusters. A unit that is blocked, or has no cluster, has no entry.
pub type Placements = BTreeMap<UnitKey, BTreeMap<ClusterName, Assignment>>;

/// One cluster's share of a unit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Assignment {
    /// Divided object → replicas here. Empty without dividing.
    pub replicas: BTreeMap<ObjectKey, u64>,
    /// Why this cluster has the unit, and this many; sentences for people.
    pub reasons: Vec<String>,
    /// Over what was looked at to decide it: equal inputs, equal assignment.
    pub inputs: Digest,
}

/// Places every unit that is not blocked; whoever composes a plan keeps the blocked ones as they were.
///
/// The outcome depends on the arguments alone, never on an order: a unit scheduled by itself with
/// [`schedule_unit`] gets the same.
pub fn schedule(
    fleet: &Fleet,
    reports: &Reports,
    previous: &BTreeMap<UnitKey, UnitPlacement>,
    now: i64,
) -> (Placements, Vec<Finding>) {
    let context = Context::new(fleet, reports, now);
    let mut placements = Placements::new();
    let mut findings = Vec::new();
    for (key, unit) in fleet.units.iter().filter(|(_, unit)| unit.blocked.is_empty()) {
        let (assignments, found) = schedule_unit(&context, unit, previous.get(key));
        findings.extend(found);
        if !assignments.is_empty() {
            placements.insert(key.clone(), assignments);
        }
    }
    (placements, findings)
}

#[cfg(test)]
mod tests;
