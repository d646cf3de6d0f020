//! What stands in one commit, with the ids of the objects that say it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use gix::ObjectId;
use gix::bstr::ByteSlice;
use gix::objs::tree::Entry;
use gix::objs::{Kind, tree::EntryKind};
use render::layout::{self, PLACEMENTS_FOLDER, RELEASE_FILE, UNITS_FOLDER};
use render::{Digest, Published, UnitKey, VariantName};

use super::{CommitId, StateError, StateRepository};
use crate::hub::repository::{tree_entries, verified};

/// A commit's decisions, and where its objects are.
#[derive(Debug)]
pub(super) struct CommitIndex {
    pub(super) published: Arc<Published>,
    pub(super) tree: ObjectId,
    /// Entries of the root that are not ours; people's own files, kept as they are.
    pub(super) foreign: Vec<Entry>,
    /// Unit → blob of its placement.
    pub(super) placements: BTreeMap<UnitKey, ObjectId>,
    /// Unit → folder of its variants.
    pub(super) folders: BTreeMap<UnitKey, UnitFolder>,
    /// Content → a folder that holds it, by the placements' word.
    pub(super) contents: BTreeMap<Digest, ObjectId>,
    /// Units whose files were edited by hand, so that their placement is not what its file says.
    pub(super) edited: BTreeSet<UnitKey>,
}

/// `units/<namespace>/<name>`.
#[derive(Clone, Debug)]
pub(super) struct UnitFolder {
    pub(super) tree: ObjectId,
    pub(super) variants: BTreeMap<VariantName, ObjectId>,
}

impl CommitIndex {
    /// Reads a commit's tree. What `near` has under the same ids is taken from there.
    pub(super) fn read(
        state: &StateRepository,
        commit: CommitId,
        tree: ObjectId,
        near: Option<Arc<Self>>,
    ) -> Result<Self, StateError> {
        let reader = Reader { state, commit };
        let (ours, foreign): (Vec<_>, Vec<_>) = reader.entries(tree)?.into_iter().partition(is_ours);
        let find = |name: &str| ours.iter().find(|entry| entry.filename == name).map(|entry| entry.oid);
        let release = find(RELEASE_FILE).ok_or_else(|| StateError::NotAState {
            commit,
            reason: format!("{RELEASE_FILE} is missing"),
        })?;
        let placements = match find(PLACEMENTS_FOLDER) {
            Some(folder) => reader.placements(folder)?,
            None => BTreeMap::new(),
        };
        let folders = match find(UNITS_FOLDER) {
            Some(folder) => reader.folders(folder, near.as_deref())?,
            None => BTreeMap::new(),
        };
        let published = Arc::new(reader.published(release, &placements, near.as_deref())?);
        let contents = contents(&published, &folders);
        Ok(Self {
            published,
            tree,
            foreign,
            placements,
            folders,
            contents,
            edited: BTreeSet::new(),
        })
    }

    /// The folder of a variant.
    pub(super) fn folder(&self, unit: &UnitKey, variant: &VariantName) -> Option<ObjectId> {
        self.folders.get(unit)?.variants.get(variant).copied()
    }

    /// The folder of a variant, where that has this content.
    pub(super) fn says(&self, unit: &UnitKey, variant: &VariantName, digest: Digest) -> Option<ObjectId> {
        let named = self.published.units.get(unit)?.variants.get(variant)?;
        self.folder(unit, variant).filter(|_| named.digest == digest)
    }

    /// A folder of this very unit that holds a content, whatever its variant's name there.
    pub(super) fn of_unit(&self, unit: &UnitKey, digest: Digest) -> Option<ObjectId> {
        let folder = self.folders.get(unit)?;
        let placement = self.published.units.get(unit)?;
        let (name, _) = placement
            .variants
            .iter()
            .find(|(_, variant)| variant.digest == digest)?;
        folder.variants.get(name).copied()
    }
}

fn is_ours(entry: &Entry) -> bool {
    [RELEASE_FILE, PLACEMENTS_FOLDER, UNITS_FOLDER]
        .iter()
        .any(|name| entry.filename == *name)
}

/// Content → folder, where a placement names it and the folder is there.
pub(super) fn contents(published: &Published, folders: &BTreeMap<UnitKey, UnitFolder>) -> BTreeMap<Digest, ObjectId> {
    let mut contents = BTreeMap::new();
    for (unit, placement) in &published.units {
        let Some(folder) = folders.get(unit) else { continue };
        for (name, variant) in &placement.variants {
            if let Some(tree) = folder.variants.get(name) {
                contents.entry(variant.digest).or_insert(*tree);
            }
        }
    }
    contents
}

