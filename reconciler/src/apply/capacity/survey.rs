//! What nodes have left: counted out of nodes, pods and what is delivered.

use std::collections::BTreeMap;

use render::capacity::{Capacity, HOSTNAME, NodeGroup, Nodes, PodRequirements, Resources, WorkloadPods};
use render::model::{Taint, TaintEffect};
use serde_json::Value;

use super::follow::Told;
use super::wanted::AllWanted;
use crate::wire::NodeFacts;

/// The nodes and pods of a cluster, as far as they were told.
#[derive(Debug, Default)]
pub(super) struct Survey {
    nodes: Option<BTreeMap<String, Node>>,
    pods: Option<BTreeMap<String, Pod>>,
}

/// A node, as far as it is counted.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Node {
    /// It as a group of one; `None` where it cannot be read: nothing is known to fit there.
    pub(super) group: Option<NodeGroup>,
    /// Its condition Ready, where it has one.
    ready: Option<Ready>,
    capacity: Resources,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ready {
    True,
    False,
    Unknown,
}

/// A pod that takes room, or will.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Pod {
    namespace: String,
    labels: BTreeMap<String, String>,
    /// Where it runs; `None` while it waits for a node.
    node: Option<String>,
    /// The scheduler said that no node takes it.
    unschedulable: bool,
    requirements: PodRequirements,
    /// What it asks for cannot be read: its node counts as full.
    unreadable: bool,
}

impl Survey {
    /// Takes in what was told.
    pub(super) fn take(&mut self, told: Told) {
        match told {
            Told::Nodes(list) => self.nodes = Some(list),
            Told::Pods(list) => self.pods = Some(list),
            Told::Node(name, node) => change(self.nodes.as_mut(), name, node),
            Told::Pod(name, pod) => change(self.pods.as_mut(), name, pod),
            Told::Failed(_) => {}
        }
    }

    /// How the nodes fare; `None` before they are listed.
    pub(super) fn node_facts(&self) -> Option<NodeFacts> {
        let mut facts = NodeFacts::default();
        let counts = &mut facts.statistics;
        for node in self.nodes.as_ref()?.values() {
            let count = match node.ready {
                Some(Ready::True) => &mut counts.ready_nodes,
                Some(Ready::False) => &mut counts.not_ready_nodes,
                Some(Ready::Unknown) => &mut counts.unknown_nodes,
                None => &mut counts.lost_nodes,
            };
            *count += 1;
            facts.capacity.add(&node.capacity, 1);
        }
        Some(facts)
    }

    /// The room that is left; `None` before both lists are there.
    pub(super) fn capacity(&self, wanted: &AllWanted) -> Option<Capacity> {
        let (nodes, pods) = (self.nodes.as_ref()?, self.pods.as_ref()?);
        let mut nodes: BTreeMap<_, _> = nodes
            .iter()
            .filter_map(|(name, node)| Some((name, node.group.clone()?)))
            .collect();
        let mut counted: Vec<WorkloadPods> = wanted
            .workloads
            .iter()
            .map(|workload| WorkloadPods {
                unit: workload.unit.clone(),
                object: workload.object.clone(),
                replicas: workload.replicas,
                requests: workload.requirements.requests.clone(),
                scheduled: 0,
                unschedulable: 0,
            })
            .collect();
        let mut there = vec![0_u64; counted.len()];
        let mut waiting = Vec::new();
        for pod in pods.values() {
            let own = owner(wanted, pod);
            if let Some(own) = own {
                there[own] += 1;
                counted[own].scheduled += u64::from(pod.node.is_some());
                counted[own].unschedulable += u64::from(pod.unschedulable);
            }
            let Some(node) = pod.node.as_ref() else {
                waiting.push((own, pod));
                continue;
            };
            if let Some(node) = nodes.get_mut(node) {
                node.free.add(&pod.requirements.requests, -1);
                if pod.unreadable {
                    node.free.lower_to(&Resources::default());
                }
                if let Some(own) = own {
                    *node.pods.entry(own).or_default() += 1;
                }
            }
        }
        let mut nodes = Nodes::grouped(nodes.into_values());
        let gross = nodes.free();
        for (own, pod) in waiting {
            nodes.put(&pod.requirements, 1, own);
        }
        for (index, workload) in wanted.workloads.iter().enumerate() {
            let missing = workload.replicas.saturating_sub(there[index]);
            nodes.put(&workload.requirements, missing, Some(index));
        }
        let mut promised = gross;
        promised.add(&nodes.free(), -1);
        Some(Capacity {
            version: Capacity::VERSION,
            sequence: wanted.sequence,
            nodes: nodes.at_most(render::limits::NODE_GROUPS_MAX),
            promised,
            workloads: counted,
        })
    }
}

