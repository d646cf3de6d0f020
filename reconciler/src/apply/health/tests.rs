mod table;

use serde_json::json;

use super::*;

#[track_caller]
fn check(kind: &str, spec: Value, status: Value, expected: Health) {
    let (api_version, kind) = kind.rsplit_once('/').expect("apiVersion/Kind");
    let object = json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": "x", "generation": 2},
        "spec": spec, "status": status});
    let verdict = health(&object);
    assert_eq!(verdict.health, expected, "{kind}: {verdict:?} of {object}");
    assert_eq!(
        verdict.message.is_empty(),
        expected == Health::Current,
        "whatever is not Current says why"
    );
}

fn condition(name: &str, status: &str, reason: &str) -> Value {
    json!([{"type": name, "status": status, "reason": reason, "message": "words"}])
}

#[test]
fn a_status_about_an_older_generation_is_not_believed() {
    let done = json!({"observedGeneration": 1, "replicas": 1, "updatedReplicas": 1, "availableReplicas": 1});
    check("apps/v1/Deployment", json!({}), done, Health::InProgress);
    check(
        "x.io/v1/Widget",
        json!({}),
        json!({"observedGeneration": 1}),
        Health::InProgress,
    );
}

#[test]
fn deployments_follow_their_rollout() {
    let check = |replicas: i64, updated: i64, available: i64, expected| {
        let status = json!({"observedGeneration": 2, "replicas": replicas, "updatedReplicas": updated,
            "availableReplicas": available});
        check("apps/v1/Deployment", json!({"replicas": 2}), status, expected);
    };
    check(2, 2, 2, Health::Current);
    check(2, 1, 2, Health::InProgress);
    check(3, 2, 2, Health::InProgress);
    check(2, 2, 1, Health::InProgress);
}

#[test]
fn a_deployment_that_missed_its_deadline_has_failed() {
    let status =
        json!({"observedGeneration": 2, "conditions": condition("Progressing", "False", "ProgressDeadlineExceeded")});
    check("apps/v1/Deployment", json!({}), status, Health::Failed);
    check(
        "apps/v1/Deployment",
        json!({"replicas": 0}),
        json!({"observedGeneration": 2}),
        Health::Current,
    );
    check(
        "apps/v1/Deployment",
        json!({"replicas": 0}),
        json!({}),
        Health::InProgress,
    );
}

#[test]
fn stateful_sets_respect_their_partition() {
    let status = |updated: i64, current: &str| {
        json!({"observedGeneration": 2, "readyReplicas": 3, "updatedReplicas": updated,
            "currentRevision": current, "updateRevision": "b"})
    };
    let partition = json!({"replicas": 3, "updateStrategy": {"rollingUpdate": {"partition": 2}}});
    check(
        "apps/v1/StatefulSet",
        json!({"replicas": 3}),
        status(3, "b"),
        Health::Current,
    );
    check(
        "apps/v1/StatefulSet",
        json!({"replicas": 3}),
        status(3, "a"),
        Health::InProgress,
    );
    check(
        "apps/v1/StatefulSet",
        json!({"replicas": 3}),
        status(1, "a"),
        Health::InProgress,
    );
    check("apps/v1/StatefulSet", partition, status(1, "a"), Health::Current);
    check(
        "apps/v1/StatefulSet",
        json!({"replicas": 4}),
        status(4, "b"),
        Health::InProgress,
    );
    check(
        "apps/v1/StatefulSet",
        json!({"updateStrategy": {"type": "OnDelete"}}),
        json!({}),
        Health::Current,
    );
}

#[test]
fn daemon_sets_count_their_nodes() {
    let status = |updated: i64, ready: i64| {
        json!({"observedGeneration": 2, "desiredNumberScheduled": 3, "updatedNumberScheduled": updated,
            "numberAvailable": ready, "numberReady": ready})
    };
    check("apps/v1/DaemonSet", json!({}), status(3, 3), Health::Current);
    check("apps/v1/DaemonSet", json!({}), status(2, 3), Health::InProgress);
    check("apps/v1/DaemonSet", json!({}), status(3, 2), Health::InProgress);
    check("apps/v1/DaemonSet", json!({}), json!({}), Health::InProgress);
    check(
        "apps/v1/ReplicaSet",
        json!({"replicas": 1}),
        json!({"observedGeneration": 2, "readyReplicas": 1, "availableReplicas": 1}),
        Health::Current,
    );
    check(
        "apps/v1/ReplicaSet",
        json!({"replicas": 2}),
        json!({"observedGeneration": 2, "readyReplicas": 1, "availableReplicas": 1}),
        Health::InProgress,
    );
}

