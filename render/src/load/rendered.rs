//! What the hub rendered, merged into source by mistake.

use crate::finding::Finding;
use crate::layout::{PLACEMENTS_FOLDER, RELEASE_FILE, UNITS_FOLDER};
use crate::model::FLEET_API_VERSION;
use crate::tree::{SourceEntry, SourceTree};

/// A finding where a decision of the hub stands in a revision of source. Its files are not read: the objects in
/// them would be there twice.
pub(super) fn find(tree: &SourceTree) -> Option<Finding> {
    let SourceEntry::File(file) = tree.files.get(RELEASE_FILE)? else {
        return None;
    };
    let has = |line: &str| {
        file.bytes
            .split(|byte| *byte == b'\n')
            .any(|found| found == line.as_bytes())
    };
    if !has("kind: Release") || !has(&format!("apiVersion: {FLEET_API_VERSION}")) {
        return None;
    }
    let message = format!(
        "this is what the hub rendered, and no part of a fleet's source: it is not read, and neither are {PLACEMENTS_FOLDER}/ and {UNITS_FOLDER}/"
    );
    let finding = Finding::error("RenderedInSource", message).at(RELEASE_FILE, 1).hint(
        "a proposal was merged into this branch: take that back with git revert, and merge it into flotilla/rendered",
    );
    Some(finding)
}

/// Whether a path is part of a decision of the hub.
pub(super) fn is_part(path: &str) -> bool {
    let folder = path.split_once('/').map(|(folder, _)| folder);
    path == RELEASE_FILE || matches!(folder, Some(PLACEMENTS_FOLDER | UNITS_FOLDER))
}
