//! What a request to a Kubernetes API server asks for, told by its method and path alone.
//!
//! Follows the API server's own reading (`k8s.io/apiserver/pkg/endpoints/request`, RequestInfo), but refuses what could
//! be read in two ways: whoever filters a path must read it as the one who answers.

use std::fmt;

use super::query;

/// What Kubernetes' authorisation calls a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attributes {
    /// Lower case, as RBAC rules have it: `get`, `list`, `watch`, `create`, `update`, `patch`, `delete`,
    /// `deletecollection`; of a path that is no resource, the method.
    pub verb: &'static str,
    /// What it is about.
    pub target: Target,
}

/// What a request is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// A resource of the API.
    Resource {
        /// Empty for the core group.
        group: String,
        /// The version, such as `v1`.
        version: String,
        /// Empty for what has none, and across namespaces.
        namespace: String,
        /// Plural, such as `pods`.
        resource: String,
        /// Empty for the object itself.
        subresource: String,
        /// Empty for all of a kind.
        name: String,
    },
    /// Anything else, such as `/version` or `/apis`: the path as it came.
    Path(String),
}

/// What kind of request it is. Rights are asked for beside this, and never instead of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Class {
    /// It changes nothing and its answer ends, or is a watch or a log.
    Read,
    /// It reaches into a container or a port of one: exec, attach, port-forward and the API server's proxies. It reads
    /// as GET does, and can do anything.
    Interactive,
    /// Everything else.
    Write,
}

/// A path or a query that could be read in two ways.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unclear(
    /// What is wrong with it.
    pub &'static str,
);

impl fmt::Display for Unclear {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the request is unclear: {}", self.0)
    }
}

/// Longest path that is looked at: names, namespaces and groups have 253 characters each.
const PATH_BYTES_MAX: usize = 2_048;

/// Subresources behind which whatever a pod or node listens to is reached.
pub(super) const INTERACTIVE: [&str; 4] = ["exec", "attach", "portforward", "proxy"];

/// See [`Target::is_kubelet`].
pub(super) const KUBELET: &str = "nodes/proxy";

/// Group and resource of the question whether the caller may do something.
pub const ACCESS_REVIEWS: (&str, &str) = ("authorization.k8s.io", "selfsubjectaccessreviews");

/// Of the question what they may do at all.
pub const RULES_REVIEWS: (&str, &str) = ("authorization.k8s.io", "selfsubjectrulesreviews");

/// Of the question who they are.
pub const OWN_REVIEWS: (&str, &str) = ("authentication.k8s.io", "selfsubjectreviews");

/// Questions about the caller's own rights and self: they are asked by POST and kept nowhere.
pub const SELF_REVIEWS: [(&str, &str); 3] = [ACCESS_REVIEWS, RULES_REVIEWS, OWN_REVIEWS];

/// What a request asks for. `path` is what stands before the `?` and `query` what stands behind it.
pub fn attributes(method: &str, path: &str, query: Option<&str>) -> Result<Attributes, Unclear> {
    check(path)?;
    let parts: Vec<&str> = path[1..].split('/').filter(|part| !part.is_empty()).collect();
    let resource = match parts.as_slice() {
        ["api", version, rest @ ..] if !rest.is_empty() => Some(resource("", version, rest)?),
        ["apis", group, version, rest @ ..] if !rest.is_empty() => Some(resource(group, version, rest)?),
        _ => None,
    };
    query::check_keys(query)?;
    let Some(mut target) = resource else {
        return Ok(Attributes {
            verb: method_verb(method),
            target: Target::Path(path.to_owned()),
        });
    };
    let is_list = matches!(&target, Target::Resource { name, .. } if name.is_empty());
    let verb = match method {
        // Of one object by its path no API server gives a watch.
        "GET" | "HEAD" if is_list && query::watches(query)? => "watch",
        "GET" | "HEAD" if is_list => "list",
        "DELETE" if is_list => "deletecollection",
        _ => method_verb(method),
    };
    if let Target::Resource { name, .. } = &mut target
        && matches!(verb, "list" | "watch")
        && let Some(selected) = query::selected_name(query)?
    {
        *name = selected;
    }
    Ok(Attributes { verb, target })
}

