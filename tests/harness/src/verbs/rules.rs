//! One list of like things: what the API server has of its own for certain kinds.

use serde_json::{Value, json};

use crate::kinds::Kind;

/// Built-in kinds whose metadata counts generations.
const GENERATION: [&str; 16] = [
    "Deployment",
    "StatefulSet",
    "DaemonSet",
    "ReplicaSet",
    "Job",
    "CronJob",
    "Pod",
    "Ingress",
    "IngressClass",
    "NetworkPolicy",
    "PodDisruptionBudget",
    "MutatingWebhookConfiguration",
    "ValidatingWebhookConfiguration",
    "CustomResourceDefinition",
    "PriorityClass",
    "EndpointSlice",
];

/// Whether objects of a kind have a generation.
pub(crate) fn has_generation(kind: &Kind) -> bool {
    kind.custom.is_some() || GENERATION.contains(&&*kind.kind)
}

/// What is filled in beside the defaults of the type table.
pub(super) fn defaults(kind: &Kind, object: &mut Value) {
    if kind.custom.is_some() {
        return;
    }
    match &*kind.kind {
        "Deployment" | "StatefulSet" | "ReplicaSet" => default(object, &["spec", "replicas"], json!(1)),
        "Secret" => {
            default(object, &["type"], json!("Opaque"));
            encode_strings(object);
        }
        "Service" => {
            default(object, &["spec", "type"], json!("ClusterIP"));
            for port in object["spec"]["ports"].as_array_mut().into_iter().flatten() {
                let number = port["port"].clone();
                default(port, &["targetPort"], number);
            }
        }
        "Namespace" => {
            let name = object["metadata"]["name"].clone();
            default(object, &["metadata", "labels", "kubernetes.io/metadata.name"], name);
        }
        "CustomResourceDefinition" => {
            default(object, &["spec", "conversion"], json!({"strategy": "None"}));
            let kind = object["spec"]["names"]["kind"].as_str().unwrap_or_default().to_owned();
            default(object, &["spec", "names", "singular"], json!(kind.to_lowercase()));
            default(object, &["spec", "names", "listKind"], json!(format!("{kind}List")));
        }
        "RoleBinding" | "ClusterRoleBinding" => {
            default(object, &["roleRef", "apiGroup"], json!("rbac.authorization.k8s.io"));
        }
        _ => {}
    }
}

fn default(object: &mut Value, path: &[&str], value: Value) {
    let mut at = object;
    for name in path {
        if !at.is_object() && !at.is_null() {
            return;
        }
        at = &mut at[*name];
    }
    if at.is_null() {
        *at = value;
    }
}

/// `stringData` is only written, never read.
fn encode_strings(object: &mut Value) {
    use base64::Engine as _;
    let Some(map) = object.as_object_mut() else { return };
    let Some(Value::Object(strings)) = map.remove("stringData") else {
        return;
    };
    for (name, text) in strings {
        let encoded = base64::engine::general_purpose::STANDARD.encode(text.as_str().unwrap_or_default());
        map.entry("data").or_insert_with(|| json!({}))[name] = encoded.into();
    }
}

/// What a new object starts with.
pub(super) fn at_birth(kind: &Kind, object: &mut Value) {
    if kind.custom.is_some() {
        return;
    }
    match &*kind.kind {
        "Namespace" => {
            object["spec"] = json!({"finalizers": ["kubernetes"]});
            object["status"] = json!({"phase": "Active"});
        }
        "Pod" => object["status"] = json!({"phase": "Pending", "qosClass": "BestEffort"}),
        "PersistentVolumeClaim" => object["status"] = json!({"phase": "Pending"}),
        "Service" => object["status"] = json!({"loadBalancer": {}}),
        _ => {}
    }
}

/// Containers without an image: (path, reason, what is wrong).
pub(super) fn without_image(kind: &Kind, object: &Value) -> Vec<(String, &'static str, String)> {
    let path = match &*kind.kind {
        "Pod" => "spec",
        "CronJob" => "spec.jobTemplate.spec.template.spec",
        _ => "spec.template.spec",
    };
    let pod = path.split('.').fold(object, |value, name| &value[name]);
    let mut found = Vec::new();
    for list in ["initContainers", "containers"] {
        for (index, container) in pod[list].as_array().into_iter().flatten().enumerate() {
            if container["image"].as_str().is_none_or(str::is_empty) {
                let field = format!("{path}.{list}[{index}].image");
                found.push((field, "FieldValueRequired", "Required value".to_owned()));
            }
        }
    }
    found
}

/// Fields that never change: (path, why).
pub(super) fn changed_immutables(kind: &Kind, before: &Value, after: &Value) -> Vec<(String, &'static str, String)> {
    let paths: &[&str] = match (&*kind.group, &*kind.kind) {
        ("apps", "Deployment" | "StatefulSet" | "DaemonSet" | "ReplicaSet") => &["spec.selector"],
        ("batch", "Job") => &["spec.selector", "spec.template"],
        ("rbac.authorization.k8s.io", "RoleBinding" | "ClusterRoleBinding") => &["roleRef"],
        ("", "Secret") => &["type"],
        _ => &[],
    };
    let at = |object: &Value, path: &str| path.split('.').fold(object.clone(), |value, name| value[name].clone());
    let mut changed: Vec<_> = paths
        .iter()
        .filter(|path| at(before, path) != at(after, path))
        .map(|path| immutable(path))
        .collect();
    let frozen = matches!(&*kind.kind, "ConfigMap" | "Secret") && kind.group.is_empty() && before["immutable"] == true;
    if frozen && (before["data"] != after["data"] || after["immutable"] != true) {
        changed.push((
            "data".to_owned(),
            "FieldValueForbidden",
            "Forbidden: field is immutable when `immutable` is set".to_owned(),
        ));
    }
    changed
}

fn immutable(path: &&str) -> (String, &'static str, String) {
    (
        (*path).to_owned(),
        "FieldValueInvalid",
        "Invalid value: field is immutable".to_owned(),
    )
}
