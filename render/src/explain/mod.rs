//! Why a unit is where it is, and why it is not elsewhere: the decisions of [`crate::schedule`] and
//! [`crate::localize`] over again, with their reasons.
//!
//! In: a fleet, what is published, a unit. Out: an [`Explanation`] of every cluster and every variant, as data
//! without a value of any object. What clusters say of it, and how it is printed, is deliberately not here.

mod cluster;
mod variant;

use std::collections::BTreeMap;

use serde::Serialize;

use crate::finding::Finding;
use crate::fleet::{Fleet, Unit};
use crate::model::{Cluster, Dividing, Scheduling};
use crate::name::{ClusterName, UnitKey};
use crate::plan::Reports;
use crate::published::Published;
use crate::schedule;

pub use cluster::{ClusterExplanation, Decision};
pub use variant::VariantExplanation;

/// Why a unit is where it is.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Explanation {
    /// Which.
    pub unit: UnitKey,
    /// Where it is declared, `path:line`.
    pub declared_in: String,
    /// `Replication`, or `Dividing (Static)`.
    pub scheduling: &'static str,
    /// How many objects its feeds select.
    pub objects: usize,
    /// Every cluster of the fleet that was asked for, sorted by name.
    pub clusters: Vec<ClusterExplanation>,
    /// What is made for the clusters that have it, sorted by name.
    pub variants: Vec<VariantExplanation>,
    /// What holds it, and what is said of its placement, sorted.
    pub findings: Vec<Finding>,
}

/// Explains a unit; `None` when no Subscription of that name is declared. With `only`, one cluster alone.
pub fn explain(fleet: &Fleet, published: &Published, key: &UnitKey, only: Option<&ClusterName>) -> Option<Explanation> {
    let unit = fleet.units.get(key)?;
    let previous = published.units.get(key);
    let reports = Reports::default();
    let context = schedule::Context::new(fleet, &reports, 0);
    let (assignments, mut findings) = schedule::schedule_unit(&context, unit, previous);
    findings.extend(unit.blocked.iter().cloned());
    let held = findings.iter().any(Finding::is_error);
    let wanted = |cluster: &&Cluster| only.is_none_or(|only| *only == cluster.name);
    let clusters: Vec<&Cluster> = fleet.clusters.values().filter(wanted).collect();
    let explain = cluster::Explain {
        subscription: &unit.subscription,
        assignments: &assignments,
        previous,
        held,
    };
    let mut explained: Vec<_> = clusters.iter().map(|cluster| explain.cluster(cluster)).collect();
    let having = explained
        .iter()
        .zip(&clusters)
        .filter(|(explained, _)| explained.decision.has_it())
        .map(|(_, cluster)| *cluster);
    let variants = variant::explain(fleet, unit, having);
    let of_cluster: BTreeMap<_, _> = variants
        .iter()
        .flat_map(|variant| variant.clusters.iter().map(|cluster| (cluster, &variant.variant)))
        .collect();
    for cluster in &mut explained {
        cluster.variant = of_cluster.get(&cluster.cluster).map(|name| (*name).clone());
    }
    findings.extend(variants.iter().flat_map(VariantExplanation::problems));
    findings.sort();
    findings.dedup();
    Some(Explanation {
        unit: key.clone(),
        declared_in: format!("{}:{}", unit.subscription.file, unit.subscription.line),
        scheduling: scheduling(unit),
        objects: unit.base.objects.len(),
        clusters: explained,
        variants,
        findings,
    })
}

fn scheduling(unit: &Unit) -> &'static str {
    match unit.subscription.scheduling {
        Scheduling::Replication => "Replication",
        Scheduling::Dividing(Dividing::Static) => "Dividing (Static)",
    }
}

#[cfg(test)]
mod tests;
