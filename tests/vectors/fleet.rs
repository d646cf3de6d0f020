//! Fleets for the questions of vectors.

use std::collections::BTreeMap;
use std::sync::Arc;

use render::model::{
    Cluster, Dividing, FleetSpec, Override, OverrideFeed, OverrideKind, OverrideStep, Scheduling, Subscriber,
    Subscription, SyncMode,
};
use render::selector::LabelSelector;
use render::{Base, ClusterName, Digest, Fleet, ManifestObject, ObjectKey, Revision, Unit, UnitKey};
use serde_json::Value;

pub(super) const STATIC: Scheduling = Scheduling::Dividing(Dividing::Static);

pub(super) fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

pub(super) fn list(value: &Value) -> &[Value] {
    value.as_array().map(Vec::as_slice).unwrap_or_default()
}

pub(super) fn labels(value: &Value) -> BTreeMap<String, String> {
    let pairs = value.as_object().into_iter().flatten();
    pairs.map(|(key, value)| (key.clone(), text(value))).collect()
}

pub(super) fn selector(match_labels: &Value) -> LabelSelector {
    LabelSelector {
        match_labels: labels(match_labels),
        match_expressions: Vec::new(),
    }
}

/// A cluster that upstream would name `namespace/name`.
pub(super) fn cluster(full_name: &str, labels: BTreeMap<String, String>) -> Cluster {
    let (namespace, name) = full_name.split_once('/').unwrap_or((full_name, full_name));
    Cluster {
        drift: None,
        name: ClusterName::parse(name).expect("the vector's cluster has a valid name"),
        namespace: namespace.to_owned(),
        labels,
        cluster_id: String::new(),
        taints: Vec::new(),
        sync_mode: SyncMode::Dual,
        public_keys: Vec::new(),
        kubeconfig_context: None,
        cluster_type: String::new(),
        elastic: None,
        predictor: None,
        deletion: render::model::DeletionPolicy::Orphan,
        file: "clusters.yaml".into(),
        line: 1,
    }
}

pub(super) fn subscription(scheduling: Scheduling, subscribers: Vec<Subscriber>) -> Subscription {
    Subscription {
        apply: Default::default(),
        drift: None,
        key: UnitKey::new("default", "app").expect("it is a valid unit"),
        scheduling,
        placing: Default::default(),
        subscribers,
        tolerations: Vec::new(),
        feeds: Vec::new(),
        file: "subscription.yaml".into(),
        line: 1,
    }
}

/// A subscriber of every cluster.
pub(super) fn everything() -> Subscriber {
    Subscriber {
        cluster_affinity: Some(LabelSelector::default()),
        weight: None,
        replicas: Default::default(),
        sub_group: None,
    }
}

pub(super) fn object(value: Value) -> Arc<ManifestObject> {
    let key = render::describe::key_of(&value).expect("the object has apiVersion, kind and name");
    Arc::new(ManifestObject {
        key,
        api_version: text(&value["apiVersion"]),
        file: "object.yaml".into(),
        line: 1,
        digest: Digest::of_value(&value),
        value: Arc::new(value),
        original: None,
        chart: None,
    })
}

pub(super) fn fleet(clusters: Vec<Cluster>, subscription: Subscription, objects: Vec<Arc<ManifestObject>>) -> Fleet {
    let unit = Unit {
        subscription: Arc::new(subscription),
        base: Arc::new(Base::new(objects)),
        blocked: Vec::new(),
    };
    let named = |cluster: Cluster| (cluster.name.clone(), cluster);
    Fleet {
        revision: Revision::parse("0".repeat(40)).expect("it is a valid revision"),
        spec: FleetSpec::default(),
        clusters: clusters.into_iter().map(named).collect(),
        units: BTreeMap::from([(unit.subscription.key.clone(), unit)]),
        overrides: Vec::new(),
        of_nothing: Vec::new(),
        suspensions: Vec::new(),
        prune_budgets: Vec::new(),
        access: Arc::default(),
        unreadable: Vec::new(),
    }
}

/// An override of this object.
pub(super) fn override_of(name: &str, key: &ObjectKey, kind: OverrideKind, steps: Vec<OverrideStep>) -> Override {
    Override {
        kind,
        namespace: "member".to_owned(),
        name: name.to_owned(),
        priority: 500,
        feed: OverrideFeed {
            api_version: match key.group.as_str() {
                "" => "v1".to_owned(),
                group => format!("{group}/v1"),
            },
            kind: key.kind.clone(),
            namespace: key.namespace.clone(),
            name: key.name.clone(),
        },
        steps,
        file: "override.yaml".into(),
        line: 1,
    }
}
