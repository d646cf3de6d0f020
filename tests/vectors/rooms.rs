//! What pods ask for, and what nodes have left for them.

use render::capacity::{Field, NodeGroup, Nodes, PodRequirements, Resources, fit, replica_path};
use render::model::Scheduling;
use render::schedule::workloads_of;
use serde_json::{Map, Value, json};

use super::fleet::{everything, fleet, list, object, subscription};

/// A pod that asks for this much, by upstream's names.
fn pod(asked: &Value) -> PodRequirements {
    let amount = |name: &str| asked[name].as_i64();
    let requests = [
        ("cpu", amount("cpu_m").map(|amount| format!("{amount}m"))),
        ("memory", amount("memory").map(|amount| amount.to_string())),
        (
            "ephemeral-storage",
            amount("ephemeral").map(|amount| amount.to_string()),
        ),
    ];
    let requests: Map<String, Value> = requests
        .into_iter()
        .filter_map(|(name, amount)| Some((name.to_owned(), Value::String(amount?))))
        .collect();
    template(&json!({ "containers": [{ "name": "app", "resources": { "requests": requests } }] }))
}

fn template(spec: &Value) -> PodRequirements {
    PodRequirements::read(&json!({ "spec": spec })).expect("the vector's pod template can be read")
}

/// What one node has left after its pods, and how many more fit there.
pub(super) fn node(input: &Value) -> Value {
    let all = &input["allocatable"];
    let amount = |name: &str| all[name].as_i64().unwrap_or_default();
    let allocatable = Resources::from([
        ("cpu", amount("cpu_m")),
        ("memory", amount("memory")),
        ("ephemeral-storage", amount("ephemeral")),
        ("pods", amount("pods")),
    ]);
    let mut free = allocatable.clone();
    for there in list(&input["pods"]) {
        free.add(&pod(there).requests, -1);
    }
    let group = NodeGroup {
        count: 1,
        allocatable,
        free,
        ..NodeGroup::default()
    };
    let found = fit(
        &Field::of(&Nodes(vec![group])),
        &pod(&input["request"]),
        None,
        u64::from(u32::MAX),
    );
    json!({ "max_replicas": found.replicas })
}

/// Nodes that have so many pods left each.
pub(super) fn aggregate(input: &Value) -> Value {
    let nodes = input["node_max_replicas"].as_object().expect("nodes have numbers");
    let group = |pods: &Value| {
        let left = Resources::from([("pods", pods.as_i64().expect("it is a number"))]);
        NodeGroup {
            count: 1,
            allocatable: left.clone(),
            free: left,
            ..NodeGroup::default()
        }
    };
    let nodes = Nodes::grouped(nodes.values().map(group));
    let found = fit(
        &Field::of(&nodes),
        &template(&json!({ "containers": [] })),
        None,
        u64::from(u32::MAX),
    );
    json!({ "replicas": { "default": found.replicas } })
}

/// Upstream has one code word for every node that does not fit.
pub(super) fn node_taint_filter(input: &Value) -> Value {
    let taints = serde_json::from_value(input["node_taints"].clone()).expect("taints are written as in Kubernetes");
    let left = Resources::from([("pods", 1)]);
    let group = NodeGroup {
        count: 1,
        taints,
        allocatable: left.clone(),
        free: left,
        ..NodeGroup::default()
    };
    let asked = template(&json!({ "containers": [], "tolerations": input["tolerations"] }));
    match fit(&Field::of(&Nodes(vec![group])), &asked, None, 1).replicas {
        0 => json!({ "fits": false, "code": "Unpredictable" }),
        _ => json!({ "fits": true }),
    }
}

/// What containers ask for together.
pub(super) fn requirements(input: &Value) -> Value {
    let containers = |given: &Value| -> Vec<Value> {
        let one = |container: &Value| {
            let resources = json!({ "requests": container["requests"], "limits": container["limits"] });
            json!({ "name": "app", "resources": resources })
        };
        list(given).iter().map(one).collect()
    };
    let asked = template(&json!({
        "initContainers": containers(&input["initContainers"]), "containers": containers(&input["containers"]),
    }));
    json!(
        asked
            .requests
            .iter()
            .filter(|(name, _)| *name != "pods")
            .collect::<std::collections::BTreeMap<_, _>>()
    )
}

/// Upstream's requests as amounts. Its sum of limits is left out: no scheduler goes by it.
pub(super) fn amounts(expected: &Value) -> Value {
    json!(Resources::read(Some(&expected["requests"])).expect("requests are quantities"))
}

/// What is known of an object that has replicas.
pub(super) fn inventory(input: &Value) -> Value {
    let spec = json!({
        "nodeSelector": input["nodeSelector"], "tolerations": input["tolerations"], "containers": [{ "name": "app" }],
    });
    let workload = object(json!({
        "apiVersion": input["apiVersion"], "kind": input["kind"], "metadata": { "name": "app", "namespace": "default" },
        "spec": { "replicas": input["spec.replicas"], "template": { "spec": spec } },
    }));
    let key = workload.key.clone();
    let unit = subscription(Scheduling::Replication, vec![everything()]);
    let fleet = fleet(Vec::new(), unit, vec![workload]);
    let unit = fleet.units.values().next().expect("the fleet has a unit");
    let workloads = workloads_of(unit);
    let Some(known) = workloads.get(&key) else {
        return json!({ "desiredReplicas": null });
    };
    let toleration = |toleration| {
        let mut written = json!(toleration);
        let fields = written.as_object_mut().expect("a toleration has fields");
        fields.retain(|_, value| !value.is_null() && value.as_str() != Some(""));
        written
    };
    let tolerations: Vec<Value> = known.requirements.tolerations.iter().map(toleration).collect();
    json!({
        "desiredReplicas": known.replicas,
        "replicaJsonPath": replica_path(&key).map(|path| path.replicas),
        "nodeSelector": known.requirements.node_selector,
        "tolerations": tolerations,
    })
}
