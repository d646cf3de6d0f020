//! Replicas that no cluster takes.

use super::Division;
use crate::name::ObjectKey;
use crate::published::Unplaced;
use crate::schedule::ledger::may_take;
use crate::schedule::{Assignment, parting, trouble};

impl Division<'_, '_> {
    /// What found no other place stays where it was; what was nowhere is told, and `why` no cluster takes it.
    pub(super) fn leave_unplaced(
        &mut self,
        object: &ObjectKey,
        wanted: u64,
        unplaced: u64,
        why: impl FnOnce() -> String,
    ) {
        let mut left = unplaced;
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
        let is_refused = self.subscription.placing.preempts && !may_take(self.subscription, self.context.fleet);
        let numbers = (unplaced, wanted);
        let found = trouble::unplaced(self.subscription, object, numbers, &why(), is_refused);
        self.scheduled.findings.push(found);
        let entry = Unplaced {
            replicas: unplaced,
            of: wanted,
        };
        self.scheduled.unplaced.insert(object.clone(), entry);
    }
}
