//! Our own applier against this server.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::Api;
use reconciler::apply::{self, ApplierOptions, ApplyReport, Desired, DesiredUnit};
use reconciler::wire::{EnvelopeUnit, Held, UnitState, list_digest};
use render::describe::{Content, DescribedObject, Description, key_of};
use render::{ClusterName, Digest, Revision, UnitKey};
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::ApiServer;

struct Applier {
    desired: watch::Sender<Option<Arc<Desired>>>,
    report: watch::Receiver<ApplyReport>,
    stop: CancellationToken,
    sequence: u64,
}

impl Applier {
    fn start(server: &ApiServer) -> Self {
        let (desired, desired_receiver) = watch::channel(None);
        let (report_sender, report) = watch::channel(ApplyReport::default());
        let stop = CancellationToken::new();
        let name = ClusterName::parse("simulated").expect("a valid name");
        let options = ApplierOptions {
            resync: Duration::from_millis(200),
            ..ApplierOptions::new(name, "test".to_owned())
        };
        let running = apply::run(server.client(), options, desired_receiver, report_sender, stop.clone());
        tokio::spawn(running);
        Self {
            desired,
            report,
            stop,
            sequence: 0,
        }
    }

    fn deliver(&mut self, objects: &[Value]) {
        self.sequence += 1;
        let revision = |digit: &str| Revision::parse(digit.repeat(40)).expect("a valid revision");
        let unit = described(objects);
        let envelope = EnvelopeUnit {
            digest: unit.description.digest,
            revision: revision("c"),
            replicas: Default::default(),
            drift: Default::default(),
            gates: Vec::new(),
        };
        let key: UnitKey = "shop/web".parse().expect("a valid unit");
        let held: BTreeMap<_, _> = [(key.clone(), envelope)].into();
        let desired = Desired {
            held: Held {
                lineage: revision("a"),
                sequence: self.sequence,
                list: list_digest(&held, false),
                orphan: false,
                orphaned: Default::default(),
                mode: Default::default(),
                mode_source: None,
                released: revision("b"),
                units: held,
            },
            units: [(key, unit)].into(),
        };
        self.desired.send_replace(Some(Arc::new(desired)));
    }

    async fn until(&mut self, what: &str, fits: impl Fn(&ApplyReport) -> bool) {
        let waited = tokio::time::timeout(Duration::from_secs(30), self.report.wait_for(fits)).await;
        let fits = waited.is_ok_and(|report| report.is_ok());
        assert!(fits, "{what}: {:#?}", self.report.borrow());
    }

    async fn until_applied(&mut self) {
        let desired = self.desired.borrow().clone().expect("something was delivered");
        let digest = desired.held.units.values().next().map(|unit| unit.digest);
        self.until("the delivery is applied", |report| {
            let unit = report.units.values().next();
            unit.is_some_and(|unit| unit.state == UnitState::Applied && unit.digest == digest)
        })
        .await;
    }
}

fn described(objects: &[Value]) -> DesiredUnit {
    let mut objects: Vec<_> = objects
        .iter()
        .map(|object| DescribedObject {
            key: key_of(object).expect("the object has a name"),
            content: Content::Plain {
                object: Arc::new(object.clone()),
            },
            provenance: Vec::new(),
        })
        .collect();
    objects.sort_by(|a, b| a.key.cmp(&b.key));
    let digest = Digest::of_value(&objects.iter().map(|object| json!(object.content)).collect());
    DesiredUnit {
        drift: Default::default(),
        description: Arc::new(Description {
            apply: Default::default(),
            objects,
            digest,
            bytes: 0,
        }),
        replicas: Default::default(),
    }
}

fn config_map(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "shop"}, "data": {"a": "b"}})
}

fn everything() -> Vec<Value> {
    vec![
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}}),
        json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": "widgets.example.org"}, "spec": {"group": "example.org", "scope": "Namespaced",
                "names": {"kind": "Widget", "plural": "widgets"}, "versions": [{"name": "v1", "served": true,
                    "storage": true, "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": {
                        "type": "object", "properties": {"size": {"type": "integer"}}}}}}}]}}),
        json!({"apiVersion": "example.org/v1", "kind": "Widget", "metadata": {"name": "w", "namespace": "shop"},
            "spec": {"size": 3}}),
        json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web", "namespace": "shop"},
            "spec": {"replicas": 2, "selector": {"matchLabels": {"a": "b"}}, "template": {
                "metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "web", "image": "web:1"}]}}}}),
        config_map("one"),
        config_map("two"),
    ]
}

#[tokio::test]
async fn our_applier_delivers_restores_and_prunes_here_as_in_a_real_cluster() {
    let server = ApiServer::default();
    let mut applier = Applier::start(&server);
    applier.deliver(&everything());
    applier.until_applied().await;
    let api: Api<ConfigMap> = Api::namespaced(server.client(), "shop");
    let live = api.get("one").await.expect("it is there");
    // What somebody deletes comes back.
    api.delete("one", &Default::default()).await.expect("it is removed");
    let uid = live.metadata.uid;
    for _ in 0..200 {
        let back = api.get_opt("one").await.expect("an answer");
        if back.is_some_and(|back| back.metadata.uid != uid) {
            break;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    api.get("one").await.expect("it is there again");
    // What is delivered no more goes.
    applier.deliver(&everything()[..5]);
    applier.until_applied().await;
    for _ in 0..200 {
        if api.get_opt("two").await.expect("an answer").is_none() {
            break;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    assert!(api.get_opt("two").await.expect("an answer").is_none());
    applier.stop.cancel();
}

#[tokio::test]
async fn an_unchanged_delivery_writes_nothing() {
    let server = ApiServer::default();
    let mut applier = Applier::start(&server);
    applier.deliver(&everything());
    applier.until_applied().await;
    applier
        .until("it is healthy", |report| {
            report
                .units
                .values()
                .all(|unit| unit.health == reconciler::wire::Health::Current)
        })
        .await;
    let versions = || async {
        let api: Api<ConfigMap> = Api::all(server.client());
        let list = api.list(&Default::default()).await.expect("a list");
        list.items
            .iter()
            .map(|item| item.metadata.resource_version.clone())
            .collect::<Vec<_>>()
    };
    let before = versions().await;
    applier.deliver(&everything());
    applier.until_applied().await;
    tokio::time::sleep(Duration::from_millis(500)).await;
    assert_eq!(versions().await, before);
    applier.stop.cancel();
}
