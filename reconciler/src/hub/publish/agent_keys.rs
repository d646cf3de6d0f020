//! Keys of agents: one branch on source in which the files of all clusters that wait for it get or lose a key, for a
//! person to merge.
//!
//! However many agents ask, and however often, there is one branch. What a person put on it is left alone.

use std::collections::BTreeMap;

use gix::ObjectId;
use gix::objs::Kind;
use gix::objs::tree::EntryKind;
use render::Revision;

use super::content::{entry, write_tree};
use super::{CommitId, KeyNote, Proposal, StateError, StateRepository};
use crate::hub::repository::{RepositoryError, commit, object_id, tree_entries, verified};

/// The trailer by which a commit of the hub's own is known.
const TRAILER: &str = "Replaces-Agent-Keys: true";

/// What is there of proposals of keys.
#[derive(Clone, Debug, Default)]
pub struct KeysFound {
    /// The branch.
    pub branch: Option<Proposal>,
    /// Whether a person put a commit on it: then it is left alone.
    pub is_persons: bool,
    /// What is remembered of it.
    pub note: KeyNote,
    noted: Option<CommitId>,
}

impl StateRepository {
    /// What is there. Another hub says what it does in two steps, so that a branch which moves meanwhile is looked at again.
    pub fn keys_found(&self) -> Result<KeysFound, StateError> {
        let name = self.keys_branch();
        let branch = || self.repository.reference(name).map_err(StateError::Unreadable);
        let before = branch()?;
        let noted = self.repository.reference(self.keys_asked());
        let noted = noted.map_err(StateError::Unreadable)?.map(CommitId);
        let note = match noted {
            None => KeyNote::default(),
            Some(commit) => KeyNote::parse(&self.message_of(&Proposal {
                branch: self.keys_asked().to_owned(),
                commit,
            })?),
        };
        let found = branch()?;
        if found != before {
            return Err(StateError::Moved {
                name: name.to_owned(),
                found: found.map(CommitId),
            });
        }
        let branch = found.map(|commit| Proposal {
            branch: name.to_owned(),
            commit: CommitId(commit),
        });
        let is_own = branch.as_ref().map(|found| self.has_trailer(found, TRAILER));
        Ok(KeysFound {
            is_persons: is_own.transpose()? == Some(false),
            branch,
            note,
            noted,
        })
    }

    /// Remembers something else, where it is other than what was found.
    pub fn note_keys(&self, found: &mut KeysFound, note: &KeyNote, seconds: i64) -> Result<(), StateError> {
        if found.note == *note {
            return Ok(());
        }
        let tree = write_tree(&self.repository.local(), Vec::new())?;
        let commit = self.commit_with(None, tree, note.to_text(), seconds)?;
        let at = found.noted.map(|commit| Proposal {
            branch: self.keys_asked().to_owned(),
            commit,
        });
        self.point(self.keys_asked(), at.as_ref(), commit, seconds)?;
        (found.note, found.noted) = (note.clone(), Some(commit));
        Ok(())
    }

    /// The ref that remembers what was proposed.
    pub fn keys_asked(&self) -> &str {
        &self.refs.keys_asked
    }

    /// Makes the branch one commit on `source` with these files, or none where there are none, and says its short name.
    /// A branch that says the same stays where it is. Doing it twice is doing it once.
    pub fn propose_keys(
        &self,
        source: &Revision,
        files: &BTreeMap<String, String>,
        message: &str,
        (found, seconds): (&KeysFound, i64),
    ) -> Result<Option<String>, StateError> {
        let branch = self.keys_branch();
        let short = branch.trim_start_matches("refs/heads/").to_owned();
        if found.is_persons {
            return Ok((!files.is_empty()).then_some(short));
        }
        let found = &found.branch;
        if files.is_empty() {
            return match found.as_ref().map_or(Ok(()), |found| self.withdraw(found)) {
                // A person who pushes to it at this moment has made it theirs.
                Ok(()) | Err(StateError::Moved { .. }) => Ok(None),
                Err(error) => Err(error),
            };
        }
        let says_so = found.as_ref().map(|found| self.says_these(found, files)).transpose()?;
        if says_so != Some(true) {
            let unknown = || StateError::UnknownRevision {
                revision: source.clone(),
            };
            let parent = object_id(source).ok_or_else(unknown)?;
            let message = format!("{message}\n{TRAILER}\n");
            let commit = self.commit_on(parent, self.with_files(parent, files)?, message, seconds)?;
            self.point(branch, found.as_ref(), commit, seconds)?;
        }
        Ok(Some(short))
    }

