//! Fields that an API server owns, and a manifest copied out of one still has.

use serde_json::{Map, Value};

/// What never is a declaration, in any object.
pub(crate) const SERVER_POINTERS: [&str; 7] = [
    "/metadata/creationTimestamp",
    "/metadata/generation",
    "/metadata/managedFields",
    "/metadata/resourceVersion",
    "/metadata/selfLink",
    "/metadata/uid",
    "/status",
];

/// Labels by which a Job finds its Pods, under their old names and their present ones.
const JOB_LABELS: [&str; 4] = [
    "controller-uid",
    "job-name",
    "batch.kubernetes.io/controller-uid",
    "batch.kubernetes.io/job-name",
];

/// Takes out what never is a declaration: `status`, and the fields of `metadata` that the server fills in.
pub(crate) fn strip_server_fields(object: &mut Value) {
    for pointer in SERVER_POINTERS {
        remove(object, pointer);
    }
}

/// Takes out all that a server filled in, for an object read from a cluster to be committed: besides
/// `status` and server-kept metadata, a Service's addresses and ports, and the labels that tie a Job to its Pods.
///
/// A headless Service stays headless (`clusterIP: None`).
pub fn trim(object: &mut Value) {
    strip_server_fields(object);
    match (object["apiVersion"].as_str(), object["kind"].as_str()) {
        (Some("v1") | None, Some("Service")) => trim_service(object),
        (Some("batch/v1") | None, Some("Job")) => trim_job(object),
        _ => {}
    }
}

fn trim_service(object: &mut Value) {
    if object["spec"]["clusterIP"] != "None" {
        remove(object, "/spec/clusterIP");
        remove(object, "/spec/clusterIPs");
    }
    if !matches!(object["spec"]["type"].as_str(), Some("NodePort" | "LoadBalancer")) {
        return;
    }
    remove(object, "/spec/healthCheckNodePort");
    let ports = object.pointer_mut("/spec/ports").and_then(Value::as_array_mut);
    for port in ports.into_iter().flatten().filter_map(Value::as_object_mut) {
        port.remove("nodePort");
    }
}

fn trim_job(object: &mut Value) {
    remove(object, "/spec/template/metadata/creationTimestamp");
    for labels in ["/spec/selector/matchLabels", "/spec/template/metadata/labels"] {
        for label in JOB_LABELS {
            if let Some(labels) = map_at(object, labels) {
                labels.remove(label);
            }
        }
    }
}

/// Removes the field at a pointer whose segments need no escaping.
fn remove(object: &mut Value, pointer: &str) {
    if let Some((parent, field)) = pointer.rsplit_once('/')
        && let Some(parent) = map_at(object, parent)
    {
        parent.remove(field);
    }
}

fn map_at<'a>(object: &'a mut Value, pointer: &str) -> Option<&'a mut Map<String, Value>> {
    object.pointer_mut(pointer)?.as_object_mut()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check(mut object: Value, expected: Value) {
        trim(&mut object);
        assert_eq!(object, expected);
    }

    #[test]
    fn what_a_server_filled_in_is_no_declaration() {
        check(
            json!({"kind": "ConfigMap", "metadata": {"name": "a", "uid": "1", "managedFields": []}, "status": {}}),
            json!({"kind": "ConfigMap", "metadata": {"name": "a"}}),
        );
        check(json!({"kind": "ConfigMap"}), json!({"kind": "ConfigMap"}));
    }

    #[test]
    fn a_service_loses_addresses_that_were_given_to_it() {
        check(
            json!({"kind": "Service", "spec": {
                "type": "NodePort", "clusterIP": "10.0.0.1", "clusterIPs": ["10.0.0.1"],
                "ports": [{"port": 80, "nodePort": 30080}]}}),
            json!({"kind": "Service", "spec": {"type": "NodePort", "ports": [{"port": 80}]}}),
        );
        let headless = json!({"kind": "Service", "spec": {"clusterIP": "None", "clusterIPs": ["None"]}});
        check(headless.clone(), headless);
        let knative = json!({"apiVersion": "serving.knative.dev/v1", "kind": "Service", "spec": {"clusterIP": "x"}});
        check(knative.clone(), knative);
    }

    #[test]
    fn a_job_loses_the_labels_that_tie_it_to_its_pods() {
        check(
            json!({"apiVersion": "batch/v1", "kind": "Job", "spec": {
                "selector": {"matchLabels": {"controller-uid": "1"}},
                "template": {"metadata": {"labels": {"batch.kubernetes.io/controller-uid": "1", "job-name": "x", "app": "a"}}}}}),
            json!({"apiVersion": "batch/v1", "kind": "Job", "spec": {
                "selector": {"matchLabels": {}}, "template": {"metadata": {"labels": {"app": "a"}}}}}),
        );
    }
}
