//! Kind ManagedCluster.

use base64::Engine as _;

use super::super::declaration::{Declaration, DeclarationKey};
use super::super::fields::Fields;
use super::metadata::Metadata;
use super::{OwnKind, Place, Reading, apply, labels, predictor};
use crate::capacity::Resources;
use crate::cordon::{TAINT_CORDONED, TAINT_DRAINED};
use crate::model::{
    Cluster, DeletionPolicy, DriftMode, LABEL_CLUSTER_ID, LABEL_CLUSTER_NAME, Predictor, SyncMode, TAINT_UNREACHABLE,
    Taint, TaintEffect,
};
use crate::name::ClusterName;
use crate::nearest::distance;

pub(crate) const MODES: &[(&str, SyncMode)] = &[
    ("Dual", SyncMode::Dual),
    ("Pull", SyncMode::Pull),
    ("Push", SyncMode::Push),
];

pub(super) fn read(top: &mut Fields<'_>, metadata: &Metadata, place: &Place<'_>) -> Reading {
    let name = name(top, metadata);
    labels::check(top, "metadata.labels", &metadata.labels);
    let spec = top.object("spec").map(read_spec).unwrap_or_default();
    let announced = predictor::announced(top, spec.predictor.is_some());
    let Some(name) = name else {
        return Reading {
            key: None,
            declaration: None,
        };
    };
    let mut labels = metadata.labels.clone();
    let declared_id = labels.get(LABEL_CLUSTER_ID).cloned();
    let id = spec.cluster_id.clone().or(declared_id);
    let label = id.clone().unwrap_or_else(|| name.to_string());
    labels.insert(LABEL_CLUSTER_ID.to_owned(), label);
    labels
        .entry(LABEL_CLUSTER_NAME.to_owned())
        .or_insert_with(|| name.to_string());
    let key = DeclarationKey::new(OwnKind::ManagedCluster, "", name.as_str());
    let cluster = Cluster {
        namespace: metadata.namespace.clone().unwrap_or_else(|| name.to_string()),
        name,
        labels,
        cluster_id: id.unwrap_or_default(),
        cluster_type: spec.cluster_type,
        taints: spec.taints,
        sync_mode: spec.sync_mode,
        public_keys: spec.public_keys,
        kubeconfig_context: spec.kubeconfig_context,
        drift: spec.drift,
        deletion: spec.deletion.unwrap_or(DeletionPolicy::Orphan),
        elastic: spec.elastic,
        predictor: spec.predictor.or(announced),
        file: place.file.clone(),
        line: place.line,
    };
    Reading {
        key: Some(key),
        declaration: Some(Declaration::Cluster(cluster)),
    }
}

fn name(top: &Fields<'_>, metadata: &Metadata) -> Option<ClusterName> {
    if metadata.name.is_empty() {
        return None;
    }
    match ClusterName::parse(metadata.name.as_str()) {
        Ok(name) => Some(name),
        Err(error) => {
            top.error("metadata.name", "FieldInvalid", error.to_string(), "");
            None
        }
    }
}

#[derive(Default)]
struct Spec {
    cluster_id: Option<String>,
    cluster_type: String,
    taints: Vec<Taint>,
    sync_mode: SyncMode,
    public_keys: Vec<String>,
    kubeconfig_context: Option<String>,
    drift: Option<DriftMode>,
    deletion: Option<DeletionPolicy>,
    elastic: Option<Resources>,
    predictor: Option<Predictor>,
}

fn read_spec(mut fields: Fields<'_>) -> Spec {
    let cluster_id = fields.text("clusterId").filter(|id| !id.is_empty()).map(str::to_owned);
    let cluster_type = fields.text("clusterType").unwrap_or_default().to_owned();
    if fields.text("clusterInitBaseName").is_some_and(|name| !name.is_empty()) {
        fields.warning(
            "clusterInitBaseName",
            "NoEffect",
            "has no effect: whatever a cluster starts with is a Subscription here",
        );
    }
    let kubeconfig_context = fields
        .text("kubeconfigContext")
        .filter(|context| !context.is_empty())
        .map(str::to_owned);
    let sync_mode = sync_mode(&mut fields, kubeconfig_context.is_some());
    let public_keys = public_keys(&mut fields);
    if sync_mode == SyncMode::Push && kubeconfig_context.is_none() && public_keys.is_empty() {
        fields.warning(
            "syncMode",
            "NobodyApplies",
            "Push needs a way into the cluster: publicKeys of its agent, or a kubeconfigContext",
        );
    }
    let drift = apply::drift_mode(&mut fields);
    let deletion = apply::deletion_policy(&mut fields);
    let elastic = elastic(&mut fields);
    let predictor = predictor::read(&mut fields);
    let taints = fields.objects("taints").unwrap_or_default();
    let taints = taints.into_iter().filter_map(taint).collect();
    fields.finish();
    Spec {
        cluster_id,
        cluster_type,
        taints,
        sync_mode,
        public_keys,
        kubeconfig_context,
        drift,
        deletion,
        elastic,
        predictor,
    }
}

