//! Questions about ancestry.

use std::collections::HashSet;

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

/// Whether a shallow clone has enough of `new`'s history to tell how it relates to `old`. It has not where a way
/// back from `new` ends at the clone's edge before it meets `old`, or a commit that `old` itself builds on.
pub(crate) fn is_relation_told(repo: &gix::Repository, old: ObjectId, new: ObjectId) -> Result<bool, RepositoryError> {
    let failed = |source| RepositoryError::History {
        from: new.to_string(),
        source,
    };
    let Some(edge) = repo.shallow_commits().map_err(failed)? else {
        return Ok(true);
    };
    let mut below_old = HashSet::new();
    if repo.has_object(old) {
        walk(repo, old, |_| true, &mut below_old)?;
        below_old.remove(&old);
    }
    let (mut seen, mut at_edge) = (HashSet::new(), false);
    let further = |id: &ObjectId| {
        let is_further = *id != old && !below_old.contains(id);
        at_edge |= is_further && edge.binary_search(id).is_ok();
        is_further
    };
    walk(repo, new, further, &mut seen)?;
    Ok(seen.contains(&old) || !at_edge)
}

/// Goes back from a commit by all parents, past each commit that `further` says yes to.
fn walk(
    repo: &gix::Repository,
    from: ObjectId,
    mut further: impl FnMut(&ObjectId) -> bool,
    seen: &mut HashSet<ObjectId>,
) -> Result<(), RepositoryError> {
    let mut left = vec![from];
    while let Some(id) = left.pop() {
        if seen.insert(id) && further(&id) {
            left.extend(commit(repo, id)?.parents);
        }
    }
    Ok(())
}

/// The first parent; `None` at a root, or at the edge of a shallow clone.
pub(crate) fn first_parent(repo: &gix::Repository, id: ObjectId) -> Result<Option<ObjectId>, RepositoryError> {
    Ok(commit(repo, id)?.parents.first().copied())
}

/// The first line of a commit's message, and its first parent.
pub(crate) fn subject(repo: &gix::Repository, id: ObjectId) -> Result<(String, Option<ObjectId>), RepositoryError> {
    let object = verified(repo, id, gix::objs::Kind::Commit)?;
    let failed = |source| RepositoryError::History {
        from: id.to_string(),
        source,
    };
    let decoded = object.try_to_commit_ref().map_err(failed)?;
    let subject = decoded.message().summary().to_str_lossy().into_owned();
    Ok((subject, decoded.parents().next()))
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

/// What a trailer says in each commit that `from` builds on and `until` does not, with the commit, `from` itself first;
/// of at most `max` commits.
pub(crate) fn trailer_values(
    repo: &gix::Repository,
    from: ObjectId,
    until: Option<ObjectId>,
    max: usize,
    token: &str,
) -> Result<Vec<(ObjectId, String)>, RepositoryError> {
    let mut values = Vec::new();
    for id in commits_since(repo, from, until, max)? {
        let object = verified(repo, id, gix::objs::Kind::Commit)?;
        let decoded = object.try_to_commit_ref().map_err(|source| RepositoryError::History {
            from: from.to_string(),
            source,
        })?;
        let named = decoded
            .message_trailers()
            .filter(|trailer| trailer.token.to_str_lossy().eq_ignore_ascii_case(token));
        values.extend(named.map(|trailer| (id, trailer.value.to_str_lossy().trim().to_owned())));
    }
    Ok(values)
}

/// The commits that `from` builds on and `until` does not, `from` itself first, the newest `max` of them. Where `until`
/// is not here, as after a rewritten history, only `from`: an older word was for something else.
pub(crate) fn commits_since(
    repo: &gix::Repository,
    from: ObjectId,
    until: Option<ObjectId>,
    max: usize,
) -> Result<Vec<ObjectId>, RepositoryError> {
    let failed = |source| RepositoryError::History {
        from: from.to_string(),
        source,
    };
    let (hidden, max) = match until {
        Some(until) if repo.has_object(until) => (vec![until], max),
        Some(_) => (Vec::new(), 1),
        None => (Vec::new(), max),
    };
    let walk = repo
        .rev_walk([from])
        .with_hidden(hidden)
        .sorting(Sorting::ByCommitTime(CommitTimeOrder::NewestFirst))
        .all()
        .map_err(failed)?;
    walk.take(max).map(|step| Ok(step.map_err(failed)?.id)).collect()
}

/// The newest commit that two build on; `None` where they share nothing, or nothing that is here.
pub(crate) fn merge_base(
    repo: &gix::Repository,
    one: ObjectId,
    other: ObjectId,
) -> Result<Option<ObjectId>, RepositoryError> {
    let base = repo.merge_base(one, other);
    let base = base.map_err(|source| RepositoryError::History {
        from: one.to_string(),
        source,
    })?;
    Ok(base.map(|id| id.detach()))
}
