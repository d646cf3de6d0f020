//! Which clusters are taken, and whose turn it is.

use std::collections::BTreeMap;

use render::load::load;
use render::model::{Cluster, Scheduling, SchedulingPolicy, Subscription, SyncMode, Taint, TaintEffect};
use render::plan::Reports;
use render::schedule::{Assignment, in_order, schedule};
use render::{Fleet, Previous, Revision, SourceTree, UnitKey};
use serde_json::{Value, json};

use super::fleet::{STATIC, cluster, everything, fleet, list, subscription, text};

fn placed(fleet: &Fleet) -> Vec<Assignment> {
    let (placements, _) = schedule(fleet, &Reports::default(), &BTreeMap::new(), 0);
    let placed = placements.into_values().next().unwrap_or_default().assignments;
    placed.into_values().collect()
}

/// A fleet out of declarations, as files would bring it, and whether load finds an Error.
fn loaded(declarations: &[Value]) -> (Fleet, bool) {
    let files = declarations.iter().enumerate();
    let files = files.map(|(index, value)| (format!("{index}.yaml"), value.to_string().into_bytes()));
    let revision = Revision::parse("0".repeat(40)).expect("it is a valid revision");
    let (fleet, findings) = load(
        &SourceTree::from_files(revision, files.collect::<Vec<_>>()),
        &Previous::default(),
    );
    (fleet, findings.iter().any(render::Finding::is_error))
}

fn managed_cluster(full_name: &str, labels: &Value) -> Value {
    let (namespace, name) = full_name.split_once('/').unwrap_or(("default", full_name));
    json!({
        "apiVersion": "clusters.clusternet.io/v1beta1", "kind": "ManagedCluster",
        "metadata": { "name": name, "namespace": namespace, "labels": labels },
    })
}

/// Who applies to a cluster; nothing but its mode says so here.
pub(super) fn who_applies(input: &Value) -> Value {
    let mode: SyncMode = serde_json::from_value(input["syncMode"].clone()).expect("it is a mode");
    let agent_applies = mode.agent_applies();
    json!({ "deployed_by_hub": !agent_applies, "deployed_by_agent": agent_applies })
}

pub(super) fn cluster_name(input: &Value) -> Value {
    let (fleet, _) = loaded(&[managed_cluster(&text(&input["name"]), &json!({}))]);
    json!({ "name": fleet.clusters.keys().next() })
}

/// Upstream's scores are written as preferences, of which each is met by one cluster.
pub(super) fn sub_group(input: &Value, policy: SchedulingPolicy) -> Value {
    let mut declarations = Vec::new();
    let mut preferred = Vec::new();
    for scored in list(&input["scored"]) {
        let name = text(&scored[0]);
        let own = json!({ "own": name.replace('/', "-") });
        let mut labels = own.clone();
        labels["region"] = scored[2].clone();
        declarations.push(managed_cluster(&name, &labels));
        preferred.push(json!({ "weight": scored[1], "preference": { "matchLabels": own } }));
    }
    let subscriber = |given: &Value| {
        let mut subscriber = json!({ "clusterAffinity": { "matchLabels": given["matchLabels"] } });
        let strategy = match given.get("minClusters") {
            Some(least) => json!({ "minClusters": least }),
            None => given["subGroupStrategy"].clone(),
        };
        if !strategy.is_null() {
            subscriber["subGroupStrategy"] = strategy;
        }
        subscriber
    };
    let subscribers: Vec<Value> = list(&input["subscribers"]).iter().map(subscriber).collect();
    let mut spec = json!({
        "schedulingBySubGroup": input["schedulingBySubGroup"], "clusters": { "preferred": preferred },
        "subscribers": subscribers, "feeds": [{ "apiVersion": "v1", "kind": "ConfigMap", "name": "app" }],
    });
    if policy == SchedulingPolicy::Clusternet {
        spec["schedulingPolicy"] = json!("clusternet");
    }
    declarations.push(json!({
        "apiVersion": "fleet.flotilla.dev/v1alpha1", "kind": "Subscription",
        "metadata": { "name": "app", "namespace": "default" }, "spec": spec,
    }));
    declarations.push(json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "app" } }));
    let (fleet, has_error) = loaded(&declarations);
    if has_error {
        return json!({ "error": true });
    }
    let (placements, _) = schedule(&fleet, &Reports::default(), &BTreeMap::new(), 0);
    let placed = placements.into_values().next().unwrap_or_default().assignments;
    let full = |name| format!("{}/{name}", fleet.clusters[name].namespace);
    json!({ "selected": placed.keys().map(full).collect::<Vec<_>>() })
}

