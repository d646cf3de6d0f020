//! Which refs are copied, and what differs between two looks at them.

use super::answers::Refs;

/// The names of what is copied, all in full.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Names {
    /// The branch that people push to.
    pub(super) source: String,
    /// The hub's own, where they are at the remote as well.
    pub(super) state: Option<StateNames>,
}

/// The refs that the hub writes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct StateNames {
    /// `rendered` and `released`, the branch of keys, what is remembered of it, and the commit that is followed.
    pub(super) refs: [String; 5],
    /// What the names of proposals begin with, and of registrations.
    pub(super) prefixes: [String; 2],
}

/// One ref that is to move.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Update {
    pub(super) name: String,
    /// Where it stands; `None`: it does not exist.
    pub(super) old: Option<String>,
    /// Where it goes; `None`: it is removed.
    pub(super) new: Option<String>,
}

impl Names {
    /// Whether a ref is copied.
    pub(super) fn include(&self, name: &str) -> bool {
        name == self.source || self.is_state(name)
    }

    /// Whether a ref is one that the hub writes.
    pub(super) fn is_state(&self, name: &str) -> bool {
        self.state.as_ref().is_some_and(|state| {
            state.refs.iter().any(|r| r == name) || state.prefixes.iter().any(|prefix| name.starts_with(prefix))
        })
    }

    /// As patterns for `git ls-remote`.
    pub(super) fn patterns(&self) -> Vec<String> {
        let state = self.state.iter().flat_map(|state| {
            let proposals = state.prefixes.iter().map(|prefix| format!("{prefix}*"));
            state.refs.iter().cloned().chain(proposals)
        });
        std::iter::once(self.source.clone()).chain(state).collect()
    }
}

/// What has to move for `from` to become `to`.
pub(super) fn updates(from: &Refs, to: &Refs) -> Vec<Update> {
    let moved = to.iter().filter(|(name, id)| from.get(*name) != Some(id));
    let moved = moved.map(|(name, id)| Update {
        name: name.clone(),
        old: from.get(name).cloned(),
        new: Some(id.clone()),
    });
    let gone = from.iter().filter(|(name, _)| !to.contains_key(*name));
    let gone = gone.map(|(name, id)| Update {
        name: name.clone(),
        old: Some(id.clone()),
        new: None,
    });
    moved.chain(gone).collect()
}
