//! Opening a repository, and opening it again when it was moved or replaced under us.

use std::path::{Path, PathBuf};
use std::sync::{PoisonError, RwLock};

use gix::ThreadSafeRepository;
use gix::bstr::ByteSlice;
use gix::sec::Trust;

use crate::limits::OBJECT_CACHE_BYTES;

/// Why a repository could not be read. Nothing may be concluded from it but that.
#[derive(Debug, thiserror::Error)]
pub enum RepositoryError {
    /// No repository there, or one that cannot be opened.
    #[error("failed to open the git repository {path}")]
    Open {
        /// Where.
        path: PathBuf,
        /// Why.
        #[source]
        source: gix::Error,
    },
    /// Nothing at all is there.
    #[error("there is no folder {path}; hint: git init --bare makes a repository, and git clone --mirror a copy")]
    NotThere {
        /// Where.
        path: PathBuf,
    },
    /// Something else is there.
    #[error("{path} is no git repository; hint: name the folder of one, bare or with its .git")]
    NotARepository {
        /// Where.
        path: PathBuf,
    },
    /// Its refs are kept in a form that cannot be read.
    #[error(
        "the git repository {path} keeps its refs as {format:?}; only \"files\" can be read; hint: git clone --mirror --ref-format=files"
    )]
    RefStorage {
        /// Where.
        path: PathBuf,
        /// The value of `extensions.refStorage`.
        format: String,
    },
    /// Its objects have ids that we do not read.
    #[error(
        "the git repository {path} has SHA-256 ids, and SHA-1 is read here; hint: push the branch to one made with git init --object-format=sha1"
    )]
    ObjectFormat {
        /// Where.
        path: PathBuf,
    },
    /// A ref that is there and cannot be read.
    #[error("failed to read the ref {name}")]
    Ref {
        /// Its full name.
        name: String,
        /// Why.
        #[source]
        source: gix::Error,
    },
    /// A ref that stands for another ref.
    #[error("{name} is a symbolic ref; name the branch that it points to")]
    SymbolicRef {
        /// Its full name.
        name: String,
    },
    /// An object that is missing or cannot be decoded.
    #[error("failed to read the git object {id}")]
    Object {
        /// Which.
        id: String,
        /// Why.
        #[source]
        source: gix::Error,
    },
    /// An object whose bytes are not those that its id was made from, or of an impossible form.
    #[error("the git object {id} is corrupt: {reason}")]
    Corrupt {
        /// Which.
        id: String,
        /// In which way.
        reason: &'static str,
    },
    /// The history could not be followed to its end.
    #[error("failed to walk the history of {from}")]
    History {
        /// Where the walk began.
        from: String,
        /// Why.
        #[source]
        source: gix::Error,
    },
    /// More than fits.
    #[error("the tree of {from} has more than {max} {what}")]
    TooMuch {
        /// The commit.
        from: String,
        /// `files`, `bytes` or `levels`.
        what: &'static str,
        /// The limit.
        max: u64,
    },
}

/// A repository at a path, readable from any thread.
#[derive(Debug)]
pub struct LocalRepository {
    path: PathBuf,
    handle: RwLock<ThreadSafeRepository>,
}

impl LocalRepository {
    /// Opens the repository at `path`: bare, or with a worktree whose files are never looked at.
    pub fn open(path: impl Into<PathBuf>) -> Result<Self, RepositoryError> {
        let path = path.into();
        let handle = RwLock::new(open(&path)?);
        Ok(Self { path, handle })
    }

    /// The path it was opened with.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The folder that holds `refs/` and `objects/`.
    pub fn common_dir(&self) -> PathBuf {
        self.local().common_dir().to_owned()
    }

    /// Runs `read`, and once more on a freshly opened repository if that failed: packs may have been
    /// rewritten, or the whole folder replaced by a new clone, since the last look.
    pub(crate) fn read<T>(
        &self,
        read: impl Fn(&gix::Repository) -> Result<T, RepositoryError>,
    ) -> Result<T, RepositoryError> {
        read(&self.local()).or_else(|error| match error {
            // What was understood will be no different a second time.
            RepositoryError::TooMuch { .. } | RepositoryError::SymbolicRef { .. } => Err(error),
            _ => {
                self.reopen()?;
                read(&self.local())
            }
        })
    }

