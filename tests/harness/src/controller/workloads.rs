//! Workloads become ready by their word alone.

use serde_json::{Value, json};

use crate::store::{State, Stored, now};
use crate::verbs::{self, Draft};

const SHELVES: [&str; 8] = [
    "deployments.apps",
    "statefulsets.apps",
    "daemonsets.apps",
    "replicasets.apps",
    "jobs.batch",
    "pods.",
    "persistentvolumeclaims.",
    "poddisruptionbudgets.policy",
];

/// Whether objects of a shelf become ready here.
pub(super) fn makes_ready(shelf: &str) -> bool {
    SHELVES.contains(&shelf)
}

/// Writes the status of a workload that is what it should be.
pub(super) fn look(state: &mut State, shelf: &str, stored: &Stored) {
    let live = stored.object();
    let nodes = state.list("nodes.", "").count();
    let Some(kind) = state.kind_of_shelf(shelf) else { return };
    let Some(status) = status(&kind.kind, &live, nodes) else {
        return;
    };
    let mut object = live.clone();
    object["status"] = status;
    let draft = Draft {
        kind: &kind,
        subresource: "status",
    };
    let manager = if shelf == "pods." {
        "kubelet"
    } else {
        "kube-controller-manager"
    };
    verbs::write(state, &draft, &live, object, manager);
}

/// The status of an object that is as it should be; `None` where it says so already.
fn status(kind: &str, live: &Value, nodes: usize) -> Option<Value> {
    let generation = live["metadata"]["generation"].as_u64().unwrap_or(1);
    let replicas = live["spec"]["replicas"].as_u64().unwrap_or(1);
    let mut status = match kind {
        "Deployment" => json!({"observedGeneration": generation, "replicas": replicas, "updatedReplicas": replicas,
            "readyReplicas": replicas, "availableReplicas": replicas}),
        "StatefulSet" => {
            let revision = format!("{}-{generation}", live["metadata"]["name"].as_str().unwrap_or_default());
            json!({"observedGeneration": generation, "replicas": replicas, "updatedReplicas": replicas,
                "readyReplicas": replicas, "availableReplicas": replicas, "currentReplicas": replicas,
                "currentRevision": revision, "updateRevision": revision, "collisionCount": 0})
        }
        "ReplicaSet" => json!({"observedGeneration": generation, "replicas": replicas, "readyReplicas": replicas,
            "availableReplicas": replicas, "fullyLabeledReplicas": replicas}),
        "DaemonSet" => json!({"observedGeneration": generation, "desiredNumberScheduled": nodes,
            "currentNumberScheduled": nodes, "updatedNumberScheduled": nodes, "numberReady": nodes,
            "numberAvailable": nodes, "numberMisscheduled": 0}),
        "Job" => return job(live),
        "Pod" => return pod(live),
        "PersistentVolumeClaim" => return claim(live),
        "PodDisruptionBudget" => json!({"observedGeneration": generation, "currentHealthy": 0, "desiredHealthy": 0,
            "disruptionsAllowed": 0, "expectedPods": 0}),
        _ => return None,
    };
    match kind {
        "Deployment" => {
            status["conditions"] = json!([
                condition(
                    live,
                    "Available",
                    "MinimumReplicasAvailable",
                    "Deployment has minimum availability."
                ),
                condition(
                    live,
                    "Progressing",
                    "NewReplicaSetAvailable",
                    "Deployment has successfully progressed."
                )
            ]);
            for condition in status["conditions"].as_array_mut().into_iter().flatten() {
                condition["lastUpdateTime"] = condition["lastTransitionTime"].clone();
            }
        }
        "PodDisruptionBudget" => status["conditions"] = json!([]),
        _ => {}
    }
    Some(status)
}

/// A condition that holds, since when it holds.
fn condition(live: &Value, kind: &str, reason: &str, message: &str) -> Value {
    let conditions = live["status"]["conditions"].as_array().into_iter().flatten();
    let mut held = conditions.filter(|condition| condition["type"] == kind && condition["status"] == "True");
    let since = held
        .next()
        .and_then(|condition| condition["lastTransitionTime"].as_str().map(str::to_owned));
    json!({"type": kind, "status": "True", "reason": reason, "message": message,
        "lastTransitionTime": since.unwrap_or_else(now)})
}

fn job(live: &Value) -> Option<Value> {
    if live["spec"]["suspend"] == true {
        return Some(json!({"conditions": [condition(live, "Suspended", "JobSuspended", "Job suspended")]}));
    }
    if live["status"]["completionTime"].is_string() {
        return None;
    }
    let completions = live["spec"]["completions"].as_u64().unwrap_or(1);
    let conditions = ["SuccessCriteriaMet", "Complete"].map(|kind| {
        condition(
            live,
            kind,
            "CompletionsReached",
            "Reached expected number of succeeded pods",
        )
    });
    Some(
        json!({"startTime": now(), "completionTime": now(), "succeeded": completions, "ready": 0, "terminating": 0,
        "uncountedTerminatedPods": {}, "conditions": conditions}),
    )
}

fn pod(live: &Value) -> Option<Value> {
    if live["status"]["phase"] != "Pending" {
        return None;
    }
    let containers = live["spec"]["containers"].as_array().into_iter().flatten();
    let statuses: Vec<_> = containers
        .map(|container| {
            json!({"name": container["name"], "image": container["image"], "imageID": "", "ready": true, "started": true,
                "restartCount": 0, "state": {"running": {"startedAt": now()}}})
        })
        .collect();
    let conditions = ["PodScheduled", "Initialized", "ContainersReady", "Ready"]
        .map(|kind| json!({"type": kind, "status": "True", "lastTransitionTime": now()}));
    Some(
        json!({"phase": "Running", "qosClass": "BestEffort", "startTime": now(), "conditions": conditions,
        "containerStatuses": statuses}),
    )
}

fn claim(live: &Value) -> Option<Value> {
    if live["status"]["phase"] != "Pending" {
        return None;
    }
    Some(json!({"phase": "Bound", "accessModes": live["spec"]["accessModes"],
        "capacity": live["spec"]["resources"]["requests"]}))
}
