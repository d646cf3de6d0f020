//! What is merged counts on while the newest commit waits for its merge: a cluster that is lost meanwhile is failed
//! over by the policy that was merged, and the proposal is made again on top of that.
//!
//! For that the merged revision is planned beside the newest one. Nothing of its fleet is taken over, and nothing is
//! written but a failover.

use render::limits::LOOK_AGAIN_SECONDS;
use render::published::Cause;
use render::{Revision, schedule};

use super::event::{Effect, Planned};
use super::moved::Moved;
use super::next;
use super::planning::{decision, plan_of};
use super::state::State;

/// What is known of the revision that is merged, while a newer one waits.
#[derive(Clone, Debug, Default)]
pub(super) struct Behind {
    /// It is to be planned, since nobody knows yet when it is to be looked at.
    due: bool,
    /// It is being planned.
    is_planning: bool,
    /// When time alone may decide something by it, in seconds since 1970.
    again_at: Option<i64>,
    /// After how many seconds of silence it lets somebody lose something.
    patience: Option<i64>,
}

impl Behind {
    /// Something was proposed: what is merged is looked at too.
    pub(super) fn proposed(&mut self) {
        self.due = true;
    }

    /// Somebody is silent from now on.
    pub(super) fn fell_silent(&mut self, now: i64) {
        if let Some(patience) = self.patience {
            self.look_again(now.saturating_add(patience));
        }
    }

    /// Whether the plan that just ended was one of the merged revision.
    pub(super) fn take_planning(&mut self) -> bool {
        std::mem::take(&mut self.is_planning)
    }

    /// It could not be planned.
    pub(super) fn failed(&mut self, now: i64) {
        self.look_again(now.saturating_add(LOOK_AGAIN_SECONDS));
    }

    fn look_again(&mut self, at: i64) {
        self.again_at = self.again_at.into_iter().chain([at]).min();
    }
}

/// The merged revision, while a newer one waits for its merge.
fn merged(state: &State) -> Option<Revision> {
    state.proposed.as_ref()?;
    let record = state.rendered.as_ref()?.published.record.as_ref()?;
    // A commit that changed nothing had nothing to wait for.
    let merged = state.merged.clone().unwrap_or_else(|| record.source.clone());
    (state.source_to_plan()? != merged).then_some(merged)
}

/// When the merged revision is to be looked at.
pub(super) fn next_time(state: &State) -> Option<i64> {
    let at = state.behind.again_at.filter(|at| *at > state.now)?;
    merged(state).map(|_| at)
}

/// Plans the merged revision, where time may decide something by it.
pub(super) fn plan_due(state: &mut State) -> Option<Effect> {
    let is_due = state.behind.due || state.behind.again_at.is_some_and(|at| state.now >= at);
    let is_held = state.planning.is_some() || state.recovery.is_some() || state.malformed.is_some();
    if !is_due || is_held {
        return None;
    }
    let revision = merged(state)?;
    state.behind = Behind {
        is_planning: true,
        patience: state.behind.patience,
        ..Behind::default()
    };
    state.planning = Some(revision.clone());
    // Its own gate counts, and nothing that came after it.
    Some(plan_of(state, revision.clone(), Some(revision), true))
}

/// Writes what fails over by the merged revision. Everything else waits for the merge.
pub(super) fn planned_seen(state: &mut State, planned: Planned, now: i64) -> Vec<Effect> {
    let base = state.rendered.as_ref().map(|rendered| &rendered.commit);
    let is_merged = merged(state).as_ref() == Some(&planned.fleet.revision);
    let is_held = state.recovery.is_some() || state.malformed.is_some();
    if planned.base.as_ref() != base || !is_merged || is_held {
        return next(state, now);
    }
    state.behind.patience = schedule::least_patience(&planned.fleet);
    if let Some(at) = planned.plan.again_at {
        state.behind.look_again(at);
    }
    let previous = state.previous();
    let moved = Moved::new(&previous.units, &planned, state);
    if moved.cause() != Cause::Failover || !moved.is_all() || !moved.may_go_unattended() {
        return next(state, now);
    }
    // What waits is planned again on top of it, as what its commit asks for.
    state.decided = None;
    state.begin_write();
    vec![Effect::Write(decision(state, planned, false))]
}