struct Reader<'a> {
    state: &'a StateRepository,
    commit: CommitId,
}

impl Reader<'_> {
    fn entries(&self, tree: ObjectId) -> Result<Vec<Entry>, StateError> {
        self.state
            .repository
            .read(|repo| tree_entries(repo, tree))
            .map_err(StateError::Unreadable)
    }

    fn blob(&self, id: ObjectId) -> Result<Vec<u8>, StateError> {
        self.state
            .repository
            .read(|repo| Ok(verified(repo, id, Kind::Blob)?.detach().data))
            .map_err(StateError::Unreadable)
    }

    /// `<namespace>/<name>` of a folder two levels deep, and what is there. Names that cannot be a unit's
    /// are no state of ours, and a commit that has them was edited by hand.
    fn two_levels(
        &self,
        folder: &'static str,
        tree: ObjectId,
        suffix: &str,
    ) -> Result<Vec<(UnitKey, Entry)>, StateError> {
        let mut found = Vec::new();
        for namespace in self.entries(tree)? {
            if !namespace.mode.is_tree() {
                return Err(self.no_unit(format!("{folder}/{}", namespace.filename)));
            }
            for entry in self.entries(namespace.oid)? {
                let name = entry.filename.to_str_lossy();
                let unit = name
                    .strip_suffix(suffix)
                    .and_then(|name| UnitKey::new(namespace.filename.to_str_lossy(), name).ok())
                    .ok_or_else(|| self.no_unit(format!("{folder}/{}/{name}", namespace.filename)))?;
                found.push((unit, entry));
            }
        }
        Ok(found)
    }

    fn no_unit(&self, path: String) -> StateError {
        StateError::NotAState {
            commit: self.commit,
            reason: format!("{path} belongs to no unit"),
        }
    }

    fn placements(&self, folder: ObjectId) -> Result<BTreeMap<UnitKey, ObjectId>, StateError> {
        let found = self.two_levels(PLACEMENTS_FOLDER, folder, ".yaml")?;
        Ok(found.into_iter().map(|(unit, entry)| (unit, entry.oid)).collect())
    }

    fn folders(
        &self,
        folder: ObjectId,
        near: Option<&CommitIndex>,
    ) -> Result<BTreeMap<UnitKey, UnitFolder>, StateError> {
        let mut folders = BTreeMap::new();
        for (unit, entry) in self.two_levels(UNITS_FOLDER, folder, "")? {
            let known = near
                .and_then(|near| near.folders.get(&unit))
                .filter(|known| known.tree == entry.oid);
            let folder = match known {
                Some(known) => known.clone(),
                None => self.folder(entry.oid)?,
            };
            folders.insert(unit, folder);
        }
        Ok(folders)
    }

    fn folder(&self, tree: ObjectId) -> Result<UnitFolder, StateError> {
        let variants = self
            .entries(tree)?
            .into_iter()
            .filter(|entry| entry.mode.kind() == EntryKind::Tree);
        Ok(UnitFolder {
            tree,
            // A folder that is not a variant's is a person's own; nobody will ask for it.
            variants: variants
                .filter_map(|entry| Some((VariantName::parse(entry.filename.to_str().ok()?).ok()?, entry.oid)))
                .collect(),
        })
    }

    fn published(
        &self,
        release: ObjectId,
        placements: &BTreeMap<UnitKey, ObjectId>,
        near: Option<&CommitIndex>,
    ) -> Result<Published, StateError> {
        let mut files = vec![(RELEASE_FILE.to_owned(), self.blob(release)?)];
        let mut known = BTreeMap::new();
        for (unit, id) in placements {
            let same = near.filter(|near| near.placements.get(unit) == Some(id) && !near.edited.contains(unit));
            match same.and_then(|near| near.published.units.get(unit)) {
                Some(placement) => {
                    known.insert(unit.clone(), placement.clone());
                }
                None => files.push((layout::placement_path(unit), self.blob(*id)?)),
            }
        }
        let files = files.iter().map(|(path, bytes)| (path.as_str(), bytes.as_slice()));
        let mut published = layout::read(files).map_err(|source| StateError::Layout {
            commit: self.commit,
            source: Box::new(source),
        })?;
        published.units.append(&mut known);
        Ok(published)
    }
}
