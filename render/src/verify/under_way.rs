//! What a commit may say while replicas move: it is neither what was decided before nor what is decided now, but a step
//! from the one to the other.

use std::collections::BTreeSet;

use crate::name::{ClusterName, ObjectKey};
use crate::published::{Placement, UnitPlacement, Variant};
use crate::release::is_under_way;
use crate::schedule::TAKES_OVER;

/// Whether a unit is on its way from what was released before to what is wanted: every cluster has the one or the
/// other, or replicas between them.
pub(super) fn is_step(before: &UnitPlacement, said: &UnitPlacement, wanted: &UnitPlacement) -> bool {
    let clusters = before.clusters.keys().chain(said.clusters.keys());
    let clusters: BTreeSet<_> = clusters.chain(wanted.clusters.keys()).collect();
    let is_between = |cluster: &ClusterName| {
        let [had, told, wants] = [before, said, wanted].map(|unit| unit.entry(cluster).map(plainly));
        if told == had || told == wants {
            return true;
        }
        let (Some((had, had_content)), Some((told, told_content))) = (had, told) else {
            return false;
        };
        let wants = |object: &ObjectKey| {
            let replicas = wanted.replicas(cluster, object);
            let had = had.replicas.get(object).copied().unwrap_or_default();
            replicas.min(had)..=replicas.max(had)
        };
        let mut replicas = told.replicas.iter();
        let is_between = replicas.all(|(object, replicas)| wants(object).contains(replicas));
        let replicas = told.replicas.clone();
        let is_same_else = Placement {
            replicas,
            ..had.clone()
        } == told
            && had_content == told_content;
        is_same_else && is_between && had.replicas.keys().eq(told.replicas.keys())
    };
    is_under_way(wanted, said) && clusters.into_iter().all(is_between)
}

/// What a cluster has, whatever its variant is called beside others.
fn plainly((placement, content): (&Placement, &Variant)) -> (Placement, Variant) {
    let variant = placement.variant.plain();
    (
        Placement {
            variant,
            ..placement.clone()
        },
        content.clone(),
    )
}

/// Whether sentences are the same but for whom a cluster took over from: that it was so is known of that time alone.
pub(super) fn is_said_longer(again: &[String], said: &[String]) -> bool {
    let same = |(again, said): (&String, &String)| {
        let rest = said.strip_prefix(again.as_str());
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(TAKES_OVER))
    };
    again.len() == said.len() && again.iter().zip(said).all(same)
}
