//! What clusters said of the room they have, and when that is a reason to plan.
//!
//! A report decides nothing by itself: it is looked at where replicas found no place before, or where a commit places
//! some. What is placed stays, whatever is reported.

use std::collections::BTreeMap;
use std::sync::Arc;

use render::capacity::{Capacity, Resources};
use render::limits::{MOVES_PAUSE_SECONDS, PREDICTION_KEPT_SECONDS};
use render::model::Cluster;
use render::schedule::{self, Reports};
use render::time::rfc3339;
use render::{ClusterName, Revision};

use super::clusters::ClusterState;
use super::state::State;
use crate::wire::Report;

/// What a cluster said of its room.
#[derive(Clone, Debug, Default)]
pub(super) struct Room {
    /// The newest that can be believed, and when it came.
    said: Option<(Arc<Capacity>, i64)>,
    /// Why it is not known by now; empty where it is.
    unknown: String,
}

impl Room {
    /// What it said, as a report says it.
    pub(super) fn words(&self) -> (Option<Arc<Capacity>>, String) {
        let said = self.said.as_ref().map(|(capacity, _)| Arc::clone(capacity));
        (said.filter(|_| self.unknown.is_empty()), self.unknown.clone())
    }

    /// Takes in what a report says of it. Whether anything is other than before.
    fn take(&mut self, report: &mut Report, now: i64) -> bool {
        match report.capacity.take() {
            Some(capacity) => {
                let (before, unknown) = (self.said.take(), std::mem::take(&mut self.unknown));
                match schedule::doubt(&capacity) {
                    None => {
                        let same = unknown.is_empty() && before.is_some_and(|(before, _)| before == capacity);
                        self.said = Some((capacity, now));
                        !same
                    }
                    Some(doubt) => {
                        self.said = before;
                        self.unknown = doubt;
                        self.unknown != unknown
                    }
                }
            }
            None if report.capacity_unknown.is_empty() => false,
            None => {
                let changed = self.unknown != report.capacity_unknown;
                self.unknown.clone_from(&report.capacity_unknown);
                changed
            }
        }
    }
}

impl State {
    /// Takes in what a cluster's report says of its room, and leaves the rest.
    pub(super) fn take_room(&mut self, report: &mut Report, now: i64) {
        if let Some(known) = self.clusters.get_mut(&report.cluster) {
            self.rooms_moved |= known.room.take(report, now);
        }
    }

    /// How many nodes a cluster has that count, and how much of them pods may take, as it said last.
    pub(in crate::hub) fn nodes(&self, cluster: &ClusterName) -> Option<(u64, Resources)> {
        let (capacity, _) = self.clusters.get(cluster)?.room.said.as_ref()?;
        Some((capacity.nodes.count(), capacity.nodes.allocatable()))
    }

    /// What a plan may rely on.
    pub(in crate::hub) fn rooms(&self) -> Reports {
        let said = |(name, known): (&ClusterName, &ClusterState)| {
            let (capacity, at) = known.room.said.clone()?;
            let heard = known.epoch.is_some() || self.peers.heard_since(name).is_some();
            let doubt = match (heard, known.away_since) {
                _ if !known.room.unknown.is_empty() => Some(known.room.unknown.clone()),
                (true, _) => None,
                (false, Some(since)) => Some(format!("it is not heard of since {}", rfc3339(since))),
                (false, None) => Some("it is not heard of".to_owned()),
            };
            Some((name.clone(), schedule::Report { capacity, at, doubt }))
        };
        let unknown = |(name, known): (&ClusterName, &ClusterState)| {
            let why = &known.room.unknown;
            (known.room.said.is_none() && !why.is_empty()).then(|| (name.clone(), why.clone()))
        };
        // What `rendered` says was told as it is only where `released` was made from it.
        let released = self
            .released
            .as_ref()
            .and_then(|released| released.published.record.as_ref());
        let rendered = self.rendered.as_ref().map(|rendered| &rendered.commit);
        let told = released.filter(|record| record.rendered.as_ref() == rendered);
        Reports {
            clusters: self.clusters.iter().filter_map(said).collect(),
            unknown: self.clusters.iter().filter_map(unknown).collect(),
            sequence: told.and_then(|record| record.sequence),
            presence: self.presence(),
            // Whoever plans knows what predictors said.
            predicted: BTreeMap::new(),
            waiting: !self.grace_over && self.lacks_a_room(),
        }
    }

    /// Whether a revision was decided on before, so that a decision on it now has another cause.
    pub(super) fn was_decided(&self, revision: &Revision) -> bool {
        let published = self
            .rendered
            .as_ref()
            .and_then(|rendered| rendered.published.record.as_ref());
        self.decided.as_ref() == Some(revision) || published.is_some_and(|record| record.source == *revision)
    }

    /// Whether nothing that a revision says waits for a merge.
    pub(super) fn is_merged(&self, revision: &Revision) -> bool {
        let rendered = self.rendered.as_ref();
        let published = rendered.and_then(|rendered| rendered.published.record.as_ref());
        self.merged.as_ref() == Some(revision) || published.is_some_and(|record| record.source == *revision)
    }

    /// Whether a registered cluster has not said yet what room it has.
    fn lacks_a_room(&self) -> bool {
        let said = |name: &ClusterName| self.clusters.get(name).is_some_and(|known| known.room.said.is_some());
        let has = |(name, cluster): (&ClusterName, &Cluster)| cluster.predictor.is_some() || said(name);
        let fleet = self.fleet.as_ref();
        fleet.is_none_or(|fleet| !fleet.clusters.iter().all(has))
    }

    /// Whether what was reported since the last plan may place what it left.
    pub(super) fn room_due(&self) -> bool {
        self.rooms_moved && self.next_moves().any(|at| at.is_none_or(|at| self.now >= at))
    }

    /// When what predictors said is too old: whatever still waits for room is asked about again.
    pub(super) fn next_prediction(&self) -> Option<i64> {
        let ages = self.asked_at.map(|at| at + PREDICTION_KEPT_SECONDS);
        ages.filter(|_| !self.by_room.is_empty())
    }

    /// Looks again at what waits for room, where what predictors said is too old.
    pub(super) fn predictions_aged(&mut self) {
        if self.next_prediction().is_some_and(|at| self.now >= at) {
            self.asked_at = None;
            self.rooms_moved = true;
        }
    }

    /// When room is to be looked at, where it waits for its time.
    pub(super) fn next_room(&self) -> Option<i64> {
        let waits = self.rooms_moved && !self.room_due();
        self.next_moves().flatten().filter(|_| waits).min()
    }

    /// When each unit that waits for room may be moved next; `None` where at once.
    fn next_moves(&self) -> impl Iterator<Item = Option<i64>> {
        let previous = self.previous();
        let moved_at = move |unit| previous.units.get(unit).and_then(|placed| placed.moved_at);
        self.by_room
            .iter()
            .map(move |unit| Some(moved_at(unit)?.saturating_add(MOVES_PAUSE_SECONDS)))
    }
}
