//! A decision as a commit.
//!
//! The tree follows from the decision alone (and people's own files beside it): the same decision gives the
//! same tree whatever stood there before, and what is not part of it any more is gone. Folders and
//! placements that did not change keep their objects, so that Git stores, and a reviewer sees, the change.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use gix::ObjectId;
use gix::objs::tree::{Entry, EntryKind};
use render::describe::Description;
use render::layout::{self, PLACEMENTS_FOLDER, RELEASE_FILE, UNITS_FOLDER};
use render::{Digest, Published, UnitKey, UnitPlacement};

use super::commit_index::{CommitIndex, UnitFolder, contents};
use super::content::{entry, write_tree};
use super::error::missing;
use super::{CommitId, StateError, StateRepository};

/// What is to be written.
#[derive(Clone, Copy, Debug)]
pub struct Decision<'a> {
    /// All that should stand there, with its record.
    pub next: &'a Arc<Published>,
    /// Contents that may be new. One that is not among them is looked for in the parent, then in `known_in`.
    pub contents: &'a BTreeMap<Digest, Arc<Description>>,
    /// Commits that have contents of this decision, such as the commit of rendered that is to be released.
    pub known_in: &'a [CommitId],
    /// The commit's message, from [`super::message()`].
    pub message: &'a str,
    /// The commit's time, in seconds since 1970.
    pub seconds: i64,
}

impl StateRepository {
    /// Writes a commit on `parent` and moves no ref. Where the tree would be the parent's, nothing is
    /// written and the parent is what comes back.
    pub fn write_commit(&self, parent: Option<CommitId>, decision: &Decision<'_>) -> Result<CommitId, StateError> {
        let index = self.write_index(parent, decision)?;
        if let Some(parent) = parent
            && self.index(parent)?.tree == index.tree
        {
            return Ok(parent);
        }
        let signature = self.signature(decision.seconds);
        let commit = gix::objs::Commit {
            tree: index.tree,
            parents: parent.iter().map(|parent| parent.0).collect(),
            author: signature.clone(),
            committer: signature,
            encoding: None,
            message: decision.message.into(),
            extra_headers: Vec::new(),
        };
        let repo = self.repository.local();
        let id = CommitId(repo.write_object(&commit).map_err(StateError::Write)?.detach());
        self.remember(id, Arc::new(index));
        Ok(id)
    }

    /// Writes the trees of a decision.
    pub(super) fn write_index(
        &self,
        parent: Option<CommitId>,
        decision: &Decision<'_>,
    ) -> Result<CommitIndex, StateError> {
        let repo = self.repository.local();
        let mut writer = Writer {
            state: self,
            repo: &repo,
            base: parent.map(|parent| self.index(parent)).transpose()?,
            known_in: decision.known_in,
            given: decision.contents,
            written: BTreeMap::new(),
        };
        let (mut placements, mut folders) = (BTreeMap::new(), BTreeMap::new());
        for (unit, placement) in &decision.next.units {
            let (file, folder) = writer.unit(unit, placement)?;
            placements.insert(unit.clone(), file);
            folders.insert(unit.clone(), folder);
        }
        let foreign = writer
            .base
            .as_ref()
            .map(|base| base.foreign.clone())
            .unwrap_or_default();
        let mut root = foreign.clone();
        root.push(writer.release(decision.next)?);
        root.extend(two_levels(
            &repo,
            PLACEMENTS_FOLDER,
            placements
                .iter()
                .map(|(unit, oid)| (unit, entry(format!("{}.yaml", unit.name()), EntryKind::Blob, *oid))),
        )?);
        root.extend(two_levels(
            &repo,
            UNITS_FOLDER,
            folders
                .iter()
                .map(|(unit, folder)| (unit, entry(unit.name(), EntryKind::Tree, folder.tree))),
        )?);
        Ok(CommitIndex {
            tree: write_tree(&repo, root)?,
            published: decision.next.clone(),
            foreign,
            contents: contents(decision.next, &folders),
            placements,
            folders,
            edited: BTreeSet::new(),
        })
    }
}

