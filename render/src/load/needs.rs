//! What units and objects need of each other: what is not there, and what needs itself by a detour.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::lines::Lines;
use crate::depend::{Graph, annotations, references};
use crate::finding::Finding;
use crate::fleet::{ManifestObject, Unit};
use crate::name::{ObjectKey, UnitKey};
use crate::nearest::nearest;

/// Checks what units and objects need, and holds the units that can never have it.
pub(super) fn check(units: &mut BTreeMap<UnitKey, Unit>, lines: &mut Lines<'_>) -> Vec<Finding> {
    let (held, warnings) = find(units, lines);
    let mut findings = warnings;
    for finding in held {
        let unit = finding.unit.as_ref().and_then(|key| units.get_mut(key));
        unit.into_iter().for_each(|unit| unit.blocked.push(finding.clone()));
        findings.push(finding);
    }
    findings
}

/// Errors, each with the unit that it holds, and warnings.
fn find(units: &BTreeMap<UnitKey, Unit>, lines: &mut Lines<'_>) -> (Vec<Finding>, Vec<Finding>) {
    let mut errors = Vec::new();
    let mut warnings = Vec::new();
    for (key, unit) in units {
        errors.extend(missing_units(key, unit, units, lines));
    }
    let needing = needing(units, lines, &mut errors);
    let mut net = Net::new(units);
    for object in &needing {
        for (field, needed) in &object.needs {
            if !net.add_object(object, field, needed) {
                warnings.push(missing_object(object, field, needed, &net.objects, lines));
            }
        }
    }
    net.connect();
    errors.append(&mut net.cycles(lines));
    (errors, warnings)
}

fn missing_units(key: &UnitKey, unit: &Unit, units: &BTreeMap<UnitKey, Unit>, lines: &mut Lines<'_>) -> Vec<Finding> {
    let subscription = &unit.subscription;
    let mut findings = Vec::new();
    for (index, dependency) in subscription.apply.depends_on.iter().enumerate() {
        if units.contains_key(&dependency.unit) {
            continue;
        }
        let field = format!("spec.dependsOn[{index}]");
        let line = lines.find(&subscription.file, subscription.line, &field);
        let names: Vec<_> = units
            .keys()
            .filter(|other| *other != key)
            .map(ToString::to_string)
            .collect();
        let hint = match nearest(&dependency.unit.to_string(), names.iter().map(String::as_str)) {
            Some(near) => format!("did you mean {near}?"),
            None => {
                "name a Subscription of this fleet, or remove the dependency; the unit keeps what it had".to_owned()
            }
        };
        let finding = Finding::error(
            "DependencyNotFound",
            format!("dependency {} not found", dependency.unit),
        )
        .at(&*subscription.file, line)
        .field(field)
        .hint(hint)
        .unit(key);
        findings.push(finding);
    }
    findings
}

/// An object of a unit that names others.
struct Needing<'a> {
    unit: &'a UnitKey,
    object: &'a Arc<ManifestObject>,
    /// The annotation, and what it names.
    needs: Vec<(&'static str, ObjectKey)>,
}

/// Every object that names others; what cannot be read is added to `errors`.
fn needing<'a>(
    units: &'a BTreeMap<UnitKey, Unit>,
    lines: &mut Lines<'_>,
    errors: &mut Vec<Finding>,
) -> Vec<Needing<'a>> {
    let mut found = Vec::new();
    for (key, unit) in units {
        for object in &unit.base.objects {
            let mut needs = Vec::new();
            for (annotation, text) in annotations(&object.value) {
                match references(text) {
                    Ok(named) => needs.extend(named.into_iter().map(|needed| (annotation, needed))),
                    Err(error) => errors.push(
                        placed(Finding::error("DependencyInvalid", error.to_string()), object, annotation, lines)
                            .hint("write group/kind/namespace/name, with nothing before the first slash for the core group: apps/Deployment/shop/web, /ConfigMap/shop/web")
                            .unit(key),
                    ),
                }
            }
            if !needs.is_empty() {
                found.push(Needing {
                    unit: key,
                    object,
                    needs,
                });
            }
        }
    }
    found
}

fn missing_object(
    by: &Needing<'_>,
    annotation: &str,
    needed: &ObjectKey,
    objects: &BTreeMap<&ObjectKey, Vec<(&UnitKey, &Arc<ManifestObject>)>>,
    lines: &mut Lines<'_>,
) -> Finding {
    let message = format!("no unit delivers {}, so it is not waited for", label(needed));
    let names: Vec<_> = objects
        .keys()
        .filter(|key| **key != &by.object.key)
        .map(ToString::to_string)
        .collect();
    let hint = match nearest(&needed.to_string(), names.iter().map(String::as_str)) {
        Some(near) => format!("did you mean {near}?"),
        None => "name an object of a unit as group/kind/namespace/name, or remove the annotation".to_owned(),
    };
    placed(
        Finding::warning("DependencyNotFound", message),
        by.object,
        annotation,
        lines,
    )
    .hint(hint)
    .unit(by.unit)
}

fn placed(finding: Finding, object: &ManifestObject, annotation: &str, lines: &mut Lines<'_>) -> Finding {
    let field = format!("metadata.annotations.{annotation}");
    let line = lines.find(&object.file, object.line, &field);
    finding.at(&*object.file, line).field(field)
}

