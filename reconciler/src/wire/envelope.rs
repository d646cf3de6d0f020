//! The envelope: all that one cluster is told.

use std::collections::BTreeMap;
use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use render::describe::Description;
use render::model::{DriftMode, SyncMode};
use render::{ByObject, ClusterName, Digest, Revision, UnitKey};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

/// All that one cluster is told: the complete list of its units. What is not in it is removed, by proof.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Envelope {
    /// Version of this form.
    pub version: u32,
    /// Whom it is for.
    pub cluster: ClusterName,
    /// Root commit of the hub's `released`.
    pub lineage: Revision,
    /// Its place in the lineage: a lower one is old news.
    pub sequence: u64,
    /// The commit of `released` it was made from.
    pub released: Revision,
    /// Unit → what it is.
    pub units: BTreeMap<UnitKey, EnvelopeUnit>,
    /// Digest over `units`, recomputed by the receiver.
    pub list: Digest,
    /// The cluster leaves the fleet, and what it has and this list lacks stays there as nobody's. An agent that does not
    /// know the word cannot make out the list's digest, refuses it, and keeps all.
    #[serde(default, skip_serializing_if = "is_false")]
    pub orphan: bool,
    /// Units that left this cluster and whose objects stay there, whatever was said of them when they were delivered:
    /// unit → when they left, in seconds since 1970. It is not in the list's digest, so that an agent that does not know
    /// it goes by what it was told before, and refuses nothing else.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub orphaned: BTreeMap<UnitKey, i64>,
    /// Who applies, and what the hub may reach. It is not in the list's digest, and an envelope that is held already may be
    /// told again in another mode; an agent that does not know the word applies in any.
    #[serde(default, skip_serializing_if = "is_dual")]
    pub mode: SyncMode,
    /// The source commit whose files say so. Absent from hubs that do not say it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode_source: Option<Revision>,
    /// The source commit whose mode the cluster goes by, where the hub knows that `mode_source` comes after it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode_instead: Option<Revision>,
    /// Permission to change over from another lineage.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lineage_grant: Option<LineageGrant>,
}

/// One unit of an envelope.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EnvelopeUnit {
    /// Digest of its Description; the content follows when the agent lacks it.
    pub digest: Digest,
    /// The source commit it came from.
    pub revision: Revision,
    /// Replicas by object, where they are divided.
    #[serde(default, skip_serializing_if = "ByObject::is_empty")]
    pub replicas: ByObject,
    /// What is done about fields that somebody else changed.
    #[serde(default, skip_serializing_if = "DriftMode::is_default")]
    pub drift: DriftMode,
    /// What must hold before it is applied; none are defined yet, and an unknown one holds the unit.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub gates: Vec<String>,
}

/// The hub's word that a new lineage is meant, given when `fleet.yaml` names it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LineageGrant {
    /// The new lineage.
    pub lineage: Revision,
    /// Base64 of the hub key's Ed25519 signature over its cluster and lineage.
    pub signature: String,
}

impl LineageGrant {
    /// A grant for one cluster; `sign` signs with the hub's key.
    pub fn new(cluster: &ClusterName, lineage: Revision, sign: impl FnOnce(&[u8]) -> Vec<u8>) -> Self {
        let signature = STANDARD.encode(sign(&signed_bytes(cluster, &lineage)));
        Self { lineage, signature }
    }

    /// Whether it was given to this cluster; `verify` checks a signature over bytes, in this order.
    pub fn is_signed(&self, cluster: &ClusterName, verify: impl FnOnce(&[u8], &[u8]) -> bool) -> bool {
        let signature = STANDARD.decode(&self.signature);
        signature.is_ok_and(|signature| verify(&signed_bytes(cluster, &self.lineage), &signature))
    }
}

/// The bytes that are signed for a cluster and a lineage.
fn signed_bytes(cluster: &ClusterName, lineage: &Revision) -> Vec<u8> {
    format!("flotilla lineage v1\n{cluster}\n{lineage}\n").into_bytes()
}

