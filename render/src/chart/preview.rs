//! What a chart is predicted to bring: the objects that `helm template` printed for a cluster like the one it goes to.
//!
//! A prediction is for people and for checks before a release. What a cluster gets is what helm installs there.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

use serde::Serialize;
use serde_json::{Value, json};

use super::{ChartFiles, ChartOrder, ChartSource, Crds};
use crate::describe::{Content, Description, is_chart, key_of};
use crate::digest::Digest;
use crate::name::{ClusterName, ObjectKey};
use crate::yaml;

/// What a cluster says of itself, and templates may look at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Capabilities {
    kubernetes_version: String,
    api_versions: Vec<String>,
    digest: Digest,
}

/// What a prediction depends on, and nothing else.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PreviewKey {
    /// The chart: its files, or where it is pulled from.
    pub chart: Digest,
    /// Its values.
    pub values: Digest,
    /// The release's name and namespace, and the options that change what is printed.
    pub release: Digest,
    /// The cluster's capabilities.
    pub capabilities: Digest,
}

/// A prediction that is wanted.
#[derive(Clone, PartialEq)]
pub struct PreviewRequest {
    /// What the HelmChart orders.
    pub order: Arc<ChartOrder>,
    /// The chart, where it stands in the repository.
    pub files: Option<Arc<ChartFiles>>,
    /// What the cluster says of itself.
    pub capabilities: Arc<Capabilities>,
}

/// What came of one.
#[derive(Clone, Debug, PartialEq)]
pub enum Preview {
    /// These objects, sorted by key.
    Predicted {
        /// They.
        objects: Vec<PredictedObject>,
        /// Templates that printed something else the second time, sorted.
        unsteady: Vec<String>,
    },
    /// Helm refuses chart or values, and would on the cluster.
    Failed {
        /// Helm's words.
        words: String,
    },
    /// Nobody here can say: the chart is private, or could not be pulled, or took too long.
    Unknown {
        /// Why.
        why: String,
    },
}

/// An object that a chart is predicted to bring.
#[derive(Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PredictedObject {
    /// Which.
    pub key: ObjectKey,
    /// What it says; of a Secret its keys alone.
    pub value: Arc<Value>,
    /// The template that it is from.
    pub template: String,
    /// Whether it is run at a point of the release, and is nothing that stays.
    pub hook: bool,
}

/// Predictions, by what they depend on.
#[derive(Clone, Debug, Default)]
pub struct Previews {
    /// Whether there are any.
    pub mode: PreviewMode,
    /// What clusters say of themselves; those that said nothing yet are not here.
    pub capabilities: BTreeMap<ClusterName, Arc<Capabilities>>,
    /// What is known. One that is asked for and not here is on its way.
    pub known: BTreeMap<PreviewKey, Arc<Preview>>,
}

/// Whether there are predictions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PreviewMode {
    /// Nobody asks for any.
    #[default]
    Off,
    /// Whoever would make them has no helm.
    NoHelm,
    /// They are made; a chart waits for its own.
    On,
}

impl Capabilities {
    /// What a cluster of this version that serves these says: `apps/v1/Deployment`, `v1/Service`, sorted.
    pub fn new(kubernetes_version: String, api_versions: Vec<String>) -> Self {
        let digest = Digest::of_value(&json!([kubernetes_version, api_versions]));
        Self {
            kubernetes_version,
            api_versions,
            digest,
        }
    }

    /// Its version, as its API server says it.
    pub fn kubernetes_version(&self) -> &str {
        &self.kubernetes_version
    }

    /// What it serves.
    pub fn api_versions(&self) -> &[String] {
        &self.api_versions
    }

    /// Over all of it.
    pub fn digest(&self) -> Digest {
        self.digest
    }
}

