//! One walk through all stages: what differs is sent, what is unwanted is removed, and the inventory says
//! so before and after.

use std::collections::{BTreeSet, VecDeque};
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::future::BoxFuture;
use futures_util::stream::FuturesUnordered;
use render::describe::Content;
use render::{ObjectKey, Revision, UnitKey};
use tokio::sync::watch;
use tokio::time::{Instant, sleep, timeout};

use super::Desired;
use super::discovery::Kinds;
use super::inventory::Entry;
use super::object;
use super::order::Stage;
use super::send::{Seen, Sent, send};
use super::session::{Interrupt, Known, Outcome, Place, Session, SessionError, Slot, Unit};
use super::status::ApplyReport;
use crate::limits::{APPLY_CONCURRENCY, CRD_ESTABLISHED_TIMEOUT, STAGE_PATIENCE};
use crate::wire::{Health, ObjectState};

/// How a pass ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PassEnd {
    /// Everything is as it should be, or stays as it is until something changes.
    Settled,
    /// Something is to be tried again.
    Unsettled,
    /// Something newer came, or the right to write went.
    Interrupted,
}

/// The delivery that a pass applies, as entries of the inventory remember it.
pub(super) struct Brought {
    lineage: String,
    sequence: u64,
}

impl Brought {
    fn new(lineage: &Revision, sequence: u64) -> Self {
        // As many digits as Git shows people; the inventory names it for every object.
        let lineage = lineage.as_str().chars().take(12).collect();
        Self { lineage, sequence }
    }

    /// The lineage, shortened as entries have it.
    pub(super) fn lineage(&self) -> &str {
        &self.lineage
    }

    /// The sequence.
    pub(super) fn sequence(&self) -> u64 {
        self.sequence
    }

    /// Whether an entry was brought by a delivery of another lineage.
    pub(super) fn is_other_lineage(&self, entry: &Entry) -> bool {
        entry.lineage != self.lineage
    }

    /// The entry, brought by this delivery.
    pub(super) fn stamp(&self, entry: Entry) -> Entry {
        // A delivery that is older than the entry does not make it younger.
        let before = if entry.lineage == self.lineage {
            entry.sequence
        } else {
            0
        };
        Entry {
            lineage: self.lineage.clone(),
            sequence: self.sequence.max(before),
            ..entry
        }
    }
}

/// One object to send.
struct Job {
    stage: Stage,
    unit: UnitKey,
    slot: usize,
    place: Place,
}

type Flight = FuturesUnordered<BoxFuture<'static, (Job, Sent)>>;

impl Session {
    /// Brings the cluster as close to `desired` as it will go now.
    pub(super) async fn pass(
        &mut self,
        desired: &Desired,
        interrupt: &Interrupt,
        report: &watch::Sender<ApplyReport>,
    ) -> Result<PassEnd, SessionError> {
        let brought = Brought::new(&desired.held.lineage, desired.held.sequence);
        self.adopt(desired);
        self.resolve();
        if self.has_unresolved() || std::mem::take(&mut self.doubts_kinds) {
            self.discover().await?;
        }
        self.verify(&brought).await?;
        self.intend(&brought).await?;
        self.publish(report);
        let mut flight = Flight::new();
        let sent = self.send_stages(&mut flight, &brought, interrupt, report).await;
        let drained = self.land(&mut flight, &brought, interrupt).await;
        let outcome = sent.and(drained);
        if outcome.is_ok() && !interrupt.is_raised() {
            self.remove_unwanted(&brought, interrupt).await?;
        }
        if interrupt.may_write() {
            self.inventory
                .flush(&self.shards)
                .await
                .map_err(SessionError::Inventory)?;
        }
        self.forget();
        self.follow();
        self.publish(report);
        outcome?;
        Ok(self.end(interrupt))
    }

    fn end(&self, interrupt: &Interrupt) -> PassEnd {
        let slots = || self.units.values().flat_map(|unit| &unit.slots);
        let applied = slots().all(|slot| slot.outcome.state == ObjectState::Applied);
        let removing = self
            .removals
            .values()
            .any(|removal| removal.state == ObjectState::Removing);
        if interrupt.is_raised() {
            PassEnd::Interrupted
        } else if applied && !removing {
            PassEnd::Settled
        } else {
            PassEnd::Unsettled
        }
    }

    async fn discover(&mut self) -> Result<(), SessionError> {
        self.kinds = Kinds::discover(&self.client).await.map_err(SessionError::Server)?;
        self.resolve();
        Ok(())
    }

    /// Notes every object that is about to be applied for the first time. Were it noted afterwards, an
    /// object that was applied just before a crash would be nobody's.
    async fn intend(&mut self, brought: &Brought) -> Result<(), SessionError> {
        let mut intents = Vec::new();
        for (unit_key, unit) in &self.units {
            for (slot, place) in unit.slots.iter().filter_map(|slot| Some((slot, slot.place.as_ref()?))) {
                if slot.needs_sending() && self.inventory.get(&place.key).is_none() {
                    intents.push((place.key.clone(), intent(unit_key, slot)));
                }
            }
        }
        if intents.is_empty() {
            return Ok(());
        }
        for (key, entry) in intents {
            self.inventory.put(key, brought.stamp(entry));
        }
        self.inventory
            .flush(&self.shards)
            .await
            .map_err(SessionError::Inventory)
    }

