//! Units that need others on every cluster: they come after those, and leave before them.

use std::collections::BTreeSet;

use super::{Look, Outcome, Wait, WaitReason};
use crate::model::DependencyClusters;
use crate::name::{ClusterName, UnitKey};
use crate::published::{Published, UnitPlacement};

/// The units that must be healthy on every cluster before this one is released.
pub(super) fn needed_everywhere(unit: &UnitPlacement) -> impl Iterator<Item = &UnitKey> {
    let everywhere = unit
        .depends_on
        .iter()
        .filter(|needed| needed.clusters == DependencyClusters::All);
    everywhere.map(|needed| &needed.unit)
}

/// The units that need `unit` everywhere and are to leave a cluster.
fn leaving_with<'a>(
    target: &'a Published,
    released: &'a Published,
    unit: &'a UnitKey,
) -> impl Iterator<Item = &'a UnitKey> {
    let leaves = |key: &UnitKey, present: &UnitPlacement| {
        let stays = |cluster| {
            target
                .units
                .get(key)
                .is_some_and(|wanted| wanted.clusters.contains_key(cluster))
        };
        !present.clusters.keys().all(stays)
    };
    let needing = released.units.iter();
    let needing = needing
        .filter(move |(key, present)| needed_everywhere(present).any(|needed| needed == unit) && leaves(key, present));
    needing.map(|(key, _)| key)
}

impl Look<'_> {
    /// What a new content of a unit that needs these everywhere has to wait for.
    pub(super) fn comes_after<'u>(&self, mut needed: impl Iterator<Item = &'u UnitKey>) -> Option<Wait> {
        needed.find_map(|needed| {
            let unit = self.target.units.get(needed)?;
            unit.clusters.keys().find_map(|cluster| {
                // Where it is suspended it gets no further, and nobody waits for that.
                let suspended = self.suspensions.of(needed, cluster, self.now).is_some();
                let why = self.lacks(needed, unit, cluster).filter(|_| !suspended)?;
                Some((needed.clone(), cluster.clone(), why))
            })
        })
    }

    /// Why a unit is not there yet as the target has it.
    fn lacks(&self, key: &UnitKey, wanted: &UnitPlacement, cluster: &ClusterName) -> Option<WaitReason> {
        let (_, variant) = wanted.entry(cluster)?;
        let told = self.released.units.get(key).and_then(|unit| unit.entry(cluster));
        let is_told = told.is_some_and(|(_, told)| told.digest == variant.digest);
        let seen = self.observed.clusters.get(cluster).and_then(|units| units.get(key));
        match seen
            .filter(|seen| is_told && seen.digest == Some(variant.digest))
            .map(|seen| seen.outcome)
        {
            Some(Outcome::Healthy) => None,
            Some(Outcome::Failed) => Some(WaitReason::Failed),
            Some(Outcome::UnderWay) | None => Some(WaitReason::NotHealthy),
        }
    }

    /// What has to be gone before a unit leaves any cluster.
    pub(super) fn leaves_after(&self, unit: &UnitKey, present: &UnitPlacement) -> Option<Wait> {
        let with = leaving_with(self.target, self.released, unit);
        let mut others = with.chain(&present.removed_after);
        others.find_map(|other| Some((other.clone(), self.still_on(other, present)?, WaitReason::StillThere)))
    }

    /// A cluster that a unit is to leave and has not left yet; a cluster that said nothing may still have it.
    fn still_on(&self, unit: &UnitKey, needed: &UnitPlacement) -> Option<ClusterName> {
        let stays = |cluster: &ClusterName| {
            let wanted = self.target.units.get(unit);
            wanted.is_some_and(|wanted| wanted.clusters.contains_key(cluster))
        };
        let told = self
            .released
            .units
            .get(unit)
            .into_iter()
            .flat_map(|unit| unit.clusters.keys());
        let seen = self
            .observed
            .clusters
            .iter()
            .filter(|(_, units)| units.contains_key(unit));
        let silent = needed
            .clusters
            .keys()
            .filter(|cluster| !self.observed.clusters.contains_key(*cluster));
        let mut all = told.chain(seen.map(|(cluster, _)| cluster)).chain(silent);
        all.find(|cluster| !stays(cluster)).cloned()
    }
}

/// Of what is to leave, notes what has to be gone first: once that left `released`, nothing else says so.
pub(super) fn note(target: &Published, released: &Published, next: &mut Published) {
    for (key, unit) in &mut next.units {
        let wanted = target.units.get(key);
        let stays = |cluster| wanted.is_some_and(|wanted| wanted.clusters.contains_key(cluster));
        if unit.clusters.keys().all(stays) {
            unit.removed_after.clear();
            continue;
        }
        let before = released.units.get(key).map(|unit| unit.removed_after.as_slice());
        let all: BTreeSet<_> = leaving_with(target, released, key)
            .chain(before.unwrap_or_default())
            .collect();
        unit.removed_after = all.into_iter().cloned().collect();
    }
}
