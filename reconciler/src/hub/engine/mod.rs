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
mod planning;
mod proposals;
mod recovery;
mod refs;
mod releasing;
mod remote;
mod rooms;
mod silence;
mod state;

pub use agent_keys::{AgentKeys, KeysDone};
pub use clusters::ClusterState;
pub use condition::Condition;
pub use event::{
    Effect, Event, Head, JudgedBy, NoteUnclear, Noted, Planned, Relation, RemoteSeen, StateHead, StateRefs, Trouble,
    Write,
};
pub use joins::Joins;
pub use key_wish::KeyWish;
use planning::{plan_due, planned_seen};
pub use recovery::Recovery;
use releasing::release_due;
pub use remote::RemoteState;
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
                state.following.rendered(&revision, state.accepted.as_ref());
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
