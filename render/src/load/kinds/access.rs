//! Roles and bindings below `access/`: Kubernetes' own kinds, read as Kubernetes reads them. What it would take without
//! effect is said here.

use std::sync::Arc;

use super::super::declaration::{Declaration, DeclarationKey};
use super::super::fields::Fields;
use super::super::object::is_path_segment;
use super::labels;
use super::metadata::Metadata;
use super::{OwnKind, Place, Reading};
use crate::access::{
    ANNOTATION_CLUSTERS, Binding, PREFIX, RBAC_API_VERSION, RBAC_GROUP, Role, RoleRef, Rule, ScopedName, Subject,
    is_reserved,
};
use crate::name::is_namespace;
use crate::nearest::nearest;
use crate::selector::LabelSelector;

/// The kinds of `access/`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::load) enum AccessKind {
    ClusterRole,
    Role,
    ClusterRoleBinding,
    RoleBinding,
}

const KINDS: [AccessKind; 4] = [
    AccessKind::ClusterRole,
    AccessKind::Role,
    AccessKind::ClusterRoleBinding,
    AccessKind::RoleBinding,
];

impl AccessKind {
    pub(in crate::load) fn name(self) -> &'static str {
        match self {
            Self::ClusterRole => "ClusterRole",
            Self::Role => "Role",
            Self::ClusterRoleBinding => "ClusterRoleBinding",
            Self::RoleBinding => "RoleBinding",
        }
    }

    /// What a document below `access/` is.
    pub(in crate::load) fn of(api_version: &str, kind: &str) -> Option<Self> {
        let is_it = |own: &Self| api_version == RBAC_API_VERSION && own.name() == kind;
        KINDS.into_iter().find(is_it)
    }

    /// What may have been meant by one that is none.
    pub(in crate::load) fn meant(kind: &str) -> String {
        match nearest(kind, KINDS.map(Self::name)) {
            Some(near) => format!("did you mean {near} of {RBAC_API_VERSION}?"),
            None => format!(
                "here stand {} of {RBAC_API_VERSION}; what is delivered belongs below feeds/",
                KINDS.map(Self::name).join(", ")
            ),
        }
    }

    fn has_namespace(self) -> bool {
        matches!(self, Self::Role | Self::RoleBinding)
    }
}

pub(super) fn read(kind: AccessKind, top: &mut Fields<'_>, metadata: &Metadata, place: &Place<'_>) -> Reading {
    let namespace = metadata.namespace.as_deref().unwrap_or_default();
    match (kind.has_namespace(), namespace) {
        (true, "") => top.error(
            "metadata.namespace",
            "FieldMissing",
            format!("a {} stands in a namespace", kind.name()),
            format!("name one, or use Cluster{}", kind.name()),
        ),
        (false, namespace) if !namespace.is_empty() => top.error(
            "metadata.namespace",
            "FieldInvalid",
            format!("a {} stands in no namespace", kind.name()),
            "remove it",
        ),
        (true, namespace) if !is_namespace(namespace) => top.error(
            "metadata.namespace",
            "FieldInvalid",
            format!("{namespace:?} can be no namespace"),
            "it has lower-case letters, digits and '-', at most 63, and neither begins nor ends with '-'",
        ),
        _ => {}
    }
    if !metadata.name.is_empty() && !is_path_segment(&metadata.name) {
        top.error(
            "metadata.name",
            "FieldInvalid",
            format!("no API server could take {} {:?} in a path", kind.name(), metadata.name),
            "use letters, digits and signs such as - . _ and :",
        );
    }
    let key = ScopedName::new(namespace, &metadata.name);
    let declaration = match kind {
        AccessKind::ClusterRole | AccessKind::Role => {
            Declaration::Role(Arc::new(role(key.clone(), top, metadata, place)))
        }
        AccessKind::ClusterRoleBinding | AccessKind::RoleBinding => {
            Declaration::Binding(Arc::new(binding(key.clone(), top, metadata, place)))
        }
    };
    let key = DeclarationKey::new(OwnKind::Access(kind), &key.namespace, &key.name);
    Reading {
        key: (!metadata.name.is_empty()).then_some(key),
        declaration: Some(declaration),
    }
}

fn role(key: ScopedName, top: &mut Fields<'_>, metadata: &Metadata, place: &Place<'_>) -> Role {
    if top.written("aggregationRule").is_some_and(|value| !value.is_null()) {
        top.error(
            "aggregationRule",
            "NotSupported",
            "roles of access/ are not put together from others",
            "list the rules here, or give a binding for each role",
        );
    }
    if metadata.annotations.contains_key(ANNOTATION_CLUSTERS) {
        let field = format!("metadata.annotations.{ANNOTATION_CLUSTERS}");
        top.warning(
            &field,
            "NoEffect",
            "has no effect on a role: a binding says where it counts",
        );
    }
    let aggregated = |label: &&String| label.starts_with("rbac.authorization.k8s.io/");
    if let Some(label) = metadata.labels.keys().find(aggregated) {
        let message = "has no effect: a role of access/ adds nothing to roles of a cluster";
        top.warning(&format!("metadata.labels.{label}"), "NoEffect", message);
    }
    let in_namespace = !key.namespace.is_empty();
    let rules = top.objects("rules").unwrap_or_default();
    if rules.is_empty() {
        top.warning("rules", "NoEffect", "without rules a role allows nothing");
    }
    let rules = rules.into_iter().map(|fields| rule(fields, in_namespace)).collect();
    Role {
        key,
        rules,
        file: place.file.clone(),
        line: place.line,
    }
}

