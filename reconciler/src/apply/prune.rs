//! Whether an object may be removed: only what is proven to be ours and unwanted.
//!
//! The proof has four parts (invariant 3): the inventory has its key and UID; a complete and newer
//! delivery lacks it; the live object has that UID; our field manager is still on it. Whatever is
//! missing is the reason why it is kept, in words for people.

use kube::core::ObjectMeta;
use render::keep::kept_by;
use render::{ObjectKey, UnitKey};

use super::inventory::Entry;
use super::{FIELD_MANAGER, NAMESPACE};
use crate::limits::FINALIZER_PATIENCE;

/// Namespaces that clusters cannot do without, and our own.
const PROTECTED_NAMESPACES: [&str; 5] = ["default", "kube-system", "kube-public", "kube-node-lease", NAMESPACE];

/// What the delivery at hand says, as far as removal is concerned.
#[derive(Clone, Copy, Debug)]
pub(super) struct Evidence<'a> {
    /// Lineage of the delivery.
    pub lineage: &'a str,
    /// Sequence of the delivery.
    pub sequence: u64,
    /// Units whose content has not arrived; while there are any, the delivery is not complete.
    pub missing: usize,
}

/// The live object, as far as removal is concerned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Live {
    /// The API server says that there is none.
    Gone,
    /// There is one.
    Present(Proof),
    /// Nobody can say: the kind is not served, or its scope changed.
    Unknown(String),
}

/// What a live object proves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Proof {
    /// Its UID.
    pub uid: String,
    /// Its version, so that only the object that was looked at is deleted.
    pub resource_version: String,
    /// Whether our field manager is still on it.
    pub managed: bool,
    /// The annotation that keeps it, if it has one.
    pub kept_by: Option<&'static str>,
    /// What is known of its deletion, if it is being deleted already.
    pub going: Option<Going>,
}

/// An object that is being deleted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Going {
    /// Since when, in seconds since 1970.
    pub since: i64,
    /// What has to be done before it is gone.
    pub finalizers: Vec<String>,
}

/// What happens to an object of the inventory that the delivery lacks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Decision {
    /// Every part of the proof is there: delete exactly this one.
    Remove {
        /// Its UID.
        uid: String,
        /// Its version.
        resource_version: String,
    },
    /// It is being deleted; wait.
    Removing(Going),
    /// It stays as nobody's: take our marks off exactly this one, and forget it.
    Orphan {
        /// Its UID.
        uid: String,
        /// Its version.
        resource_version: String,
    },
    /// There is nothing of ours left; forget it.
    Forget,
    /// It was intended, or was to be made anew, and our field manager is on it, so it was applied, and the process ended
    /// before it could note the UID: note it now. It may be removed by a later look, with a whole proof.
    Confirm {
        /// The UID.
        uid: String,
    },
    /// It stays, and why.
    Keep(String),
}

impl Proof {
    /// Reads the proof from an object's metadata.
    pub(super) fn of(metadata: &ObjectMeta) -> Self {
        Self {
            uid: metadata.uid.clone().unwrap_or_default(),
            resource_version: metadata.resource_version.clone().unwrap_or_default(),
            managed: metadata
                .managed_fields
                .iter()
                .flatten()
                .any(|entry| entry.manager.as_deref() == Some(FIELD_MANAGER)),
            kept_by: kept_by(|name| metadata.annotations.as_ref()?.get(name).map(String::as_str)),
            going: Going::of(metadata),
        }
    }
}

/// Decides about an object that the delivery lacks.
pub(super) fn decide(key: &ObjectKey, entry: &Entry, evidence: &Evidence<'_>, live: &Live) -> Decision {
    if let Some(reason) = objection(key, entry, evidence) {
        return Decision::Keep(reason);
    }
    let proof = match live {
        Live::Gone => return Decision::Forget,
        Live::Unknown(reason) => return Decision::Keep(reason.clone()),
        Live::Present(proof) => proof,
    };
    if entry.uid.is_none() {
        return unconfirmed(proof);
    }
    if entry.uid.as_deref() != Some(proof.uid.as_str()) || proof.uid.is_empty() {
        if entry.replacing && proof.managed && !proof.uid.is_empty() {
            return Decision::Confirm { uid: proof.uid.clone() };
        }
        if entry.orphan {
            return Decision::Forget;
        }
        return Decision::Keep("another object has its name now: the UID is not the one that was applied".to_owned());
    }
    if let Some(going) = &proof.going {
        return Decision::Removing(going.clone());
    }
    if entry.orphan {
        return Decision::Orphan {
            uid: proof.uid.clone(),
            resource_version: proof.resource_version.clone(),
        };
    }
    if let Some(annotation) = proof.kept_by {
        return Decision::Keep(format!("the annotation {annotation} keeps it"));
    }
    if !proof.managed {
        return Decision::Keep(format!("the field manager {FIELD_MANAGER} is no longer on it"));
    }
    Decision::Remove {
        uid: proof.uid.clone(),
        resource_version: proof.resource_version.clone(),
    }
}

