//! What a shell hands in: the files of one revision, and what broken ones said before.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use crate::digest::Digest;
use crate::name::Revision;

/// The files of one revision, sorted by path.
#[derive(Clone, Debug)]
pub struct SourceTree {
    /// The commit.
    pub revision: Revision,
    /// Path from the root (`/` between parts, never leading, never `..`) → entry. May be empty.
    pub files: BTreeMap<Arc<str>, SourceEntry>,
}

/// One entry of a tree.
#[derive(Clone, Debug)]
pub enum SourceEntry {
    /// A file's content.
    File(SourceFile),
    /// A symlink with its target as written; it is never followed by the shell.
    Symlink(Arc<str>),
    /// A submodule; its content is not part of this repository.
    Submodule,
    /// A file whose size in bytes is above [`crate::limits::FILE_BYTES_MAX`], left unread.
    TooLarge(u64),
    /// An entry whose name cannot be a path: not UTF-8, or `.`, `..` or `.git` as Git itself refuses them.
    /// It is left unread; its key is the name with each byte at fault written as `%` and two hex digits.
    BadName,
}

/// A file's content, shared between revisions that have it unchanged.
#[derive(Clone)]
pub struct SourceFile {
    /// Names the content, as Git's blob id does: equal ids, equal bytes.
    pub id: Arc<str>,
    /// The bytes.
    pub bytes: Arc<[u8]>,
}

/// Without the bytes, which may be a Secret.
impl fmt::Debug for SourceFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SourceFile")
            .field("id", &self.id)
            .finish_non_exhaustive()
    }
}

impl SourceFile {
    /// A file whose id is made from its bytes; for tests and for sources without blob ids.
    pub fn from_bytes(bytes: impl Into<Arc<[u8]>>) -> Self {
        let bytes = bytes.into();
        Self {
            id: Digest::of_bytes(&bytes).to_string().into(),
            bytes,
        }
    }
}

impl SourceTree {
    /// A tree of plain files, for tests and benches.
    pub fn from_files<P, B>(revision: Revision, files: impl IntoIterator<Item = (P, B)>) -> Self
    where
        P: Into<Arc<str>>,
        B: Into<Vec<u8>>,
    {
        let entry = |bytes: B| SourceEntry::File(SourceFile::from_bytes(bytes.into()));
        Self {
            revision,
            files: files
                .into_iter()
                .map(|(path, bytes)| (path.into(), entry(bytes)))
                .collect(),
        }
    }
}

/// What files said before, looked up by the shell in the history for the paths that
/// [`crate::Fleet::unreadable`] named. Empty on a first load.
#[derive(Clone, Debug, Default)]
pub struct Previous {
    /// Path of an unreadable file → its newest content that parsed. A path whose whole history was
    /// searched without one is in `new_files`.
    pub last_good: BTreeMap<Arc<str>, SourceFile>,
    /// Unreadable files that never parsed.
    pub new_files: Vec<Arc<str>>,
    /// Files that existed just before an unreadable file of `new_files` was added and are gone now: the
    /// broken file may be where their objects moved, so they are kept (`RemovalHeld`).
    pub vanished: BTreeMap<Arc<str>, SourceFile>,
}
