//! How units were placed when they asked for the same as now.

use std::collections::{BTreeMap, BTreeSet};

use gix::ObjectId;
use gix::objs::Kind;
use render::layout::{PLACEMENTS_FOLDER, placement_path, read_placement};
use render::{Digest, UnitKey, UnitPlacement};

use super::{CommitId, StateError, StateRef, StateRepository};
use crate::hub::repository::{RepositoryError, commit, tree_entries, verified};
use crate::limits::MEMORY_COMMITS_MAX;

/// What was looked for last, so that a unit whose wish is never met is looked for in new commits alone.
#[derive(Debug, Default)]
pub(super) struct Looked {
    wanted: BTreeMap<UnitKey, Digest>,
    head: Option<CommitId>,
    found: BTreeMap<UnitKey, UnitPlacement>,
}

impl StateRepository {
    /// Of units that ask for something: their newest placement in `released` when they asked for just that. Goes back
    /// by first parents.
    pub fn remembered(
        &self,
        wanted: &BTreeMap<UnitKey, Digest>,
    ) -> Result<BTreeMap<UnitKey, UnitPlacement>, StateError> {
        let Some(head) = self.head(StateRef::Released)? else {
            return Ok(BTreeMap::new());
        };
        let known = std::mem::take(&mut self.memory().looked);
        let known = if known.wanted == *wanted {
            known
        } else {
            Looked::default()
        };
        let newer = self.repository.read(|repo| {
            let mut search = Search::of(wanted);
            search.walk(repo, head, known.head)?;
            Ok(search.found)
        });
        let newer = newer.map_err(StateError::Unreadable)?;
        // What is newer counts.
        let mut found = known.found;
        for (unit, bytes) in newer {
            found.insert(unit.clone(), placement(unit, &bytes)?);
        }
        self.memory().looked = Looked {
            wanted: wanted.clone(),
            head: Some(head),
            found: found.clone(),
        };
        Ok(found)
    }
}

/// A walk back, with what need not be looked at again.
struct Search<'a> {
    left: BTreeMap<&'a UnitKey, Digest>,
    /// Files that say something else.
    seen: BTreeSet<ObjectId>,
    /// The placements of the commit that was looked at last.
    folder: Option<ObjectId>,
    found: BTreeMap<&'a UnitKey, Vec<u8>>,
}

impl<'a> Search<'a> {
    fn of(wanted: &'a BTreeMap<UnitKey, Digest>) -> Self {
        Self {
            left: wanted.iter().map(|(unit, asks)| (unit, *asks)).collect(),
            seen: BTreeSet::new(),
            folder: None,
            found: BTreeMap::new(),
        }
    }

    /// Goes back until all is found, or `until` was looked at before.
    fn walk(&mut self, repo: &gix::Repository, head: CommitId, until: Option<CommitId>) -> Result<(), RepositoryError> {
        let mut at = Some(head);
        for _ in 0..MEMORY_COMMITS_MAX {
            let Some(commit) = at.filter(|at| Some(*at) != until && !self.left.is_empty()) else {
                break;
            };
            at = self.look_at(repo, commit)?;
        }
        Ok(())
    }

    /// Looks at one commit; its first parent.
    fn look_at(&mut self, repo: &gix::Repository, at: CommitId) -> Result<Option<CommitId>, RepositoryError> {
        let links = commit(repo, at.0)?;
        let folder = entry(repo, links.tree, PLACEMENTS_FOLDER)?;
        if let Some(folder) = folder.filter(|_| folder != self.folder) {
            self.look_in(repo, folder)?;
        }
        self.folder = folder;
        Ok(links.parents.first().copied().map(CommitId))
    }

    fn look_in(&mut self, repo: &gix::Repository, folder: ObjectId) -> Result<(), RepositoryError> {
        let namespaces: BTreeMap<String, ObjectId> = names(repo, folder)?;
        let mut units: BTreeMap<&str, BTreeMap<String, ObjectId>> = BTreeMap::new();
        for unit in self.left.keys() {
            let namespace = unit.namespace();
            if let Some(tree) = namespaces.get(namespace).filter(|_| !units.contains_key(namespace)) {
                // A folder that was seen before has nothing new.
                let is_new = self.seen.insert(*tree);
                units.insert(namespace, if is_new { names(repo, *tree)? } else { BTreeMap::new() });
            }
        }
        let mut found = Vec::new();
        for (unit, asks) in &self.left {
            let files = units.get(unit.namespace());
            let Some(file) = files.and_then(|files| files.get(&format!("{}.yaml", unit.name()))) else {
                continue;
            };
            if !self.seen.insert(*file) {
                continue;
            }
            let bytes = verified(repo, *file, Kind::Blob)?.detach().data;
            if says(&bytes, asks) {
                found.push((*unit, bytes));
            }
        }
        for (unit, bytes) in found {
            self.left.remove(unit);
            self.found.insert(unit, bytes);
        }
        Ok(())
    }
}

fn placement(unit: &UnitKey, bytes: &[u8]) -> Result<UnitPlacement, StateError> {
    read_placement(&placement_path(unit), bytes).map_err(|source| StateError::Remembered {
        unit: unit.clone(),
        source: Box::new(source),
    })
}

/// Whether a placement file names what is asked for: cheaper than to read all of it.
fn says(bytes: &[u8], asks: &Digest) -> bool {
    let line = format!("\nasks: {asks}\n");
    bytes.windows(line.len()).any(|window| window == line.as_bytes())
}

fn entry(repo: &gix::Repository, tree: ObjectId, name: &str) -> Result<Option<ObjectId>, RepositoryError> {
    let entries = tree_entries(repo, tree)?;
    let named = entries.into_iter().find(|entry| entry.filename == name);
    Ok(named.map(|entry| entry.oid))
}

fn names(repo: &gix::Repository, tree: ObjectId) -> Result<BTreeMap<String, ObjectId>, RepositoryError> {
    let entries = tree_entries(repo, tree)?.into_iter();
    Ok(entries.map(|entry| (entry.filename.to_string(), entry.oid)).collect())
}
