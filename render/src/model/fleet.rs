//! `fleet.yaml`: how this repository wants to be treated.

use serde::{Deserialize, Serialize};

use crate::name::Revision;

/// The spec of kind Fleet. A repository without the file has the defaults.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct FleetSpec {
    /// Whether a rendered decision needs a person's merge. Read from the revision accepted before.
    pub approval: Approval,
    /// Where Bases and Descriptions go.
    pub render: RenderSpec,
    /// What happens to a Secret whose values stand in plain text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub plaintext_secrets: Option<PlaintextSecrets>,
    /// `spec.offline.enforceFor` in seconds: how long a cluster that hears of no hub goes on writing. `None`: for ever.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub enforce_for_seconds: Option<u64>,
    /// `spec.policies.applySetLabels`: whether objects carry the labels of ApplySets, for tools that look for them.
    #[serde(skip_serializing_if = "is_false")]
    pub apply_set_labels: bool,
    /// What may move placements, beside commits.
    #[serde(skip_serializing_if = "SchedulingSpec::is_default")]
    pub scheduling: SchedulingSpec,
    /// The root commit of released that agents may change over to, after its history was lost.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lineage: Option<Revision>,
}

/// `spec.render` of Fleet.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct RenderSpec {
    /// Commits or objects.
    pub mode: RenderMode,
}

/// `spec.scheduling` of Fleet.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SchedulingSpec {
    /// Who merges decisions that no source commit caused, where rendered decisions need a merge.
    pub placement_approval: PlacementApproval,
    /// Whether a unit with a higher priority may take the room of one with a lower, where it asks to.
    pub preemption: bool,
    /// When clusters that are silent lose their replicas to others; `None`: never.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failover: Option<Failover>,
    /// After so many seconds a cluster that got more of a unit is not waited for any more by those that get less;
    /// `None`: for ever.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub move_timeout_seconds: Option<u64>,
}

impl SchedulingSpec {
    fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

/// Who merges decisions that no source commit caused: unplaced replicas that now fit, failover.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum PlacementApproval {
    /// A person.
    #[default]
    Propose,
    /// The hub, where no cluster's replicas leave the bounds that Git gives them; a person otherwise.
    WithinBounds,
    /// The hub.
    Automatic,
}

/// When clusters that are silent lose their replicas to others.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Failover {
    /// After so many seconds of silence.
    pub after_seconds: u64,
    /// Of at most so many clusters…
    pub clusters_max: u64,
    /// …within so many seconds. More that are silent at once are the hub's own trouble.
    pub per_seconds: u64,
    /// A cluster that came back must be heard of for so many seconds before it is given anything again.
    pub return_seconds: u64,
}

/// Who moves `rendered`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Approval {
    /// The hub, at once.
    #[default]
    None,
    /// A person, by merging the hub's proposal branch.
    Required,
}

/// Where Bases and Descriptions go.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum RenderMode {
    /// Commits on `rendered` alone.
    #[default]
    Commits,
    /// Commits, and Clusternet's objects in a hub cluster beside them.
    Objects,
}

/// What happens to a Secret whose values stand in plain text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum PlaintextSecrets {
    /// An Error: the unit keeps what it had. The default.
    Refuse,
    /// A Warning.
    Warn,
}

impl FleetSpec {
    /// The policy in force: what the file says, else to refuse, since decisions are commits in every mode.
    pub fn plaintext_secrets(&self) -> PlaintextSecrets {
        self.plaintext_secrets.unwrap_or(PlaintextSecrets::Refuse)
    }
}

fn is_false(value: &bool) -> bool {
    !*value
}
