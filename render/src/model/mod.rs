//! The kinds of a fleet repository as types we think with: our group and Clusternet's land in the same.
//!
//! Reading them from YAML, with findings for what does not fit, is [`crate::load`]'s matter.

mod apply;
mod budget;
mod cluster;
mod fleet;
mod health_rule;
mod overrides;
mod scheduling;
mod subscription;
mod suspension;

pub use apply::{
    ApplyPolicy, DeletionPolicy, Dependency, DependencyClusters, DriftMode, HealthCheck, IgnoreRule, Replace,
    SuspendedObject,
};
pub use budget::{PruneAllowance, PruneBudget};
pub use cluster::{Cluster, Predictor, SyncMode, Taint, TaintEffect};
pub use fleet::{
    Approval, Failover, FleetSpec, PlacementApproval, PlaintextSecrets, RenderMode, RenderSpec, SchedulingSpec,
};
pub use health_rule::HealthRule;
pub use overrides::{FieldFormat, Override, OverrideFeed, OverrideKind, OverrideStep, OverrideStepType};
pub use scheduling::{
    Bounds, Choice, DeclaredReplicas, Dividing, Placing, Preference, Scheduling, SchedulingPolicy, SpreadConstraint,
    Strategy, SubGroup, Unsatisfiable,
};
pub use subscription::{Feed, Subscriber, Subscription, Toleration};
pub use suspension::{ObjectName, SuspendedClusters, Suspension};

/// Our API group and version.
pub const FLEET_API_VERSION: &str = "fleet.flotilla.dev/v1alpha1";

/// The annotation on every object in a cluster: the unit that it came with, so that people see where it is from.
/// It is for them; nothing is removed because of it.
pub const ANNOTATION_UNIT: &str = "fleet.flotilla.dev/unit";

/// On an object: the objects that must be there and healthy first, as `group/kind/namespace/name`, or
/// `group/kind/name` without a namespace; `""` is written as nothing for the core group. Separated by commas.
pub const ANNOTATION_DEPENDS_ON: &str = "fleet.flotilla.dev/depends-on";

/// On an object: [`Replace`] for it alone.
pub const ANNOTATION_REPLACE: &str = "fleet.flotilla.dev/replace";

/// On an object: `disabled` keeps it in the cluster when it leaves the delivery.
pub const ANNOTATION_PRUNE: &str = "fleet.flotilla.dev/prune";

/// On an object: `disabled` leaves it as it is in the cluster, whatever the delivery says.
pub const ANNOTATION_RECONCILE: &str = "fleet.flotilla.dev/reconcile";

/// Clusternet's group and version of Subscriptions, overrides and charts.
pub const CLUSTERNET_APPS_API_VERSION: &str = "apps.clusternet.io/v1alpha1";

/// Clusternet's group and version of clusters.
pub const CLUSTERNET_CLUSTERS_API_VERSION: &str = "clusters.clusternet.io/v1beta1";

/// Label that every cluster carries: its id.
pub const LABEL_CLUSTER_ID: &str = "clusters.clusternet.io/cluster-id";

/// Label that every cluster carries: its name.
pub const LABEL_CLUSTER_NAME: &str = "clusters.clusternet.io/cluster-name";

/// The taint that stands for a silent cluster. No cluster carries it; a Subscription tolerates it.
pub const TAINT_UNREACHABLE: &str = "fleet.flotilla.dev/unreachable";
