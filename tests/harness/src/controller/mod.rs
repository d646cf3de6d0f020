//! What controllers do in a real cluster, in small. In: objects that changed. Out: status of workloads,
//! namespaces and definitions; dependents and contents of what is gone are removed.
//!
//! It runs within the write that caused it: there is no task per object, nor one per cluster. Pods of
//! workloads are deliberately not made: a Deployment is ready by its word alone.

mod definitions;
mod garbage;
mod namespaces;
mod workloads;

use crate::limits::SETTLE_ROUNDS_MAX;
use crate::store::{DEFINITIONS, State};

/// What is settled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Settle {
    /// Everything.
    All,
    /// All but that workloads become ready; what changed is looked at again later.
    NotReadiness,
}

/// Looks at every object that changed, and at what that changes, until nothing does.
pub(crate) fn settle(state: &mut State, settle: Settle) {
    let mut later = std::collections::VecDeque::new();
    // What settles in rounds is bounded: each object is looked at a few times at most.
    let most = SETTLE_ROUNDS_MAX * (state.len() + 1 + state.unsettled.len());
    for _ in 0..most {
        let Some((shelf, key)) = state.unsettled.pop_front() else {
            break;
        };
        let Some(stored) = state.find(&shelf, &key).cloned() else {
            garbage::gone(state, &shelf, &key);
            continue;
        };
        match &*shelf {
            "namespaces." => namespaces::look(state, &stored),
            DEFINITIONS => definitions::look(state, &stored),
            _ if workloads::makes_ready(&shelf) && settle == Settle::NotReadiness => {
                later.push_back((shelf.clone(), key.clone()));
            }
            _ if workloads::makes_ready(&shelf) => workloads::look(state, &shelf, &stored),
            _ => {}
        }
        if stored.deleting {
            garbage::finalize(state, &shelf, &stored);
        }
    }
    state.unsettled.append(&mut later);
}

/// Whether something waits to become ready.
pub(crate) fn waits(state: &State) -> bool {
    !state.unsettled.is_empty()
}
