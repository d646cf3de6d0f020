//! What one watch is about: a kind, in one namespace or in all.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use render::ObjectKey;

use crate::apply::discovery::ServedKind;
use crate::limits::WATCH_NAMESPACES_MAX;

/// A kind at a version, and a namespace, or none for all of them.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::apply) struct Scope {
    pub(super) api_version: String,
    group: String,
    kind: String,
    pub(super) namespace: Option<String>,
}

impl Scope {
    /// Whether a watch of it tells of an object.
    pub(in crate::apply) fn contains(&self, key: &ObjectKey) -> bool {
        let inside = self
            .namespace
            .as_ref()
            .is_none_or(|namespace| *namespace == key.namespace);
        inside && self.kind == key.kind && self.group == key.group
    }
}

/// The kinds of objects, and where there are objects of each.
#[derive(Default)]
pub(super) struct Spreads<'a>(BTreeMap<(&'a str, &'a str), Spread<'a>>);

struct Spread<'a> {
    kind: Arc<ServedKind>,
    namespaces: BTreeSet<&'a str>,
}

impl<'a> Spreads<'a> {
    /// There is this object too.
    pub(super) fn add(&mut self, key: &'a ObjectKey, kind: &Arc<ServedKind>) {
        let spread = self.0.entry((&key.group, &key.kind)).or_insert_with(|| Spread {
            kind: kind.clone(),
            namespaces: BTreeSet::new(),
        });
        spread.namespaces.insert(&key.namespace);
    }

    /// What to watch.
    pub(super) fn scopes(&self) -> BTreeMap<Scope, Arc<ServedKind>> {
        let mut scopes = BTreeMap::new();
        for spread in self.0.values() {
            scopes.extend(spread.scopes().into_iter().map(|scope| (scope, spread.kind.clone())));
        }
        scopes
    }
}

impl Spread<'_> {
    /// Some namespaces, or all of them.
    fn scopes(&self) -> Vec<Scope> {
        let resource = &self.kind.resource;
        let scope = |namespace| Scope {
            api_version: resource.api_version.clone(),
            group: resource.group.clone(),
            kind: resource.kind.clone(),
            namespace,
        };
        if !self.kind.namespaced || self.namespaces.len() > WATCH_NAMESPACES_MAX {
            return vec![scope(None)];
        }
        let each = self.namespaces.iter();
        each.map(|namespace| scope(Some((*namespace).to_owned()))).collect()
    }
}

#[cfg(test)]
mod tests {
    use kube::api::ApiResource;

    use super::*;

    #[track_caller]
    fn check(namespaced: bool, namespaces: &[&str], expected: &[Option<&str>]) {
        let resource = ApiResource {
            group: "apps".to_owned(),
            version: "v1".to_owned(),
            api_version: "apps/v1".to_owned(),
            kind: "Deployment".to_owned(),
            plural: "deployments".to_owned(),
        };
        let kind = Arc::new(ServedKind { resource, namespaced });
        let keys: Vec<_> = namespaces
            .iter()
            .map(|namespace| ObjectKey::new("apps/v1", "Deployment", namespace, "web"))
            .collect();
        let mut spreads = Spreads::default();
        keys.iter().for_each(|key| spreads.add(key, &kind));
        let scopes = spreads.scopes();
        let watched: Vec<_> = scopes.keys().map(|scope| scope.namespace.as_deref()).collect();
        assert_eq!(watched, expected);
        assert!(keys.iter().all(|key| scopes.keys().any(|scope| scope.contains(key))));
    }

    #[test]
    fn few_namespaces_are_watched_one_by_one_and_many_at_once() {
        check(true, &["a", "b"], &[Some("a"), Some("b")]);
        check(true, &["a", "b", "c", "d", "e"], &[None]);
        check(false, &[""], &[None]);
    }
}