impl Class {
    /// Its name, as the audit logs and metrics have it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Interactive => "interactive",
            Self::Write => "write",
        }
    }
}

impl Target {
    /// What it is called everywhere: `deployments.apps/scale` without name and namespace, or the path.
    #[must_use]
    pub fn resource_name(&self) -> String {
        match self {
            Self::Path(path) => path.clone(),
            Self::Resource {
                group,
                resource,
                subresource,
                ..
            } => {
                let dot = if group.is_empty() { "" } else { "." };
                let slash = if subresource.is_empty() { "" } else { "/" };
                format!("{resource}{dot}{group}{slash}{subresource}")
            }
        }
    }

    /// Whether it is what a node's kubelet answers, behind the API server's proxy: all pods of the node, and commands in
    /// them, by paths that no rule tells apart.
    pub(super) fn is_kubelet(&self) -> bool {
        matches!(self, Self::Resource { group, .. } if group.is_empty()) && self.resource_name() == KUBELET
    }
}

impl Attributes {
    /// Which class the request is of.
    #[must_use]
    pub fn class(&self) -> Class {
        match &self.target {
            Target::Resource { subresource, .. } if INTERACTIVE.contains(&subresource.as_str()) => Class::Interactive,
            Target::Resource {
                group,
                resource,
                subresource,
                ..
            } if self.verb == "create"
                && subresource.is_empty()
                && SELF_REVIEWS.contains(&(group.as_str(), resource.as_str())) =>
            {
                Class::Read
            }
            _ if matches!(self.verb, "get" | "list" | "watch") => Class::Read,
            Target::Resource { .. } | Target::Path(_) => Class::Write,
        }
    }
}

/// What no two programs read alike is refused: `%2e%2e`, `a//b`, `..` and their kind. Kubernetes' own clients send none of
/// it; names of objects that are escaped in a path (`%3A` for a colon) are.
fn check(path: &str) -> Result<(), Unclear> {
    if path.len() > PATH_BYTES_MAX {
        return Err(Unclear("it is too long"));
    }
    if !path.starts_with('/') {
        return Err(Unclear("it does not begin with a slash"));
    }
    if path.contains("//") {
        return Err(Unclear("it has an empty part"));
    }
    if !path.bytes().all(|byte| byte.is_ascii_graphic()) || path.contains(['\\', '?', '#']) {
        return Err(Unclear("it has characters that no path has"));
    }
    let mut rest = path;
    while let Some(at) = rest.find('%') {
        let escaped = rest.get(at + 1..at + 3).ok_or(Unclear("an escape has no end"))?;
        let byte = u8::from_str_radix(escaped, 16).map_err(|_| Unclear("an escape is not hexadecimal"))?;
        if !byte.is_ascii_graphic()
            || matches!(byte, b'/' | b'\\' | b'.' | b'%' | b'?' | b'#' | b';')
            || byte.is_ascii_alphanumeric()
        {
            return Err(Unclear("it escapes what needs no escape"));
        }
        rest = &rest[at + 3..];
    }
    if path
        .split('/')
        .any(|part| part.split(';').next().is_some_and(|part| part == "." || part == ".."))
    {
        return Err(Unclear("it has a part of dots"));
    }
    Ok(())
}

/// What follows the version, of which there is some.
fn resource(group: &str, version: &str, rest: &[&str]) -> Result<Target, Unclear> {
    let (namespace, rest) = match rest {
        // The Namespace itself, and what is in it but for its own subresources.
        ["namespaces", namespace, resource, more @ ..]
            if !matches!(*resource, "status" | "finalize") || !more.is_empty() =>
        {
            (*namespace, &rest[2..])
        }
        ["namespaces", namespace, ..] => (*namespace, rest),
        // An API server takes the verb from there, and what is asked for from what follows.
        ["watch" | "proxy", ..] => {
            return Err(Unclear(
                "a verb stands before what it asks for, as nobody writes it any more",
            ));
        }
        _ => ("", rest),
    };
    let (resource, name, subresource) = match rest {
        [resource] => (*resource, "", ""),
        [resource, name] => (*resource, *name, ""),
        // Behind a proxy any path follows.
        [resource, name, subresource, ..] => (*resource, *name, *subresource),
        [] => return Err(Unclear("it names nothing")),
    };
    Ok(Target::Resource {
        group: group.to_owned(),
        version: version.to_owned(),
        namespace: namespace.to_owned(),
        resource: resource.to_owned(),
        subresource: subresource.to_owned(),
        name: name.to_owned(),
    })
}

