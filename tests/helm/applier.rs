//! An applier in this process that runs the real helm, and what it is told.

use std::collections::BTreeMap;
use std::ops::Deref;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use flotilla_tests::{ControlPlane, Options, Output, RunningApplier, parts};
use reconciler::apply::{ApplierOptions, ApplyReport, Desired, DesiredUnit, HelmOptions};
use reconciler::wire::{EnvelopeUnit, Held, ObjectResult, ObjectState, list_digest};
use render::chart::ChartFiles;
use render::describe::{Content, DescribedObject, Description, key_of};
use render::model::{ApplyPolicy, Dependency, DependencyClusters, DriftMode};
use render::{ClusterName, Revision, UnitKey};
use serde_json::{Value, json};

/// A running applier.
pub(super) struct Applier {
    running: RunningApplier,
    sequence: u64,
    /// What is done about fields that others changed, in every unit that is delivered from now on.
    drift: DriftMode,
}

/// A cluster without nodes: nothing there ever becomes ready.
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
    /// Starts one that compares unchanged objects every two seconds.
    #[track_caller]
    pub(super) fn start(cluster: &ControlPlane, holder: &str) -> Self {
        Self::start_with(cluster, holder, 0, None)
    }

    /// Starts one that never compares unchanged objects in a test: whatever is seen, a watch told.
    #[track_caller]
    pub(super) fn start_watching(cluster: &ControlPlane, holder: &str) -> Self {
        Self::start_resting(cluster, holder, 0, None, Duration::from_secs(3_600))
    }

    /// Starts one that goes on after this sequence, and keeps charts in a folder.
    #[track_caller]
    pub(super) fn start_with(cluster: &ControlPlane, holder: &str, sequence: u64, folder: Option<PathBuf>) -> Self {
        Self::start_resting(cluster, holder, sequence, folder, Duration::from_secs(2))
    }

    #[track_caller]
    fn start_resting(
        cluster: &ControlPlane,
        holder: &str,
        sequence: u64,
        folder: Option<PathBuf>,
        resync: Duration,
    ) -> Self {
        let name = ClusterName::parse(cluster.name()).expect("a valid name");
        let options = ApplierOptions {
            resync,
            helm: HelmOptions {
                program: parts::folder().join("helm"),
                folder,
            },
            ..ApplierOptions::new(name, holder.to_owned())
        };
        Self {
            running: RunningApplier::start(cluster, options),
            sequence,
            drift: DriftMode::default(),
        }
    }

    /// Says what is done about fields that others changed, from the next delivery on.
    pub(super) fn change_drift_mode(&mut self, drift: DriftMode) {
        self.drift = drift;
    }

    /// Says what should be, as the next delivery: unit → contents.
    pub(super) fn deliver(&mut self, units: &[(&str, Vec<Content>)]) {
        self.deliver_under(units, &ApplyPolicy::default());
    }

    /// Says what should be, under a policy.
    pub(super) fn deliver_under(&mut self, units: &[(&str, Vec<Content>)], policy: &ApplyPolicy) {
        let each = units
            .iter()
            .map(|(unit, contents)| (*unit, contents.clone(), Some(policy)));
        self.deliver_each(&each.collect::<Vec<_>>());
    }

    /// Says what should be, each unit under its own policy.
    pub(super) fn deliver_each(&mut self, units: &[(&str, Vec<Content>, Option<&ApplyPolicy>)]) {
        self.sequence += 1;
        let units: BTreeMap<UnitKey, DesiredUnit> = units
            .iter()
            .map(|(unit, contents, policy)| {
                let policy = policy.cloned().unwrap_or_default();
                let mut desired = desired(contents, policy);
                desired.drift = self.drift;
                (unit.parse().expect("a valid unit"), desired)
            })
            .collect();
        let held: BTreeMap<_, _> = units.iter().map(|(key, unit)| (key.clone(), held(unit))).collect();
        let desired = Desired {
            held: Held {
                lineage: revision('a'),
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

    /// The sequence of the last delivery.
    pub(super) fn sequence(&self) -> u64 {
        self.sequence
    }

    /// Waits until every object of a unit is applied and healthy.
    #[track_caller]
    pub(super) fn until_well(&self, unit: &str) {
        let key: UnitKey = unit.parse().expect("a valid unit");
        let held = self.running.told().map(|desired| desired.held.units[&key].digest);
        self.until(&format!("{unit} is well"), |report| {
            let unit = report.units.get(&key).filter(|unit| unit.digest == held);
            unit.is_some_and(|unit| unit.counts.current == unit.counts.objects && unit.counts.removing == 0)
        });
    }

    /// Waits until the HelmChart of this name is told of with this state and these words.
    #[track_caller]
    pub(super) fn until_told(&self, name: &str, state: ObjectState, words: &str) -> ObjectResult {
        let told = |report: &ApplyReport| {
            let results = report.units.values().flat_map(|unit| unit.worst.clone());
            let mut of_chart = results.filter(|result| result.object.name == name && result.object.kind == "HelmChart");
            of_chart.find(|result| result.state == state && result.message.contains(words))
        };
        let report = self.until(&format!("{name} is {state:?} with {words:?}"), |report| {
            told(report).is_some()
        });
        told(&report).expect("it was there")
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

fn desired(contents: &[Content], policy: ApplyPolicy) -> DesiredUnit {
    let objects = contents.iter().map(|content| DescribedObject {
        key: content
            .object()
            .and_then(|object| key_of(object))
            .expect("the object has a name"),
        content: content.clone(),
        provenance: Vec::new(),
    });
    let description = Description::governed(objects.collect(), policy).expect("each object stands once");
    DesiredUnit {
        description: Arc::new(description),
        replicas: Default::default(),
        drift: DriftMode::default(),
    }
}

fn held(unit: &DesiredUnit) -> EnvelopeUnit {
    EnvelopeUnit {
        digest: unit.description.digest,
        revision: revision('c'),
        replicas: Default::default(),
        gates: Vec::new(),
        drift: DriftMode::default(),
    }
}

fn revision(digit: char) -> Revision {
    Revision::parse(digit.to_string().repeat(40)).expect("a valid revision")
}

/// A policy that needs another unit.
pub(super) fn needing(unit: &str) -> ApplyPolicy {
    ApplyPolicy {
        depends_on: vec![Dependency {
            unit: unit.parse().expect("a valid unit"),
            clusters: DependencyClusters::default(),
        }],
        ..ApplyPolicy::default()
    }
}

/// An object as it is.
pub(super) fn plain(object: Value) -> Content {
    Content::Plain {
        object: Arc::new(object),
    }
}

/// A HelmChart with its chart from the repository, into namespace `shop`.
pub(super) fn folder_chart(name: &str, files: &[(&str, &str)], spec: Value) -> Content {
    let files = files
        .iter()
        .map(|(path, text)| (Arc::from(*path), Arc::from(text.as_bytes())));
    let files = ChartFiles::new(files.collect()).expect("the files are a chart");
    let mut whole = json!({"path": "charts/web", "targetNamespace": "shop"});
    merge(&mut whole, spec);
    Content::Chart {
        object: Arc::new(helm_chart(name, whole)),
        files: Arc::new(files),
    }
}

/// A chart with these annotations on its HelmChart.
pub(super) fn annotated(chart: Content, annotations: &Value) -> Content {
    let Content::Chart { object, files } = chart else {
        unreachable!("it comes from a folder")
    };
    let mut object = Value::clone(&object);
    object["metadata"]["annotations"] = annotations.clone();
    let object = Arc::new(object);
    Content::Chart { object, files }
}

/// A HelmChart of a repository, into namespace `shop`.
pub(super) fn remote_chart(name: &str, spec: Value) -> Content {
    let mut whole = json!({"targetNamespace": "shop"});
    merge(&mut whole, spec);
    plain(helm_chart(name, whole))
}

fn helm_chart(name: &str, spec: Value) -> Value {
    json!({"apiVersion": "fleet.flotilla.dev/v1alpha1", "kind": "HelmChart",
        "metadata": {"name": name, "namespace": "fleet"}, "spec": spec})
}

fn merge(into: &mut Value, fields: Value) {
    for (name, value) in fields.as_object().expect("a mapping") {
        into[name] = value.clone();
    }
}

/// Helm as a person at that cluster runs it.
#[track_caller]
pub(super) fn helm(cluster: &ControlPlane, arguments: &[&str]) -> Output {
    let mut helm = parts::command("helm");
    helm.arg("--kubeconfig")
        .arg(cluster.kubeconfig())
        .args(["--namespace", "shop"])
        .args(arguments);
    Output::of(&mut helm)
}

/// Number and status of each revision of a release, oldest first.
#[track_caller]
pub(super) fn history(cluster: &ControlPlane, release: &str) -> Vec<(u64, String)> {
    let said = helm(cluster, &["history", release, "-o", "json"]);
    let Ok(text) = said.ok() else { return Vec::new() };
    let revisions: Vec<Value> = serde_json::from_str(&text).expect("helm writes JSON");
    let each = revisions.iter();
    each.map(|one| {
        (
            one["revision"].as_u64().unwrap(),
            one["status"].as_str().unwrap().to_owned(),
        )
    })
    .collect()
}
