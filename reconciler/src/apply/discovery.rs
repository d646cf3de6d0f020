//! Which kinds a cluster serves: the aggregated discovery document, kept as a small table.
//!
//! A group that did not answer is remembered as such: a kind that is missing then is not known to be
//! missing.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use kube::Client;
use kube::api::{Api, ApiResource, DynamicObject, ObjectMeta};
use kube::core::TypeMeta;
use kube::core::discovery::v2::{APIGroupDiscovery, APIGroupDiscoveryList, APISubresourceDiscovery};

use render::ObjectKey;
use render::name::group_of;

use super::order::is_built_in;
use super::request::{RequestError, bounded};
use crate::limits::API_VERSIONS_MAX;

/// A kind as one version of its group serves it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ServedKind {
    /// What requests need of it.
    pub resource: ApiResource,
    /// Whether its objects live in namespaces.
    pub namespaced: bool,
}

impl ServedKind {
    /// Requests for objects of this kind in a namespace; cluster-scoped kinds have none.
    pub(super) fn api(&self, client: &Client, namespace: &str) -> Api<DynamicObject> {
        if self.namespaced {
            Api::namespaced_with(client.clone(), namespace, &self.resource)
        } else {
            Api::all_with(client.clone(), &self.resource)
        }
    }

    /// The key of one of its objects.
    pub(super) fn key(&self, object: &DynamicObject) -> ObjectKey {
        self.key_of(&object.metadata)
    }

    /// The key of one of its objects, by its metadata.
    pub(super) fn key_of(&self, metadata: &ObjectMeta) -> ObjectKey {
        ObjectKey {
            group: self.resource.group.clone(),
            kind: self.resource.kind.clone(),
            namespace: metadata.namespace.clone().unwrap_or_default(),
            name: metadata.name.clone().unwrap_or_default(),
        }
    }

    /// An object of it with its kind: lists give their items without.
    pub(super) fn typed(&self, mut object: DynamicObject) -> DynamicObject {
        object.types = Some(TypeMeta {
            api_version: self.resource.api_version.clone(),
            kind: self.resource.kind.clone(),
        });
        object
    }
}

/// How requests call a kind.
#[cfg(feature = "agent")]
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Plural {
    /// Its name in them.
    pub(crate) resource: String,
    /// Whether its objects live in namespaces.
    pub(crate) namespaced: bool,
}

/// (group, kind) of all that is served → how requests call it, at the version that its group prefers.
#[cfg(feature = "agent")]
pub(crate) async fn plurals(client: &Client) -> Result<BTreeMap<(String, String), Plural>, RequestError> {
    let kinds = Kinds::discover(client).await?;
    let plural = |kind: &Arc<ServedKind>| {
        let plural = Plural {
            resource: kind.resource.plural.clone(),
            namespaced: kind.namespaced,
        };
        ((kind.resource.group.clone(), kind.resource.kind.clone()), plural)
    };
    Ok(kinds.preferred().map(plural).collect())
}

/// The kinds that a cluster serves.
#[derive(Clone, Debug, Default)]
pub(super) struct Kinds {
    /// (group, kind) → by version, the preferred one first.
    served: BTreeMap<(String, String), Vec<Arc<ServedKind>>>,
    /// Kinds of no API server's own, (group, kind), that have a status somebody writes apart from the rest.
    with_status: BTreeSet<(String, String)>,
    /// Groups whose document is out of date, since their server did not answer.
    stale: BTreeSet<String>,
}

impl Kinds {
    /// Asks the API server: two requests.
    pub(super) async fn discover(client: &Client) -> Result<Self, RequestError> {
        let core = bounded(client.list_core_api_versions_aggregated()).await?;
        let groups = bounded(client.list_api_groups_aggregated()).await?;
        Ok(Self::from_documents(&core, &groups))
    }

    fn from_documents(core: &APIGroupDiscoveryList, groups: &APIGroupDiscoveryList) -> Self {
        let mut kinds = Self::default();
        for group in core.items.iter().chain(&groups.items) {
            kinds.add(group);
        }
        kinds
    }

    fn add(&mut self, group: &APIGroupDiscovery) {
        let name = group.metadata.as_ref().and_then(|metadata| metadata.name.clone());
        let name = name.unwrap_or_default();
        for version in &group.versions {
            if version.freshness.as_deref() == Some("Stale") {
                self.stale.insert(name.clone());
            }
            let number = version.version.clone().unwrap_or_default();
            for resource in &version.resources {
                // What cannot be patched cannot be applied (token reviews and the like).
                if !resource.verbs.iter().any(|verb| verb == "patch") {
                    continue;
                }
                let kind = resource.response_kind.as_ref().and_then(|kind| kind.kind.clone());
                let kind = kind.unwrap_or_default();
                let is_status = |sub: &APISubresourceDiscovery| sub.subresource.as_deref() == Some("status");
                if !is_built_in(&name) && resource.subresources.iter().any(is_status) {
                    self.with_status.insert((name.clone(), kind.clone()));
                }
                let served = Arc::new(ServedKind {
                    resource: ApiResource {
                        api_version: if name.is_empty() {
                            number.clone()
                        } else {
                            format!("{name}/{number}")
                        },
                        group: name.clone(),
                        version: number.clone(),
                        kind: kind.clone(),
                        plural: resource.resource.clone().unwrap_or_default(),
                    },
                    namespaced: resource.scope.as_deref() == Some("Namespaced"),
                });
                self.served.entry((name.clone(), kind)).or_default().push(served);
            }
        }
    }

