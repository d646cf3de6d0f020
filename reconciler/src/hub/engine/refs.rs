//! Where `rendered` and `released` stand, and what becomes of what somebody else moved there.

use super::event::{Effect, StateHead, StateRefs, Write};
use super::recovery::{self, Sought};
use super::state::{State, StateCommit};
use super::{dispatch_all, followed, next, proposals};

/// Takes in where the state refs stand: what others may move is followed, and what they may not is put back.
pub(super) fn state_seen(state: &mut State, refs: StateRefs, now: i64) -> Vec<Effect> {
    if state.writing || refs.writes != state.writes {
        // Beside a write nobody can say whether the look saw the refs before or after it. Taken for somebody
        // else's, our own commit would be put back.
        state.overlooked = true;
        return Vec::new();
    }
    let first = !state.state_seen;
    let followed = match refs.followed {
        Ok(followed) => followed,
        Err(unclear) => {
            // What is older would let in who was shut out since.
            state.state_unreadable = Some(unclear.message);
            return Vec::new();
        }
    };
    match (refs.rendered, refs.released) {
        (StateHead::Unreadable(message), _) | (_, StateHead::Unreadable(message)) => {
            state.state_unreadable = Some(message);
            Vec::new()
        }
        // Nobody here knows what it was: people may restore it.
        (_, StateHead::Malformed { message, .. }) | (StateHead::Malformed { message, .. }, StateHead::Missing)
            if state.released.is_none() =>
        {
            state.state_unreadable = Some(message);
            Vec::new()
        }
        (rendered, released) => {
            state.state_unreadable = None;
            state.state_seen = true;
            Sought::end(&mut state.sought);
            let mut effects = Vec::new();
            if first {
                // What was published says whose descendants are followed, so source is judged only now.
                state.source = None;
                effects.push(Effect::LookAtSource);
                state.stale_proposals = true;
            }
            if followed::seen(state, followed, first) {
                effects.push(Effect::LookAtSource);
            }
            state.joins.looked();
            if refs.keys_gone {
                state.agent_keys.removed();
            }
            if refs.proposal_gone {
                proposals::removed(state, refs.proposed_instead);
            }
            let adopted = is_release_to_adopt(state, &released);
            let looks = effects.len();
            effects.extend(released_seen(state, released, adopted));
            if effects.len() == looks {
                effects.extend(rendered_seen(state, rendered, first));
            }
            if effects.len() == looks {
                effects.extend(next(state, now));
            }
            if adopted {
                // What was looked for is found: it is told, whatever else waits for a look at source.
                recovery::found(state);
                effects.extend(dispatch_all(state));
            }
            effects
        }
    }
}

/// Whether `released` stands where another hub, or a backup that was restored, took it: where there was none, or
/// further on. A commit of somebody who is no hub counts on nothing.
fn is_release_to_adopt(state: &State, seen: &StateHead) -> bool {
    let StateHead::At { commit, forward } = seen else {
        return false;
    };
    let sequence = |commit: &StateCommit| commit.published.record.as_ref().and_then(|record| record.sequence);
    state
        .released
        .as_ref()
        .is_none_or(|known| *forward && commit.lineage == known.lineage && sequence(commit) > sequence(known))
}

/// `released` is the hubs' alone: found elsewhere than where one would leave it, it is put back.
fn released_seen(state: &mut State, seen: StateHead, adopt: bool) -> Option<Effect> {
    let found = seen.commit().cloned();
    match (&state.released, seen) {
        (_, StateHead::At { commit, .. }) if adopt => {
            state.released = Some(*commit);
            None
        }
        (Some(known), _) if found.as_ref() != Some(&known.commit) => {
            let commit = known.commit.clone();
            state.restored = Some(format!("released was moved or removed, and put back to {commit}"));
            state.begin_write();
            Some(Effect::Write(Write::AdoptReleased { found, commit }))
        }
        _ => None,
    }
}

/// `rendered` may be moved forward by people; missing or rewound, it is put back to what was released.
fn rendered_seen(state: &mut State, seen: StateHead, first: bool) -> Option<Effect> {
    let released_from = state
        .released
        .as_ref()
        .and_then(|released| released.published.record.as_ref()?.rendered.clone());
    let known = state
        .rendered
        .as_ref()
        .map(|rendered| rendered.commit.clone())
        .or(released_from);
    match seen {
        StateHead::At { commit, forward } if forward || known.is_none() || known.as_ref() == Some(&commit.commit) => {
            if state.malformed.take().is_some() {
                // What was planned while it was held is written nowhere.
                state.planned = None;
            }
            if state.rendered.as_ref().map(|known| &known.commit) != Some(&commit.commit) {
                proposals::rendered_moved(state);
            }
            let before = state.rendered_from().cloned();
            state.rendered = Some(*commit);
            let from = state.rendered_from();
            if !first && from.is_some() && from != before.as_ref() && from != state.accepted.as_ref() {
                // What it was made from may be newer than all that is known here: a plan of what is older would take it
                // back, and a release would not know what is suspended.
                state.overtaken = true;
                state.source = None;
                state.following.rendered_moved();
                return Some(Effect::LookAtSource);
            }
            None
        }
        StateHead::Malformed {
            message,
            forward: true,
            last,
            ..
        } => {
            state.malformed = Some(message);
            state.rendered = state.rendered.take().or(last.map(|last| *last));
            None
        }
        seen => {
            let commit = known?;
            state.restored = Some(format!("rendered was rewound or removed, and put back to {commit}"));
            state.begin_write();
            let found = seen.commit().cloned();
            Some(Effect::Write(Write::AdoptRendered { found, commit }))
        }
    }
}
