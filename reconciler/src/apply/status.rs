//! How units fare, as the report says it: counts, and the worst few objects.

use std::collections::BTreeMap;
use std::sync::Arc;

use render::{ObjectKey, UnitKey};
use tokio::sync::watch;

use super::capacity::Room;
use super::gate::{self, Gate};
use super::session::{Place, Session, Slot, Unit};
use super::{message, verify};
use crate::limits::WORST_OBJECTS_MAX;
use crate::wire::{Corrections, Counts, Facts, Health, NodeFacts, ObjectResult, ObjectState, UnitReport, UnitState};

/// What an applier says; the whole of it, each time.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ApplyReport {
    /// The sequence of what `units` are the results of.
    pub sequence: Option<u64>,
    /// Unit → how it fares; also units that are being removed.
    pub units: BTreeMap<UnitKey, UnitReport>,
    /// The cluster's version, once its API server said it.
    pub kubernetes_version: Option<String>,
    /// What it serves, sorted.
    pub api_versions: Vec<String>,
    /// What keeps the applier as a whole from working; empty when nothing does.
    pub trouble: String,
    /// Whether another applier holds the cluster's Lease.
    pub waits_for_lease: bool,
    /// How often others' changes were put right, since the applier began.
    pub corrections: Corrections,
    /// What the cluster is; `None` until it was asked.
    pub facts: Option<Arc<Facts>>,
    /// How its nodes fare; `None` while nobody knows.
    pub nodes: Option<Arc<NodeFacts>>,
    /// What its nodes have left.
    pub room: Room,
}

/// An object of the inventory that the delivery lacks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Removal {
    /// The unit it came with.
    pub unit: UnitKey,
    /// Removing, Stuck or Kept.
    pub state: ObjectState,
    /// Why it is not gone yet.
    pub message: String,
}

impl Session {
    /// Says how everything fares.
    pub(super) fn publish(&self, report: &watch::Sender<ApplyReport>) {
        self.publish_with(report, self.trouble());
    }

    /// Says how everything fares, and what keeps it from going on.
    pub(super) fn publish_with(&self, report: &watch::Sender<ApplyReport>, trouble: String) {
        let mut next = ApplyReport {
            sequence: self.sequence,
            units: self.unit_reports(),
            kubernetes_version: Some(self.version.clone()),
            api_versions: self.kinds.api_versions(),
            trouble,
            waits_for_lease: false,
            corrections: self.corrections.sum(),
            facts: None,
            nodes: None,
            room: Room::default(),
        };
        report.send_if_modified(|report| {
            // Said by those who count, whenever they have.
            next.room = report.room.clone();
            next.nodes.clone_from(&report.nodes);
            next.facts.clone_from(&report.facts);
            let changed = *report != next;
            *report = next;
            changed
        });
    }

    fn trouble(&self) -> String {
        let unreadable = self.inventory.unreadable();
        if unreadable.is_empty() {
            return String::new();
        }
        let shards = unreadable.join("; ");
        message::shorten(&format!(
            "nothing is removed, since the inventory cannot be read: {shards}"
        ))
    }

    fn unit_reports(&self) -> BTreeMap<UnitKey, UnitReport> {
        let mut reports = BTreeMap::new();
        for (key, digest) in &self.missing {
            let waiting = UnitReport {
                digest: Some(*digest),
                state: UnitState::Waiting,
                health: Health::Unknown,
                message: String::new(),
                counts: Counts::default(),
                worst: Vec::new(),
                drift: Vec::new(),
            };
            reports.insert(key.clone(), waiting);
        }
        let mut removals: BTreeMap<&UnitKey, Vec<ObjectResult>> = BTreeMap::new();
        for (key, removal) in &self.removals {
            removals
                .entry(&removal.unit)
                .or_default()
                .push(self.removal_result(key, removal));
        }
        for (key, unit) in &self.units {
            let removals = removals.remove(key).unwrap_or_default();
            let mut report = self.unit_report(key, unit, removals);
            self.tell_drift(key, unit, &mut report);
            reports.insert(key.clone(), report);
        }
        for (key, results) in removals {
            // A unit whose content has not arrived keeps its own line.
            reports.entry(key.clone()).or_insert_with(|| removed_report(results));
        }
        // What left, and was not looked at yet, is not gone.
        let mut leaving: BTreeMap<&UnitKey, usize> = BTreeMap::new();
        for (_, entry) in self
            .inventory
            .iter()
            .filter(|(_, entry)| !reports.contains_key(&entry.unit))
        {
            *leaving.entry(&entry.unit).or_default() += 1;
        }
        for (key, objects) in leaving {
            let mut report = removed_report(Vec::new());
            (report.counts.objects, report.counts.removing) = (objects, objects);
            reports.insert(key.clone(), report);
        }
        reports
    }

