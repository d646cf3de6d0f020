//! What a decision looked at, as a digest.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::digest::Digest;
use crate::fleet::{Fleet, Unit};
use crate::model::{Cluster, Dividing, Placing, Scheduling, Strategy, Subscriber, Subscription};
use crate::name::{ClusterName, ObjectKey};
use crate::schedule::Context;
use crate::schedule::desired::workloads_of;
use crate::schedule::ledger::may_take;

/// Over what is looked at of one cluster, whatever the unit.
pub(super) fn of_cluster(cluster: &Cluster) -> Digest {
    Digest::of_value(&json!({ "labels": cluster.labels, "taints": cluster.taints }))
}

/// The same, from where it was computed once.
pub(super) fn of_cluster_in(context: &Context<'_>, cluster: &Cluster) -> Digest {
    let seen = context.seen(&cluster.name);
    seen.map_or_else(|| of_cluster(cluster), |seen| seen.digest)
}

/// Over what is looked at of one unit, whatever the cluster. With dividing, the weights of all chosen
/// clusters are part of it: each one's share depends on the others'.
pub(super) fn of_unit(
    subscription: &Subscription,
    desired: &BTreeMap<ObjectKey, u64>,
    weights: &BTreeMap<ClusterName, u64>,
) -> Digest {
    let mut looked_at = asked(subscription, desired);
    looked_at["weights"] = json!(weights);
    Digest::of_value(&looked_at)
}

/// Over what a unit asks for, whatever clusters there are. `None` where its placement is no choice, so that nothing
/// needs to be remembered of it.
pub(super) fn asks(unit: &Unit, desired: &BTreeMap<ObjectKey, u64>, fleet: &Fleet) -> Option<Digest> {
    let subscription = unit.subscription.as_ref();
    let clusters = &subscription.placing.clusters;
    let chooses = clusters.max.is_some() || !clusters.spread.is_empty() || subscription.placing.by_sub_group;
    if subscription.scheduling == Scheduling::Replication && !chooses {
        return None;
    }
    let mut asked = asked(subscription, desired);
    if subscription.scheduling.is_by_room() {
        let workloads = workloads_of(unit);
        let pods = desired.keys().filter_map(|object| {
            let workload = workloads.get(object)?;
            Some((object.to_string(), &workload.requirements))
        });
        asked["pods"] = json!(pods.collect::<BTreeMap<_, _>>());
        if may_take(subscription, fleet) {
            asked["preempts"] = json!(true);
        }
    }
    Some(Digest::of_value(&asked))
}

fn asked(subscription: &Subscription, desired: &BTreeMap<ObjectKey, u64>) -> Value {
    let strategy = match subscription.scheduling {
        Scheduling::Replication => "Replication",
        Scheduling::Dividing(Dividing::Static) => "Static",
        Scheduling::Dividing(Dividing::Dynamic(Strategy::Spread)) => "Spread",
        Scheduling::Dividing(Dividing::Dynamic(Strategy::Binpack)) => "Binpack",
    };
    let subscribers: Vec<Value> = subscription.subscribers.iter().map(subscriber).collect();
    let mut asked = json!({
        "strategy": strategy,
        "subscribers": subscribers,
        "tolerations": subscription.tolerations,
        "desired": by_text(desired),
    });
    // What says nothing is left out, so that a field that a new version knows changes no digest.
    if subscription.placing != Placing::default() {
        asked["placing"] = json!(subscription.placing);
    }
    asked
}

fn subscriber(subscriber: &Subscriber) -> Value {
    let mut looked_at = json!({ "affinity": subscriber.cluster_affinity, "weight": subscriber.weight });
    if !subscriber.replicas.is_default() {
        looked_at["replicas"] = json!(subscriber.replicas);
    }
    if let Some(group) = subscriber.sub_group {
        looked_at["subGroup"] = json!(group);
    }
    looked_at
}

/// The two together.
pub(super) fn of_both(unit: &Digest, cluster: &Digest) -> Digest {
    let mut bytes = [0; 64];
    bytes[..32].copy_from_slice(unit.as_bytes());
    bytes[32..].copy_from_slice(cluster.as_bytes());
    Digest::of_bytes(&bytes)
}

fn by_text(desired: &BTreeMap<ObjectKey, u64>) -> BTreeMap<String, u64> {
    desired
        .iter()
        .map(|(key, replicas)| (key.to_string(), *replicas))
        .collect()
}
