//! One unit's placement.

use std::collections::{BTreeMap, BTreeSet};

use crate::digest::Digest;
use crate::finding::{Finding, Severity};
use crate::fleet::{Fleet, Unit};
use crate::limits::LABELS_SHOWN_MAX;
use crate::model::{Scheduling, Subscription};
use crate::name::{ClusterName, ObjectKey};
use crate::nearest::nearest;
use crate::plan::Reports;
use crate::published::UnitPlacement;
use crate::schedule::candidates::{Chosen, Search, search};
use crate::schedule::desired::{desired_replicas, is_divisible};
use crate::schedule::divide::divide;
use crate::schedule::kept::kept;
use crate::schedule::{Assignment, inputs, taints};
use crate::selector::Operator;

/// What the placements of all units of one plan look at.
#[derive(Debug)]
pub struct Context<'a> {
    /// The loaded revision.
    pub fleet: &'a Fleet,
    /// What clusters said of their capacity; static scheduling reads none of it.
    pub reports: &'a Reports,
    /// Seconds since 1970; static scheduling does not read it.
    pub now: i64,
    clusters: BTreeMap<&'a ClusterName, Digest>,
}

impl<'a> Context<'a> {
    /// Digests every cluster once, so that a thousand units do not do it again.
    pub fn new(fleet: &'a Fleet, reports: &'a Reports, now: i64) -> Self {
        let digest = |(name, cluster)| (name, inputs::of_cluster(cluster));
        Self {
            fleet,
            reports,
            now,
            clusters: fleet.clusters.iter().map(digest).collect(),
        }
    }

    /// Over what scheduling looks at of a cluster: its labels and taints. `None` for an unknown cluster.
    pub(super) fn cluster_digest(&self, cluster: &ClusterName) -> Option<Digest> {
        self.clusters.get(cluster).copied()
    }
}

/// Places one unit, whether it is blocked or not.
///
/// With no feasible cluster the last placement stays and a Warning says so; an Error where clusters have the unit and
/// no subscriber matches any. An Error finding names the unit: its last placement is returned then too, and its
/// content has to stay as well.
pub fn schedule_unit(
    context: &Context<'_>,
    unit: &Unit,
    previous: Option<&UnitPlacement>,
) -> (BTreeMap<ClusterName, Assignment>, Vec<Finding>) {
    let subscription = unit.subscription.as_ref();
    let desired = match desired_of(unit) {
        Ok(desired) => desired,
        Err(findings) => return (kept(context, subscription, &BTreeMap::new(), previous, HELD), findings),
    };
    let search = search(context.fleet, subscription, previous);
    if search.chosen.is_empty() {
        // A fleet that is begun has no cluster yet: nothing is wrong with any Subscription.
        let begins = context.fleet.clusters.is_empty() && previous.is_none_or(|unit| unit.clusters.is_empty());
        let finding = (!begins).then(|| no_feasible_cluster(context.fleet, subscription, &search, previous));
        let findings = finding.into_iter().collect();
        return (kept(context, subscription, &desired, previous, NO_CLUSTER), findings);
    }
    match assign(context, subscription, &desired, search) {
        Ok(assignments) => (assignments, Vec::new()),
        Err(finding) => (kept(context, subscription, &desired, previous, HELD), vec![*finding]),
    }
}

const NO_CLUSTER: &str = "kept where it was, since no cluster is feasible now";
const HELD: &str = "kept as it was, since the unit has an error";

/// Divided object → desired replicas; empty without dividing.
fn desired_of(unit: &Unit) -> Result<BTreeMap<ObjectKey, u64>, Vec<Finding>> {
    if unit.subscription.scheduling == Scheduling::Replication {
        return Ok(BTreeMap::new());
    }
    let mut desired = BTreeMap::new();
    let mut findings = Vec::new();
    for object in unit.base.objects.iter().filter(|object| is_divisible(&object.key)) {
        match desired_replicas(object) {
            Ok(replicas) => {
                desired.insert(object.key.clone(), replicas);
            }
            Err(finding) => findings.push(finding.unit(&unit.subscription.key)),
        }
    }
    if findings.is_empty() {
        Ok(desired)
    } else {
        Err(findings)
    }
}

fn assign(
    context: &Context<'_>,
    subscription: &Subscription,
    desired: &BTreeMap<ObjectKey, u64>,
    search: Search<'_>,
) -> Result<BTreeMap<ClusterName, Assignment>, Box<Finding>> {
    let weights = weights(subscription, &search.chosen);
    let total: u128 = weights.values().map(|weight| u128::from(*weight)).sum();
    if subscription.scheduling != Scheduling::Replication && total == 0 {
        return Err(Box::new(no_weight(subscription)));
    }
    let of_unit = inputs::of_unit(subscription, desired, &weights);
    let mut assignments = BTreeMap::new();
    for (name, chosen) in search.chosen {
        let of_cluster = inputs::of_cluster_in(context, chosen.cluster);
        let assignment = Assignment {
            replicas: BTreeMap::new(),
            reasons: chosen.reasons,
            inputs: inputs::of_both(&of_unit, &of_cluster),
        };
        assignments.insert(name.clone(), assignment);
    }
    for (object, replicas) in desired {
        let shares = divide(&subscription.key, *replicas, &weights).unwrap_or_default();
        for (name, assignment) in &mut assignments {
            let share = shares.get(name).copied().unwrap_or_default();
            let weight = weights.get(name).copied().unwrap_or_default();
            assignment.replicas.insert(object.clone(), share);
            assignment.reasons.push(format!(
                "replicas of {} {}: {share} of {replicas}, weight {weight} of {total}",
                object.kind, object.name
            ));
        }
    }
    Ok(assignments)
}