/// An object that was intended, and that nobody saw applied.
fn unconfirmed(proof: &Proof) -> Decision {
    if proof.managed {
        let uid = proof.uid.clone();
        return Decision::Confirm { uid };
    }
    // Without our field manager nothing of ours is on it: it was refused, or never sent.
    Decision::Forget
}

/// Why an object stays whatever its live state is; `None` when only the live object is left to look at.
pub(super) fn objection(key: &ObjectKey, entry: &Entry, evidence: &Evidence<'_>) -> Option<String> {
    if evidence.missing > 0 {
        return Some(format!(
            "the delivery is not complete: {} units have not arrived",
            evidence.missing
        ));
    }
    if !entry.orphan
        && let Some(reason) = protected(key)
    {
        return Some(reason.to_owned());
    }
    if entry.lineage != evidence.lineage {
        return Some(format!("it was applied under another lineage, {}", entry.lineage));
    }
    if entry.sequence >= evidence.sequence {
        let (applied, delivered) = (entry.sequence, evidence.sequence);
        return Some(format!(
            "sequence {delivered} is not newer than {applied}, which applied it"
        ));
    }
    None
}

/// An object that still needs `key`: one inside the namespace, or one of the kind that it defines.
/// `plural` is the plural of an object's kind, where the API server knows it.
pub(super) fn dependant<'a>(
    key: &ObjectKey,
    others: impl IntoIterator<Item = &'a ObjectKey>,
    plural: impl Fn(&ObjectKey) -> Option<String>,
) -> Option<&'a ObjectKey> {
    let needs = |other: &ObjectKey| match (key.group.as_str(), key.kind.as_str()) {
        ("", "Namespace") => other.namespace == key.name,
        ("apiextensions.k8s.io", "CustomResourceDefinition") => {
            let (defined, group) = key.name.split_once('.').unwrap_or((&key.name, ""));
            // A kind that is not known right now may well be the one.
            other.group == group && plural(other).is_none_or(|plural| plural == defined)
        }
        _ => false,
    };
    others.into_iter().find(|other| needs(other))
}

/// Why an object is never removed, whatever anybody proves.
fn protected(key: &ObjectKey) -> Option<&'static str> {
    let is_namespace = key.group.is_empty() && key.kind == "Namespace";
    if is_namespace && PROTECTED_NAMESPACES.contains(&key.name.as_str()) {
        return Some("this namespace is never removed");
    }
    // The applier's own lease, inventory and keys are here, and perhaps the applier itself.
    (key.namespace == NAMESPACE).then_some("nothing in the namespace flotilla-system is ever removed")
}

impl Going {
    fn of(metadata: &ObjectMeta) -> Option<Self> {
        let since = metadata.deletion_timestamp.as_ref()?;
        Some(Self {
            since: since.0.as_second(),
            finalizers: metadata.finalizers.clone().unwrap_or_default(),
        })
    }

    /// What holds it, in words for people, once it takes longer than it should; `now` is in seconds since 1970.
    pub(super) fn stuck(&self, now: i64) -> Option<String> {
        let patience = i64::try_from(FINALIZER_PATIENCE.as_secs()).unwrap_or(i64::MAX);
        if now.saturating_sub(self.since) < patience {
            return None;
        }
        let since = render::time::rfc3339(self.since);
        Some(match self.finalizers.as_slice() {
            [] => format!("it is being deleted since {since}, and no finalizer of its own holds it"),
            [one] => format!("its removal is held by finalizer {one} since {since}"),
            several => format!("its removal is held by finalizers {} since {since}", several.join(", ")),
        })
    }
}

/// The words of an object that waits for others of its unit to go first.
pub(super) fn waits_for(unit: &UnitKey) -> String {
    format!("waits until what was applied after it in {unit} is gone")
}

#[cfg(test)]
mod tests;
