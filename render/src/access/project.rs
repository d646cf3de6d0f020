//! What clusters are told of `access/`: roles and bindings under names of our own, so that a cluster's RBAC decides
//! beside hub and agent, and no role of the cluster is touched.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::{Value, json};

use super::model::{Access, Binding, PREFIX, RBAC_API_VERSION, RBAC_GROUP, Role, RoleRef, Rule, ScopedName, Subject};
use super::request::{INTERACTIVE, KUBELET};
use crate::digest::Digest;
use crate::selector::LabelSelector;

/// The bindings that are for the same clusters, with the roles that they give.
#[derive(Clone, Debug, PartialEq)]
pub struct Projection {
    /// `all`, or eight hexadecimal characters that stand for the selector.
    pub name: String,
    /// Which clusters; an empty one is all.
    pub clusters: LabelSelector,
    /// Roles, then bindings, each by namespace and name. Never empty.
    pub objects: Vec<Projected>,
}

/// An object of Kubernetes, and the declaration that it comes from.
#[derive(Clone, Debug, PartialEq)]
pub struct Projected {
    /// The whole object.
    pub value: Value,
    /// File and line of the declaration.
    pub file: Arc<str>,
    /// See `file`.
    pub line: u32,
}

/// What is told to clusters, by name: one projection for each distinct selector of a binding.
///
/// Two projections that both give a role carry it under two names, so that what one cluster is told twice is never one
/// object of two units, and that other clusters for a binding are objects made anew and none that change hands.
pub fn project(access: &Access) -> Vec<Projection> {
    let mut groups: BTreeMap<String, Vec<&Binding>> = BTreeMap::new();
    for binding in access.bindings.values() {
        groups.entry(group_name(binding)).or_default().push(binding);
    }
    groups
        .into_iter()
        .map(|(name, bindings)| projection(name, &bindings, access))
        .collect()
}

const ALL: &str = "all";

fn group_name(binding: &Binding) -> String {
    match &binding.clusters {
        None => ALL.to_owned(),
        Some(selector) => {
            let value = json!([selector.match_labels, selector.match_expressions]);
            Digest::of_value(&value).short(8).to_string()
        }
    }
}

fn projection(name: String, bindings: &[&Binding], access: &Access) -> Projection {
    let given = |binding: &&Binding| match &binding.role {
        RoleRef::Own(key) => access.roles.get(key),
        RoleRef::BuiltIn(_) => None,
    };
    let roles: BTreeSet<&ScopedName> = bindings.iter().filter_map(given).map(|role| &role.key).collect();
    let roles = roles.into_iter().filter_map(|key| access.roles.get(key));
    let objects = roles
        .map(|role| {
            projected(
                &name,
                &role.key,
                role_kind(&role.key),
                role_body(role),
                (&role.file, role.line),
            )
        })
        .chain(bindings.iter().map(|binding| {
            let kind = if binding.key.namespace.is_empty() {
                "ClusterRoleBinding"
            } else {
                "RoleBinding"
            };
            projected(
                &name,
                &binding.key,
                kind,
                binding_body(&name, binding),
                (&binding.file, binding.line),
            )
        }))
        .collect();
    let clusters = bindings.first().and_then(|binding| binding.clusters.clone());
    Projection {
        objects,
        clusters: clusters.unwrap_or_default(),
        name,
    }
}

fn role_kind(key: &ScopedName) -> &'static str {
    if key.namespace.is_empty() {
        "ClusterRole"
    } else {
        "Role"
    }
}

/// `flotilla:reader`, and `flotilla:reader:0123abcd` where it is for some clusters.
fn name_in_clusters(projection: &str, name: &str) -> String {
    match projection {
        ALL => format!("{PREFIX}{name}"),
        _ => format!("{PREFIX}{name}:{projection}"),
    }
}

fn projected(
    projection: &str,
    key: &ScopedName,
    kind: &str,
    mut value: Value,
    (file, line): (&Arc<str>, u32),
) -> Projected {
    value["apiVersion"] = RBAC_API_VERSION.into();
    value["kind"] = kind.into();
    value["metadata"] = json!({"name": name_in_clusters(projection, &key.name)});
    if !key.namespace.is_empty() {
        value["metadata"]["namespace"] = key.namespace.as_str().into();
    }
    Projected {
        value,
        file: file.clone(),
        line,
    }
}

fn role_body(role: &Role) -> Value {
    let rules: Vec<Value> = role
        .rules
        .iter()
        .flat_map(usable)
        .map(|rule| rule_body(&rule))
        .collect();
    json!({"rules": rules})
}

fn binding_body(projection: &str, binding: &Binding) -> Value {
    let subject = |subject: &Subject| {
        let (kind, name) = match subject {
            Subject::User(name) => ("User", name),
            Subject::Group(name) => ("Group", name),
        };
        json!({"apiGroup": RBAC_GROUP, "kind": kind, "name": format!("{PREFIX}{name}")})
    };
    let (kind, name) = match &binding.role {
        RoleRef::Own(key) => (role_kind(key), name_in_clusters(projection, &key.name)),
        RoleRef::BuiltIn(role) => ("ClusterRole", role.name().to_owned()),
    };
    json!({
        "subjects": binding.subjects.iter().map(subject).collect::<Vec<_>>(),
        "roleRef": {"apiGroup": RBAC_GROUP, "kind": kind, "name": name},
    })
}

const READING: [&str; 3] = ["get", "list", "watch"];

/// What of a rule can ever be used: its reading, and its reaching into containers and ports. Nothing else is told to a
/// cluster, so that its RBAC refuses a write that hub and agent let through.
fn usable(rule: &Rule) -> Vec<Rule> {
    let kept = |resource: &&String| *resource != KUBELET;
    let rule = &Rule {
        resources: rule.resources.iter().filter(kept).cloned().collect(),
        ..rule.clone()
    };
    if rule.resources.is_empty() && rule.non_resource_urls.is_empty() {
        return Vec::new();
    }
    let all = rule.verbs.iter().any(|verb| verb == "*");
    let of = |verb: &&&str| all || rule.verbs.iter().any(|own| own == *verb);
    let reading = Rule {
        verbs: READING.iter().filter(of).map(|verb| (*verb).to_owned()).collect(),
        ..rule.clone()
    };
    let reaching = Rule {
        resources: rule.resources.iter().flat_map(|resource| reached(resource)).collect(),
        ..rule.clone()
    };
    let reads_alone = rule.verbs.iter().all(|verb| READING.contains(&verb.as_str()));
    let mut rules = Vec::new();
    if !reading.verbs.is_empty() {
        rules.push(reading);
    }
    if !reads_alone && !reaching.resources.is_empty() {
        rules.push(reaching);
    }
    rules
}

/// What of a resource is reached into.
fn reached(resource: &str) -> Vec<String> {
    match resource.split_once('/') {
        None if resource == "*" => INTERACTIVE.iter().map(|sub| format!("*/{sub}")).collect(),
        Some((_, sub)) if INTERACTIVE.contains(&sub) => vec![resource.to_owned()],
        _ => Vec::new(),
    }
}

fn rule_body(rule: &Rule) -> Value {
    let lists = [
        ("apiGroups", &rule.api_groups),
        ("nonResourceURLs", &rule.non_resource_urls),
        ("resourceNames", &rule.resource_names),
        ("resources", &rule.resources),
        ("verbs", &rule.verbs),
    ];
    let written = lists.into_iter().filter(|(_, list)| !list.is_empty());
    written
        .map(|(name, list)| (name.to_owned(), json!(list)))
        .collect::<serde_json::Map<_, _>>()
        .into()
}
