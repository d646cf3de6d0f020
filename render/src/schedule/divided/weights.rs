//! Replicas divided by the weights that subscribers have.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::Division;
use super::seats::{bounds_text, compatible};
use crate::finding::Finding;
use crate::model::{Dividing, Scheduling, Subscription};
use crate::name::{ClusterName, ObjectKey};
use crate::schedule::by_name::ByName;
use crate::schedule::candidates::{Chosen, Search};
use crate::schedule::parting;
use crate::schedule::share::{Room, Rule, Seats, share};

/// Whether replicas are divided by weights, and none of the chosen clusters has any.
pub(in crate::schedule) fn lacks_weight(subscription: &Subscription, search: &Search<'_>) -> bool {
    subscription.scheduling.is_by_weight()
        && weights(subscription, &search.chosen)
            .values()
            .all(|weight| *weight == 0)
}

/// Each chosen cluster's weight: the sum over the subscribers that match it, 1 for each cluster where no
/// subscriber has a weight. Empty without dividing by weights.
pub(super) fn weights(
    subscription: &Subscription,
    chosen: &ByName<&ClusterName, Chosen<'_>>,
) -> BTreeMap<ClusterName, u64> {
    if subscription.scheduling != Scheduling::Dividing(Dividing::Static) {
        return BTreeMap::new();
    }
    let unweighted = subscription
        .subscribers
        .iter()
        .all(|subscriber| subscriber.weight.is_none());
    let weight_of = |chosen: &Chosen<'_>| {
        if unweighted {
            return 1;
        }
        let weight = |index: &usize| u64::from(subscription.subscribers[*index].weight.unwrap_or_default());
        chosen.subscribers.iter().map(weight).sum()
    };
    chosen
        .iter()
        .map(|(name, chosen)| ((*name).clone(), weight_of(chosen)))
        .collect()
}

impl Division<'_, '_> {
    pub(super) fn by_weights(&mut self, object: &ObjectKey, wanted: u64) -> Result<(), Box<Finding>> {
        let previous = self.previous;
        let mut seats = Seats::default();
        let mut is_anybody_still = false;
        let mut said = Vec::with_capacity(self.members.len());
        for (name, member) in &self.members {
            let had = self.had(name, object);
            let bounds = self.bounds(name, member.chosen)?;
            let mut seat = self.seat((member.chosen, member.weight), bounds, (had, Room::Unbounded));
            let bounds = bounds_text(seat.least, seat.most);
            let silent = member.chosen.still.as_ref();
            let kept_out = self.kept_out(member.cluster()).filter(|_| self.is_numbered(name));
            if silent.is_none() && kept_out.is_some() {
                (seat.least, seat.most) = (seat.least.min(had), seat.most.min(had));
            }
            let still = silent.map(|still| format!("no more: {}", still.why)).or(kept_out);
            is_anybody_still |= still.is_some();
            said.push(still.map_or(bounds.clone(), |why| format!("{bounds}, {why}")));
            seats.insert(*name, seat);
        }
        let shares = if self.is_compatible() && !is_anybody_still {
            let Some(shares) = compatible(wanted, Rule::Weights, &seats) else {
                // With weights of 0 alone it divides nothing, and each cluster runs the whole.
                return Ok(());
            };
            shares
        } else {
            share(&self.subscription.key, wanted, Rule::Weights, None, &seats)
        };
        let key = Arc::new(object.clone());
        let total = self.total;
        let numbers = |share: u64, weight: u64| {
            format!(
                "replicas of {} {}: {share} of {wanted}, weight {weight} of {total}",
                object.kind, object.name
            )
        };
        let shared = seats.values().zip(shares.replicas.values()).zip(said);
        for (member, ((seat, share), said)) in self.members.values_mut().zip(shared) {
            let reason = format!(
                "{}{said}{}",
                numbers(*share, member.weight),
                parting::taken_over(self.parting, (previous, object), share.saturating_sub(seat.had))
            );
            member.assignment.replicas.insert(Arc::clone(&key), *share);
            member.assignment.reasons.push(reason);
        }
        for assignment in self.scheduled.assignments.values_mut() {
            assignment.replicas.insert(Arc::clone(&key), 0);
            assignment.reasons.push(numbers(0, 0));
        }
        self.leave_unplaced((object, wanted), &seats, &shares, || {
            "every cluster has as many as it may".to_owned()
        });
        Ok(())
    }

    /// Whether it is known how many replicas a cluster has: not where it had them whole.
    fn is_numbered(&self, cluster: &ClusterName) -> bool {
        let placement = self.previous.and_then(|unit| unit.clusters.get(cluster));
        placement.is_some_and(|placement| !placement.replicas.is_empty())
    }
}
