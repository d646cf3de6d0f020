//! The placements of all units.

use std::collections::BTreeMap;

use crate::digest::Digest;
use crate::finding::Finding;
use crate::fleet::Fleet;
use crate::name::{ClusterName, ObjectKey, UnitKey};
use crate::plan::Reports;
use crate::published::UnitPlacement;
use crate::schedule::unit::{Context, schedule_unit};

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
