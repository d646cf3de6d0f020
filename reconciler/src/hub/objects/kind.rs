//! The kinds that are written to a hub cluster, and what names one object of them.

use std::fmt;

use kube::api::{Api, ApiResource, DynamicObject};
use render::model::{CLUSTERNET_APPS_API_VERSION, CLUSTERNET_CLUSTERS_API_VERSION};

/// A kind, in the order in which they are written: each may need one before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kind {
    /// What the others stand in.
    Namespace,
    /// A registered cluster.
    ManagedCluster,
    /// A unit.
    Subscription,
    /// A unit on a cluster, by the objects it is about.
    Base,
    /// What a cluster is told of a unit.
    Description,
}

/// One object.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Id {
    pub(super) kind: Kind,
    /// Empty for a Namespace.
    pub(super) namespace: String,
    pub(super) name: String,
}

impl Kind {
    /// All of them, in their order.
    pub(super) const ALL: [Self; 5] = [
        Self::Namespace,
        Self::ManagedCluster,
        Self::Subscription,
        Self::Base,
        Self::Description,
    ];

    /// Its name.
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Namespace => "Namespace",
            Self::ManagedCluster => "ManagedCluster",
            Self::Subscription => "Subscription",
            Self::Base => "Base",
            Self::Description => "Description",
        }
    }

    /// Group and version, whole.
    pub(super) fn api_version(self) -> &'static str {
        match self {
            Self::Namespace => "v1",
            Self::ManagedCluster => CLUSTERNET_CLUSTERS_API_VERSION,
            Self::Subscription | Self::Base | Self::Description => CLUSTERNET_APPS_API_VERSION,
        }
    }

    /// Its name in paths.
    pub(super) fn plural(self) -> &'static str {
        match self {
            Self::Namespace => "namespaces",
            Self::ManagedCluster => "managedclusters",
            Self::Subscription => "subscriptions",
            Self::Base => "bases",
            Self::Description => "descriptions",
        }
    }

    fn resource(self) -> ApiResource {
        let (group, version) = self.api_version().split_once('/').unwrap_or(("", self.api_version()));
        ApiResource {
            group: group.to_owned(),
            version: version.to_owned(),
            api_version: self.api_version().to_owned(),
            kind: self.as_str().to_owned(),
            plural: self.plural().to_owned(),
        }
    }

    /// Requests for all of it, in every namespace.
    pub(super) fn everywhere(self, client: &kube::Client) -> Api<DynamicObject> {
        Api::all_with(client.clone(), &self.resource())
    }
}

impl Id {
    /// The object of a kind with this name.
    pub(super) fn new(kind: Kind, namespace: impl Into<String>, name: impl Into<String>) -> Self {
        Self {
            kind,
            namespace: namespace.into(),
            name: name.into(),
        }
    }

    /// A Namespace.
    pub(super) fn namespace(name: impl Into<String>) -> Self {
        Self::new(Kind::Namespace, "", name)
    }

    /// Requests for it.
    pub(super) fn api(&self, client: &kube::Client) -> Api<DynamicObject> {
        if self.kind == Kind::Namespace {
            self.kind.everywhere(client)
        } else {
            Api::namespaced_with(client.clone(), &self.namespace, &self.kind.resource())
        }
    }
}

impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.namespace.is_empty() {
            write!(f, "{} {}", self.kind.as_str(), self.name)
        } else {
            write!(f, "{} {}/{}", self.kind.as_str(), self.namespace, self.name)
        }
    }
}
