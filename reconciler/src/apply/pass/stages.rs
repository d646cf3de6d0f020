//! Sends what differs, stage by stage, several objects at a time.

use std::collections::VecDeque;

use futures_util::StreamExt;
use futures_util::future::BoxFuture;
use futures_util::stream::FuturesUnordered;
use render::UnitKey;
use render::describe::Content;
use render::model::DriftMode;
use tokio::sync::watch;
use tokio::time::timeout;

use super::Brought;
use crate::apply::inventory::Entry;
use crate::apply::object;
use crate::apply::order::Stage;
use crate::apply::send::{Applied, Sent, Task, send};
use crate::apply::session::{Interrupt, Known, Place, Session, SessionError, sent};
use crate::apply::status::ApplyReport;
use crate::limits::{APPLY_CONCURRENCY, STAGE_PATIENCE};
use crate::wire::{Health, ObjectState};

/// One object to send.
pub(in crate::apply) struct Job {
    stage: Stage,
    unit: UnitKey,
    slot: usize,
    place: Place,
}

/// Objects whose answers have not come.
pub(in crate::apply) type Flight = FuturesUnordered<BoxFuture<'static, (Job, Sent)>>;

impl Session {
    /// Sends every stage, one after the other.
    pub(in crate::apply) async fn send_stages(
        &mut self,
        flight: &mut Flight,
        brought: &Brought,
        interrupt: &Interrupt,
        report: &watch::Sender<ApplyReport>,
    ) -> Result<(), SessionError> {
        for stage in Stage::ALL {
            let jobs = self.jobs(stage);
            let any = !jobs.is_empty();
            self.send_all(jobs, flight, brought, interrupt).await?;
            if stage == Stage::Custom && self.await_definitions(brought, interrupt).await? {
                self.intend(brought).await?;
                let jobs = self.jobs(stage);
                self.send_all(jobs, flight, brought, interrupt).await?;
            }
            if interrupt.is_raised() {
                return Ok(());
            }
            if any {
                self.publish(report);
            }
        }
        Ok(())
    }

    fn jobs(&self, stage: Stage) -> VecDeque<Job> {
        let mut jobs = VecDeque::new();
        for (unit_key, unit) in &self.units {
            for (index, slot) in unit.slots.iter().enumerate() {
                if slot.identity.stage != stage || !slot.needs_sending() {
                    continue;
                }
                let place = slot.place.clone().filter(|place| self.drift.allows(&place.key));
                jobs.extend(place.map(|place| Job {
                    stage,
                    unit: unit_key.clone(),
                    slot: index,
                    place,
                }));
            }
        }
        jobs
    }

    /// Sends objects, several at a time. An answer that does not come is waited for in [`Self::land`], so
    /// that the next stage can begin.
    async fn send_all(
        &mut self,
        mut jobs: VecDeque<Job>,
        flight: &mut Flight,
        brought: &Brought,
        interrupt: &Interrupt,
    ) -> Result<(), SessionError> {
        let stage = jobs.front().map(|job| job.stage);
        let mut pending = 0;
        while pending > 0 || !jobs.is_empty() {
            while flight.len() < APPLY_CONCURRENCY && !interrupt.is_raised() {
                let Some(begun) = jobs.pop_front().and_then(|job| self.begin_job(job)) else {
                    break;
                };
                flight.push(begun);
                pending += 1;
            }
            match timeout(STAGE_PATIENCE, flight.next()).await {
                Ok(Some((job, sent))) => {
                    pending -= usize::from(Some(job.stage) == stage);
                    self.landed(job, sent, brought)?;
                }
                // Nothing is in flight, and nothing else may be begun.
                Ok(None) => return Ok(()),
                Err(_) if jobs.is_empty() || interrupt.is_raised() => return Ok(()),
                Err(_) => {}
            }
        }
        Ok(())
    }

