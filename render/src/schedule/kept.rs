//! A placement that stays because no better one can be made.

use std::collections::BTreeMap;

use crate::model::Subscription;
use crate::name::{ClusterName, ObjectKey};
use crate::published::UnitPlacement;
use crate::schedule::share::divide;
use crate::schedule::{Assignment, Context, inputs};

/// The last placement over again. Clusters whose file is gone drop out. An object that was not divided
/// before is shared out equally: left alone, it would run whole on every cluster.
pub(super) fn kept(
    context: &Context<'_>,
    subscription: &Subscription,
    desired: &BTreeMap<ObjectKey, u64>,
    previous: Option<&UnitPlacement>,
    reason: &str,
) -> BTreeMap<ClusterName, Assignment> {
    let of_unit = inputs::of_unit(subscription, desired, &BTreeMap::new());
    let before = previous.into_iter().flat_map(|unit| &unit.clusters);
    let mut assignments: BTreeMap<ClusterName, Assignment> = before
        .filter_map(|(name, placement)| {
            let cluster = context.fleet.clusters.get(name)?;
            let assignment = Assignment {
                replicas: placement.replicas.clone(),
                reasons: vec![reason.to_owned()].into(),
                inputs: inputs::of_both(&of_unit, &inputs::of_cluster_in(context, cluster)),
                capacity: placement.capacity.clone(),
                leaves_at: placement.leaves_at,
            };
            Some((name.clone(), assignment))
        })
        .collect();
    let equal: BTreeMap<ClusterName, u64> = assignments.keys().map(|name| (name.clone(), 1)).collect();
    for (object, replicas) in desired {
        if assignments
            .values()
            .any(|assignment| assignment.replicas.contains_key(object))
        {
            continue;
        }
        for (name, share) in divide(&subscription.key, *replicas, &equal).into_iter().flatten() {
            if let Some(assignment) = assignments.get_mut(&name) {
                assignment.replicas.insert(object.clone(), share);
            }
        }
    }
    assignments
}
