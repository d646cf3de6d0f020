//! Follows symlinks inside a tree, where nothing outside it exists.

use std::ops::Bound;
use std::sync::Arc;

use crate::limits::SYMLINK_HOPS_MAX;
use crate::tree::{SourceEntry, SourceFile, SourceTree};

/// Why a symlink leads to no file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum SymlinkError {
    #[error("the symlink leads out of the repository")]
    Outside,
    #[error("the symlink leads to nothing")]
    Dangling,
    #[error("the symlink leads to a folder, and folders are read under their own path alone")]
    Folder,
    #[error("the symlink leads through more than {SYMLINK_HOPS_MAX} others")]
    TooManyHops,
}

impl SymlinkError {
    pub(super) fn reason(self) -> &'static str {
        match self {
            SymlinkError::Outside => "SymlinkOutside",
            SymlinkError::Dangling => "SymlinkDangling",
            SymlinkError::Folder => "SymlinkToFolder",
            SymlinkError::TooManyHops => "SymlinkLoop",
        }
    }
}

/// The file that a path stands for, with the path at which it really is.
pub(super) fn follow<'t>(tree: &'t SourceTree, path: &str) -> Result<(&'t Arc<str>, &'t SourceFile), SymlinkError> {
    let mut pending: Vec<String> = path.rsplit('/').map(str::to_owned).collect();
    let mut done: Vec<String> = Vec::new();
    let mut hops = 0;
    while let Some(part) = pending.pop() {
        match part.as_str() {
            "" | "." => continue,
            ".." => {
                done.pop().ok_or(SymlinkError::Outside)?;
                continue;
            }
            _ => done.push(part),
        }
        let Some(SourceEntry::Symlink(target)) = tree.files.get(done.join("/").as_str()) else {
            continue;
        };
        hops += 1;
        if hops > SYMLINK_HOPS_MAX {
            return Err(SymlinkError::TooManyHops);
        }
        if target.starts_with('/') {
            return Err(SymlinkError::Outside);
        }
        done.pop();
        pending.extend(target.rsplit('/').map(str::to_owned));
    }
    entry(tree, &done.join("/"))
}

fn entry<'t>(tree: &'t SourceTree, path: &str) -> Result<(&'t Arc<str>, &'t SourceFile), SymlinkError> {
    match tree.files.get_key_value(path) {
        Some((path, SourceEntry::File(file))) => Ok((path, file)),
        Some(_) => Err(SymlinkError::Dangling),
        None => {
            let folder = format!("{path}/");
            let from = (Bound::Included(folder.as_str()), Bound::Unbounded);
            let below = tree.files.range::<str, _>(from).next();
            let is_folder = path.is_empty() || below.is_some_and(|(path, _)| path.starts_with(&folder));
            Err(if is_folder {
                SymlinkError::Folder
            } else {
                SymlinkError::Dangling
            })
        }
    }
}
