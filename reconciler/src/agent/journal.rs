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

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use render::{ClusterName, Digest};
use serde::de::DeserializeOwned;

use crate::wire::{Held, Intake};

const HELD_FILE: &str = "held.json";
const CONTENTS_FOLDER: &str = "contents";
const HOLDER_FILE: &str = "holder";
const LOCK_FILE: &str = "lock";

/// A journal on disk, used by one agent at a time.
#[derive(Clone, Debug)]
pub struct Journal {
    folder: PathBuf,
    holder: String,
    /// Locked as long as it is open.
    _lock: Arc<fs::File>,
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
        let folder = folder.into();
        let contents = folder.join(CONTENTS_FOLDER);
        make_private(&contents).map_err(|source| JournalError::Write { path: contents, source })?;
        let path = folder.join(LOCK_FILE);
        let lock = fs::File::create(&path).map_err(|source| JournalError::Write {
            path: path.clone(),
            source,
        })?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(fs::TryLockError::WouldBlock) => return Err(JournalError::InUse { path: folder }),
            Err(fs::TryLockError::Error(source)) => {
                return Err(JournalError::Write {
                    path: folder.join(LOCK_FILE),
                    source,
                });
            }
        }
        let path = folder.join(HOLDER_FILE);
        let holder = match read_file(&path)? {
            Some(bytes) => String::from_utf8_lossy(&bytes).trim().to_owned(),
            None => {
                write_file(&path, name.as_bytes())?;
                name.to_owned()
            }
        };
        Ok(Self {
            folder,
            holder,
            _lock: Arc::new(lock),
        })
    }

    /// The identity in the cluster's lease: the same after a restart, so that an agent that was killed goes
    /// on at once, and another one's for a copy of key and name elsewhere.
    pub fn holder(&self) -> &str {
        &self.holder
    }

    /// What was taken before. A content that is damaged counts as missing, since the hub can send it
    /// again; a damaged list is an error.
    pub fn read(&self, cluster: ClusterName) -> Result<Intake, JournalError> {
        let held: Option<Held> = read_json(&self.folder.join(HELD_FILE))?;
        let mut intake = Intake::new(cluster, held);
        for digest in intake.missing() {
            let path = self.content_path(digest);
            let Some(bytes) = read_file(&path)? else { continue };
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
        write_file(&path, &bytes)?;
        sync_folder(&self.folder)
    }

    /// Records a content's bytes.
    pub fn write_content(&self, digest: Digest, bytes: &[u8]) -> Result<(), JournalError> {
        write_file(&self.content_path(digest), bytes)
    }

    /// Makes the contents that were written last over a loss of power. Once for all of a delivery: a content
    /// that did not last is asked for again.
    pub fn sync_contents(&self) -> Result<(), JournalError> {
        sync_folder(&self.folder.join(CONTENTS_FOLDER))
    }

    /// Removes contents that nothing names any more.
    pub fn remove_contents(&self, digests: &[Digest]) {
        for digest in digests {
            let path = self.content_path(*digest);
            if let Err(error) = fs::remove_file(&path)
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
}

fn read_json<T: DeserializeOwned>(path: &Path) -> Result<Option<T>, JournalError> {
    let damaged = |source| JournalError::Damaged {
        path: path.to_owned(),
        source,
    };
    let Some(bytes) = read_file(path)? else { return Ok(None) };
    serde_json::from_slice(&bytes).map(Some).map_err(damaged)
}

/// Makes a folder that nobody else on this machine can look into: contents may hold Secrets. One that an
/// older version left open is closed.
fn make_private(folder: &Path) -> std::io::Result<()> {
    fs::create_dir_all(folder)?;
    fs::set_permissions(folder, fs::Permissions::from_mode(0o700))
}

fn read_file(path: &Path) -> Result<Option<Vec<u8>>, JournalError> {
    match fs::read(path) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(source) => Err(JournalError::Read {
            path: path.to_owned(),
            source,
        }),
    }
}

fn write_file(path: &Path, bytes: &[u8]) -> Result<(), JournalError> {
    let failed = |source| JournalError::Write {
        path: path.to_owned(),
        source,
    };
    let beside = path.with_extension("new");
    let mut file = fs::File::create(&beside).map_err(failed)?;
    file.write_all(bytes).map_err(failed)?;
    file.sync_data().map_err(failed)?;
    fs::rename(&beside, path).map_err(failed)
}

/// A file's move into a folder lasts only once the folder is on disk.
fn sync_folder(folder: &Path) -> Result<(), JournalError> {
    let failed = |source| JournalError::Write {
        path: folder.to_owned(),
        source,
    };
    let opened = fs::File::open(folder).map_err(failed)?;
    opened.sync_all().map_err(failed)
}
