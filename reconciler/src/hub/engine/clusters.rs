//! What clusters said of themselves and of their units, and who of them is there.

use std::collections::BTreeMap;
use std::sync::Arc;

use render::chart::Capabilities;
use render::describe::is_chart;
use render::release::{Observed, Outcome, Seen, next_end};
use render::{ClusterName, UnitKey};

use super::event::Effect;
use super::rooms::Room;
use super::state::{State, StateCommit};
use crate::wire::{Health, Held, Report, UnitReport, UnitState};

/// What is known of a cluster.
#[derive(Clone, Debug, Default)]
pub struct ClusterState {
    /// Its session, while it stands.
    pub epoch: Option<u64>,
    /// When its last session ended, in seconds since 1970; `None` while one stands, and before the first.
    pub away_since: Option<i64>,
    /// When its session began, while one stands.
    pub(super) heard_since: Option<i64>,
    /// Since when it is waited for, where it was told something before this hub heard of it.
    pub(super) awaited_since: Option<i64>,
    /// What it said last.
    pub report: Option<Arc<Report>>,
    /// When that was, in seconds since 1970.
    pub reported_at: i64,
    /// What it said of its version and kinds.
    pub(super) capabilities: Option<Arc<Capabilities>>,
    /// What it said of the room it has.
    pub(super) room: Room,
}

impl ClusterState {
    fn says_the_same(&self, report: &Report) -> bool {
        let before = self.report.as_deref();
        before.is_some_and(|before| {
            before.kubernetes_version == report.kubernetes_version && before.api_versions == report.api_versions
        })
    }
}

fn outcome(unit: &UnitReport) -> Outcome {
    match (unit.state, unit.health) {
        (UnitState::Failed, _) | (_, Health::Failed) => Outcome::Failed,
        (UnitState::Applied, Health::Current) => Outcome::Healthy,
        _ => Outcome::UnderWay,
    }
}

impl State {
    /// What registered clusters said last of their units, as far as it is about this lineage.
    pub(super) fn observed(&self) -> Observed {
        let said = self.clusters.iter().filter(|(cluster, _)| self.is_registered(cluster));
        let clusters = said.filter_map(|(cluster, known)| Some((cluster.clone(), self.seen(known.report.as_ref()?)?)));
        Observed {
            clusters: clusters.collect(),
            holdings: self.holdings.clone(),
            unfinished: Arc::clone(&self.unfinished),
            move_seconds: self.move_seconds(),
        }
    }

    /// What a cluster says of its units, also those that it is still removing; `None` while it cannot say what it holds.
    fn seen(&self, report: &Report) -> Option<BTreeMap<UnitKey, Seen>> {
        let held = report.held.as_ref();
        let held = held.filter(|held| self.is_own_lineage(&held.lineage));
        // A result of another lineage would count from another beginning.
        let sequence = held.and_then(|held| report.applied_sequence.filter(|applied| *applied <= held.sequence));
        let seen = |digest, outcome| Seen {
            digest,
            sequence,
            outcome,
        };
        let units = held.into_iter().flat_map(|held| &held.units);
        let mut units: BTreeMap<_, _> = units
            .map(|(key, unit)| (key.clone(), seen(Some(unit.digest), Outcome::UnderWay)))
            .collect();
        for (key, unit) in &report.units {
            let is_present = match unit.digest {
                // A result about an older content says nothing of the one that is held.
                Some(digest) => units.get(key).is_some_and(|held| held.digest == Some(digest)),
                // What is kept for good is nobody's work any more.
                None => unit.counts.removing > 0,
            };
            if is_present {
                units.insert(key.clone(), seen(unit.digest, outcome(unit)));
            }
        }
        report.held_read.then_some(units)
    }

    /// After so many seconds a cluster that got more of a unit is not waited for any more.
    fn move_seconds(&self) -> Option<u64> {
        self.fleet.as_ref()?.spec.scheduling.move_timeout_seconds
    }

    /// When a cluster will have been waited for long enough, in seconds since 1970.
    pub(super) fn next_move_end(&self) -> Option<i64> {
        let released = self.released.as_ref()?;
        next_end(&released.published, self.move_seconds()?, self.now)
    }

    /// Remembers who was told to have more than before.
    pub(super) fn note_told(&mut self, before: &StateCommit, now: i64) {
        if let Some(released) = &self.released {
            Arc::make_mut(&mut self.unfinished).told(&before.published, &released.published, now);
        }
    }

