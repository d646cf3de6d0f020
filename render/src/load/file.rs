//! One file: bytes go in, its documents and what is wrong with them come out.

use std::sync::Arc;

use super::document::{self, Broken, Item};
use crate::finding::Finding;
use crate::limits::FILE_BYTES_MAX;
use crate::tree::SourceFile;
use crate::yaml;

/// What one file says.
#[derive(Clone, Debug, Default)]
pub(super) struct ReadFile {
    /// In the order of its documents.
    pub(super) items: Vec<Item>,
    /// Of this file alone.
    pub(super) findings: Vec<Finding>,
    /// Why nothing of it could be read; it stands in `findings` too.
    pub(super) unreadable: Option<Finding>,
    /// Declarations with errors, whose last good form is wanted.
    pub(super) broken: Vec<Broken>,
}

impl ReadFile {
    /// A file of which nothing could be read.
    pub(super) fn unreadable(finding: Finding) -> Self {
        Self {
            findings: vec![finding.clone()],
            unreadable: Some(finding),
            ..Self::default()
        }
    }

    /// Whether what it said before is wanted.
    pub(super) fn wants_last_good(&self) -> bool {
        self.unreadable.is_some() || !self.broken.is_empty()
    }
}

/// Whether a path names a manifest by its ending.
pub(super) fn is_manifest(path: &str) -> bool {
    [".yaml", ".yml", ".json"].iter().any(|ending| path.ends_with(ending))
}

/// Reads a file. Never fails: a file that cannot be read says so in its findings.
pub(super) fn read(path: &Arc<str>, file: &SourceFile) -> ReadFile {
    let refuse = |reason: &str, message: String, line: u32| {
        let finding = Finding::error(reason, message)
            .at(&**path, line)
            .hint("what is no manifest can be left out with a .flotillaignore");
        ReadFile::unreadable(finding)
    };
    if file.bytes.len() > FILE_BYTES_MAX {
        return too_large(path, file.bytes.len() as u64);
    }
    if file.bytes.starts_with(b"version https://git-lfs.github.com/spec/") {
        let message = "the file is a Git LFS pointer, and its content is not in this repository";
        let finding = Finding::error("LfsPointer", message)
            .at(&**path, 1)
            .hint("commit manifests as ordinary files");
        return ReadFile::unreadable(finding);
    }
    let text = match yaml::decode(&file.bytes) {
        Ok(text) => text,
        Err(error) => return refuse("NotText", error.message, error.line),
    };
    let documents = match yaml::read(&text) {
        Ok(documents) => documents,
        Err(error) => {
            let message = format!("{} (column {})", error.message, error.column);
            return refuse("NotYaml", message, error.line);
        }
    };
    let mut read = ReadFile::default();
    for document in documents {
        let reading = document::read(path, &text, document);
        read.items.extend(reading.items);
        read.findings.extend(reading.findings);
        read.broken.extend(reading.broken);
    }
    read
}

/// A file that was left unread for its size in bytes.
pub(super) fn too_large(path: &Arc<str>, bytes: u64) -> ReadFile {
    let message = format!("the file has {bytes} bytes, and at most {FILE_BYTES_MAX} are read");
    ReadFile::unreadable(Finding::error("FileTooLarge", message).at(&**path, 0))
}
