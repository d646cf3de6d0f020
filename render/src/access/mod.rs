//! Who may ask which cluster for what: the rules that hub, agent and edge share.
//!
//! In: a method and a path as a caller sent them, and what the folder `access/` says. Out: what Kubernetes would call
//! that request, which class it is of, and whether the person may ask for it there; a path whose meaning is unclear is
//! none. Connections, headers and clusters are deliberately not here, nor is the reading of files.

mod may;
mod model;
mod project;
pub mod query;
pub mod request;
mod rule;
pub mod token;

pub use may::{Decision, Person, Where, is_reserved, may, may_interact, unknown};
pub use model::{
    ACCESS_FOLDER, ACCESS_NAMESPACE, ANNOTATION_CLUSTERS, Access, Binding, BuiltIn, PREFIX, RBAC_API_VERSION,
    RBAC_GROUP, Role, RoleRef, Rule, ScopedName, Subject,
};
pub use project::{Projected, Projection, project};
pub use request::{
    ACCESS_REVIEWS, Attributes, Class, OWN_REVIEWS, RULES_REVIEWS, SELF_REVIEWS, Target, Unclear, attributes,
};