    fn unit_report(&self, key: &UnitKey, unit: &Unit, removals: Vec<ObjectResult>) -> UnitReport {
        let unfit = unit.unfit.iter().map(|unfit| ObjectResult {
            object: unfit.key.clone(),
            state: unfit.state,
            health: Health::Unknown,
            message: unfit.message.clone(),
        });
        let objects = unit.slots.iter().map(|slot| self.result(slot));
        let objects: Vec<_> = objects.chain(unfit).chain(self.release_results(key)).collect();
        let mut counts = counts(&objects);
        counts.removing = removing(&removals);
        counts.stuck = stuck(&removals);
        counts.behind = unit.slots.iter().filter(|slot| self.is_behind(key, slot)).count();
        let state = match state(&objects) {
            UnitState::Applying if unit.is_held() => UnitState::Waiting,
            state => state,
        };
        let health = objects
            .iter()
            .map(|object| object.health)
            .max()
            .unwrap_or(Health::Current);
        let worst = worst(objects.into_iter().chain(removals));
        UnitReport {
            digest: Some(unit.digest),
            state,
            health,
            message: message(unit, &worst),
            counts,
            worst,
            drift: Vec::new(),
        }
    }

    /// Whether an object is left as it is, although Git says something else by now.
    fn is_behind(&self, unit: &UnitKey, slot: &Slot) -> bool {
        let was_left = |place: &Place| {
            let entry = self.inventory.get(&place.key);
            entry.is_some_and(|entry| verify::was_left(entry, unit, place))
        };
        slot.outcome.state == ObjectState::Suspended && !slot.place.as_ref().is_some_and(was_left)
    }

    fn result(&self, slot: &Slot) -> ObjectResult {
        let key = slot.place.as_ref().map_or(&slot.identity.key, |place| &place.key);
        let (health, words) = self.fares(slot);
        let said = &slot.outcome.message;
        let message = if said.is_empty() { &words } else { said };
        ObjectResult {
            object: key.clone(),
            state: slot.outcome.state,
            health,
            message: message::shorten(message),
        }
    }

    fn removal_result(&self, key: &ObjectKey, removal: &Removal) -> ObjectResult {
        let health = self.known.get(key).map(|known| known.verdict.health);
        ObjectResult {
            object: key.clone(),
            state: removal.state,
            health: match removal.state {
                ObjectState::Removing | ObjectState::Stuck => Health::Terminating,
                _ => health.unwrap_or(Health::Unknown),
            },
            message: message::shorten(&removal.message),
        }
    }
}

/// What there is to say of a unit, in a sentence or two.
fn message(unit: &Unit, worst: &[ObjectResult]) -> String {
    let said = [sentence(&unit.gate, worst), adopted(unit)];
    let said: Vec<_> = said.into_iter().filter(|words| !words.is_empty()).collect();
    message::shorten(&said.join("; "))
}

/// What a unit waits for, or why it failed: of the worst object, in the words that there are.
fn sentence(gate: &Gate, worst: &[ObjectResult]) -> String {
    if let Gate::Waits(words) | Gate::Blocked(words) = gate {
        return words.clone();
    }
    let tells = |object: &&ObjectResult| {
        let is_leaving = matches!(object.state, ObjectState::Kept | ObjectState::Removing);
        !object.message.is_empty() && !is_leaving
    };
    let first = worst.iter().find(tells);
    first.map_or_else(String::new, |object| {
        message::shorten(&format!("{}: {}", gate::label(&object.object), object.message))
    })
}

/// Which objects were there before; told as long as the unit's content stays the same.
fn adopted(unit: &Unit) -> String {
    let named: Vec<_> = unit
        .adopted
        .iter()
        .take(WORST_OBJECTS_MAX)
        .map(ToString::to_string)
        .collect();
    let more = unit.adopted.len() - named.len();
    match (named.len(), more) {
        (0, _) => String::new(),
        (_, 0) => format!("adopted {}, which was there before", named.join(", ")),
        (_, more) => format!("adopted {} and {more} more, which were there before", named.join(", ")),
    }
}

