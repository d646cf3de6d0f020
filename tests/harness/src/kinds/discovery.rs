//! The discovery documents, of the aggregated and of the older form.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Value, json};

use super::Kind;

type Groups<'a> = Vec<(&'a str, Vec<(&'a str, Vec<&'a Arc<Kind>>)>)>;

/// Kinds by group and version, in the order in which they are given.
fn grouped(kinds: &[Arc<Kind>]) -> Groups<'_> {
    let mut groups: Groups<'_> = Vec::new();
    for kind in kinds {
        let at = groups.iter().position(|(name, _)| *name == &*kind.group);
        let at = at.unwrap_or_else(|| {
            groups.push((&kind.group, Vec::new()));
            groups.len() - 1
        });
        let versions = &mut groups[at].1;
        match versions.iter_mut().find(|(name, _)| *name == &*kind.version) {
            Some((_, kinds)) => kinds.push(kind),
            None => versions.push((&kind.version, vec![kind])),
        }
    }
    groups
}

/// The aggregated document. `core` chooses the one of `/api`; `away` is a group that does not answer.
pub(crate) fn aggregated(kinds: &[Arc<Kind>], core: bool, away: &dyn Fn(&str) -> bool) -> Value {
    let groups = grouped(kinds).into_iter().filter(|(name, _)| name.is_empty() == core);
    let items = groups.map(|(name, versions)| {
        let versions = versions.into_iter().map(|(version, kinds)| {
            if away(name) {
                return json!({"version": version, "freshness": "Stale", "resources": []});
            }
            let resources: Vec<_> = kinds.into_iter().map(|kind| aggregated_resource(kind)).collect();
            json!({"version": version, "freshness": "Current", "resources": resources})
        });
        let versions: Vec<_> = versions.collect();
        let metadata = if core {
            json!({"creationTimestamp": null})
        } else {
            json!({"name": name, "creationTimestamp": null})
        };
        json!({"metadata": metadata, "versions": versions})
    });
    let items: Vec<_> = items.collect();
    json!({"kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "metadata": {}, "items": items})
}

fn aggregated_resource(kind: &Kind) -> Value {
    let response = json!({"group": kind.group, "version": kind.version, "kind": kind.kind});
    let mut resource = json!({"resource": kind.plural, "responseKind": response, "singularResource": kind.singular,
        "scope": if kind.namespaced { "Namespaced" } else { "Cluster" }, "verbs": kind.verbs});
    if !kind.short_names.is_empty() {
        resource["shortNames"] = json!(kind.short_names);
    }
    if !kind.categories.is_empty() {
        resource["categories"] = json!(kind.categories);
    }
    let subresources = kind.subresources.iter().filter_map(|name| {
        let (group, version, response) = served_subresource(kind, name)?;
        Some(json!({"subresource": name, "verbs": ["get", "patch", "update"],
            "responseKind": {"group": group, "version": version, "kind": response}}))
    });
    let subresources: Vec<_> = subresources.collect();
    if !subresources.is_empty() {
        resource["subresources"] = subresources.into();
    }
    resource
}

/// Group, version and kind of a subresource that this server does.
fn served_subresource<'a>(kind: &'a Kind, name: &str) -> Option<(&'a str, &'a str, &'a str)> {
    match name {
        "status" => Some((&kind.group, &kind.version, &kind.kind)),
        "scale" => Some(("autoscaling", "v1", "Scale")),
        _ => None,
    }
}

/// `/api`.
pub(crate) fn legacy_core() -> Value {
    json!({"kind": "APIVersions", "versions": ["v1"],
        "serverAddressByClientCIDRs": [{"clientCIDR": "0.0.0.0/0", "serverAddress": "127.0.0.1"}]})
}

/// `/apis`.
pub(crate) fn group_list(kinds: &[Arc<Kind>]) -> Value {
    let groups: Vec<_> = grouped(kinds)
        .iter()
        .filter(|(name, _)| !name.is_empty())
        .map(|(name, versions)| group(name, versions))
        .collect();
    json!({"kind": "APIGroupList", "apiVersion": "v1", "groups": groups})
}

/// `/apis/<group>`.
pub(crate) fn group_of(kinds: &[Arc<Kind>], name: &str) -> Option<Value> {
    let groups = grouped(kinds);
    let (name, versions) = groups.iter().find(|(group, _)| !group.is_empty() && *group == name)?;
    let mut found = group(name, versions);
    found["kind"] = "APIGroup".into();
    found["apiVersion"] = "v1".into();
    Some(found)
}

fn group(name: &str, versions: &[(&str, Vec<&Arc<Kind>>)]) -> Value {
    let versions: Vec<_> = versions
        .iter()
        .map(|(version, _)| json!({"groupVersion": format!("{name}/{version}"), "version": version}))
        .collect();
    json!({"name": name, "preferredVersion": versions.first(), "versions": versions})
}

/// `/api/v1` and `/apis/<group>/<version>`.
pub(crate) fn resource_list(kinds: &[Arc<Kind>], group: &str, version: &str) -> Option<Value> {
    let found = kinds
        .iter()
        .filter(|kind| &*kind.group == group && &*kind.version == version);
    let mut resources: BTreeMap<(String, usize), Value> = BTreeMap::new();
    let mut group_version = None;
    for kind in found {
        group_version = Some(kind.api_version());
        let mut resource = json!({"name": kind.plural, "singularName": kind.singular, "namespaced": kind.namespaced,
            "kind": kind.kind, "verbs": kind.verbs});
        if !kind.short_names.is_empty() {
            resource["shortNames"] = json!(kind.short_names);
        }
        if !kind.categories.is_empty() {
            resource["categories"] = json!(kind.categories);
        }
        resources.insert((kind.plural.to_string(), 0), resource);
        for (at, name) in kind.subresources.iter().enumerate() {
            let Some((group, version, response)) = served_subresource(kind, name) else {
                continue;
            };
            let name = format!("{}/{name}", kind.plural);
            let resource = json!({"name": name, "singularName": "", "namespaced": kind.namespaced, "group": group,
                "version": version, "kind": response, "verbs": ["get", "patch", "update"]});
            resources.insert((kind.plural.to_string(), at + 1), resource);
        }
    }
    let resources: Vec<_> = resources.into_values().collect();
    Some(json!({"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": group_version?, "resources": resources}))
}