    /// The commit that a full ref name points to; `None` if the ref is not there while the repository is.
    pub(crate) fn reference(&self, name: &str) -> Result<Option<gix::ObjectId>, RepositoryError> {
        let found = self.read(|repo| direct_target(repo, name))?;
        if found.is_none() {
            // A repository that is gone has no refs either, and that must not read as "no such branch".
            self.reopen()?;
            return direct_target(&self.local(), name);
        }
        Ok(found)
    }

    /// When a commit was made, in seconds since 1970; `None` where it is not here.
    pub(crate) fn commit_seconds(&self, id: gix::ObjectId) -> Option<i64> {
        let repo = self.local();
        let commit = repo.find_commit(id).ok()?;
        Some(commit.time().ok()?.seconds)
    }

    pub(crate) fn local(&self) -> gix::Repository {
        let mut repo = self
            .handle
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .to_thread_local();
        repo.object_cache_size_if_unset(OBJECT_CACHE_BYTES);
        repo
    }

    fn reopen(&self) -> Result<(), RepositoryError> {
        let fresh = open(&self.path)?;
        *self.handle.write().unwrap_or_else(PoisonError::into_inner) = fresh;
        Ok(())
    }
}

/// Only the repository's own configuration counts, so that the same repository reads alike for every user
/// on every machine. The path is a process flag, hence trusted whoever owns the folder. Replacement refs are
/// off: under them an id would not name its content.
fn open(path: &Path) -> Result<ThreadSafeRepository, RepositoryError> {
    let failed = |source| RepositoryError::Open {
        path: path.to_owned(),
        source,
    };
    match std::fs::metadata(path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            return Err(RepositoryError::NotThere { path: path.to_owned() });
        }
        // Said here, since what a file holds would be part of gix's words.
        Ok(metadata) if metadata.is_file() || !has_repository(path) => {
            return Err(RepositoryError::NotARepository { path: path.to_owned() });
        }
        _ => {}
    }
    if has_other_ids(path) {
        return Err(RepositoryError::ObjectFormat { path: path.to_owned() });
    }
    let handle = gix::open::Options::isolated()
        .with(Trust::Full)
        // At Git's level for loose objects, 1, our zlib keeps the hex digits of digests at a byte each.
        .config_overrides(["core.useReplaceRefs=false", "core.looseCompression=6"])
        .open(path)
        .map_err(failed)?;
    let format = handle
        .to_thread_local()
        .config_snapshot()
        .string("extensions.refStorage")
        .map(|format| format.to_str_lossy().into_owned());
    match format {
        Some(format) if format != "files" => Err(RepositoryError::RefStorage {
            path: path.to_owned(),
            format,
        }),
        _ => Ok(handle),
    }
}

/// Whether a folder has what every repository has.
fn has_repository(path: &Path) -> bool {
    let there = |name: &str| path.join(name).symlink_metadata().is_ok();
    there(".git") || there("HEAD")
}

/// Whether its configuration says so: gix would say no more than that it cannot open it.
fn has_other_ids(path: &Path) -> bool {
    let configs = [path.join("config"), path.join(".git/config")];
    let says = |line: &str| {
        let line = line.to_ascii_lowercase();
        line.split_once('=')
            .is_some_and(|(key, value)| key.trim() == "objectformat" && value.trim() == "sha256")
    };
    let text = configs.iter().find_map(|config| std::fs::read_to_string(config).ok());
    text.is_some_and(|text| text.lines().any(says))
}

fn direct_target(repo: &gix::Repository, name: &str) -> Result<Option<gix::ObjectId>, RepositoryError> {
    let reference = repo.try_find_reference(name).map_err(|source| RepositoryError::Ref {
        name: name.to_owned(),
        source,
    })?;
    match reference {
        None => Ok(None),
        Some(reference) => match reference.try_id() {
            Some(id) => Ok(Some(id.detach())),
            None => Err(RepositoryError::SymbolicRef { name: name.to_owned() }),
        },
    }
}
