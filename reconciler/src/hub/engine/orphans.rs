//! Units that left clusters and whose objects stay there: what a cluster is told of them, and when that need not be
//! said any more.

use std::collections::{BTreeMap, BTreeSet};

use render::{ClusterName, UnitKey};

use super::State;
use crate::wire::{EnvelopeUnit, Report};

impl State {
    /// The units that left a cluster while their word was that their objects stay, with when they left.
    pub(super) fn orphaned_on(
        &self,
        cluster: &ClusterName,
        listed: &BTreeMap<UnitKey, EnvelopeUnit>,
    ) -> BTreeMap<UnitKey, i64> {
        let released = self.released.as_ref();
        let record = released.and_then(|released| released.published.record.as_ref());
        let orphaned = record.into_iter().flat_map(|record| &record.orphaned);
        let on_cluster = orphaned.filter_map(|(unit, clusters)| Some((unit.clone(), *clusters.get(cluster)?)));
        on_cluster.filter(|(unit, _)| !listed.contains_key(unit)).collect()
    }

    /// Those of them that a cluster was told of and has nothing of any more.
    pub(super) fn let_go(&self) -> BTreeSet<(UnitKey, ClusterName)> {
        let published = self.previous();
        let orphaned = published.record.iter().flat_map(|record| &record.orphaned);
        let pairs = orphaned.flat_map(|(unit, clusters)| clusters.iter().map(move |at| (unit, at)));
        let gone = pairs.filter(|(unit, (cluster, since))| {
            let report = self
                .clusters
                .get(*cluster)
                .and_then(|cluster| cluster.report.as_deref());
            report.is_some_and(|report| has_let_go(report, unit, **since))
        });
        gone.map(|(unit, (cluster, _))| (unit.clone(), cluster.clone()))
            .collect()
    }
}

/// Whether a cluster took the word that belongs to this departure, and has looked since: a report from before the unit
/// came back and left again names another time.
fn has_let_go(report: &Report, unit: &UnitKey, since: i64) -> bool {
    let was_told = report
        .held
        .as_ref()
        .is_some_and(|held| held.orphaned.get(unit) == Some(&since) && !held.units.contains_key(unit));
    // An applier that has not begun yet knows of no unit.
    let has_looked = report.kubernetes_version.is_some() && report.trouble.is_empty();
    was_told && has_looked && !report.units.contains_key(unit)
}
