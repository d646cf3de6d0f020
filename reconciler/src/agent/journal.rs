//! The journal: what was taken, on disk, so that an agent that restarts without its hub keeps enforcing it.
//!
//! ```text
//! <folder>/held.json               the newest believed envelope
//! <folder>/contents/<digest>.json  each content it names
//! <folder>/holder                  this journal's identity in the cluster's lease
//! <folder>/lock                    locked while an agent uses the journal
//! ```
//!
//! A content is written before the envelope that needs nothing else counts as complete, every file is
//! written beside its place and moved there, and what does not read back is an error, never an empty journal.

mod files;

use std::any::Any;
use std::fs::TryLockError;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use render::{ClusterName, Digest};
use serde::de::DeserializeOwned;

pub use files::Files;

use self::files::LocalFiles;
use crate::wire::{Held, Intake};

const HELD_FILE: &str = "held.json";
const CONTENTS_FOLDER: &str = "contents";
const HOLDER_FILE: &str = "holder";
const LOCK_FILE: &str = "lock";

/// A journal on disk, used by one agent at a time.
#[derive(Clone, Debug)]
pub struct Journal {
    files: Arc<dyn Files>,
    folder: PathBuf,
    holder: String,
    /// Locked as long as it is open.
    _lock: Arc<dyn Any + Send + Sync>,
}

/// A journal that could not be read or written.
#[derive(Debug, thiserror::Error)]
pub enum JournalError {
    /// A file could not be read.
    #[error("failed to read {path}")]
    Read {
        /// Which.
        path: PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// A file could not be written.
    #[error("failed to write {path}; hint: --journal names a folder that this process may make and write to")]
    Write {
        /// Which.
        path: PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// Another agent uses it.
    #[error(
        "the journal {path} is in use by another agent; hint: end that one, or give this one a folder of its own with --journal"
    )]
    InUse {
        /// Its folder.
        path: PathBuf,
    },
    /// A file is not what it should be. It is left as it is, for a person to look at.
    #[error("{path} is damaged; remove the journal, and the agent asks its hub again")]
    Damaged {
        /// Which.
        path: PathBuf,
        /// Why.
        #[source]
        source: serde_json::Error,
    },
}

impl Journal {
    /// Opens a journal, making its folder when there is none, and locks it. `name` becomes the identity of a
    /// new one.
    pub fn open(folder: impl Into<PathBuf>, name: &str) -> Result<Self, JournalError> {
        Self::open_on(Arc::new(LocalFiles), folder, name)
    }

    /// As [`Self::open`], on another disk.
    pub fn open_on(files: Arc<dyn Files>, folder: impl Into<PathBuf>, name: &str) -> Result<Self, JournalError> {
        let folder = folder.into();
        let contents = folder.join(CONTENTS_FOLDER);
        files
            .make_private(&contents)
            .map_err(|source| JournalError::Write { path: contents, source })?;
        let path = folder.join(LOCK_FILE);
        let lock = match files.lock(&path) {
            Ok(lock) => lock.into(),
            Err(TryLockError::WouldBlock) => return Err(JournalError::InUse { path: folder }),
            Err(TryLockError::Error(source)) => return Err(JournalError::Write { path, source }),
        };
        let mut journal = Self {
            files,
            folder,
            holder: name.to_owned(),
            _lock: lock,
        };
        let path = journal.folder.join(HOLDER_FILE);
        match journal.read_file(&path)? {
            Some(bytes) => journal.holder = String::from_utf8_lossy(&bytes).trim().to_owned(),
            None => journal.write_file(&path, name.as_bytes())?,
        }
        journal.sync_folder(&journal.folder)?;
        journal.sync_above();
        Ok(journal)
    }

    /// Makes the folder itself last, whoever made it and whenever that was: what is synced in a folder that a loss
    /// of power takes away goes with it. Folders that may not be opened were made by somebody else long ago.
    fn sync_above(&self) {
        for above in self.folder.ancestors().skip(1) {
            let above = if above.as_os_str().is_empty() {
                Path::new(".")
            } else {
                above
            };
            if let Err(error) = self.files.sync_folder(above) {
                tracing::debug!(path = %above.display(), %error, "Could not sync a folder above the journal.");
            }
        }
    }