/// A unit that takes the best of as many clusters as there are, by upstream's arithmetic: so that reasons tell scores.
fn scored(taints: Vec<Vec<Taint>>, change: impl FnOnce(&mut Subscription)) -> Vec<u64> {
    let mut unit = subscription(Scheduling::Replication, vec![everything()]);
    unit.placing.policy = SchedulingPolicy::Clusternet;
    unit.placing.clusters.max = Some(taints.len() as u64);
    change(&mut unit);
    let clusters = taints.into_iter().enumerate().map(|(index, taints)| Cluster {
        taints,
        ..cluster(&format!("c{index:03}"), BTreeMap::new())
    });
    let told = |assignment: &Assignment| {
        let said = assignment
            .reasons
            .iter()
            .find(|reason| reason.starts_with("among the best"));
        let said = said.expect("a cluster that was chosen says its score");
        let score = said.split_once("taints ").map(|(_, score)| score);
        score.map_or(0, |score| score.parse().expect("a score is a number"))
    };
    placed(&fleet(clusters.collect(), unit, Vec::new()))
        .iter()
        .map(told)
        .collect()
}

pub(super) fn taint_score(input: &Value, policy: SchedulingPolicy) -> Value {
    const WRITTEN: &str = "taints and tolerations are written as in Kubernetes";
    if policy == SchedulingPolicy::Flotilla {
        return super::schedule::taint_score(input);
    }
    let taints = serde_json::from_value(input["cluster_taints"].clone()).expect(WRITTEN);
    let weighted = scored(taints, |unit| {
        unit.tolerations = serde_json::from_value(input["tolerations"].clone()).expect(WRITTEN);
    });
    let normalized: Vec<u64> = weighted.iter().map(|score| score / 3).collect();
    json!({ "normalized_scores": normalized, "weighted_scores": weighted })
}

/// As the one score that upstream normalizes: the fewer soft taints, the better.
pub(super) fn score_normalize(input: &Value) -> Value {
    if input["reverse"] != json!(true) {
        return Value::Null;
    }
    let soft = |number: u64| Taint {
        key: format!("soft-{number}"),
        value: String::new(),
        effect: TaintEffect::PreferNoSchedule,
    };
    let counts = list(&input["scores"]).iter().filter_map(Value::as_u64);
    let weighted = scored(counts.map(|count| (0..count).map(soft).collect()).collect(), |_| {});
    json!({ "scores": weighted.iter().map(|score| score / 3).collect::<Vec<_>>() })
}

/// Units with these priorities, each served once in every plan.
pub(super) fn queue(input: &Value) -> Value {
    if input.get("repeat").is_some() {
        return Value::Null;
    }
    let mut priorities = BTreeMap::new();
    for field in ["add", "add_unschedulable", "update"] {
        let named = list(&input[field]).iter();
        priorities.extend(named.map(|item| (text(&item[0]), item[1].as_i64().unwrap_or_default())));
    }
    let mut all = fleet(
        Vec::new(),
        subscription(Scheduling::Replication, Vec::new()),
        Vec::new(),
    );
    let unit = all.units.pop_first().expect("the fleet has a unit").1;
    for (name, priority) in priorities {
        let mut named = unit.clone();
        let mut subscription = unit.subscription.as_ref().clone();
        subscription.key = UnitKey::new("default", &name).expect("it is a valid unit");
        subscription.placing.priority = i32::try_from(priority).expect("a priority is a small number");
        named.subscription = std::sync::Arc::new(subscription);
        all.units.insert(named.subscription.key.clone(), named);
    }
    json!({ "pop": in_order(&all).map(|(key, _)| key.name().to_owned()).collect::<Vec<_>>() })
}

/// How many of so many equal clusters are looked at.
pub(super) fn sampling(input: &Value) -> Value {
    let count = input["clusters"].as_u64().unwrap_or_default();
    let scheduling = match text(&input["strategy"]).as_str() {
        "Dividing" => STATIC,
        _ => Scheduling::Replication,
    };
    let clusters = (0..count).map(|index| cluster(&format!("c{index:05}"), BTreeMap::new()));
    let fleet = fleet(
        clusters.collect(),
        subscription(scheduling, vec![everything()]),
        Vec::new(),
    );
    json!({ "clusters_to_find": placed(&fleet).len() })
}