    /// Forgets who is healthy with what it was told.
    fn note_finished(&mut self, report: &Report) {
        let Some(released) = self.released.as_ref().filter(|_| self.unfinished.has(&report.cluster)) else {
            return;
        };
        if let Some(units) = self.seen(report) {
            Arc::make_mut(&mut self.unfinished).said(&report.cluster, &units, &released.published);
        }
    }

    /// Whether a cluster holds the newest sequence with another list, as after a `released` that was rewound
    /// and written on: it refuses that sequence for good.
    fn is_contradicted_by(&self, cluster: &ClusterName, held: &Held) -> bool {
        let same_place = |released: &StateCommit| {
            held.released != released.commit
                && held.lineage == released.lineage
                && Some(held.sequence) == self.released_sequence()
        };
        self.released.as_ref().is_some_and(same_place)
            && self
                .envelope(cluster)
                .is_some_and(|envelope| envelope.list != held.list)
    }

    /// Whether a registered cluster has not said yet what it holds. Before a fleet is known, any may.
    pub(super) fn has_silent_cluster(&self) -> bool {
        let spoke = |cluster: &ClusterState| cluster.report.as_ref().is_some_and(|report| report.held_read);
        let silent = |name| !self.clusters.get(name).is_some_and(spoke);
        self.fleet
            .as_ref()
            .is_none_or(|fleet| fleet.clusters.keys().any(silent))
    }

    pub(super) fn connected(&mut self, cluster: ClusterName, epoch: u64) -> Vec<Effect> {
        if !self.is_known(&cluster) {
            return vec![Effect::Disconnect(cluster)];
        }
        let known = self.clusters.entry(cluster.clone()).or_default();
        if known.epoch.is_none_or(|standing| epoch >= standing) {
            // A session that takes over from one that stands is no silence.
            known.heard_since = known.heard_since.filter(|_| known.epoch.is_some()).or(Some(self.now));
            known.epoch = Some(epoch);
            known.away_since = None;
        }
        self.heard_again(&cluster);
        vec![Effect::Dispatch(cluster)]
    }

    pub(super) fn disconnected(&mut self, cluster: &ClusterName, epoch: u64, now: i64) {
        if let Some(known) = self.clusters.get_mut(cluster)
            && known.epoch == Some(epoch)
        {
            known.epoch = None;
            known.heard_since = None;
            known.away_since = Some(now);
            self.fell_silent(now);
        }
    }

    pub(super) fn reported(&mut self, report: Report) {
        let contradicts = |held| self.is_contradicted_by(&report.cluster, held);
        self.contradicted |= report.held.as_ref().is_some_and(contradicts);
        let has_charts = self.has_charts();
        self.note_finished(&report);
        if let Some(known) = self.clusters.get_mut(&report.cluster) {
            if !known.says_the_same(&report) {
                known.capabilities = capabilities(&report).map(Arc::new);
                // What its charts bring may be other objects now, without a commit.
                self.predictions_moved |= has_charts;
            }
            // What was put right before the first report is of another time, which nobody can date.
            if let Some(before) = &known.report {
                self.corrections = self.corrections.and(report.corrections.since(before.corrections));
                self.agents = self.agents.and(report.agent.since(before.agent));
            }
            known.report = Some(Arc::new(report));
            known.reported_at = self.now;
        }
    }

    /// What clusters said of themselves; those that said nothing are not there.
    pub(in crate::hub) fn capabilities(&self) -> BTreeMap<ClusterName, Arc<Capabilities>> {
        let said = |(name, cluster): (&ClusterName, &ClusterState)| Some((name.clone(), cluster.capabilities.clone()?));
        self.clusters.iter().filter_map(said).collect()
    }

    fn has_charts(&self) -> bool {
        let units = self.fleet.iter().flat_map(|fleet| fleet.units.values());
        units
            .flat_map(|unit| &unit.base.objects)
            .any(|object| is_chart(&object.key))
    }
}

/// What a cluster said of itself: all of it, or nothing that a prediction could be made on.
fn capabilities(report: &Report) -> Option<Capabilities> {
    let kubernetes_version = report.kubernetes_version.clone()?;
    (!report.api_versions.is_empty()).then(|| Capabilities::new(kubernetes_version, report.api_versions.clone()))
}
