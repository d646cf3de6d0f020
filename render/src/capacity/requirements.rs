//! What one pod asks of the node it runs on.
//!
//! Source of the rules: Kubernetes' documentation of the scheduler, of pod overhead, of init and sidecar containers.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::HOSTNAME;
use super::resources::{PODS, Resources, Rounding};
use crate::model::{Taint, TaintEffect, Toleration};
use crate::selector::LabelSelector;

/// What one pod of a template asks for.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PodRequirements {
    /// What is set aside for it, with `pods: 1`.
    pub requests: Resources,
    /// Labels that the node must have.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub node_selector: BTreeMap<String, String>,
    /// Terms of which one must hold; empty: any node.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub node_terms: Vec<NodeTerm>,
    /// Taints that it puts up with.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tolerations: Vec<Toleration>,
    /// Where it may not stand beside another of its own.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub apart: Vec<Apart>,
    /// How evenly it must be spread.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub spread: Vec<Spread>,
    /// Whether it asks for something that nodes and its own pods do not say: other pods beside it, volumes of a zone.
    /// An answer is then an upper bound.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub asks_more: bool,
}

/// A required anti-affinity to its own pods.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Apart {
    /// The node label of which two pods may not share a value.
    pub topology_key: String,
}

/// A topology spread constraint with `DoNotSchedule`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Spread {
    /// The node label.
    pub topology_key: String,
    /// By how many pods a value may be ahead of the one with the fewest.
    pub max_skew: u64,
    /// With fewer values than this, the fewest count as none.
    pub min_domains: u64,
}

/// A term of a node affinity: all must hold.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct NodeTerm {
    /// Of the node's labels.
    pub match_expressions: Vec<NodeExpression>,
}

/// One expression of a node affinity.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NodeExpression {
    /// The label.
    pub key: String,
    /// What must hold for it.
    pub operator: NodeOperator,
    /// Values; one whole number for Gt and Lt.
    #[serde(default)]
    pub values: Vec<String>,
}

/// What an expression asks of a node's label.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum NodeOperator {
    /// Present with one of the values.
    In,
    /// Absent, or present with none of the values.
    NotIn,
    /// Present.
    Exists,
    /// Absent.
    DoesNotExist,
    /// A whole number above the value.
    Gt,
    /// A whole number below the value.
    Lt,
}

impl PodRequirements {
    /// Those of a pod template (or a pod): an object with `metadata` and `spec`.
    ///
    /// # Errors
    ///
    /// The pointer of the field that cannot be read.
    pub fn read(template: &Value) -> Result<Self, String> {
        let spec = template.get("spec").unwrap_or(&Value::Null);
        let affinity = spec.get("affinity");
        let required = "requiredDuringSchedulingIgnoredDuringExecution";
        let node_terms =
            affinity.and_then(|affinity| affinity.pointer(&format!("/nodeAffinity/{required}/nodeSelectorTerms")));
        let beside = affinity.and_then(|affinity| affinity.pointer(&format!("/podAffinity/{required}")));
        let labels: BTreeMap<String, String> = parsed(template.pointer("/metadata/labels"), "/metadata/labels")?;
        let mut requirements = Self {
            requests: requests(spec)?,
            node_selector: parsed(spec.get("nodeSelector"), "/spec/nodeSelector")?,
            node_terms: parsed(node_terms, "/spec/affinity/nodeAffinity")?,
            tolerations: parsed(spec.get("tolerations"), "/spec/tolerations")?,
            asks_more: beside.and_then(Value::as_array).is_some_and(|terms| !terms.is_empty()) || has_claims(spec),
            ..Self::default()
        };
        let anti = affinity.and_then(|affinity| affinity.pointer(&format!("/podAntiAffinity/{required}")));
        for term in anti.and_then(Value::as_array).into_iter().flatten() {
            let key = term.get("topologyKey").and_then(Value::as_str).unwrap_or_default();
            if selects(term, &labels) {
                requirements.keep_apart(key);
            } else {
                requirements.asks_more = true;
            }
        }
        if has_host_ports(spec) {
            requirements.keep_apart(HOSTNAME);
        }
        for constraint in spec
            .get("topologySpreadConstraints")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
        {
            requirements.spread_over(constraint, &labels);
        }
        Ok(requirements)
    }

    fn keep_apart(&mut self, topology_key: &str) {
        let apart = Apart {
            topology_key: topology_key.to_owned(),
        };
        if !self.apart.contains(&apart) {
            self.apart.push(apart);
        }
    }

    fn spread_over(&mut self, constraint: &Value, labels: &BTreeMap<String, String>) {
        if constraint.get("whenUnsatisfiable").and_then(Value::as_str) != Some("DoNotSchedule") {
            return;
        }
        if !selects(constraint, labels) {
            // It counts pods of others, and its own are none of them.
            self.asks_more = true;
            return;
        }
        let number = |name: &str| constraint.get(name).and_then(Value::as_u64);
        let key = constraint
            .get("topologyKey")
            .and_then(Value::as_str)
            .unwrap_or_default();
        self.spread.push(Spread {
            topology_key: key.to_owned(),
            max_skew: number("maxSkew").unwrap_or(1),
            min_domains: number("minDomains").unwrap_or(1),
        });
    }

    /// Whether its pods stand wherever they like beside one another.
    pub(super) fn is_free(&self) -> bool {
        self.apart.is_empty() && self.spread.is_empty()
    }

