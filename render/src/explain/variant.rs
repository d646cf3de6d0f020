//! What the overrides of each variant change.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::Serialize;

use crate::finding::Finding;
use crate::fleet::{Fleet, Unit};
use crate::localize::{self, Traced};
use crate::model::{Cluster, Override, Scheduling};
use crate::name::{ClusterName, VariantName};

/// A variant, and what makes it differ from the Base.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct VariantExplanation {
    /// Its name.
    pub variant: VariantName,
    /// The clusters that meet its overrides, sorted.
    pub clusters: Vec<ClusterName>,
    /// Its overrides in the order in which they apply, by label.
    pub overrides: Vec<String>,
    /// What each of their steps does, in that order.
    pub steps: Vec<Traced>,
}

impl VariantExplanation {
    /// The steps that do not fit, as findings of the first of its clusters.
    pub(super) fn problems(&self) -> Vec<Finding> {
        let named = |finding: &Finding| match self.clusters.first() {
            Some(cluster) => finding.clone().cluster(cluster),
            None => finding.clone(),
        };
        self.steps
            .iter()
            .filter_map(|step| step.problem.as_ref())
            .map(named)
            .collect()
    }
}

/// The variants of these clusters, each traced once, sorted by name.
pub(super) fn explain<'a>(
    fleet: &Fleet,
    unit: &Unit,
    clusters: impl Iterator<Item = &'a Cluster>,
) -> Vec<VariantExplanation> {
    let index = localize::Index::new(fleet);
    let touching = index.touching(&unit.base);
    let divided = matches!(unit.subscription.scheduling, Scheduling::Dividing(_));
    let mut sets: BTreeMap<VariantName, (Vec<&Arc<Override>>, Vec<ClusterName>)> = BTreeMap::new();
    for cluster in clusters {
        let overrides = touching.for_cluster(cluster);
        let name = localize::variant_name(&overrides);
        let (_, names) = sets.entry(name).or_insert_with(|| (overrides, Vec::new()));
        names.push(cluster.name.clone());
    }
    let explained = |(variant, (overrides, clusters)): (VariantName, (Vec<&Arc<Override>>, _))| VariantExplanation {
        variant,
        clusters,
        steps: localize::trace(&unit.base, &overrides, divided),
        overrides: overrides.iter().map(|declared| declared.label()).collect(),
    };
    sets.into_iter().map(explained).collect()
}
