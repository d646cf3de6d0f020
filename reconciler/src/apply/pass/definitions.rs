//! Custom resources and their definition in one delivery: waits until the definition is established.

use std::collections::BTreeSet;
use std::time::Duration;

use render::ObjectKey;
use render::describe::Content;
use tokio::time::{Instant, sleep};

use super::Brought;
use crate::apply::order::Stage;
use crate::apply::session::{Interrupt, Session, SessionError, Slot, Unit};
use crate::limits::CRD_ESTABLISHED_TIMEOUT;
use crate::wire::{Health, ObjectState};

impl Session {
    /// Waits for definitions of this delivery that custom resources of it need, and learns their kinds.
    /// Gives whether any object found its kind.
    pub(super) async fn await_definitions(
        &mut self,
        brought: &Brought,
        interrupt: &Interrupt,
    ) -> Result<bool, SessionError> {
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
            self.hold_suspended();
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
}
