//! The hub's decisions: an event goes in, effects come out, and the state says what is so.
//!
//! [`step`] is a plain function without a clock, a disk or a socket. It never plans: [`Effect::Plan`] runs
//! elsewhere and comes back as [`Event::Planned`], and what moved meanwhile is one next decision, so that a
//! long plan stalls nothing. Effects may run twice: each names what it expects to find, and a write that
//! finds something else is refused and looked at again.
//!
//! ```text
//! source moved → Plan → Planned → WriteRendered → RenderedWritten → WriteReleased → ReleasedWritten → Dispatch
//! ```

mod agent_keys;
mod behind;
mod clusters;
mod condition;
mod event;
mod followed;
mod joins;
mod key_wish;
mod moved;
mod moves;
mod orphans;
mod peers;
mod proposals;
mod recovery;
mod refs;
mod remote;
mod rooms;
mod silence;
mod state;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use render::model::Approval;
use render::plan::{deltas, stamp_moves};
use render::published::{Cause, Departure, RENDER_VERSION, ReleaseRecord};
use render::release::{Observed, advance, reads_outcomes, release};
use render::{ClusterName, Digest, Fleet, Published, Revision};

pub use agent_keys::{AgentKeys, KeysDone};
pub use clusters::ClusterState;
pub use condition::Condition;
pub use event::{Effect, Event, Head, JudgedBy, Planned, Relation, RemoteSeen, StateHead, StateRefs, Trouble, Write};
pub use joins::Joins;
pub use key_wish::KeyWish;
use moved::{Moved, says_otherwise};
pub use recovery::Recovery;
pub use remote::RemoteState;
use state::Settled;
pub use state::{Proposed, State, StateCommit};

/// Takes in one event. `now` is in seconds since 1970.
pub fn step(state: &mut State, event: Event, now: i64) -> Vec<Effect> {
    state.version += 1;
    state.now = now;
    let mut effects = heard(state, event, now);
    if !state.writing && std::mem::take(&mut state.overlooked) {
        effects.push(Effect::LookAtState);
    }
    effects
}

fn heard(state: &mut State, event: Event, now: i64) -> Vec<Effect> {
    match event {
        Event::SourceSeen { judged_by, .. } if judged_by != state.judged_by() => {
            return vec![Effect::LookAtSource];
        }
        Event::SourceSeen { head, covered, .. } => {
            state.source = Some(head);
            state.overtaken &= !covered;
        }
        Event::StateSeen(refs) => return refs::state_seen(state, refs, now),
        // On what is predicted now, the plan may be another.
        Event::Predicted => state.predictions_moved = true,
        Event::RoomPredicted => state.rooms_moved = true,
        Event::Weighed { holdings } => {
            state.weighing = false;
            state.holdings.extend(holdings);
        }
        Event::Planned(planned) => return planned_seen(state, *planned, now),
        Event::PlanFailed { revision, message } => {
            state.planning = None;
            state.plan_failed = Some((revision, message));
            if state.behind.take_planning() {
                state.behind.failed(now);
            }
            return Vec::new();
        }
        Event::RenderedWritten(commit) => {
            state.end_write();
            if let Some(revision) = state.rendering.take() {
                state.merged = Some(revision.clone());
                state.following.rendered();
                // A plan on top of its own outcome says the same, so it is not made again.
                state.planned = Some((revision, Some(commit.commit.clone())));
            }
            state.rendered = Some(commit);
            proposals::rendered_written(state);
        }
        Event::Proposed { proposal, kept } => proposals::proposed(state, proposal, kept),
        Event::Withdrawn { open, kept } => proposals::withdrawn(state, open, kept),
        Event::ReleasedWritten(commit) => {
            state.end_write();
            state.contradicted = false;
            if state.released.as_ref().map(|known| &known.commit) != Some(&commit.commit) {
                // What had to be put back is over once something newer stands there.
                state.restored = None;
            }
            let departed = state.departures();
            if let Some(before) = state.released.replace(commit) {
                state.note_told(&before, now);
            }
            let mut effects = next(state, now);
            if state.departures() != departed {
                // Who may connect to be cleaned up is said there.
                effects.push(Effect::Register);
            }
            effects.extend(dispatch_all(state));
            return effects;
        }
        Event::Followed(revision) => followed::written(state, revision),
        refused @ (Event::WriteRefused | Event::WriteFailed { .. }) => {
            state.end_write();
            if let Event::WriteFailed { message } = refused {
                state.write_failed = Some(message);
            }
            if state.following.refused(now) {
                // Nothing that was planned was to be written.
                return vec![Effect::LookAtState];
            }
            state.rendering = None;
            state.decided = None;
            // What was planned is written nowhere. Nobody may have moved a ref: the disk may have been full.
            state.planned = None;
            return vec![Effect::LookAtState];
        }
        Event::AdoptionFailed { commit, message } => {
            state.end_write();
            state.adoption_failed.insert(commit, message);
        }
        Event::RemoteSeen(seen) => {
            state.remote_seen(seen);
            return Vec::new();
        }
        Event::Connected { cluster, epoch } => return state.connected(cluster, epoch),
        Event::Disconnected { cluster, epoch } => state.disconnected(&cluster, epoch, now),
        Event::Reported { mut report } => {
            state.take_room(&mut report, now);
            let cluster = report.cluster.clone();
            state.reported(*report);
            if state.goes_by_other_mode(&cluster) {
                // With the newest commit that is known here, whichever it was told with.
                let mut effects = next(state, now);
                effects.push(Effect::Dispatch(cluster));
                return effects;
            }
        }
        Event::PeerTold {
            peer,
            clusters,
            reports,
            joining,
            wishes,
        } => {
            state.joins.peer_told(&peer, joining);
            state.agent_keys.peer_told(&peer, wishes, now);
            state.peer_told(&peer, clusters, reports, now);
        }
        Event::PeerLost { peer } => state.peer_lost(&peer, now),
        Event::Knocked { knocks } => {
            // For people to look at alone.
            state.knocks = knocks;
            return Vec::new();
        }
        Event::Joining { wanted } => state.joins.wanted = Some(wanted),
        Event::RegistrationsProposed {
            wanted,
            elsewhere,
            registrations,
        } => {
            state.end_write();
            state.joins.proposed(wanted, elsewhere, registrations);
        }
        Event::KeyWished { cluster, wish } => state.agent_keys.wished(cluster, wish, now),
        Event::KeysProposed {
            done,
            branch,
            by_hand,
            closed,
        } => {
            state.end_write();
            state.agent_keys.proposed(done, branch, (by_hand, closed));
        }
        Event::KeysDenied { keys } => state.agent_keys.denied(&keys),
        Event::GraceOver => {
            state.grace_over = true;
            // Who has not said by now what room it has is waited for no longer.
            state.rooms_moved = true;
        }
        Event::ObjectsSeen { condition } => {
            // Nothing is decided on it.
            state.objects = condition;
            return Vec::new();
        }
        Event::TimeCame => state.predictions_aged(),
    }
    next(state, now)
}