    /// The identity in the cluster's lease: the same after a restart, so that an agent that was killed goes
    /// on at once, and another one's for a copy of key and name elsewhere.
    pub fn holder(&self) -> &str {
        &self.holder
    }

    /// What was taken before. A content that is damaged counts as missing, since the hub can send it
    /// again; a damaged list is an error.
    pub fn read(&self, cluster: ClusterName) -> Result<Intake, JournalError> {
        let held: Option<Held> = self.read_json(&self.folder.join(HELD_FILE))?;
        let mut intake = Intake::new(cluster, held);
        for digest in intake.missing() {
            let path = self.content_path(digest);
            let Some(bytes) = self.read_file(&path)? else { continue };
            if let Err(error) = intake.content(digest, &bytes) {
                let error = &error as &dyn std::error::Error;
                tracing::warn!(path = %path.display(), error, "Found a damaged content and left it out.");
            }
        }
        Ok(intake)
    }

    /// Records a believed envelope.
    pub fn write_held(&self, held: &Held) -> Result<(), JournalError> {
        let path = self.folder.join(HELD_FILE);
        let bytes = serde_json::to_vec(held).map_err(|source| JournalError::Damaged {
            path: path.clone(),
            source,
        })?;
        self.write_file(&path, &bytes)?;
        self.sync_folder(&self.folder)
    }

    /// Records a content's bytes.
    pub fn write_content(&self, digest: Digest, bytes: &[u8]) -> Result<(), JournalError> {
        self.write_file(&self.content_path(digest), bytes)
    }

    /// Makes the contents that were written last over a loss of power. Once for all of a delivery: a content
    /// that did not last is asked for again.
    pub fn sync_contents(&self) -> Result<(), JournalError> {
        self.sync_folder(&self.folder.join(CONTENTS_FOLDER))
    }

    /// Removes contents that nothing names any more.
    pub fn remove_contents(&self, digests: &[Digest]) {
        for digest in digests {
            let path = self.content_path(*digest);
            if let Err(error) = self.files.remove(&path)
                && error.kind() != std::io::ErrorKind::NotFound
            {
                tracing::warn!(path = %path.display(), %error, "Could not remove an old content.");
            }
        }
    }

    fn content_path(&self, digest: Digest) -> PathBuf {
        self.folder
            .join(CONTENTS_FOLDER)
            .join(format!("{}.json", digest.short(64)))
    }

    fn read_json<T: DeserializeOwned>(&self, path: &Path) -> Result<Option<T>, JournalError> {
        let damaged = |source| JournalError::Damaged {
            path: path.to_owned(),
            source,
        };
        let Some(bytes) = self.read_file(path)? else {
            return Ok(None);
        };
        serde_json::from_slice(&bytes).map(Some).map_err(damaged)
    }

    fn read_file(&self, path: &Path) -> Result<Option<Vec<u8>>, JournalError> {
        match self.files.read(path) {
            Ok(bytes) => Ok(Some(bytes)),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(source) => Err(JournalError::Read {
                path: path.to_owned(),
                source,
            }),
        }
    }

    /// Writes beside the file's place, and moves it there once it is on disk: whatever happens, there is the
    /// old file or the new one.
    fn write_file(&self, path: &Path, bytes: &[u8]) -> Result<(), JournalError> {
        let beside = path.with_extension("new");
        let files = &self.files;
        let written = files
            .write(&beside, bytes)
            .and_then(|()| files.sync_file(&beside))
            .and_then(|()| files.rename(&beside, path));
        written.map_err(|source| JournalError::Write {
            path: path.to_owned(),
            source,
        })
    }

    /// A file's move into a folder lasts only once the folder is on disk.
    fn sync_folder(&self, folder: &Path) -> Result<(), JournalError> {
        self.files.sync_folder(folder).map_err(|source| JournalError::Write {
            path: folder.to_owned(),
            source,
        })
    }
}
