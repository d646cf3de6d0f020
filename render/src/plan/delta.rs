//! What a plan changes, unit by unit and cluster by cluster.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use crate::by_object::ByObject;
use crate::digest::Digest;
use crate::model::DriftMode;
use crate::name::{ClusterName, ObjectKey, UnitKey, VariantName};
use crate::published::{UnitPlacement, Unplaced};

/// One unit's changes. Only units that change have one.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Delta {
    /// Whose.
    pub unit: UnitKey,
    /// Clusters whose share changes, sorted by name; not empty.
    pub clusters: Vec<ClusterDelta>,
}

/// How many replicas of an object find no place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct UnplacedChange {
    /// Before; `None` where all of them had one.
    pub from: Option<Unplaced>,
    /// After.
    pub to: Option<Unplaced>,
}

/// One cluster's change.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ClusterDelta {
    /// Which cluster.
    pub cluster: ClusterName,
    /// What it has; `None`: the unit is new there.
    pub from: Option<Share>,
    /// What it gets; `None`: the unit leaves it.
    pub to: Option<Share>,
}

/// Clusters that change alike.
#[derive(Clone, Debug, PartialEq)]
pub struct Alike {
    /// Which, sorted by name; not empty.
    pub clusters: Vec<ClusterName>,
    /// What they have.
    pub from: Option<Share>,
    /// What they get.
    pub to: Option<Share>,
}

impl Delta {
    /// The clusters that change alike, together, in the order of the first of each.
    pub fn alike(&self) -> Vec<Alike> {
        let mut all: Vec<Alike> = Vec::new();
        for ClusterDelta { cluster, from, to } in &self.clusters {
            match all.iter_mut().find(|alike| alike.from == *from && alike.to == *to) {
                Some(alike) => alike.clusters.push(cluster.clone()),
                None => all.push(Alike {
                    clusters: vec![cluster.clone()],
                    from: from.clone(),
                    to: to.clone(),
                }),
            }
        }
        all
    }
}

/// What a cluster has of a unit.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Share {
    /// Its variant.
    pub variant: VariantName,
    /// The variant's content.
    pub digest: Digest,
    /// Its replicas, where they are divided.
    #[serde(skip_serializing_if = "ByObject::is_empty")]
    pub replicas: ByObject,
    /// What is done there about fields that somebody else changed.
    #[serde(skip_serializing_if = "DriftMode::is_default")]
    pub drift: DriftMode,
}

/// The changes from one set of placements to another, sorted by unit. Reasons and revisions alone are no
/// change.
pub fn deltas(from: &BTreeMap<UnitKey, UnitPlacement>, to: &BTreeMap<UnitKey, UnitPlacement>) -> Vec<Delta> {
    let units: BTreeSet<_> = from.keys().chain(to.keys()).collect();
    let delta = |unit: &&UnitKey| {
        let clusters = cluster_deltas(from.get(*unit), to.get(*unit));
        (!clusters.is_empty()).then(|| Delta {
            unit: (*unit).clone(),
            clusters,
        })
    };
    units.iter().filter_map(delta).collect()
}

fn cluster_deltas(from: Option<&UnitPlacement>, to: Option<&UnitPlacement>) -> Vec<ClusterDelta> {
    if from == to {
        return Vec::new();
    }
    let names = |unit: Option<&UnitPlacement>| unit.map(|unit| unit.clusters.keys().cloned().collect());
    let mut clusters: BTreeSet<ClusterName> = names(from).unwrap_or_default();
    clusters.extend(names(to).unwrap_or_else(BTreeSet::new));
    let share = |unit: Option<&UnitPlacement>, cluster: &ClusterName| {
        let (placement, variant) = unit?.entry(cluster)?;
        let (variant, digest) = (placement.variant.plain(), variant.digest);
        Some(Share {
            variant,
            digest,
            replicas: placement.replicas.clone(),
            drift: placement.drift,
        })
    };
    let delta = |cluster: ClusterName| {
        let (from, to) = (share(from, &cluster), share(to, &cluster));
        (from != to).then_some(ClusterDelta { cluster, from, to })
    };
    clusters.into_iter().filter_map(delta).collect()
}

/// The units of which another number of replicas finds no place. A unit that leaves has none.
pub fn unplaced_changes(
    from: &BTreeMap<UnitKey, UnitPlacement>,
    to: &BTreeMap<UnitKey, UnitPlacement>,
) -> BTreeMap<UnitKey, BTreeMap<ObjectKey, UnplacedChange>> {
    let mut units: BTreeMap<UnitKey, BTreeMap<ObjectKey, UnplacedChange>> = BTreeMap::new();
    for (unit, after) in to {
        let before = from.get(unit).map(|before| &before.unplaced);
        let objects = before
            .into_iter()
            .flatten()
            .chain(&after.unplaced)
            .map(|(object, _)| object);
        for object in objects.collect::<BTreeSet<_>>() {
            let change = UnplacedChange {
                from: before.and_then(|before| before.get(object)).copied(),
                to: after.unplaced.get(object).copied(),
            };
            if change.from != change.to {
                units.entry(unit.clone()).or_default().insert(object.clone(), change);
            }
        }
    }
    units
}
