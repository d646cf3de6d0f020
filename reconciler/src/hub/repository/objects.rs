//! Reading objects with proof: their bytes are hashed before they are believed.

use gix::ObjectId;
use gix::objs::Kind;
use render::Revision;

use super::RepositoryError;

/// Reads an object whole. A missing, truncated or altered one is an error, never a smaller one.
pub(crate) fn verified(repo: &gix::Repository, id: ObjectId, kind: Kind) -> Result<gix::Object<'_>, RepositoryError> {
    let object = repo.find_object(id).map_err(|source| unreadable(id, source))?;
    let corrupt = |reason| RepositoryError::Corrupt {
        id: id.to_string(),
        reason,
    };
    if object.kind != kind {
        return Err(corrupt("it is of another kind than what points to it says"));
    }
    let actual =
        gix::objs::compute_hash(repo.object_hash(), kind, &object.data).map_err(|source| unreadable(id, source))?;
    if actual != id {
        return Err(corrupt("its content does not match its id"));
    }
    Ok(object)
}

/// A commit's tree and parents.
#[derive(Clone, Debug)]
pub(crate) struct CommitLinks {
    pub(crate) tree: ObjectId,
    pub(crate) parents: Vec<ObjectId>,
}

/// Reads what a commit points to. In a shallow clone a commit at its edge has no parents.
pub(crate) fn commit(repo: &gix::Repository, id: ObjectId) -> Result<CommitLinks, RepositoryError> {
    let object = verified(repo, id, Kind::Commit)?;
    let decoded = object.try_to_commit_ref().map_err(|source| unreadable(id, source))?;
    let shallow = repo.shallow_commits().map_err(|source| unreadable(id, source))?;
    let at_edge = shallow.is_some_and(|edge| edge.binary_search(&id).is_ok());
    Ok(CommitLinks {
        tree: decoded.tree(),
        parents: if at_edge {
            Vec::new()
        } else {
            decoded.parents().collect()
        },
    })
}

/// The entries of a tree, in Git's order.
pub(crate) fn tree_entries(
    repo: &gix::Repository,
    id: ObjectId,
) -> Result<Vec<gix::objs::tree::Entry>, RepositoryError> {
    let object = verified(repo, id, Kind::Tree)?;
    gix::objs::TreeRefIter::from_bytes(&object.data, id.kind())
        .map(|entry| entry.map(Into::into).map_err(|source| unreadable(id, source)))
        .collect()
}

/// The object id of a revision; `None` for a hash that this repository cannot have.
pub(crate) fn object_id(revision: &Revision) -> Option<ObjectId> {
    ObjectId::from_hex(revision.as_str().as_bytes()).ok()
}

/// The revision of a commit.
pub(crate) fn revision(id: ObjectId) -> Revision {
    Revision::parse(id.to_string()).expect("an object id prints as 40 or 64 lower-case hex digits")
}

fn unreadable(id: ObjectId, source: impl Into<gix::Error>) -> RepositoryError {
    RepositoryError::Object {
        id: id.to_string(),
        source: source.into(),
    }
}
