//! One list of like things: the rules of the kinds that API servers have of their own. docs/health.md is this list for
//! people.

use render::name::group_of;
use serde_json::Value;

use super::Verdict;
use super::conditions::Conditions;
use super::custom;

/// The rule of an object's kind, if it has one.
pub(super) fn rule(object: &Value) -> Option<fn(&Value) -> Verdict> {
    let group = group_of(object["apiVersion"].as_str().unwrap_or_default());
    let rule = match (group, object["kind"].as_str().unwrap_or_default()) {
        ("apps", "Deployment") => deployment,
        ("apps", "StatefulSet") => stateful_set,
        ("apps", "DaemonSet") => daemon_set,
        ("apps", "ReplicaSet") => replica_set,
        ("", "ReplicationController") => replica_set,
        ("", "Pod") => pod,
        ("batch", "Job") => job,
        ("", "PersistentVolumeClaim") => claim,
        ("", "PersistentVolume") => volume,
        ("", "Namespace") => namespace,
        ("apiextensions.k8s.io", "CustomResourceDefinition") => definition,
        ("apiregistration.k8s.io", "APIService") => api_service,
        ("certificates.k8s.io", "CertificateSigningRequest") => signing_request,
        // A budget that allows no disruption is as it should be, an Ingress or a Service without a controller
        // that writes addresses never gets one, and an autoscaler without metrics still keeps its target.
        ("", "Service")
        | ("policy", "PodDisruptionBudget")
        | ("networking.k8s.io", "Ingress")
        | ("autoscaling", "HorizontalPodAutoscaler")
        | ("batch", "CronJob") => always,
        (group, kind) => return custom::rule(group, kind),
    };
    Some(rule)
}

fn always(_: &Value) -> Verdict {
    Verdict::current()
}

fn count(object: &Value, section: &str, field: &str) -> i64 {
    object[section][field].as_i64().unwrap_or(0)
}

/// Replicas default to one where the manifest names none.
fn wanted(object: &Value) -> i64 {
    object["spec"]["replicas"].as_i64().unwrap_or(1)
}

/// Not yet looked at by a controller at all.
fn unobserved(object: &Value) -> Option<Verdict> {
    object["status"]["observedGeneration"]
        .as_i64()
        .is_none()
        .then(|| Verdict::in_progress("it was not observed by its controller yet"))
}

fn deployment(object: &Value) -> Verdict {
    if Conditions::of(object).reason("Progressing") == "ProgressDeadlineExceeded" {
        return Verdict::failed(Conditions::of(object).message("Progressing"));
    }
    if let Some(verdict) = unobserved(object) {
        return verdict;
    }
    let wanted = wanted(object);
    let replicas = count(object, "status", "replicas");
    let updated = count(object, "status", "updatedReplicas");
    let available = count(object, "status", "availableReplicas");
    if updated < wanted {
        return Verdict::in_progress(format!("{updated} of {wanted} replicas are updated"));
    }
    if replicas > updated {
        return Verdict::in_progress(format!("{} old replicas are still there", replicas - updated));
    }
    if available < wanted {
        return Verdict::in_progress(format!("{available} of {wanted} replicas are available"));
    }
    match Conditions::of(object).status("Available") {
        Some("False") => Verdict::in_progress(Conditions::of(object).message("Available")),
        _ => Verdict::current(),
    }
}

fn stateful_set(object: &Value) -> Verdict {
    // Somebody else replaces its pods, and when is theirs to say.
    if object["spec"]["updateStrategy"]["type"] == "OnDelete" {
        return Verdict::current();
    }
    if let Some(verdict) = unobserved(object) {
        return verdict;
    }
    let wanted = wanted(object);
    let ready = count(object, "status", "readyReplicas");
    if ready < wanted {
        return Verdict::in_progress(format!("{ready} of {wanted} replicas are ready"));
    }
    let partition = object["spec"]["updateStrategy"]["rollingUpdate"]["partition"]
        .as_i64()
        .unwrap_or(0);
    let updated = count(object, "status", "updatedReplicas");
    if updated < wanted - partition {
        return Verdict::in_progress(format!("{updated} of {} replicas are updated", wanted - partition));
    }
    if partition == 0 && object["status"]["currentRevision"] != object["status"]["updateRevision"] {
        return Verdict::in_progress("the update is not finished");
    }
    Verdict::current()
}

fn daemon_set(object: &Value) -> Verdict {
    if let Some(verdict) = unobserved(object) {
        return verdict;
    }
    let wanted = count(object, "status", "desiredNumberScheduled");
    for (field, word) in [
        ("updatedNumberScheduled", "updated"),
        ("numberAvailable", "available"),
        ("numberReady", "ready"),
    ] {
        let done = count(object, "status", field);
        let by_hand = word == "updated" && object["spec"]["updateStrategy"]["type"] == "OnDelete";
        if done < wanted && !by_hand {
            return Verdict::in_progress(format!("{done} of {wanted} pods are {word}"));
        }
    }
    Verdict::current()
}