    /// The branch that replaces keys of agents, in full.
    pub fn keys_branch(&self) -> &str {
        &self.refs.keys
    }

    /// The texts of files in a commit of source; what is no file is absent.
    pub fn source_texts<'a>(
        &self,
        source: &Revision,
        paths: impl IntoIterator<Item = &'a str>,
    ) -> Result<BTreeMap<String, String>, StateError> {
        let unknown = || StateError::UnknownRevision {
            revision: source.clone(),
        };
        let at = object_id(source).ok_or_else(unknown)?;
        let read = |path: &str| self.repository.read(|repo| blob(repo, commit(repo, at)?.tree, path));
        let mut texts = BTreeMap::new();
        for path in paths {
            let bytes = read(path).map_err(StateError::Unreadable)?;
            if let Some(text) = bytes.and_then(|bytes| String::from_utf8(bytes).ok()) {
                texts.insert(path.to_owned(), text);
            }
        }
        Ok(texts)
    }

    /// Whether a branch brings exactly these files to the commit that it stands on.
    fn says_these(&self, found: &Proposal, files: &BTreeMap<String, String>) -> Result<bool, StateError> {
        let tip = self.repository.read(|repo| commit(repo, found.commit.0));
        let tip = tip.map_err(StateError::Unreadable)?;
        let [parent] = tip.parents.as_slice() else {
            return Ok(false);
        };
        Ok(self.with_files(*parent, files)? == tip.tree)
    }

    /// The tree of a commit with other texts in these files.
    fn with_files(&self, at: ObjectId, files: &BTreeMap<String, String>) -> Result<ObjectId, StateError> {
        let root = self.repository.read(|repo| commit(repo, at).map(|commit| commit.tree));
        let mut root = root.map_err(StateError::Unreadable)?;
        for (path, text) in files {
            let parts: Vec<_> = path.split('/').collect();
            root = self.with_file(root, &parts, text)?;
        }
        Ok(root)
    }

    fn with_file(&self, tree: ObjectId, path: &[&str], text: &str) -> Result<ObjectId, StateError> {
        let entries = self.repository.read(|repo| tree_entries(repo, tree));
        let mut entries = entries.map_err(StateError::Unreadable)?;
        let repo = self.repository.local();
        let (name, made) = match path {
            [] => return Ok(tree),
            [name] => {
                let blob = repo.write_blob(text).map_err(StateError::Write)?.detach();
                (*name, entry(*name, EntryKind::Blob, blob))
            }
            [name, below @ ..] => {
                let folder = entries
                    .iter()
                    .find(|entry| entry.filename == *name && entry.mode.is_tree());
                // What is edited was read from there; a folder that is gone meanwhile is made again.
                let folder = match folder {
                    Some(folder) => folder.oid,
                    None => write_tree(&repo, Vec::new())?,
                };
                (
                    *name,
                    entry(*name, EntryKind::Tree, self.with_file(folder, below, text)?),
                )
            }
        };
        entries.retain(|entry| entry.filename != name);
        entries.push(made);
        write_tree(&repo, entries)
    }
}

/// The bytes of a file below a tree; `None` where there is none.
fn blob(repo: &gix::Repository, root: ObjectId, path: &str) -> Result<Option<Vec<u8>>, RepositoryError> {
    let mut at = root;
    let mut parts = path.split('/').peekable();
    while let Some(part) = parts.next() {
        let entries = tree_entries(repo, at)?;
        let Some(found) = entries.into_iter().find(|entry| entry.filename == part) else {
            return Ok(None);
        };
        match (parts.peek(), found.mode.is_tree(), found.mode.is_blob()) {
            (Some(_), true, _) => at = found.oid,
            (None, _, true) => return Ok(Some(verified(repo, found.oid, Kind::Blob)?.detach().data)),
            _ => return Ok(None),
        }
    }
    Ok(None)
}
