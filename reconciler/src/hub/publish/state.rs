//! The state repository: opening it, reading what stands in it, moving its refs.

use std::collections::{HashMap, HashSet, VecDeque};
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use gix::ObjectId;
use gix::objs::Kind;
use gix::refs::Target;
use gix::refs::transaction::{PreviousValue, RefEdit};
use render::layout::LayoutError;
use render::{Digest, Published, Revision, UnitKey};

use super::commit_index::CommitIndex;
use super::{StateRef, StateRefs, lock};
use crate::hub::repository::{
    LocalRepository, Relation, RepositoryError, commit, first_parent, relation, revision, verified,
};
use crate::hub::source::Source;
use crate::limits::PUBLISHED_CACHE_COMMITS;

/// Why the state repository could not be read or written. Nothing was changed.
#[derive(Debug, thiserror::Error)]
pub enum StateError {
    /// A ref name that Git does not allow.
    #[error("{name:?} is not a valid ref name")]
    RefName {
        /// As given.
        name: String,
    },
    /// Two of the refs cannot be there at once.
    #[error("the refs {one} and {other} cannot both exist")]
    RefsCollide {
        /// One of them.
        one: String,
        /// The other.
        other: String,
    },
    /// The source branch is a ref that the hub writes.
    #[error("the source branch {branch} is a ref that the hub writes")]
    SourceIsOutput {
        /// Its full name.
        branch: String,
    },
    /// A new repository could not be made.
    #[error("failed to create the state repository {path}")]
    Create {
        /// Where.
        path: PathBuf,
        /// Why.
        #[source]
        source: gix::Error,
    },
    /// Something was there and could not be read whole.
    #[error("the state repository could not be read")]
    Unreadable(#[source] RepositoryError),
    /// A commit that is not one of ours or was edited into something else.
    #[error("the commit {commit} is not a state of the fleet: {reason}")]
    NotAState {
        /// Which.
        commit: CommitId,
        /// What it lacks, or has too much.
        reason: String,
    },
    /// A decision without the record that makes a commit readable again.
    #[error("the decision has no release record")]
    NoRecord,
    /// A file of a commit that does not say what such a file says.
    #[error("failed to understand the state in the commit {commit}")]
    Layout {
        /// Which.
        commit: CommitId,
        /// Why.
        #[source]
        source: LayoutError,
    },
    /// A content that a decision names and nobody has.
    #[error("the content {digest} of {unit} is not known")]
    ContentMissing {
        /// The unit.
        unit: String,
        /// Its digest.
        digest: Digest,
    },
    /// Files that do not have the digest that the placement promises.
    #[error("the files of the content {promised} have the digest {found}")]
    ContentDiffers {
        /// As the placement says.
        promised: Digest,
        /// As it is.
        found: Digest,
    },
    /// Files of a content that cannot be read back.
    #[error("failed to read back the content {digest}")]
    ContentLayout {
        /// Its digest.
        digest: Digest,
        /// Why.
        #[source]
        source: LayoutError,
    },
    /// An object could not be written.
    #[error("failed to write to the state repository")]
    Write(#[source] gix::Error),
    /// A ref is not where the caller believed it to be; somebody else moved it.
    #[error("the ref {name} was moved by somebody else")]
    Moved {
        /// Its full name.
        name: String,
        /// Where it is now; `None` if it is gone.
        found: Option<CommitId>,
    },
    /// A ref could not be written although it is where the caller believed it to be.
    #[error("failed to move the ref {name}")]
    RefNotMoved {
        /// Its full name.
        name: String,
        /// Why.
        #[source]
        source: gix::Error,
    },
}

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

    /// Where a ref points; `None` if it does not exist in a repository that does.
    pub fn head(&self, which: StateRef) -> Result<Option<CommitId>, StateError> {
        let found = self.repository.reference(self.ref_name(which));
        Ok(found.map_err(StateError::Unreadable)?.map(CommitId))
    }

    /// What stands in a ref; `None` if it does not exist in a repository that does.
    pub fn read_published(&self, which: StateRef) -> Result<Option<(CommitId, Arc<Published>)>, StateError> {
        match self.head(which)? {
            None => Ok(None),
            Some(commit) => Ok(Some((commit, self.published_at(commit)?))),
        }
    }

    /// What stands in a commit.
    pub fn published_at(&self, commit: CommitId) -> Result<Arc<Published>, StateError> {
        Ok(self.index(commit)?.published.clone())
    }

    /// How a commit of the state repository relates to an older one.
    pub fn relation(&self, old: CommitId, new: CommitId) -> Result<Relation, StateError> {
        self.repository
            .read(|repo| relation(repo, old.0, new.0))
            .map_err(StateError::Unreadable)
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
        Err(if found == expected {
            StateError::RefNotMoved { name, source }
        } else {
            StateError::Moved { name, found }
        })
    }

    /// A reflog entry is as old as the commit, since its age decides when Git forgets it.
    pub(super) fn commit_seconds(&self, id: CommitId) -> Result<i64, StateError> {
        let repo = self.repository.local();
        let time = verified(&repo, id.0, Kind::Commit).map(|object| object.into_commit().time());
        let time = time.map_err(StateError::Unreadable)?;
        Ok(time.map_err(StateError::Write)?.seconds)
    }

    pub(super) fn signature(&self, seconds: i64) -> gix::actor::Signature {
        gix::actor::Signature {
            name: self.author.name.as_str().into(),
            email: self.author.email.as_str().into(),
            time: gix::date::Time::new(seconds, 0),
        }
    }

    pub(super) fn index(&self, id: CommitId) -> Result<Arc<CommitIndex>, StateError> {
        let (known, near) = {
            let memory = self.memory();
            let known = memory.commits.iter().find(|(commit, _)| *commit == id);
            (known.cloned(), memory.commits.back().cloned())
        };
        if let Some((_, index)) = known {
            return Ok(index);
        }
        let tree = self
            .repository
            .read(|repo| commit(repo, id.0))
            .map_err(StateError::Unreadable)?
            .tree;
        let index = Arc::new(CommitIndex::read(self, id, tree, near.map(|(_, index)| index))?);
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

pub(super) fn missing(unit: &UnitKey, digest: Digest) -> StateError {
    StateError::ContentMissing {
        unit: unit.to_string(),
        digest,
    }
}

/// A reflog entry is one line.
fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn same_folder(one: &Path, other: &Path) -> bool {
    let real = |path: &Path| std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    real(one) == real(other)
}