struct Writer<'a> {
    state: &'a StateRepository,
    repo: &'a gix::Repository,
    base: Option<Arc<CommitIndex>>,
    known_in: &'a [CommitId],
    given: &'a BTreeMap<Digest, Arc<Description>>,
    /// Contents written for this commit.
    written: BTreeMap<Digest, ObjectId>,
}

impl Writer<'_> {
    fn release(&self, next: &Published) -> Result<Entry, StateError> {
        let record = next.record.as_ref().ok_or(StateError::NoRecord)?;
        let (_, text) = layout::release_file(record);
        let oid = self.repo.write_blob(text).map_err(StateError::Write)?.detach();
        Ok(entry(RELEASE_FILE, EntryKind::Blob, oid))
    }

    fn unit(&mut self, unit: &UnitKey, placement: &UnitPlacement) -> Result<(ObjectId, UnitFolder), StateError> {
        if let Some(unchanged) = self.unchanged(unit, placement) {
            return Ok(unchanged);
        }
        let (_, text) = layout::placement_file(unit, placement);
        let file = self.repo.write_blob(text).map_err(StateError::Write)?.detach();
        let mut variants = BTreeMap::new();
        for (name, variant) in &placement.variants {
            variants.insert(name.clone(), self.content(unit, variant.digest)?);
        }
        let entries = variants
            .iter()
            .map(|(name, tree)| entry(name.as_str(), EntryKind::Tree, *tree));
        let tree = write_tree(self.repo, entries.collect())?;
        Ok((file, UnitFolder { tree, variants }))
    }

    /// A unit whose placement is as in the parent, with exactly its variants' folders there.
    fn unchanged(&self, unit: &UnitKey, placement: &UnitPlacement) -> Option<(ObjectId, UnitFolder)> {
        let base = self.base.as_ref()?;
        let folder = base.folders.get(unit)?;
        let same = base.published.units.get(unit) == Some(placement);
        let whole = folder.variants.keys().eq(placement.variants.keys());
        // Where files were edited by hand, the placement's file still promises something else.
        (same && whole && !base.edited.contains(unit)).then_some((*base.placements.get(unit)?, folder.clone()))
    }

    /// The folder of a content. The unit's own comes first: where only provenance changed, the bytes of the
    /// objects did not, and there is nothing to tell anybody.
    fn content(&mut self, unit: &UnitKey, digest: Digest) -> Result<ObjectId, StateError> {
        if let Some(own) = self.base.as_ref().and_then(|base| base.of_unit(unit, digest))
            && self.state.prove(own, digest).is_ok()
        {
            return Ok(own);
        }
        if let Some(written) = self.written.get(&digest) {
            return Ok(*written);
        }
        let folder = match self.given.get(&digest) {
            Some(content) => self.state.write_content(content, digest)?,
            None => self.found(unit, digest)?,
        };
        self.written.insert(digest, folder);
        Ok(folder)
    }

    /// A content that was written before, in the first place where its files still have its digest.
    fn found(&self, unit: &UnitKey, digest: Digest) -> Result<ObjectId, StateError> {
        let mut places: Vec<Arc<CommitIndex>> = self.base.iter().cloned().collect();
        for commit in self.known_in {
            places.push(self.state.index(*commit)?);
        }
        let mut refused = missing(unit, digest);
        for folder in places.iter().filter_map(|place| place.contents.get(&digest)) {
            match self.state.prove(*folder, digest) {
                Ok(()) => return Ok(*folder),
                Err(error) => refused = error,
            }
        }
        Err(refused)
    }
}

/// A folder `<namespace>/<entry>` of units in order; none if it would be empty, as Git has no empty folders.
fn two_levels<'a>(
    repo: &gix::Repository,
    folder: &str,
    units: impl Iterator<Item = (&'a UnitKey, Entry)>,
) -> Result<Option<Entry>, StateError> {
    let mut namespaces: BTreeMap<&str, Vec<Entry>> = BTreeMap::new();
    for (unit, entry) in units {
        namespaces.entry(unit.namespace()).or_default().push(entry);
    }
    let mut entries = Vec::new();
    for (namespace, units) in namespaces {
        entries.push(entry(namespace, EntryKind::Tree, write_tree(repo, units)?));
    }
    if entries.is_empty() {
        return Ok(None);
    }
    Ok(Some(entry(folder, EntryKind::Tree, write_tree(repo, entries)?)))
}
