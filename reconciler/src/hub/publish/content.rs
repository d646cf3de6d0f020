//! Contents: written as a folder of files, read back by digest and never believed unseen.

use gix::ObjectId;
use gix::objs::tree::{Entry, EntryKind};
use gix::objs::{Kind, Tree};
use render::describe::Description;
use render::{Digest, layout};

use super::{CommitId, StateError, StateRepository};
use crate::hub::repository::{RepositoryError, tree_entries, verified};
use crate::limits::{PROVEN_MAX, TREE_DEPTH_MAX};

impl StateRepository {
    /// The content with a digest, as it stands in a commit. Its files are checked against the digest.
    pub fn content(&self, at: CommitId, digest: &Digest) -> Result<Description, StateError> {
        let index = self.index(at)?;
        let folder = index.contents.get(digest).ok_or_else(|| StateError::ContentMissing {
            unit: format!("the commit {at}"),
            digest: *digest,
        })?;
        self.content_of(*folder, *digest)
    }

    /// Fails unless the files of a folder have the digest.
    pub(super) fn prove(&self, folder: ObjectId, digest: Digest) -> Result<(), StateError> {
        if self.is_proven(folder, digest) {
            return Ok(());
        }
        self.content_of(folder, digest).map(drop)
    }

    /// Writes a content's files and says their folder. That they read back to the same digest is a property
    /// of the layout; a debug build looks, a release build would double the time of a push by it.
    pub(super) fn write_content(&self, content: &Description, promised: Digest) -> Result<ObjectId, StateError> {
        if content.digest != promised {
            return Err(StateError::ContentDiffers {
                promised,
                found: content.digest,
            });
        }
        let repo = self.repository.local();
        let mut blobs = Vec::new();
        for (path, bytes) in layout::description_files(content) {
            blobs.push((path, repo.write_blob(bytes).map_err(StateError::Write)?.detach()));
        }
        let blobs: Vec<_> = blobs.iter().map(|(path, oid)| (path.as_str(), *oid)).collect();
        let folder = write_folder(&repo, &blobs)?;
        if cfg!(debug_assertions) {
            self.prove(folder, promised)?;
        }
        self.remember_proven(folder, promised);
        Ok(folder)
    }

    fn content_of(&self, folder: ObjectId, digest: Digest) -> Result<Description, StateError> {
        let content = self.described(folder)?;
        if content.digest != digest {
            return Err(StateError::ContentDiffers {
                promised: digest,
                found: content.digest,
            });
        }
        self.remember_proven(folder, digest);
        Ok(content)
    }

    /// The content that a folder's files are.
    pub(super) fn described(&self, folder: ObjectId) -> Result<Description, StateError> {
        let files = self
            .repository
            .read(|repo| files(repo, folder))
            .map_err(StateError::Unreadable)?;
        let files = files.iter().map(|(name, bytes)| (name.as_str(), bytes.as_slice()));
        layout::description_from_files(files).map_err(|source| StateError::ContentLayout {
            source: Box::new(source),
        })
    }

    pub(super) fn is_proven(&self, folder: ObjectId, digest: Digest) -> bool {
        self.memory().proven.contains(&(folder, digest))
    }

    pub(super) fn remember_proven(&self, folder: ObjectId, digest: Digest) {
        let mut memory = self.memory();
        if memory.proven.len() >= PROVEN_MAX {
            memory.proven.clear();
        }
        memory.proven.insert((folder, digest));
    }
}

/// The files of a folder and of all below it, by path.
fn files(repo: &gix::Repository, folder: ObjectId) -> Result<Vec<(String, Vec<u8>)>, RepositoryError> {
    let mut files = Vec::new();
    // No deeper than a chart's folder can be in the source, and two levels for where it is put.
    let mut open = vec![(folder, String::new(), TREE_DEPTH_MAX + 2)];
    while let Some((folder, prefix, levels)) = open.pop() {
        for entry in tree_entries(repo, folder)? {
            let path = format!("{prefix}{}", entry.filename);
            if !entry.mode.is_tree() {
                let blob = verified(repo, entry.oid, Kind::Blob)?;
                files.push((path, blob.detach().data));
            } else if levels > 0 {
                open.push((entry.oid, format!("{path}/"), levels - 1));
            }
        }
    }
    Ok(files)
}

/// Writes files by path, sorted, each once, as a folder with the folders below it.
fn write_folder(repo: &gix::Repository, files: &[(&str, ObjectId)]) -> Result<ObjectId, StateError> {
    let first = |path: &str| path.split('/').next().unwrap_or_default().to_owned();
    let mut entries = Vec::new();
    for below in files.chunk_by(|a, b| first(a.0) == first(b.0)) {
        let name = first(below[0].0);
        let inside: Vec<_> = below
            .iter()
            .filter_map(|(path, oid)| Some((path.strip_prefix(&name)?.strip_prefix('/')?, *oid)))
            .collect();
        if inside.is_empty() {
            entries.push(entry(name, EntryKind::Blob, below[0].1));
        } else {
            entries.push(entry(name, EntryKind::Tree, write_folder(repo, &inside)?));
        }
    }
    write_tree(repo, entries)
}

pub(super) fn entry(name: impl Into<String>, kind: EntryKind, oid: ObjectId) -> Entry {
    Entry {
        mode: kind.into(),
        filename: name.into().into(),
        oid,
    }
}

/// Writes a tree of entries in any order, each name once.
pub(super) fn write_tree(repo: &gix::Repository, mut entries: Vec<Entry>) -> Result<ObjectId, StateError> {
    entries.sort();
    let tree = Tree { entries };
    Ok(repo.write_object(&tree).map_err(StateError::Write)?.detach())
}
