//! Which plan is due, what is taken from one that is ready, and how it is written.

use std::collections::BTreeMap;
use std::sync::Arc;

use render::Revision;
use render::model::Approval;
use render::plan::{deltas, stamp_moves};
use render::published::{Cause, Published, RENDER_VERSION, ReleaseRecord};

use super::event::{Effect, Head, Planned, Relation, Write};
use super::moved::{Moved, says_otherwise};
use super::releasing::forgets;
use super::state::State;
use super::{behind, moves, next, proposals, recovery};

/// A plan is due when source stands elsewhere than what was planned last, or when what it was planned on
/// has moved since.
pub(super) fn plan_due(state: &mut State) -> Option<Effect> {
    behind::plan_due(state).or_else(|| newest_due(state))
}

fn newest_due(state: &mut State) -> Option<Effect> {
    let revision = state.source_to_plan().or_else(|| state.fleet_to_learn())?;
    let base = state.rendered.as_ref().map(|rendered| rendered.commit.clone());
    let is_planned = state.planned.as_ref() == Some(&(revision.clone(), base.clone()));
    let moved = state.predictions_moved || state.room_due() || state.time_due();
    if state.planning.is_some() || (is_planned && !moved) {
        return None;
    }
    state.predictions_moved = false;
    state.rooms_moved = false;
    state.again_at = None;
    state.planning = Some(revision.clone());
    // What waits for a merge is not decided yet.
    let decided = state.was_decided(&revision) && state.proposed.is_none();
    Some(plan_of(state, revision, state.accepted.clone(), decided))
}

/// A plan of a revision on what is known now. `accepted` has a say in its gate.
pub(super) fn plan_of(state: &State, revision: Revision, accepted: Option<Revision>, decided: bool) -> Effect {
    Effect::Plan {
        revision,
        base: state.rendered.as_ref().map(|rendered| rendered.commit.clone()),
        previous: state.previous(),
        accepted,
        let_go: state.let_go(),
        capabilities: state.capabilities(),
        reports: state.rooms(),
        rebalanced: state.rebalanced.clone(),
        decided,
    }
}

pub(super) fn planned_seen(state: &mut State, planned: Planned, now: i64) -> Vec<Effect> {
    state.planning = None;
    if state.behind.take_planning() {
        return behind::planned_seen(state, planned, now);
    }
    let base = state.rendered.as_ref().map(|rendered| rendered.commit.clone());
    if planned.base == base && state.fleet_to_learn().as_ref() == Some(&planned.fleet.revision) {
        // Its clusters and their keys count; nothing is decided on it.
        let mut effects = state.take_fleet(planned.fleet, planned.findings);
        effects.extend(next(state, now));
        return effects;
    }
    if planned.base != base || state.source_to_plan().is_none() {
        // What it was planned on moved: it is planned again on what is there now.
        return next(state, now);
    }
    let revision = planned.fleet.revision.clone();
    let previous = state.previous();
    // What a person has not merged yet is a commit's doing, whatever clusters report meanwhile.
    let was_decided = state.was_decided(&revision);
    let is_waited_for = !was_decided || !state.is_merged(&revision);
    let by_commit = is_waited_for || !Moved::new(&previous.units, &planned, state).is_all();
    state.planned = Some((revision.clone(), base.clone()));
    state.plan_failed = None;
    state.asked_at = (!planned.plan.questions.is_empty()).then_some(now);
    if let Some(at) = planned.plan.again_at {
        state.look_again(at);
    }
    moves::planned(state, &planned);
    let rebalanced = planned.plan.rebalanced.clone();
    let mut effects = state.take_fleet(Arc::clone(&planned.fleet), planned.findings.clone());
    if let (
        Some(Head::At {
            relation: Relation::RewriteAccepted,
            revision: seen,
            ..
        }),
        Some(old),
    ) = (&state.source, state.accepted_or_published())
        // Of what is there by now, and this plan is not of, it is said when its own is taken.
        && *seen == revision
        && old != revision
    {
        state.leave_history(old);
        state.following.rewritten();
    }
    state.accepted = Some(revision.clone());
    state.overtaken = false;
    // While recovering, nothing is scheduled; the fleet's clusters and keys are known all the same.
    state.recovery = recovery::recovery(state);
    let changes = !deltas(&previous.units, &planned.plan.units).is_empty()
        || says_otherwise(&previous.units, &planned.plan.units)
        || forgets(previous.record.as_ref(), &planned.departed, &planned.fleet);
    let decides = state.recovery.is_none() && state.malformed.is_none();
    if decides {
        state.decided = Some(revision.clone());
    }
    if decides && (base.is_none() || changes) {
        state.begin_write();
        effects.push(Effect::Write(decision(state, planned, by_commit)));
        return effects;
    }
    if !changes {
        if decides {
            state.merged = state.decided.clone();
        }
        proposals::nothing_to_decide(state);
    }
    if decides {
        moves::nothing_to_move(state, &revision, rebalanced);
    }
    effects.extend(next(state, now));
    effects
}

/// How a plan is written: to `rendered`, or as a proposal where a person has to merge it.
pub(super) fn decision(state: &mut State, planned: Planned, by_commit: bool) -> Write {
    state.deciding = true;
    let previous = state.previous();
    let (unattended, cause) = {
        let moved = Moved::new(&previous.units, &planned, state);
        (!by_commit && moved.may_go_unattended(), moved.cause())
    };
    let revision = planned.fleet.revision.clone();
    let record = ReleaseRecord {
        departed: planned.departed,
        orphaned: planned.orphaned,
        cause: match by_commit {
            true if moves::is_rebalance(&state.previous().units, &planned.plan) => Cause::Rebalance,
            true => Cause::SourceCommit,
            false => cause,
        },
        ..record(&revision)
    };
    let gate = if unattended { Approval::None } else { planned.gate };
    let (mut units, contents, commits) = (planned.plan.units, planned.plan.contents, planned.commits);
    if !by_commit && gate == Approval::None {
        stamp_moves(&previous.units, &mut units, state.now);
    }
    match (gate, planned.base) {
        (Approval::None, parent) => {
            state.rendering = Some(revision);
            Write::Rendered {
                parent,
                next: Published {
                    record: Some(record),
                    units,
                },
                contents,
            }
        }
        (Approval::Required, Some(base)) => {
            let record = ReleaseRecord {
                cause: Cause::MergedProposal,
                ..record
            };
            Write::Proposal {
                base,
                next: Published {
                    record: Some(record),
                    units,
                },
                contents,
                commits,
            }
        }
        // There is nothing yet that a proposal could stand on: what was released, or nothing at all.
        (Approval::Required, None) => {
            let units = state.previous().units.clone();
            Write::Rendered {
                parent: None,
                next: Published {
                    record: Some(record),
                    units,
                },
                contents: BTreeMap::new(),
            }
        }
    }
}

pub(super) fn record(source: &Revision) -> ReleaseRecord {
    ReleaseRecord {
        cause: Cause::SourceCommit,
        source: source.clone(),
        sequence: None,
        rendered: None,
        departed: Default::default(),
        orphaned: Default::default(),
        render_version: RENDER_VERSION,
    }
}
