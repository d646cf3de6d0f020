//! The copy as a folder: whose it is, what a killed process left in it, and starting over.
//!
//! ```text
//! <folder>/flotilla.lock      locked while a hub uses the copy
//! <folder>/flotilla-copy-of   the URL; what lacks it was not made by a hub, and is left alone
//! <folder>/…                  a bare repository
//! ```

use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use super::address::RemoteUrl;
use crate::limits::COPY_DEPTH_MAX;

const LOCK_FILE: &str = "flotilla.lock";
const MARK_FILE: &str = "flotilla-copy-of";

/// Why a folder cannot be a hub's copy.
#[derive(Debug, thiserror::Error)]
pub enum CopyError {
    /// It cannot be made or read.
    #[error("failed to use {path} as the copy")]
    Folder {
        /// Which.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// Something else is in it.
    #[error("{path} holds something that is no copy of a hub; hint: name an empty or new folder with --copy")]
    NotOurs {
        /// Which.
        path: PathBuf,
    },
    /// It is the copy of another repository.
    #[error("{path} is the copy of {url}; hint: name another folder with --copy, or remove this one")]
    OfAnother {
        /// Which.
        path: PathBuf,
        /// Of what.
        url: String,
    },
    /// Another hub uses it.
    #[error("another hub uses the copy {path}")]
    InUse {
        /// Which.
        path: PathBuf,
    },
    /// A repository could not be made in it.
    #[error("failed to make the copy {path}")]
    Init {
        /// Which.
        path: PathBuf,
        /// Why.
        #[source]
        source: crate::hub::git::GitError,
    },
}

/// A folder that this hub alone uses.
#[derive(Debug)]
pub(super) struct Copy {
    path: PathBuf,
    _lock: fs::File,
}

impl Copy {
    /// Takes the folder, making it when there is none. What a killed process left in it is cleared away.
    pub(super) fn open(path: &Path, url: &RemoteUrl) -> Result<Self, CopyError> {
        let failed = |source| CopyError::Folder {
            path: path.to_owned(),
            source,
        };
        fs::create_dir_all(path).map_err(failed)?;
        let mark = path.join(MARK_FILE);
        let found = match fs::read_to_string(&mark) {
            Ok(found) => Some(found),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(failed(error)),
        };
        match found.as_deref().map(str::trim) {
            Some(found) if found != url.as_str() => {
                return Err(CopyError::OfAnother {
                    path: path.to_owned(),
                    url: found.to_owned(),
                });
            }
            None if !is_empty(path).map_err(failed)? => return Err(CopyError::NotOurs { path: path.to_owned() }),
            _ => {}
        }
        let lock = fs::File::create(path.join(LOCK_FILE)).map_err(failed)?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(fs::TryLockError::WouldBlock) => return Err(CopyError::InUse { path: path.to_owned() }),
            Err(fs::TryLockError::Error(source)) => return Err(failed(source)),
        }
        // Sources may be private.
        fs::set_permissions(path, fs::Permissions::from_mode(0o700)).map_err(failed)?;
        fs::write(&mark, format!("{url}\n")).map_err(failed)?;
        let copy = Self {
            path: path.to_owned(),
            _lock: lock,
        };
        copy.clear_leftovers();
        Ok(copy)
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Whether a repository was begun in it.
    pub(super) fn is_begun(&self) -> bool {
        self.path.join("HEAD").exists()
    }

    /// Removes locks and half-written packs. Nobody else works in the copy, so whoever left them is gone.
    pub(super) fn clear_leftovers(&self) {
        clear(&self.path, 0);
    }

    /// Removes the repository, for one that is fetched anew.
    pub(super) fn empty(&self) -> io::Result<()> {
        for entry in fs::read_dir(&self.path)? {
            let entry = entry?;
            if [LOCK_FILE, MARK_FILE].iter().any(|name| entry.file_name() == *name) {
                continue;
            }
            if entry.file_type()?.is_dir() {
                fs::remove_dir_all(entry.path())?;
            } else {
                fs::remove_file(entry.path())?;
            }
        }
        Ok(())
    }
}

fn is_empty(path: &Path) -> io::Result<bool> {
    for entry in fs::read_dir(path)? {
        if entry?.file_name() != LOCK_FILE {
            return Ok(false);
        }
    }
    Ok(true)
}

fn clear(folder: &Path, depth: usize) {
    // What cannot be looked at is only in the way, and Git will say so.
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    for entry in entries {
        let (path, name) = (entry.path(), entry.file_name().to_string_lossy().into_owned());
        let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
        let removed = if is_folder && (name.starts_with("tmp_objdir") || name.starts_with("incoming-")) {
            fs::remove_dir_all(&path).is_ok()
        } else if is_folder {
            if depth < COPY_DEPTH_MAX {
                clear(&path, depth + 1);
            }
            false
        } else if (name.ends_with(".lock") && name != LOCK_FILE) || name.starts_with("tmp_") {
            fs::remove_file(&path).is_ok()
        } else {
            false
        };
        if removed {
            tracing::info!(object = %path.display(), "Removed what a killed process left.");
        }
    }
}