#[test]
fn pods_and_jobs_end_well_or_badly() {
    let ready = json!({"phase": "Running", "conditions": condition("Ready", "True", "")});
    check("v1/Pod", json!({}), ready, Health::Current);
    check("v1/Pod", json!({}), json!({"phase": "Running"}), Health::InProgress);
    check("v1/Pod", json!({}), json!({"phase": "Succeeded"}), Health::Current);
    check(
        "v1/Pod",
        json!({}),
        json!({"phase": "Failed", "reason": "Evicted"}),
        Health::Failed,
    );
    let crashing = json!({"phase": "Running", "containerStatuses": [{"name": "c", "state": {"waiting": {"reason": "CrashLoopBackOff"}}}]});
    check("v1/Pod", json!({}), crashing, Health::Failed);
    check("batch/v1/Job", json!({}), json!({}), Health::InProgress);
    check(
        "batch/v1/Job",
        json!({}),
        json!({"startTime": "2026-01-01T00:00:00Z"}),
        Health::InProgress,
    );
    check(
        "batch/v1/Job",
        json!({}),
        json!({"conditions": condition("Complete", "True", "")}),
        Health::Current,
    );
    check(
        "batch/v1/Job",
        json!({}),
        json!({"conditions": condition("Failed", "True", "BackoffLimitExceeded")}),
        Health::Failed,
    );
    check("batch/v1/CronJob", json!({}), json!({}), Health::Current);
}

#[test]
fn what_never_comes_in_some_clusters_blocks_nothing() {
    let balancer = json!({"type": "LoadBalancer"});
    let address = json!({"loadBalancer": {"ingress": [{"ip": "192.0.2.1"}]}});
    check(
        "v1/Service",
        json!({"type": "ClusterIP"}),
        json!({"loadBalancer": {}}),
        Health::Current,
    );
    check(
        "v1/Service",
        balancer.clone(),
        json!({"loadBalancer": {}}),
        Health::Current,
    );
    check("v1/Service", balancer, address, Health::Current);
    check(
        "v1/PersistentVolumeClaim",
        json!({}),
        json!({"phase": "Bound"}),
        Health::Current,
    );
    check(
        "v1/PersistentVolumeClaim",
        json!({}),
        json!({"phase": "Pending"}),
        Health::Current,
    );
    check(
        "v1/PersistentVolumeClaim",
        json!({}),
        json!({"phase": "Lost"}),
        Health::Failed,
    );
    check("v1/Namespace", json!({}), json!({"phase": "Active"}), Health::Current);
    check(
        "policy/v1/PodDisruptionBudget",
        json!({}),
        json!({"disruptionsAllowed": 0,
        "conditions": condition("DisruptionAllowed", "False", "InsufficientPods")}),
        Health::Current,
    );
    check(
        "networking.k8s.io/v1/Ingress",
        json!({}),
        json!({"loadBalancer": {}}),
        Health::Current,
    );
}

#[test]
fn definitions_and_api_services_are_current_once_they_serve() {
    let crd = "apiextensions.k8s.io/v1/CustomResourceDefinition";
    check(crd, json!({}), json!({}), Health::InProgress);
    check(
        crd,
        json!({}),
        json!({"conditions": condition("Established", "True", "")}),
        Health::Current,
    );
    check(
        crd,
        json!({}),
        json!({"conditions": condition("Established", "False", "Installing")}),
        Health::InProgress,
    );
    check(
        crd,
        json!({}),
        json!({"conditions": condition("NamesAccepted", "False", "PluralConflict")}),
        Health::Failed,
    );
    let service = "apiregistration.k8s.io/v1/APIService";
    check(
        service,
        json!({}),
        json!({"conditions": condition("Available", "False", "MissingEndpoints")}),
        Health::InProgress,
    );
    check(
        service,
        json!({}),
        json!({"conditions": condition("Available", "True", "Passed")}),
        Health::Current,
    );
}

#[test]
fn other_kinds_follow_the_conditions_that_controllers_agree_on() {
    let check = |conditions, expected| check("x.io/v1/Widget", json!({}), json!({"conditions": conditions}), expected);
    check(condition("Ready", "True", ""), Health::Current);
    check(condition("Ready", "False", "Waiting"), Health::InProgress);
    check(condition("Ready", "Unknown", "Progressing"), Health::InProgress);
    check(condition("Available", "False", ""), Health::InProgress);
    check(condition("Reconciling", "True", ""), Health::InProgress);
    check(condition("Stalled", "True", "Broken"), Health::Failed);
    check(condition("Stalled", "False", ""), Health::Current);
}

#[test]
fn an_object_without_status_is_current_and_a_deleted_one_terminating() {
    let plain = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x"}});
    assert_eq!(health(&plain).health, Health::Current);
    let deleted = json!({"apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": "x", "deletionTimestamp": "2026-01-01T00:00:00Z"}});
    assert_eq!(health(&deleted).health, Health::Terminating);
    assert!(!has_status("", "ConfigMap"));
    assert!(has_status("", "Namespace"), "namespaces can be on their way out");
    assert!(has_status("apps", "Deployment"));
    assert!(has_status("x.io", "Widget"));
}
