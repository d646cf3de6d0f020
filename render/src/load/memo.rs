//! What was read before, by path and content: a file that did not change is not read again.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::file::{self, ReadFile};
use crate::chart::ChartFiles;
use crate::digest::Digest;
use crate::tree::SourceFile;

/// Remembers files between loads; changes speed, never a byte. Holds what the last load used.
#[derive(Debug, Default)]
pub struct LoadMemo {
    known: BTreeMap<Key, Arc<ReadFile>>,
    used: BTreeMap<Key, Arc<ReadFile>>,
    /// Charts by the ids of their files.
    charts: BTreeMap<Digest, Arc<ChartFiles>>,
    charts_used: BTreeMap<Digest, Arc<ChartFiles>>,
}

/// Path, and the id of the content: what a file says depends on both, since its objects name their file.
type Key = (Arc<str>, Arc<str>);

impl LoadMemo {
    pub(super) fn read(&mut self, path: &Arc<str>, file: &SourceFile) -> Arc<ReadFile> {
        let key = (path.clone(), file.id.clone());
        let read = match self.known.remove(&key).or_else(|| self.used.get(&key).cloned()) {
            Some(read) => read,
            None => Arc::new(file::read(path, file)),
        };
        self.used.insert(key, read.clone());
        read
    }

    /// The chart of these files, made once. What is none is not remembered: it is looked at again.
    pub(super) fn chart<E>(
        &mut self,
        ids: Digest,
        make: impl FnOnce() -> Result<Arc<ChartFiles>, E>,
    ) -> Result<Arc<ChartFiles>, E> {
        let known = self.charts.get(&ids).or_else(|| self.charts_used.get(&ids));
        let chart = match known {
            Some(known) => Arc::clone(known),
            None => make()?,
        };
        self.charts_used.insert(ids, Arc::clone(&chart));
        Ok(chart)
    }

    /// Forgets what the load that ends here did not use.
    pub(super) fn turn(&mut self) {
        self.known = std::mem::take(&mut self.used);
        self.charts = std::mem::take(&mut self.charts_used);
    }
}
