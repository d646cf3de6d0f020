//! What is told and left: units in mode Report or Freeze, and objects that are fought over. Each object that differs is
//! read whole once after each change, and never kept: only the fields that differ are.

use futures_util::{StreamExt, stream};
use kube::api::{Api, DynamicObject};
use render::model::DriftMode;
use render::{ObjectKey, UnitKey};
use tracing::debug;

use super::compare::Live;
use crate::apply::request::{RequestError, bounded};
use crate::apply::session::{Session, SessionError, Slot, Unit};
use crate::limits::{APPLY_CONCURRENCY, DRIFT_FIELDS_MAX, DRIFT_KEPT_WHOLE, DRIFT_OBJECTS_MAX};
use crate::wire::{Counts, FieldDrift, ObjectDrift, UnitReport};

/// The fields of one object that differ and are left.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Left {
    /// The first few.
    fields: Vec<FieldDrift>,
    /// How many more there are.
    more: usize,
}

impl Session {
    /// Looks at what was not compared field by field since it changed, or since its unit is left as it is.
    pub(in crate::apply) async fn look_at_drift(&mut self) -> Result<(), SessionError> {
        self.judge_units();
        let due = std::mem::take(&mut self.drift.unlooked);
        let mut requests = Vec::new();
        for key in &due {
            let entry = self.inventory.get(key);
            if let Some(kind) = entry.and_then(|entry| self.kinds.find_any(&entry.api_version, &key.kind)) {
                requests.push(read(kind.api(&self.client, &key.namespace), key.clone()));
            }
        }
        let mut found = Vec::new();
        let claims = self.claims_of(due.clone());
        let mut answers = stream::iter(requests).buffer_unordered(APPLY_CONCURRENCY);
        let mut stopped = None;
        while let Some((key, answer)) = answers.next().await {
            match answer {
                Ok(Some(live)) => {
                    let Some(claim) = claims.get(&key) else { continue };
                    let managed = live.metadata.managed_fields.clone().unwrap_or_default();
                    let Ok(live) = serde_json::to_value(&live) else {
                        continue;
                    };
                    found.push((key, claim.differing(Live::Whole(&live), &managed)));
                }
                Ok(None) => found.push((key, Vec::new())),
                Err(error) if error.is_general() => stopped = Some(error),
                Err(error) => debug!(object = %key, error = error.line(), "Failed to look at object."),
            }
        }
        drop((answers, claims));
        for (key, fields) in found {
            self.drift.left(key, fields);
        }
        match stopped {
            Some(error) => {
                // All of it is looked at again.
                self.drift.unlooked.extend(due);
                Err(SessionError::Server(error))
            }
            None => Ok(()),
        }
    }

    /// A unit that is left as it is from now on is compared whole, once for each content; one that is not any more
    /// is put right.
    fn judge_units(&mut self) {
        let mut unlooked = Vec::new();
        for (unit_key, unit) in &self.units {
            let keys = || unit.slots.iter().filter_map(|slot| Some(&slot.place.as_ref()?.key));
            let before = self.drift.judged.get(unit_key);
            let now = (unit.drift != DriftMode::Correct).then_some((unit.digest, unit.drift));
            if before == now.as_ref() {
                continue;
            }
            match now {
                Some(now) => {
                    unlooked.extend(keys().cloned());
                    self.drift.judged.insert(unit_key.clone(), now);
                }
                None => {
                    self.drift.judged.remove(unit_key);
                    for key in keys() {
                        self.drift.found.remove(key);
                    }
                }
            }
        }
        self.drift.unlooked.extend(unlooked);
        let units = &self.units;
        self.drift.judged.retain(|unit, _| units.contains_key(unit));
    }

    /// Adds to a unit's report what differs and is left.
    pub(in crate::apply) fn tell_drift(&self, key: &UnitKey, unit: &Unit, report: &mut UnitReport) {
        let slots = unit
            .slots
            .iter()
            .filter(|slot| !slot.yielded && !self.drift.found.is_empty());
        let mut drift: Vec<_> = slots.filter_map(|slot| self.drift.object(slot)).collect();
        let (of_releases, more) = self.release_drift(key, unit);
        drift.extend(of_releases);
        if drift.is_empty() {
            return;
        }
        report.counts = Counts {
            drifted: drift.len() + more,
            ..report.counts
        };
        // A fight needs a person first.
        drift.sort_by(|a, b| {
            a.message
                .is_empty()
                .cmp(&b.message.is_empty())
                .then_with(|| a.object.cmp(&b.object))
        });
        drift.truncate(DRIFT_OBJECTS_MAX);
        let fight = drift.first().filter(|object| !object.message.is_empty());
        if let Some(fight) = fight.filter(|_| report.message.is_empty()) {
            report.message = format!("{} {}", fight.object, fight.message);
        }
        report.drift = drift;
    }
}

impl super::Drift {
    /// What differs in an object that is left as it is.
    fn left(&mut self, key: ObjectKey, mut fields: Vec<FieldDrift>) {
        if fields.is_empty() {
            self.found.remove(&key);
            return;
        }
        let kept = if self.found.len() < DRIFT_KEPT_WHOLE {
            DRIFT_FIELDS_MAX
        } else {
            1
        };
        let more = fields.len().saturating_sub(kept);
        fields.truncate(kept);
        self.found.insert(key, Left { fields, more });
    }

    fn object(&self, slot: &Slot) -> Option<ObjectDrift> {
        let key = &slot.place.as_ref()?.key;
        let left = self.found.get(key)?;
        let fight = self.fights.opponent(key).filter(|_| self.resting.contains_key(key));
        Some(ObjectDrift {
            object: slot.identity.key.clone(),
            api_version: slot.identity.api_version.clone(),
            fields: left.fields.clone(),
            more: left.more,
            message: fight.map_or_else(String::new, |(manager, field)| fights(manager, field)),
            chart: None,
        })
    }
}

/// Who fights over which field of an object, as a report says it.
pub(in crate::apply) fn fights(manager: &str, field: &str) -> String {
    let manager = if manager.is_empty() { "somebody" } else { manager };
    let over = if field.is_empty() { "it" } else { field };
    format!("fights with manager {manager} over {over}; it is put right at most once a minute")
}

async fn read(api: Api<DynamicObject>, key: ObjectKey) -> (ObjectKey, Result<Option<DynamicObject>, RequestError>) {
    let found = bounded(api.get_opt(&key.name)).await;
    (key, found)
}