/// One rule, held to what an API server would take.
fn rule(mut fields: Fields<'_>, in_namespace: bool) -> Rule {
    let verbs = fields.texts("verbs");
    let rule = Rule {
        api_groups: fields.texts("apiGroups").unwrap_or_default(),
        resources: fields.texts("resources").unwrap_or_default(),
        resource_names: fields.texts("resourceNames").unwrap_or_default(),
        non_resource_urls: fields.texts("nonResourceURLs").unwrap_or_default(),
        verbs: verbs.unwrap_or_default(),
    };
    let require = |name: &str, list: &[String]| {
        if list.is_empty() {
            fields.error(name, "FieldMissing", format!("a rule needs {name}"), "");
        }
    };
    require("verbs", &rule.verbs);
    if rule.non_resource_urls.is_empty() {
        require("apiGroups", &rule.api_groups);
        require("resources", &rule.resources);
    } else if in_namespace {
        let message = "paths that are no resources are in no namespace";
        fields.error(
            "nonResourceURLs",
            "FieldInvalid",
            message,
            "put them into a ClusterRole",
        );
    } else if !rule.api_groups.is_empty() || !rule.resources.is_empty() || !rule.resource_names.is_empty() {
        let message = "one rule is about resources or about paths that are none";
        fields.error("nonResourceURLs", "FieldInvalid", message, "make two rules of it");
    }
    check_verbs(&fields, &rule);
    check_resources(&fields, &rule);
    fields.finish();
    rule
}

const READING: [&str; 3] = ["get", "list", "watch"];

const WRITING: [&str; 10] = [
    "create",
    "update",
    "patch",
    "delete",
    "deletecollection",
    "bind",
    "escalate",
    "impersonate",
    "approve",
    "sign",
];

/// Verbs that no request through the hub ever has are no mistake of RBAC's, and give nobody anything.
fn check_verbs(fields: &Fields<'_>, rule: &Rule) {
    let reaches = |resource: &String| {
        let sub = resource.split_once('/').map_or(resource.as_str(), |(_, sub)| sub);
        matches!(sub, "*" | "exec" | "attach" | "portforward" | "proxy")
    };
    let interactive = rule.resources.iter().any(reaches);
    for (index, verb) in rule.verbs.iter().enumerate() {
        let verb = verb.as_str();
        let is_used = verb == "*" || READING.contains(&verb) || (verb == "create" && interactive);
        if is_used {
            continue;
        }
        let near = nearest(verb, READING).filter(|_| !WRITING.contains(&verb));
        let hint = near.map_or_else(
            || "remove it; changes are commits".to_owned(),
            |near| format!("did you mean {near}?"),
        );
        let message = format!("{verb:?} is never allowed: through the hub people read");
        fields.doubt(&format!("verbs[{index}]"), "NoEffect", message, hint);
    }
}

fn check_resources(fields: &Fields<'_>, rule: &Rule) {
    for (index, resource) in rule.resources.iter().enumerate() {
        let field = format!("resources[{index}]");
        if resource.chars().any(char::is_uppercase) {
            let message = format!("{resource:?} matches nothing: resources are plural and in lower case");
            fields.doubt(&field, "NoEffect", message, "such as deployments");
        } else if resource.ends_with("/*") {
            let message = format!("{resource:?} matches nothing: RBAC knows no star behind a slash");
            fields.doubt(&field, "NoEffect", message, "name each subresource, such as pods/log");
        } else if resource == "nodes/proxy" {
            let message =
                format!("{resource:?} is never given: it leads to every pod of a node, and to commands in them");
            fields.doubt(
                &field,
                "NoEffect",
                message,
                "remove it; only the role cluster-admin reaches it",
            );
        }
    }
    for (index, group) in rule.api_groups.iter().enumerate() {
        if group.contains('/') || group == "v1" {
            let message = format!("{group:?} matches nothing: a group stands without its version");
            fields.doubt(
                &format!("apiGroups[{index}]"),
                "NoEffect",
                message,
                "such as apps, or \"\" for v1",
            );
        }
    }
}

