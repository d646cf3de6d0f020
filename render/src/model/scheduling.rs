//! How a unit is placed: what a Subscription says of clusters and replicas beside its selectors.

use serde::{Deserialize, Serialize};

use crate::name::ObjectKey;
use crate::selector::LabelSelector;

/// How replicas are shared out over the chosen clusters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scheduling {
    /// Every cluster gets the whole.
    Replication,
    /// Replicas are divided.
    Dividing(Dividing),
}

/// How replicas are divided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dividing {
    /// By the subscribers' weights.
    Static,
    /// By the room that clusters have.
    Dynamic(Strategy),
}

/// Which room is filled first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Strategy {
    /// In proportion to the room of each.
    Spread,
    /// One cluster after the other.
    Binpack,
}

impl Scheduling {
    /// Whether replicas are divided by the room that clusters have.
    pub fn is_by_room(self) -> bool {
        matches!(self, Self::Dividing(Dividing::Dynamic(_)))
    }

    /// Whether replicas are divided by weight.
    pub fn is_by_weight(self) -> bool {
        self == Self::Dividing(Dividing::Static)
    }

    /// `schedulingStrategy` and `dividingScheduling`, as they are written.
    pub fn text(self) -> &'static str {
        match self {
            Self::Replication => "Replication",
            Self::Dividing(Dividing::Static) => "Dividing (Static)",
            Self::Dividing(Dividing::Dynamic(Strategy::Spread)) => "Dividing (Dynamic, Spread)",
            Self::Dividing(Dividing::Dynamic(Strategy::Binpack)) => "Dividing (Dynamic, Binpack)",
        }
    }
}

/// What else a Subscription says of how it is placed. The default says nothing.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Placing {
    /// `schedulingPolicy`: whose arithmetic.
    #[serde(skip_serializing_if = "SchedulingPolicy::is_default")]
    pub policy: SchedulingPolicy,
    /// `clusters`: which of the clusters that match are taken.
    #[serde(skip_serializing_if = "Choice::is_default")]
    pub clusters: Choice,
    /// `schedulingBySubGroup`: each subscriber takes some of its own.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub by_sub_group: bool,
    /// `priority`: the higher is served first.
    #[serde(skip_serializing_if = "is_zero")]
    pub priority: i32,
    /// `preemptionPolicy`: whether it may take the room of a lower priority, where the fleet allows that.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub preempts: bool,
    /// `replicaPaths`: where kinds say their replicas that are not built in.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub replica_paths: Vec<DeclaredReplicas>,
}

impl Placing {
    /// Whether the clusters that match are put in order, or have to be enough: each has a score then.
    pub fn is_a_choice(&self) -> bool {
        self.by_sub_group || !self.clusters.is_default()
    }

    /// Whether only some of the clusters that match are taken, so that one stands in for another.
    pub fn takes_some(&self) -> bool {
        self.by_sub_group || self.clusters.max.is_some() || !self.clusters.spread.is_empty()
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(number: &i32) -> bool {
    *number == 0
}

/// Whose arithmetic divides replicas.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum SchedulingPolicy {
    /// Ours.
    #[default]
    Flotilla,
    /// Clusternet's, number for number.
    Clusternet,
}

impl SchedulingPolicy {
    fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

/// Which of the clusters that match are taken.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Choice {
    /// `min`: with fewer, the last placement stays.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min: Option<u64>,
    /// `max`: the best so many.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max: Option<u64>,
    /// `preferred`: clusters that are better than others.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub preferred: Vec<Preference>,
    /// `spread`: over which labels.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub spread: Vec<SpreadConstraint>,
}

impl Choice {
    fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

/// Clusters that are better than others.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Preference {
    /// By how much, from 1 to 100.
    pub weight: u64,
    /// Which.
    pub preference: LabelSelector,
}

/// Clusters in groups, one for each value of a label.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SpreadConstraint {
    /// The clusters' label. Clusters without it are left out.
    pub topology_key: String,
    /// With fewer groups, the last placement stays.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min_groups: Option<u64>,
    /// The best so many groups.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_groups: Option<u64>,
    /// By how many replicas groups may differ, where they are divided by room.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_skew: Option<u64>,
    /// What becomes of replicas that cannot be placed so.
    pub when_unsatisfiable: Unsatisfiable,
}

/// What becomes of what a constraint does not allow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum Unsatisfiable {
    /// It stays unplaced.
    #[default]
    DoNotSchedule,
    /// It is placed all the same, as evenly as can be.
    ScheduleAnyway,
}

/// How few and how many replicas a cluster may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize)]
pub struct Bounds {
    /// Fewer only where it has no room for them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min: Option<u64>,
    /// Never more.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max: Option<u64>,
}

impl Bounds {
    /// Whether nothing is said.
    pub fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

/// How many clusters of its own a subscriber takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SubGroup {
    /// With fewer, the last placement stays. With Clusternet's arithmetic it is how many are taken.
    pub min_clusters: u64,
    /// The best so many; `min_clusters` where nothing is written.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_clusters: Option<u64>,
}

/// Where a kind says its replicas.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DeclaredReplicas {
    /// Its `apiVersion`; any version of its group is meant.
    pub api_version: String,
    /// Its kind.
    pub kind: String,
    /// JSON pointer of the number.
    pub replicas: String,
    /// JSON pointer of the pod template, where it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub template: Option<String>,
}

impl DeclaredReplicas {
    /// Whether an object is of this kind.
    pub fn is_of(&self, key: &ObjectKey) -> bool {
        ObjectKey::new(&self.api_version, &self.kind, &key.namespace, &key.name) == *key
    }
}
