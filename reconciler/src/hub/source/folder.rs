//! Folders as read, shared between revisions that have them unchanged.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use gix::ObjectId;
use gix::bstr::{BStr, BString, ByteSlice};
use gix::objs::tree::EntryKind;
use render::limits::FILE_BYTES_MAX;
use render::tree::{SourceEntry, SourceFile};

use crate::hub::repository::{RepositoryError, tree_entries, verified};
use crate::limits::{TREE_BYTES_MAX, TREE_DEPTH_MAX, TREE_FILES_MAX};

/// Contents by blob id, so that a file that moved is not read again.
pub(super) type Blobs = HashMap<ObjectId, SourceEntry>;

/// One folder of a tree, with all that is below it.
#[derive(Debug)]
pub(super) struct Folder {
    pub(super) id: ObjectId,
    nodes: Vec<Node>,
    folders: BTreeMap<BString, Arc<Folder>>,
    /// Files below, and their bytes.
    files: usize,
    bytes: u64,
}

#[derive(Debug)]
enum Node {
    /// Whole path and what is there.
    Entry(Arc<str>, SourceEntry),
    Folder(Arc<Folder>),
}

/// Reads folders of one commit.
pub(super) struct FolderReader<'a> {
    pub(super) repo: &'a gix::Repository,
    pub(super) blobs: &'a mut Blobs,
    pub(super) from: ObjectId,
    files: usize,
    bytes: u64,
}

impl<'a> FolderReader<'a> {
    pub(super) fn new(repo: &'a gix::Repository, blobs: &'a mut Blobs, from: ObjectId) -> Self {
        Self {
            repo,
            blobs,
            from,
            files: 0,
            bytes: 0,
        }
    }

    /// Reads the folder `id` whose path is `prefix` (empty, or ending with `/`). `old` is the folder that
    /// had this path before; whatever is unchanged in it is taken from there.
    pub(super) fn folder(
        &mut self,
        id: ObjectId,
        prefix: &BStr,
        old: Option<&Arc<Folder>>,
    ) -> Result<Arc<Folder>, RepositoryError> {
        if let Some(old) = old.filter(|old| old.id == id) {
            self.count(old.files, old.bytes)?;
            return Ok(old.clone());
        }
        if prefix.find_iter("/").count() > TREE_DEPTH_MAX {
            return Err(self.too_much("levels", TREE_DEPTH_MAX as u64));
        }
        let (files, bytes) = (self.files, self.bytes);
        let mut folder = Folder {
            id,
            nodes: Vec::new(),
            folders: BTreeMap::new(),
            files: 0,
            bytes: 0,
        };
        for entry in tree_entries(self.repo, id)? {
            let mut path = BString::from(prefix.to_vec());
            path.extend_from_slice(&entry.filename);
            if entry.mode.is_tree() {
                path.push(b'/');
                let below = old.and_then(|old| old.folders.get(&entry.filename));
                let below = self.folder(entry.oid, path.as_ref(), below)?;
                folder.folders.insert(entry.filename, below.clone());
                folder.nodes.push(Node::Folder(below));
            } else {
                let content = self.entry(&path, entry.mode.kind(), entry.oid)?;
                folder.nodes.push(Node::Entry(escaped(path.as_ref()).into(), content));
            }
        }
        (folder.files, folder.bytes) = (self.files - files, self.bytes - bytes);
        Ok(Arc::new(folder))
    }

    /// Counts against the limits, also what an older revision has as well: a hub that starts anew reads all
    /// of it, and must not find too much what this one took bit by bit.
    fn count(&mut self, files: usize, bytes: u64) -> Result<(), RepositoryError> {
        self.files += files;
        self.bytes += bytes;
        if self.files > TREE_FILES_MAX {
            return Err(self.too_much("files", TREE_FILES_MAX as u64));
        }
        if self.bytes > TREE_BYTES_MAX {
            return Err(self.too_much("bytes", TREE_BYTES_MAX));
        }
        Ok(())
    }