fn binding(key: ScopedName, top: &mut Fields<'_>, metadata: &Metadata, place: &Place<'_>) -> Binding {
    let clusters = metadata
        .annotations
        .get(ANNOTATION_CLUSTERS)
        .and_then(|text| clusters(top, text));
    let written = top.objects("subjects").unwrap_or_default();
    if written.is_empty() {
        top.warning(
            "subjects",
            "NoEffect",
            "without subjects a binding gives nobody anything",
        );
    }
    let subjects = written.into_iter().filter_map(subject).collect();
    let role = match top.object("roleRef") {
        Some(fields) => role_ref(fields, &key.namespace),
        None => {
            top.require("roleRef");
            None
        }
    };
    Binding {
        subjects,
        // Without one there is an error, and the binding is not taken.
        role: role.unwrap_or_else(|| RoleRef::Own(ScopedName::new("", ""))),
        clusters,
        file: place.file.clone(),
        line: place.line,
        key,
    }
}

/// The clusters of a binding. A text that is no selector is an error, and never all clusters.
fn clusters(top: &Fields<'_>, text: &str) -> Option<LabelSelector> {
    let field = format!("metadata.annotations.{ANNOTATION_CLUSTERS}");
    let wrong = |problem: String| {
        let hint = "write it as kubectl has it, such as env=staging,region in (eu,us); without the annotation the binding \
                    is for all clusters";
        top.error(&field, "FieldInvalid", problem, hint);
    };
    let selector = LabelSelector::parse(text).map_err(&wrong).ok()?;
    let labels = selector.match_labels.iter();
    let pairs = labels.map(|(key, value)| (key.as_str(), std::slice::from_ref(value)));
    let expressions = selector.match_expressions.iter();
    let all = pairs.chain(expressions.map(|one| (one.key.as_str(), one.values.as_slice())));
    for (key, values) in all {
        let mut problems = labels::wrong_key(key)
            .into_iter()
            .chain(values.iter().filter_map(|value| labels::wrong_value(value)));
        if let Some(problem) = problems.next() {
            wrong(problem);
            return None;
        }
    }
    Some(selector)
}

fn subject(mut fields: Fields<'_>) -> Option<Subject> {
    let kind = fields.required_text("kind");
    let name = fields.required_text("name").map(str::to_owned);
    let group = fields.text("apiGroup");
    let namespace = fields.text("namespace").filter(|namespace| !namespace.is_empty());
    if kind == Some("ServiceAccount") {
        let message = "people ask through the hub, and a ServiceAccount is a cluster's own";
        fields.error("kind", "NotSupported", message, "name a User or a Group");
        return None;
    }
    if namespace.is_some() {
        fields.error(
            "namespace",
            "FieldInvalid",
            "users and groups are in no namespace",
            "remove it",
        );
    }
    if let Some(group) = group.filter(|group| !group.is_empty() && *group != RBAC_GROUP) {
        let message = format!("must be {RBAC_GROUP}, not {group:?}");
        fields.error("apiGroup", "FieldInvalid", message, "");
    }
    if let Some(name) = name.as_deref().filter(|name| is_reserved(name)) {
        let message = format!("{name:?} can be nobody's: names that begin with system: or {PREFIX} are refused");
        let hint = "name people and groups as the hub knows them, without prefix";
        fields.error("name", "FieldInvalid", message, hint);
    }
    if let Some(name) = name.as_deref().filter(|name| !can_log_in(name)) {
        let message =
            format!("nobody logs in as {name:?}: names are ASCII, without control characters and blanks at their ends");
        fields.doubt(
            "name",
            "NoEffect",
            message,
            "name people and groups as the hub knows them",
        );
    }
    let subject = match kind? {
        "User" => Subject::User(name?),
        "Group" => Subject::Group(name?),
        other => {
            let near = nearest(other, ["User", "Group"]);
            let hint = near.map_or_else(String::new, |near| format!("did you mean {near}?"));
            fields.error(
                "kind",
                "FieldInvalid",
                format!("must be User or Group, not {other:?}"),
                hint,
            );
            return None;
        }
    };
    fields.finish();
    Some(subject)
}

/// Whether a name can stand in a header, as each that the hub lets in does.
fn can_log_in(name: &str) -> bool {
    name.is_ascii() && !name.chars().any(char::is_control) && name.trim() == name
}

/// The role as it is named. Whether there is one is asked when all are read.
fn role_ref(mut fields: Fields<'_>, namespace: &str) -> Option<RoleRef> {
    if let Some(group) = fields
        .text("apiGroup")
        .filter(|group| !group.is_empty() && *group != RBAC_GROUP)
    {
        let message = format!("must be {RBAC_GROUP}, not {group:?}");
        fields.error("apiGroup", "FieldInvalid", message, "");
    }
    let kind = fields.choice("kind", &[("ClusterRole", true), ("Role", false)]);
    if kind.is_none() {
        fields.require("kind");
    }
    let name = fields.required_text("name");
    if kind == Some(false) && namespace.is_empty() {
        let message = "a ClusterRoleBinding gives a ClusterRole";
        fields.error(
            "kind",
            "FieldInvalid",
            message,
            "use a RoleBinding in the namespace of the Role",
        );
        return None;
    }
    let role = match kind? {
        true => RoleRef::Own(ScopedName::new("", name?)),
        false => RoleRef::Own(ScopedName::new(namespace, name?)),
    };
    fields.finish();
    Some(role)
}
