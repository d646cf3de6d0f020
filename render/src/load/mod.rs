//! Room 2, load: what a revision says. Next room: `render::schedule`.
//!
//! Its files go in; clusters, units with their Bases and overrides come out, and what is wrong with them as
//! findings.
//!
//! Nothing fails here. A file that cannot be read is named in [`Fleet::unreadable`]; the shell looks up
//! what it said before and loads again, with that as [`Previous`]. What a unit with errors keeps, which
//! clusters it goes to and what overrides change is deliberately not here.
//!
//! ```text
//! files ── file ── document ── kinds        one file at a time, remembered by LoadMemo
//!   │                │
//! catalog ── charts   gather ── index ── resolve   all files together
//! ```

mod access;
mod catalog;
mod charts;
mod cross;
mod declaration;
mod document;
mod fields;
mod file;
mod gather;
mod ignored;
mod index;
mod kinds;
mod lines;
mod memo;
mod needs;
mod object;
mod pattern;
mod projected;
mod rendered;
mod resolve;
mod symlink;
mod whole;

#[cfg(test)]
mod tests;

use std::sync::Arc;

use crate::finding::Finding;
use crate::fleet::{Fleet, ManifestObject};
use crate::tree::{Previous, SourceFile, SourceTree};

pub(crate) use kinds::MODES;
pub use memo::LoadMemo;

/// Loads a revision. The findings are sorted, and the same whatever order files are in.
pub fn load(tree: &SourceTree, previous: &Previous) -> (Fleet, Vec<Finding>) {
    load_with(tree, previous, &mut LoadMemo::default())
}

/// As [`load`], and reads no file again that `memo` has read; equal in every byte.
pub fn load_with(tree: &SourceTree, previous: &Previous, memo: &mut LoadMemo) -> (Fleet, Vec<Finding>) {
    whole::load(tree, previous, memo)
}

/// The objects of one file, whatever repository it is to be part of, and what is wrong with it. What is no object
/// is an Error: a declaration of the fleet too, which nobody delivers.
pub fn objects(path: &str, content: &SourceFile) -> (Vec<Arc<ManifestObject>>, Vec<Finding>) {
    let read = file::read(&Arc::from(path), content);
    let (mut objects, mut findings) = (Vec::new(), read.findings);
    for item in read.items {
        match item {
            document::Item::Object(object) => objects.push(object),
            document::Item::Neither(finding) => findings.push(*finding),
            document::Item::Declared { key, line, .. } => findings.push(
                Finding::error(
                    "NotAnObject",
                    format!("{} is a declaration of the fleet and no object", key.label()),
                )
                .at(path, line)
                .hint("commit it as it is"),
            ),
        }
    }
    findings.sort_unstable();
    findings.dedup();
    (objects, findings)
}

/// Whether a content of a file would not be named in [`Fleet::unreadable`], so that it can stand in for a
/// later one that would.
pub fn is_readable(path: &str, content: &SourceFile) -> bool {
    !file::read(&Arc::from(path), content).wants_last_good()
}