    async fn send_stages(
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
                jobs.extend(slot.place.clone().map(|place| Job {
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

    fn begin_job(&self, job: Job) -> Option<BoxFuture<'static, (Job, Sent)>> {
        let unit = self.units.get(&job.unit)?;
        let slot = unit.slots.get(job.slot)?;
        let Content::Plain { object } = &unit.objects[slot.content] else {
            return None;
        };
        let object = object::sent(object, &job.unit, &job.place.key.namespace);
        let client = self.client.clone();
        Some(Box::pin(async move {
            let sent = send(&client, &job.place.kind, &job.place.key, object).await;
            (job, sent)
        }))
    }

    /// Waits for what is still in flight. When something newer came, only for a little while: an answer
    /// that is not heard leaves its object to be compared again.
    async fn land(
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
            Sent::Applied(seen) => {
                self.note(&job, seen, brought);
                Outcome::applied()
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
            slot.outcome = outcome;
        }
        Ok(())
    }

    fn note(&mut self, job: &Job, seen: Seen, brought: &Brought) {
        let key = &job.place.key;
        let entry = Entry {
            unit: job.unit.clone(),
            api_version: job.place.kind.resource.api_version.clone(),
            uid: seen.uid,
            applied: Some(job.place.digest.clone()),
            resource_version: seen.resource_version,
            lineage: brought.lineage.clone(),
            sequence: brought.sequence,
        };
        // An apply that changed nothing is no reason to write the inventory.
        match self.inventory.get(key) {
            Some(before) if is_same_apart_from_version(before, &entry) => {
                self.inventory.note_version(key, entry.resource_version);
            }
            _ => self.inventory.put(key.clone(), brought.stamp(entry)),
        }
        let known = Known {
            fields: seen.fields,
            verdict: seen.verdict,
            fresh: true,
        };
        if known.verdict.health != Health::Current {
            self.looks.add(key);
        }
        self.known.insert(key.clone(), known);
    }

    /// Waits for definitions of this delivery that custom resources of it need, and learns their kinds.
    /// Gives whether any object found its kind.
    async fn await_definitions(&mut self, brought: &Brought, interrupt: &Interrupt) -> Result<bool, SessionError> {
        let start = Instant::now();
        let mut pause = Duration::from_millis(25);
        let needed = self.needed_definitions();
        let before = self.unresolved();
        while !needed.is_empty() && start.elapsed() < CRD_ESTABLISHED_TIMEOUT && !interrupt.is_raised() {
            if self.are_established(&needed).await? {
                self.discover().await?;
                if self.needed_definitions().is_empty() {
                    break;
                }
            }
            sleep(pause).await;
            pause = (pause * 2).min(Duration::from_millis(500));
        }
        if self.unresolved() < before {
            self.verify(brought).await?;
            return Ok(true);
        }
        Ok(false)
    }

    fn unresolved(&self) -> usize {
        let slots = self.units.values().flat_map(|unit| &unit.slots);
        slots.filter(|slot| slot.place.is_none()).count()
    }

    /// Definitions that were applied, and whose kind an object without kind has.
    fn needed_definitions(&self) -> BTreeSet<ObjectKey> {
        let slots = || self.units.values().flat_map(|unit| &unit.slots);
        let unresolved: BTreeSet<_> = slots()
            .filter(|slot| slot.place.is_none())
            .map(|slot| (slot.identity.key.group.as_str(), slot.identity.key.kind.as_str()))
            .collect();
        let defines = |unit: &Unit, slot: &Slot| {
            let Content::Plain { object } = &unit.objects[slot.content] else {
                return false;
            };
            let spec = &object["spec"];
            let group = spec["group"].as_str().unwrap_or_default();
            unresolved.contains(&(group, spec["names"]["kind"].as_str().unwrap_or_default()))
        };
        let mut needed = BTreeSet::new();
        for unit in self.units.values() {
            let definitions = unit
                .slots
                .iter()
                .filter(|slot| slot.identity.stage == Stage::Definition);
            let applied = definitions.filter(|slot| slot.outcome.state == ObjectState::Applied);
            let places = applied
                .filter(|slot| defines(unit, slot))
                .filter_map(|slot| slot.place.as_ref());
            needed.extend(places.map(|place| place.key.clone()));
        }
        needed
    }

    /// Looks at definitions; whether none of them is on its way any more.
    async fn are_established(&mut self, definitions: &BTreeSet<ObjectKey>) -> Result<bool, SessionError> {
        let known = |key: &ObjectKey| self.known.get(key).map(|known| known.verdict.health);
        let pending = definitions.iter().filter(|key| known(key) == Some(Health::InProgress));
        let pending: Vec<_> = pending.cloned().collect();
        let seen = self.look_at(&pending).await?;
        Ok(seen.len() == pending.len() && seen.iter().all(|(_, health)| *health != Some(Health::InProgress)))
    }

    /// Drops what is known of objects that nobody wants or remembers.
    fn forget(&mut self) {
        let inventory = &self.inventory;
        self.known.retain(|key, _| inventory.get(key).is_some());
        let known = &self.known;
        self.looks.retain(|key| known.contains_key(key));
    }
}

impl Slot {
    /// Whether it is still to be sent in this pass.
    fn needs_sending(&self) -> bool {
        let yielded = self.outcome.message.ends_with(" delivers it too");
        self.place.is_some() && self.outcome.state != ObjectState::Applied && !yielded
    }
}

fn intent(unit: &UnitKey, slot: &Slot) -> Entry {
    Entry {
        unit: unit.clone(),
        api_version: slot.identity.api_version.clone(),
        uid: None,
        applied: None,
        resource_version: None,
        lineage: String::new(),
        sequence: 0,
    }
}

fn is_same_apart_from_version(before: &Entry, after: &Entry) -> bool {
    let same = |entry: &Entry| {
        (
            entry.unit.clone(),
            entry.api_version.clone(),
            entry.uid.clone(),
            entry.applied.clone(),
            entry.lineage.clone(),
        )
    };
    same(before) == same(after)
}
