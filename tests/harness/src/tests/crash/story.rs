//! What a fleet repository may say of one cluster, delivery by delivery: units that gain, change, lose and
//! exchange objects, that come and that go.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::dice::Dice;
use crate::tests::applier::{Units, config_map, deployment, unit_key};

/// One object that may be delivered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Thing {
    pub(super) kind: &'static str,
    pub(super) shelf: &'static str,
    pub(super) namespace: &'static str,
    pub(super) name: &'static str,
}

const fn thing(kind: &'static str, shelf: &'static str, namespace: &'static str, name: &'static str) -> Thing {
    Thing {
        kind,
        shelf,
        namespace,
        name,
    }
}

/// The namespace that is delivered itself.
pub(super) const HOME: Thing = thing("Namespace", "namespaces.", "", "shop");

/// Every object that a story is about.
pub(super) const THINGS: [Thing; 15] = [
    thing("ConfigMap", "configmaps.", "default", "c0"),
    thing("ConfigMap", "configmaps.", "default", "c1"),
    thing("ConfigMap", "configmaps.", "default", "c2"),
    thing("ConfigMap", "configmaps.", "default", "c3"),
    thing("ConfigMap", "configmaps.", "default", "c4"),
    thing("ConfigMap", "configmaps.", "default", "c5"),
    thing("ConfigMap", "configmaps.", "shop", "inside"),
    thing("ConfigMap", "configmaps.", "default", "frozen0"),
    thing("ConfigMap", "configmaps.", "default", "frozen1"),
    thing("Job", "jobs.batch", "default", "j0"),
    HOME,
    thing("Deployment", "deployments.apps", "default", "d0"),
    thing("Deployment", "deployments.apps", "default", "d1"),
    thing("ClusterRole", "clusterroles.rbac.authorization.k8s.io", "", "r0"),
    thing("ClusterRole", "clusterroles.rbac.authorization.k8s.io", "", "r1"),
];

const UNITS: [&str; 4] = ["shop/u0", "shop/u1", "shop/u2", "shop/u3"];

/// What one delivery says: object → its unit and its value.
pub(super) type Say = BTreeMap<Thing, (&'static str, usize)>;

impl Thing {
    /// Whether it cannot change: for another value it is deleted and made anew.
    pub(super) fn is_replaced(&self) -> bool {
        self.kind == "Job" || self.name.starts_with("frozen")
    }

    /// Its manifest with a value.
    pub(super) fn object(&self, value: usize) -> Value {
        let mut object = match self.kind {
            "ConfigMap" => config_map(self.name, &value.to_string()),
            "Deployment" => deployment(self.name, value as u64),
            "Job" => json!({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": self.name},
                "spec": {"template": {"spec": {"restartPolicy": "Never",
                    "containers": [{"name": "work", "image": format!("registry.example/work:{value}")}]}}}}),
            "ClusterRole" => json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
                "metadata": {"name": self.name},
                "rules": [{"apiGroups": [""], "resources": [format!("r{value}")], "verbs": ["get"]}]}),
            _ => json!({"apiVersion": "v1", "kind": self.kind,
                "metadata": {"name": self.name, "labels": {"value": value.to_string()}}}),
        };
        if !self.namespace.is_empty() {
            object["metadata"]["namespace"] = self.namespace.into();
        }
        if self.is_replaced() {
            object["metadata"]["annotations"] = json!({"fleet.flotilla.dev/replace": "WhenImmutable"});
        }
        if self.name.starts_with("frozen") {
            object["immutable"] = true.into();
        }
        object
    }

    /// The value of a live object.
    pub(super) fn value(&self, object: &Value) -> Option<usize> {
        let number = |value: &Value| {
            value
                .as_str()
                .and_then(|text| text.trim_start_matches('r').parse().ok())
        };
        match self.kind {
            "ConfigMap" => number(&object["data"]["value"]),
            "Deployment" => object["spec"]["replicas"]
                .as_u64()
                .and_then(|value| usize::try_from(value).ok()),
            "ClusterRole" => number(&object["rules"][0]["resources"][0]),
            "Job" => {
                let image = object.pointer("/spec/template/spec/containers/0/image")?.as_str()?;
                image.rsplit(':').next()?.parse().ok()
            }
            _ => number(&object["metadata"]["labels"]["value"]),
        }
    }
}

/// A story of some deliveries.
pub(super) fn story(dice: &mut Dice) -> Vec<Say> {
    let mut say = Say::new();
    let mut says = Vec::new();
    for _ in 0..3 + dice.below(4) {
        let changes = if says.is_empty() { 8 } else { 1 + dice.below(5) };
        for _ in 0..changes {
            change(&mut say, dice);
        }
        says.push(say.clone());
    }
    says
}

fn change(say: &mut Say, dice: &mut Dice) {
    let there: Vec<Thing> = say.keys().copied().collect();
    let unit = UNITS[dice.below(UNITS.len())];
    match dice.below(10) {
        // A new one, or an old one with another value or in another unit.
        0..=4 => {
            let thing = THINGS[dice.below(THINGS.len())];
            say.insert(thing, (unit, dice.below(9)));
        }
        5 => {
            if let Some(thing) = dice.one_of(&there) {
                say.entry(*thing).and_modify(|(_, value)| *value += 1);
            }
        }
        6 => {
            if let Some(thing) = dice.one_of(&there) {
                say.entry(*thing).and_modify(|(of, _)| *of = unit);
            }
        }
        7 | 8 => {
            if let Some(thing) = dice.one_of(&there) {
                say.remove(thing);
            }
        }
        _ => say.retain(|_, (of, _)| *of != unit),
    }
    // An object in a namespace that nobody delivers could never be applied.
    if say.keys().any(|thing| thing.namespace == HOME.name) {
        say.entry(HOME).or_insert((unit, 0));
    }
}

/// The units of a delivery.
pub(super) fn units(say: &Say) -> Units {
    let mut units = Units::new();
    for (thing, (unit, value)) in say {
        units.entry(unit_key(unit)).or_default().push(thing.object(*value));
    }
    units
}
