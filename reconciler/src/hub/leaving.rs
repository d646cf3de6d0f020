//! Units that leave clusters while their word is that their objects stay: what the decision says of them, so that a
//! cluster that is away goes by that word and not by an older one.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use render::guard::Holdings;
use render::model::DeletionPolicy;
use render::published::{Departure, Orphaned, UnitPlacement};
use render::{ClusterName, Digest, Finding, Fleet, Published, Revision, UnitKey};

use super::last_word::LastWords;
use super::source::{Source, SourceError};
use crate::limits::ORPHANED_MAX;

/// What a file that declares a unit has in it.
const KIND: &[u8] = b"Subscription";

/// What decides about the words for units that leave.
pub struct Leaving<'a> {
    /// Where files said so.
    pub source: &'a Source,
    /// What is decided on.
    pub fleet: &'a Fleet,
    /// What is published now.
    pub previous: &'a Published,
    /// The revision that was made from, where there is one.
    pub decided: Option<&'a Revision>,
    /// What is to be published.
    pub units: &'a BTreeMap<UnitKey, UnitPlacement>,
    /// The newest revision that was planned before, where that is known.
    pub accepted: Option<&'a Revision>,
    /// Clusters whose file is gone, and that are known.
    pub departed: &'a BTreeMap<ClusterName, Departure>,
    /// What a published content has.
    pub holdings: &'a dyn Fn(&Digest) -> Option<Arc<Holdings>>,
    /// Words that a cluster heard and needs no more.
    pub let_go: &'a BTreeSet<(UnitKey, ClusterName)>,
}

impl Leaving<'_> {
    /// The words as a decision records them: those from before that are still needed, and those of what leaves now;
    /// with a Warning where the oldest had to go.
    pub fn orphaned(&self) -> Result<(Orphaned, Option<Finding>), SourceError> {
        let now = self.source.commit_seconds(&self.fleet.revision).unwrap_or_default();
        let mut orphaned = self.carried(now);
        for (unit, clusters) in self.leaving_orphans()? {
            let at = orphaned.entry(unit).or_default();
            at.extend(clusters.into_iter().map(|cluster| (cluster, now)));
        }
        let lost = bound(&mut orphaned, ORPHANED_MAX);
        Ok((orphaned, (lost > 0).then(|| too_many(lost))))
    }

    fn is_placed(&self, unit: &UnitKey, cluster: &ClusterName) -> bool {
        let placed = self.units.get(unit);
        placed.is_some_and(|placed| placed.clusters.contains_key(cluster))
    }

    fn carried(&self, now: i64) -> Orphaned {
        let mut orphaned = self
            .previous
            .record
            .as_ref()
            .map(|record| record.orphaned.clone())
            .unwrap_or_default();
        for (unit, clusters) in &mut orphaned {
            clusters.retain(|cluster, since| {
                let is_known = self.fleet.clusters.contains_key(cluster) || self.departed.contains_key(cluster);
                let is_young = now.saturating_sub(*since) < Departure::SECONDS_MAX;
                let is_done = self.let_go.contains(&(unit.clone(), cluster.clone()));
                is_known && is_young && !is_done && !self.is_placed(unit, cluster)
            });
        }
        orphaned.retain(|_, clusters| !clusters.is_empty());
        orphaned
    }

    /// The units that leave clusters now and whose newest word is that their objects stay.
    fn leaving_orphans(&self) -> Result<BTreeMap<UnitKey, BTreeSet<ClusterName>>, SourceError> {
        let mut leaving: BTreeMap<UnitKey, BTreeSet<ClusterName>> = BTreeMap::new();
        for (unit, placement) in &self.previous.units {
            for cluster in placement.clusters.keys().filter(|at| !self.is_placed(unit, at)) {
                leaving.entry(unit.clone()).or_default().insert(cluster.clone());
            }
        }
        let (declared, removed): (BTreeMap<_, _>, BTreeMap<_, _>) = leaving
            .into_iter()
            .partition(|(unit, _)| self.fleet.units.contains_key(unit));
        let mut orphans = declared;
        orphans.retain(|unit, _| policy(self.fleet, unit) == Some(DeletionPolicy::Orphan));
        orphans.extend(self.removed_orphans(removed)?);
        Ok(orphans)
    }

    /// Of units whose Subscription is gone: what it said last; else what is published says.
    fn removed_orphans(
        &self,
        mut removed: BTreeMap<UnitKey, BTreeSet<ClusterName>>,
    ) -> Result<BTreeMap<UnitKey, BTreeSet<ClusterName>>, SourceError> {
        let mut orphans = BTreeMap::new();
        let last = |decided| {
            let words = LastWords {
                source: self.source,
                head: &self.fleet.revision,
                decided,
                accepted: self.accepted,
                kind: KIND,
            };
            words.find(removed.keys().cloned().collect(), policy)
        };
        let last = self.decided.map(last).transpose()?;
        for (unit, fleet) in last.unwrap_or_default() {
            if let Some(clusters) = removed.remove(&unit)
                && policy(&fleet, &unit) == Some(DeletionPolicy::Orphan)
            {
                orphans.insert(unit, clusters);
            }
        }
        let published = removed.into_iter().filter_map(|(unit, mut clusters)| {
            let placement = self.previous.units.get(&unit)?;
            clusters.retain(|cluster| {
                let digest = placement.entry(cluster).map(|(_, variant)| variant.digest);
                let held = digest.and_then(|digest| (self.holdings)(&digest));
                held.is_some_and(|held| held.orphan)
            });
            (!clusters.is_empty()).then_some((unit, clusters))
        });
        orphans.extend(published);
        Ok(orphans)
    }
}

fn policy(fleet: &Fleet, unit: &UnitKey) -> Option<DeletionPolicy> {
    Some(fleet.units.get(unit)?.subscription.apply.deletion)
}

/// Takes the oldest away, so that no more than `most` are left; how many.
fn bound(orphaned: &mut Orphaned, most: usize) -> usize {
    let count = orphaned.values().map(BTreeMap::len).sum::<usize>();
    let beyond = count.saturating_sub(most);
    if beyond == 0 {
        return 0;
    }
    let mut all: Vec<_> = orphaned
        .iter()
        .flat_map(|(unit, clusters)| {
            clusters
                .iter()
                .map(move |(at, since)| (*since, unit.clone(), at.clone()))
        })
        .collect();
    all.sort();
    for (_, unit, cluster) in all.into_iter().take(beyond) {
        if let Some(clusters) = orphaned.get_mut(&unit) {
            clusters.remove(&cluster);
        }
    }
    orphaned.retain(|_, clusters| !clusters.is_empty());
    beyond
}

fn too_many(lost: usize) -> Finding {
    let message = format!(
        "more than {ORPHANED_MAX} words about units that left clusters and stay are kept; the oldest {lost} are forgotten, and clusters that are away since then go by what they were told"
    );
    Finding::warning("OrphansForgotten", message)
        .hint("bring those clusters back, or remove their files, before more units leave with deletionPolicy: Orphan")
}

#[cfg(test)]
mod tests;
