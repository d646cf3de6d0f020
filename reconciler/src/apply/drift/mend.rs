//! A pass over the objects that somebody changed, and over no others.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ManagedFieldsEntry;
use render::ObjectKey;
use render::model::{DriftMode, IgnoreRule};
use serde_json::Value;
use tokio::sync::watch;
use tokio::time::Instant;
use tracing::info;

use super::compare::{Basis, Live, drift};
use super::ignore::is_ignored;
use super::touch::Touch;
use crate::apply::Desired;
use crate::apply::ownership::{REPLICAS, is_left_to_scaler, pointer};
use crate::apply::pass::{Brought, Flight, PassEnd};
use crate::apply::session::{Interrupt, Outcome, Session, SessionError};
use crate::apply::status::ApplyReport;
use crate::apply::verify::was_left;
use crate::limits::DRIFT_FIELDS_MAX;
use crate::wire::{Corrections, FieldDrift, ObjectState};

impl Session {
    /// Puts right what somebody changed: each such object is sent through the same stages as in a pass.
    pub(in crate::apply) async fn mend(
        &mut self,
        desired: &Desired,
        interrupt: &Interrupt,
        report: &watch::Sender<ApplyReport>,
    ) -> Result<PassEnd, SessionError> {
        let brought = Brought::new(&desired.held.lineage, desired.held.sequence);
        let due = self.triage();
        let due = self.without_suspended(due);
        let mended = self.send_again(due.clone(), &brought, interrupt, report).await;
        self.drift.focus = None;
        self.decryption.forget();
        if interrupt.may_write() {
            let flushed = self.inventory.flush(&self.shards).await;
            flushed.map_err(SessionError::Inventory)?;
        }
        mended?;
        self.told_corrections();
        self.look_at_drift().await?;
        self.publish(report);
        if interrupt.is_raised() {
            return Ok(PassEnd::Interrupted);
        }
        let slots = self.units.values().flat_map(|unit| &unit.slots);
        let mut open = slots.filter(|slot| {
            let is_due = slot.place.as_ref().is_some_and(|place| due.contains(&place.key));
            is_due && !slot.is_settled()
        });
        Ok(if open.next().is_none() {
            PassEnd::Settled
        } else {
            PassEnd::Unsettled
        })
    }

    async fn send_again(
        &mut self,
        due: BTreeSet<ObjectKey>,
        brought: &Brought,
        interrupt: &Interrupt,
        report: &watch::Sender<ApplyReport>,
    ) -> Result<(), SessionError> {
        if due.is_empty() {
            return Ok(());
        }
        for slot in self.units.values_mut().flat_map(|unit| &mut unit.slots) {
            let is_due = slot.place.as_ref().is_some_and(|place| due.contains(&place.key));
            if is_due {
                slot.tried = false;
                if slot.outcome.state == ObjectState::Applied {
                    slot.outcome = Outcome::waiting("");
                }
            }
        }
        self.drift.focus = Some(due);
        self.open_documents().await?;
        let mut flight = Flight::new();
        let sent = self.send_stages(&mut flight, brought, interrupt, report).await;
        let drained = self.land(&mut flight, brought, interrupt).await;
        sent.and(drained)
    }

    /// Decides about everything that somebody changed. Gives what is to be put right now.
    pub(in crate::apply) fn triage(&mut self) -> BTreeSet<ObjectKey> {
        let touches = std::mem::take(&mut self.drift.touches);
        let now = self.drift.now();
        let mut due = BTreeSet::new();
        let claims = self.claims_of(touches.keys().cloned().collect());
        let judge = |(key, touch): (ObjectKey, Touch)| {
            let claim = claims.get(&key)?;
            let taken = claim.taken(&touch);
            let is_theirs = !touch.is_gone && claim.tells(&touch) && taken.is_empty();
            Some((taken, is_theirs, claim.mode, key, touch))
        };
        let judged: Vec<_> = touches.into_iter().filter_map(judge).collect();
        for (fields, is_theirs, mode, key, touch) in judged {
            if mode != DriftMode::Correct && !touch.is_gone {
                self.leave(&key, &touch);
                continue;
            }
            let first = fields.first();
            let manager = first.map_or("", |field| &field.manager);
            let path = first.map_or("", |field| &field.path);
            let at = self.drift.fights.touched(&key, manager, path, now);
            let is_gone = touch.is_gone;
            if is_theirs {
                self.drift.mending.remove(&key);
            } else {
                self.drift.mending.insert(key.clone(), Mending { fields, is_gone });
            }
            if at <= now {
                self.drift.resting.remove(&key);
                due.insert(key);
            } else {
                self.leave(&key, &touch);
                self.drift.resting.insert(key, self.drift.begun + at);
            }
        }
        let instant = Instant::now();
        let rested = self.drift.resting.extract_if(.., |_, at| *at <= instant);
        let rested: Vec<_> = rested.map(|(key, _)| key).collect();
        for key in rested {
            if let Some(known) = self.known.get_mut(&key) {
                known.fresh = false;
                // What was left is not how it should be, also where a whole pass comes first.
                known.fields = None;
            }
            due.insert(key);
        }
        due
    }

    /// Without those that somebody suspended: what was changed of them is told, and put right once they are resumed.
    fn without_suspended(&mut self, mut due: BTreeSet<ObjectKey>) -> BTreeSet<ObjectKey> {
        if due.is_empty() {
            return due;
        }
        let held = self.held_back(&due);
        due.retain(|key| !held.contains(key));
        self.drift.unlooked.extend(held);
        due
    }

