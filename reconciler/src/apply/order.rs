//! In which order objects are applied; they are removed in reverse.

use render::ObjectKey;

/// A group of kinds that is applied before the next one begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Stage {
    /// Namespaces: everything namespaced needs one.
    Namespace,
    /// CustomResourceDefinitions: custom resources need them established.
    Definition,
    /// Accounts and rights, which workloads start with.
    Access,
    /// What workloads read, and what limits them.
    Configuration,
    /// Volumes and their claims.
    Storage,
    /// What runs.
    Workload,
    /// Custom resources: after the controllers that may serve them, and removed before those, since
    /// their finalizers need a controller that still runs.
    Custom,
    /// Webhooks, policies and aggregated APIs: they can refuse what comes after, so nothing does.
    Admission,
}

impl Stage {
    /// Every stage, first to last.
    pub(super) const ALL: [Self; 8] = [
        Self::Namespace,
        Self::Definition,
        Self::Access,
        Self::Configuration,
        Self::Storage,
        Self::Workload,
        Self::Custom,
        Self::Admission,
    ];
}

/// Groups that every API server has of its own; a kind of any other group is a custom resource.
const BUILT_IN: [&str; 18] = [
    "",
    "admissionregistration.k8s.io",
    "apiextensions.k8s.io",
    "apiregistration.k8s.io",
    "apps",
    "autoscaling",
    "batch",
    "certificates.k8s.io",
    "coordination.k8s.io",
    "discovery.k8s.io",
    "events.k8s.io",
    "flowcontrol.apiserver.k8s.io",
    "networking.k8s.io",
    "node.k8s.io",
    "policy",
    "rbac.authorization.k8s.io",
    "scheduling.k8s.io",
    "storage.k8s.io",
];

/// Whether every API server has this group of its own.
pub(super) fn is_built_in(group: &str) -> bool {
    BUILT_IN.contains(&group)
}

/// The stage of an object.
pub(super) fn stage(key: &ObjectKey) -> Stage {
    match (key.group.as_str(), key.kind.as_str()) {
        ("", "Namespace") => Stage::Namespace,
        ("apiextensions.k8s.io", _) => Stage::Definition,
        ("rbac.authorization.k8s.io", _) | ("", "ServiceAccount") => Stage::Access,
        ("", "PersistentVolume" | "PersistentVolumeClaim") | ("storage.k8s.io", _) => Stage::Storage,
        ("apps" | "batch" | "autoscaling", _) | ("", "Pod" | "ReplicationController" | "PodTemplate") => {
            Stage::Workload
        }
        ("admissionregistration.k8s.io" | "apiregistration.k8s.io", _) => Stage::Admission,
        (group, _) if is_built_in(group) => Stage::Configuration,
        _ => Stage::Custom,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(api_version: &str, kind: &str, expected: Stage) {
        let key = ObjectKey::new(api_version, kind, "", "x");
        assert_eq!(stage(&key), expected, "stage of {api_version} {kind}");
    }

    #[test]
    fn what_others_need_comes_first() {
        check("v1", "Namespace", Stage::Namespace);
        check("apiextensions.k8s.io/v1", "CustomResourceDefinition", Stage::Definition);
        check("rbac.authorization.k8s.io/v1", "ClusterRoleBinding", Stage::Access);
        check("v1", "ServiceAccount", Stage::Access);
        check("v1", "ConfigMap", Stage::Configuration);
        check("v1", "Secret", Stage::Configuration);
        check("v1", "Service", Stage::Configuration);
        check("networking.k8s.io/v1", "Ingress", Stage::Configuration);
        check("policy/v1", "PodDisruptionBudget", Stage::Configuration);
        check("v1", "PersistentVolumeClaim", Stage::Storage);
        check("storage.k8s.io/v1", "StorageClass", Stage::Storage);
        check("apps/v1", "Deployment", Stage::Workload);
        check("v1", "Pod", Stage::Workload);
        check("autoscaling/v2", "HorizontalPodAutoscaler", Stage::Workload);
    }

    #[test]
    fn custom_resources_follow_the_workloads_that_serve_them() {
        check("cert-manager.io/v1", "Issuer", Stage::Custom);
        // Their groups end as built-in ones do.
        check("gateway.networking.k8s.io/v1", "Gateway", Stage::Custom);
        check("multicluster.x-k8s.io/v1alpha1", "ServiceExport", Stage::Custom);
    }

    #[test]
    fn what_can_refuse_others_comes_last() {
        check(
            "admissionregistration.k8s.io/v1",
            "ValidatingWebhookConfiguration",
            Stage::Admission,
        );
        check("apiregistration.k8s.io/v1", "APIService", Stage::Admission);
        assert!(Stage::ALL.is_sorted(), "stages are walked in their own order");
        assert_eq!(Stage::ALL.last(), Some(&Stage::Admission));
    }
}
