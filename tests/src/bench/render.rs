//! The pure half of a push: from files to a plan.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use render::describe::Description;
use render::load::{LoadMemo, load_with};
use render::plan::{Memo, Reports, Snapshot, plan};
use render::{Digest, Previous, Published, Severity, SourceTree};

use super::corpus::{Corpus, Size};
use super::{Figures, percentile};

const SIZE: Size = Size {
    units: 1_000,
    clusters: 10,
    objects: 5,
    bytes: 4 << 10,
    localized_every: 2,
};
const COLD_REPEATS: usize = 5;
const TOUCHES: usize = 21;

/// Load to plan, cold, and again with one file changed: medians.
pub(super) fn run(figures: &mut Figures) -> anyhow::Result<()> {
    let mut corpus = Corpus::new(SIZE);
    let mut cold = Vec::new();
    let mut planner = Planner::default();
    for _ in 0..COLD_REPEATS {
        planner = Planner::default();
        cold.push(planner.plan(corpus.tree())?.0);
    }
    figures.print_ms("cold_1000_units", percentile(&mut cold, 0.5).context("it was planned")?)?;
    let mut touches = Vec::new();
    for touch in 0..TOUCHES {
        corpus.touch(touch * 37 % SIZE.units);
        let (time, _) = planner.plan(corpus.tree())?;
        ensure!(planner.published.units.len() == SIZE.units, "every unit is in the plan");
        touches.push(time);
    }
    figures.print_ms(
        "touch_one_of_1000",
        percentile(&mut touches, 0.5).context("it was planned")?,
    )
}

/// Descriptions by digest.
pub(super) type Contents = BTreeMap<Digest, Arc<Description>>;

/// What a hub remembers from one plan to the next.
#[derive(Default)]
pub(super) struct Planner {
    load: LoadMemo,
    plan: Memo,
    /// The plan that was made last, as it would be published.
    pub(super) published: Arc<Published>,
}

impl Planner {
    /// Loads and plans a revision on what was planned before, and gives its new contents.
    pub(super) fn plan(&mut self, tree: &SourceTree) -> anyhow::Result<(Duration, Contents)> {
        let started = Instant::now();
        let (fleet, mut findings) = load_with(tree, &Previous::default(), &mut self.load);
        let snapshot = Snapshot {
            revision: tree.revision.clone(),
            fleet: Arc::new(fleet),
            reports: Reports::default(),
            moves: Default::default(),
            chart_previews: Default::default(),
            previous: Arc::clone(&self.published),
            now: 0,
        };
        let plan = plan(&snapshot, &mut self.plan);
        let time = started.elapsed();
        findings.extend(plan.findings.iter().cloned());
        let error = findings.iter().find(|finding| finding.severity == Severity::Error);
        ensure!(error.is_none(), "the fleet of a bench has an error: {error:?}");
        self.published = Arc::new(Published {
            record: None,
            units: plan.units,
        });
        Ok((time, plan.contents))
    }
}
