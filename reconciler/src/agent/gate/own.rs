//! What is the agent's own in its cluster: Secrets with its key, its journal and keys of SOPS documents, and its containers.
//!
//! In: the namespaces that they are in, and what somebody asks for. Out: why they do not get it. Whatever `access/` and the
//! cluster's own RBAC say: whoever reads that key is the cluster for every hub. The hub's applier is deliberately not meant: it
//! has the agent's own rights.

use std::collections::BTreeSet;

use render::access::{Attributes, Class, Target};

use crate::apply::NAMESPACE;

/// The namespaces that the agent has something of its own in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Own(BTreeSet<String>);

impl Default for Own {
    fn default() -> Self {
        Self(BTreeSet::from([NAMESPACE.to_owned()]))
    }
}

impl Own {
    /// With these, beside the namespace of its Lease.
    pub fn with(namespaces: impl IntoIterator<Item = String>) -> Self {
        let mut own = Self::default();
        own.0.extend(namespaces);
        own
    }

    /// Why somebody does not get what they ask for, where it is the agent's own.
    pub(super) fn withholds(&self, attributes: &Attributes) -> Option<String> {
        let Target::Resource {
            group,
            namespace,
            resource,
            ..
        } = &attributes.target
        else {
            return None;
        };
        // A namespace's name needs no escape; with one it may be any.
        let is_own = self.0.contains(namespace) || namespace.contains('%');
        match attributes.class() {
            Class::Interactive if is_own => Some(format!(
                "namespace {namespace} is the agent's own; nobody reaches into its containers through the hub"
            )),
            Class::Read if group.is_empty() && resource == "secrets" && namespace.is_empty() => Some(
                "through the hub Secrets are read in one namespace at a time, since the agent's own are lent to nobody; \
                 name it with -n"
                    .to_owned(),
            ),
            Class::Read if group.is_empty() && resource == "secrets" && is_own => Some(format!(
                "Secrets in namespace {namespace} are the agent's own, with the cluster's key among them; nobody reads them \
                 through the hub, whatever access/ says"
            )),
            Class::Read | Class::Interactive | Class::Write => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use render::access::attributes;

    use super::*;

    #[track_caller]
    fn check(path: &str, expected: Option<&str>) {
        let (path, query) = path
            .split_once('?')
            .map_or((path, None), |(path, query)| (path, Some(query)));
        let asked = attributes("GET", path, query).expect("a clear path");
        let why = Own::with(["keys".to_owned()]).withholds(&asked);
        match (&why, expected) {
            (Some(why), Some(words)) => assert!(why.contains(words), "{path}: {why}"),
            (None, None) => {}
            _ => unreachable!("{path}: {why:?}"),
        }
    }

    #[test]
    fn secrets_of_the_agents_own_are_withheld_in_whatever_way_they_are_asked_for() {
        let own = Some("the agent's own");
        for namespace in ["flotilla-system", "keys", "flotilla%2Dsystem"] {
            let secrets = format!("/api/v1/namespaces/{namespace}/secrets");
            for form in [
                "",
                "/",
                "/flotilla-agent",
                "?watch=true",
                "?limit=1&fieldSelector=metadata.name%3Da",
            ] {
                check(&format!("{secrets}{form}"), own);
            }
        }
        let each = Some("one namespace at a time");
        for form in ["", "?watch=true", "?fieldSelector=metadata.namespace%3Dflotilla-system"] {
            check(&format!("/api/v1/secrets{form}"), each);
        }
    }

    #[test]
    fn what_else_there_is_may_be_read() {
        for path in [
            "/api/v1/namespaces/shop/secrets",
            "/api/v1/namespaces/shop/secrets/token",
            "/api/v1/namespaces/flotilla-system/pods",
            "/api/v1/namespaces/flotilla-system/configmaps/flotilla-agent",
            "/api/v1/namespaces/flotilla-system/pods/agent/log?follow=true",
            "/apis/example.com/v1/namespaces/flotilla-system/secrets",
            "/api/v1/namespaces/flotilla-system",
            "/api/v1/pods",
            "/api/v1/namespaces/shop/pods/web/exec?command=sh",
            "/version",
        ] {
            check(path, None);
        }
    }

    #[test]
    fn nobody_reaches_into_the_agents_own_containers() {
        for reach in ["exec?command=sh", "attach", "portforward", "proxy/metrics"] {
            let path = format!("/api/v1/namespaces/flotilla-system/pods/agent/{reach}");
            check(&path, Some("reaches into its containers"));
        }
        check("/api/v1/namespaces/keys/services/a/proxy/b", Some("reaches into"));
    }
}
