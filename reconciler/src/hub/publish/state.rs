//! The state repository: opening it and reading what stands in it.

use std::collections::{HashMap, HashSet, VecDeque};
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use gix::ObjectId;
use render::{Digest, Published, Revision};

use super::commit_index::CommitIndex;
use super::memories::Looked;
use super::{StateError, StateRef, StateRefs, lock};
use crate::hub::repository::{LocalRepository, Relation, commit, first_parent, object_id, relation, revision};
use crate::hub::source::Source;
use crate::limits::PUBLISHED_CACHE_COMMITS;

/// A commit of the state repository.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CommitId(pub(super) ObjectId);

impl CommitId {
    /// The same as a revision.
    pub fn revision(&self) -> Revision {
        revision(self.0)
    }
}

impl fmt::Display for CommitId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Debug for CommitId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Who the hub's commits are by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Author {
    /// Default `flotilla`.
    pub name: String,
    /// Default `flotilla@localhost`.
    pub email: String,
}

impl Default for Author {
    fn default() -> Self {
        Self {
            name: "flotilla".to_owned(),
            email: "flotilla@localhost".to_owned(),
        }
    }
}

/// The repository with `rendered`, `released` and the proposals.
#[derive(Debug)]
pub struct StateRepository {
    pub(super) repository: LocalRepository,
    pub(super) refs: StateRefs,
    pub(super) author: Author,
    pub(super) memory: Mutex<Memory>,
}

/// What need not be found out twice; all of it follows from ids, so that none of it can become stale.
#[derive(Debug, Default)]
pub(super) struct Memory {
    commits: VecDeque<(CommitId, Arc<CommitIndex>)>,
    /// Folders whose files were seen to have the digest.
    pub(super) proven: HashSet<(ObjectId, Digest)>,
    /// Commit → the root of its first parents.
    roots: HashMap<CommitId, CommitId>,
    /// How units were placed when they asked for something, as far as that was looked for.
    pub(super) looked: Looked,
}

impl Memory {
    /// Every commit that is remembered.
    pub(super) fn indexes(&self) -> Vec<Arc<CommitIndex>> {
        self.commits.iter().map(|(_, index)| index.clone()).collect()
    }

    /// A commit read lately, which makes it the latest; else the latest, which may have much in common.
    fn recall(&mut self, id: CommitId) -> Result<Arc<CommitIndex>, Option<Arc<CommitIndex>>> {
        let found = self.commits.iter().position(|(commit, _)| *commit == id);
        if let Some(known) = found.and_then(|at| self.commits.remove(at)) {
            let index = known.1.clone();
            self.commits.push_back(known);
            return Ok(index);
        }
        Err(self.commits.back().map(|(_, index)| index.clone()))
    }
}

impl StateRepository {
    /// Opens the state repository at `path`, which may be the source's own. Refused if `source` follows one
    /// of `refs` there. Locks of refs that a killed process left behind are removed.
    pub fn open(
        path: impl Into<PathBuf>,
        refs: StateRefs,
        author: Author,
        source: &Source,
    ) -> Result<Self, StateError> {
        let refs = refs.checked()?;
        let repository = LocalRepository::open(path).map_err(StateError::Unreadable)?;
        if same_folder(&repository.common_dir(), &source.common_dir()) && refs.include(source.branch()) {
            return Err(StateError::SourceIsOutput {
                branch: source.branch().to_owned(),
            });
        }
        lock::remove_stale(&repository.common_dir(), &refs);
        Ok(Self {
            repository,
            refs,
            author,
            memory: Mutex::default(),
        })
    }

    /// Makes an empty bare repository at `path`, for a hub that may not write to the source's.
    pub fn create(path: &Path) -> Result<(), StateError> {
        match gix::init_bare(path) {
            Ok(_) => Ok(()),
            Err(source) => Err(StateError::Create {
                path: path.to_owned(),
                source,
            }),
        }
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        self.repository.path()
    }

    /// The full name of a ref.
    pub fn ref_name(&self, which: StateRef) -> &str {
        self.refs.name(which)
    }

    /// What the full names of proposals begin with.
    pub fn proposed_prefix(&self) -> &str {
        &self.refs.proposed_prefix
    }

