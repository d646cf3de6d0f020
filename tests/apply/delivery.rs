//! An applier in this process, and what it is told.

use std::collections::BTreeMap;
use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

use flotilla_tests::{ControlPlane, Options, RunningApplier, eventually, wait};
use reconciler::apply::{ApplierOptions, Desired, DesiredUnit};
use reconciler::wire::{EnvelopeUnit, Held, ObjectResult, UnitReport, UnitState, list_digest};
use render::describe::{CarriedStep, Content, DescribedObject, Description, key_of};
use render::model::{ApplyPolicy, DriftMode};
use render::{ClusterName, Digest, Revision, UnitKey};
use serde_json::{Value, json};

/// Unit → its objects.
pub(super) type Units<'a> = &'a [(&'a str, Vec<Value>)];

/// A running applier.
pub(super) struct Applier {
    running: RunningApplier,
    lineage: char,
    sequence: u64,
    /// How units are applied that are delivered from now on; of others nothing is said.
    policies: BTreeMap<UnitKey, ApplyPolicy>,
    /// What is done about fields that others changed, in every unit that is delivered from now on.
    drift: DriftMode,
}

/// A cluster of one's own, without nodes.
#[track_caller]
pub(super) fn cluster(name: &str) -> ControlPlane {
    ControlPlane::start(name, Options::default())
}

impl Deref for Applier {
    type Target = RunningApplier;

    fn deref(&self) -> &RunningApplier {
        &self.running
    }
}

impl Applier {
    /// Starts an applier that compares unchanged objects every two seconds.
    #[track_caller]
    pub(super) fn start(cluster: &ControlPlane, holder: &str) -> Self {
        Self::start_with(cluster, holder, Duration::from_secs(2))
    }

    /// Starts an applier that compares unchanged objects this often.
    #[track_caller]
    pub(super) fn start_with(cluster: &ControlPlane, holder: &str, resync: Duration) -> Self {
        let name = ClusterName::parse(cluster.name()).expect("a valid name");
        let options = ApplierOptions {
            resync,
            ..ApplierOptions::new(name, holder.to_owned())
        };
        Self {
            running: RunningApplier::start(cluster, options),
            lineage: 'a',
            sequence: 0,
            policies: BTreeMap::new(),
            drift: DriftMode::default(),
        }
    }

    /// Continues another lineage, from this sequence on.
    pub(super) fn change_lineage(&mut self, lineage: char, sequence: u64) {
        (self.lineage, self.sequence) = (lineage, sequence);
    }

    /// Says how a unit is applied, from the next delivery on.
    pub(super) fn govern(&mut self, unit: &str, policy: ApplyPolicy) {
        self.policies.insert(unit_key(unit), policy);
    }

    /// Says what should be, as the next delivery.
    pub(super) fn deliver(&mut self, units: Units<'_>) {
        self.deliver_with(units, &[]);
    }

    /// Says what is done about fields that others changed, from the next delivery on.
    pub(super) fn change_drift_mode(&mut self, drift: DriftMode) {
        self.drift = drift;
    }

    /// Says what should be, with units whose content has not arrived.
    pub(super) fn deliver_with(&mut self, units: Units<'_>, missing: &[&str]) {
        self.sequence += 1;
        let contents = units.iter().map(|(unit, objects)| (unit_key(unit), described(objects)));
        let mut units: BTreeMap<UnitKey, DesiredUnit> = contents.collect();
        for (key, unit) in &mut units {
            unit.drift = self.drift;
            if let Some(policy) = self.policies.get(key) {
                let described = Description::clone(&unit.description);
                unit.description = Arc::new(described.under(policy.clone()));
            }
        }
        let mut held: BTreeMap<_, _> = units
            .iter()
            .map(|(key, unit)| (key.clone(), envelope_unit(unit.description.digest)))
            .collect();
        held.extend(
            missing
                .iter()
                .map(|unit| (unit_key(unit), envelope_unit(Digest::of_bytes(b"away")))),
        );
        let desired = Desired {
            held: Held {
                lineage: revision(self.lineage),
                sequence: self.sequence,
                list: list_digest(&held, false),
                orphan: false,
                orphaned: Default::default(),
                mode: Default::default(),
                mode_source: None,
                released: revision('b'),
                units: held,
            },
            units,
        };
        self.running.tell(desired);
    }

    /// Waits until a unit of the newest delivery is in a state.
    #[track_caller]
    pub(super) fn until_unit(&self, unit: &str, state: UnitState) -> UnitReport {
        let key = unit_key(unit);
        let held = self
            .running
            .told()
            .and_then(|desired| desired.held.units.get(&key).map(|unit| unit.digest));
        let report = self.until(&format!("unit {unit} is {state:?}"), |report| {
            report
                .units
                .get(&key)
                .is_some_and(|unit| unit.state == state && unit.digest == held)
        });
        report.units[&key].clone()
    }

    /// Stops it, and waits for it.
    #[track_caller]
    pub(super) fn stop(self) {
        self.running.stop();
    }

    /// Ends it as a crash would: nothing is said to anybody.
    pub(super) fn crash(self) {
        self.running.crash();
    }
}

/// The result of an object in a unit's report.
#[track_caller]
pub(super) fn result<'a>(report: &'a UnitReport, name: &str) -> &'a ObjectResult {
    let found = report.worst.iter().find(|result| result.object.name == name);
    found.unwrap_or_else(|| panic!("{name} is not among {:#?}", report.worst))
}

