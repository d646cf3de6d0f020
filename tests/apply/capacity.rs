//! What an applier says of its nodes, against what the real scheduler does with them.

use std::time::Duration;

use flotilla_tests::{ControlPlane, Options, eventually, wait};
use reconciler::apply::capacity::Room;
use render::capacity::{Capacity, Field, PodRequirements, fit};
use serde_json::{Value, json};

use super::delivery::*;

/// Nodes of two sizes in three zones, one of them with a taint.
fn nodes() -> Vec<Value> {
    let node = |name: &str, zone: &str, cpu: &str, memory: &str| {
        let room = json!({"cpu": cpu, "memory": memory, "pods": "30", "example.org/gpu": "2"});
        json!({
            "apiVersion": "v1", "kind": "Node",
            "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name, "zone": zone}},
            "status": {"allocatable": room, "capacity": room},
        })
    };
    let mut nodes = vec![
        node("a-1", "a", "8", "32Gi"),
        node("a-2", "a", "8", "32Gi"),
        node("b-1", "b", "16", "16Gi"),
        node("c-1", "c", "4", "64Gi"),
        node("c-2", "c", "16", "64Gi"),
    ];
    nodes[4]["spec"] = json!({"taints": [{"key": "dedicated", "value": "ml", "effect": "NoSchedule"}]});
    nodes
}

fn deployment(name: &str, replicas: u64, spec: &Value) -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "replicas": replicas, "selector": {"matchLabels": {"app": name}},
            "template": template(name, spec),
        },
    })
}

fn template(name: &str, spec: &Value) -> Value {
    json!({"metadata": {"labels": {"app": name}}, "spec": spec})
}

fn asking(requests: Value) -> Value {
    json!({"containers": [{"name": "a", "image": "a.example/a:1", "resources": {"requests": requests}}]})
}

fn with(mut spec: Value, name: &str, value: Value) -> Value {
    spec[name] = value;
    spec
}

/// What is not shared is asked for as a limit.
fn devices() -> Value {
    json!({"containers": [{"name": "a", "image": "a.example/a:1", "resources": {"limits": {"example.org/gpu": "1"}}}]})
}

/// Every kind of demand that is counted.
fn demands() -> Vec<(&'static str, Value)> {
    let small = || asking(json!({"cpu": "700m", "memory": "1Gi"}));
    let own = json!({"matchLabels": {"app": "probe"}});
    let anti = |key: &str| {
        let term = json!({"topologyKey": key, "labelSelector": own});
        json!({"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}})
    };
    let spread = |key: &str, skew: u64| json!([{"topologyKey": key, "maxSkew": skew, "whenUnsatisfiable": "DoNotSchedule", "labelSelector": own}]);
    let zones =
        json!({"nodeSelectorTerms": [{"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a", "b"]}]}]});
    let affinity = json!({"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": zones}});
    vec![
        ("processor and memory", small()),
        ("memory alone", asking(json!({"memory": "5Gi"}))),
        ("nothing but a place", asking(json!({}))),
        ("devices", devices()),
        ("a zone", with(small(), "nodeSelector", json!({"zone": "b"}))),
        ("an affinity", with(small(), "affinity", affinity)),
        (
            "a tolerated taint",
            with(
                small(),
                "tolerations",
                json!([{"key": "dedicated", "operator": "Exists"}]),
            ),
        ),
        (
            "one for each host",
            with(small(), "affinity", anti("kubernetes.io/hostname")),
        ),
        ("one for each zone", with(small(), "affinity", anti("zone"))),
        (
            "spread over hosts",
            with(
                small(),
                "topologySpreadConstraints",
                spread("kubernetes.io/hostname", 2),
            ),
        ),
    ]
}

fn pods(cluster: &ControlPlane, selector: &str) -> Vec<Value> {
    let listed = cluster
        .kubectl(&["get", "pods", "-A", "-l", selector, "-o", "json"])
        .expect_ok();
    let listed: Value = serde_json::from_str(&listed).expect("kubectl writes JSON");
    listed["items"].as_array().cloned().unwrap_or_default()
}

fn is_scheduled(pod: &Value) -> bool {
    pod["spec"]["nodeName"].is_string()
}

