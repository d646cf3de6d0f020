//! Loads and plans a revision: blocking work, one at a time, with what it remembers from the last.

use std::sync::{Arc, Mutex, PoisonError};

use render::load::{LoadMemo, is_readable, load_with};
use render::plan::{Memo, Reports, Snapshot, plan};
use render::{Fleet, Previous, Published, Revision};

use super::engine::Planned;
use super::source::{Source, SourceError};

/// Plans revisions of one source.
#[derive(Debug)]
pub(super) struct Planner {
    source: Arc<Source>,
    memos: Mutex<Memos>,
}

#[derive(Debug, Default)]
struct Memos {
    load: LoadMemo,
    plan: Memo,
}

impl Planner {
    /// A planner that remembers nothing yet.
    pub(super) fn new(source: Arc<Source>) -> Self {
        Self {
            source,
            memos: Mutex::default(),
        }
    }

    /// Reads, loads and plans `revision` on what is published. Blocks. `now` is in seconds since 1970.
    ///
    /// A source that cannot be read whole is an error, and nothing may be concluded from it.
    pub(super) fn plan(
        &self,
        revision: &Revision,
        base: Option<Revision>,
        previous: Arc<Published>,
        now: i64,
    ) -> Result<Planned, SourceError> {
        // A memo that was left in the middle of a panic only costs speed.
        let mut memos = self.memos.lock().unwrap_or_else(PoisonError::into_inner);
        let memos = &mut *memos;
        let (fleet, mut findings) = load_revision(&self.source, revision, &mut memos.load)?;
        let fleet = Arc::new(fleet);
        let snapshot = Snapshot {
            revision: revision.clone(),
            fleet: Arc::clone(&fleet),
            reports: Reports::default(),
            chart_previews: Default::default(),
            previous,
            now,
        };
        let plan = plan(&snapshot, &mut memos.plan);
        findings.extend(plan.findings.iter().cloned());
        findings.sort();
        findings.dedup();
        Ok(Planned {
            fleet,
            plan,
            findings,
            base,
        })
    }
}

/// Loads a revision; files that cannot be read are looked up in the history, and it is loaded again.
pub fn load_revision(
    source: &Source,
    revision: &Revision,
    memo: &mut LoadMemo,
) -> Result<(Fleet, Vec<render::Finding>), SourceError> {
    let tree = source.tree(revision)?;
    let loaded = load_with(&tree, &Previous::default(), memo);
    if loaded.0.unreadable.is_empty() {
        return Ok(loaded);
    }
    let previous = source.previous(&tree, &loaded.0.unreadable, &is_readable)?;
    Ok(load_with(&tree, &previous, memo))
}
