//! A content in the form of Descriptions: cut into parts that an API server takes, with nothing in them
//! that must not be read by everybody who reads Descriptions.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use render::describe::{Content, Description, is_chart};
use render::{ByObject, Digest, ObjectKey, layout, yaml};
use serde_json::{Value, json};

use super::name;
use crate::limits::{OBJECT_FEEDS_MAX, OBJECT_RAW_BYTES_MAX};

/// A content on some cluster.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Contents {
    /// What it is about, at most [`OBJECT_FEEDS_MAX`].
    pub(super) feeds: Vec<Value>,
    /// How many more there are.
    pub(super) feeds_left_out: usize,
    /// One Description each, in order.
    pub(super) parts: Vec<Arc<Part>>,
}

/// One Description's share of a content.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Part {
    pub(super) deployer: Deployer,
    /// Its place among the parts of its deployer.
    pub(super) index: usize,
    /// How many of its manifests are referenced by digest.
    pub(super) referenced: usize,
    /// `raw`, `charts` and `chartRaw`; nothing else of the spec.
    pub(super) spec: Value,
    /// Over `spec`.
    pub(super) digest: Digest,
}

/// Who would deploy it, in Clusternet's words.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Deployer {
    Generic,
    Helm,
}

impl Deployer {
    /// Its name.
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Generic => "Generic",
            Self::Helm => "Helm",
        }
    }
}

/// Where a content stands in the released ref.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place<'a> {
    /// Digest of the variant.
    pub(super) digest: &'a Digest,
    /// Its folder.
    pub(super) folder: &'a str,
}

/// One manifest, encoded.
struct Manifest {
    raw: String,
    /// A chart's own object, encoded, and its reference.
    chart: Option<(String, Value)>,
    referenced: bool,
}

impl Manifest {
    fn bytes(&self) -> usize {
        self.raw.len() + self.chart.as_ref().map_or(0, |(raw, _)| raw.len())
    }
}

/// A content with these replicas.
pub(super) fn contents(description: &Description, replicas: &ByObject, place: Place<'_>) -> Contents {
    let mut feeds = Vec::new();
    let (mut generic, mut helm) = (Vec::new(), Vec::new());
    let contents = description.with_replicas(replicas);
    for (object, content) in description.objects.iter().zip(&contents) {
        feeds.push(feed(&api_version(&object.key, content), &object.key));
        match content {
            Content::Chart { object: chart, .. } => helm.push(chart_manifest(&object.key, chart, place)),
            Content::Plain { object: chart } if is_chart(&object.key) => {
                helm.push(chart_manifest(&object.key, chart, place));
            }
            content => generic.push(manifest(&object.key, content, place)),
        }
    }
    let mut parts = cut(Deployer::Generic, generic);
    parts.extend(cut(Deployer::Helm, helm));
    let (feeds, feeds_left_out) = bounded(feeds);
    Contents {
        feeds,
        feeds_left_out,
        parts,
    }
}

/// The first feeds of a list, and how many more there are.
pub(super) fn bounded(mut feeds: Vec<Value>) -> (Vec<Value>, usize) {
    let more = feeds.len().saturating_sub(OBJECT_FEEDS_MAX);
    feeds.truncate(OBJECT_FEEDS_MAX);
    (feeds, more)
}

/// An object as a feed names it.
pub(super) fn feed(api_version: &str, key: &ObjectKey) -> Value {
    let mut feed = json!({"apiVersion": api_version, "kind": key.kind, "name": key.name});
    if !key.namespace.is_empty() {
        feed["namespace"] = json!(key.namespace);
    }
    feed
}

/// The version that a content names; an encrypted document says it in plain text.
fn api_version(key: &ObjectKey, content: &Content) -> String {
    let said = match content {
        Content::Chart { object, .. } | Content::Plain { object } => object["apiVersion"].as_str().map(str::to_owned),
        Content::Encrypted { original, .. } => yaml::read(original)
            .ok()
            .and_then(|documents| documents.first()?.value["apiVersion"].as_str().map(str::to_owned)),
    };
    said.unwrap_or_else(|| key.group.clone())
}

