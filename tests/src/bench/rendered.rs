//! What decisions cost in the state repository.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use anyhow::Context as _;
use reconciler::hub::git::housekeep;
use reconciler::hub::publish::{Author, CommitId, Decision, StateRef, StateRefs, StateRepository, message};
use reconciler::hub::source::Source;
use render::Published;
use render::published::{Cause, RENDER_VERSION, ReleaseRecord};

use super::Figures;
use super::corpus::{Corpus, Size};
use super::render::{Contents, Planner};
use crate::Repository;

/// A few other units beside the one that changes, as a fleet has them.
const WIDE: Size = Size {
    units: 10,
    clusters: 1_000,
    objects: 5,
    bytes: 4 << 10,
    localized_every: 0,
};
const LARGE: Size = Size {
    units: 1_000,
    clusters: 100,
    objects: 1,
    bytes: 512,
    localized_every: 0,
};
const COMMITS: usize = 1_000;

/// A decision's bytes before any housekeeping, and a history's after it.
pub(super) fn run(figures: &mut Figures) -> anyhow::Result<()> {
    let mut wide = History::new(WIDE)?;
    wide.decide()?;
    let before = wide.bytes()?;
    wide.corpus.touch(0);
    wide.decide()?;
    let added = wide.bytes()? - before;
    figures.print("one_unit_change_1000_clusters", added as f64 / 1024.0, "KiB")?;

    let mut large = History::new(LARGE)?;
    large.decide()?;
    for change in 0..COMMITS {
        large.corpus.touch(change * 37 % LARGE.units);
        large.decide()?;
    }
    let runtime = tokio::runtime::Runtime::new()?;
    runtime.block_on(housekeep(large.repository.bare()))?;
    let packed = large.bytes()?;
    figures.print("packed_after_1000_commits", packed as f64 / f64::from(1 << 20), "MiB")
}

/// A state repository and the fleet that is written to it, decision by decision, both refs as a hub does.
struct History {
    repository: Repository,
    state: StateRepository,
    corpus: Corpus,
    planner: Planner,
    rendered: Option<CommitId>,
    released: Option<CommitId>,
    sequence: u64,
}

impl History {
    fn new(size: Size) -> anyhow::Result<Self> {
        let repository = Repository::with_files(&[("README.md", "the source of a bench")]);
        let source = Source::open(repository.bare(), "main")?;
        let state = StateRepository::open(repository.bare(), StateRefs::default(), Author::default(), &source)?;
        Ok(Self {
            repository,
            state,
            corpus: Corpus::new(size),
            planner: Planner::default(),
            rendered: None,
            released: None,
            sequence: 0,
        })
    }

    /// Plans the files as they are, renders and releases them.
    fn decide(&mut self) -> anyhow::Result<()> {
        let (_, contents) = self.planner.plan(self.corpus.tree())?;
        self.sequence += 1;
        let record = ReleaseRecord {
            cause: Cause::SourceCommit,
            source: self.corpus.tree().revision.clone(),
            sequence: None,
            rendered: None,
            departed: Default::default(),
            orphaned: Default::default(),
            render_version: RENDER_VERSION,
        };
        let rendered = self.commit(StateRef::Rendered, self.rendered, record.clone(), &contents)?;
        self.rendered = Some(rendered);
        let record = ReleaseRecord {
            sequence: Some(self.sequence),
            rendered: Some(rendered.revision()),
            ..record
        };
        // What is released has its content in `rendered`.
        self.released = Some(self.commit(StateRef::Released, self.released, record, &Contents::new())?);
        Ok(())
    }

    fn commit(
        &self,
        which: StateRef,
        parent: Option<CommitId>,
        record: ReleaseRecord,
        contents: &Contents,
    ) -> anyhow::Result<CommitId> {
        let message = message("Decide", "", &record);
        let next = Arc::new(Published {
            record: Some(record),
            units: self.planner.published.units.clone(),
        });
        let decision = Decision {
            next: &next,
            contents,
            known_in: self.rendered.as_slice(),
            message: &message,
            seconds: 1_700_000_000 + self.sequence as i64,
        };
        let commit = self.state.write_commit(parent, &decision)?;
        self.state.advance(which, parent, commit, "decision")?;
        Ok(commit)
    }

    fn bytes(&self) -> anyhow::Result<u64> {
        bytes_below(&self.repository.bare().join("objects"))
    }
}

/// The sizes of all files below a folder.
fn bytes_below(folder: &Path) -> anyhow::Result<u64> {
    let mut bytes = 0;
    for entry in fs::read_dir(folder).with_context(|| format!("failed to read {}", folder.display()))? {
        let entry = entry?;
        bytes += match entry.file_type()?.is_dir() {
            true => bytes_below(&entry.path())?,
            false => entry.metadata()?.len(),
        };
    }
    Ok(bytes)
}