fn replica_set(object: &Value) -> Verdict {
    if Conditions::of(object).is("ReplicaFailure", "True") {
        return Verdict::in_progress(Conditions::of(object).message("ReplicaFailure"));
    }
    if let Some(verdict) = unobserved(object) {
        return verdict;
    }
    let wanted = wanted(object);
    for (field, word) in [("readyReplicas", "ready"), ("availableReplicas", "available")] {
        let done = count(object, "status", field);
        if done < wanted {
            return Verdict::in_progress(format!("{done} of {wanted} replicas are {word}"));
        }
    }
    Verdict::current()
}

fn pod(object: &Value) -> Verdict {
    match object["status"]["phase"].as_str().unwrap_or_default() {
        "Succeeded" => Verdict::current(),
        "Failed" => Verdict::failed(pod_failure(object)),
        "Running" if Conditions::of(object).is("Ready", "True") => Verdict::current(),
        _ => match crash_loop(object) {
            Some(container) => Verdict::failed(format!("container {container} keeps crashing")),
            None if Conditions::of(object).status("PodScheduled") == Some("False") => {
                Verdict::in_progress(Conditions::of(object).message("PodScheduled"))
            }
            None => Verdict::in_progress("it is not ready yet"),
        },
    }
}

fn pod_failure(object: &Value) -> String {
    let words = |field: &str| object["status"][field].as_str().unwrap_or_default();
    match (words("reason"), words("message")) {
        ("", "") => "it failed".to_owned(),
        (reason, message) => format!("{reason} {message}").trim().to_owned(),
    }
}

fn crash_loop(object: &Value) -> Option<&str> {
    let statuses = ["initContainerStatuses", "containerStatuses"];
    let mut containers = statuses
        .iter()
        .flat_map(|field| object["status"][*field].as_array().into_iter().flatten());
    let crashing = containers.find(|status| status["state"]["waiting"]["reason"] == "CrashLoopBackOff")?;
    crashing["name"].as_str()
}

fn job(object: &Value) -> Verdict {
    if Conditions::of(object).is("Failed", "True") {
        return Verdict::failed(Conditions::of(object).message("Failed"));
    }
    if Conditions::of(object).is("Complete", "True") || Conditions::of(object).is("Suspended", "True") {
        return Verdict::current();
    }
    // What waits for a job waits for what it does: a migration that runs is not done.
    if object["status"]["startTime"].is_null() {
        return Verdict::in_progress("it has not started yet");
    }
    Verdict::in_progress("it runs")
}

fn claim(object: &Value) -> Verdict {
    match object["status"]["phase"].as_str().unwrap_or_default() {
        "Lost" => Verdict::failed("its volume is lost"),
        // Most wait for the first pod that uses them, and that pod says when one of them is never bound.
        _ => Verdict::current(),
    }
}

fn volume(object: &Value) -> Verdict {
    match object["status"]["phase"].as_str().unwrap_or_default() {
        "Failed" => Verdict::failed("it could not be reclaimed"),
        "Pending" | "" => Verdict::in_progress("it is not available yet"),
        _ => Verdict::current(),
    }
}

fn signing_request(object: &Value) -> Verdict {
    let conditions = Conditions::of(object);
    for name in ["Denied", "Failed"] {
        if conditions.is(name, "True") {
            return Verdict::failed(conditions.message(name));
        }
    }
    if conditions.is("Approved", "True") && object["status"]["certificate"].is_string() {
        return Verdict::current();
    }
    Verdict::in_progress("it is not signed yet")
}

fn namespace(object: &Value) -> Verdict {
    match object["status"]["phase"].as_str() {
        Some("Active") | None => Verdict::current(),
        Some(phase) => Verdict::in_progress(format!("its phase is {phase}")),
    }
}

fn definition(object: &Value) -> Verdict {
    if Conditions::of(object).is("NamesAccepted", "False") {
        return Verdict::failed(Conditions::of(object).message("NamesAccepted"));
    }
    if Conditions::of(object).is("Established", "True") {
        return Verdict::current();
    }
    if Conditions::of(object).status("Established") == Some("False")
        && Conditions::of(object).reason("Established") != "Installing"
    {
        return Verdict::failed(Conditions::of(object).message("Established"));
    }
    Verdict::in_progress("it is not established yet")
}

fn api_service(object: &Value) -> Verdict {
    match Conditions::of(object).status("Available") {
        Some("True") => Verdict::current(),
        Some(_) => Verdict::in_progress(Conditions::of(object).message("Available")),
        None => Verdict::in_progress("it was not tried yet"),
    }
}