    /// What is served, sorted: `apps/v1/Deployment`, `v1/Service`.
    pub(super) fn api_versions(&self) -> Vec<String> {
        let kinds = self.served.values().flatten();
        let name = |kind: &Arc<ServedKind>| format!("{}/{}", kind.resource.api_version, kind.resource.kind);
        let all: BTreeSet<String> = kinds.map(name).collect();
        all.into_iter().take(API_VERSIONS_MAX).collect()
    }

    /// Each kind once, at the version that its group prefers.
    #[cfg(any(feature = "hub", feature = "agent"))]
    pub(super) fn preferred(&self) -> impl Iterator<Item = &Arc<ServedKind>> {
        self.served.values().filter_map(|versions| versions.first())
    }

    /// The groups that do not answer right now.
    #[cfg(any(feature = "hub", feature = "agent"))]
    pub(super) fn away(&self) -> impl Iterator<Item = &str> {
        self.stale.iter().map(String::as_str)
    }

    /// The kind at exactly this API version.
    pub(super) fn find(&self, api_version: &str, kind: &str) -> Option<&Arc<ServedKind>> {
        let group = group_of(api_version);
        let versions = self.served.get(&(group.to_owned(), kind.to_owned()))?;
        versions
            .iter()
            .find(|served| served.resource.api_version == api_version)
    }

    /// The kind at this API version, or at the one that its group prefers now.
    pub(super) fn find_any(&self, api_version: &str, kind: &str) -> Option<&Arc<ServedKind>> {
        let group = group_of(api_version);
        self.find(api_version, kind)
            .or_else(|| self.served.get(&(group.to_owned(), kind.to_owned()))?.first())
    }

    /// Whether an object is of a kind of no API server's own with a status that somebody writes apart from the rest.
    pub(super) fn has_status(&self, key: &ObjectKey) -> bool {
        self.with_status.contains(&(key.group.clone(), key.kind.clone()))
    }

    /// Whether a kind that is not known may be known soon: its group does not answer right now.
    pub(super) fn is_away(&self, api_version: &str) -> bool {
        self.stale.contains(group_of(api_version))
    }

    /// Why a kind is not known, in words for people.
    pub(super) fn absence(&self, api_version: &str, kind: &str) -> String {
        let group = group_of(api_version);
        if self.stale.contains(group) {
            format!("API group {group} does not answer")
        } else {
            format!("the cluster does not serve kind {kind} of {api_version}")
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn kinds() -> Kinds {
        let resource = |kind: &str, plural: &str, scope: &str, verbs: &[&str]| {
            json!({"resource": plural, "scope": scope, "verbs": verbs,
                "responseKind": {"group": "", "version": "", "kind": kind}})
        };
        let all = ["get", "list", "patch"];
        let core = json!({"items": [{"metadata": {"name": ""}, "versions": [{"version": "v1", "resources": [
            resource("ConfigMap", "configmaps", "Namespaced", &all),
            resource("Namespace", "namespaces", "Cluster", &all)]}]}]});
        let groups = json!({"items": [
            {"metadata": {"name": "x.io"}, "versions": [
                {"version": "v2", "resources": [resource("Widget", "widgets", "Namespaced", &all)]},
                {"version": "v1", "resources": [resource("Widget", "widgets", "Namespaced", &all)]}]},
            {"metadata": {"name": "authentication.k8s.io"}, "versions": [{"version": "v1", "resources": [
                resource("TokenReview", "tokenreviews", "Cluster", &["create"])]}]},
            {"metadata": {"name": "away.io"}, "versions": [{"version": "v1", "freshness": "Stale", "resources": []}]}]});
        let document = |value| serde_json::from_value(value).expect("a discovery document");
        Kinds::from_documents(&document(core), &document(groups))
    }

    #[test]
    fn kinds_are_found_by_their_version_and_scope() {
        let kinds = kinds();
        assert!(kinds.find("v1", "ConfigMap").is_some_and(|kind| kind.namespaced));
        assert!(kinds.find("v1", "Namespace").is_some_and(|kind| !kind.namespaced));
        assert!(kinds.find("x.io/v1", "Widget").is_some());
        assert!(kinds.find("x.io/v3", "Widget").is_none());
        let preferred = kinds
            .find_any("x.io/v3", "Widget")
            .map(|kind| kind.resource.version.clone());
        assert_eq!(preferred.as_deref(), Some("v2"));
        assert!(kinds.find("authentication.k8s.io/v1", "TokenReview").is_none());
    }

    #[test]
    fn a_group_that_does_not_answer_is_not_taken_for_absent() {
        let kinds = kinds();
        assert!(kinds.absence("away.io/v1", "Cloud").contains("does not answer"));
        assert!(kinds.absence("other.io/v1", "Cloud").contains("does not serve"));
    }
}
