//! What broken files said before they broke.

use std::collections::BTreeSet;
use std::sync::{Arc, PoisonError};

use gix::ObjectId;
use render::tree::{SourceEntry, SourceFile};
use render::{Previous, SourceTree};

use super::branch::{Source, SourceError, known};
use super::folder::FolderReader;
use crate::hub::repository::{RepositoryError, commit, first_parent, revision};
use crate::limits::HISTORY_COMMITS_MAX;

/// Says whether a file's content can be read by those who will ask for it.
pub type Parses<'a> = &'a dyn Fn(&str, &SourceFile) -> bool;

/// An unreadable file whose history is searched.
struct Pending {
    path: Arc<str>,
    /// The content seen last, known not to parse.
    seen: Option<ObjectId>,
}

/// How a step back in history answered for one file.
enum Answer {
    Good(SourceFile),
    /// The older commit does not have it, so the newer one added it.
    Added,
    StillBad,
}

#[derive(Default)]
struct Found {
    previous: Previous,
    /// Commits just before an unreadable file was added.
    before: BTreeSet<ObjectId>,
}

impl Source {
    /// Looks for the last good content of each path of `unreadable` along the first parents of `tree`, at
    /// most [`HISTORY_COMMITS_MAX`] commits. For files that never parsed it also gathers the files that
    /// existed just before them and are gone from `tree`.
    pub fn previous(
        &self,
        tree: &SourceTree,
        unreadable: &[Arc<str>],
        parses: Parses<'_>,
    ) -> Result<Previous, SourceError> {
        if unreadable.is_empty() {
            return Ok(Previous::default());
        }
        let from = known(&tree.revision)?;
        let found = self
            .repository
            .read(|repo| self.search(repo, from, tree, unreadable, parses))
            .map_err(SourceError::Unreadable)?;
        let mut previous = found.previous;
        for commit in found.before {
            let before = self.tree(&revision(commit))?;
            previous.vanished.extend(vanished(&before, tree));
        }
        Ok(previous)
    }

    fn search(
        &self,
        repo: &gix::Repository,
        from: ObjectId,
        tree: &SourceTree,
        unreadable: &[Arc<str>],
        parses: Parses<'_>,
    ) -> Result<Found, RepositoryError> {
        let mut found = Found::default();
        let mut pending = pending(tree, unreadable, &mut found.previous);
        let mut child = from;
        for _ in 0..HISTORY_COMMITS_MAX {
            if pending.is_empty() {
                break;
            }
            let Some(parent) = first_parent(repo, child)? else {
                break;
            };
            let root = commit(repo, parent)?.tree;
            let mut still = Vec::new();
            for mut file in pending {
                match self.step(repo, parent, root, &mut file, parses)? {
                    Answer::Good(content) => {
                        found.previous.last_good.insert(file.path, content);
                    }
                    Answer::Added => {
                        found.previous.new_files.push(file.path);
                        found.before.insert(parent);
                    }
                    Answer::StillBad => still.push(file),
                }
            }
            pending = still;
            child = parent;
        }
        let never_good = pending.into_iter().map(|file| file.path);
        found.previous.new_files.extend(never_good);
        found.previous.new_files.sort();
        Ok(found)
    }

    fn step(
        &self,
        repo: &gix::Repository,
        at: ObjectId,
        root: ObjectId,
        file: &mut Pending,
        parses: Parses<'_>,
    ) -> Result<Answer, RepositoryError> {
        let unreadable = |source| RepositoryError::Object {
            id: root.to_string(),
            source,
        };
        let entry = repo
            .find_tree(root)
            .map_err(unreadable)?
            .lookup_entry(file.path.split('/'))
            .map_err(unreadable)?;
        let Some(entry) = entry.filter(|entry| !entry.mode().is_tree()) else {
            return Ok(Answer::Added);
        };
        let id = entry.object_id();
        if !entry.mode().is_blob() || file.seen == Some(id) {
            return Ok(Answer::StillBad);
        }
        file.seen = Some(id);
        let mut cache = self.cache.lock().unwrap_or_else(PoisonError::into_inner);
        match FolderReader::new(repo, &mut cache.blobs, at).blob(id)? {
            SourceEntry::File(content) if parses(&file.path, &content) => Ok(Answer::Good(content)),
            _ => Ok(Answer::StillBad),
        }
    }
}

/// Splits off the entries with a bad name: they cannot be looked up by it, and never were readable.
fn pending(tree: &SourceTree, unreadable: &[Arc<str>], previous: &mut Previous) -> Vec<Pending> {
    let mut pending = Vec::new();
    for path in unreadable {
        match tree.files.get(path) {
            Some(SourceEntry::BadName) => previous.new_files.push(path.clone()),
            now => pending.push(Pending {
                path: path.clone(),
                seen: now.and_then(blob_id),
            }),
        }
    }
    pending
}

fn blob_id(entry: &SourceEntry) -> Option<ObjectId> {
    match entry {
        SourceEntry::File(file) => ObjectId::from_hex(file.id.as_bytes()).ok(),
        _ => None,
    }
}

fn vanished<'a>(before: &'a SourceTree, now: &'a SourceTree) -> impl Iterator<Item = (Arc<str>, SourceFile)> + 'a {
    before.files.iter().filter_map(|(path, entry)| match entry {
        SourceEntry::File(file) if !now.files.contains_key(path) => Some((path.clone(), file.clone())),
        _ => None,
    })
}