    fn entry(&mut self, path: &BString, kind: EntryKind, id: ObjectId) -> Result<SourceEntry, RepositoryError> {
        self.count(1, 0)?;
        if escaped(path.as_ref()).as_bytes() != path.as_bytes() {
            return Ok(SourceEntry::BadName);
        }
        match kind {
            EntryKind::Commit | EntryKind::Tree => Ok(SourceEntry::Submodule),
            EntryKind::Link => match self.blob(id)? {
                SourceEntry::File(file) => Ok(SourceEntry::Symlink(String::from_utf8_lossy(&file.bytes).into())),
                other => Ok(other),
            },
            EntryKind::Blob | EntryKind::BlobExecutable => self.blob(id),
        }
    }

    /// A blob's content, or its size alone where that is above the limit.
    pub(super) fn blob(&mut self, id: ObjectId) -> Result<SourceEntry, RepositoryError> {
        if let Some(known) = self.blobs.get(&id).cloned() {
            if let SourceEntry::File(file) = &known {
                self.count(0, file.bytes.len() as u64)?;
            }
            return Ok(known);
        }
        let size = self
            .repo
            .find_header(id)
            .map_err(|source| RepositoryError::Object {
                id: id.to_string(),
                source,
            })?
            .size();
        if size > FILE_BYTES_MAX as u64 {
            return Ok(SourceEntry::TooLarge(size));
        }
        self.count(0, size)?;
        let object = verified(self.repo, id, gix::objs::Kind::Blob)?;
        let content = SourceEntry::File(SourceFile {
            id: id.to_string().into(),
            bytes: object.data.as_slice().into(),
        });
        self.blobs.insert(id, content.clone());
        Ok(content)
    }

    fn too_much(&self, what: &'static str, max: u64) -> RepositoryError {
        RepositoryError::TooMuch {
            from: self.from.to_string(),
            what,
            max,
        }
    }
}

impl Folder {
    /// All files below, by path.
    pub(super) fn files(&self) -> Result<BTreeMap<Arc<str>, SourceEntry>, RepositoryError> {
        let mut list = Vec::new();
        self.list(&mut list);
        let (bad, good): (Vec<_>, Vec<_>) = list
            .into_iter()
            .partition(|(_, entry)| matches!(entry, SourceEntry::BadName));
        let count = good.len();
        // Git's order is that of whole paths, so this builds the map from sorted input, which is fast.
        let mut files: BTreeMap<_, _> = good.into_iter().collect();
        if files.len() != count {
            return Err(RepositoryError::Corrupt {
                id: self.id.to_string(),
                reason: "a folder has two entries of one name",
            });
        }
        for (path, entry) in bad {
            insert_beside(&mut files, path, entry);
        }
        Ok(files)
    }

    fn list(&self, into: &mut Vec<(Arc<str>, SourceEntry)>) {
        for node in &self.nodes {
            match node {
                Node::Entry(path, entry) => into.push((path.clone(), entry.clone())),
                Node::Folder(folder) => folder.list(into),
            }
        }
    }
}

/// An escaped name may be another file's true name; neither may hide the other.
fn insert_beside(files: &mut BTreeMap<Arc<str>, SourceEntry>, path: Arc<str>, entry: SourceEntry) {
    let mut free = path;
    while files.contains_key(&free) {
        free = format!("{free}%").into();
    }
    files.insert(free, entry);
}

/// The path as text: bytes that are not UTF-8, and parts that would lead elsewhere, are percent-escaped.
/// Equal to the path exactly where there is nothing wrong with it.
fn escaped(path: &BStr) -> String {
    let parts: Vec<String> = path
        .split_str("/")
        .map(|part| {
            if matches!(part, b"" | b"." | b"..") || part.eq_ignore_ascii_case(b".git") {
                part.iter().map(|byte| format!("%{byte:02X}")).collect()
            } else {
                escaped_part(part)
            }
        })
        .collect();
    parts.join("/")
}

fn escaped_part(part: &[u8]) -> String {
    let mut text = String::with_capacity(part.len());
    for chunk in part.utf8_chunks() {
        text.push_str(chunk.valid());
        text.extend(chunk.invalid().iter().map(|byte| format!("%{byte:02X}")));
    }
    text
}
