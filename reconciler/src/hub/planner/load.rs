//! Loads what a revision says. A file that cannot be read says what it said before.

use render::load::{LoadMemo, is_readable, load_with};
use render::tree::SourceEntry;
use render::{Finding, Fleet, Previous, Revision, SourceTree};

use crate::hub::source::{Source, SourceError};

/// Loads what a revision declares of a kind: only files with this word in them are read, so that nothing else of the
/// fleet is what the revision says.
pub(in crate::hub) fn load_declaring(source: &Source, revision: &Revision, kind: &[u8]) -> Result<Fleet, SourceError> {
    let mut tree = source.tree(revision)?;
    tree.files.retain(|_, entry| match entry {
        SourceEntry::File(file) => file.bytes.windows(kind.len()).any(|window| window == kind),
        _ => false,
    });
    let memo = &mut LoadMemo::default();
    let (fleet, _) = load_with(&tree, &Previous::default(), memo);
    if fleet.unreadable.is_empty() {
        return Ok(fleet);
    }
    let previous = source.previous(&tree, &fleet.unreadable, &is_readable)?;
    Ok(load_with(&tree, &previous, memo).0)
}

/// Loads a revision; files that cannot be read are looked up in the history, and it is loaded again.
pub fn load_revision(
    source: &Source,
    revision: &Revision,
    memo: &mut LoadMemo,
) -> Result<(Fleet, Vec<Finding>), SourceError> {
    load_tree(source, &source.tree(revision)?, memo)
}

/// Loads the files of a revision, or what somebody is about to make of them. What they said before is looked up
/// from that revision on.
pub fn load_tree(
    source: &Source,
    tree: &SourceTree,
    memo: &mut LoadMemo,
) -> Result<(Fleet, Vec<Finding>), SourceError> {
    let loaded = load_with(tree, &Previous::default(), memo);
    if loaded.0.unreadable.is_empty() {
        return Ok(loaded);
    }
    let previous = source.previous(tree, &loaded.0.unreadable, &is_readable)?;
    Ok(load_with(tree, &previous, memo))
}
