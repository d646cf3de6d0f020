//! What API servers do not change, kind by kind.

/// What of a kind cannot change. Paths are those of the API server's messages, `spec.template`.
pub(super) struct Rule {
    pub(super) group: &'static str,
    pub(super) kind: &'static str,
    pub(super) fixed: Fixed,
}

/// Which fields of an object cannot change.
pub(super) enum Fixed {
    /// These, with all that is below them.
    Only(&'static [&'static str]),
    /// All below the first one, but these.
    AllBut(&'static str, &'static [&'static str]),
}

use Fixed::{AllBut, Only};

const fn rule(group: &'static str, kind: &'static str, fixed: Fixed) -> Rule {
    Rule { group, kind, fixed }
}

/// Built-in kinds with such fields, as Kubernetes 1.33 checks them. What depends on more than the field itself stands
/// in `fields`.
pub(super) const RULES: [Rule; 20] = [
    rule(
        "",
        "PersistentVolume",
        Only(&["spec.volumeMode", "spec.csi", "spec.hostPath", "spec.nfs", "spec.local"]),
    ),
    rule(
        "",
        "PersistentVolumeClaim",
        AllBut("spec", &["spec.resources", "spec.volumeAttributesClassName"]),
    ),
    rule("", "Secret", Only(&["type"])),
    rule(
        "apiextensions.k8s.io",
        "CustomResourceDefinition",
        Only(&["spec.group", "spec.scope", "spec.names.kind", "spec.names.plural"]),
    ),
    rule("apps", "DaemonSet", Only(&["spec.selector"])),
    rule("apps", "Deployment", Only(&["spec.selector"])),
    rule("apps", "ReplicaSet", Only(&["spec.selector"])),
    rule("apps", "ControllerRevision", Only(&["data"])),
    rule(
        "batch",
        "Job",
        Only(&[
            "spec.template",
            "spec.selector",
            "spec.completions",
            "spec.completionMode",
            "spec.podFailurePolicy",
            "spec.backoffLimitPerIndex",
            "spec.managedBy",
            "spec.successPolicy",
        ]),
    ),
    rule("discovery.k8s.io", "EndpointSlice", Only(&["addressType"])),
    rule("networking.k8s.io", "IngressClass", Only(&["spec.controller"])),
    rule("node.k8s.io", "RuntimeClass", Only(&["handler"])),
    rule("rbac.authorization.k8s.io", "ClusterRoleBinding", Only(&["roleRef"])),
    rule("rbac.authorization.k8s.io", "RoleBinding", Only(&["roleRef"])),
    rule(
        "scheduling.k8s.io",
        "PriorityClass",
        Only(&["value", "preemptionPolicy"]),
    ),
    rule(
        "storage.k8s.io",
        "StorageClass",
        Only(&["provisioner", "parameters", "reclaimPolicy", "volumeBindingMode"]),
    ),
    rule(
        "storage.k8s.io",
        "CSIDriver",
        Only(&["spec.attachRequired", "spec.volumeLifecycleModes"]),
    ),
    rule("storage.k8s.io", "VolumeAttachment", Only(&["spec"])),
    rule(
        "",
        "Service",
        Only(&["spec.clusterIP", "spec.clusterIPs[0]", "spec.ipFamilies[0]"]),
    ),
    rule("certificates.k8s.io", "CertificateSigningRequest", Only(&["spec"])),
];

/// What an API server puts in where a manifest says nothing, for fields above: kind, field, value.
pub(super) const DEFAULTS: [(&str, &str, &str); 7] = [
    ("Job", "spec.completionMode", "NonIndexed"),
    ("PersistentVolumeClaim", "spec.volumeMode", "Filesystem"),
    ("PriorityClass", "preemptionPolicy", "PreemptLowerPriority"),
    ("Secret", "type", "Opaque"),
    ("StatefulSet", "spec.podManagementPolicy", "OrderedReady"),
    ("StorageClass", "reclaimPolicy", "Delete"),
    ("StorageClass", "volumeBindingMode", "Immediate"),
];

/// Fields of a pod template that a Job which waits, and never ran, may still change.
pub(super) const SUSPENDED_JOB: [&str; 7] = [
    "spec.template.metadata.labels",
    "spec.template.metadata.annotations",
    "spec.template.spec.nodeSelector",
    "spec.template.spec.affinity",
    "spec.template.spec.tolerations",
    "spec.template.spec.schedulingGates",
    "spec.template.spec.containers",
];