/// What a cluster holds: the newest envelope it took.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Held {
    /// Lineage of that envelope.
    pub lineage: Revision,
    /// Sequence of that envelope.
    pub sequence: u64,
    /// Digest over its list.
    pub list: Digest,
    /// The commit of `released` it was made from.
    pub released: Revision,
    /// Unit → what it said of it.
    pub units: BTreeMap<UnitKey, EnvelopeUnit>,
    /// Whether what the list lacks stays.
    #[serde(default, skip_serializing_if = "is_false")]
    pub orphan: bool,
    /// Units that left and whose objects stay: unit → when they left.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub orphaned: BTreeMap<UnitKey, i64>,
    /// Who applies, and what the hub may reach.
    #[serde(default, skip_serializing_if = "is_dual")]
    pub mode: SyncMode,
    /// The source commit whose files say so. Absent where the hub did not say it, and from agents that do not keep it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode_source: Option<Revision>,
}

impl Held {
    /// The contents that it names; one may be named twice.
    pub fn digests(&self) -> impl Iterator<Item = Digest> {
        self.units.values().map(|unit| unit.digest)
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
fn is_dual(mode: &SyncMode) -> bool {
    *mode == SyncMode::Dual
}

fn is_false(value: &bool) -> bool {
    !*value
}

/// The hub's messages on a deliver stream.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Deliver {
    /// A new envelope; the newest wins.
    Envelope {
        /// The envelope.
        envelope: Envelope,
    },
    /// A content that was asked for.
    Content {
        /// Its digest.
        digest: Digest,
        /// Its bytes as they were digested.
        description: Box<RawValue>,
    },
    /// A content that was asked for and that the hub cannot give.
    Missing {
        /// Its digest.
        digest: Digest,
        /// Why.
        message: String,
    },
}

/// The agent's messages on a deliver stream.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", tag = "type")]
pub enum DeliverReply {
    /// Contents the agent lacks.
    Need(ContentRequest),
    /// The envelope is taken: journalled, and being applied.
    Taken {
        /// Its sequence.
        sequence: u64,
    },
    /// The envelope is refused; what was held stays.
    Refused {
        /// Its sequence.
        sequence: u64,
        /// Why.
        refusal: super::Refusal,
    },
}

/// Contents the agent lacks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ContentRequest {
    /// Their digests.
    pub digests: Vec<Digest>,
}

/// The digest over a list of units, and over whether what it lacks stays.
pub fn list_digest(units: &BTreeMap<UnitKey, EnvelopeUnit>, orphan: bool) -> Digest {
    let units = serde_json::to_value(units).expect("a map with text keys and plain fields is JSON");
    if orphan {
        Digest::of_value(&serde_json::json!({ "orphan": true, "units": units }))
    } else {
        Digest::of_value(&units)
    }
}

impl Envelope {
    /// The version that this build writes.
    pub const VERSION: u32 = 1;

    /// What a cluster that takes this envelope holds.
    pub fn held(&self) -> Held {
        Held {
            lineage: self.lineage.clone(),
            sequence: self.sequence,
            list: self.list,
            released: self.released.clone(),
            units: self.units.clone(),
            orphan: self.orphan,
            orphaned: self.orphaned.clone(),
            mode: self.mode,
            mode_source: self.mode_source.clone(),
        }
    }
}

/// Without the content, which may hold Secrets.
impl fmt::Debug for Deliver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Envelope { envelope } => f.debug_struct("Envelope").field("envelope", envelope).finish(),
            Self::Content { digest, .. } => f
                .debug_struct("Content")
                .field("digest", digest)
                .finish_non_exhaustive(),
            Self::Missing { digest, message } => f
                .debug_struct("Missing")
                .field("digest", digest)
                .field("message", message)
                .finish(),
        }
    }
}

impl Deliver {
    /// The message that carries a content.
    pub fn content(description: &Description) -> Self {
        let text = String::from_utf8(description.to_json()).expect("canonical JSON is UTF-8");
        let body = RawValue::from_string(text).expect("canonical JSON is JSON");
        Self::Content {
            digest: description.digest,
            description: body,
        }
    }
}
