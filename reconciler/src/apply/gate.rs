//! What waits for what: how the things that something needs stand goes in, whether it may be applied comes out.
//!
//! An object that was applied as it is wanted is never held: what somebody changed by hand is put right at once,
//! however its dependencies fare.

use std::collections::{BTreeMap, BTreeSet};

use render::{ObjectKey, UnitKey};

use super::helm::Chart;
use super::session::{Outcome, Session, Slot, Unit};
use super::status::is_failure;
use super::verify::was_left;
use crate::wire::{Health, ObjectState};

/// How something stands that others need.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Standing {
    /// It is not in this cluster's delivery, so nothing waits for it.
    Absent,
    /// Applied, and as it should be.
    Healthy,
    /// On its way.
    UnderWay,
    /// Something that it needs failed.
    Blocked,
    /// It failed.
    Failed,
}

/// Whether something may be applied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Gate {
    Open,
    /// It waits, and what for.
    Waits(String),
    /// What keeps it from being applied at all.
    Blocked(String),
}

/// The gate of something that needs these, by their names. What failed counts before what is under way.
pub(super) fn gate(needs: impl IntoIterator<Item = (String, Standing)>) -> Gate {
    let mut gate = Gate::Open;
    for (name, standing) in needs {
        match standing {
            Standing::Absent | Standing::Healthy => {}
            Standing::UnderWay if gate == Gate::Open => gate = Gate::Waits(format!("waits for {name}")),
            Standing::UnderWay => {}
            Standing::Blocked => return Gate::Blocked(format!("blocked by {name} (blocked)")),
            Standing::Failed => return Gate::Blocked(format!("blocked by {name} (failed)")),
        }
    }
    gate
}

impl Gate {
    /// This one of an object, in a unit with that one.
    fn within(self, unit: Option<&Self>) -> Self {
        match (self, unit) {
            (Self::Blocked(words), _) => Self::Blocked(words),
            (_, Some(Self::Blocked(words))) => Self::Blocked(words.clone()),
            (Self::Open, Some(gate)) => gate.clone(),
            (gate, _) => gate,
        }
    }

    fn outcome(&self) -> Option<Outcome> {
        match self {
            Self::Open => None,
            Self::Waits(words) => Some(Outcome::waiting(words.as_str())),
            Self::Blocked(words) => Some(Outcome::new(ObjectState::Blocked, words.as_str())),
        }
    }
}

/// `Kind namespace/name`.
pub(super) fn label(key: &ObjectKey) -> String {
    let slash = if key.namespace.is_empty() { "" } else { "/" };
    format!("{} {}{slash}{}", key.kind, key.namespace, key.name)
}

impl Session {
    /// Holds what has to wait, and lets go of what need not any more; whether there was any such.
    pub(super) fn settle_gates(&mut self) -> bool {
        let mut opened = false;
        let gates = self.gates();
        for (key, unit) in &mut self.units {
            let gate = gates.units.get(key).cloned().unwrap_or(Gate::Open);
            // Releases are begun by a pass, too.
            for chart in &mut unit.charts {
                let of_chart = gates.charts.get(&chart.key).unwrap_or(&gate).clone();
                opened |= of_chart == Gate::Open && chart.gate != Gate::Open;
                chart.gate = of_chart;
            }
            unit.gate = gate;
            for (index, slot) in unit.slots.iter_mut().enumerate() {
                let gate = gates.objects.get(&(key.clone(), index)).unwrap_or(&unit.gate);
                let entry = slot
                    .place
                    .as_ref()
                    .and_then(|place| Some((place, self.inventory.get(&place.key)?)));
                let was_left = entry.is_some_and(|(place, entry)| was_left(entry, key, place));
                let is_done = slot.is_settled() || slot.yielded || was_left;
                match gate.outcome().filter(|_| !is_done) {
                    Some(outcome) => {
                        slot.held = true;
                        // A document that does not open is told first.
                        if !slot.sealed {
                            slot.outcome = outcome;
                        }
                    }
                    None if slot.held => {
                        slot.held = false;
                        if !slot.is_settled() && !slot.yielded && !slot.sealed {
                            slot.outcome = Outcome::waiting("");
                            opened = true;
                        }
                    }
                    None => {}
                }
            }
        }
        opened
    }