    fn begin_job(&mut self, job: Job) -> Option<BoxFuture<'static, (Job, Sent)>> {
        let unit = self.units.get(&job.unit)?;
        let slot = unit.slots.get(job.slot)?;
        let opened = self.decryption.take(&job.unit, job.slot);
        let object = match (&unit.objects[slot.content], &opened) {
            (Content::Chart { object, .. } | Content::Plain { object }, _) => object.as_ref(),
            (Content::Encrypted { .. }, Some(opened)) => opened.value(),
            (Content::Encrypted { .. }, None) => return None,
        };
        let key = &job.place.key;
        let policy = &unit.policy;
        let task = Task {
            client: self.client.clone(),
            kind: job.place.kind.clone(),
            key: key.clone(),
            unit: job.unit.clone(),
            object: object::with_data(sent(object, &job.unit, &key.namespace, unit.apply_set.as_deref()), key),
            digest: job.place.digest.clone(),
            entry: self.inventory.get(key).cloned(),
            before: slot.before.clone(),
            drift: unit.drift,
            replace: policy.replace,
            rules: policy
                .ignore
                .iter()
                .filter(|rule| rule.concerns(key))
                .cloned()
                .collect(),
            scaled: self.scaled.contains(key),
            earlier: self.earlier.clone(),
        };
        Some(Box::pin(async move {
            let sent = send(task).await;
            let sent = match &opened {
                Some(opened) => sent.without_values(opened.value()),
                None => sent,
            };
            (job, sent)
        }))
    }

    /// Waits for what is still in flight. When something newer came, only for a little while: an answer
    /// that is not heard leaves its object to be compared again.
    pub(in crate::apply) async fn land(
        &mut self,
        flight: &mut Flight,
        brought: &Brought,
        interrupt: &Interrupt,
    ) -> Result<(), SessionError> {
        let mut outcome = Ok(());
        loop {
            match timeout(STAGE_PATIENCE, flight.next()).await {
                Ok(Some((job, sent))) => outcome = outcome.and(self.landed(job, sent, brought)),
                Ok(None) => return outcome,
                Err(_) if interrupt.is_raised() || outcome.is_err() => return outcome,
                Err(_) => {}
            }
        }
    }

    fn landed(&mut self, job: Job, sent: Sent, brought: &Brought) -> Result<(), SessionError> {
        let outcome = match sent {
            Sent::Applied(applied) => {
                self.note(&job, *applied, brought);
                return Ok(());
            }
            Sent::Refused(outcome) => {
                // Its namespace is not there, or its kind is not any more: ask before the next try.
                self.doubts_kinds |= outcome.state == ObjectState::Waiting;
                if let Some(known) = self.known.get_mut(&job.place.key) {
                    known.fresh = false;
                }
                outcome
            }
            Sent::Stopped(error) => return Err(SessionError::Server(error)),
        };
        let unit = self.units.get_mut(&job.unit);
        if let Some(slot) = unit.and_then(|unit| unit.slots.get_mut(job.slot)) {
            slot.tried = true;
            slot.outcome = outcome;
        }
        Ok(())
    }

    fn note(&mut self, job: &Job, applied: Applied, brought: &Brought) {
        let key = &job.place.key;
        let Applied {
            seen,
            outcome,
            refused,
            adopted,
        } = applied;
        let without: Vec<_> = refused.iter().map(String::as_str).collect();
        let digest = object::digest_without(&job.place.digest, &without);
        if let Some(unit) = self.units.get_mut(&job.unit) {
            if adopted {
                unit.adopted.insert(key.clone());
            }
            if let Some(slot) = unit.slots.get_mut(job.slot) {
                slot.tried = true;
                slot.outcome = outcome;
                slot.before = None;
                slot.refused = refused;
            }
        }
        let unit = self.units.get(&job.unit);
        let reports = unit.is_some_and(|unit| unit.drift == DriftMode::Report);
        let orphan = unit.is_some_and(|unit| unit.orphan);
        let entry = Entry {
            unit: job.unit.clone(),
            api_version: job.place.kind.resource.api_version.clone(),
            uid: seen.uid,
            applied: Some(digest),
            // What others made of it is no version to go by once the mode is another one, also after a restart.
            resource_version: seen.resource_version.filter(|_| !reports),
            lineage: brought.lineage().to_owned(),
            sequence: brought.sequence(),
            orphan,
            replacing: false,
        };
        // An apply that changed nothing is no reason to write the inventory.
        match self.inventory.get(key) {
            Some(before) if is_same_apart_from_version(before, &entry) => {
                self.inventory.note_version(key, entry.resource_version);
            }
            _ => self.inventory.put(key.clone(), brought.stamp(entry)),
        }
        // It may be another content now, of which its rule has said nothing yet.
        self.known.remove(key);
        let known = Known {
            fields: seen.fields,
            verdict: self.unjudged(key, seen.verdict),
            fresh: true,
        };
        if known.verdict.health != Health::Current {
            self.looks.add(key);
        }
        self.known.insert(key.clone(), known);
    }
}

/// Whether they differ in the versions alone: the object's own, and the delivery's.
fn is_same_apart_from_version(before: &Entry, after: &Entry) -> bool {
    before.unit == after.unit
        && before.api_version == after.api_version
        && before.uid == after.uid
        && before.applied == after.applied
        && before.lineage == after.lineage
        && before.orphan == after.orphan
        && before.replacing == after.replacing
}
