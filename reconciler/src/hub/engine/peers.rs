//! Clusters that are connected to other hubs over the same state: heard of there, they are not silent here.

use std::collections::BTreeMap;
use std::sync::Arc;

use render::ClusterName;
use render::capacity::Capacity;

use super::clusters::ClusterState;
use super::state::State;
use crate::wire::Report;

/// Other hub → whether it is there, and what it told of clusters.
#[derive(Clone, Debug, Default)]
pub(super) struct Peers(BTreeMap<String, OfHub>);

#[derive(Clone, Debug, Default)]
struct OfHub {
    is_there: bool,
    /// Those that are connected to it, and since when; `None` before it told, or was waited for long enough.
    clusters: Option<BTreeMap<ClusterName, i64>>,
}

impl Peers {
    /// Whether each of them has told, or was waited for long enough.
    pub(super) fn have_told(&self) -> bool {
        self.0.values().all(|hub| hub.clusters.is_some())
    }

    /// Since when a cluster is heard of by another hub.
    pub(super) fn heard_since(&self, cluster: &ClusterName) -> Option<i64> {
        let told = self.0.values().filter_map(|hub| hub.clusters.as_ref());
        told.filter_map(|clusters| clusters.get(cluster)).min().copied()
    }

    /// Whether there are no others.
    pub(super) fn are_none(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether all of them are there, and this holds of each.
    pub(super) fn are_there(&self, each: impl Fn(&str) -> bool) -> bool {
        self.0.iter().all(|(peer, hub)| hub.is_there && each(peer))
    }

    fn set(&mut self, peer: &str, is_there: bool, clusters: BTreeMap<ClusterName, i64>) {
        let clusters = Some(clusters);
        self.0.insert(peer.to_owned(), OfHub { is_there, clusters });
    }
}

impl ClusterState {
    /// Since when its session here stands.
    pub(in crate::hub) fn connected_since(&self) -> Option<i64> {
        self.epoch.and(self.heard_since)
    }

    /// What it said last, whole.
    pub(in crate::hub) fn last_report(&self) -> Option<Report> {
        let (capacity, unknown) = self.room.words();
        Some(Report {
            capacity,
            capacity_unknown: unknown,
            ..self.report.as_deref()?.clone()
        })
    }

    /// Whether this is what it said last.
    pub(in crate::hub) fn said(&self) -> (Option<Arc<Report>>, Option<Arc<Capacity>>) {
        (self.report.clone(), self.room.words().0)
    }
}

impl State {
    /// A hub that hears of clusters from others too: until each of them has told, nobody is silent.
    pub fn with_peers(self, peers: impl IntoIterator<Item = String>) -> Self {
        let peers = peers.into_iter().map(|peer| (peer, OfHub::default()));
        Self {
            peers: Peers(peers.collect()),
            ..self
        }
    }

    /// Whether a cluster is connected, here or to another hub.
    pub fn is_heard(&self, cluster: &ClusterName) -> bool {
        let here = self.clusters.get(cluster).is_some_and(|known| known.epoch.is_some());
        here || self.peers.heard_since(cluster).is_some()
    }

    /// Another hub said which clusters are connected to it, all of them, and what some of them reported.
    pub(super) fn peer_told(
        &mut self,
        peer: &str,
        clusters: BTreeMap<ClusterName, i64>,
        reports: Vec<Report>,
        now: i64,
    ) {
        self.peer_is(peer, true, clusters, now);
        for mut report in reports {
            // What it says here itself is newer.
            let here = self
                .clusters
                .get(&report.cluster)
                .is_none_or(|known| known.epoch.is_some());
            if !here {
                self.take_room(&mut report, now);
                self.reported(report);
            }
        }
    }

    /// Another hub is away, or was waited for long enough: no cluster is connected to it.
    pub(super) fn peer_lost(&mut self, peer: &str, now: i64) {
        self.peer_is(peer, false, BTreeMap::new(), now);
    }

    fn peer_is(&mut self, peer: &str, is_there: bool, clusters: BTreeMap<ClusterName, i64>, now: i64) {
        let waited = !self.peers.have_told();
        // Of a clock that is ahead, or of a hub that lies.
        let clusters = clusters
            .into_iter()
            .map(|(name, since)| (name, since.min(now)))
            .collect();
        let before: Vec<_> = self.clusters.keys().map(|name| self.peers.heard_since(name)).collect();
        self.peers.set(peer, is_there, clusters);
        let names: Vec<_> = self.clusters.keys().cloned().collect();
        let mut fell = waited && self.peers.have_told();
        for (name, before) in names.iter().zip(before) {
            let here = self.clusters.get(name).is_some_and(|known| known.epoch.is_some());
            match (before, self.peers.heard_since(name)) {
                (None, Some(_)) if !here => self.heard_again(name),
                (Some(_), None) if !here => {
                    fell = true;
                    if let Some(known) = self.clusters.get_mut(name) {
                        known.away_since = Some(now);
                    }
                }
                _ => {}
            }
        }
        if fell {
            self.fell_silent(now);
        }
    }
}
