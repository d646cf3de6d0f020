//! Small fleets for tests.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Value, json};

use crate::capacity::{Capacity, NodeGroup, Nodes, Resources};
use crate::digest::Digest;
use crate::fleet::{Base, Fleet, ManifestObject, Unit};
use crate::model::{
    Cluster, FleetSpec, Override, OverrideFeed, OverrideKind, OverrideStep, OverrideStepType, Scheduling, Subscriber,
    Subscription, SyncMode,
};
use crate::name::{ClusterName, ObjectKey, Revision, UnitKey};
use crate::schedule::{Report, Reports};
use crate::selector::LabelSelector;

pub(crate) fn cluster_name(name: &str) -> ClusterName {
    ClusterName::parse(name).expect("it is a valid cluster name")
}

pub(crate) fn revision() -> Revision {
    Revision::parse("0".repeat(40)).expect("it is a valid revision")
}

pub(crate) fn labels(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    let pair = |(key, value): &(&str, &str)| ((*key).to_owned(), (*value).to_owned());
    pairs.iter().map(pair).collect()
}

pub(crate) fn cluster(name: &str, pairs: &[(&str, &str)]) -> Cluster {
    Cluster {
        drift: None,
        name: cluster_name(name),
        namespace: name.to_owned(),
        labels: labels(pairs),
        cluster_id: String::new(),
        taints: Vec::new(),
        sync_mode: SyncMode::Dual,
        public_keys: Vec::new(),
        kubeconfig_context: None,
        cluster_type: String::new(),
        elastic: None,
        predictor: None,
        deletion: crate::model::DeletionPolicy::Orphan,
        file: "clusters.yaml".into(),
        line: 1,
    }
}

pub(crate) fn selector(pairs: &[(&str, &str)]) -> LabelSelector {
    LabelSelector {
        match_labels: labels(pairs),
        match_expressions: Vec::new(),
    }
}

pub(crate) fn subscriber(pairs: &[(&str, &str)], weight: Option<u32>) -> Subscriber {
    Subscriber {
        cluster_affinity: Some(selector(pairs)),
        weight,
        replicas: Default::default(),
        sub_group: None,
    }
}

pub(crate) fn subscription(scheduling: Scheduling, subscribers: Vec<Subscriber>) -> Subscription {
    Subscription {
        apply: Default::default(),
        drift: None,
        key: UnitKey::new("default", "web").expect("it is a valid unit"),
        scheduling,
        placing: Default::default(),
        subscribers,
        tolerations: Vec::new(),
        feeds: Vec::new(),
        file: "subscription.yaml".into(),
        line: 1,
    }
}

pub(crate) fn object(value: Value) -> ManifestObject {
    let text = |pointer| {
        value
            .pointer(pointer)
            .and_then(Value::as_str)
            .unwrap_or_default()
            .to_owned()
    };
    let (api_version, kind) = (text("/apiVersion"), text("/kind"));
    let (namespace, name) = (text("/metadata/namespace"), text("/metadata/name"));
    ManifestObject {
        key: ObjectKey::new(&api_version, &kind, &namespace, &name),
        api_version,
        file: "object.yaml".into(),
        line: 1,
        digest: Digest::of_value(&value),
        value: Arc::new(value),
        original: None,
        chart: None,
    }
}

pub(crate) fn encrypted(value: Value, original: &str) -> ManifestObject {
    ManifestObject {
        digest: Digest::of_bytes(original.as_bytes()),
        original: Some(original.into()),
        ..object(value)
    }
}

pub(crate) fn base(values: impl IntoIterator<Item = Value>) -> Base {
    Base::new(values.into_iter().map(|value| Arc::new(object(value))).collect())
}

pub(crate) fn fleet(clusters: impl IntoIterator<Item = Cluster>, subscription: Subscription, base: Base) -> Fleet {
    let unit = Unit {
        subscription: Arc::new(subscription),
        base: Arc::new(base),
        blocked: Vec::new(),
    };
    Fleet {
        revision: revision(),
        spec: FleetSpec::default(),
        clusters: clusters
            .into_iter()
            .map(|cluster| (cluster.name.clone(), cluster))
            .collect(),
        units: BTreeMap::from([(unit.subscription.key.clone(), unit)]),
        overrides: Vec::new(),
        of_nothing: Vec::new(),
        suspensions: Vec::new(),
        prune_budgets: Vec::new(),
        access: Arc::default(),
        unreadable: Vec::new(),
    }
}

pub(crate) fn step(step_type: OverrideStepType, value: &str) -> OverrideStep {
    OverrideStep {
        name: String::new(),
        step_type,
        override_chart: false,
        value: value.to_owned(),
        line: 7,
    }
}

/// A Localization in namespace `a` for the object.
pub(crate) fn localization(name: &str, object: &ObjectKey, steps: Vec<OverrideStep>) -> Override {
    let api_version = match object.group.as_str() {
        "" => "v1".to_owned(),
        group => format!("{group}/v1"),
    };
    Override {
        kind: OverrideKind::Localization,
        namespace: "a".to_owned(),
        name: name.to_owned(),
        priority: 500,
        feed: OverrideFeed {
            api_version,
            kind: object.kind.clone(),
            namespace: object.namespace.clone(),
            name: object.name.clone(),
        },
        steps,
        file: format!("{name}.yaml").into(),
        line: 1,
    }
}

pub(crate) fn globalization(
    name: &str,
    object: &ObjectKey,
    cluster_affinity: Option<LabelSelector>,
    steps: Vec<OverrideStep>,
) -> Override {
    Override {
        kind: OverrideKind::Globalization { cluster_affinity },
        namespace: String::new(),
        ..localization(name, object, steps)
    }
}

/// A Base with one Deployment of so many replicas, each of which asks for so many cores.
pub(crate) fn deployment(replicas: u64, cpu: &str) -> Base {
    let container = json!({ "name": "web", "resources": { "requests": { "cpu": cpu } } });
    base([json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": { "name": "web" },
        "spec": { "replicas": replicas, "template": { "spec": { "containers": [container] } } },
    })])
}

/// So many nodes with so many cores each, and nothing on them.
pub(crate) fn capacity(nodes: u64, cores: i64) -> Capacity {
    let all = Resources::from([("cpu", cores * 1_000), ("memory", 1 << 40), ("pods", 110)]);
    let group = NodeGroup {
        count: nodes,
        allocatable: all.clone(),
        free: all,
        ..NodeGroup::default()
    };
    Capacity {
        version: Capacity::VERSION,
        nodes: Nodes(vec![group]),
        ..Capacity::default()
    }
}

/// What these clusters said at second 1,000.
pub(crate) fn reports(list: &[(&str, Capacity)]) -> Reports {
    let report = |(name, capacity): &(&str, Capacity)| {
        let report = Report {
            capacity: Arc::new(capacity.clone()),
            at: 1_000,
            doubt: None,
        };
        (cluster_name(name), report)
    };
    Reports {
        clusters: list.iter().map(report).collect(),
        ..Reports::default()
    }
}