    /// Why a node with these labels and taints cannot take it, whatever it has left; `None` where it can.
    pub fn unmet(&self, labels: &BTreeMap<String, String>, taints: &[Taint]) -> Option<&'static str> {
        let selected = self
            .node_selector
            .iter()
            .all(|(key, value)| labels.get(key) == Some(value));
        let affine = self.node_terms.is_empty() || self.node_terms.iter().any(|term| term.matches(labels));
        if !selected || !affine {
            return Some("node selector or affinity");
        }
        let is_hard = |taint: &&Taint| taint.effect != TaintEffect::PreferNoSchedule;
        let mut hard = taints.iter().filter(is_hard);
        if hard.any(|taint| !self.tolerations.iter().any(|toleration| toleration.covers(taint))) {
            return Some("taint");
        }
        let lacks =
            |constraint: &Spread| !labels.contains_key(&constraint.topology_key) && constraint.topology_key != HOSTNAME;
        self.spread.iter().any(lacks).then_some("no label to spread by")
    }
}

impl NodeTerm {
    fn matches(&self, labels: &BTreeMap<String, String>) -> bool {
        // A term without expressions matches no node.
        !self.match_expressions.is_empty()
            && self
                .match_expressions
                .iter()
                .all(|expression| expression.matches(labels))
    }
}

impl NodeExpression {
    fn matches(&self, labels: &BTreeMap<String, String>) -> bool {
        let value = labels.get(&self.key);
        let number = |text: &String| text.parse::<i64>().ok();
        let compared = || Some((number(value?)?, number(self.values.first()?)?));
        match self.operator {
            NodeOperator::In => value.is_some_and(|value| self.values.contains(value)),
            NodeOperator::NotIn => !value.is_some_and(|value| self.values.contains(value)),
            NodeOperator::Exists => value.is_some(),
            NodeOperator::DoesNotExist => value.is_none(),
            NodeOperator::Gt => compared().is_some_and(|(value, bound)| value > bound),
            NodeOperator::Lt => compared().is_some_and(|(value, bound)| value < bound),
        }
    }
}

/// Whether the label selector of a term selects the pod's own labels.
fn selects(term: &Value, labels: &BTreeMap<String, String>) -> bool {
    let selector = term.get("labelSelector").filter(|selector| !selector.is_null());
    // None selects no pod.
    selector
        .and_then(|selector| serde_json::from_value::<LabelSelector>(selector.clone()).ok())
        .is_some_and(|selector| selector.matches(labels))
}

fn has_host_ports(spec: &Value) -> bool {
    let lists = ["containers", "initContainers"].map(|name| spec.get(name).and_then(Value::as_array));
    let containers = lists.into_iter().flatten().flatten();
    let mut ports = containers
        .filter_map(|container| container.get("ports")?.as_array())
        .flatten();
    let on_host = spec.get("hostNetwork").and_then(Value::as_bool) == Some(true);
    ports.any(|port| {
        on_host
            || port
                .get("hostPort")
                .and_then(Value::as_u64)
                .is_some_and(|port| port > 0)
    })
}

/// Whether it mounts claims: where their volumes are, the cluster knows.
fn has_claims(spec: &Value) -> bool {
    let volumes = spec.get("volumes").and_then(Value::as_array).into_iter().flatten();
    volumes
        .into_iter()
        .any(|volume| volume.get("persistentVolumeClaim").is_some())
}

/// The sum over containers and sidecars, or what an init container needs beside the sidecars before it, whichever is
/// greater, and the overhead. A pod's own `resources` count before those of its containers.
fn requests(spec: &Value) -> Result<Resources, String> {
    let mut running = Resources::default();
    let mut greatest = Resources::default();
    for (index, container) in list(spec, "initContainers") {
        let asked = of_container(container, &format!("/spec/initContainers/{index}"))?;
        if container.get("restartPolicy").and_then(Value::as_str) == Some("Always") {
            running.add(&asked, 1);
            greatest.raise_to(&running);
        } else {
            let mut beside = running.clone();
            beside.add(&asked, 1);
            greatest.raise_to(&beside);
        }
    }
    for (index, container) in list(spec, "containers") {
        running.add(&of_container(container, &format!("/spec/containers/{index}"))?, 1);
    }
    greatest.raise_to(&running);
    for (name, amount) in of_container(spec, "/spec")?.iter() {
        greatest.set(name, amount);
    }
    let overhead =
        Resources::rounded(spec.get("overhead"), Rounding::Up).map_err(|name| format!("/spec/overhead/{name}"))?;
    greatest.add(&overhead, 1);
    Ok(greatest.with(PODS, 1))
}

fn list<'a>(spec: &'a Value, name: &str) -> impl Iterator<Item = (usize, &'a Value)> {
    spec.get(name)
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .enumerate()
}

/// What a container requests; its limit counts where it requests nothing.
fn of_container(container: &Value, at: &str) -> Result<Resources, String> {
    let read = |part: &str| {
        let map = container.pointer(&format!("/resources/{part}"));
        Resources::rounded(map, Rounding::Up).map_err(|name| format!("{at}/resources/{part}/{name}"))
    };
    let mut asked = read("limits")?;
    for (name, amount) in read("requests")?.iter() {
        asked.set(name, amount);
    }
    Ok(asked)
}

fn parsed<T: Default + serde::de::DeserializeOwned>(value: Option<&Value>, at: &str) -> Result<T, String> {
    match value {
        None | Some(Value::Null) => Ok(T::default()),
        Some(value) => serde_json::from_value(value.clone()).map_err(|_| at.to_owned()),
    }
}
