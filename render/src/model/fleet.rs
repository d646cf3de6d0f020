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
