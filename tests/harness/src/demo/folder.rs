//! Where a demo lives: a folder of its own, temporary or named, that is told from anybody else's.
//!
//! ```text
//! <folder>/fleet.git   what is pushed to, and what the hub reads
//! <folder>/fleet       a clone to work in
//! <folder>/flotilla    this binary, by the name under which it is `flotilla`
//! <folder>/demo.log    what hub and agents log
//! <folder>/.demo       keys and journals
//! ```

use std::cell::Cell;
use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};

/// The folder of a demo.
pub(super) struct Folder {
    path: PathBuf,
    is_named: bool,
    temporary: Cell<Option<tempfile::TempDir>>,
    /// Locked as long as it is open.
    _lock: File,
}

/// A folder that the demo leaves alone.
#[derive(Debug, thiserror::Error)]
pub(super) enum Refusal {
    /// It may be anybody's.
    #[error("{} is not empty, and no demo made it", .0.display())]
    NotOurs(PathBuf),
    /// A demo runs in it.
    #[error("a demo runs in {} already", .0.display())]
    InUse(PathBuf),
    /// A demo ended before there was anything in it.
    #[error("the demo in {} was ended before its repository was there", .0.display())]
    HalfMade(PathBuf),
    /// It could not be read or made.
    #[error("failed to use the folder {}: {source}", path.display())]
    Unusable {
        /// Which.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
}

impl Refusal {
    /// What to do about it.
    pub(super) fn hint(&self) -> &'static str {
        match self {
            Self::NotOurs(_) => "name a new or an empty folder, or leave out --folder for a temporary one",
            Self::InUse(_) => "end that one with Ctrl-C, or name another folder",
            Self::HalfMade(_) => "remove that folder, and start again",
            Self::Unusable { .. } => "name a folder that you may write to",
        }
    }
}

impl Folder {
    /// Opens a named folder, or makes a temporary one.
    pub(super) fn open(named: Option<&Path>) -> Result<Self, Refusal> {
        let temporary = match named {
            Some(_) => None,
            None => Some(make_temporary()?),
        };
        let path = match (named, &temporary) {
            (Some(named), _) => named.to_owned(),
            (None, temporary) => temporary
                .as_ref()
                .map(|folder| folder.path().to_owned())
                .unwrap_or_default(),
        };
        let unusable = |source| Refusal::Unusable {
            path: path.clone(),
            source,
        };
        fs::create_dir_all(&path).map_err(unusable)?;
        // Everything that is printed holds wherever it is pasted.
        let path = path.canonicalize().map_err(unusable)?;
        let own = path.join(".demo");
        if !own.is_dir() && fs::read_dir(&path).map_err(unusable)?.next().is_some() {
            return Err(Refusal::NotOurs(path));
        }
        let is_new = !own.is_dir();
        fs::create_dir_all(&own).map_err(unusable)?;
        let lock = File::create(own.join("lock")).map_err(unusable)?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(Refusal::InUse(path)),
            Err(TryLockError::Error(source)) => return Err(unusable(source)),
        }
        let folder = Self {
            is_named: named.is_some(),
            temporary: Cell::new(temporary),
            path,
            _lock: lock,
        };
        if !is_new && !folder.is_ready() {
            return Err(Refusal::HalfMade(folder.path));
        }
        Ok(folder)
    }

    /// Its path, absolute.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// The bare repository.
    pub(super) fn bare(&self) -> PathBuf {
        self.path.join("fleet.git")
    }

    /// The clone to work in.
    pub(super) fn work(&self) -> PathBuf {
        self.path.join("fleet")
    }

    /// The binary by its other name.
    pub(super) fn flotilla(&self) -> PathBuf {
        self.path.join("flotilla")
    }

    /// The log.
    pub(super) fn log(&self) -> PathBuf {
        self.path.join("demo.log")
    }

    /// A file or folder of the demo's own.
    pub(super) fn own(&self, name: &str) -> PathBuf {
        self.path.join(".demo").join(name)
    }

    /// Whether a repository was made in it before.
    pub(super) fn is_ready(&self) -> bool {
        self.own("ready").exists()
    }

    /// From here on it can be gone on with.
    pub(super) fn set_ready(&self) -> io::Result<()> {
        fs::write(self.own("ready"), "")
    }

    /// Whether a person named it.
    pub(super) fn is_named(&self) -> bool {
        self.is_named
    }

    /// Leaves a temporary folder where it is.
    pub(super) fn keep(&self) {
        if let Some(temporary) = self.temporary.take() {
            let _path = temporary.keep();
        }
    }

    /// Whether it is there when the demo has ended.
    pub(super) fn stays(&self) -> bool {
        let temporary = self.temporary.take();
        let stays = temporary.is_none();
        self.temporary.set(temporary);
        stays
    }
}

fn make_temporary() -> Result<tempfile::TempDir, Refusal> {
    let made = tempfile::Builder::new().prefix("flotilla-demo-").tempdir();
    made.map_err(|source| Refusal::Unusable {
        path: std::env::temp_dir(),
        source,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn refusal(folder: &Path) -> String {
        match Folder::open(Some(folder)) {
            Ok(_) => panic!("{} was taken", folder.display()),
            Err(refusal) => refusal.to_string(),
        }
    }

    #[test]
    fn a_folder_with_anything_of_somebody_else_is_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("notes"), "mine").unwrap();
        assert!(refusal(folder.path()).contains("no demo made it"));
        let left: Vec<_> = fs::read_dir(folder.path()).unwrap().collect();
        assert_eq!(left.len(), 1, "nothing was put into it");
    }

    #[test]
    fn a_folder_is_used_by_one_demo_at_a_time_and_again_later() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("fleet");
        let first = Folder::open(Some(&path)).unwrap();
        assert!(refusal(&path).contains("runs in"));
        first.set_ready().unwrap();
        drop(first);
        assert!(Folder::open(Some(&path)).unwrap().is_ready());
    }

    #[test]
    fn a_folder_whose_demo_never_began_is_told_apart() {
        let folder = tempfile::tempdir().unwrap();
        drop(Folder::open(Some(folder.path())).unwrap());
        assert!(refusal(folder.path()).contains("before its repository was there"));
    }

    #[test]
    fn a_temporary_folder_goes_and_a_kept_one_stays() {
        let folder = Folder::open(None).unwrap();
        let path = folder.path().to_owned();
        assert!(!folder.stays());
        drop(folder);
        assert!(!path.exists());
        let folder = Folder::open(None).unwrap();
        folder.keep();
        assert!(folder.stays());
        let path = folder.path().to_owned();
        drop(folder);
        assert!(path.exists());
        fs::remove_dir_all(path).unwrap();
    }
}