impl PreviewRequest {
    /// What it depends on.
    pub fn key(&self) -> PreviewKey {
        let chart = match (&self.files, &self.order.source) {
            (Some(files), _) => json!({ "files": files.digest() }),
            (None, ChartSource::Folder { path }) => json!({ "path": path }),
            (
                None,
                ChartSource::Repository {
                    repo,
                    chart,
                    version,
                    digest,
                    ..
                },
            ) => json!({"repo": repo, "chart": chart, "version": version, "digest": digest}),
        };
        let order = &self.order;
        let release = json!([
            order.release_name,
            order.target_namespace,
            order.disable_hooks,
            order.crds == Crds::Skip
        ]);
        PreviewKey {
            chart: Digest::of_value(&chart),
            values: Digest::of_value(&Value::Object(order.values.clone())),
            release: Digest::of_value(&release),
            capabilities: self.capabilities.digest(),
        }
    }
}

impl Preview {
    /// The objects that stay, sorted by key; hooks are none.
    ///
    /// # Errors
    ///
    /// Why nothing is predicted.
    pub fn objects(&self) -> Result<impl Iterator<Item = &PredictedObject>, String> {
        match self {
            Self::Predicted { objects, .. } => Ok(objects.iter().filter(|object| !object.hook)),
            Self::Failed { words } => Err(format!("helm refuses it: {words}")),
            Self::Unknown { why } => Err(why.clone()),
        }
    }
}

impl Previews {
    /// The predictions that a content needs on a cluster, with the HelmChart of each; none for a cluster that has not
    /// said what it is.
    pub fn requests(&self, content: &Description, cluster: &ClusterName) -> Vec<(ObjectKey, PreviewRequest)> {
        let Some(capabilities) = self.capabilities.get(cluster) else {
            return Vec::new();
        };
        let request = |(key, order, files)| {
            let capabilities = Arc::clone(capabilities);
            let request = PreviewRequest {
                order: Arc::new(order),
                files,
                capabilities,
            };
            (key, request)
        };
        orders(content).into_iter().map(request).collect()
    }

    /// The objects that a content brings to a cluster from inside its charts, as far as they are predicted, each with
    /// its HelmChart. Hooks are none: they do not stay.
    pub fn objects(&self, content: &Description, cluster: &ClusterName) -> Vec<(ObjectKey, PredictedObject)> {
        let mut found = Vec::new();
        for (chart, request) in self.requests(content, cluster) {
            let preview = self.known.get(&request.key());
            if let Some(Ok(stay)) = preview.map(|preview| preview.objects()) {
                found.extend(stay.map(|object| (chart.clone(), object.clone())));
            }
        }
        found
    }

    /// Over all of it: equal, and every plan that looks at it is.
    pub fn digest(&self) -> Digest {
        let capabilities = self
            .capabilities
            .iter()
            .map(|(name, said)| json!([name, said.digest()]));
        let known = self.known.iter().map(|(key, preview)| {
            let said = match preview.as_ref() {
                Preview::Predicted { unsteady, .. } => json!(["predicted", unsteady]),
                Preview::Failed { words } => json!(["failed", words]),
                Preview::Unknown { why } => json!(["unknown", why]),
            };
            json!([key.chart, key.values, key.release, key.capabilities, said])
        });
        Digest::of_value(&json!([
            format!("{:?}", self.mode),
            capabilities.collect::<Vec<_>>(),
            known.collect::<Vec<_>>()
        ]))
    }
}

/// What the HelmCharts of a content order; one that cannot be read orders nothing.
fn orders(content: &Description) -> Vec<(ObjectKey, ChartOrder, Option<Arc<ChartFiles>>)> {
    let charts = content.objects.iter().filter(|object| is_chart(&object.key));
    let order = |(key, content): (&ObjectKey, &Content)| {
        let order = ChartOrder::of(content.object()?).ok()?;
        let files = match content {
            Content::Chart { files, .. } => Some(Arc::clone(files)),
            Content::Plain { .. } | Content::Encrypted { .. } => None,
        };
        Some((key.clone(), order, files))
    };
    charts
        .filter_map(|object| order((&object.key, &object.content)))
        .collect()
}