    /// It stays as it is: what is there now is what it is compared with from now on, and what differs is told.
    fn leave(&mut self, key: &ObjectKey, touch: &Touch) {
        if let Some(known) = self.known.get_mut(key) {
            known.fields = touch.fields;
            known.fresh = true;
        }
        self.drift.unlooked.insert(key.clone());
    }

    /// What units say of these objects, by their keys.
    pub(super) fn claims_of(&self, keys: BTreeSet<ObjectKey>) -> BTreeMap<ObjectKey, Claim<'_>> {
        let mut claims = BTreeMap::new();
        for (unit_key, unit) in self.units.iter().filter(|_| !keys.is_empty()) {
            for slot in unit.slots.iter().filter(|slot| !slot.yielded) {
                let Some(place) = slot.place.as_ref().filter(|place| keys.contains(&place.key)) else {
                    continue;
                };
                let claim = Claim {
                    manifest: slot.manifest(unit_key, unit),
                    mode: unit.drift,
                    basis: match self.inventory.get(&place.key) {
                        Some(entry) if was_left(entry, unit_key, place) => Basis::Applied,
                        _ => Basis::Another,
                    },
                    rules: unit
                        .policy
                        .ignore
                        .iter()
                        .filter(|rule| rule.concerns(&place.key))
                        .collect(),
                    is_scaled: self.scaled.contains(&slot.identity.key),
                };
                claims.insert(place.key.clone(), claim);
            }
        }
        claims
    }

    /// Says what was put right, each object once.
    pub(in crate::apply) fn told_corrections(&mut self) {
        let now = self.drift.now();
        let sent = self.sent_again();
        let known = &self.known;
        let drift = &mut self.drift;
        let resting = &drift.resting;
        let is_fresh = |key: &ObjectKey| known.get(key).is_some_and(|known| known.fresh);
        let is_right = |key: &ObjectKey| is_fresh(key) && !resting.contains_key(key);
        let right: Vec<_> = drift.mending.extract_if(.., |key, _| is_right(key)).collect();
        for (object, Mending { mut fields, is_gone }) in right {
            drift.found.remove(&object);
            let corrected = match sent.get(&object) {
                // Whoever changed it has changed it back, or its unit is not ours to keep any more.
                None => false,
                Some(Resent::Whole) => true,
                Some(Resent::Without(refused)) => {
                    fields.retain(|field| !refused.contains(&field.path));
                    !fields.is_empty()
                }
            };
            if !corrected {
                continue;
            }
            drift.fights.corrected(&object, now);
            self.corrections.add(&Corrections::of_unit(is_gone));
            let manager = fields.first().map_or("", |field| field.manager.as_str());
            let paths: Vec<_> = fields
                .iter()
                .take(DRIFT_FIELDS_MAX)
                .map(|field| field.path.as_str())
                .collect();
            info!(%object, manager, fields = paths.join(" "), "Corrected drift.");
        }
    }

    /// What was being put right and was sent in this pass.
    fn sent_again(&self) -> BTreeMap<ObjectKey, Resent> {
        let mut sent = BTreeMap::new();
        for (unit_key, unit) in self.units.iter().filter(|_| !self.drift.mending.is_empty()) {
            for slot in unit.slots.iter().filter(|slot| slot.tried && !slot.yielded) {
                let Some(place) = &slot.place else { continue };
                if !self.drift.mending.contains_key(&place.key) {
                    continue;
                }
                let how = match slot.outcome.state {
                    ObjectState::Applied => Resent::Whole,
                    ObjectState::Conflict => {
                        let manifest = slot.manifest(unit_key, unit).unwrap_or_default();
                        let pointers = slot.refused.iter().filter_map(|words| pointer(words, &manifest));
                        Resent::Without(pointers.collect())
                    }
                    _ => continue,
                };
                sent.insert(place.key.clone(), how);
            }
        }
        sent
    }
}

/// An object that is being put right.
pub(super) struct Mending {
    /// The fields that differed, as far as they are known.
    fields: Vec<FieldDrift>,
    /// Whether it was not there any more.
    is_gone: bool,
}

/// How an object was sent that others had changed.
enum Resent {
    /// As it should be.
    Whole,
    /// Without the fields at these JSON pointers, which stay as others have them.
    Without(BTreeSet<String>),
}

/// What a unit says of an object.
pub(super) struct Claim<'a> {
    /// What is sent for it; `None` where it is encrypted.
    manifest: Option<Value>,
    mode: DriftMode,
    basis: Basis,
    /// The rules about it.
    rules: Vec<&'a IgnoreRule>,
    /// Whether an autoscaler sets its replicas.
    is_scaled: bool,
}

impl Claim<'_> {
    /// The fields that differ, apart from those that rules leave out.
    pub(super) fn differing(&self, live: Live<'_>, managed: &[ManagedFieldsEntry]) -> Vec<FieldDrift> {
        let Some(manifest) = &self.manifest else {
            return Vec::new();
        };
        let mut fields = drift(manifest, live, managed, self.basis);
        fields.retain(|field| {
            let is_scaled = self.is_scaled && field.path == REPLICAS;
            let is_theirs = is_scaled || is_left_to_scaler(&field.path, &field.manager, managed);
            !is_theirs && !is_ignored(field, &self.rules)
        });
        fields
    }

    /// Whether a change tells which fields it took.
    fn tells(&self, touch: &Touch) -> bool {
        self.manifest.is_some() && !touch.managed.is_empty()
    }

    /// The fields that are not ours any more, without their values; none where all of them are left to others.
    fn taken(&self, touch: &Touch) -> Vec<FieldDrift> {
        if touch.managed.is_empty() {
            return Vec::new();
        }
        let mut fields = self.differing(Live::Metadata, &touch.managed);
        fields.truncate(DRIFT_FIELDS_MAX);
        fields
    }
}
