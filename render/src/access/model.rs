//! What the folder `access/` says: roles, and who has them where.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::selector::LabelSelector;

/// The folder of the fleet repository below which roles and bindings are read.
pub const ACCESS_FOLDER: &str = "access/";

/// The API group of roles and bindings.
pub const RBAC_GROUP: &str = "rbac.authorization.k8s.io";

/// The version that is read.
pub const RBAC_API_VERSION: &str = "rbac.authorization.k8s.io/v1";

/// Annotation of a binding: the clusters that it is about, as a label selector in kubectl's form.
pub const ANNOTATION_CLUSTERS: &str = "fleet.flotilla.dev/clusters";

/// Namespace of the units that carry roles and bindings into clusters. No Subscription may stand in it.
pub const ACCESS_NAMESPACE: &str = "flotilla-access";

/// What stands before every name and group of a person inside a cluster, and before the names of what is projected.
pub const PREFIX: &str = "flotilla:";

/// Every role and binding of `access/`. The default grants nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Access {
    /// By namespace, which is empty for a ClusterRole, and name.
    pub roles: BTreeMap<ScopedName, Arc<Role>>,
    /// By namespace, which is empty for a ClusterRoleBinding, and name. Each one's role is there.
    pub bindings: BTreeMap<ScopedName, Arc<Binding>>,
}

/// A name with the namespace around it; empty for what is in none.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ScopedName {
    /// Empty for what is in none.
    pub namespace: String,
    /// `metadata.name`.
    pub name: String,
}

/// A Role or ClusterRole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Role {
    /// Which.
    pub key: ScopedName,
    /// What it allows, each by itself.
    pub rules: Vec<Rule>,
    /// File and line of the declaration.
    pub file: Arc<str>,
    /// See `file`.
    pub line: u32,
}

/// One rule of a role. A request is allowed where every list has a part for it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rule {
    /// `*` is all.
    pub verbs: Vec<String>,
    /// `*` is all; empty text is the core group.
    pub api_groups: Vec<String>,
    /// `*` is all, `pods/log` a subresource, `*/log` that of everything.
    pub resources: Vec<String>,
    /// Without any, every object.
    pub resource_names: Vec<String>,
    /// Paths that are no resources; `*` at the end stands for whatever follows.
    pub non_resource_urls: Vec<String>,
}

/// A RoleBinding or ClusterRoleBinding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Binding {
    /// Which.
    pub key: ScopedName,
    /// Who has the role.
    pub subjects: Vec<Subject>,
    /// What they have.
    pub role: RoleRef,
    /// Where: `None` is every cluster and the hub's own kinds; a selector is clusters alone.
    pub clusters: Option<LabelSelector>,
    /// File and line of the declaration.
    pub file: Arc<str>,
    /// See `file`.
    pub line: u32,
}

/// Someone as the hub knows them, without prefix.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Subject {
    /// One person or program.
    User(String),
    /// All of a group.
    Group(String),
}

/// The role that a binding gives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RoleRef {
    /// One of `access/`: a Role of the binding's namespace, or a ClusterRole.
    Own(ScopedName),
    /// One that every cluster has.
    BuiltIn(BuiltIn),
}

/// ClusterRoles that every cluster has and that `access/` may name without declaring them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum BuiltIn {
    /// Reads all but Secrets and RBAC objects.
    View,
    /// Reads all but RBAC objects.
    Edit,
    /// Reads all.
    Admin,
    /// Reads all, and paths that are no resources.
    ClusterAdmin,
}

impl BuiltIn {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::View, Self::Edit, Self::Admin, Self::ClusterAdmin];

    /// Its name in clusters.
    pub fn name(self) -> &'static str {
        match self {
            Self::View => "view",
            Self::Edit => "edit",
            Self::Admin => "admin",
            Self::ClusterAdmin => "cluster-admin",
        }
    }

    /// The one with a name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|role| role.name() == name)
    }
}

impl Binding {
    /// `RoleBinding shop/readers`, for people.
    pub fn label(&self) -> String {
        match self.key.namespace.as_str() {
            "" => format!("ClusterRoleBinding {}", self.key.name),
            namespace => format!("RoleBinding {namespace}/{}", self.key.name),
        }
    }

    /// Whether it is about a cluster with these labels.
    pub fn is_for(&self, labels: &BTreeMap<String, String>) -> bool {
        self.clusters.as_ref().is_none_or(|selector| selector.matches(labels))
    }
}

impl ScopedName {
    /// With an empty namespace for what is in none.
    pub fn new(namespace: &str, name: &str) -> Self {
        Self {
            namespace: namespace.to_owned(),
            name: name.to_owned(),
        }
    }
}
