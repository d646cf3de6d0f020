//! What a journal asks of its disk, one small step at a time, so that a test can cut the power between two.

use std::any::Any;
use std::fmt;
use std::fs;
use std::io::{self, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

/// The disk of a journal. What was written or moved lasts over a loss of power only once it was synced.
pub trait Files: fmt::Debug + Send + Sync {
    /// Makes a folder, with those above it, that nobody else on this machine can look into: contents may hold
    /// Secrets. One that an older version left open is closed.
    fn make_private(&self, folder: &Path) -> io::Result<()>;
    /// Locks a file until the answer is dropped.
    fn lock(&self, path: &Path) -> Result<Box<dyn Any + Send + Sync>, fs::TryLockError>;
    /// Reads a whole file.
    fn read(&self, path: &Path) -> io::Result<Vec<u8>>;
    /// The files of a folder.
    fn list(&self, folder: &Path) -> io::Result<Vec<PathBuf>>;
    /// Writes a whole file, in place of the one that was there.
    fn write(&self, path: &Path, bytes: &[u8]) -> io::Result<()>;
    /// Makes what a file holds last.
    fn sync_file(&self, path: &Path) -> io::Result<()>;
    /// Moves a file to a name in the same folder, in place of the one that was there.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;
    /// Removes a file.
    fn remove(&self, path: &Path) -> io::Result<()>;
    /// Makes the names in a folder last: what was made, moved and removed there.
    fn sync_folder(&self, folder: &Path) -> io::Result<()>;
}

/// The disk of this machine.
#[derive(Clone, Copy, Debug)]
pub(super) struct LocalFiles;

impl Files for LocalFiles {
    fn make_private(&self, folder: &Path) -> io::Result<()> {
        fs::create_dir_all(folder)?;
        fs::set_permissions(folder, fs::Permissions::from_mode(0o700))
    }

    fn lock(&self, path: &Path) -> Result<Box<dyn Any + Send + Sync>, fs::TryLockError> {
        let file = fs::File::create(path).map_err(fs::TryLockError::Error)?;
        file.try_lock()?;
        Ok(Box::new(file))
    }

    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        fs::read(path)
    }

    fn list(&self, folder: &Path) -> io::Result<Vec<PathBuf>> {
        fs::read_dir(folder)?.map(|entry| Ok(entry?.path())).collect()
    }

    fn write(&self, path: &Path, bytes: &[u8]) -> io::Result<()> {
        fs::File::create(path)?.write_all(bytes)
    }

    fn sync_file(&self, path: &Path) -> io::Result<()> {
        fs::File::open(path)?.sync_data()
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        fs::rename(from, to)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        fs::remove_file(path)
    }

    fn sync_folder(&self, folder: &Path) -> io::Result<()> {
        fs::File::open(folder)?.sync_all()
    }
}
