//! What commits asked to place anew: a word counts for one decision, whether that moves something or not.

use std::collections::{BTreeMap, BTreeSet};

use render::model::Approval;
use render::plan::deltas;
use render::{Plan, Revision, UnitKey, UnitPlacement};

use super::{Planned, State};

/// Takes in of which units room decided something.
pub(super) fn planned(state: &mut State, planned: &Planned) {
    state.by_room.clone_from(&planned.plan.by_room);
    if planned.gate == Approval::Required {
        // What is proposed to place anew stays as it is proposed, whatever clusters report meanwhile.
        let rebalanced = &planned.plan.rebalanced;
        state.by_room.retain(|unit| !rebalanced.contains(unit));
    }
}

/// These units are where they would be placed anew: later reports do not move them by the same word.
pub(super) fn nothing_to_move(state: &mut State, revision: &Revision, rebalanced: BTreeSet<UnitKey>) {
    let done = rebalanced.into_iter().map(|unit| (unit, revision.clone()));
    state.rebalanced.extend(done);
    let placed = state.previous();
    state.rebalanced.retain(|unit, _| placed.units.contains_key(unit));
}

/// Whether nothing moves but what a commit asked to place anew.
pub(super) fn is_rebalance(before: &BTreeMap<UnitKey, UnitPlacement>, plan: &Plan) -> bool {
    let deltas = deltas(before, &plan.units);
    let is_asked = |unit: &UnitKey| plan.rebalanced.contains(unit);
    let mut changes = deltas.iter().flat_map(|delta| &delta.clusters);
    let moves_alone = changes.all(|change| match (&change.from, &change.to) {
        (Some(from), Some(to)) => from.digest == to.digest,
        _ => true,
    });
    !deltas.is_empty() && moves_alone && deltas.iter().all(|delta| is_asked(&delta.unit))
}
