//! What is applied: small ConfigMaps and Deployments, as units of one's own.

use std::collections::BTreeMap;
use std::sync::Arc;

use anyhow::Context as _;
use reconciler::wire::{EnvelopeUnit, Held, Intake, list_digest};
use render::describe::{Content, DescribedObject, Description, key_of};
use render::{ClusterName, Revision, UnitKey};
use serde_json::{Value, json};

/// A ConfigMap of the size that settings have.
pub(super) fn config_map(namespace: &str, number: usize) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": format!("object-{number}"), "namespace": namespace, "labels": {"app": "bench"}},
        "data": {"value": number.to_string(), "settings": "listen: 8080\nlog: info\nregion: north\n".repeat(8)}})
}

/// A Deployment without Pods.
pub(super) fn deployment(namespace: &str, number: usize) -> Value {
    let name = format!("object-{number}");
    json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name, "namespace": namespace},
        "spec": {"replicas": 0, "selector": {"matchLabels": {"app": name}},
            "template": {"metadata": {"labels": {"app": name}},
                "spec": {"containers": [{"name": "web", "image": "registry.example/web:1"}]}}}})
}

/// One unit as a delivery.
pub(super) struct Delivery {
    pub(super) held: Held,
    pub(super) content: Arc<Description>,
}

impl Delivery {
    /// The delivery of this sequence; its one unit has these objects.
    pub(super) fn new(sequence: u64, objects: &[Value]) -> anyhow::Result<Self> {
        let described = objects.iter().map(|object| {
            Ok(DescribedObject {
                key: key_of(object).context("the object has a name")?,
                content: Content::Plain {
                    object: Arc::new(object.clone()),
                },
                provenance: Vec::new(),
            })
        });
        let content = Arc::new(Description::new(described.collect::<anyhow::Result<_>>()?)?);
        let revision = |digit: &str| Revision::parse(digit.repeat(40));
        let unit = json!({"digest": content.digest, "revision": revision("c")?});
        let unit: EnvelopeUnit = serde_json::from_value(unit)?;
        let units: BTreeMap<UnitKey, EnvelopeUnit> = [("bench/objects".parse()?, unit)].into();
        let held = Held {
            lineage: revision("a")?,
            sequence,
            list: list_digest(&units, false),
            orphan: false,
            orphaned: Default::default(),
            mode: Default::default(),
            mode_source: None,
            released: revision("b")?,
            units,
        };
        Ok(Self { held, content })
    }

    /// What an applier is told.
    pub(super) fn desired(&self, cluster: ClusterName) -> Option<Arc<reconciler::apply::Desired>> {
        let mut intake = Intake::new(cluster, Some(self.held.clone()));
        intake.trusted(Arc::clone(&self.content));
        intake.desired().map(Arc::new)
    }
}
