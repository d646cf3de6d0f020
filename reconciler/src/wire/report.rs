//! The report: what a cluster holds and how it fares, in versioned sections.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::sync::Arc;

use render::capacity::Capacity;
use render::{ClusterName, Digest, ObjectKey, UnitKey};
use serde::{Deserialize, Serialize};

use super::agent_counts::{grown, sum};
use super::{AgentCounts, Facts, Held, NodeFacts, Refusal};
use crate::apply::capacity::Room;
use crate::key_sets::KeysKnown;

/// What the applier of a cluster says. Sections that a build does not know are ignored; sections that it
/// does not send are absent, which is not the same as empty.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Report {
    /// Version of this form.
    pub version: u32,
    /// Whose it is.
    pub cluster: ClusterName,
    /// Whether what is held could be read; only then does an absent `held` mean that nothing is.
    #[serde(default)]
    pub held_read: bool,
    /// The newest envelope that was taken.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub held: Option<Held>,
    /// The newest envelope that was refused after `held`, with its sequence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refused: Option<(u64, Refusal)>,
    /// The sequence that `units` are the results of; absent where none is applied yet, and from agents that do not say it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub applied_sequence: Option<u64>,
    /// Unit → result; also units that are being removed.
    #[serde(default)]
    pub units: BTreeMap<UnitKey, UnitReport>,
    /// The cluster's own version, as its API server says it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kubernetes_version: Option<String>,
    /// What the cluster serves, sorted: `apps/v1/Deployment`. Templates of charts may look at it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub api_versions: Vec<String>,
    /// When the last long absence of a hub began, in seconds since 1970: from then until it came back, the cluster was kept
    /// as it held it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub without_hub_since: Option<i64>,
    /// What the cluster is. Absent where it is not known, and from agents that do not say it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub facts: Option<Arc<Facts>>,
    /// How its nodes fare. Absent where it is not known, and from agents that do not say it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nodes: Option<Arc<NodeFacts>>,
    /// What the cluster's nodes have left. Absent where it is as it was told last in this session, or not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub capacity: Option<Arc<Capacity>>,
    /// Why nobody knows what they have left; empty where it is known.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub capacity_unknown: String,
    /// What keeps the applier as a whole from working: no API server, no lease; empty when nothing does.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub trouble: String,
    /// Whether another agent applies in this cluster, so that this one only stands by.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub waits_for_lease: bool,
    /// How often others' changes were put right, since the applier began.
    #[serde(default, skip_serializing_if = "Corrections::are_none")]
    pub corrections: Corrections,
    /// Since when its agent knows the keys of its hubs. Absent where the hub itself applies, and from agents that do not say it.
    #[serde(default, skip_serializing_if = "KeysKnown::is_empty")]
    pub hub_keys_known: KeysKnown,
    /// What its agent counted of its tunnels, since it began.
    #[serde(default, skip_serializing_if = "AgentCounts::are_none")]
    pub agent: AgentCounts,
}

/// How often others' changes were put right.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Corrections {
    /// Objects of units with fields that were changed.
    pub unit_changed: u64,
    /// Objects of units that were removed.
    pub unit_removed: u64,
    /// Objects of Helm releases with fields that were changed.
    pub release_changed: u64,
    /// Objects of Helm releases that were removed.
    pub release_removed: u64,
}

impl Corrections {
    /// One, of an object of a unit.
    pub fn of_unit(is_gone: bool) -> Self {
        Self {
            unit_changed: u64::from(!is_gone),
            unit_removed: u64::from(is_gone),
            ..Self::default()
        }
    }

    /// Whether there was none.
    pub fn are_none(&self) -> bool {
        *self == Self::default()
    }

    /// Both together.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self::of(sum(self.values(), other.values()))
    }

    /// How many came since an earlier count. Whoever counts less than before began anew.
    #[must_use]
    pub fn since(self, earlier: Self) -> Self {
        Self::of(grown(self.values(), earlier.values()))
    }

    fn values(self) -> [u64; 4] {
        [
            self.unit_changed,
            self.unit_removed,
            self.release_changed,
            self.release_removed,
        ]
    }

    fn of([unit_changed, unit_removed, release_changed, release_removed]: [u64; 4]) -> Self {
        Self {
            unit_changed,
            unit_removed,
            release_changed,
            release_removed,
        }
    }
}

impl Report {
    /// The version that this build writes.
    pub const VERSION: u32 = 1;

    /// A report of what was taken and what came of it.
    pub fn new(
        cluster: ClusterName,
        held: Option<Held>,
        refused: Option<(u64, Refusal)>,
        applied: crate::apply::ApplyReport,
    ) -> Self {
        let (capacity, capacity_unknown) = match applied.room {
            Room::Known(capacity) => (Some(capacity), String::new()),
            Room::Unknown(why) => (None, why),
        };
        Self {
            version: Self::VERSION,
            cluster,
            held_read: true,
            held,
            refused,
            applied_sequence: applied.sequence,
            units: applied.units,
            kubernetes_version: applied.kubernetes_version,
            api_versions: applied.api_versions,
            without_hub_since: None,
            facts: applied.facts,
            nodes: applied.nodes,
            capacity,
            capacity_unknown,
            trouble: applied.trouble,
            waits_for_lease: applied.waits_for_lease,
            corrections: applied.corrections,
            hub_keys_known: KeysKnown::default(),
            agent: AgentCounts::default(),
        }
    }

    /// A report by somebody who could not even read what the cluster holds.
    pub fn unread(cluster: ClusterName, applied: crate::apply::ApplyReport) -> Self {
        Self {
            held_read: false,
            ..Self::new(cluster, None, None, applied)
        }
    }
}

