//! One file: bytes go in, its documents and what is wrong with them come out.

use std::sync::Arc;

use super::charts::LFS_POINTER;
use super::document::{self, Broken, Folder, Item};
use crate::access::ACCESS_FOLDER;
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
    let refuse = |reason: &str, message: String, line: u32, hint: &str| {
        ReadFile::unreadable(Finding::error(reason, message).at(&**path, line).hint(hint))
    };
    if file.bytes.len() > FILE_BYTES_MAX {
        return too_large(path, file.bytes.len() as u64);
    }
    if file.bytes.starts_with(LFS_POINTER) {
        let message = "the file is a Git LFS pointer, and its content is not in this repository";
        let finding = Finding::error("LfsPointer", message)
            .at(&**path, 1)
            .hint("commit manifests as ordinary files");
        return ReadFile::unreadable(finding);
    }
    let text = match yaml::decode(&file.bytes) {
        Ok(text) => text,
        Err(error) => {
            let hint = "save it as UTF-8; what is no manifest can be left out with a .flotillaignore";
            return refuse("NotText", error.message, error.line, hint);
        }
    };
    let documents = match yaml::read(&text) {
        Ok(documents) => documents,
        Err(error) => {
            if let Some(line) = conflict(&text) {
                let message = "a merge was committed with its conflict".to_owned();
                let hint = "keep one of the two sides, and remove the lines <<<<<<<, ======= and >>>>>>>";
                return refuse("NotYaml", message, line, hint);
            }
            let message = format!("{} (column {})", error.message, error.column);
            return refuse("NotYaml", message, error.line, remedy(&text, &error));
        }
    };
    let mut read = ReadFile::default();
    let folder = folder_of(path);
    for document in documents {
        let reading = document::read(path, &text, document, folder);
        read.items.extend(reading.items);
        read.findings.extend(reading.findings);
        read.broken.extend(reading.broken);
    }
    if folder != Folder::Any {
        refuse_what_declares_nothing(&mut read);
    }
    read
}

/// By the folders that `flotilla init` makes.
fn folder_of(path: &str) -> Folder {
    let folders = [
        "clusters/",
        "subscriptions/",
        "localizations/",
        "globalizations/",
        "policies/",
    ];
    if path.starts_with(ACCESS_FOLDER) {
        Folder::Access
    } else if path == "fleet.yaml" || folders.iter().any(|folder| path.starts_with(folder)) {
        Folder::Declarations
    } else {
        Folder::Any
    }
}

/// A declaration that lost its kind would be taken back without a word, and with it what it holds or gates.
fn refuse_what_declares_nothing(read: &mut ReadFile) {
    let (findings, broken) = (&mut read.findings, &mut read.broken);
    for item in &read.items {
        let Item::Neither(finding) = item else { continue };
        if finding.reason != "NotAnObject" {
            continue;
        }
        let error = Finding {
            hint: "a declaration begins with apiVersion and kind; leave out what is none with a .flotillaignore"
                .to_owned(),
            ..(**finding).clone()
        };
        findings.push(error.clone());
        let (key, target) = (None, None);
        broken.push(Broken { key, target, error });
    }
}

/// The line of the first mark that Git leaves where two sides could not be merged.
fn conflict(text: &str) -> Option<u32> {
    let at = text.lines().position(|line| line.starts_with("<<<<<<< "))?;
    u32::try_from(at + 1).ok()
}

/// What to do about text that is no YAML, by what people get wrong most.
fn remedy(text: &str, error: &yaml::YamlError) -> &'static str {
    let line = text
        .lines()
        .nth(error.line.saturating_sub(1) as usize)
        .unwrap_or_default();
    if line.contains("{{") {
        return "a template is no manifest: render it in CI and commit the result, or leave it out with a .flotillaignore";
    }
    if error.message.contains("tab") {
        return "indent with blanks";
    }
    if error.message.contains("mapping values are not allowed") {
        return "put text with a colon and a blank in quotes";
    }
    if error.message.contains("stands twice") {
        return "keep one of the two";
    }
    let names_itself = |field: &str| text.lines().any(|line| line.starts_with(field));
    if names_itself("apiVersion:") && names_itself("kind:") {
        return "correct it here or in the line above";
    }
    "correct it here or in the line above; what is no manifest can be left out with a .flotillaignore"
}

/// A file that was left unread for its size in bytes.
pub(super) fn too_large(path: &Arc<str>, bytes: u64) -> ReadFile {
    let message = format!("the file has {bytes} bytes, and at most {FILE_BYTES_MAX} are read");
    let finding = Finding::error("FileTooLarge", message)
        .at(&**path, 0)
        .hint("divide it into several files; what is no manifest can be left out with a .flotillaignore");
    ReadFile::unreadable(finding)
}