    /// Remembers who needs what for as long as its objects are there: when both leave, they leave in reverse, also if
    /// another process sees to it.
    pub(super) fn remember_needs(&mut self) {
        for (key, unit) in &self.units {
            self.inventory.set_unit_needs(key, &unit.depends_on);
            if !unit.has_needs && self.inventory.needs().objects.is_empty() {
                continue;
            }
            for slot in unit.slots.iter().filter(|slot| !slot.yielded) {
                if let Some(place) = &slot.place {
                    self.inventory.set_object_needs(&place.key, &slot.identity.needs);
                }
            }
        }
        let charts = self.charts().into_values();
        let charts: Vec<_> = charts
            .map(|(_, chart)| (chart.key.clone(), chart.needs.clone()))
            .collect();
        for (key, needed) in charts {
            self.inventory.set_object_needs(&key, &needed);
        }
    }

    /// The gates of everything that needs something.
    fn gates(&self) -> Gates {
        let needed: BTreeSet<_> = self.units.values().flat_map(|unit| &unit.depends_on).collect();
        let standing: BTreeMap<_, _> = needed.into_iter().map(|key| (key, self.unit_standing(key))).collect();
        let mut gates = Gates::default();
        for (key, unit) in self.units.iter().filter(|(_, unit)| !unit.depends_on.is_empty()) {
            let needs = unit
                .depends_on
                .iter()
                .map(|needed| (needed.to_string(), standing[needed]));
            gates.units.insert(key.clone(), gate(needs));
        }
        let needing = self.needing();
        let charts = self.needing_charts();
        if needing.is_empty() && charts.is_empty() {
            return gates;
        }
        let of_slots = needing.iter().flat_map(|(_, _, slot)| slot.identity.needs.iter());
        let of_charts = charts.iter().flat_map(|(_, chart)| chart.needs.iter());
        let standing = self.object_standings(&of_slots.chain(of_charts).collect());
        let standing = |needed: &ObjectKey| standing.get(needed).copied().unwrap_or(Standing::Absent);
        let own = |needs: &[ObjectKey]| gate(needs.iter().map(|needed| (label(needed), standing(needed))));
        for (key, index, slot) in needing {
            let gate = own(&slot.identity.needs).within(gates.units.get(key));
            gates.objects.insert((key.clone(), index), gate);
        }
        for (key, chart) in charts {
            let gate = own(&chart.needs).within(gates.units.get(key));
            gates.charts.insert(chart.key.clone(), gate);
        }
        gates
    }

    /// HelmCharts that name others, each with the unit that has it.
    fn needing_charts(&self) -> Vec<(&UnitKey, &Chart)> {
        if !self.units.values().any(|unit| unit.has_needs) {
            return Vec::new();
        }
        let charts = self.charts().into_values();
        charts.filter(|(_, chart)| !chart.needs.is_empty()).collect()
    }

    /// Objects that name others, with unit and place in it.
    fn needing(&self) -> Vec<(&UnitKey, usize, &Slot)> {
        let mut needing = Vec::new();
        for (key, unit) in self.units.iter().filter(|(_, unit)| unit.has_needs) {
            let slots = unit.slots.iter().enumerate();
            let named = slots.filter(|(_, slot)| !slot.identity.needs.is_empty());
            needing.extend(named.map(|(index, slot)| (key, index, slot)));
        }
        needing
    }

