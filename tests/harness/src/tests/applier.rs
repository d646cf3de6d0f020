//! An applier in this process, whose clock the test moves: what takes minutes in a cluster takes none here.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use kube::api::{Api, ApiResource, DynamicObject, GroupVersionKind};
use reconciler::apply::{self, ApplierOptions, ApplyReport};
use reconciler::wire::{Envelope, EnvelopeUnit, Intake, UnitReport, UnitState, list_digest};
use render::describe::{Content, DescribedObject, Description, key_of};
use render::model::ApplyPolicy;
use render::{ClusterName, Revision, UnitKey};
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::ApiServer;
use crate::store::Key;

/// Unit → its objects.
pub(super) type Units = BTreeMap<UnitKey, Vec<Value>>;

/// How long a test waits, by the clock that it moves itself.
const PATIENCE: Duration = Duration::from_secs(3_600);

/// How long unchanged objects rest, as in a real cluster.
pub(super) const RESYNC: Duration = Duration::from_secs(300);

/// A running applier.
pub(super) struct Applier {
    pub(super) desired: watch::Sender<Option<Arc<apply::Desired>>>,
    pub(super) report: watch::Receiver<ApplyReport>,
    pub(super) sequence: u64,
    stop: CancellationToken,
    task: tokio::task::JoinHandle<Result<(), apply::ApplyError>>,
}

impl Applier {
    pub(super) fn start(client: kube::Client) -> Self {
        let (desired, desired_receiver) = watch::channel(None);
        let (report_sender, report) = watch::channel(ApplyReport::default());
        let stop = CancellationToken::new();
        let options = ApplierOptions {
            resync: RESYNC,
            ..ApplierOptions::new(cluster(), "test".to_owned())
        };
        let running = apply::run(client, options, desired_receiver, report_sender, stop.clone());
        Self {
            desired,
            report,
            sequence: 0,
            stop,
            task: tokio::spawn(running),
        }
    }

    /// Says what should be, as the next delivery.
    pub(super) fn deliver(&mut self, units: &[(&str, Vec<Value>)]) {
        let units: Units = units
            .iter()
            .map(|(key, objects)| (unit_key(key), objects.clone()))
            .collect();
        let (envelope, contents) = delivery(self.sequence + 1, &units);
        self.deliver_this(envelope, contents);
    }

    /// As [`Self::deliver`], with the envelope as it is.
    pub(super) fn deliver_this(&mut self, envelope: Envelope, contents: Vec<Arc<Description>>) {
        self.sequence = envelope.sequence;
        let mut intake = Intake::new(cluster(), Some(envelope.held()));
        contents.into_iter().for_each(|content| intake.trusted(content));
        self.desired.send_replace(intake.desired().map(Arc::new));
    }

    /// Waits until the report fits.
    pub(super) async fn until(&mut self, what: &str, fits: impl Fn(&ApplyReport) -> bool) -> ApplyReport {
        let waited = tokio::time::timeout(PATIENCE, self.report.wait_for(fits)).await;
        let found = waited.ok().and_then(Result::ok).map(|report| report.clone());
        if let Some(report) = found {
            return report;
        }
        panic!("{what}: {:#?}", self.report.borrow());
    }

    /// Waits until a unit of the newest delivery is in a state.
    pub(super) async fn until_unit(&mut self, unit: &str, state: UnitState) -> UnitReport {
        let key = unit_key(unit);
        let desired = self.desired.borrow().clone().expect("something was delivered");
        let digest = desired.held.units.get(&key).map(|unit| unit.digest);
        let what = format!("{unit} is {state:?}");
        let report = self.until(&what, |report| {
            let unit = report.units.get(&key);
            unit.is_some_and(|unit| unit.state == state && unit.digest == digest)
        });
        report.await.units[&key].clone()
    }

    /// Waits until exactly what was delivered is there, and nothing is wrong.
    pub(super) async fn until_settled(&mut self) {
        let desired = self.desired.borrow().clone().expect("something was delivered");
        let digests: BTreeMap<_, _> = desired
            .held
            .units
            .iter()
            .map(|(key, unit)| (key, Some(unit.digest)))
            .collect();
        self.until("everything is applied, and nothing is left", |report| {
            let applied = report.units.iter().filter(|(_, unit)| unit.state == UnitState::Applied);
            let applied: BTreeMap<_, _> = applied.map(|(key, unit)| (key, unit.digest)).collect();
            report.trouble.is_empty() && applied == digests && report.units.len() == digests.len()
        })
        .await;
    }

