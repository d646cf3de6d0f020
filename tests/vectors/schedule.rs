//! Which clusters, and how many replicas.

use std::collections::BTreeMap;

use render::model::{Cluster, Scheduling, SchedulingPolicy, Subscriber};
use render::plan::Reports;
use render::schedule::{Assignment, schedule};
use render::{ClusterName, Finding, Fleet};
use serde_json::{Value, json};

use super::fleet::{STATIC, cluster, everything, fleet, labels, list, object, selector, subscription, text};

const WRITTEN: &str = "taints and tolerations are written as in Kubernetes";

type Outcome = (BTreeMap<ClusterName, Assignment>, Vec<Finding>);

/// Places the only unit of a fleet for the first time.
fn run(fleet: &Fleet) -> Outcome {
    let (placements, findings) = schedule(fleet, &Reports::default(), &BTreeMap::new(), 0);
    (
        placements.into_values().next().unwrap_or_default().assignments,
        findings,
    )
}

/// A workload that upstream names by its feed, `apps/v1/Deployment/default/name`.
fn workload(feed: &str, replicas: &Value) -> std::sync::Arc<render::ManifestObject> {
    let mut parts: Vec<&str> = feed.split('/').collect();
    let name = parts.pop().unwrap_or_default();
    let namespace = parts.pop().unwrap_or_default();
    let kind = parts.pop().unwrap_or_default();
    object(json!({
        "apiVersion": parts.join("/"),
        "kind": kind,
        "metadata": { "name": name, "namespace": namespace },
        "spec": { "replicas": replicas },
    }))
}

/// Replicas by cluster, in the clusters' order, of the object with this name.
fn replicas(outcome: &Outcome, name: &str) -> Vec<u64> {
    let of_object = |assignment: &Assignment| {
        let mut replicas = assignment.replicas.iter();
        replicas.find(|(key, _)| key.name == name).map(|(_, count)| *count)
    };
    outcome.0.values().filter_map(of_object).collect()
}

pub(super) fn bind_order(input: &Value) -> Value {
    let names: Vec<String> = list(&input["bindingClusters"]).iter().map(text).collect();
    let clusters = names.iter().map(|name| cluster(name, BTreeMap::new())).collect();
    let fleet = fleet(
        clusters,
        subscription(Scheduling::Replication, vec![everything()]),
        Vec::new(),
    );
    let placed = run(&fleet).0;
    let full = |name: &ClusterName| format!("{}/{name}", fleet.clusters[name].namespace);
    json!({ "status.bindingClusters": placed.keys().map(full).collect::<Vec<_>>() })
}

/// What the feeds' replicas add up to: computed from the Base, whatever a status said before.
pub(super) fn feed_changed(input: &Value) -> Value {
    let desired = &input["inventory_desired"];
    let feeds: Vec<String> = list(&input["spec_feeds"]).iter().map(text).collect();
    let objects = feeds.iter().map(|feed| workload(feed, &desired[feed])).collect();
    let clusters = ["a", "b"].map(|name| cluster(name, BTreeMap::new())).to_vec();
    let outcome = run(&fleet(clusters, subscription(STATIC, vec![everything()]), objects));
    let sum = |feed: &String| {
        let name = feed.rsplit('/').next().unwrap_or_default();
        let shares = replicas(&outcome, name);
        (!shares.is_empty()).then(|| (feed.clone(), Value::from(shares.iter().sum::<u64>())))
    };
    json!({ "replicas": feeds.iter().filter_map(sum).collect::<serde_json::Map<_, _>>() })
}

pub(super) fn spec_hash(input: &Value) -> Value {
    let subscribers = subscribers(&input["spec"]["subscribers"]);
    let clusters = vec![cluster("abc", labels(&json!({ "cluster-name": "abc" })))];
    let outcome = run(&fleet(
        clusters,
        subscription(Scheduling::Replication, subscribers),
        Vec::new(),
    ));
    let inputs = outcome
        .0
        .values()
        .map(|assignment| assignment.inputs.to_string())
        .next();
    let inputs = inputs.unwrap_or_default();
    json!({ "hash": inputs.split_once(':').map(|(algorithm, _)| algorithm) })
}

fn subscribers(given: &Value) -> Vec<Subscriber> {
    let one = |subscriber: &Value| {
        let affinity = subscriber.get("clusterAffinity").unwrap_or(subscriber);
        Subscriber {
            cluster_affinity: Some(selector(&affinity["matchLabels"])),
            weight: subscriber["weight"]
                .as_u64()
                .and_then(|weight| u32::try_from(weight).ok()),
            ..Subscriber::default()
        }
    };
    list(given).iter().map(one).collect()
}

