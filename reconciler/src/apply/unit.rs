//! A unit as it is being applied: its objects, where each belongs, and what came of it.
//!
//! In: a unit as it is desired, and the cluster's kinds. Out: slots that say what is to be sent. What the cluster has,
//! and what units mean to each other, is the session's.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use render::describe::Content;
use render::model::{ApplyPolicy, DeletionPolicy, DriftMode};
use render::{ByObject, Digest, ObjectKey, UnitKey};
use serde_json::Value;

use super::apply_set;
use super::discovery::{Kinds, ServedKind};
use super::gate::Gate;
use super::health::Check;
use super::helm::Chart;
use super::inventory::Entry;
use super::object::{self, Identity, Unfit};
use super::{DesiredUnit, ownership};
use crate::wire::ObjectState;

/// One unit as it is being applied.
pub(super) struct Unit {
    pub(super) digest: Digest,
    pub(super) replicas: ByObject,
    /// What is done about fields that somebody else changed.
    pub(super) drift: DriftMode,
    /// Whether its objects stay when it leaves.
    pub(super) orphan: bool,
    /// How it is applied, as its content says.
    pub(super) policy: ApplyPolicy,
    /// The id of its ApplySet, where its objects say it.
    pub(super) apply_set: Option<String>,
    /// The units that must be healthy first on this cluster.
    pub(super) depends_on: Vec<UnitKey>,
    /// The rules by which kinds of it are judged, where people wrote some.
    pub(super) checks: Vec<Check>,
    /// Whether some object of it names others that it needs.
    pub(super) has_needs: bool,
    /// Whether it waits for `depends_on`.
    pub(super) gate: Gate,
    /// As described, with replicas put in.
    pub(super) objects: Vec<Content>,
    pub(super) slots: Vec<Slot>,
    pub(super) unfit: Vec<Unfit>,
    /// Its HelmCharts, which are no objects of the cluster.
    pub(super) charts: Vec<Chart>,
    /// Objects that were there before this content came, and were nobody's.
    pub(super) adopted: BTreeSet<ObjectKey>,
}

/// One object of a unit.
pub(super) struct Slot {
    /// Its place in the unit's objects.
    pub(super) content: usize,
    pub(super) identity: Identity,
    /// Where it belongs in the cluster; `None` while its kind is not known.
    pub(super) place: Option<Place>,
    /// Whether another unit has it.
    pub(super) yielded: bool,
    /// Whether a document of its unit does not open, so that nothing of the unit is applied.
    pub(super) sealed: bool,
    /// Whether it waits for something that it needs.
    pub(super) held: bool,
    /// Whether it was sent in this pass; each is sent once.
    pub(super) tried: bool,
    /// What was applied for it before, until this is.
    pub(super) before: Option<Before>,
    /// Fields without which it was applied, since others own them.
    pub(super) refused: Vec<String>,
    pub(super) outcome: Outcome,
}

/// What was applied for an object before what is to be applied now.
#[derive(Clone)]
pub(super) struct Before {
    /// Its manifest.
    pub(super) object: Arc<Value>,
    /// Its digest, as the inventory has it if this is what was applied.
    pub(super) digest: String,
    /// Fields without which it was applied.
    pub(super) refused: Vec<String>,
}

/// Where an object belongs, and what should be there.
#[derive(Clone)]
pub(super) struct Place {
    pub(super) key: ObjectKey,
    pub(super) kind: Arc<ServedKind>,
    /// Digest of what is sent.
    pub(super) digest: String,
}

/// What came of an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Outcome {
    pub(super) state: ObjectState,
    pub(super) message: String,
}

impl Outcome {
    pub(super) fn applied() -> Self {
        Self::new(ObjectState::Applied, String::new())
    }

    pub(super) fn waiting(message: impl Into<String>) -> Self {
        Self::new(ObjectState::Waiting, message)
    }

    pub(super) fn new(state: ObjectState, message: impl Into<String>) -> Self {
        let message = message.into();
        Self { state, message }
    }
}

impl Unit {
    pub(super) fn new(key: &UnitKey, unit: &DesiredUnit, namespace: &str) -> Self {
        let mut slots = Vec::new();
        let mut unfit = Vec::new();
        let policy = &unit.description.apply;
        let mut charts = Vec::new();
        let objects = unit.description.with_replicas(&unit.replicas);
        for (content, object) in objects.iter().enumerate() {
            if let Some(chart) = Chart::of(object) {
                charts.push(chart);
                continue;
            }
            match object::identify(object) {
                Ok(identity) => slots.push(Slot {
                    content,
                    identity,
                    place: None,
                    yielded: false,
                    sealed: false,
                    held: false,
                    tried: false,
                    before: None,
                    refused: Vec::new(),
                    outcome: Outcome::waiting(String::new()),
                }),
                Err(found) => unfit.push(*found),
            }
        }
        Self {
            digest: unit.description.digest,
            replicas: unit.replicas.clone(),
            drift: unit.drift,
            orphan: unit.description.apply.deletion == DeletionPolicy::Orphan,
            policy: unit.description.apply.clone(),
            apply_set: policy.apply_set_labels.then(|| apply_set::id_of(key, namespace)),
            // A dependency that must hold on other clusters too must hold on this one.
            depends_on: policy.depends_on.iter().map(|needed| needed.unit.clone()).collect(),
            checks: policy.health_checks.iter().map(Check::new).collect(),
            has_needs: slots.iter().any(|slot: &Slot| !slot.identity.needs.is_empty())
                || charts.iter().any(|chart| !chart.needs.is_empty()),
            gate: Gate::Open,
            objects,
            slots,
            unfit,
            charts,
            adopted: BTreeSet::new(),
        }
    }

