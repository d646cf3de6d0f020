//! Moving refs, by compare-and-swap alone.

use gix::objs::Kind;
use gix::refs::Target;
use gix::refs::transaction::{PreviousValue, RefEdit};

use super::{CommitId, StateError, StateRef, StateRepository, lock};
use crate::hub::repository::verified;

impl StateRepository {
    /// Moves a ref from `expected` (`None`: it must not exist) to `to`, or fails with
    /// [`StateError::Moved`] and leaves it alone. `reason` is one line for Git's reflog.
    pub fn advance(
        &self,
        which: StateRef,
        expected: Option<CommitId>,
        to: CommitId,
        reason: &str,
    ) -> Result<(), StateError> {
        let expected_value = match expected {
            Some(commit) => PreviousValue::MustExistAndMatch(Target::Object(commit.0)),
            None => PreviousValue::MustNotExist,
        };
        let name = self.ref_name(which).to_owned();
        let seconds = self.commit_seconds(to)?;
        let moved = self.edit_ref(&name, expected, seconds, |name| {
            RefEdit::update(name, to.0, expected_value, one_line(reason))
        });
        match moved {
            // An effect may run twice; the second time it is done already.
            Err(StateError::Moved { found: Some(found), .. }) if found == to => Ok(()),
            other => other,
        }
    }

    pub(super) fn edit_ref(
        &self,
        name: &str,
        expected: Option<CommitId>,
        seconds: i64,
        edit: impl FnOnce(gix::refs::FullName) -> RefEdit,
    ) -> Result<(), StateError> {
        let full = gix::refs::FullName::try_from(name).map_err(|_| StateError::RefName { name: name.to_owned() })?;
        let repo = self.repository.local();
        let committer = self.signature(seconds);
        let mut time = gix::date::parse::TimeBuf::default();
        let Err(source) = repo.edit_references_as([edit(full)], Some(committer.to_ref(&mut time))) else {
            return Ok(());
        };
        let found = self
            .repository
            .reference(name)
            .map_err(StateError::Unreadable)?
            .map(CommitId);
        let name = name.to_owned();
        if found != expected {
            return Err(StateError::Moved { name, found });
        }
        // The next attempt succeeds if a process that died since we opened was the reason.
        lock::remove_stale(&self.repository.common_dir(), &self.refs);
        Err(StateError::RefNotMoved { name, source })
    }

    /// A reflog entry is as old as the commit, since its age decides when Git forgets it.
    pub(super) fn commit_seconds(&self, id: CommitId) -> Result<i64, StateError> {
        let repo = self.repository.local();
        let time = verified(&repo, id.0, Kind::Commit).map(|object| object.into_commit().time());
        let time = time.map_err(StateError::Unreadable)?;
        Ok(time.map_err(StateError::Write)?.seconds)
    }
}

/// A reflog entry is one line.
fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
