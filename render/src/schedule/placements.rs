//! The placements of all units.

use std::collections::BTreeMap;

use crate::by_object::ByObject;
use crate::digest::Digest;
use crate::finding::Finding;
use crate::fleet::{Fleet, Unit};
use crate::name::UnitKey;
use crate::published::{Evidence, UnitPlacement};
use crate::schedule::context::Context;
use crate::schedule::desired::workloads_of;
use crate::schedule::ledger::Ledger;
use crate::schedule::unit::schedule_unit;
use crate::schedule::{Moves, Reports, Scheduled};
use crate::shared::Shared;

/// Unit → its clusters. A unit that is blocked, or has no cluster, has no entry.
pub type Placements = BTreeMap<UnitKey, Scheduled>;

/// One cluster's share of a unit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Assignment {
    /// Divided object → replicas here. Empty without dividing.
    pub replicas: ByObject,
    /// Why this cluster has the unit, and this many; sentences for people.
    pub reasons: Shared<Vec<String>>,
    /// Over what was looked at to decide it: equal inputs, equal assignment.
    pub inputs: Digest,
    /// What was known of its room, where that decided.
    pub capacity: Option<Evidence>,
    /// When it leaves, since a taint is tolerated for a while only.
    pub leaves_at: Option<i64>,
}

/// Places every unit that is not blocked; whoever composes a plan keeps the blocked ones as they were.
///
/// The outcome depends on the arguments alone, never on an order.
pub fn schedule(
    fleet: &Fleet,
    reports: &Reports,
    previous: &BTreeMap<UnitKey, UnitPlacement>,
    now: i64,
) -> (Placements, Vec<Finding>) {
    let moves = Moves::default();
    let context = Context::new(fleet, reports, previous, &moves, now);
    let mut ledger = Ledger::default();
    let mut placements = Placements::new();
    let mut findings = Vec::new();
    for (key, unit) in in_order(fleet).filter(|(_, unit)| unit.blocked.is_empty()) {
        let scheduled = schedule_unit(&context, &mut ledger, &workloads_of(unit), unit);
        findings.extend(scheduled.findings.iter().cloned());
        if !scheduled.assignments.is_empty() {
            placements.insert(key.clone(), scheduled);
        }
    }
    findings.extend(context.silence.findings().iter().cloned());
    (placements, findings)
}

/// The units in the order in which they are served: the higher priority first, equal ones by name.
pub fn in_order(fleet: &Fleet) -> impl Iterator<Item = (&UnitKey, &Unit)> {
    let mut units: Vec<_> = fleet.units.iter().collect();
    units.sort_by_key(|(key, unit)| (std::cmp::Reverse(unit.subscription.placing.priority), *key));
    units.into_iter()
}