/// What a cluster that adds nodes by itself may grow to.
fn elastic(fields: &mut Fields<'_>) -> Option<Resources> {
    let is_elastic = fields
        .choice("capacity", &[("nodes", false), ("elastic", true)])
        .unwrap_or(false);
    let written = fields.written("maxCapacity").filter(|value| !value.is_null());
    match (is_elastic, written) {
        (false, None) => None,
        (false, Some(_)) => {
            fields.warning("maxCapacity", "NoEffect", "has no effect without capacity: elastic");
            None
        }
        (true, None) => {
            let message = "an elastic cluster needs an end to which it grows";
            fields.error(
                "maxCapacity",
                "FieldMissing",
                message,
                "for example {cpu: 400, memory: 1600Gi, pods: 3000}",
            );
            None
        }
        (true, Some(value)) if !value.is_object() => {
            fields.error("maxCapacity", "FieldType", "must be a map of quantities", "");
            None
        }
        (true, Some(value)) => match Resources::read(Some(value)) {
            Ok(resources) => Some(resources),
            Err(name) => {
                fields.error(
                    &format!("maxCapacity.{name}"),
                    "FieldInvalid",
                    "is no quantity of at least 0",
                    "as 400, 500m or 16Gi",
                );
                None
            }
        },
    }
}

/// A cluster that the hub reaches by kubeconfig is Push. In any mode another has an agent.
fn sync_mode(fields: &mut Fields<'_>, by_kubeconfig: bool) -> SyncMode {
    let mode = fields.choice("syncMode", MODES);
    match (mode, by_kubeconfig) {
        (None, true) => SyncMode::Push,
        (Some(SyncMode::Dual | SyncMode::Pull), true) => {
            let message = "a cluster with kubeconfigContext is applied to by the hub, so its syncMode is Push";
            fields.error(
                "syncMode",
                "FieldInvalid",
                message,
                "remove syncMode or kubeconfigContext",
            );
            SyncMode::Push
        }
        (mode, _) => mode.unwrap_or_default(),
    }
}

fn public_keys(fields: &mut Fields<'_>) -> Vec<String> {
    let keys = fields.texts("publicKeys").unwrap_or_default();
    for (index, key) in keys.iter().enumerate() {
        if !is_public_key(key) {
            fields.error(
                &format!("publicKeys[{index}]"),
                "FieldInvalid",
                "is not ed25519: and 32 bytes in base64",
                "flotilla agent join prints the file with the agent's key",
            );
        }
    }
    keys
}

fn is_public_key(text: &str) -> bool {
    let engine = base64::engine::general_purpose::STANDARD;
    text.strip_prefix("ed25519:")
        .and_then(|key| engine.decode(key).ok())
        .is_some_and(|bytes| bytes.len() == 32)
}

fn taint(mut fields: Fields<'_>) -> Option<Taint> {
    let key = fields.required_text("key").map(str::to_owned);
    let is_reserved = key.as_deref() == Some(TAINT_UNREACHABLE);
    if is_reserved {
        fields.doubt(
            "key",
            "TaintReserved",
            "has no effect: it stands for a cluster that is silent, and the hub alone knows who is",
            "flotilla drain takes a cluster out of use",
        );
    } else if let Some(key) = &key {
        doubt_key(&fields, key);
    }
    let value = fields.text("value").unwrap_or_default().to_owned();
    fields.known(&["timeAdded"]);
    let effect = fields.choice("effect", &TaintEffect::WORDS);
    fields.require("effect");
    fields.finish();
    Some(Taint {
        key: key.filter(|_| !is_reserved)?,
        value,
        effect: effect?,
    })
}

/// Letters by which a key may miss one of ours and be meant as it.
const TYPO_LETTERS_MAX: usize = 3;

/// A key that is nearly one of ours would keep nothing out, and nobody would notice.
fn doubt_key(fields: &Fields<'_>, key: &str) {
    let ours = [TAINT_CORDONED, TAINT_DRAINED];
    let meant = ours.into_iter().min_by_key(|own| distance(key, own));
    let meant = meant.filter(|own| (1..=TYPO_LETTERS_MAX).contains(&distance(key, own)));
    if let Some(meant) = meant {
        let message = format!("is not {meant}, and no command takes it away again");
        fields.doubt("key", "TaintUnknown", message, format!("did you mean {meant}?"));
    }
}
