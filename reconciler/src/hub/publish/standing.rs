//! A commit as it stands: what people merged, edited or resolved there is what they approved.
//!
//! A placement promises a digest for each of its contents. Where a person edited the files by hand, the files
//! count and the promise does not; where they are no content at all, the commit is no state of the fleet.

use std::collections::BTreeMap;
use std::sync::Arc;

use gix::ObjectId;
use render::layout::{self, UNITS_FOLDER, unit_folder};
use render::limits::UNIT_BYTES_MAX;
use render::{Digest, UnitKey, VariantName};

use super::commit_index::{CommitIndex, UnitFolder, contents};
use super::{CommitId, StateError, StateRepository};

impl StateRepository {
    /// An index whose digests are those of the files. Folders that another commit has under the same digest
    /// are not read again.
    pub(super) fn as_it_stands(&self, commit: CommitId, mut index: CommitIndex) -> Result<CommitIndex, StateError> {
        let edited = self.edited(commit, &index)?;
        if edited.is_empty() {
            return Ok(index);
        }
        let units = &mut Arc::make_mut(&mut index.published).units;
        for ((unit, name), digest) in edited {
            let variant = units.get_mut(&unit).and_then(|unit| unit.variants.get_mut(&name));
            if let Some(variant) = variant {
                variant.digest = digest;
            }
            index.edited.insert(unit);
        }
        index.contents = contents(&index.published, &index.folders);
        Ok(index)
    }

    /// The contents whose files have another digest than promised, with the one they have.
    fn edited(
        &self,
        commit: CommitId,
        index: &CommitIndex,
    ) -> Result<BTreeMap<(UnitKey, VariantName), Digest>, StateError> {
        if let Some(unit) = without_placement(index) {
            let reason = format!(
                "{} is there, and {}, which says where it goes, is not; to take the unit from every cluster, remove both",
                format_args!("{UNITS_FOLDER}/{}/{}", unit.namespace(), unit.name()),
                layout::placement_path(unit)
            );
            return Err(StateError::NotAState { commit, reason });
        }
        let known = self.memory().indexes();
        let mut edited = BTreeMap::new();
        for (unit, placement) in &index.published.units {
            for (name, variant) in &placement.variants {
                let folder = index.folder(unit, name).ok_or_else(|| StateError::NotAState {
                    commit,
                    reason: format!(
                        "{} names {}, which is not there",
                        layout::placement_path(unit),
                        unit_folder(unit, name)
                    ),
                })?;
                let seen = |known: &Arc<CommitIndex>| known.says(unit, name, variant.digest) == Some(folder);
                if known.iter().any(seen) || self.is_proven(folder, variant.digest) {
                    continue;
                }
                let found = self.digest_of(commit, folder, || unit_folder(unit, name))?;
                if found != variant.digest {
                    edited.insert((unit.clone(), name.clone()), found);
                }
            }
        }
        Ok(edited)
    }

    fn digest_of(&self, commit: CommitId, folder: ObjectId, path: impl Fn() -> String) -> Result<Digest, StateError> {
        let content = self.described(folder).map_err(|error| match error {
            StateError::ContentLayout { source } => StateError::Manifests {
                commit,
                folder: path(),
                source,
            },
            other => other,
        })?;
        if content.bytes > UNIT_BYTES_MAX {
            let mib = |bytes: usize| bytes.div_ceil(1 << 20);
            let reason = format!(
                "{} takes {} MiB, and one unit may take {} MiB",
                path(),
                mib(content.bytes),
                mib(UNIT_BYTES_MAX)
            );
            return Err(StateError::NotAState { commit, reason });
        }
        self.remember_proven(folder, content.digest);
        Ok(content.digest)
    }
}

/// A unit whose contents are there and whose placement is not: half of a removal, such as a merge leaves that
/// was resolved in a hurry. Taken for a removal, it would take the unit from every cluster.
fn without_placement(index: &CommitIndex) -> Option<&UnitKey> {
    let stands = |(unit, folder): &(&UnitKey, &UnitFolder)| {
        !folder.variants.is_empty() && !index.published.units.contains_key(*unit)
    };
    index.folders.iter().find(stands).map(|(unit, _)| unit)
}
