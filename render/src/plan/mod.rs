//! Composes the rooms: a snapshot in, a plan out.
//!
//! The blast wall stands here. A unit with an error keeps its whole last good content everywhere; a
//! cluster whose overrides do not fit keeps its own; every other unit and cluster moves on.

mod delta;
mod diff;
mod group;
mod memo;
mod overridden;
mod predicted;
mod previews;
mod settle;
mod unit;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::chart::{PreviewKey, PreviewRequest, Previews};
use crate::describe::Description;
use crate::digest::Digest;
use crate::finding::Finding;
use crate::fleet::Fleet;
use crate::name::{ClusterName, Revision, UnitKey};
use crate::predictor::Question;
use crate::published::{Placement, Published, UnitPlacement};
use crate::schedule::{Ledger, in_order};

pub use crate::schedule::{Moves, Reports};
pub use delta::{Alike, ClusterDelta, Delta, Share, UnplacedChange, deltas, unplaced_changes};
pub use diff::{Change, FieldChange, ObjectChange, changes};
pub use memo::Memo;
pub(crate) use overridden::Overridden;
pub use predicted::{CAPABILITIES_UNKNOWN, PredictedChange, changes_charts, predicted_changes, unpredicted};
pub use settle::{Fixed, Part, Staying, fixed, settle};

/// All that a decision may look at.
#[derive(Clone, Debug)]
pub struct Snapshot {
    /// The revision to plan.
    pub revision: Revision,
    /// What it says.
    pub fleet: Arc<Fleet>,
    /// Room by cluster; read by dynamic scheduling.
    pub reports: Reports,
    /// What people and the past ask beside the files; read by scheduling.
    pub moves: Moves,
    /// What charts are predicted to bring.
    pub chart_previews: Previews,
    /// What `rendered` says now.
    pub previous: Arc<Published>,
    /// Seconds since 1970.
    pub now: i64,
}

/// What should be, as data only.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Plan {
    /// What `rendered` should say.
    pub units: BTreeMap<UnitKey, UnitPlacement>,
    /// The contents rendered by this plan, by digest. What is held back is not among them: its content
    /// is where `previous` came from.
    pub contents: BTreeMap<Digest, Arc<Description>>,
    /// Predictions of charts that are still to be made. Until then their clusters keep what they have.
    pub pending: BTreeMap<PreviewKey, PreviewRequest>,
    /// The units of which the room that clusters have decided something: other room may decide otherwise.
    pub by_room: BTreeSet<UnitKey>,
    /// What predictors are to say, whether they have or not. Until then their clusters get no more by room.
    pub questions: BTreeMap<(ClusterName, Digest), Question>,
    /// When time alone may decide otherwise, in seconds since 1970.
    pub again_at: Option<i64>,
    /// Units that ask for something else than before: what they ask for. With how they were placed when they asked for
    /// the same ([`Moves::remembered`]) they are placed so again.
    pub recalls: BTreeMap<UnitKey, Digest>,
    /// Units that were placed anew because a commit asked for it.
    pub rebalanced: BTreeSet<UnitKey>,
    /// Findings of scheduling, localizing and policy, sorted; load's are not repeated.
    pub findings: Vec<Finding>,
}

/// Plans a snapshot. The same snapshot gives the same plan, with any memo.
pub fn plan(snapshot: &Snapshot, memo: &mut Memo) -> Plan {
    let context = unit::Context::new(snapshot);
    let mut plan = Plan::default();
    let mut next = Memo::default();
    let mut ledger = Ledger::default();
    for (key, declared) in in_order(&snapshot.fleet) {
        let planned = memo.unit(&context, &mut ledger, (key, declared), &mut next);
        for rendered in &planned.contents {
            plan.contents
                .insert(rendered.content.digest, Arc::clone(&rendered.content));
        }
        let pending = planned.pending.iter().map(|request| (request.key(), request.clone()));
        plan.pending.extend(pending);
        let questions = planned.questions.iter();
        let questions = questions.map(|question| ((question.cluster.clone(), question.key()), question.clone()));
        plan.questions.extend(questions);
        plan.findings.extend(planned.findings.iter().cloned());
        if planned.by_room {
            plan.by_room.insert(key.clone());
        }
        plan.again_at = earlier(plan.again_at, planned.again_at);
        if planned.rebalanced {
            plan.rebalanced.insert(key.clone());
        }
        plan.recalls.extend(planned.recalls.map(|asks| (key.clone(), asks)));
        if !planned.placement.clusters.is_empty() {
            plan.units.insert(key.clone(), planned.placement.clone());
        }
    }
    plan.again_at = earlier(plan.again_at, context.schedule.again_at());
    plan.findings.extend(context.schedule.alarms().iter().cloned());
    plan.findings.extend(previews::missing_helm(snapshot));
    *memo = next;
    plan.findings.sort();
    plan
}

fn earlier(one: Option<i64>, other: Option<i64>) -> Option<i64> {
    one.into_iter().chain(other).min()
}

/// Notes when units moved that no commit asked to move.
pub fn stamp_moves(before: &BTreeMap<UnitKey, UnitPlacement>, units: &mut BTreeMap<UnitKey, UnitPlacement>, now: i64) {
    let shares = |unit: &UnitPlacement| -> Vec<_> {
        let clusters = unit.clusters.iter();
        let share = |(name, placement): (&ClusterName, &Placement)| (name.clone(), placement.replicas.clone());
        clusters.map(share).collect()
    };
    for (key, unit) in units {
        if before
            .get(key)
            .is_none_or(|before| before != unit && shares(before) != shares(unit))
        {
            unit.moved_at = Some(now);
        }
    }
}

#[cfg(test)]
mod tests;