    /// Where a ref points; `None` if it does not exist in a repository that does.
    pub fn head(&self, which: StateRef) -> Result<Option<CommitId>, StateError> {
        let found = self.repository.reference(self.ref_name(which));
        Ok(found.map_err(StateError::Unreadable)?.map(CommitId))
    }

    /// What stands in a ref; `None` if it does not exist in a repository that does. `released` is the hub's
    /// alone, so that its placements are taken at their word; contents are checked when they are asked for.
    pub fn read_published(&self, which: StateRef) -> Result<Option<(CommitId, Arc<Published>)>, StateError> {
        let Some(commit) = self.head(which)? else {
            return Ok(None);
        };
        let index = match which {
            StateRef::Released => self.index_with(commit, Ok)?,
            StateRef::Rendered => self.index(commit)?,
        };
        Ok(Some((commit, index.published.clone())))
    }

    /// What stands in a commit.
    pub fn published_at(&self, commit: CommitId) -> Result<Arc<Published>, StateError> {
        Ok(self.index(commit)?.published.clone())
    }

    /// The commit that a cluster or a record names; `None` if this repository does not have it.
    pub fn commit(&self, named: &Revision) -> Result<Option<CommitId>, StateError> {
        let Some(id) = object_id(named) else {
            return Ok(None);
        };
        let found = self.repository.read(|repo| match repo.has_object(id) {
            true => commit(repo, id).map(|_| Some(CommitId(id))),
            false => Ok(None),
        });
        found.map_err(StateError::Unreadable)
    }

    /// How a commit of the state repository relates to an older one.
    pub fn relation(&self, old: CommitId, new: CommitId) -> Result<Relation, StateError> {
        self.repository
            .read(|repo| relation(repo, old.0, new.0))
            .map_err(StateError::Unreadable)
    }

    /// When a commit was made, in seconds since 1970; `None` where it is not here.
    pub fn seconds_of(&self, of: &Revision) -> Option<i64> {
        self.repository.commit_seconds(object_id(of)?)
    }

    /// The first commit that `commit` goes back to by first parents: the lineage that deliveries name.
    pub fn lineage(&self, commit: CommitId) -> Result<Revision, StateError> {
        let mut at = commit;
        let root = loop {
            if let Some(root) = self.memory().roots.get(&at) {
                break *root;
            }
            let parent = self.repository.read(|repo| first_parent(repo, at.0));
            match parent.map_err(StateError::Unreadable)? {
                None => break at,
                Some(parent) => at = CommitId(parent),
            }
        };
        // The newest is asked for again, and so is the commit that will be put on it.
        let mut memory = self.memory();
        if memory.roots.len() > PUBLISHED_CACHE_COMMITS {
            memory.roots.clear();
        }
        memory.roots.insert(commit, root);
        Ok(root.revision())
    }

    pub(super) fn signature(&self, seconds: i64) -> gix::actor::Signature {
        gix::actor::Signature {
            name: self.author.name.as_str().into(),
            email: self.author.email.as_str().into(),
            time: gix::date::Time::new(seconds, 0),
        }
    }

    /// What stands in a commit, whoever wrote it.
    pub(super) fn index(&self, id: CommitId) -> Result<Arc<CommitIndex>, StateError> {
        self.index_with(id, |index| self.as_it_stands(id, index))
    }

    fn index_with(
        &self,
        id: CommitId,
        take: impl FnOnce(CommitIndex) -> Result<CommitIndex, StateError>,
    ) -> Result<Arc<CommitIndex>, StateError> {
        let near = match self.memory().recall(id) {
            Ok(index) => return Ok(index),
            Err(near) => near,
        };
        let tree = self
            .repository
            .read(|repo| commit(repo, id.0))
            .map_err(StateError::Unreadable)?
            .tree;
        let index = Arc::new(take(CommitIndex::read(self, id, tree, near)?)?);
        self.remember(id, index.clone());
        Ok(index)
    }

    pub(super) fn remember(&self, id: CommitId, index: Arc<CommitIndex>) {
        let mut memory = self.memory();
        memory.commits.push_back((id, index));
        if memory.commits.len() > PUBLISHED_CACHE_COMMITS {
            memory.commits.pop_front();
        }
    }

    pub(super) fn memory(&self) -> MutexGuard<'_, Memory> {
        self.memory.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn same_folder(one: &Path, other: &Path) -> bool {
    let real = |path: &Path| std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    real(one) == real(other)
}
