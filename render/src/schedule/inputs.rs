//! What a decision looked at, as a digest.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::digest::Digest;
use crate::model::{Cluster, Dividing, Placing, Scheduling, Strategy, Subscriber, Subscription};
use crate::name::{ClusterName, ObjectKey};
use crate::schedule::Context;

/// Over what is looked at of one cluster, whatever the unit.
pub(super) fn of_cluster(cluster: &Cluster) -> Digest {
    Digest::of_value(&json!({ "labels": cluster.labels, "taints": cluster.taints }))
}

/// The same, from where it was computed once.
pub(super) fn of_cluster_in(context: &Context<'_>, cluster: &Cluster) -> Digest {
    context
        .cluster_digest(&cluster.name)
        .unwrap_or_else(|| of_cluster(cluster))
}

/// Over what is looked at of one unit, whatever the cluster. With dividing, the weights of all chosen
/// clusters are part of it: each one's share depends on the others'.
pub(super) fn of_unit(
    subscription: &Subscription,
    desired: &BTreeMap<ObjectKey, u64>,
    weights: &BTreeMap<ClusterName, u64>,
) -> Digest {
    let strategy = match subscription.scheduling {
        Scheduling::Replication => "Replication",
        Scheduling::Dividing(Dividing::Static) => "Static",
        Scheduling::Dividing(Dividing::Dynamic(Strategy::Spread)) => "Spread",
        Scheduling::Dividing(Dividing::Dynamic(Strategy::Binpack)) => "Binpack",
    };
    let subscribers: Vec<Value> = subscription.subscribers.iter().map(subscriber).collect();
    let mut looked_at = json!({
        "strategy": strategy,
        "subscribers": subscribers,
        "tolerations": subscription.tolerations,
        "desired": by_text(desired),
        "weights": weights,
    });
    // What says nothing is left out, so that a field that a new version knows changes no digest.
    if subscription.placing != Placing::default() {
        looked_at["placing"] = json!(subscription.placing);
    }
    Digest::of_value(&looked_at)
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
    Digest::of_bytes(&[*unit.as_bytes(), *cluster.as_bytes()].concat())
}

fn by_text(desired: &BTreeMap<ObjectKey, u64>) -> BTreeMap<String, u64> {
    desired
        .iter()
        .map(|(key, replicas)| (key.to_string(), *replicas))
        .collect()
}