pub(super) fn assign(input: &Value, policy: SchedulingPolicy) -> Value {
    let bound = list(&input["binding_clusters"]).iter().map(text);
    let clusters = bound
        .map(|name| cluster(&name, labels(&input["clusters"][&name])))
        .collect();
    let key = |feed: &Value| {
        let field = |name: &str| text(&feed[name]);
        [field("apiVersion"), field("kind"), field("namespace"), field("name")].join("/")
    };
    let feeds = list(&input["feeds"]);
    let objects = feeds
        .iter()
        .map(|feed| workload(&key(feed), &feed["desiredReplicas"]))
        .collect();
    let mut unit = subscription(STATIC, subscribers(&input["subscribers"]));
    unit.placing.policy = policy;
    let outcome = run(&fleet(clusters, unit, objects));
    let shares = |feed: &Value| (key(feed), json!(replicas(&outcome, &text(&feed["name"]))));
    json!({ "replicas": feeds.iter().map(shares).collect::<serde_json::Map<_, _>>() })
}

pub(super) fn divide(input: &Value, policy: SchedulingPolicy) -> Value {
    let outcome = divided(list(&input["weights"]), &input["desired"], policy);
    if let Some(finding) = outcome.1.first() {
        return json!({ "error": finding.reason });
    }
    match replicas(&outcome, "app").as_slice() {
        // Nothing is divided: each cluster that has the object runs the whole.
        [] => json!({ "replicas": null, "binding_clusters_kept": !outcome.0.is_empty() }),
        replicas => json!({ "replicas": replicas }),
    }
}

/// The order in which clusters get what is left over: with weights that are nearly equal, so that nothing but what is
/// left over is divided.
pub(super) fn weight_order(input: &Value, policy: SchedulingPolicy) -> Value {
    let weight = |weight: &Value| json!(1_000_000 + weight.as_u64().unwrap_or_default());
    let weights: Vec<Value> = list(&input["weights"]).iter().map(weight).collect();
    let mut order: Vec<usize> = Vec::new();
    for desired in 1..weights.len() {
        let shares = replicas(&divided(&weights, &json!(desired), policy), "app");
        let mut got = (0..weights.len()).filter(|index| shares[*index] > 0);
        order.extend(got.find(|index| !order.contains(index)));
    }
    order.extend((0..weights.len()).find(|index| !order.contains(index)));
    json!({ "indices_by_descending_weight": order })
}

/// Divides over one cluster for each weight.
fn divided(weights: &[Value], desired: &Value, policy: SchedulingPolicy) -> Outcome {
    let by_index = |index: usize| json!({ "index": index.to_string() });
    let clusters: Vec<Cluster> = (0..weights.len())
        .map(|index| cluster(&format!("c{index:03}"), labels(&by_index(index))))
        .collect();
    let subscribers = weights.iter().enumerate().map(|(index, weight)| Subscriber {
        cluster_affinity: Some(selector(&by_index(index))),
        weight: weight.as_u64().and_then(|weight| u32::try_from(weight).ok()),
        replicas: Default::default(),
        sub_group: None,
    });
    let mut unit = subscription(STATIC, subscribers.collect());
    unit.placing.policy = policy;
    let objects = vec![workload("apps/v1/Deployment/default/app", desired)];
    run(&fleet(clusters, unit, objects))
}

/// Clusters with these taints, and a unit with these tolerations.
fn tainted(taints: &[Value], tolerations: &Value) -> Fleet {
    let with_taints = |(index, taints): (usize, &Value)| Cluster {
        taints: serde_json::from_value(taints.clone()).expect(WRITTEN),
        ..cluster(&format!("c{index}"), BTreeMap::new())
    };
    let mut unit = subscription(Scheduling::Replication, vec![everything()]);
    unit.tolerations = serde_json::from_value(tolerations.clone()).expect(WRITTEN);
    fleet(taints.iter().enumerate().map(with_taints).collect(), unit, Vec::new())
}

/// Upstream's code word is left out; the taint that is told is made as it writes one.
pub(super) fn taint_filter(input: &Value) -> Value {
    let (placed, findings) = run(&tainted(&[input["taints"].clone()], &input["tolerations"]));
    let Some(finding) = findings.first() else {
        return json!({ "schedulable": !placed.is_empty() });
    };
    let told = |taint: &&Value| {
        finding
            .message
            .contains(&format!("{}={}:", text(&taint["key"]), text(&taint["value"])))
    };
    let told = list(&input["taints"]).iter().find(told);
    let told = told.map(|taint| format!("{}: {}", text(&taint["key"]), text(&taint["value"])));
    json!({
        "schedulable": !placed.is_empty(),
        "code": "UnschedulableAndUnresolvable",
        "taint_reported": told,
    })
}

/// How many of the clusters get the unit, and how many of them with a reason that names a taint.
pub(super) fn taint_score(input: &Value) -> Value {
    let placed = run(&tainted(list(&input["cluster_taints"]), &input["tolerations"])).0;
    let names_taint = |assignment: &&Assignment| assignment.reasons.iter().any(|reason| reason.contains("taint"));
    json!({ "placed": placed.len(), "told": placed.values().filter(names_taint).count() })
}
