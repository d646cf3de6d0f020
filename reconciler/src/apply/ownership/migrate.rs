//! Takes fields over from the tool that applied an object before.
//!
//! A field with two owners stays when one of them lets it go. So the fields that Git has are taken out of
//! the entries of earlier tools: what leaves Git later then leaves the object. What they own besides stays
//! theirs.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{FieldsV1, ManagedFieldsEntry};

use super::fields::{Owners, is_ours, without};
use crate::apply::FIELD_MANAGER;

/// Field managers of tools that applied objects before Flotilla did: kubectl's (by their prefix), Flux', Argo
/// CD's, Helm's and Clusternet's, and whoever wrote before there were managers.
const EARLIER_MANAGERS: [&str; 11] = [
    "before-first-apply",
    "kustomize-controller",
    "helm-controller",
    "helm",
    "argocd-controller",
    "argocd-application-controller",
    "clusternet-agent",
    "clusternet-hub",
    "clusternet-scheduler",
    "clusternet-controller-manager",
    FIELD_MANAGER,
];

/// Whether a field manager is a person's tool.
pub(super) fn is_hand(manager: &str) -> bool {
    manager == "kubectl" || manager.starts_with("kubectl-")
}

/// The managed fields after ours were taken out of earlier tools' entries; `None` when they have none of ours.
/// `more` are further managers that count as earlier tools.
pub(in crate::apply) fn migrated(
    owners: Owners<'_>,
    entries: &[ManagedFieldsEntry],
    more: &[String],
) -> Option<Vec<ManagedFieldsEntry>> {
    let ours = owners.ours()?;
    let is_earlier = |entry: &ManagedFieldsEntry| {
        let manager = entry.manager.as_deref().unwrap_or_default();
        let is_named = || EARLIER_MANAGERS.contains(&manager) || more.iter().any(|more| more == manager);
        // A subresource has another writer's fields: a status, or a scale.
        entry.subresource.is_none() && !is_ours(entry) && (is_hand(manager) || is_named())
    };
    let mut changed = false;
    let mut after = Vec::with_capacity(entries.len());
    for entry in entries {
        let Some(theirs) = entry.fields_v1.as_ref().filter(|_| is_earlier(entry)) else {
            after.push(entry.clone());
            continue;
        };
        let left = without(&theirs.0, ours);
        changed |= left.as_ref() != Some(&theirs.0);
        after.extend(left.map(|left| ManagedFieldsEntry {
            fields_v1: Some(FieldsV1(left)),
            ..entry.clone()
        }));
    }
    changed.then_some(after)
}

#[cfg(test)]
mod tests {
    use kube::core::ObjectMeta;
    use serde_json::{Value, json};

    use super::*;

    fn entry(manager: &str, operation: &str, subresource: &str, fields: Value) -> ManagedFieldsEntry {
        ManagedFieldsEntry {
            manager: Some(manager.to_owned()),
            operation: Some(operation.to_owned()),
            subresource: Some(subresource.to_owned()).filter(|name| !name.is_empty()),
            fields_v1: Some(FieldsV1(fields)),
            ..ManagedFieldsEntry::default()
        }
    }

    fn migrate(entries: Vec<ManagedFieldsEntry>, more: &[String]) -> Option<Vec<ManagedFieldsEntry>> {
        let metadata = ObjectMeta {
            managed_fields: Some(entries.clone()),
            ..ObjectMeta::default()
        };
        migrated(Owners::of(&metadata), &entries, more)
    }

    fn ours() -> ManagedFieldsEntry {
        entry(FIELD_MANAGER, "Apply", "", json!({"f:spec": {"f:replicas": {}}}))
    }

    #[test]
    fn earlier_tools_keep_only_what_git_does_not_have() {
        let both = json!({"f:metadata": {"f:annotations": {"f:x": {}}}, "f:spec": {"f:replicas": {}}});
        let rest = json!({"f:metadata": {"f:annotations": {"f:x": {}}}});
        for (manager, operation) in [
            ("kubectl-client-side-apply", "Update"),
            ("kubectl", "Apply"),
            ("kustomize-controller", "Apply"),
            ("argocd-controller", "Apply"),
            ("clusternet-agent", "Update"),
            (FIELD_MANAGER, "Update"),
        ] {
            let after = migrate(vec![ours(), entry(manager, operation, "", both.clone())], &[]);
            let expected = vec![ours(), entry(manager, operation, "", rest.clone())];
            assert_eq!(after, Some(expected), "{manager}");
        }
        // What had nothing else is gone.
        let same = json!({"f:spec": {"f:replicas": {}}});
        let after = migrate(vec![ours(), entry("kubectl-create", "Update", "", same)], &[]);
        assert_eq!(after, Some(vec![ours()]));
    }

    #[test]
    fn other_managers_and_subresources_are_left_alone() {
        let same = || json!({"f:spec": {"f:replicas": {}}});
        assert_eq!(
            migrate(vec![ours(), entry("operator", "Update", "", same())], &[]),
            None
        );
        assert_eq!(
            migrate(vec![ours(), entry("kubectl", "Update", "scale", same())], &[]),
            None
        );
        assert_eq!(
            migrate(vec![entry("kubectl", "Update", "", same())], &[]),
            None,
            "nothing is ours"
        );
        let more = ["operator".to_owned()];
        assert_eq!(
            migrate(vec![ours(), entry("operator", "Update", "", same())], &more),
            Some(vec![ours()])
        );
    }
}
