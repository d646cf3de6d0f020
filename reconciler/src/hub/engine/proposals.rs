//! Which proposals wait for a person, and which of them wait for nothing any more.

use super::{Proposed, State, Write};

/// A person moved `rendered`: whatever was proposed is merged, or stands on an older commit.
pub(super) fn rendered_moved(state: &mut State) {
    state.proposed = None;
    // What stands there says which revision is merged.
    state.merged = None;
    state.stale_proposals = true;
}

/// The hub moved `rendered` itself, as where a fleet asks for approval no more.
pub(super) fn rendered_written(state: &mut State) {
    state.stale_proposals |= state.proposed.take().is_some();
}

/// A decision was proposed.
pub(super) fn proposed(state: &mut State, proposal: Option<Proposed>, kept: Vec<String>) {
    state.end_write();
    state.behind.proposed();
    state.proposed = proposal;
    state.kept_proposals = kept;
    state.proposals_known = true;
    (state.stale_proposals, state.unwanted_proposals) = (false, false);
}

/// The branch of the proposal was removed. What it says still waits, so that it is proposed again: who wants
/// something else changes source. Where another hub put one in its place, that one waits: two hubs that know of other
/// room would take it from each other for ever.
pub(super) fn removed(state: &mut State, instead: Option<Proposed>) {
    if state.proposed.is_some() {
        if instead.is_none() {
            state.planned = None;
        }
        state.proposed = instead;
    }
}

/// The newest plan changes nothing: what was proposed before is wanted no more.
pub(super) fn nothing_to_decide(state: &mut State) {
    state.unwanted_proposals |= state.proposed.take().is_some() || !state.proposals_known;
}

/// What waits for nothing is withdrawn once `rendered` is known.
pub(super) fn withdrawal_due(state: &State) -> Option<Write> {
    let due = (state.stale_proposals || state.unwanted_proposals) && state.malformed.is_none();
    let rendered = state.rendered.as_ref().filter(|_| due)?;
    Some(Write::Withdraw {
        rendered: rendered.commit.clone(),
        open: state.unwanted_proposals,
    })
}

/// It was withdrawn.
pub(super) fn withdrawn(state: &mut State, open: bool, kept: Vec<String>) {
    state.end_write();
    state.kept_proposals = kept;
    state.stale_proposals = false;
    if open {
        state.unwanted_proposals = false;
        state.proposals_known = true;
    }
}