/// Waits until the report has counted every pod there is.
#[track_caller]
fn counted(cluster: &ControlPlane, applier: &Applier) -> Capacity {
    eventually(wait::LONG, "every pod is counted", || {
        let there = pods(cluster, "");
        let Room::Known(capacity) = applier.report().room else {
            return Err(format!("{:?}", applier.report().room));
        };
        let all: i64 = capacity
            .nodes
            .0
            .iter()
            .map(|group| group.allocatable.of("pods") * group.count as i64)
            .sum();
        let left: i64 = capacity
            .nodes
            .0
            .iter()
            .map(|group| group.free.of("pods") * group.count as i64)
            .sum();
        if all > 0 && all - left == there.len() as i64 {
            Ok(capacity.as_ref().clone())
        } else {
            Err(format!("{} pods, and {left} of {all} places are left", there.len()))
        }
    })
}

#[test]
fn as_many_fit_as_the_scheduler_places() {
    let cluster = ControlPlane::start("room", Options::with_nodes(1));
    cluster.kubectl(&["delete", "node", "node-0"]).expect_ok();
    cluster.apply(&json!({"apiVersion": "v1", "kind": "List", "items": nodes()}).to_string());
    let applier = Applier::start(&cluster, "room");
    // Something is on the nodes already, of mixed sizes.
    for (name, replicas, requests) in [
        ("small", 7, json!({"cpu": "300m", "memory": "700Mi"})),
        ("large", 3, json!({"cpu": "2500m", "memory": "3Gi"})),
    ] {
        cluster.apply(&deployment(name, replicas, &asking(requests)).to_string());
        eventually(wait::LONG, &format!("{name} runs"), || {
            let found = pods(&cluster, &format!("app={name}"));
            let scheduled = found.iter().filter(|pod| is_scheduled(pod)).count() as u64;
            if scheduled == replicas {
                Ok(())
            } else {
                Err(format!("{scheduled}"))
            }
        });
    }
    for (what, spec) in demands() {
        let capacity = counted(&cluster, &applier);
        assert_eq!(capacity.check(), Ok(()));
        let requirements = PodRequirements::read(&template("probe", &spec)).expect("it can be read");
        let answer = fit(&Field::of(&capacity.nodes), &requirements, None, 1_000);
        cluster.apply(&deployment("probe", answer.replicas + 3, &spec).to_string());
        let placed = eventually(wait::LONG, &format!("the scheduler is done with {what}"), || {
            let found = pods(&cluster, "app=probe");
            let decided = |pod: &&Value| {
                let conditions = pod.pointer("/status/conditions").and_then(Value::as_array);
                let refused = conditions
                    .into_iter()
                    .flatten()
                    .any(|condition| condition["reason"] == "Unschedulable");
                is_scheduled(pod) || refused
            };
            let done = found.iter().filter(decided).count() as u64;
            if found.len() as u64 == answer.replicas + 3 && done == answer.replicas + 3 {
                Ok(found.iter().filter(|pod| is_scheduled(pod)).count() as u64)
            } else {
                Err(format!("{done} of {}", found.len()))
            }
        });
        assert_eq!(answer.replicas, placed, "{what}: {answer:?}");
        cluster
            .kubectl(&["delete", "deployment", "probe", "-n", "default", "--wait=true"])
            .expect_ok();
        eventually(wait::LONG, "its pods are gone", || {
            match pods(&cluster, "app=probe").len() {
                0 => Ok(()),
                left => Err(format!("{left} are left")),
            }
        });
    }
}

#[test]
fn a_change_of_nodes_is_told_within_seconds_and_only_what_changed_is() {
    let cluster = ControlPlane::start("told", Options::with_nodes(3));
    let applier = Applier::start(&cluster, "told");
    let open = |applier: &Applier| match applier.report().room {
        Room::Known(capacity) => {
            let open = capacity.nodes.0.iter().filter(|group| group.taints.is_empty());
            Ok(open.map(|group| group.count).sum::<u64>())
        }
        Room::Unknown(why) => Err(why),
    };
    let until = |expected: u64| {
        eventually(wait::LONG, &format!("{expected} nodes are open"), || {
            match open(&applier) {
                Ok(found) if found == expected => Ok(()),
                other => Err(format!("{other:?}")),
            }
        });
    };
    until(3);
    let before = applier.report().room;
    wait::throughout(Duration::from_secs(5), "nothing is told where nothing changes", || {
        if applier.report().room == before {
            Ok(())
        } else {
            Err("it changed".to_owned())
        }
    });
    cluster.kubectl(&["cordon", "node-1"]).expect_ok();
    until(2);
    cluster.kubectl(&["delete", "node", "node-2"]).expect_ok();
    until(1);
    cluster.kubectl(&["uncordon", "node-1"]).expect_ok();
    until(2);
}
