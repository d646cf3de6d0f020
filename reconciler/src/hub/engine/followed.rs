//! Which commit of source a hub that restarts knows its clusters by.
//!
//! `rendered` names the commit that it was made from. A later one may change nothing there and still count, as one that takes a key
//! away; and while a decision waits for its merge, `rendered` stays what it was. Were such a commit known to this process alone, a
//! hub that restarts before a rewritten history would go by the older one. So it is noted beside the state refs.

use std::sync::Arc;

use render::{Fleet, Revision};

use super::state::State;
use super::{Noted, Write};
use crate::hub::publish::Followed;
use crate::limits::FOLLOW_RETRY_SECONDS;

/// What is known of it.
#[derive(Clone, Debug, Default)]
pub(super) struct Following {
    /// The commit that is noted, whether it counts or not: only in its place another one is noted.
    noted: Option<Revision>,
    /// The commit that is noted, where it is newer than the one that `rendered` was made from.
    found: Option<Revision>,
    /// What is accepted may count otherwise than what is named.
    is_due: bool,
    /// Another history was accepted, or may have been before this hub started: until another commit is noted, the note keeps
    /// the old one.
    is_rewritten: bool,
    /// It is being written.
    is_writing: bool,
    /// When it is tried again, in seconds since 1970.
    again_at: Option<i64>,
}

impl Following {
    /// The commit that is noted, where it counts.
    pub(super) fn found(&self) -> Option<&Revision> {
        self.found.as_ref()
    }

    /// `rendered` is made from this commit now. A failover may go by one that was merged before the accepted one: then what
    /// is noted counts on.
    pub(super) fn rendered(&mut self, from: &Revision, accepted: Option<&Revision>) {
        if accepted == Some(from) {
            self.found = None;
        }
    }

    /// Another hub, or a person, moved `rendered`.
    pub(super) fn rendered_moved(&mut self) {
        self.is_due = true;
    }

    /// Another history is followed.
    pub(super) fn rewritten(&mut self) {
        (self.is_due, self.is_rewritten) = (true, true);
    }

    /// Another fleet counts. Of the first one nobody knows what it has other than what is named.
    pub(super) fn fleet_taken(&mut self, before: Option<&Fleet>, fleet: &Fleet) {
        self.is_due |= before.is_none_or(|before| counts_otherwise(before, fleet));
    }

    /// The write came to nothing, if it was one of these: others have their turn.
    pub(super) fn refused(&mut self, now: i64) -> bool {
        let was_writing = std::mem::take(&mut self.is_writing);
        if was_writing {
            self.is_due = true;
            self.again_at = Some(now.saturating_add(FOLLOW_RETRY_SECONDS));
        }
        was_writing
    }
}

/// Whether two fleets differ in what counts at once, whatever is rendered.
fn counts_otherwise(before: &Fleet, fleet: &Fleet) -> bool {
    before.clusters != fleet.clusters
        || before.suspensions != fleet.suspensions
        || before.spec != fleet.spec
        || (!Arc::ptr_eq(&before.access, &fleet.access) && before.access != fleet.access)
}

/// Takes in what is noted; says whether another hub noted a commit of which this one may not know the fleet yet.
pub(super) fn seen(state: &mut State, noted: Option<Noted>, is_first: bool) -> bool {
    let is_left_behind = noted.as_ref().is_some_and(|noted| noted.is_left_behind);
    if is_first && noted.as_ref().is_some_and(|noted| !noted.counts) {
        state.following.rewritten();
    }
    let found = noted.as_ref().filter(|noted| noted.counts);
    let found = found.map(|noted| noted.source.clone());
    let is_new = found.is_some() && found != state.following.found && found != state.accepted;
    state.following.noted = noted.map(|noted| noted.source);
    state.following.found = found;
    if !is_new || is_first {
        return false;
    }
    // Of another history nobody here says that it is older: two hubs would note over each other.
    state.following.is_due |= is_left_behind;
    state.overtaken = true;
    state.source = None;
    true
}

/// A note is due when what was accepted is not what is named, and may count otherwise.
pub(super) fn due(state: &mut State, now: i64) -> Option<Write> {
    let rests = state.following.again_at.is_some_and(|at| now < at);
    let source = state.accepted.clone()?;
    if !state.following.is_due || rests || state.overtaken {
        return None;
    }
    let is_named = state.named().as_ref() == Some(&source);
    let keeps_other = state.following.is_rewritten && state.following.noted.as_ref() != Some(&source);
    state.following.is_due = false;
    if is_named && !keeps_other {
        state.following.is_rewritten = false;
        return None;
    }
    state.following.is_writing = true;
    Some(Write::Follow {
        found: state.following.noted.clone(),
        followed: Followed {
            source,
            rendered: state.rendered_from().cloned(),
        },
    })
}

/// It was noted.
pub(super) fn written(state: &mut State, source: Revision) {
    state.end_write();
    (state.following.is_writing, state.following.again_at) = (false, None);
    // Another one may have been accepted while this was written.
    state.following.is_rewritten &= state.accepted.as_ref() != Some(&source);
    let is_newer = state.rendered_from() != Some(&source);
    state.following.noted = Some(source.clone());
    state.following.found = is_newer.then_some(source);
}

/// When it is tried again.
pub(super) fn next_time(state: &State) -> Option<i64> {
    state.following.again_at.filter(|at| *at > state.now)
}
