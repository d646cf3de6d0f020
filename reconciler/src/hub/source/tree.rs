//! The whole tree at a commit, with no checkout.

use std::collections::VecDeque;
use std::sync::{Arc, PoisonError};

use gix::ObjectId;
use gix::bstr::BStr;
use render::tree::SourceEntry;
use render::{Revision, SourceTree};

use super::branch::{Source, SourceError, known};
use super::folder::{Blobs, Folder, FolderReader};
use crate::hub::repository::{RepositoryError, commit};
use crate::limits::TREES_CACHED_MAX;

/// What was read lately.
#[derive(Debug, Default)]
pub(super) struct Cache {
    /// Newest last.
    trees: VecDeque<Arc<Folder>>,
    pub(super) blobs: Blobs,
}

impl Source {
    /// All files at a revision. Folders and contents that were the same in a tree read lately are shared
    /// with it, so a small change costs milliseconds. Any object that cannot be read makes an error.
    pub fn tree(&self, revision: &Revision) -> Result<SourceTree, SourceError> {
        let id = known(revision)?;
        let files = self
            .repository
            .read(|repo| {
                let mut cache = self.cache.lock().unwrap_or_else(PoisonError::into_inner);
                cache.root(repo, id)?.files()
            })
            .map_err(SourceError::Unreadable)?;
        Ok(SourceTree {
            revision: revision.clone(),
            files,
        })
    }
}

impl Cache {
    fn root(&mut self, repo: &gix::Repository, from: ObjectId) -> Result<Arc<Folder>, RepositoryError> {
        let id = commit(repo, from)?.tree;
        if let Some(at) = self.trees.iter().position(|tree| tree.id == id) {
            // Used again, hence newest again.
            if let Some(tree) = self.trees.remove(at) {
                self.trees.push_back(tree.clone());
                return Ok(tree);
            }
        }
        let old = self.trees.back().cloned();
        let root = FolderReader::new(repo, &mut self.blobs, from).folder(id, BStr::new(""), old.as_ref())?;
        self.trees.push_back(root.clone());
        if self.trees.len() > TREES_CACHED_MAX {
            self.trees.pop_front();
        }
        self.forget_unused();
        Ok(root)
    }

    /// Drops contents that no tree holds any more, ours or a caller's.
    fn forget_unused(&mut self) {
        self.blobs.retain(|_, entry| match entry {
            SourceEntry::File(file) => Arc::strong_count(&file.bytes) > 1,
            SourceEntry::Symlink(_) | SourceEntry::Submodule | SourceEntry::TooLarge(_) | SourceEntry::BadName => false,
        });
    }
}
