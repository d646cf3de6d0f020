//! The branch that is followed, and where it points.

use std::path::{Path, PathBuf};
use std::sync::Mutex;

use render::Revision;

use super::tree::Cache;
use crate::hub::repository::{LocalRepository, RepositoryError, commit, first_parent, object_id, revision, subject};

/// Why there is no snapshot of the source. Under each of these nothing changes anywhere.
#[derive(Debug, thiserror::Error)]
pub enum SourceError {
    /// The text given as branch cannot be one.
    #[error("{name:?} is not a valid branch name; hint: --branch takes a name such as main")]
    BranchName {
        /// As given.
        name: String,
    },
    /// The repository is there and the branch is not.
    #[error("the branch {branch} is missing in {path}")]
    BranchMissing {
        /// Full name of the ref.
        branch: String,
        /// Where.
        path: PathBuf,
    },
    /// A revision that cannot be in this repository.
    #[error("the revision {revision} is not known here")]
    UnknownRevision {
        /// Which.
        revision: Revision,
    },
    /// Words of a person that name no commit, or more than one.
    #[error(
        "{spec:?} names no commit here, or several; hint: name a branch, a tag or an id; git fetch brings what is new"
    )]
    NoCommit {
        /// As given.
        spec: String,
    },
    /// Something was there and could not be read whole.
    #[error("the source repository could not be read")]
    Unreadable(#[source] RepositoryError),
}

/// Where the branch points.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Head {
    /// Its newest commit.
    pub revision: Revision,
}

/// The source: one branch of one local repository.
#[derive(Debug)]
pub struct Source {
    pub(super) repository: LocalRepository,
    pub(super) cache: Mutex<Cache>,
    branch: String,
}

impl Source {
    /// Opens the repository. `branch` is `main` or `refs/heads/main`; it always means the branch, also
    /// where a tag has the same name. That the branch exists is not asked yet.
    pub fn open(path: impl Into<PathBuf>, branch: &str) -> Result<Self, SourceError> {
        Ok(Self {
            branch: full_branch_name(branch)?,
            repository: LocalRepository::open(path).map_err(SourceError::Unreadable)?,
            cache: Mutex::default(),
        })
    }

    /// The path it was opened with.
    pub fn path(&self) -> &Path {
        self.repository.path()
    }

    /// The folder that holds its refs, to tell whether another repository is the same.
    pub fn common_dir(&self) -> PathBuf {
        self.repository.common_dir()
    }

    /// The branch as a full ref name.
    pub fn branch(&self) -> &str {
        &self.branch
    }

    /// The commit that a person means by `HEAD`, a branch, a tag, a full or unique short id, or `HEAD~1`. For
    /// command lines; what is followed is never named so.
    pub fn resolve(&self, spec: &str) -> Result<Revision, SourceError> {
        let repo = self.repository.local();
        let found = repo.rev_parse_single(format!("{spec}^{{commit}}").as_str());
        match found {
            Ok(id) => Ok(revision(id.detach())),
            // What it is for gix says nothing to a person.
            Err(_) => Err(SourceError::NoCommit { spec: spec.to_owned() }),
        }
    }

    /// The first parent of a revision; `None` at a root, or at the edge of a shallow clone.
    pub fn first_parent(&self, of: &Revision) -> Result<Option<Revision>, SourceError> {
        let id = known(of)?;
        let parent = self.repository.read(|repo| first_parent(repo, id));
        Ok(parent.map_err(SourceError::Unreadable)?.map(revision))
    }

    /// All parents of a revision, the first one first; none at a root, or at the edge of a shallow clone.
    pub fn parents(&self, of: &Revision) -> Result<Vec<Revision>, SourceError> {
        let id = known(of)?;
        let links = self.repository.read(|repo| commit(repo, id));
        let parents = links.map_err(SourceError::Unreadable)?.parents;
        Ok(parents.into_iter().map(revision).collect())
    }

    /// When a commit was made, in seconds since 1970; `None` where the repository has no such commit, as at
    /// the edge of a shallow clone.
    pub fn commit_seconds(&self, of: &Revision) -> Option<i64> {
        self.repository.commit_seconds(object_id(of)?)
    }

    /// A revision's first line, and its first parent.
    pub fn subject(&self, of: &Revision) -> Result<(String, Option<Revision>), SourceError> {
        let id = known(of)?;
        let found = self.repository.read(|repo| subject(repo, id));
        let (subject, parent) = found.map_err(SourceError::Unreadable)?;
        Ok((subject, parent.map(revision)))
    }

    /// Where the branch points now.
    pub fn head(&self) -> Result<Head, SourceError> {
        let found = self
            .repository
            .reference(&self.branch)
            .map_err(SourceError::Unreadable)?;
        let Some(id) = found else {
            return Err(SourceError::BranchMissing {
                branch: self.branch.clone(),
                path: self.path().to_owned(),
            });
        };
        self.repository
            .read(|repo| commit(repo, id))
            .map_err(SourceError::Unreadable)?;
        Ok(Head { revision: revision(id) })
    }
}

pub(super) fn known(revision: &Revision) -> Result<gix::ObjectId, SourceError> {
    object_id(revision).ok_or_else(|| SourceError::UnknownRevision {
        revision: revision.clone(),
    })
}

/// `main` as `refs/heads/main`.
pub(crate) fn full_branch_name(branch: &str) -> Result<String, SourceError> {
    let name = if branch.starts_with("refs/") {
        branch.to_owned()
    } else {
        format!("refs/heads/{branch}")
    };
    match gix::refs::FullName::try_from(name.as_str()) {
        Ok(_) => Ok(name),
        Err(_) => Err(SourceError::BranchName {
            name: branch.to_owned(),
        }),
    }
}
