//! A declaration of the fleet, as one document makes it.

use std::sync::Arc;

use super::kinds::OwnKind;
use super::pattern::Selection;
use crate::access::{Binding, Role};
use crate::finding::Finding;
use crate::model::{Cluster, FleetSpec, HealthRule, Override, PruneBudget, Subscription, Suspension};

/// Names a declaration; two with the same key contradict each other.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct DeclarationKey {
    pub(super) kind: OwnKind,
    pub(super) namespace: String,
    pub(super) name: String,
}

impl DeclarationKey {
    pub(super) fn new(kind: OwnKind, namespace: &str, name: &str) -> Self {
        Self {
            kind,
            namespace: namespace.to_owned(),
            name: name.to_owned(),
        }
    }

    /// `Kind namespace/name`, for messages.
    pub(super) fn label(&self) -> String {
        let kind = self.kind.name();
        match (self.namespace.as_str(), self.name.as_str()) {
            (_, "") => kind.to_owned(),
            ("", name) => format!("{kind} {name}"),
            (namespace, name) => format!("{kind} {namespace}/{name}"),
        }
    }
}

/// What a document declares.
#[derive(Clone, Debug)]
pub(super) enum Declaration {
    Fleet(FleetSpec),
    Cluster(Cluster),
    Unit(UnitDeclaration),
    Override(Arc<Override>),
    Suspension(Arc<Suspension>),
    PruneBudget(Arc<PruneBudget>),
    HealthRule(Arc<HealthRule>),
    Role(Arc<Role>),
    Binding(Arc<Binding>),
}

/// A Subscription with what was worked out once for it.
#[derive(Clone, Debug)]
pub(super) struct UnitDeclaration {
    pub(super) subscription: Arc<Subscription>,
    /// One per feed: what a path feed selects.
    pub(super) selections: Vec<Option<Selection>>,
    /// Errors of the declaration itself, which hold the unit.
    pub(super) problems: Vec<Finding>,
}
