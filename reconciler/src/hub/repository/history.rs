//! Questions about ancestry.

use gix::ObjectId;
use gix::bstr::ByteSlice;
use gix::revision::walk::Sorting;
use gix::traverse::commit::simple::CommitTimeOrder;

use super::{RepositoryError, commit, verified};

/// How a new head relates to the accepted one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Relation {
    /// The same commit.
    Same,
    /// The accepted head is an ancestor: history went on.
    Descendant,
    /// It is not: history was rewritten.
    Rewritten,
}

/// How `new` relates to `old`. `old` need not exist any more; everything that `new` builds on must, and a
/// hole in it is an error and not a rewritten history.
pub(crate) fn relation(repo: &gix::Repository, old: ObjectId, new: ObjectId) -> Result<Relation, RepositoryError> {
    if old == new {
        commit(repo, new)?;
        return Ok(Relation::Same);
    }
    let failed = |source| RepositoryError::History {
        from: new.to_string(),
        source,
    };
    // Newest first: the accepted head is usually a few steps away, and then the rest is never read.
    let walk = repo
        .rev_walk([new])
        .sorting(Sorting::ByCommitTime(CommitTimeOrder::NewestFirst))
        .all()
        .map_err(failed)?;
    for step in walk {
        if step.map_err(failed)?.id == old {
            return Ok(Relation::Descendant);
        }
    }
    Ok(Relation::Rewritten)
}

/// The first parent; `None` at a root, or at the edge of a shallow clone.
pub(crate) fn first_parent(repo: &gix::Repository, id: ObjectId) -> Result<Option<ObjectId>, RepositoryError> {
    Ok(commit(repo, id)?.parents.first().copied())
}

/// The trailers of the newest `max` commits that `from` builds on, itself first, until `found` says yes.
pub(crate) fn trailers(
    repo: &gix::Repository,
    from: ObjectId,
    max: usize,
    found: impl Fn(&str, &str) -> bool,
) -> Result<bool, RepositoryError> {
    let failed = |source| RepositoryError::History {
        from: from.to_string(),
        source,
    };
    let walk = repo
        .rev_walk([from])
        .sorting(Sorting::ByCommitTime(CommitTimeOrder::NewestFirst))
        .all()
        .map_err(failed)?;
    for step in walk.take(max) {
        let object = verified(repo, step.map_err(failed)?.id, gix::objs::Kind::Commit)?;
        let decoded = object.try_to_commit_ref().map_err(failed)?;
        let hit = decoded
            .message_trailers()
            .any(|trailer| found(&trailer.token.to_str_lossy(), trailer.value.to_str_lossy().trim()));
        if hit {
            return Ok(true);
        }
    }
    Ok(false)
}
