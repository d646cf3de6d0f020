//! One walk through all stages: what differs is sent, what is unwanted is removed, and the inventory says
//! so before and after.

mod brought;
mod definitions;
mod stages;

use render::UnitKey;
use render::describe::is_chart;
use tokio::sync::watch;
use tokio::time::Instant;

pub(super) use brought::Brought;

pub(super) use self::stages::Flight;
use super::Desired;
use super::discovery::Kinds;
use super::inventory::Entry;
use super::session::{Interrupt, Session, SessionError, Slot};
use super::status::ApplyReport;
use crate::wire::ObjectState;

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
        if self.has_unresolved() || self.lacks_kinds(|_| true) || std::mem::take(&mut self.doubts_kinds) {
            self.discover().await?;
        }
        self.own();
        self.triage();
        self.verify(&brought).await?;
        self.remember_orphans();
        self.remember_needs();
        if interrupt.is_raised() {
            return Ok(PassEnd::Interrupted);
        }
        self.keep_apply_sets().await;
        self.hold_suspended();
        self.intend_releases(&brought).await?;
        self.settle_gates();
        let mut outcome = self.send_round(&brought, interrupt, report).await;
        // What was sent may be all that something else waited for. Each object is sent once, so this ends.
        while outcome.is_ok() && !interrupt.is_raised() && self.settle_gates() {
            outcome = self.send_round(&brought, interrupt, report).await;
        }
        self.decryption.forget();
        if outcome.is_ok() && !interrupt.is_raised() {
            let leaving = self.remove_unwanted(&brought, interrupt).await?;
            // After what their charts may need was sent.
            self.keep_releases(leaving);
        }
        if interrupt.may_write() {
            self.inventory
                .flush(&self.shards)
                .await
                .map_err(SessionError::Inventory)?;
        }
        if interrupt.may_write() {
            // What left may have been the last of its set.
            self.keep_apply_sets().await;
        }
        self.told_corrections();
        self.inventory.forget_needs();
        self.forget();
        self.follow();
        let looked = self.look_at_drift().await;
        self.wait(Instant::now());
        self.publish(report);
        outcome.and(looked)?;
        Ok(self.end(interrupt))
    }

    /// Sends, stage by stage, what may be sent now and was not yet in this pass.
    async fn send_round(
        &mut self,
        brought: &Brought,
        interrupt: &Interrupt,
        report: &watch::Sender<ApplyReport>,
    ) -> Result<(), SessionError> {
        self.open_documents().await?;
        self.intend(brought).await?;
        self.publish(report);
        let mut flight = Flight::new();
        let sent = self.send_stages(&mut flight, brought, interrupt, report).await;
        let drained = self.land(&mut flight, brought, interrupt).await;
        sent.and(drained)
    }

    fn end(&self, interrupt: &Interrupt) -> PassEnd {
        let slots = || self.units.values().flat_map(|unit| &unit.slots);
        // What waits for something else is no reason to try again: when that changes, it is seen.
        let applied = slots().all(|slot| slot.held || slot.is_settled());
        let removing = self
            .removals
            .values()
            .any(|removal| matches!(removal.state, ObjectState::Removing | ObjectState::Stuck));
        if interrupt.is_raised() {
            PassEnd::Interrupted
        } else if applied && !removing && !self.lacks_kinds(|api_version| self.kinds.is_away(api_version)) {
            PassEnd::Settled
        } else {
            PassEnd::Unsettled
        }
    }

    /// Whether something of such an API version is to be removed and its kind is not known: it would stay for ever
    /// if nobody asked for kinds again.
    fn lacks_kinds(&self, such: impl Fn(&str) -> bool) -> bool {
        let entries = self
            .removals
            .keys()
            // A HelmChart is of no kind of the cluster.
            .filter(|key| !is_chart(key))
            .filter_map(|key| Some((key, self.inventory.get(key)?)));
        let mut unknown = entries.filter(|(key, entry)| self.kinds.find_any(&entry.api_version, &key.kind).is_none());
        unknown.any(|(_, entry)| such(&entry.api_version))
    }

    async fn discover(&mut self) -> Result<(), SessionError> {
        self.kinds = Kinds::discover(&self.client).await.map_err(SessionError::Server)?;
        self.resolve();
        Ok(())
    }

    /// Notes every object that is about to be applied for the first time, or that may be made anew. Were it noted
    /// afterwards, an object that was applied just before a crash would be nobody's.
    async fn intend(&mut self, brought: &Brought) -> Result<(), SessionError> {
        let mut intents = Vec::new();
        for (unit_key, unit) in &self.units {
            for (slot, place) in unit.slots.iter().filter_map(|slot| Some((slot, slot.place.as_ref()?))) {
                if !slot.needs_sending() {
                    continue;
                }
                match self.inventory.get(&place.key) {
                    None => intents.push((place.key.clone(), brought.stamp(intent(unit_key, unit.orphan, slot)))),
                    Some(entry) if !entry.replacing && unit.may_replace(slot, entry) => {
                        let replacing = true;
                        intents.push((
                            place.key.clone(),
                            Entry {
                                replacing,
                                ..entry.clone()
                            },
                        ));
                    }
                    Some(_) => {}
                }
            }
        }
        if intents.is_empty() {
            return Ok(());
        }
        for (key, entry) in intents {
            self.inventory.put(key, entry);
        }
        self.inventory
            .flush(&self.shards)
            .await
            .map_err(SessionError::Inventory)
    }

    /// Notes for each object whether it is to stay when its unit leaves: when that is asked, the unit is gone.
    fn remember_orphans(&mut self) {
        let mut changed = Vec::new();
        for (unit_key, unit) in &self.units {
            for place in unit.slots.iter().filter_map(|slot| slot.place.as_ref()) {
                let entry = self.inventory.get(&place.key);
                let differs = |entry: &&Entry| entry.unit == *unit_key && entry.orphan != unit.orphan;
                if let Some(entry) = entry.filter(differs) {
                    let orphan = unit.orphan;
                    changed.push((
                        place.key.clone(),
                        Entry {
                            orphan,
                            ..entry.clone()
                        },
                    ));
                }
            }
        }
        for (key, entry) in changed {
            self.inventory.put(key, entry);
        }
    }

    /// Drops what is known of objects that nobody wants or remembers.
    fn forget(&mut self) {
        let inventory = &self.inventory;
        self.known.retain(|key, _| inventory.get(key).is_some());
        let known = &self.known;
        self.looks.retain(|key| known.contains_key(key));
        self.drift.retain(|key| inventory.get(key).is_some());
    }
}

fn intent(unit: &UnitKey, orphan: bool, slot: &Slot) -> Entry {
    Entry {
        unit: unit.clone(),
        api_version: slot.identity.api_version.clone(),
        uid: None,
        applied: None,
        resource_version: None,
        lineage: String::new(),
        sequence: 0,
        orphan,
        replacing: false,
    }
}