/// How a unit fares in one cluster.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct UnitReport {
    /// The content that this result is about; `None` while it is removed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<Digest>,
    /// Where it stands.
    pub state: UnitState,
    /// Its health, over all its objects.
    pub health: Health,
    /// What it waits for, or why it failed, in a sentence; empty when there is nothing to say.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// How many objects are in which state.
    pub counts: Counts,
    /// The worst few objects.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub worst: Vec<ObjectResult>,
    /// Objects with fields that somebody else changed, the first few.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub drift: Vec<ObjectDrift>,
}

/// What differs between an object and what was applied for it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ObjectDrift {
    /// Which object, as its manifest names it.
    pub object: ObjectKey,
    /// Its API version.
    #[serde(default)]
    pub api_version: String,
    /// The fields, the first few.
    pub fields: Vec<FieldDrift>,
    /// How many more fields differ.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub more: usize,
    /// Who fights over it, in a sentence; empty where nobody does.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// The HelmChart whose release has it; none where its unit itself does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub chart: Option<ObjectKey>,
}

/// One field that differs. A Secret's values are left out.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FieldDrift {
    /// JSON pointer in the object.
    pub path: String,
    /// What was applied, as JSON; absent where the field was not applied, or may not be shown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wanted: Option<serde_json::Value>,
    /// What is there, as JSON; absent where the field is gone, or may not be shown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub found: Option<serde_json::Value>,
    /// Whether its values are left out, since it is a Secret's or too long.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub hidden: bool,
    /// The field manager that has it now; empty where nobody has.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub manager: String,
}

/// Where a unit stands in a cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum UnitState {
    /// Its content has not arrived yet.
    Waiting,
    /// Objects are being applied.
    Applying,
    /// Every object was applied.
    Applied,
    /// Some objects could not be applied; the others were.
    Failed,
    /// It left the delivery, and its objects are being removed.
    Removing,
    /// A word of a newer agent that this build does not know.
    #[serde(other)]
    Unknown,
}

/// The health of an object or of all of a unit, in kstatus' words.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Health {
    /// As it should be.
    Current,
    /// On its way.
    InProgress,
    /// Being deleted.
    Terminating,
    /// Will not become Current by itself.
    Failed,
    /// Not looked at yet, or a word of a newer agent that this build does not know.
    #[serde(other)]
    Unknown,
}

impl Health {
    /// The worse, the higher. What is not known is worse than what is on its way.
    fn rank(self) -> u8 {
        match self {
            Self::Current => 0,
            Self::InProgress => 1,
            Self::Unknown => 2,
            Self::Terminating => 3,
            Self::Failed => 4,
        }
    }
}

impl Ord for Health {
    fn cmp(&self, other: &Self) -> Ordering {
        self.rank().cmp(&other.rank())
    }
}

impl PartialOrd for Health {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// How many objects are in which state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Counts {
    /// All of the unit's objects.
    pub objects: usize,
    /// Applied as they should be.
    pub applied: usize,
    /// Refused by the API server or by us.
    pub failed: usize,
    /// Healthy.
    pub current: usize,
    /// Waiting to be removed.
    pub removing: usize,
    /// Those of them that something has held for longer than it should take.
    #[serde(skip_serializing_if = "is_zero")]
    pub stuck: usize,
    /// Waiting for something else to be there first.
    pub waiting: usize,
    /// With fields that somebody else changed and that were left so.
    pub drifted: usize,
    /// Left as they are, since somebody said so in Git.
    pub suspended: usize,
    /// Those of them that are not what Git says.
    #[serde(skip_serializing_if = "is_zero")]
    pub behind: usize,
}

/// One object's result.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ObjectResult {
    /// Which object.
    pub object: ObjectKey,
    /// Where it stands.
    pub state: ObjectState,
    /// Its health.
    pub health: Health,
    /// In the API server's own words, shortened; never with a Secret's values.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
}

impl ObjectResult {
    /// How soon somebody should look at it: the worst first, and what is as it should be last.
    pub fn rank(&self) -> u8 {
        match self.state {
            ObjectState::Failed => 0,
            ObjectState::Conflict => 1,
            ObjectState::Unsupported => 2,
            ObjectState::Applied if self.health == Health::Failed => 3,
            ObjectState::Blocked | ObjectState::Stuck => 4,
            ObjectState::Waiting | ObjectState::Unknown => 5,
            ObjectState::Suspended => 6,
            ObjectState::Kept => 7,
            ObjectState::Removing => 8,
            ObjectState::Applied => 9,
        }
    }
}

/// Where an object stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ObjectState {
    /// Applied as it should be.
    Applied,
    /// Waits for another object (its CRD or namespace, or what it depends on).
    Waiting,
    /// Something that it depends on failed.
    Blocked,
    /// Left as it is, since somebody said so in Git.
    Suspended,
    /// Somebody else owns a field of it.
    Conflict,
    /// Refused by the API server.
    Failed,
    /// It is of a form that is not delivered (an encrypted HelmChart).
    Unsupported,
    /// Left the delivery and is kept, since a proof for its removal is missing.
    Kept,
    /// Being removed.
    Removing,
    /// Being removed for longer than it should take; what holds it, such as a finalizer, is named.
    Stuck,
    /// A word of a newer agent that this build does not know.
    #[serde(other)]
    Unknown,
}

fn is_zero(count: &usize) -> bool {
    *count == 0
}

/// What an agent does that hears of no hub since then (in seconds since 1970), in the words that it and the hub both use.
pub fn enforcing(sequence: Option<u64>, since: i64) -> String {
    let since = render::time::rfc3339(since);
    match sequence {
        Some(sequence) => format!("enforcing sequence {sequence} since {since}"),
        None => format!("enforcing nothing since {since}"),
    }
}