fn envelope_unit(digest: Digest) -> EnvelopeUnit {
    EnvelopeUnit {
        digest,
        revision: revision('c'),
        replicas: Default::default(),
        drift: Default::default(),
        gates: Vec::new(),
    }
}

/// Stands for an encrypted document among a unit's objects: its text, and a MergePatch to apply once it is decrypted.
pub(super) fn sealed(document: &str, patch: &Value) -> Value {
    json!({"sealed": document, "patch": patch})
}

fn content(object: &Value) -> DescribedObject {
    let Some(original) = object["sealed"].as_str() else {
        return DescribedObject {
            key: key_of(object).expect("the object has a name"),
            content: Content::Plain {
                object: Arc::new(object.clone()),
            },
            provenance: Vec::new(),
        };
    };
    let open = render::yaml::read(original).expect("it is YAML").remove(0).value;
    let key = key_of(&open).expect("its name is not encrypted");
    let step = CarriedStep {
        step_type: "MergePatch".to_owned(),
        value: object["patch"].clone(),
        field_path: None,
        field_format: None,
    };
    DescribedObject {
        key: key.clone(),
        content: Content::Encrypted {
            key,
            original: original.into(),
            overrides: if object["patch"].is_null() {
                Vec::new()
            } else {
                vec![step]
            },
        },
        provenance: Vec::new(),
    }
}

fn described(objects: &[Value]) -> DesiredUnit {
    let mut objects: Vec<_> = objects.iter().map(content).collect();
    objects.sort_by(|a, b| a.key.cmp(&b.key));
    let digest = Digest::of_value(&objects.iter().map(|object| json!(object.content)).collect());
    let description = Arc::new(Description {
        apply: Default::default(),
        objects,
        digest,
        bytes: 0,
    });
    DesiredUnit {
        description,
        replicas: Default::default(),
        drift: Default::default(),
    }
}

pub(super) fn unit_key(text: &str) -> UnitKey {
    text.parse().expect("a valid unit")
}

fn revision(digit: char) -> Revision {
    Revision::parse(digit.to_string().repeat(40)).expect("a valid revision")
}

/// A ConfigMap with one entry.
pub(super) fn config_map(namespace: &str, name: &str, value: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": namespace}, "data": {"value": value}})
}

/// A Namespace.
pub(super) fn namespace(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
}

/// A definition of kind Widget, group `example.org`.
pub(super) fn widgets() -> Value {
    json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.example.org"},
        "spec": {"group": "example.org", "scope": "Namespaced",
            "names": {"kind": "Widget", "listKind": "WidgetList", "plural": "widgets", "singular": "widget"},
            "versions": [{"name": "v1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": {"type": "object",
                    "properties": {"size": {"type": "integer"}}}}}}}]}})
}

/// A Widget.
pub(super) fn widget(namespace: &str, name: &str) -> Value {
    json!({"apiVersion": "example.org/v1", "kind": "Widget", "metadata": {"name": name, "namespace": namespace}, "spec": {"size": 1}})
}

/// A Deployment.
pub(super) fn deployment(namespace: &str, name: &str, replicas: u64) -> Value {
    json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name, "namespace": namespace},
        "spec": {"replicas": replicas, "selector": {"matchLabels": {"app": name}},
            "template": {"metadata": {"labels": {"app": name}},
                "spec": {"containers": [{"name": "web", "image": "registry.example/web:1"}]}}}})
}

/// A field of an object's metadata, as text.
#[track_caller]
pub(super) fn metadata(cluster: &ControlPlane, namespace: &str, resource: &str, field: &str) -> String {
    let object = cluster.get(namespace, resource).expect("the object is there");
    object["metadata"][field].as_str().unwrap_or_default().to_owned()
}

/// Writes an object as somebody would with `kubectl`, under a field manager.
#[track_caller]
pub(super) fn write_as(cluster: &ControlPlane, manager: &str, server_side: bool, object: &Value) {
    let file = cluster.folder().join(format!("{manager}.json"));
    std::fs::write(&file, object.to_string()).expect("the folder is writable");
    let file = file.display().to_string();
    let manager = format!("--field-manager={manager}");
    let mut arguments = vec!["apply", "-f", &file, &manager];
    if server_side {
        arguments.extend(["--server-side", "--force-conflicts"]);
    }
    cluster.kubectl(&arguments).expect_ok();
}

/// Changes a field by hand, as somebody with `kubectl patch`.
#[track_caller]
pub(super) fn patch_as(cluster: &ControlPlane, manager: &str, resource: &str, patch: &Value) {
    let manager = format!("--field-manager={manager}");
    let patch = patch.to_string();
    cluster
        .kubectl(&["patch", resource, "--type=merge", &manager, "-p", &patch])
        .expect_ok();
}

/// A field of an object in namespace default, by its pointer; null where it has none.
#[track_caller]
pub(super) fn field(cluster: &ControlPlane, resource: &str, pointer: &str) -> Value {
    let object = cluster.get("default", resource).expect("the object is there");
    object.pointer(pointer).cloned().unwrap_or_default()
}

/// Waits until a field of an object in namespace default has a value.
#[track_caller]
pub(super) fn until_field(cluster: &ControlPlane, resource: &str, pointer: &str, value: &Value) {
    eventually(wait::LONG, &format!("{resource} has {value} at {pointer}"), || {
        let found = cluster.get("default", resource)?.pointer(pointer).cloned();
        match found.unwrap_or_default() {
            found if found == *value => Ok(()),
            found => Err(found.to_string()),
        }
    });
}
