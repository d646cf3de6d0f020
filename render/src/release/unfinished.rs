//! Clusters that got more of a unit and were not healthy with it yet: nobody relies on what they got.
//!
//! `released` says so while others wait for them. Whoever releases remembers the rest here, for a later target by which
//! others are to get less.

use std::collections::BTreeMap;

use super::in_turn::{Telling, Word, is_shared};
use super::{Outcome, Seen};
use crate::by_object::ByObject;
use crate::name::{ClusterName, UnitKey};
use crate::published::{Awaited, Published, UnitPlacement};

/// What a hub remembers of the releases that it made.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Unfinished {
    clusters: BTreeMap<ClusterName, BTreeMap<UnitKey, Gained>>,
}

/// What a cluster got of a unit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Gained {
    /// When it was told.
    pub(super) awaited: Awaited,
    /// Object → the replicas that it had before; `None` where it had nothing of the unit.
    pub(super) had: Option<ByObject>,
}

impl Unfinished {
    /// Takes in what clusters are told from now on, in seconds since 1970.
    pub fn told(&mut self, before: &Published, next: &Published, now: i64) {
        let at = Awaited::after(before, now);
        let nothing = UnitPlacement::default();
        for (key, unit) in next.units.iter().filter(|(_, unit)| is_shared(unit)) {
            let before = before.units.get(key).unwrap_or(&nothing);
            if before == unit {
                continue;
            }
            let telling = Telling { before, unit, at };
            for cluster in unit.clusters.keys() {
                self.note(key, cluster, &telling);
            }
        }
    }

    fn note(&mut self, key: &UnitKey, cluster: &ClusterName, telling: &Telling<'_>) {
        match telling.to(cluster) {
            Word::More => {
                let had = telling.before.clusters.get(cluster);
                let had = had.map(|had| had.replicas.clone());
                let units = self.clusters.entry(cluster.clone()).or_default();
                let awaited = telling.at;
                units.insert(key.clone(), Gained { awaited, had });
            }
            Word::Other => {
                let gained = self.clusters.get_mut(cluster).and_then(|units| units.get_mut(key));
                if let Some(gained) = gained {
                    gained.awaited = gained.awaited.told(telling.at);
                }
            }
            Word::Same => {}
        }
    }

    /// Whether anything of a cluster is not finished.
    pub fn has(&self, cluster: &ClusterName) -> bool {
        self.clusters.contains_key(cluster)
    }

    /// Takes in what a cluster says of its units: what is healthy there as it was told is finished, and so is what it is
    /// not to have any more.
    pub fn said(&mut self, cluster: &ClusterName, seen: &BTreeMap<UnitKey, Seen>, released: &Published) {
        let Some(mut units) = self.clusters.remove(cluster) else {
            return;
        };
        units.retain(|key, gained| {
            let told = released.units.get(key).and_then(|unit| unit.entry(cluster));
            let is_healthy =
                |seen: &Seen, told| seen.outcome == Outcome::Healthy && seen.is_about(told, gained.awaited.sequence);
            told.is_some_and(|(_, told)| !seen.get(key).is_some_and(|seen| is_healthy(seen, told)))
        });
        if !units.is_empty() {
            self.clusters.insert(cluster.clone(), units);
        }
    }

    pub(super) fn of(&self, unit: &UnitKey, cluster: &ClusterName) -> Option<&Gained> {
        self.clusters.get(cluster)?.get(unit)
    }
}
