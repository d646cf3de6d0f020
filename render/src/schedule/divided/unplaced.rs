//! Replicas that no cluster takes.

use std::collections::BTreeMap;

use super::Division;
use crate::name::{ClusterName, ObjectKey};
use crate::published::Unplaced;
use crate::schedule::ledger::may_take;
use crate::schedule::share::{Room, Seats, Shares};
use crate::schedule::trouble::Lack;
use crate::schedule::{Assignment, parting, trouble};

impl Division<'_, '_> {
    /// What found no other place stays where it was; what was nowhere is told, and `why` no cluster takes it.
    pub(super) fn leave_unplaced(
        &mut self,
        (object, wanted): (&ObjectKey, u64),
        seats: &Seats<&ClusterName>,
        shares: &Shares<&ClusterName>,
        why: impl FnOnce() -> String,
    ) {
        self.tell_minimums(object, seats, shares);
        let mut left = shares.unplaced;
        for staying in parting::staying(self.parting, (self.previous, object), &mut left) {
            let chosen = &staying.parting.chosen;
            // An object without a number would run whole.
            let fresh = Assignment {
                replicas: self.desired.keys().map(|object| (object.clone(), 0)).collect(),
                ..self.assignment(chosen)
            };
            let assignments = &mut self.scheduled.assignments;
            let assignment = assignments.entry(staying.cluster.clone()).or_insert(fresh);
            assignment.replicas.insert(object.clone(), staying.replicas);
            assignment.reasons.push(staying.reason(object));
            self.scheduled.findings.push(staying.finding(self.subscription, object));
        }
        let unplaced = left;
        if unplaced == 0 {
            return;
        }
        let (numbers, lack) = ((unplaced, wanted), self.lack(seats, shares));
        let found = trouble::unplaced(self.subscription, object, numbers, &why(), lack);
        self.scheduled.findings.push(found);
        let entry = Unplaced {
            replicas: unplaced,
            of: wanted,
        };
        self.scheduled.unplaced.insert(object.clone(), entry);
    }

    /// Tells of clusters that have fewer than their minimum. Why one gets no more whose room nobody knows is told there.
    fn tell_minimums(&mut self, object: &ObjectKey, seats: &Seats<&ClusterName>, shares: &Shares<&ClusterName>) {
        let each = seats.iter().zip(shares.replicas.values());
        let below = each.filter(|((_, seat), share)| seat.room != Room::Frozen && **share < seat.least);
        let below: BTreeMap<_, _> = below
            .map(|((name, seat), share)| (*name, (*share, seat.least)))
            .collect();
        if !below.is_empty() {
            let found = trouble::below_minimum(self.subscription, object, &below);
            self.scheduled.findings.push(found);
        }
    }

    fn lack(&self, seats: &Seats<&ClusterName>, shares: &Shares<&ClusterName>) -> Lack {
        let mut open = seats.values().zip(shares.replicas.values());
        if open.all(|(seat, share)| seat.most < u64::MAX && *share >= seat.most) {
            Lack::Bounds
        } else if self.subscription.placing.preempts && !may_take(self.subscription, self.context.fleet) {
            Lack::Preemption
        } else {
            Lack::Room
        }
    }
}