    fn object_standings<'a>(&self, needed: &BTreeSet<&'a ObjectKey>) -> BTreeMap<&'a ObjectKey, Standing> {
        let mut standings = BTreeMap::new();
        let mut note = |key: &ObjectKey, standing: Standing| {
            if let Some(needed) = needed.get(key) {
                standings
                    .entry(*needed)
                    .and_modify(|known: &mut Standing| *known = standing.max(*known))
                    .or_insert(standing);
            }
        };
        for unit in self.units.values() {
            for slot in unit.slots.iter().filter(|slot| !slot.yielded) {
                // As the manifest has it, and as it is in the cluster where the manifest names no namespace.
                let keys = [Some(&slot.identity.key), slot.place.as_ref().map(|place| &place.key)];
                keys.into_iter()
                    .flatten()
                    .for_each(|key| note(key, self.slot_standing(slot)));
            }
            unit.unfit.iter().for_each(|unfit| note(&unfit.key, Standing::Failed));
        }
        for (unit, chart) in self.charts().into_values() {
            for name in chart.names().filter(|name| needed.contains(name)) {
                let result = self.release_result(unit, chart);
                note(&name, standing(result.state, result.health));
            }
        }
        standings
    }

    /// How a unit stands that others need.
    fn unit_standing(&self, key: &UnitKey) -> Standing {
        if self.missing.contains_key(key) {
            return Standing::UnderWay;
        }
        let Some(unit) = self.units.get(key) else {
            return Standing::Absent;
        };
        let slots = unit.slots.iter().map(|slot| self.slot_standing(slot));
        let unfit = unit.unfit.iter().map(|unfit| {
            if is_failure(unfit.state) {
                Standing::Failed
            } else {
                Standing::UnderWay
            }
        });
        let releases = self.release_results(key).into_iter();
        let releases = releases.map(|result| standing(result.state, result.health));
        slots.chain(unfit).chain(releases).max().unwrap_or(Standing::Healthy)
    }

    fn slot_standing(&self, slot: &Slot) -> Standing {
        standing(slot.outcome.state, self.fares(slot).0)
    }
}

/// How an object or a release stands that others need.
fn standing(state: ObjectState, health: Health) -> Standing {
    match state {
        state if is_failure(state) => Standing::Failed,
        ObjectState::Blocked => Standing::Blocked,
        // Nobody works on it: what is there is what is wanted.
        ObjectState::Suspended => Standing::Healthy,
        ObjectState::Applied => match health {
            Health::Current => Standing::Healthy,
            Health::Failed => Standing::Failed,
            Health::InProgress | Health::Unknown | Health::Terminating => Standing::UnderWay,
        },
        _ => Standing::UnderWay,
    }
}

/// Gates by unit, and by unit and place in it for objects that need something themselves.
#[derive(Default)]
struct Gates {
    units: BTreeMap<UnitKey, Gate>,
    objects: BTreeMap<(UnitKey, usize), Gate>,
    /// The same of HelmCharts.
    charts: BTreeMap<ObjectKey, Gate>,
}

impl Unit {
    /// Whether something of it waits for what it needs.
    pub(super) fn is_held(&self) -> bool {
        self.slots.iter().any(|slot| slot.held)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(needs: &[(&str, Standing)], expected: Gate) {
        assert_eq!(
            gate(needs.iter().map(|(name, standing)| ((*name).to_owned(), *standing))),
            expected
        );
    }

    #[test]
    fn what_is_not_there_or_is_healthy_is_not_waited_for() {
        check(&[], Gate::Open);
        check(
            &[("infra/crds", Standing::Absent), ("infra/db", Standing::Healthy)],
            Gate::Open,
        );
    }

    #[test]
    fn waiting_names_what_it_waits_for() {
        let waits = Gate::Waits("waits for infra/crds".to_owned());
        check(
            &[("infra/crds", Standing::UnderWay), ("infra/db", Standing::UnderWay)],
            waits,
        );
    }

    #[test]
    fn what_failed_blocks_and_counts_before_what_is_under_way() {
        let blocked = |words: &str| Gate::Blocked(words.to_owned());
        check(
            &[("infra/crds", Standing::UnderWay), ("infra/db", Standing::Failed)],
            blocked("blocked by infra/db (failed)"),
        );
        check(
            &[("infra/db", Standing::Blocked)],
            blocked("blocked by infra/db (blocked)"),
        );
    }

    #[test]
    fn a_unit_is_as_its_worst_object() {
        use Standing::{Blocked, Failed, Healthy, UnderWay};
        assert!(Healthy < UnderWay && UnderWay < Blocked && Blocked < Failed);
    }
}
