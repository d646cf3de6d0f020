//! What an agent may do in its cluster, as RBAC has it: what the manifests grant, and what the doctor asks about.

use serde_json::{Value, json};

use crate::apply::NAMESPACE;

/// One rule of a role: each of these verbs on each of these resources.
#[derive(Clone, Copy, Debug)]
pub(super) struct Grant {
    group: &'static str,
    resources: &'static [&'static str],
    verbs: &'static [&'static str],
}

/// Of the whole cluster. Kubernetes lets everybody who is logged in discover kinds and health.
pub(super) const EVERYWHERE: [Grant; 3] = [
    Grant::of("", &["namespaces"], &["get", "create", "patch"]),
    Grant::of("", &["nodes", "pods"], &["list", "watch"]),
    Grant::of("networking.k8s.io", &["servicecidrs"], &["list"]),
];

/// Of the namespace of the agent's own things.
pub(super) const OWN: [Grant; 3] = [
    Grant::of(
        "coordination.k8s.io",
        &["leases"],
        &["get", "create", "update", "patch"],
    ),
    Grant::of(
        "",
        &["configmaps"],
        &["get", "list", "create", "update", "patch", "delete"],
    ),
    Grant::of("", &["secrets"], &["get", "list", "create", "update", "delete"]),
];

/// Acting as whoever asks, and writing what `access/` of the fleet repository grants them here.
pub(super) const PEOPLE: [Grant; 2] = [
    Grant::of("", &["users", "groups"], &["impersonate"]),
    Grant::of(
        "rbac.authorization.k8s.io",
        &["clusterroles", "clusterrolebindings", "roles", "rolebindings"],
        &["get", "list", "watch", "create", "patch", "delete", "bind", "escalate"],
    ),
];

/// One right that an agent needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Need<'a> {
    /// `None`: in the whole cluster.
    pub(super) namespace: Option<&'a str>,
    pub(super) group: &'a str,
    pub(super) resource: &'a str,
    pub(super) verb: &'a str,
}

impl Grant {
    const fn of(group: &'static str, resources: &'static [&'static str], verbs: &'static [&'static str]) -> Self {
        Self {
            group,
            resources,
            verbs,
        }
    }

    /// As a role has it.
    pub(super) fn rule(self) -> Value {
        json!({ "apiGroups": [self.group], "resources": self.resources, "verbs": self.verbs })
    }

    fn needs(self, namespace: Option<&'static str>) -> impl Iterator<Item = Need<'static>> {
        self.resources.iter().flat_map(move |resource| {
            self.verbs.iter().map(move |verb| Need {
                namespace,
                group: self.group,
                resource,
                verb,
            })
        })
    }
}

/// What every agent needs, and where; what it needs for what the feeds hold is not known here.
pub(super) const COMMON: [(Option<&'static str>, &[Grant]); 2] = [(None, &EVERYWHERE), (Some(NAMESPACE), &OWN)];

/// What those need that act in people's names.
pub(super) const OF_PEOPLE: [(Option<&'static str>, &[Grant]); 1] = [(None, &PEOPLE)];

/// Rights one by one.
pub(super) fn needs(grants: &[(Option<&'static str>, &[Grant])]) -> Vec<Need<'static>> {
    let needs = grants
        .iter()
        .flat_map(|(namespace, grants)| grants.iter().flat_map(|grant| grant.needs(*namespace)));
    needs.collect()
}