/// Reads what `helm template` printed twice for one chart, namespace included.
///
/// # Errors
///
/// Why it is not what helm prints.
pub fn predicted(first: &str, second: &str, namespace: &str) -> Result<Preview, String> {
    let objects = read(first, namespace)?;
    let unsteady = if first == second {
        Vec::new()
    } else {
        unsteady(&objects, &read(second, namespace)?)
    };
    let masked = objects.into_iter().map(PredictedObject::masked);
    let mut objects: Vec<_> = masked.collect();
    objects.sort_by(|a, b| (&a.key, &a.template).cmp(&(&b.key, &b.template)));
    Ok(Preview::Predicted { objects, unsteady })
}

fn read(text: &str, namespace: &str) -> Result<Vec<PredictedObject>, String> {
    let sources: Vec<(u32, &str)> = (1..)
        .zip(text.lines())
        .filter_map(|(number, line)| Some((number, line.strip_prefix("# Source: ")?)))
        .collect();
    let documents = yaml::read(text).map_err(|error| format!("what helm prints is no YAML: {error}"))?;
    let mut objects = Vec::new();
    for document in documents {
        let Some(mut key) = key_of(&document.value) else {
            continue;
        };
        let hooks = document.value.pointer("/metadata/annotations/helm.sh~1hook");
        let hooks = hooks.and_then(Value::as_str).unwrap_or_default().to_owned();
        let mut names = hooks.split(',').map(str::trim);
        // Tests are run by people who ask for them.
        if names.any(|hook| hook.starts_with("test")) {
            continue;
        }
        if key.namespace.is_empty() && !is_cluster_scoped(&key.kind) {
            key.namespace = namespace.to_owned();
        }
        let source = sources.iter().rev().find(|(number, _)| *number <= document.line);
        objects.push(PredictedObject {
            key,
            value: Arc::new(document.value),
            template: source.map(|(_, path)| (*path).to_owned()).unwrap_or_default(),
            hook: !hooks.is_empty(),
        });
    }
    Ok(objects)
}

/// Built-in kinds whose objects have no namespace. Of others nobody here knows it, and a chart that brings one says its
/// namespace as a rule.
fn is_cluster_scoped(kind: &str) -> bool {
    const KINDS: [&str; 16] = [
        "APIService",
        "CSIDriver",
        "CertificateSigningRequest",
        "ClusterIssuer",
        "ClusterRole",
        "ClusterRoleBinding",
        "CustomResourceDefinition",
        "GatewayClass",
        "IngressClass",
        "MutatingWebhookConfiguration",
        "Namespace",
        "PersistentVolume",
        "PriorityClass",
        "RuntimeClass",
        "StorageClass",
        "ValidatingWebhookConfiguration",
    ];
    KINDS.contains(&kind)
}

/// Templates of objects that are not in both lists alike.
fn unsteady(first: &[PredictedObject], second: &[PredictedObject]) -> Vec<String> {
    let lacking = |from: &[PredictedObject], to: &[PredictedObject]| -> Vec<String> {
        let differs = from.iter().filter(|object| !to.contains(object));
        differs.map(|object| object.template.clone()).collect()
    };
    let all: BTreeSet<String> = lacking(first, second)
        .into_iter()
        .chain(lacking(second, first))
        .collect();
    all.into_iter().collect()
}

impl PredictedObject {
    /// Without the values of a Secret, wherever they may be repeated.
    fn masked(self) -> Self {
        if !self.key.is_secret() {
            return self;
        }
        let mut value = json!({"apiVersion": self.value["apiVersion"], "kind": self.value["kind"],
            "metadata": {"name": self.value["metadata"]["name"]}});
        for field in ["data", "stringData"] {
            if let Some(keys) = self.value[field].as_object() {
                value[field] = keys.keys().map(|key| (key.clone(), Value::from("***"))).collect();
            }
        }
        Self {
            value: Arc::new(value),
            ..self
        }
    }
}