/// What is due now, whatever event led here.
fn next(state: &mut State, now: i64) -> Vec<Effect> {
    if state.writing || !state.state_seen {
        return Vec::new();
    }
    let held_still = state.recovery.is_some();
    let sought = matches!(state.recovery, Some(Recovery::Seek { .. }));
    state.recovery = recovery::recovery(state);
    if held_still && state.recovery.is_none() {
        // Whatever was planned while holding still was not written.
        state.planned = None;
    }
    if sought && state.recovery.is_none() {
        // Nothing was told meanwhile.
        let mut effects = dispatch_all(state);
        effects.extend(next(state, now));
        return effects;
    }
    match &state.recovery {
        Some(Recovery::Seek { commit }) => return recovery::seek(&mut state.sought, commit),
        Some(Recovery::Adopt { commit }) => {
            let found = state.released.as_ref().map(|released| released.commit.clone());
            let write = Write::AdoptReleased {
                found,
                commit: commit.clone(),
            };
            state.begin_write();
            return vec![Effect::Write(write)];
        }
        Some(Recovery::WaitForReports | Recovery::Lost { .. }) => return plan_due(state).into_iter().collect(),
        None => {}
    }
    if state.weighing {
        return Vec::new();
    }
    let released = match release_due(state, now) {
        Ok(released) => released,
        Err(contents) => {
            state.weighing = true;
            return vec![Effect::Weigh { contents }];
        }
    };
    if let Some(write) = released.or_else(|| proposals::withdrawal_due(state)) {
        state.begin_write();
        return vec![Effect::Write(write)];
    }
    // Before what is proposed for agents: where a host takes none of that, each try is due again at once, and no commit would
    // ever be planned.
    if let Some(plan) = plan_due(state) {
        return vec![plan];
    }
    let noted = followed::due(state, now).or_else(|| joins::due(state));
    let Some(write) = noted.or_else(|| agent_keys::due(state, now)) else {
        return Vec::new();
    };
    state.begin_write();
    vec![Effect::Write(write)]
}