fn method_verb(method: &str) -> &'static str {
    match method {
        "GET" | "HEAD" => "get",
        "POST" => "create",
        "PUT" => "update",
        "PATCH" => "patch",
        "DELETE" => "delete",
        // No right names it.
        _ => "unknown",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(method: &str, path: &str, expected: &str, class: Class) {
        let (path, query) = path
            .split_once('?')
            .map_or((path, None), |(path, query)| (path, Some(query)));
        let found = attributes(method, path, query).expect("a clear path");
        let text = match &found.target {
            Target::Path(path) => format!("{} {path}", found.verb),
            Target::Resource {
                group,
                version,
                namespace,
                resource,
                subresource,
                name,
            } => {
                format!(
                    "{} {group}/{version} {namespace}/{resource}/{name}/{subresource}",
                    found.verb
                )
            }
        };
        assert_eq!((text.as_str(), found.class()), (expected, class));
    }

    #[test]
    fn requests_of_kubectl_are_named_as_rbac_names_them() {
        check("GET", "/api/v1/pods", "list /v1 /pods//", Class::Read);
        check("GET", "/api/v1/namespaces/a/pods/b", "get /v1 a/pods/b/", Class::Read);
        check(
            "GET",
            "/api/v1/namespaces/a/pods/b/log?follow=true",
            "get /v1 a/pods/b/log",
            Class::Read,
        );
        check(
            "GET",
            "/apis/apps/v1/namespaces/a/deployments?watch=true",
            "watch apps/v1 a/deployments//",
            Class::Read,
        );
        check("GET", "/api/v1/namespaces/a", "get /v1 a/namespaces/a/", Class::Read);
        check(
            "GET",
            "/api/v1/namespaces/a/status",
            "get /v1 a/namespaces/a/status",
            Class::Read,
        );
        check("GET", "/api/v1/namespaces", "list /v1 /namespaces//", Class::Read);
        check("GET", "/apis/apps/v1", "get /apis/apps/v1", Class::Read);
        check("GET", "/version", "get /version", Class::Read);
        check(
            "POST",
            "/apis/apps/v1/namespaces/a/deployments",
            "create apps/v1 a/deployments//",
            Class::Write,
        );
        check(
            "PATCH",
            "/apis/apps/v1/namespaces/a/deployments/b/scale",
            "patch apps/v1 a/deployments/b/scale",
            Class::Write,
        );
        check(
            "DELETE",
            "/api/v1/namespaces/a/pods",
            "deletecollection /v1 a/pods//",
            Class::Write,
        );
        check("OPTIONS", "/api/v1/pods", "unknown /v1 /pods//", Class::Write);
    }

    proptest::proptest! {
        #[test]
        fn whatever_is_asked_has_a_class_and_nothing_but_get_and_head_reads(
            method in "GET|HEAD|POST|PUT|PATCH|DELETE|OPTIONS|get|\\PC{0,6}",
            path in "(/(api|apis|v1|apps|namespaces|pods|exec|watch|a%3Ab|proxy|\\PC{0,5})){0,8}",
            query in proptest::option::of("(watch|fieldSelector|metadata.name|=|&|%3D|%|\\+|1|\\PC){0,8}"),
        ) {
            if let Ok(found) = attributes(&method, &path, query.as_deref()) {
                let reads = matches!(method.as_str(), "GET" | "HEAD");
                proptest::prop_assert!(found.class() != Class::Read || reads, "{method} {path} reads");
            }
        }
    }

    #[test]
    fn a_list_that_is_narrowed_to_one_object_names_it() {
        let pods = "/api/v1/namespaces/a/pods";
        let named = |query: &str, expected: &str| check("GET", &format!("{pods}?{query}"), expected, Class::Read);
        named("fieldSelector=metadata.name%3Dweb&watch=1", "watch /v1 a/pods/web/");
        named("fieldSelector=metadata.name==web", "list /v1 a/pods/web/");
        named("watch=FALSE", "list /v1 a/pods//");
        named("watch", "watch /v1 a/pods//");
        named("command=a&command=b", "list /v1 a/pods//");
        check(
            "GET",
            &format!("{pods}/web?watch=true"),
            "get /v1 a/pods/web/",
            Class::Read,
        );
        check(
            "DELETE",
            &format!("{pods}?fieldSelector=metadata.name=web"),
            "deletecollection /v1 a/pods//",
            Class::Write,
        );
    }

    #[test]
    fn what_reaches_into_a_container_is_a_class_of_its_own_whatever_its_method() {
        for (method, verb) in [("GET", "get"), ("POST", "create")] {
            for what in INTERACTIVE {
                let path = format!("/api/v1/namespaces/a/pods/b/{what}");
                check(
                    method,
                    &path,
                    &format!("{verb} /v1 a/pods/b/{what}"),
                    Class::Interactive,
                );
            }
        }
        check(
            "GET",
            "/api/v1/nodes/n/proxy/logs/secret",
            "get /v1 /nodes/n/proxy",
            Class::Interactive,
        );
        check(
            "GET",
            "/api/v1/namespaces/a/services/b/proxy/any/thing",
            "get /v1 a/services/b/proxy",
            Class::Interactive,
        );
    }

    #[test]
    fn only_questions_about_oneself_are_reads_by_post() {
        let path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
        check(
            "POST",
            path,
            "create authorization.k8s.io/v1 /selfsubjectaccessreviews//",
            Class::Read,
        );
        let path = "/apis/authorization.k8s.io/v1/subjectaccessreviews";
        check(
            "POST",
            path,
            "create authorization.k8s.io/v1 /subjectaccessreviews//",
            Class::Write,
        );
        let path = "/api/v1/namespaces/a/serviceaccounts/b/token";
        check("POST", path, "create /v1 a/serviceaccounts/b/token", Class::Write);
    }

    #[test]
    fn a_path_that_reads_in_two_ways_is_refused() {
        for path in [
            "",
            "api/v1",
            "//api/v1/pods",
            "/api//v1",
            "/api/v1/../v1/pods",
            "/api/v1/%2e%2e/pods",
            "/api/v1/%2E./pods",
            "/api/v1/namespaces/a%2fpods",
            "/api/v1/a%5cb",
            "/api/v1/a\\b",
            "/api/v1/%",
            "/api/v1/%zz",
            "/api/v1/%00",
            "/api/v1/.",
            "/api/v1/..;x/pods",
            "/api/v1/%70ods",
            "/api/v1/a b",
            "/api/v1/p\u{f6}d",
            "/api/v1/%252e",
            "/a?b",
        ] {
            assert!(attributes("GET", path, None).is_err(), "{path:?} is unclear");
        }
        for path in ["watch/secrets", "watch", "proxy/nodes/n", "watch/namespaces/a/pods"] {
            for path in [format!("/api/v1/{path}"), format!("/apis/apps/v1/{path}")] {
                assert!(attributes("GET", &path, None).is_err(), "{path:?} is unclear");
            }
        }
        for query in [
            "field%53elector=&fieldSelector=metadata.name%3Dmine",
            "fieldSelector=metadata.name%3Dmine&fieldSelector=",
            "w%61tch=1",
            "watch=0&watch=1",
            "watch=1;x",
            "watch=%zz",
        ] {
            let pods = attributes("GET", "/api/v1/pods", Some(query));
            assert!(pods.is_err(), "{query:?} is unclear: {pods:?}");
        }
        let colon = "/apis/rbac.authorization.k8s.io/v1/clusterroles/system%3Anode";
        assert!(attributes("GET", colon, None).is_ok(), "kubectl escapes colons");
    }
}
