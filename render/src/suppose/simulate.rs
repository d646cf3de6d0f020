//! What differs if it were so.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde::Serialize;

use super::{NoSuch, Supposition, suppose};
use crate::by_object::ByObject;
use crate::explain::{self, explain};
use crate::finding::Finding;
use crate::fleet::Fleet;
use crate::localize;
use crate::name::{ClusterName, ObjectKey, UnitKey};
use crate::plan::{Memo, Overridden, Snapshot, UnplacedChange, plan, unplaced_changes};
use crate::published::{Placement, Published, UnitPlacement};
use crate::schedule::{Inventory as _, Reports};

/// What differs, as data only.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Simulation {
    /// Units of which anything differs, sorted.
    pub units: Vec<UnitShift>,
    /// What would be wrong and is not now, sorted.
    pub findings: Vec<Finding>,
}

impl Simulation {
    /// Whether all would be as it is.
    pub fn is_nothing(&self) -> bool {
        self.units.is_empty() && self.findings.is_empty()
    }
}

/// What differs of a unit.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct UnitShift {
    /// Which.
    pub unit: UnitKey,
    /// Clusters on which it differs, sorted.
    pub clusters: Vec<ClusterShift>,
    /// Divided objects of which another number finds no place.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub unplaced: BTreeMap<ObjectKey, UnplacedChange>,
}

/// What differs of a unit on a cluster.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ClusterShift {
    /// Which.
    pub cluster: ClusterName,
    /// The replicas of its objects now; `None` where it has not the unit.
    pub from: Option<ByObject>,
    /// The replicas then.
    pub to: Option<ByObject>,
    /// Whether other overrides make what it has.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub other_overrides: bool,
    /// Why it has it then, and so many; or why it has it no more.
    pub reasons: Vec<String>,
}

/// Plans the snapshot, and on that plan the same fleet as it is supposed. What is placed by the first plan counts as placed,
/// so that what differs is due to the suppositions alone.
///
/// # Errors
///
/// As [`suppose`].
pub fn simulate(snapshot: &Snapshot, suppositions: &[Supposition]) -> Result<Simulation, NoSuch> {
    // Nobody waits in a question.
    let reports = Reports {
        waiting: false,
        ..snapshot.reports.clone()
    };
    let (fleet, supposed) = suppose(&snapshot.fleet, &reports, suppositions)?;
    let now = Snapshot {
        reports,
        ..snapshot.clone()
    };
    let before = plan(&now, &mut Memo::default());
    let published = Arc::new(Published {
        record: snapshot.previous.record.clone(),
        units: before.units,
    });
    let then = Snapshot {
        fleet: Arc::new(fleet),
        // No cluster has heard of what was just planned: whatever it has not counted is deducted.
        reports: Reports {
            sequence: None,
            ..supposed
        },
        previous: Arc::clone(&published),
        ..snapshot.clone()
    };
    let after = plan(&then, &mut Memo::default());
    let mut unplaced = unplaced_changes(&published.units, &after.units);
    let units: BTreeSet<&UnitKey> = published.units.keys().chain(after.units.keys()).collect();
    let overrides = [localize::Index::new(&snapshot.fleet), localize::Index::new(&then.fleet)];
    let mut shift = |unit: &UnitKey| {
        let from = shares(&snapshot.fleet, &overrides[0], (unit, published.units.get(unit)));
        let to = shares(&then.fleet, &overrides[1], (unit, after.units.get(unit)));
        let mut clusters = differing(from, to);
        for gone in clusters.iter_mut().filter(|shift| shift.to.is_none()) {
            gone.reasons = leaving(&then, unit, &gone.cluster);
        }
        let unplaced = unplaced.remove(unit).unwrap_or_default();
        let differs = !clusters.is_empty() || !unplaced.is_empty();
        differs.then(|| UnitShift {
            unit: unit.clone(),
            clusters,
            unplaced,
        })
    };
    Ok(Simulation {
        units: units.into_iter().filter_map(&mut shift).collect(),
        findings: after
            .findings
            .into_iter()
            .filter(|finding| !before.findings.contains(finding))
            .collect(),
    })
}

/// What a cluster has of a unit.
struct Share {
    replicas: ByObject,
    /// What made its content other than the Base.
    overrides: Vec<String>,
    reasons: Vec<String>,
}

fn shares(
    fleet: &Fleet,
    overrides: &localize::Index<'_>,
    (key, placement): (&UnitKey, Option<&UnitPlacement>),
) -> BTreeMap<ClusterName, Share> {
    let (Some(unit), Some(placement)) = (fleet.units.get(key), placement) else {
        return BTreeMap::new();
    };
    let touching = overrides.touching(&unit.base);
    let inventory = Overridden::new(unit, &touching);
    let share = |(name, placed): (&ClusterName, &Placement)| {
        let (_, variant) = placement.entry(name)?;
        let mut replicas = placed.replicas.clone();
        if let Some(cluster) = fleet.clusters.get(name) {
            for (object, workload) in inventory.workloads(cluster).iter() {
                if !replicas.contains_key(object) {
                    replicas.insert(object.clone(), workload.replicas);
                }
            }
        }
        let share = Share {
            replicas,
            overrides: variant.overrides.clone(),
            reasons: placed.reasons.to_vec(),
        };
        Some((name.clone(), share))
    };
    placement.clusters.iter().filter_map(share).collect()
}

fn differing(mut from: BTreeMap<ClusterName, Share>, mut to: BTreeMap<ClusterName, Share>) -> Vec<ClusterShift> {
    let names: BTreeSet<ClusterName> = from.keys().chain(to.keys()).cloned().collect();
    let shift = |cluster: ClusterName| {
        let (from, to) = (from.remove(&cluster), to.remove(&cluster));
        let numbers = [&from, &to].map(|share| share.as_ref().map(|share| &share.replicas));
        let same_numbers = numbers[0] == numbers[1];
        let differs = |(from, to): (&Share, &Share)| from.overrides != to.overrides;
        let other_overrides = same_numbers && from.as_ref().zip(to.as_ref()).is_some_and(differs);
        (!same_numbers || other_overrides).then(|| ClusterShift {
            cluster,
            other_overrides,
            from: from.map(|share| share.replicas),
            reasons: to.as_ref().map(|share| share.reasons.clone()).unwrap_or_default(),
            to: to.map(|share| share.replicas),
        })
    };
    names.into_iter().filter_map(shift).collect()
}

/// Why a cluster has a unit no more.
fn leaving(then: &Snapshot, unit: &UnitKey, cluster: &ClusterName) -> Vec<String> {
    if !then.fleet.clusters.contains_key(cluster) {
        return vec!["the cluster is lost".to_owned()];
    }
    let looking = explain::Context {
        fleet: &then.fleet,
        published: &then.previous,
        findings: &[],
        reports: &then.reports,
        now: then.now,
    };
    let explained = explain(&looking, unit, Some(cluster));
    let explained = explained.into_iter().flat_map(|explained| explained.clusters);
    explained
        .flat_map(|cluster| {
            let unmet = cluster.subscribers.into_iter().flat_map(|subscriber| {
                let position = subscriber.position;
                subscriber
                    .unmet
                    .into_iter()
                    .map(move |unmet| format!("subscriber {position}: {unmet}"))
            });
            cluster.reasons.into_iter().chain(unmet)
        })
        .collect()
}
