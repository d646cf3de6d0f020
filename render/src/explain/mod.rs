//! Why a unit is where it is, and why it is not elsewhere: the decisions of [`crate::schedule`] and
//! [`crate::localize`] over again, with their reasons.
//!
//! In: what is known ([`Context`]), a unit. Out: an [`Explanation`] of every cluster and every variant, as data
//! without a value of any object. What clusters say of it, and how it is printed, is deliberately not here.

mod cluster;
mod inventory;
mod predicted;
mod room;
mod variant;

use std::collections::BTreeMap;

use serde::Serialize;

use crate::finding::Finding;
use crate::fleet::Fleet;
use crate::localize;
use crate::model::Cluster;
use crate::name::{ClusterName, ObjectKey, UnitKey};
use crate::plan::Overridden;
use crate::published::{Published, Unplaced};
use crate::schedule::{self, Inventory as _, Ledger, Reports};

pub use cluster::{ClusterExplanation, Decision, Filter, Rule};
pub use inventory::{FeedInventory, Requirement};
pub use predicted::{ChartObject, PredictedChart, predicted};
pub use room::{ObjectRoom, PredictedRoom, RoomExplanation, ScoreExplanation};
pub use variant::{Standing, VariantExplanation};

/// What an explanation looks at.
#[derive(Clone, Copy, Debug)]
pub struct Context<'a> {
    /// What the revision says.
    pub fleet: &'a Fleet,
    /// What is published, and kept where something is held.
    pub published: &'a Published,
    /// What was found when the revision was loaded and planned: an Error of the unit holds it where it says so.
    pub findings: &'a [Finding],
    /// What clusters said of the room they have.
    pub reports: &'a Reports,
    /// Seconds since 1970; it decides which Suspensions hold.
    pub now: i64,
}

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
    /// What its objects ask for on the clusters that match, after the overrides that meet them there.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub feed_inventory: Vec<FeedInventory>,
    /// Divided objects of which some replicas find no place.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub unplaced: BTreeMap<ObjectKey, Unplaced>,
    /// What holds it, and what is said of its placement, sorted.
    pub findings: Vec<Finding>,
}

/// Explains a unit; `None` when no Subscription of that name is declared. With `only`, one cluster alone.
pub fn explain(looking: &Context<'_>, key: &UnitKey, only: Option<&ClusterName>) -> Option<Explanation> {
    let fleet = looking.fleet;
    let unit = fleet.units.get(key)?;
    let previous = looking.published.units.get(key);
    let moves = schedule::Moves::default();
    let context = schedule::Context::new(fleet, looking.reports, &looking.published.units, &moves, looking.now);
    let overrides = localize::Index::new(fleet);
    let touching = overrides.touching(&unit.base);
    let inventory = Overridden::new(unit, &touching);
    let scheduled = schedule::schedule_unit(&context, &mut Ledger::default(), &inventory, unit);
    let (assignments, left_out, mut findings) = (scheduled.assignments, scheduled.left_out, scheduled.findings);
    findings.extend(unit.blocked.iter().cloned());
    let errors = findings.iter().filter(|finding| finding.is_error());
    let said = looking.findings.iter();
    let said = said.filter(|finding| finding.is_error() && finding.unit.as_ref() == Some(key));
    let errors: Vec<Finding> = errors.chain(said).cloned().collect();
    let wanted = |cluster: &&Cluster| only.is_none_or(|only| *only == cluster.name);
    let clusters: Vec<&Cluster> = fleet.clusters.values().filter(wanted).collect();
    let explain = cluster::Explain {
        subscription: &unit.subscription,
        assignments: &assignments,
        left_out: &left_out,
        previous,
        errors: &errors,
        suspensions: fleet.suspensions(),
        now: looking.now,
    };
    let mut explained: Vec<_> = clusters.iter().map(|cluster| explain.cluster(cluster)).collect();
    let told = explained
        .iter()
        .zip(&clusters)
        .map(|(explained, cluster)| variant::Told {
            cluster,
            decision: explained.decision,
            is_wanted: assignments.contains_key(&cluster.name),
            before: previous.and_then(|unit| unit.entry(&cluster.name)),
        });
    // What is blocked as a whole may not be known whole, so that its overrides say little.
    let is_known = unit.blocked.is_empty();
    let variants = variant::explain(fleet, unit, told.filter(|told| told.has_variant(is_known)));
    let of_cluster: BTreeMap<_, _> = variants
        .iter()
        .flat_map(|variant| variant.clusters.iter().map(|cluster| (cluster, &variant.variant)))
        .collect();
    for cluster in explained.iter_mut().filter(|cluster| cluster.decision.has_it()) {
        cluster.variant = of_cluster.get(&cluster.cluster).map(|name| (*name).clone());
    }
    let standings = schedule::standings(&context, &unit.subscription, previous);
    let mut ledger = Ledger::default();
    for (explained, cluster) in explained.iter_mut().zip(&clusters) {
        explained.score = standings.get(&cluster.name).copied().map(Into::into);
        let workloads = inventory.workloads(cluster);
        if !workloads.is_empty() {
            let asked = (*cluster, workloads.as_ref());
            explained.capacity = Some(room::room(&context, &mut ledger, &unit.subscription, asked));
        }
    }
    let matching = explained.iter().zip(&clusters);
    let matching = matching.filter(|(explained, _)| explained.decision != Decision::NotMatched);
    let asked = matching.map(|(_, cluster)| (cluster.name.clone(), inventory.workloads(cluster)));
    let feed_inventory = inventory::inventories(asked);
    findings.extend(variants.iter().flat_map(VariantExplanation::problems));
    findings.sort();
    findings.dedup();
    Some(Explanation {
        unit: key.clone(),
        declared_in: format!("{}:{}", unit.subscription.file, unit.subscription.line),
        scheduling: unit.subscription.scheduling.text(),
        objects: unit.base.objects.len(),
        clusters: explained,
        variants,
        feed_inventory,
        unplaced: scheduled.unplaced,
        findings,
    })
}

#[cfg(test)]
mod tests;
