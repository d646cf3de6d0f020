//! What a missing or rewound `released` means.
//!
//! It is a first run only if no cluster holds anything. Otherwise the hub recovers: it adopts the newest
//! commit that a cluster holds, and until then it schedules and prunes nothing.

use render::Revision;

use super::State;

/// Why the hub holds still.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Recovery {
    /// `released` is missing, and registered clusters have not said yet what they hold.
    WaitForReports,
    /// A cluster holds a commit that `released` does not stand at yet.
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
            None => Recovery::Adopt { commit },
        });
    }
    let waiting = state.released.is_none() && !state.grace_over && state.has_silent_cluster();
    waiting.then_some(Recovery::WaitForReports)
}