/// Each chosen cluster's weight: the sum over the subscribers that match it, 1 for each cluster where no
/// subscriber has a weight. Empty without dividing.
fn weights(subscription: &Subscription, chosen: &BTreeMap<&ClusterName, Chosen<'_>>) -> BTreeMap<ClusterName, u64> {
    if subscription.scheduling == Scheduling::Replication {
        return BTreeMap::new();
    }
    let unweighted = subscription
        .subscribers
        .iter()
        .all(|subscriber| subscriber.weight.is_none());
    let weight_of = |chosen: &Chosen<'_>| {
        if unweighted {
            return 1;
        }
        let weight = |index: &usize| u64::from(subscription.subscribers[*index].weight.unwrap_or_default());
        chosen.subscribers.iter().map(weight).sum()
    };
    chosen
        .iter()
        .map(|(name, chosen)| ((*name).clone(), weight_of(chosen)))
        .collect()
}

fn no_feasible_cluster(
    fleet: &Fleet,
    subscription: &Subscription,
    search: &Search<'_>,
    previous: Option<&UnitPlacement>,
) -> Finding {
    let is_placed = previous.is_some_and(|unit| unit.clusters.keys().any(|name| fleet.clusters.contains_key(name)));
    let why = match search.tainted.as_slice() {
        [] => "no subscriber matches a cluster".to_owned(),
        [(cluster, taint), others @ ..] => {
            let others = match others.len() {
                0 => String::new(),
                count => format!(", and {count} more that match are tainted too"),
            };
            format!("cluster {cluster} has taint {}{others}", taints::text(taint))
        }
    };
    let (outcome, advice) = if is_placed {
        let advice = "to take the unit away from its clusters, delete the Subscription";
        ("the last placement stays", advice)
    } else {
        (
            "nothing is placed",
            "check spec.subscribers against the clusters' labels",
        )
    };
    let strange = search
        .tainted
        .is_empty()
        .then(|| strange_label(fleet, subscription))
        .flatten();
    let hint = strange.map_or_else(|| advice.to_owned(), |strange| format!("{strange}; {advice}"));
    // A taint is somebody's wish. That all clusters of a unit lose their match at once is a slip more often.
    let severity = match (is_placed, search.tainted.is_empty()) {
        (true, true) => Severity::Error,
        _ => Severity::Warning,
    };
    Finding::new(severity, "NoFeasibleCluster", format!("{why}: {outcome}"))
        .at(subscription.file.as_ref(), subscription.line)
        .field("spec.subscribers")
        .hint(hint)
        .unit(&subscription.key)
}

/// The first label that a subscriber asks for and no cluster has, with what clusters have in its place.
fn strange_label(fleet: &Fleet, subscription: &Subscription) -> Option<String> {
    let selectors = subscription
        .subscribers
        .iter()
        .filter_map(|item| item.cluster_affinity.as_ref());
    let mut asked = selectors.flat_map(|selector| {
        let labels = selector
            .match_labels
            .iter()
            .map(|(key, value)| (key, vec![value.as_str()]));
        let lists = selector
            .match_expressions
            .iter()
            .filter(|item| item.operator == Operator::In);
        labels.chain(lists.map(|item| (&item.key, item.values.iter().map(String::as_str).collect())))
    });
    let values = |key: &str| -> BTreeSet<&str> {
        let clusters = fleet.clusters.values();
        clusters
            .filter_map(|cluster| cluster.labels.get(key).map(String::as_str))
            .collect()
    };
    let is_nowhere = |(key, asked): &(&String, Vec<&str>)| {
        let there = values(key);
        !asked.iter().any(|value| there.contains(value))
    };
    let (key, asked) = asked.find(is_nowhere)?;
    let mut there = values(key);
    if !there.is_empty() {
        let shown: Vec<_> = there.iter().copied().take(LABELS_SHOWN_MAX).collect();
        return Some(format!(
            "no cluster has {key}={}; clusters have {key}={}",
            asked.join(" or "),
            shown.join(", ")
        ));
    }
    there.extend(
        fleet
            .clusters
            .values()
            .flat_map(|cluster| cluster.labels.keys().map(String::as_str)),
    );
    let near = nearest(key, there).map(|near| format!("; did you mean {near}?"));
    Some(format!("no cluster has the label {key}{}", near.unwrap_or_default()))
}

fn no_weight(subscription: &Subscription) -> Finding {
    let message = "the weights of the chosen clusters add up to 0, so that replicas cannot be divided";
    Finding::error("NoWeight", message)
        .at(subscription.file.as_ref(), subscription.line)
        .field("spec.subscribers")
        .hint("give a subscriber a weight above 0, or leave out all weights to share equally")
        .unit(&subscription.key)
}
