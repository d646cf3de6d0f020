//! What keeps a unit from being placed, in words.

use std::collections::{BTreeMap, BTreeSet};

use crate::finding::{Finding, Severity};
use crate::fleet::Fleet;
use crate::limits::LABELS_SHOWN_MAX;
use crate::model::Subscription;
use crate::name::{ClusterName, ObjectKey};
use crate::nearest::nearest;
use crate::published::UnitPlacement;
use crate::schedule::candidates::Search;
use crate::schedule::choose::TooFew;
use crate::schedule::ledger::{Given, Gone};
use crate::schedule::taints;
use crate::selector::Operator;

pub(super) fn no_feasible_cluster(
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

pub(super) fn no_weight(subscription: &Subscription) -> Finding {
    let message = "the weights of the chosen clusters add up to 0, so that replicas cannot be divided";
    Finding::error("NoWeight", message)
        .at(subscription.file.as_ref(), subscription.line)
        .field("spec.subscribers")
        .hint("give a subscriber a weight above 0, or leave out all weights to share equally")
        .unit(&subscription.key)
}

/// Fewer clusters than are asked for.
pub(super) fn too_few(subscription: &Subscription, found: TooFew, is_placed: bool) -> Finding {
    let outcome = if is_placed {
        "the last placement stays"
    } else {
        "nothing is placed"
    };
    Finding::new(
        Severity::Warning,
        "TooFewClusters",
        format!("{}: {outcome}", found.message),
    )
    .at(subscription.file.as_ref(), subscription.line)
    .field(format!("spec.{}", found.field))
    .hint("ask for fewer, or register or label more clusters")
    .unit(&subscription.key)
}

/// A cluster that must have more than it may have.
pub(super) fn contradictory(subscription: &Subscription, cluster: &ClusterName, least: u64, most: u64) -> Finding {
    let message = format!("subscribers ask for at least {least} and at most {most} replicas on {cluster}");
    Finding::error("ContradictoryBounds", message)
        .at(subscription.file.as_ref(), subscription.line)
        .field("spec.subscribers")
        .hint("make the least no greater than the most, or let one of them not match the cluster")
        .unit(&subscription.key)
}

/// What keeps replicas from finding a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Lack {
    /// No cluster has room.
    Room,
    /// That, and the unit would take the room of others if the fleet let it.
    Preemption,
    /// Every cluster has its `replicas.max`.
    Bounds,
}

/// Replicas that found no place.
pub(super) fn unplaced(
    subscription: &Subscription,
    object: &ObjectKey,
    (unplaced, wanted): (u64, u64),
    why: &str,
    lack: Lack,
) -> Finding {
    let mut message = format!(
        "unplaced {unplaced} of {wanted} replicas of {} {}",
        object.kind, object.name
    );
    if !why.is_empty() {
        message = format!("{message}: {why}");
    }
    Finding::warning("Unplaced", message)
        .at(subscription.file.as_ref(), subscription.line)
        .field("spec.dividingScheduling")
        .hint(match lack {
            Lack::Preemption => "they are placed as soon as there is room; spec.scheduling.preemption of the Fleet lets no unit take the room of another",
            Lack::Room => "they are placed as soon as there is room",
            Lack::Bounds => "raise replicas.max of the subscribers, or let more clusters match",
        })
        .unit(&subscription.key)
}

/// Clusters that have fewer replicas than `replicas.min` asks for: how many they have, of how many.
pub(super) fn below_minimum(
    subscription: &Subscription,
    object: &ObjectKey,
    below: &BTreeMap<&ClusterName, (u64, u64)>,
) -> Finding {
    let told = below.iter().take(LABELS_SHOWN_MAX);
    let told: Vec<String> = told
        .map(|(name, (has, least))| format!("{name} has {has} of {least}"))
        .collect();
    let more = match below.len() - told.len() {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let message = format!(
        "fewer replicas of {} {} than the minimum: {}{more}",
        object.kind,
        object.name,
        told.join(", ")
    );
    Finding::warning("BelowMinimum", message)
        .at(subscription.file.as_ref(), subscription.line)
        .field("spec.subscribers")
        .hint("ask for more replicas in all, for a lower replicas.min, or give these clusters room")
        .unit(&subscription.key)
        .clusters(below.keys().copied())
}

/// What a cluster was to give up, and no other takes: `what` is how much of what.
pub(super) fn nowhere_else(subscription: &Subscription, cluster: &ClusterName, what: &str, why: &str) -> Finding {
    let message = format!("{what} on cluster {cluster}, which {why}: no other cluster takes it over");
    Finding::warning("NowhereElse", message)
        .at(subscription.file.as_ref(), subscription.line)
        .field("spec.subscribers")
        .hint("it moves as soon as another cluster matches and has room")
        .unit(&subscription.key)
        .clusters([cluster])
}

/// Replicas that took the room of others.
pub(super) fn preempts(
    subscription: &Subscription,
    object: &ObjectKey,
    taken: &BTreeMap<ClusterName, Vec<Gone>>,
) -> Finding {
    let of_cluster = |(cluster, gone): (&ClusterName, &Vec<Gone>)| {
        let gone = gone.iter().map(|gone| format!("{} of {}", gone.replicas, gone.unit));
        format!("{} on {cluster}", gone.collect::<Vec<_>>().join(" and "))
    };
    let taken: Vec<_> = taken.iter().map(of_cluster).collect();
    let message = format!(
        "{} {} takes the room of {}, by its priority {}",
        object.kind,
        object.name,
        taken.join(", "),
        subscription.placing.priority
    );
    Finding::info("Preempted", message)
        .at(subscription.file.as_ref(), subscription.line)
        .field("spec.preemptionPolicy")
        .unit(&subscription.key)
}

/// Replicas that give way to a higher priority.
pub(super) fn preempted(subscription: &Subscription, object: &ObjectKey, given: &Given) -> Finding {
    let message = format!(
        "{} replicas of {} {} leave {} for {}, whose priority is {} and not {}",
        given.replicas,
        object.kind,
        object.name,
        given.cluster,
        given.to,
        given.priority,
        subscription.placing.priority
    );
    Finding::warning("Preempted", message)
        .at(subscription.file.as_ref(), subscription.line)
        .field("spec.priority")
        .hint("spec.subscribers[].replicas.min is never taken; a priority as high as the other's gives nothing")
        .unit(&subscription.key)
        .cluster(&given.cluster)
}