    /// Whether a document of it does not open.
    pub(super) fn is_sealed(&self) -> bool {
        self.slots.iter().any(|slot| slot.sealed)
    }

    /// What was applied last for each of its objects, before it goes.
    pub(super) fn manifests(&self) -> impl Iterator<Item = (ObjectKey, Before)> {
        self.slots.iter().filter_map(|slot| {
            let before = slot.before.clone().or_else(|| self.applied(slot))?;
            Some((slot.identity.key.clone(), before))
        })
    }

    fn applied(&self, slot: &Slot) -> Option<Before> {
        let Content::Plain { object } = &self.objects[slot.content] else {
            return None;
        };
        let refused = slot.refused.clone();
        let without: Vec<_> = refused.iter().map(String::as_str).collect();
        Some(Before {
            object: object.clone(),
            digest: object::digest_without(&slot.place.as_ref()?.digest, &without),
            refused,
        })
    }

    /// Objects whose replicas its autoscalers set.
    pub(super) fn scaled(&self) -> impl Iterator<Item = ObjectKey> {
        self.objects.iter().filter_map(|content| match content {
            Content::Plain { object } => ownership::scaled_by(object),
            _ => None,
        })
    }

    pub(super) fn keys(&self) -> impl Iterator<Item = &ObjectKey> {
        self.slots
            .iter()
            .filter_map(|slot| slot.place.as_ref())
            .map(|place| &place.key)
    }

    pub(super) fn resolve(&mut self, key: &UnitKey, kinds: &Kinds) {
        for slot in &mut self.slots {
            let identity = &slot.identity;
            let kind = kinds.find(&identity.api_version, &identity.key.kind);
            if slot.place.as_ref().is_some_and(|place| Some(&place.kind) == kind) {
                continue;
            }
            slot.place = None;
            let Some(kind) = kind else {
                slot.outcome = Outcome::waiting(kinds.absence(&identity.api_version, &identity.key.kind));
                continue;
            };
            let namespace = match (kind.namespaced, identity.key.namespace.as_str()) {
                (false, "") => "",
                (true, "") => "default",
                (true, namespace) => namespace,
                (false, namespace) => {
                    let message = format!("{} has no namespaces, and {namespace} is given", identity.key.kind);
                    slot.outcome = Outcome::new(ObjectState::Failed, message);
                    continue;
                }
            };
            let digest = match &self.objects[slot.content] {
                Content::Chart { object, .. } | Content::Plain { object } => {
                    object::digest(&sent(object, key, namespace, self.apply_set.as_deref()))
                }
                Content::Encrypted {
                    original, overrides, ..
                } => {
                    let sealed = object::sealed_digest(original, overrides, key, namespace);
                    object::digest_with(sealed, self.apply_set.as_deref())
                }
            };
            slot.outcome = Outcome::waiting(String::new());
            slot.place = Some(Place {
                key: in_namespace(&identity.key, namespace),
                kind: kind.clone(),
                digest,
            });
        }
    }

    /// Leaves objects that another unit has.
    pub(super) fn yield_claims(&mut self, own: &UnitKey, claims: &BTreeMap<ObjectKey, UnitKey>) {
        for slot in &mut self.slots {
            let owner = slot.place.as_ref().and_then(|place| claims.get(&place.key));
            let other = owner.filter(|owner| *owner != own);
            if let Some(owner) = other {
                slot.outcome = Outcome::new(ObjectState::Conflict, format!("unit {owner} delivers it too"));
            } else if slot.yielded {
                slot.outcome = Outcome::waiting(String::new());
            }
            slot.yielded = other.is_some();
        }
    }
}

impl Unit {
    /// Whether an object that was applied once may now be deleted and made anew. Of one that is encrypted, nobody has looked.
    pub(super) fn may_replace(&self, slot: &Slot, entry: &Entry) -> bool {
        let Some(place) = &slot.place else { return false };
        let differs = entry.uid.is_some() && entry.applied.as_deref() != Some(place.digest.as_str());
        differs
            && match &self.objects[slot.content] {
                Content::Chart { .. } => false,
                Content::Plain { object } => {
                    ownership::objection(&place.key, object, self.policy.replace, true).is_none()
                }
                Content::Encrypted { .. } => true,
            }
    }
}

impl Slot {
    /// What is sent for an object of a unit; `None` for one that is encrypted.
    pub(super) fn manifest(&self, key: &UnitKey, unit: &Unit) -> Option<Value> {
        let place = self.place.as_ref()?;
        match &unit.objects[self.content] {
            Content::Chart { object, .. } | Content::Plain { object } => {
                Some(sent(object, key, &place.key.namespace, unit.apply_set.as_deref()))
            }
            Content::Encrypted { .. } => None,
        }
    }

    /// Whether it is still to be sent in this pass.
    pub(super) fn needs_sending(&self) -> bool {
        let waits = self.yielded || self.sealed || self.held;
        self.place.is_some() && !waits && !self.tried && !self.is_settled()
    }

    /// Whether nothing is to be done about it.
    pub(super) fn is_settled(&self) -> bool {
        matches!(self.outcome.state, ObjectState::Applied | ObjectState::Suspended)
    }

    pub(super) fn is_unresolved(&self) -> bool {
        self.place.is_none() && self.outcome.state == ObjectState::Waiting
    }
}

pub(super) fn in_namespace(key: &ObjectKey, namespace: &str) -> ObjectKey {
    ObjectKey {
        namespace: namespace.to_owned(),
        ..key.clone()
    }
}

/// What is sent for an object of a unit, as a member of its ApplySet where it has one.
pub(super) fn sent(object: &Value, unit: &UnitKey, namespace: &str, apply_set: Option<&str>) -> Value {
    apply_set::member(object::sent(object, unit, namespace), apply_set)
}