/// Without what it says.
impl fmt::Debug for PredictedObject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PredictedObject")
            .field("key", &self.key)
            .field("template", &self.template)
            .field("hook", &self.hook)
            .finish_non_exhaustive()
    }
}

/// Without values, which may be secret.
impl fmt::Debug for PreviewRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PreviewRequest")
            .field("release", &self.order.release_name)
            .field("capabilities", &self.capabilities.kubernetes_version)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PRINTED: &str = "---
# Source: web/templates/a.yaml
apiVersion: v1
kind: ConfigMap
metadata: {name: a}
---
# Source: web/templates/role.yaml
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: r}
---
# Source: web/templates/secret.yaml
apiVersion: v1
kind: Secret
metadata: {name: s, annotations: {copy: hunter2}}
stringData: {password: hunter2}
---
# Source: web/templates/test.yaml
apiVersion: v1
kind: Pod
metadata: {name: t, annotations: {helm.sh/hook: test}}
---
# Source: web/templates/job.yaml
apiVersion: batch/v1
kind: Job
metadata: {name: j, annotations: {helm.sh/hook: 'pre-install,pre-upgrade'}}
---
# Source: web/templates/empty.yaml
";

    #[test]
    fn objects_are_told_with_their_template_and_without_tests() {
        let Ok(Preview::Predicted { objects, unsteady }) = predicted(PRINTED, PRINTED, "shop") else {
            unreachable!("helm printed it")
        };
        let shown: Vec<_> = objects
            .iter()
            .map(|object| format!("{} {} {}", object.key, object.template, object.hook))
            .collect();
        let expected = [
            "/ConfigMap/shop/a web/templates/a.yaml false",
            "/Secret/shop/s web/templates/secret.yaml false",
            "batch/Job/shop/j web/templates/job.yaml true",
            "rbac.authorization.k8s.io/ClusterRole//r web/templates/role.yaml false",
        ];
        assert_eq!(shown, expected);
        assert_eq!(unsteady, [] as [&str; 0]);
        let text = serde_json::to_string(&objects).expect("they are JSON");
        assert!(text.contains("password") && !text.contains("hunter2"), "{text}");
    }

    #[test]
    fn a_template_that_prints_something_else_each_time_is_named() {
        let again = PRINTED.replace("stringData: {password: hunter2}", "stringData: {password: hunter3}");
        let Ok(Preview::Predicted { unsteady, .. }) = predicted(PRINTED, &again, "shop") else {
            unreachable!("helm printed it")
        };
        assert_eq!(unsteady, ["web/templates/secret.yaml"]);
    }

    #[test]
    fn what_a_prediction_depends_on_tells_it_apart() {
        let capabilities = |version: &str| Arc::new(Capabilities::new(version.to_owned(), Vec::new()));
        let request = |spec: Value, version: &str| {
            let chart = json!({"metadata": {"name": "web"}, "spec": spec});
            let order = ChartOrder::of(&chart).expect("it is an order");
            PreviewRequest {
                order: Arc::new(order),
                files: None,
                capabilities: capabilities(version),
            }
            .key()
        };
        let spec = |more: Value| {
            let mut spec = json!({"repo": "https://x", "chart": "web", "version": "1.0.0", "targetNamespace": "shop"});
            for (name, value) in more.as_object().expect("a map") {
                spec[name] = value.clone();
            }
            spec
        };
        let one = request(spec(json!({})), "v1.33.0");
        assert_eq!(
            one,
            request(spec(json!({"timeoutSeconds": 9, "atomic": true})), "v1.33.0")
        );
        for other in [
            request(spec(json!({})), "v1.34.0"),
            request(spec(json!({"values": {"a": null}})), "v1.33.0"),
            request(spec(json!({"version": "1.0.1"})), "v1.33.0"),
            request(spec(json!({"releaseName": "shop"})), "v1.33.0"),
        ] {
            assert_ne!(one, other);
        }
    }
}
