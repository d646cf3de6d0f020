//! Room in a cluster: what its nodes have left, and how many pods of a template fit.
//!
//! In: what a cluster says of its nodes ([`Capacity`]), and what a pod asks for ([`PodRequirements`]). Out: how many fit
//! ([`fit()`]), node group by node group, and what the nodes have left after some were put there ([`Field::put`]). The
//! applier of a cluster and the hub use the same functions, so that they never judge differently. Which cluster gets
//! how many is deliberately not here: see [`crate::schedule`].

mod field;
mod fill;
mod fit;
mod leave;
mod nodes;
mod quantity;
mod report;
mod requirements;
mod resources;
mod workload;

pub use field::{Demand, Field, Layout};
pub use fit::{Fit, fit, fit_by};
pub use nodes::{NodeGroup, Nodes};
pub use quantity::thousandths;
pub use report::{Capacity, InvalidCapacity, WorkloadPods};
pub use requirements::{Apart, NodeExpression, NodeOperator, NodeTerm, PodRequirements, Spread};
pub use resources::Resources;
pub use workload::{ReplicaPath, Workload, WorkloadError, replica_path};

/// The label by which each node is told apart.
pub const HOSTNAME: &str = "kubernetes.io/hostname";

#[cfg(test)]
mod tests;