fn removed_report(results: Vec<ObjectResult>) -> UnitReport {
    UnitReport {
        digest: None,
        state: UnitState::Removing,
        health: Health::Terminating,
        message: String::new(),
        counts: Counts {
            objects: results.len(),
            removing: removing(&results),
            stuck: stuck(&results),
            ..Counts::default()
        },
        worst: worst(results),
        drift: Vec::new(),
    }
}

/// What is on its way out, whatever holds it.
fn removing(results: &[ObjectResult]) -> usize {
    let is_going = |state| matches!(state, ObjectState::Removing | ObjectState::Stuck);
    results.iter().filter(|result| is_going(result.state)).count()
}

fn stuck(results: &[ObjectResult]) -> usize {
    results
        .iter()
        .filter(|result| result.state == ObjectState::Stuck)
        .count()
}

fn counts(objects: &[ObjectResult]) -> Counts {
    let count = |wanted: fn(&ObjectResult) -> bool| objects.iter().filter(|object| wanted(object)).count();
    Counts {
        objects: objects.len(),
        applied: count(|object| object.state == ObjectState::Applied),
        failed: count(|object| is_failure(object.state)),
        current: count(|object| object.state == ObjectState::Applied && object.health == Health::Current),
        removing: 0,
        stuck: 0,
        waiting: count(|object| matches!(object.state, ObjectState::Waiting | ObjectState::Blocked)),
        drifted: 0,
        suspended: count(|object| object.state == ObjectState::Suspended),
        behind: 0,
    }
}

fn state(objects: &[ObjectResult]) -> UnitState {
    if objects.iter().any(|object| is_failure(object.state)) {
        UnitState::Failed
    } else if objects
        .iter()
        .all(|object| matches!(object.state, ObjectState::Applied | ObjectState::Suspended))
    {
        UnitState::Applied
    } else {
        UnitState::Applying
    }
}

pub(super) fn is_failure(state: ObjectState) -> bool {
    matches!(
        state,
        ObjectState::Failed | ObjectState::Conflict | ObjectState::Unsupported
    )
}

/// The worst few, worst first; what is as it should be is not among them.
fn worst(objects: impl IntoIterator<Item = ObjectResult>) -> Vec<ObjectResult> {
    let is_fine = |object: &ObjectResult| object.state == ObjectState::Applied && object.health == Health::Current;
    let mut objects: Vec<_> = objects.into_iter().filter(|object| !is_fine(object)).collect();
    objects.sort_by(|a, b| a.rank().cmp(&b.rank()).then_with(|| a.object.cmp(&b.object)));
    objects.truncate(WORST_OBJECTS_MAX);
    objects
}

#[cfg(test)]
mod tests {
    use super::*;

    fn result(name: &str, state: ObjectState, health: Health) -> ObjectResult {
        ObjectResult {
            object: ObjectKey::new("v1", "ConfigMap", "shop", name),
            state,
            health,
            message: String::new(),
        }
    }

    #[test]
    fn a_unit_is_applied_only_when_all_of_it_is() {
        let applied = result("a", ObjectState::Applied, Health::Current);
        let waiting = result("b", ObjectState::Waiting, Health::Unknown);
        let failed = result("c", ObjectState::Conflict, Health::Unknown);
        assert_eq!(state(std::slice::from_ref(&applied)), UnitState::Applied);
        assert_eq!(state(&[applied.clone(), waiting.clone()]), UnitState::Applying);
        assert_eq!(state(&[applied, waiting, failed]), UnitState::Failed);
        assert_eq!(
            state(&[]),
            UnitState::Applied,
            "a unit without objects has nothing to wait for"
        );
    }

    #[test]
    fn the_worst_come_first_and_the_rest_is_counted() {
        let mut objects = vec![
            result("fine", ObjectState::Applied, Health::Current),
            result("kept", ObjectState::Kept, Health::Unknown),
            result("bad", ObjectState::Failed, Health::Unknown),
        ];
        objects.extend((0..9).map(|index| result(&format!("w{index}"), ObjectState::Waiting, Health::Unknown)));
        let counts = counts(&objects);
        assert_eq!(
            (counts.objects, counts.applied, counts.failed, counts.current),
            (12, 1, 1, 1)
        );
        let worst = worst(objects);
        assert_eq!(worst.len(), WORST_OBJECTS_MAX);
        assert_eq!(worst[0].object.name, "bad");
        assert!(worst.iter().all(|object| object.object.name != "fine"));
    }
}
