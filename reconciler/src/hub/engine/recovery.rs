//! What a missing or rewound `released` means.
//!
//! It is a first run only if no cluster holds anything. Otherwise the hub recovers: it adopts the newest
//! commit that a cluster holds, and until then it schedules and prunes nothing.

use render::Revision;

use super::event::Effect;
use super::state::State;

/// Why the hub holds still.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Recovery {
    /// `released` is missing, and registered clusters have not said yet what they hold.
    WaitForReports,
    /// A cluster holds a commit that this hub does not know: another hub released it just now, most likely, and the refs
    /// are looked at before anything is concluded.
    Seek {
        /// The commit.
        commit: Revision,
    },
    /// A cluster holds a commit that `released` does not stand at.
    Adopt {
        /// The newest one.
        commit: Revision,
    },
    /// The commit that clusters hold is gone from the state repository.
    Lost {
        /// The commit.
        commit: Revision,
        /// Why it could not be adopted.
        message: String,
    },
}

/// Decides from what clusters reported and where `released` stands.
pub(super) fn recovery(state: &State) -> Option<Recovery> {
    if state.new_lineage && state.released.is_none() {
        return None;
    }
    let held = state
        .clusters
        .values()
        .filter_map(|cluster| cluster.report.as_ref()?.held.as_ref());
    let newest = held
        .filter(|held| held.sequence > 0 && state.is_own_lineage(&held.lineage))
        .max_by(|a, b| (a.sequence, &a.released).cmp(&(b.sequence, &b.released)));
    if let Some(newest) = newest
        && state
            .released_sequence()
            .is_none_or(|sequence| newest.sequence > sequence)
    {
        let commit = newest.released.clone();
        return Some(match state.adoption_failed.get(&commit) {
            Some(message) => Recovery::Lost {
                commit,
                message: message.clone(),
            },
            None if state.sought.as_ref() != Some(&Sought::looked(&commit)) => Recovery::Seek { commit },
            None => Recovery::Adopt { commit },
        });
    }
    let waiting = state.released.is_none() && !state.grace_over && state.has_silent_cluster();
    waiting.then_some(Recovery::WaitForReports)
}

/// A commit that clusters hold and that is looked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Sought {
    commit: Revision,
    /// Whether the refs were looked at since.
    is_over: bool,
}

impl Sought {
    fn looked(commit: &Revision) -> Self {
        Self {
            commit: commit.clone(),
            is_over: true,
        }
    }

    /// The refs were looked at.
    pub(super) fn end(sought: &mut Option<Self>) {
        if let Some(sought) = sought {
            sought.is_over = true;
        }
    }
}

/// Ends a search that is over.
pub(super) fn found(state: &mut State) {
    if matches!(state.recovery, Some(Recovery::Seek { .. })) && recovery(state).is_none() {
        state.recovery = None;
        // Whatever was planned meanwhile was not written.
        state.planned = None;
    }
}

/// Asks for a look, once for each commit.
pub(super) fn seek(sought: &mut Option<Sought>, commit: &Revision) -> Vec<Effect> {
    if sought.as_ref().is_some_and(|sought| sought.commit == *commit) {
        return Vec::new();
    }
    *sought = Some(Sought {
        commit: commit.clone(),
        is_over: false,
    });
    vec![Effect::LookAgain]
}