/// A plan is due when source stands elsewhere than what was planned last, or when what it was planned on
/// has moved since.
fn plan_due(state: &mut State) -> Option<Effect> {
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
fn plan_of(state: &State, revision: Revision, accepted: Option<Revision>, decided: bool) -> Effect {
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

fn planned_seen(state: &mut State, planned: Planned, now: i64) -> Vec<Effect> {
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

/// Whether a cluster that was remembered since its file is gone is remembered no more, and did not come back.
fn forgets(before: Option<&ReleaseRecord>, departed: &BTreeMap<ClusterName, Departure>, fleet: &Fleet) -> bool {
    let before = before.into_iter().flat_map(|before| before.departed.keys());
    let mut left = before.filter(|name| !fleet.clusters.contains_key(*name));
    left.any(|name| !departed.contains_key(name))
}

/// How a plan is written: to `rendered`, or as a proposal where a person has to merge it.
fn decision(state: &mut State, planned: Planned, by_commit: bool) -> Write {
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

fn record(source: &Revision) -> ReleaseRecord {
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

/// When the engine is to hear [`Event::TimeCame`]: a Suspension ends then, what clusters have room for may be looked at
/// again, a cluster was waited for long enough, or is silent for as long. In seconds since 1970.
pub fn next_time(state: &State) -> Option<i64> {
    let ends = state
        .fleet
        .as_ref()
        .and_then(|fleet| fleet.suspensions().next_end(state.now));
    let again_at = state.again_at.filter(|at| *at > state.now);
    [
        ends,
        again_at,
        state.next_room(),
        state.next_prediction(),
        state.next_move_end(),
        behind::next_time(state),
        agent_keys::next_time(state),
        followed::next_time(state),
    ]
    .into_iter()
    .flatten()
    .min()
}

/// The next commit of `released`, when the strategy advances somebody or there is none yet.
///
/// While no fleet is known, as before the first plan of a process, or only an older one than another hub has rendered,
/// nobody can say what is suspended, and nothing is due. Where an object may change hands, an error says which contents have to be known first.
fn release_due(state: &mut State, now: i64) -> Result<Option<Write>, BTreeSet<Digest>> {
    let (Some(rendered), Some(fleet)) = (&state.rendered, &state.fleet) else {
        return Ok(None);
    };
    if state.overtaken {
        return Ok(None);
    }
    // Every report asks again, and nothing changes until a ref moves, the fleet does, or a Suspension ends.
    let settled = state.released.as_ref().map(|released| Settled {
        rendered: rendered.commit.clone(),
        released: released.commit.clone(),
        fleet: fleet.revision.clone(),
        until: fleet.suspensions().next_end(now),
    });
    if settled.is_some() && state.settled == settled && !state.contradicted {
        return Ok(None);
    }
    let nothing = Published::default();
    let released = state.released.as_ref();
    let present = released.map_or(&nothing, |released| released.published.as_ref());
    let suspensions = fleet.suspensions();
    let observed = if reads_outcomes(&rendered.published, present) {
        state.observed()
    } else {
        Observed {
            holdings: state.holdings.clone(),
            ..Observed::default()
        }
    };
    let due = release(&rendered.published, present, suspensions, &observed, now);
    if !due.unknown.is_empty() {
        return Err(due.unknown);
    }
    let mut next = advance(&rendered.published, present, due.advances.clone(), now);
    let forgets = rendered
        .published
        .record
        .as_ref()
        .is_some_and(|record| forgets(present.record.as_ref(), &record.departed, fleet));
    let is_over = due.advances.is_empty() && released.is_some() && !state.contradicted && !forgets;
    // What waits for clusters may be due with any report.
    let waits = !due.waiting.is_empty();
    let waiting = due.waiting.into_iter();
    let waiting = waiting.map(|waiting| ((waiting.unit.clone(), waiting.cluster.clone()), waiting));
    let waiting = waiting.collect();
    if is_over {
        state.settled = settled.filter(|_| !waits);
        if !waits {
            state.holdings.clear();
        }
        state.waiting = waiting;
        return Ok(None);
    }
    let Some(record) = rendered.published.record.clone() else {
        return Ok(None);
    };
    let parent = released.map(|released| released.commit.clone());
    let rendered = rendered.commit.clone();
    let sequence = present.next_sequence();
    next.record = Some(ReleaseRecord {
        sequence: Some(sequence),
        rendered: Some(rendered),
        ..record
    });
    // What could not be read is tried once more for the next one.
    state.holdings.retain(|_, holdings| holdings.is_some());
    state.waiting = waiting;
    Ok(Some(Write::Released { parent, next }))
}

fn dispatch_all(state: &State) -> Vec<Effect> {
    state
        .clusters
        .keys()
        .filter(|cluster| state.is_known(cluster))
        .cloned()
        .map(Effect::Dispatch)
        .collect()
}

#[cfg(test)]
mod tests;
