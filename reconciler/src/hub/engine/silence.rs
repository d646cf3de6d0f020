//! Who is silent, and when that is a reason to plan. What follows from it is for `render::schedule` to say.

use std::collections::{BTreeMap, BTreeSet};

use render::schedule::Presence;
use render::{ClusterName, Fleet};

use super::clusters::ClusterState;
use super::peers::Peers;
use super::state::State;

impl ClusterState {
    /// `peers` may hear of it, and whom they may hear of is not known before they told.
    fn presence(&self, name: &ClusterName, peers: &Peers) -> Option<Presence> {
        match self.epoch {
            Some(_) => self.heard_since.map(Presence::HeardSince),
            None => match peers.heard_since(name) {
                Some(since) => Some(Presence::HeardSince(since)),
                None if !peers.have_told() => None,
                None => self.away_since.or(self.awaited_since).map(Presence::SilentSince),
            },
        }
    }
}

impl State {
    /// Since when clusters are silent, or are heard of.
    pub(super) fn presence(&self) -> BTreeMap<ClusterName, Presence> {
        let known = self.clusters.iter();
        known
            .filter_map(|(name, known)| Some((name.clone(), known.presence(name, &self.peers)?)))
            .collect()
    }

    /// Takes in who is registered. Who was told something before this hub heard of it counts as silent from now on, so
    /// that a hub that starts waits for everybody anew; who never was told anything is only new.
    pub(super) fn await_clusters(&mut self, fleet: &Fleet) {
        let is_new = |name: &&ClusterName| !self.clusters.contains_key(*name);
        let new: BTreeSet<&ClusterName> = fleet.clusters.keys().filter(is_new).collect();
        if new.is_empty() {
            return;
        }
        let units = self
            .released
            .iter()
            .flat_map(|released| released.published.units.values());
        let told: BTreeSet<&ClusterName> = units
            .flat_map(|unit| unit.clusters.keys().chain(unit.lost.keys()))
            .collect();
        let awaited = |name: &ClusterName| ClusterState {
            awaited_since: told.contains(name).then_some(self.now),
            ..ClusterState::default()
        };
        let new: Vec<_> = new.into_iter().map(|name| (name.clone(), awaited(name))).collect();
        self.clusters.extend(new);
        self.fell_silent(self.now);
    }

    /// Somebody is silent from now on.
    pub(super) fn fell_silent(&mut self, now: i64) {
        self.behind.fell_silent(now);
        if let Some(patience) = self.patience {
            self.look_again(now.saturating_add(patience));
        }
    }

    /// A cluster is heard of: where units lost it, it is given something again once that has lasted.
    pub(super) fn heard_again(&mut self, cluster: &ClusterName) {
        let policy = self
            .fleet
            .as_ref()
            .and_then(|fleet| fleet.spec.scheduling.failover.as_ref());
        let seconds = policy.map_or(0, |policy| i64::try_from(policy.return_seconds).unwrap_or(i64::MAX));
        let is_lost = self.previous().units.values().any(|unit| unit.loss(cluster).is_some());
        if is_lost {
            self.look_again(self.now.saturating_add(seconds));
        }
    }

    pub(super) fn look_again(&mut self, at: i64) {
        self.again_at = self.again_at.into_iter().chain([at]).min();
    }

    /// Whether the time has come that somebody said.
    pub(super) fn time_due(&self) -> bool {
        self.again_at.is_some_and(|at| self.now >= at)
    }
}