    /// Stops it in good order.
    pub(super) async fn stop(self) {
        self.stop.cancel();
        self.task.await.expect("it does not panic").expect("it ends well");
    }
}

/// The name of the one cluster.
pub(super) fn cluster() -> ClusterName {
    ClusterName::parse("simulated").expect("a valid name")
}

pub(super) fn unit_key(text: &str) -> UnitKey {
    text.parse().expect("a valid unit")
}

fn revision(digit: char) -> Revision {
    Revision::parse(digit.to_string().repeat(40)).expect("a valid revision")
}

/// An envelope, and the contents that it names.
pub(super) fn delivery(sequence: u64, units: &Units) -> (Envelope, Vec<Arc<Description>>) {
    let contents: BTreeMap<_, _> = units.iter().map(|(key, objects)| (key, described(objects))).collect();
    enveloped(sequence, &contents)
}

/// An envelope of these contents, and they themselves.
pub(super) fn enveloped(
    sequence: u64,
    contents: &BTreeMap<&UnitKey, Arc<Description>>,
) -> (Envelope, Vec<Arc<Description>>) {
    let units: BTreeMap<UnitKey, EnvelopeUnit> = contents
        .iter()
        .map(|(key, content)| {
            let unit = json!({"digest": content.digest, "revision": revision('c')});
            (
                (*key).clone(),
                serde_json::from_value(unit).expect("the rest has defaults"),
            )
        })
        .collect();
    let envelope = Envelope {
        version: Envelope::VERSION,
        cluster: cluster(),
        lineage: revision('a'),
        sequence,
        released: revision('b'),
        list: list_digest(&units, false),
        orphan: false,
        orphaned: Default::default(),
        units,
        mode: Default::default(),
        mode_source: None,
        mode_instead: None,
        lineage_grant: None,
    };
    (envelope, contents.values().cloned().collect())
}

pub(super) fn described(objects: &[Value]) -> Arc<Description> {
    governed(objects, ApplyPolicy::default())
}

/// A content with how it is applied.
pub(super) fn governed(objects: &[Value], apply: ApplyPolicy) -> Arc<Description> {
    let objects = objects.iter().map(|object| DescribedObject {
        key: key_of(object).expect("the object has a name"),
        content: Content::Plain {
            object: Arc::new(object.clone()),
        },
        provenance: Vec::new(),
    });
    Arc::new(Description::governed(objects.collect(), apply).expect("each key stands once"))
}

/// A ConfigMap with one entry.
pub(super) fn config_map(name: &str, value: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "default"},
        "data": {"value": value}})
}

/// A Deployment.
pub(super) fn deployment(name: &str, replicas: u64) -> Value {
    json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name, "namespace": "default"},
        "spec": {"replicas": replicas, "selector": {"matchLabels": {"app": name}},
            "template": {"metadata": {"labels": {"app": name}},
                "spec": {"containers": [{"name": "web", "image": "registry.example/web:1"}]}}}})
}

/// Requests for objects of one of our kinds.
pub(super) fn api(client: kube::Client, kind: &str, namespace: &str) -> Api<DynamicObject> {
    let (group, version) = match kind {
        "Deployment" => ("apps", "v1"),
        "ClusterRole" => ("rbac.authorization.k8s.io", "v1"),
        "Job" => ("batch", "v1"),
        _ => ("", "v1"),
    };
    let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind));
    if namespace.is_empty() {
        Api::all_with(client, &resource)
    } else {
        Api::namespaced_with(client, namespace, &resource)
    }
}

/// An object as the server has it, without asking it: that would meet its faults, and be counted.
pub(super) fn stored(server: &ApiServer, shelf: &str, namespace: &str, name: &str) -> Option<Value> {
    let state = server.state();
    state
        .find(shelf, &Key::new(namespace, name))
        .map(|stored| stored.object())
}

/// The value of a ConfigMap of [`config_map`]; `None` without it.
pub(super) fn value(server: &ApiServer, name: &str) -> Option<String> {
    let found = stored(server, "configmaps.", "default", name)?;
    found["data"]["value"].as_str().map(str::to_owned)
}

/// Lets time pass until something holds of the server.
pub(super) async fn within(time: Duration, what: &str, holds: impl Fn() -> bool) {
    let end = tokio::time::Instant::now() + time;
    while !holds() {
        assert!(tokio::time::Instant::now() < end, "{what} within {} s", time.as_secs());
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}