fn manifest(key: &ObjectKey, content: &Content, place: Place<'_>) -> Manifest {
    let bytes = match content {
        // Whoever may read Descriptions may not read Secrets. All of one is kept back: its annotations may
        // repeat its values.
        Content::Plain { .. } if key.is_secret() => {
            return reference(key, content, place, "a Secret in plain text");
        }
        Content::Chart { object, .. } | Content::Plain { object } => object.to_string().into_bytes(),
        // Overrides that it carries are for whoever decrypts it, and may hold values in plain text.
        Content::Encrypted { original, .. } => original.as_bytes().to_vec(),
    };
    let raw = STANDARD.encode(bytes);
    if raw.len() > OBJECT_RAW_BYTES_MAX {
        return reference(key, content, place, "larger than an API server takes");
    }
    Manifest {
        raw,
        chart: None,
        referenced: false,
    }
}

/// Stands for a manifest that is not here: which object it is, and where all of it is.
fn reference(key: &ObjectKey, content: &Content, place: Place<'_>, reason: &str) -> Manifest {
    Manifest {
        raw: encoded(&stub(key, &api_version(key, content), place, reason)),
        chart: None,
        referenced: true,
    }
}

fn stub(key: &ObjectKey, api_version: &str, place: Place<'_>, reason: &str) -> Value {
    let mut metadata = json!({"name": key.name, "annotations": {
        name::CONTENT_DIGEST: place.digest.to_string(),
        name::CONTENT_PATH: format!("{}/{}", place.folder, layout::object_file(key)),
        name::CONTENT_REASON: reason,
    }});
    if !key.namespace.is_empty() {
        metadata["namespace"] = json!(key.namespace);
    }
    json!({"apiVersion": api_version, "kind": key.kind, "metadata": metadata})
}

/// A chart: its values as `raw`, and the HelmChart itself as `chartRaw`.
fn chart_manifest(key: &ObjectKey, chart: &Value, place: Place<'_>) -> Manifest {
    let values = chart.pointer("/spec/values").cloned().unwrap_or_else(|| json!({}));
    let named = json!({"namespace": key.namespace, "name": key.name});
    let (raw, chart_raw) = (encoded(&values), encoded(chart));
    if raw.len() + chart_raw.len() <= OBJECT_RAW_BYTES_MAX {
        return Manifest {
            raw,
            chart: Some((chart_raw, named)),
            referenced: false,
        };
    }
    let version = chart["apiVersion"].as_str().unwrap_or_default();
    let stub = stub(key, version, place, "larger than an API server takes");
    Manifest {
        raw: encoded(&json!({})),
        chart: Some((encoded(&stub), named)),
        referenced: true,
    }
}

fn encoded(value: &Value) -> String {
    STANDARD.encode(value.to_string())
}

/// Cuts manifests into parts, in their order, each as large as it may be.
fn cut(deployer: Deployer, manifests: Vec<Manifest>) -> Vec<Arc<Part>> {
    let mut parts: Vec<Vec<Manifest>> = Vec::new();
    let mut bytes = 0;
    for manifest in manifests {
        bytes += manifest.bytes();
        match parts.last_mut() {
            Some(part) if bytes <= OBJECT_RAW_BYTES_MAX => part.push(manifest),
            _ => {
                bytes = manifest.bytes();
                parts.push(vec![manifest]);
            }
        }
    }
    let part = |(index, manifests)| Arc::new(part(deployer, index, manifests));
    parts.into_iter().enumerate().map(part).collect()
}

fn part(deployer: Deployer, index: usize, manifests: Vec<Manifest>) -> Part {
    let referenced = manifests.iter().filter(|manifest| manifest.referenced).count();
    let (mut raw, mut charts, mut chart_raw) = (Vec::new(), Vec::new(), Vec::new());
    for manifest in manifests {
        raw.push(Value::String(manifest.raw));
        if let Some((own, named)) = manifest.chart {
            chart_raw.push(Value::String(own));
            charts.push(named);
        }
    }
    let mut spec = json!({"raw": raw});
    if deployer == Deployer::Helm {
        spec["charts"] = Value::Array(charts);
        spec["chartRaw"] = Value::Array(chart_raw);
    }
    Part {
        deployer,
        index,
        referenced,
        digest: Digest::of_value(&spec),
        spec,
    }
}

#[cfg(test)]
mod tests;
