//! The kinds of a fleet repository as types we think with: our group and Clusternet's land in the same.
//!
//! Reading them from YAML, with findings for what does not fit, is [`crate::load`]'s matter.

mod cluster;
mod fleet;
mod overrides;
mod subscription;
mod suspension;

pub use cluster::{Cluster, SyncMode, Taint, TaintEffect};
pub use fleet::{Approval, FleetSpec, PlaintextSecrets, RenderMode, RenderSpec};
pub use overrides::{FieldFormat, Override, OverrideFeed, OverrideKind, OverrideStep, OverrideStepType};
pub use subscription::{Dividing, Feed, Scheduling, Subscriber, Subscription, Toleration};
pub use suspension::{SuspendedClusters, Suspension};

/// Our API group and version.
pub const FLEET_API_VERSION: &str = "fleet.flotilla.dev/v1alpha1";

/// The annotation on every object in a cluster: the unit that it came with, so that people see where it is from.
/// It is for them; nothing is removed because of it.
pub const ANNOTATION_UNIT: &str = "fleet.flotilla.dev/unit";

/// Clusternet's group and version of Subscriptions, overrides and charts.
pub const CLUSTERNET_APPS_API_VERSION: &str = "apps.clusternet.io/v1alpha1";

/// Clusternet's group and version of clusters.
pub const CLUSTERNET_CLUSTERS_API_VERSION: &str = "clusters.clusternet.io/v1beta1";

/// Label that every cluster carries: its id.
pub const LABEL_CLUSTER_ID: &str = "clusters.clusternet.io/cluster-id";

/// Label that every cluster carries: its name.
pub const LABEL_CLUSTER_NAME: &str = "clusters.clusternet.io/cluster-name";
