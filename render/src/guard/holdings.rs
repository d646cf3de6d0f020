//! Which objects a content has, and when two keys mean one object.

use std::cmp::Ordering;

use crate::describe::Description;
use crate::model::DeletionPolicy;
use crate::name::ObjectKey;

/// What the guard needs to know of a content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Holdings {
    /// Its objects, sorted by key.
    pub objects: Vec<ObjectKey>,
    /// Whether they stay in the cluster when the unit leaves it.
    pub orphan: bool,
}

impl Holdings {
    /// Of a content.
    pub fn of(content: &Description) -> Self {
        Self {
            objects: content.objects.iter().map(|object| object.key.clone()).collect(),
            orphan: content.apply.deletion == DeletionPolicy::Orphan,
        }
    }

    /// Whether it has the object, under whatever spelling of its namespace.
    pub(crate) fn contains(&self, object: &ObjectKey) -> bool {
        in_any_spelling(object, |object| self.objects.binary_search(object).is_ok())
    }
}

/// Whether something holds of an object, or of how an API server sees it.
fn in_any_spelling(object: &ObjectKey, holds: impl Fn(&ObjectKey) -> bool) -> bool {
    let other = match object.namespace.as_str() {
        "" => "default",
        "default" => "",
        _ => return holds(object),
    };
    holds(object)
        || holds(&ObjectKey {
            namespace: other.to_owned(),
            ..object.clone()
        })
}

/// A key as an API server sees it: without a namespace is in `default`. A kind that has no namespaces is never given
/// one, so that nothing else is meant by it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Same<'a>(pub(crate) &'a ObjectKey);

impl Same<'_> {
    fn parts(&self) -> (&str, &str, &str, &str) {
        let key = self.0;
        let namespace = match key.namespace.as_str() {
            "default" => "",
            namespace => namespace,
        };
        (&key.group, &key.kind, namespace, &key.name)
    }
}

impl PartialEq for Same<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.parts() == other.parts()
    }
}

impl Eq for Same<'_> {}

impl PartialOrd for Same<'_> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Same<'_> {
    fn cmp(&self, other: &Self) -> Ordering {
        self.parts().cmp(&other.parts())
    }
}

/// A content of the plan, or of what is published.
#[derive(Clone)]
pub(super) enum Held<'a> {
    Planned(&'a Description),
    Published(std::sync::Arc<Holdings>),
}

impl Held<'_> {
    pub(super) fn len(&self) -> usize {
        match self {
            Self::Planned(content) => content.objects.len(),
            Self::Published(holdings) => holdings.objects.len(),
        }
    }

    pub(super) fn key(&self, index: usize) -> &ObjectKey {
        match self {
            Self::Planned(content) => &content.objects[index].key,
            Self::Published(holdings) => &holdings.objects[index],
        }
    }

    pub(super) fn keys(&self) -> impl Iterator<Item = &ObjectKey> {
        (0..self.len()).map(|index| self.key(index))
    }

    pub(super) fn is_orphan(&self) -> bool {
        match self {
            Self::Planned(content) => content.apply.deletion == DeletionPolicy::Orphan,
            Self::Published(holdings) => holdings.orphan,
        }
    }

    /// Whether it has the object, under whatever spelling of its namespace.
    pub(super) fn contains(&self, object: &ObjectKey) -> bool {
        match self {
            Self::Planned(content) => in_any_spelling(object, |wanted| {
                content
                    .objects
                    .binary_search_by(|object| object.key.cmp(wanted))
                    .is_ok()
            }),
            Self::Published(holdings) => holdings.contains(object),
        }
    }
}