fn change<T>(list: Option<&mut BTreeMap<String, T>>, name: String, item: Option<T>) {
    let Some(list) = list else { return };
    match item {
        Some(item) => drop(list.insert(name, item)),
        None => drop(list.remove(&name)),
    }
}

/// Whose pod it is.
fn owner(wanted: &AllWanted, pod: &Pod) -> Option<usize> {
    wanted.workloads.iter().position(|workload| {
        let selector = workload.selector.as_ref();
        workload.object.namespace == pod.namespace && selector.is_some_and(|selector| selector.matches(&pod.labels))
    })
}

/// What is counted of a node.
pub(super) fn node(object: &Value) -> Option<Node> {
    let conditions = object.pointer("/status/conditions").and_then(Value::as_array);
    let ready = conditions
        .into_iter()
        .flatten()
        .find(|condition| condition["type"] == "Ready")
        .map(|condition| match condition["status"].as_str() {
            Some("True") => Ready::True,
            Some("False") => Ready::False,
            _ => Ready::Unknown,
        });
    Some(Node {
        group: group(object),
        ready,
        capacity: Resources::read(object.pointer("/status/capacity")).unwrap_or_default(),
    })
}

fn group(object: &Value) -> Option<NodeGroup> {
    let labels: BTreeMap<String, String> = map(object.pointer("/metadata/labels"));
    let name = object
        .pointer("/metadata/name")
        .and_then(Value::as_str)
        .unwrap_or_default();
    let taints = object
        .pointer("/spec/taints")
        .cloned()
        .unwrap_or(Value::Array(Vec::new()));
    let mut taints: Vec<Taint> = serde_json::from_value(taints).ok()?;
    let cordoned = object.pointer("/spec/unschedulable").and_then(Value::as_bool) == Some(true);
    let unschedulable = Taint {
        key: "node.kubernetes.io/unschedulable".to_owned(),
        value: String::new(),
        effect: TaintEffect::NoSchedule,
    };
    if cordoned && !taints.contains(&unschedulable) {
        taints.push(unschedulable);
    }
    taints.sort();
    let allocatable = Resources::read(object.pointer("/status/allocatable")).ok()?;
    Some(NodeGroup {
        count: 1,
        // What tells each node apart would make a group of each.
        labels: labels
            .into_iter()
            .filter(|(key, value)| key != HOSTNAME && value != name)
            .collect(),
        taints,
        free: allocatable.clone(),
        allocatable,
        pods: BTreeMap::new(),
    })
}

/// A pod; `None` for one that has ended and takes no room any more.
pub(super) fn pod(object: &Value) -> Option<Pod> {
    let text = |pointer: &str| {
        object
            .pointer(pointer)
            .and_then(Value::as_str)
            .unwrap_or_default()
            .to_owned()
    };
    if matches!(text("/status/phase").as_str(), "Succeeded" | "Failed") {
        return None;
    }
    let node = Some(text("/spec/nodeName")).filter(|node| !node.is_empty());
    let conditions = object.pointer("/status/conditions").and_then(Value::as_array);
    let unschedulable = conditions.into_iter().flatten().any(|condition| {
        condition["type"] == "PodScheduled" && condition["status"] == "False" && condition["reason"] == "Unschedulable"
    });
    let read = PodRequirements::read(object);
    let unreadable = read.is_err();
    let mut requirements = read.unwrap_or_default();
    if node.is_some() {
        // It has its place, and only takes room.
        requirements = PodRequirements {
            requests: requirements.requests,
            ..PodRequirements::default()
        };
    }
    Some(Pod {
        namespace: text("/metadata/namespace"),
        labels: map(object.pointer("/metadata/labels")),
        unschedulable: unschedulable && node.is_none(),
        node,
        requirements,
        unreadable,
    })
}

fn map(value: Option<&Value>) -> BTreeMap<String, String> {
    let entries = value.and_then(Value::as_object).into_iter().flatten();
    let entry = |(key, value): (&String, &Value)| Some((key.clone(), value.as_str()?.to_owned()));
    entries.filter_map(entry).collect()
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
