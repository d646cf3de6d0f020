//! From roles and bindings of `access/` to who may ask for what: each binding with the role that it names.

use std::sync::Arc;

use super::gather::Declared;
use super::lines::Lines;
use crate::access::{ANNOTATION_CLUSTERS, Access, Binding, BuiltIn, RoleRef};
use crate::finding::Finding;
use crate::nearest::nearest;

/// Takes the roles and bindings. A binding without its role gives nothing.
pub(super) fn resolve(declared: &mut Declared, lines: &mut Lines<'_>, findings: &mut Vec<Finding>) -> Access {
    let mut access = Access {
        roles: std::mem::take(&mut declared.roles),
        ..Access::default()
    };
    for (key, binding) in std::mem::take(&mut declared.bindings) {
        let Some(role) = meant(&binding.role, &access) else {
            findings.push(role_missing(&binding, &access, lines));
            continue;
        };
        findings.extend(selects_nothing(&binding, declared, lines));
        let binding = Binding {
            role,
            ..Binding::clone(&binding)
        };
        access.bindings.insert(key, Arc::new(binding));
    }
    for (key, role) in &access.roles {
        let mut bindings = access.bindings.values();
        if !bindings.any(|binding| matches!(&binding.role, RoleRef::Own(own) if own == key)) {
            let message = format!("no binding gives the role {:?}, so it allows nobody anything", key.name);
            findings.push(Finding::info("NoEffect", message).at(&*role.file, role.line));
        }
    }
    access
}

/// One of `access/` counts before a built-in one.
pub(super) fn meant(role: &RoleRef, access: &Access) -> Option<RoleRef> {
    match role {
        RoleRef::Own(key) if access.roles.contains_key(key) => Some(role.clone()),
        RoleRef::Own(key) if key.namespace.is_empty() => BuiltIn::named(&key.name).map(RoleRef::BuiltIn),
        RoleRef::Own(_) => None,
        RoleRef::BuiltIn(_) => Some(role.clone()),
    }
}

fn role_missing(binding: &Binding, access: &Access, lines: &mut Lines<'_>) -> Finding {
    let (name, namespace) = match &binding.role {
        RoleRef::Own(key) => (key.name.as_str(), key.namespace.as_str()),
        RoleRef::BuiltIn(role) => (role.name(), ""),
    };
    let kind = if namespace.is_empty() { "ClusterRole" } else { "Role" };
    let message = format!("no file below access/ declares {kind} {name:?}, so the binding gives nothing");
    let declared = access.roles.keys().filter(|key| key.namespace == namespace);
    let built_in = BuiltIn::ALL.iter().filter(|_| namespace.is_empty());
    let mut known: Vec<&str> = declared.map(|key| key.name.as_str()).collect();
    known.extend(built_in.map(|role| role.name()));
    let hint = match nearest(name, known) {
        Some(near) => format!("did you mean {near}?"),
        None => "declare it there; roles of a cluster's own but view, edit, admin and cluster-admin are not known here"
            .to_owned(),
    };
    Finding::error("RoleNotFound", message)
        .at(&*binding.file, lines.find(&binding.file, binding.line, "roleRef.name"))
        .field("roleRef.name")
        .hint(hint)
}

/// A fleet that is begun has no cluster yet.
fn selects_nothing(binding: &Binding, declared: &Declared, lines: &mut Lines<'_>) -> Option<Finding> {
    let mut clusters = declared.clusters.values();
    if binding.clusters.is_none() || clusters.len() == 0 || clusters.any(|cluster| binding.is_for(&cluster.labels)) {
        return None;
    }
    let field = format!("metadata.annotations.{ANNOTATION_CLUSTERS}");
    let line = lines.find(&binding.file, binding.line, &field);
    let finding = Finding::warning(
        "SelectsNothing",
        "no cluster has labels that match, so the binding gives nothing",
    )
    .at(&*binding.file, line)
    .field(field)
    .hint("compare it with metadata.labels of the files in clusters/");
    Some(finding)
}
