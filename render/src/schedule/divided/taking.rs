//! Room that is taken from a lower priority, and given to a higher one.

use std::collections::{BTreeMap, BTreeSet};

use super::Division;
use super::room::Row;
use crate::model::Cluster;
use crate::name::{ClusterName, ObjectKey};
use crate::schedule::ledger::{Asking, Gone};
use crate::schedule::preempt::{self, Offer, Spare};
use crate::schedule::share::{Room, Rule, Seats, Shares, share};
use crate::schedule::trouble;
use crate::shared::Shared;

/// Cluster → what leaves it for the unit.
pub(super) type Gains = BTreeMap<ClusterName, Vec<Gone>>;

impl<'a> Division<'a, '_> {
    /// How many replicas a cluster has beside those that it has to give.
    pub(super) fn left(&self, (cluster, object): (&ClusterName, &ObjectKey), had: u64) -> u64 {
        let given = self.ledger.given(&self.subscription.key, cluster, object);
        let given: u64 = given.iter().map(|given| given.replicas).sum();
        had.saturating_sub(given)
    }

    /// Tells what a cluster has to give; the words for it.
    pub(super) fn give(&mut self, cluster: &ClusterName, object: &ObjectKey) -> Option<String> {
        let given = self.ledger.given(&self.subscription.key, cluster, object);
        let texts: Vec<String> = given
            .iter()
            .map(|given| {
                format!(
                    "gave {} to {}, whose priority is {}",
                    given.replicas, given.to, given.priority
                )
            })
            .collect();
        let found = given
            .iter()
            .map(|given| trouble::preempted(self.subscription, object, given));
        let found: Vec<_> = found.collect();
        self.scheduled.by_room |= !found.is_empty();
        self.scheduled.findings.extend(found);
        (!texts.is_empty()).then(|| texts.join(", "))
    }

    /// The room of a cluster, less what a higher priority waits for there.
    pub(super) fn behind(&mut self, cluster: &Cluster, left: u64, room: Room) -> Option<(Room, Shared<String>)> {
        let Room::Replicas(most) = room else { return None };
        let books = self.context.books();
        let (unit, priority) = self.ledger.first_served(&books, cluster, self.subscription)?;
        let text = format!("no more: {unit}, whose priority is {priority}, is served first");
        Some((Room::Replicas(most.min(left)), text.into()))
    }

    /// Takes room from a lower priority for what found none, in clusters where nobody else is served first.
    pub(super) fn take(
        &mut self,
        (object, wanted, rule): (&ObjectKey, u64, Rule),
        rows: &[Row<'a, '_>],
        seats: &mut Seats<&'a ClusterName>,
        shares: &mut Shares<&'a ClusterName>,
    ) -> Gains {
        let mut taken = Gains::new();
        let priority = self.subscription.placing.priority;
        let mut able = BTreeSet::new();
        for (row, seat) in rows.iter().zip(seats.values()) {
            let is_known = matches!(seat.room, Room::Replicas(_));
            let first = self
                .ledger
                .first_served(&self.context.books(), row.chosen.cluster, self.subscription);
            // What its predictor would say then, nobody knows.
            if is_known && first.is_none() && row.judged.prediction.is_none() {
                able.insert(row.name.clone());
            }
        }
        let mut spares = preempt::spares(self.context, self.ledger, &able, priority);
        for priority in preempt::priorities(&spares) {
            for name in self.cheapest(&spares, priority, (object, seats, shares)) {
                let before = seats[&name].room;
                let there = shares.replicas[&name];
                let mut need = shares.unplaced;
                // What the rule does not put there is not taken.
                while let Some(offer) = self.offer(&spares, priority, (&name, object, seats), (there, need)) {
                    if let Some(seat) = seats.get_mut(&name) {
                        seat.room = Room::Replicas(there + offer.gain);
                    }
                    let next = share(&self.subscription.key, wanted, rule, self.skew(), seats);
                    let used = next.replicas[&name].saturating_sub(there);
                    if used == offer.gain {
                        *shares = next;
                        self.accept(&name, offer, &mut spares, &mut taken);
                        break;
                    }
                    if let Some(seat) = seats.get_mut(&name) {
                        seat.room = before;
                    }
                    need = used;
                }
            }
        }
        if !taken.is_empty() {
            let found = trouble::preempts(self.subscription, object, &taken);
            self.scheduled.findings.push(found);
        }
        taken
    }

    fn accept(&mut self, name: &ClusterName, offer: Offer, spares: &mut preempt::Spares, taken: &mut Gains) {
        if let Some(list) = spares.get_mut(name) {
            preempt::take(list, &offer.gone);
        }
        taken
            .entry(name.clone())
            .or_default()
            .extend(offer.gone.iter().cloned());
        let cluster = self.members[name].cluster();
        self.ledger
            .give(&self.context.books(), cluster, self.subscription, offer.gone);
    }

    /// The clusters that have something to give, where the fewest leave for each that finds room first.
    fn cheapest(
        &mut self,
        spares: &preempt::Spares,
        priority: i32,
        (object, seats, shares): (&ObjectKey, &Seats<&'a ClusterName>, &Shares<&'a ClusterName>),
    ) -> Vec<ClusterName> {
        let mut offers = Vec::new();
        for name in spares.keys() {
            let numbers = (shares.replicas[name], shares.unplaced);
            if let Some(offer) = self.offer(spares, priority, (name, object, seats), numbers) {
                offers.push((name.clone(), offer));
            }
        }
        let product = |one: u64, other: u64| u128::from(one) * u128::from(other);
        offers.sort_by(|(name, one), (other, two)| {
            let by_cost = product(one.cost(), two.gain).cmp(&product(two.cost(), one.gain));
            by_cost.then_with(|| name.cmp(other))
        });
        offers.into_iter().map(|(name, _)| name).collect()
    }

    fn offer(
        &mut self,
        spares: &preempt::Spares,
        priority: i32,
        (name, object, seats): (&ClusterName, &ObjectKey, &Seats<&'a ClusterName>),
        (there, need): (u64, u64),
    ) -> Option<Offer> {
        let need = need.min(seats[name].most.saturating_sub(there));
        let list: &[Spare] = spares.get(name).filter(|_| need > 0)?;
        let requirements = self.members[name].requirements(object);
        let asking = Asking {
            unit: &self.subscription.key,
            object,
            requirements: &requirements,
        };
        let cluster = self.members[name].cluster();
        preempt::offer(
            self.context,
            self.ledger,
            cluster,
            asking,
            (list, priority),
            (there, need),
        )
    }
}

/// In words, what a cluster gave to the unit.
pub(super) fn taken_text(gone: &[Gone]) -> String {
    let texts = gone.iter().map(|gone| format!("{} of {}", gone.replicas, gone.unit));
    let texts: Vec<_> = texts.collect();
    format!("takes the room of {}", texts.join(" and "))
}