fn label(key: &ObjectKey) -> String {
    let slash = if key.namespace.is_empty() { "" } else { "/" };
    format!("{} {}{slash}{}", key.kind, key.namespace, key.name)
}

/// One node of the net.
enum Node<'a> {
    /// Nothing of the unit is applied before it.
    Begin(&'a UnitKey),
    /// All of the unit is there and healthy.
    Done(&'a UnitKey),
    Object(&'a Arc<ManifestObject>),
}

/// Where an edge that a person wrote stands.
enum Written<'a> {
    Unit(&'a UnitKey, usize),
    Object(&'a UnitKey, &'a Arc<ManifestObject>, &'static str),
}

/// Units and objects in one net: a unit is done after all its objects, and an object comes after what its unit
/// waits for. Only objects that name others, or are named, are in it: the rest is in no cycle.
struct Net<'a> {
    units: &'a BTreeMap<UnitKey, Unit>,
    /// Every object of every unit.
    objects: BTreeMap<&'a ObjectKey, Vec<(&'a UnitKey, &'a Arc<ManifestObject>)>>,
    graph: Graph,
    nodes: Vec<Node<'a>>,
    /// Unit → its first node; the second follows.
    of_unit: BTreeMap<&'a UnitKey, usize>,
    of_object: BTreeMap<(&'a UnitKey, &'a ObjectKey), usize>,
    /// What a person wrote: (node, what it needs) → where.
    written: Vec<((usize, usize), Written<'a>)>,
}

impl<'a> Net<'a> {
    fn new(units: &'a BTreeMap<UnitKey, Unit>) -> Self {
        let mut net = Self {
            units,
            objects: BTreeMap::new(),
            graph: Graph::default(),
            nodes: Vec::new(),
            of_unit: BTreeMap::new(),
            of_object: BTreeMap::new(),
            written: Vec::new(),
        };
        for (key, unit) in units {
            let begin = net.node(Node::Begin(key));
            let done = net.node(Node::Done(key));
            net.graph.need(done, begin);
            net.of_unit.insert(key, begin);
            for object in &unit.base.objects {
                net.objects.entry(&object.key).or_default().push((key, object));
            }
        }
        net
    }

    fn node(&mut self, node: Node<'a>) -> usize {
        self.nodes.push(node);
        self.graph.add()
    }

    /// Adds what an object needs; whether any unit delivers that.
    fn add_object(&mut self, by: &Needing<'a>, annotation: &'static str, needed: &ObjectKey) -> bool {
        let found = self.objects.get(needed).cloned().unwrap_or_default();
        for (unit, object) in &found {
            let from = self.object_node(by.unit, by.object);
            let to = self.object_node(unit, object);
            self.graph.need(from, to);
            let written = Written::Object(by.unit, by.object, annotation);
            self.written.push(((from, to), written));
        }
        !found.is_empty()
    }

    fn object_node(&mut self, unit: &'a UnitKey, object: &'a Arc<ManifestObject>) -> usize {
        if let Some(node) = self.of_object.get(&(unit, &object.key)) {
            return *node;
        }
        let node = self.node(Node::Object(object));
        self.of_object.insert((unit, &object.key), node);
        let begin = self.of_unit[unit];
        self.graph.need(node, begin);
        self.graph.need(begin + 1, node);
        node
    }

    /// Adds what units need of each other.
    fn connect(&mut self) {
        for (key, unit) in self.units {
            let begin = self.of_unit[key];
            for (index, dependency) in unit.subscription.apply.depends_on.iter().enumerate() {
                let Some(needed) = self.of_unit.get(&dependency.unit) else {
                    continue;
                };
                let edge = (begin, needed + 1);
                self.graph.need(edge.0, edge.1);
                self.written.push((edge, Written::Unit(key, index)));
            }
        }
    }

    /// An Error for each unit and object that needs itself by a detour, where that is written.
    fn cycles(&self, lines: &mut Lines<'_>) -> Vec<Finding> {
        let part = self.graph.parts();
        let mut findings = Vec::new();
        let mut told = None;
        for ((from, to), written) in &self.written {
            if part[*from] != part[*to] || told == Some(*from) {
                continue;
            }
            // One way per member is enough to see where to cut.
            told = Some(*from);
            let Some(way) = self.graph.way_back(*from, *to, &part) else {
                continue;
            };
            let finding = Finding::error(
                "DependencyCycle",
                format!("dependencies go in a circle: {}", self.path(&way)),
            );
            findings.push(
                match written {
                    Written::Unit(key, index) => {
                        let subscription = &self.units[*key].subscription;
                        let field = format!("spec.dependsOn[{index}]");
                        let line = lines.find(&subscription.file, subscription.line, &field);
                        finding.at(&*subscription.file, line).field(field).unit(key)
                    }
                    Written::Object(unit, object, annotation) => placed(finding, object, annotation, lines).unit(unit),
                }
                .hint("remove one of these dependencies; all of them keep what they had until then"),
            );
        }
        findings
    }

    /// `a -> b -> a`, where a unit's two nodes are one.
    fn path(&self, way: &[usize]) -> String {
        let mut names: Vec<String> = way
            .iter()
            .map(|node| match &self.nodes[*node] {
                Node::Begin(key) | Node::Done(key) => key.to_string(),
                Node::Object(object) => label(&object.key),
            })
            .collect();
        names.dedup();
        if names.len() == 1 {
            names.push(names[0].clone());
        }
        names.join(" -> ")
    }
}
