//! Every kind with a rule, in sample states, as docs/health.md says it.

use super::*;

/// `{type: status}`, with a reason after a colon.
fn conditions(words: &[&str]) -> Value {
    let condition = |words: &&str| {
        let (name, status) = words.split_once('=').expect("type=status");
        let (status, reason) = status.split_once(':').unwrap_or((status, ""));
        json!({"type": name, "status": status, "reason": reason, "message": "words"})
    };
    json!({"conditions": words.iter().map(condition).collect::<Vec<_>>()})
}

use Health::{Current, Failed, InProgress};

#[test]
fn built_in_kinds_are_judged_as_the_table_says() {
    let none = || json!({});
    check("v1/ConfigMap", none(), none(), Current);
    check("v1/Secret", none(), none(), Current);
    check("v1/ServiceAccount", none(), none(), Current);
    check("rbac.authorization.k8s.io/v1/ClusterRole", none(), none(), Current);
    check("storage.k8s.io/v1/StorageClass", none(), none(), Current);
    check("networking.k8s.io/v1/NetworkPolicy", none(), none(), Current);
    check(
        "admissionregistration.k8s.io/v1/ValidatingWebhookConfiguration",
        none(),
        none(),
        Current,
    );
    check("v1/Namespace", none(), json!({"phase": "Active"}), Current);
    check("v1/Namespace", none(), json!({"phase": "Terminating"}), InProgress);
    check(
        "v1/Service",
        json!({"type": "LoadBalancer"}),
        json!({"loadBalancer": {}}),
        Current,
    );
    check(
        "networking.k8s.io/v1/Ingress",
        none(),
        json!({"loadBalancer": {}}),
        Current,
    );
    check("v1/PersistentVolumeClaim", none(), json!({"phase": "Pending"}), Current);
    check("v1/PersistentVolumeClaim", none(), json!({"phase": "Bound"}), Current);
    check("v1/PersistentVolumeClaim", none(), json!({"phase": "Lost"}), Failed);
    for phase in ["Available", "Bound", "Released"] {
        check("v1/PersistentVolume", none(), json!({"phase": phase}), Current);
    }
    check("v1/PersistentVolume", none(), json!({"phase": "Pending"}), InProgress);
    check("v1/PersistentVolume", none(), json!({"phase": "Failed"}), Failed);
    check(
        "policy/v1/PodDisruptionBudget",
        none(),
        conditions(&["DisruptionAllowed=False:InsufficientPods"]),
        Current,
    );
    check(
        "autoscaling/v2/HorizontalPodAutoscaler",
        none(),
        conditions(&["ScalingActive=False:FailedGetResourceMetric"]),
        Current,
    );
    check("batch/v1/CronJob", none(), none(), Current);
    check("batch/v1/Job", none(), none(), InProgress);
    check(
        "batch/v1/Job",
        none(),
        json!({"startTime": "2026-01-01T00:00:00Z", "active": 1}),
        InProgress,
    );
    check("batch/v1/Job", none(), conditions(&["Complete=True"]), Current);
    check("batch/v1/Job", none(), conditions(&["Suspended=True"]), Current);
    check(
        "batch/v1/Job",
        none(),
        conditions(&["Failed=True:BackoffLimitExceeded"]),
        Failed,
    );
    check("v1/Pod", none(), json!({"phase": "Pending"}), InProgress);
    check("v1/Pod", none(), json!({"phase": "Failed"}), Failed);
    check("v1/Pod", none(), json!({"phase": "Succeeded"}), Current);
    let mut ready = conditions(&["Ready=True"]);
    ready["phase"] = "Running".into();
    check("v1/Pod", none(), ready, Current);
    check(
        "v1/ReplicationController",
        json!({"replicas": 1}),
        json!({"observedGeneration": 2}),
        InProgress,
    );
    check(
        "apps/v1/ReplicaSet",
        json!({"replicas": 1}),
        json!({"observedGeneration": 2}),
        InProgress,
    );
    check(
        "apps/v1/Deployment",
        none(),
        conditions(&["Progressing=False:ProgressDeadlineExceeded"]),
        Failed,
    );
    check("apps/v1/StatefulSet", none(), none(), InProgress);
    check("apps/v1/DaemonSet", none(), none(), InProgress);
    check(
        "apiextensions.k8s.io/v1/CustomResourceDefinition",
        none(),
        conditions(&["Established=True"]),
        Current,
    );
    let definition = "apiextensions.k8s.io/v1/CustomResourceDefinition";
    check(definition, none(), none(), InProgress);
    check(
        definition,
        none(),
        conditions(&["NamesAccepted=False:ListKindConflict"]),
        Failed,
    );
    let api_service = "apiregistration.k8s.io/v1/APIService";
    check(api_service, none(), none(), InProgress);
    check(
        api_service,
        none(),
        conditions(&["Available=False:MissingEndpoints"]),
        InProgress,
    );
    check(api_service, none(), conditions(&["Available=True:Passed"]), Current);
    let request = "certificates.k8s.io/v1/CertificateSigningRequest";
    check(request, none(), none(), InProgress);
    check(request, none(), conditions(&["Denied=True"]), Failed);
    let mut signed = conditions(&["Approved=True"]);
    signed["certificate"] = "UEVN".into();
    check(request, none(), signed, Current);
}

#[test]
fn kinds_of_others_are_judged_as_the_table_says() {
    let check = |kind: &str, status: Value, expected| check(kind, json!({}), status, expected);
    for kind in ["Certificate", "Issuer", "ClusterIssuer", "CertificateRequest"] {
        let kind = format!("cert-manager.io/v1/{kind}");
        check(&kind, json!({}), InProgress);
        check(&kind, conditions(&["Ready=True"]), Current);
        check(&kind, conditions(&["Ready=False:Pending"]), InProgress);
    }
    check(
        "cert-manager.io/v1/CertificateRequest",
        conditions(&["Ready=False:Failed"]),
        Failed,
    );
    check(
        "cert-manager.io/v1/CertificateRequest",
        conditions(&["Denied=True"]),
        Failed,
    );
    for kind in ["Order", "Challenge"] {
        let kind = format!("acme.cert-manager.io/v1/{kind}");
        check(&kind, json!({"state": "valid"}), Current);
        check(&kind, json!({"state": "pending"}), InProgress);
        check(&kind, json!({"state": "errored", "reason": "no such zone"}), Failed);
    }
    let gateway = "gateway.networking.k8s.io/v1";
    check(
        &format!("{gateway}/GatewayClass"),
        conditions(&["Accepted=Unknown:Waiting"]),
        InProgress,
    );
    check(
        &format!("{gateway}/GatewayClass"),
        conditions(&["Accepted=True"]),
        Current,
    );
    check(
        &format!("{gateway}/Gateway"),
        conditions(&["Accepted=True"]),
        InProgress,
    );
    check(
        &format!("{gateway}/Gateway"),
        conditions(&["Accepted=True", "Programmed=True"]),
        Current,
    );
    check(
        &format!("{gateway}/Gateway"),
        conditions(&["Accepted=True", "Programmed=False:AddressNotAssigned"]),
        Current,
    );
    let parents = |words: &[&str]| json!({"parents": [conditions(&["Accepted=True"]), conditions(words)]});
    for kind in ["HTTPRoute", "GRPCRoute", "TCPRoute", "TLSRoute", "UDPRoute"] {
        let kind = format!("{gateway}/{kind}");
        check(&kind, json!({"parents": []}), InProgress);
        check(&kind, parents(&["Accepted=True", "ResolvedRefs=True"]), Current);
        check(
            &kind,
            parents(&["Accepted=False:NoMatchingListenerHostname"]),
            InProgress,
        );
        check(
            &kind,
            parents(&["Accepted=True", "ResolvedRefs=False:BackendNotFound"]),
            InProgress,
        );
    }
    let rollout = "argoproj.io/v1alpha1/Rollout";
    check(rollout, json!({}), InProgress);
    check(rollout, json!({"phase": "Healthy", "observedGeneration": "2"}), Current);
    check(
        rollout,
        json!({"phase": "Healthy", "observedGeneration": "1"}),
        InProgress,
    );
    check(
        rollout,
        json!({"phase": "Paused", "message": "CanaryPauseStep"}),
        InProgress,
    );
    check(
        rollout,
        json!({"phase": "Degraded", "message": "ProgressDeadlineExceeded"}),
        Failed,
    );
    for kind in ["Prometheus", "PrometheusAgent", "Alertmanager", "ThanosRuler"] {
        let kind = format!("monitoring.coreos.com/v1/{kind}");
        check(&kind, json!({}), InProgress);
        check(&kind, conditions(&["Reconciled=True", "Available=True"]), Current);
        check(
            &kind,
            conditions(&["Reconciled=True", "Available=Degraded:SomePodsNotReady"]),
            InProgress,
        );
    }
}

#[test]
fn a_custom_resource_without_a_word_is_told_apart_from_a_good_one() {
    let verdict = |object: Value| health(&object);
    let silent = verdict(json!({"apiVersion": "x.io/v1", "kind": "Widget", "metadata": {"generation": 1}}));
    assert!(silent.is_silent(), "{silent:?}");
    // A kind that is known to report is never Current without a word.
    let known =
        verdict(json!({"apiVersion": "cert-manager.io/v1", "kind": "Certificate", "metadata": {"generation": 1}}));
    assert_eq!((known.health, known.is_silent()), (InProgress, false));
    let said = json!({"apiVersion": "x.io/v1", "kind": "Widget", "metadata": {"generation": 1},
        "status": {"observedGeneration": 1, "conditions": [{"type": "Ready", "status": "True"}]}});
    assert_eq!(verdict(said), Verdict::current());
    let old = json!({"apiVersion": "x.io/v1", "kind": "Widget", "metadata": {"generation": 2},
        "status": {"conditions": [{"type": "Ready", "status": "True", "observedGeneration": 1}]}});
    assert_eq!(
        verdict(old).health,
        InProgress,
        "a condition about an older generation says nothing"
    );
    assert!(!verdict(json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {}})).is_silent());
}
