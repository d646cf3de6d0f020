//! What a plan moves that no commit asked for, and whether a person has to merge that.

use std::collections::BTreeMap;

use render::model::{Approval, Cluster, PlacementApproval, Subscription};
use render::plan::{ClusterDelta, Delta, deltas};
use render::published::{Cause, Placement, UnitPlacement};
use render::schedule::Presence;
use render::{ClusterName, ObjectKey, UnitKey};

use super::Planned;
use super::state::State;

type Units = BTreeMap<UnitKey, UnitPlacement>;

/// A plan against what is published.
pub(super) struct Moved<'a> {
    before: &'a Units,
    planned: &'a Planned,
    /// Who is silent, and who is heard of.
    presence: BTreeMap<ClusterName, Presence>,
    now: i64,
    deltas: Vec<Delta>,
}

impl<'a> Moved<'a> {
    pub(super) fn new(before: &'a Units, planned: &'a Planned, state: &State) -> Self {
        Self {
            before,
            planned,
            presence: state.presence(),
            now: state.now,
            deltas: deltas(before, &planned.plan.units),
        }
    }

    /// Whether nothing is other than where replicas and copies are.
    pub(super) fn is_all(&self) -> bool {
        self.deltas
            .iter()
            .all(|delta| delta.clusters.iter().all(|change| self.is_move(&delta.unit, change)))
    }

    fn is_move(&self, unit: &UnitKey, change: &ClusterDelta) -> bool {
        match (&change.from, &change.to) {
            (Some(from), Some(to)) => from.digest == to.digest && from.variant == to.variant && from.drift == to.drift,
            // A content that nobody has yet is looked at by whoever merges.
            (None, Some(to)) => {
                let known = self
                    .before
                    .get(unit)
                    .into_iter()
                    .flat_map(|unit| unit.variants.values());
                let is_known = known.map(|variant| variant.digest).any(|digest| digest == to.digest);
                is_known || self.planned.gate == Approval::None
            }
            (_, None) => true,
        }
    }

    /// What kind of decision it is.
    pub(super) fn cause(&self) -> Cause {
        if self.deltas.iter().any(|delta| self.is_failover(delta)) {
            Cause::Failover
        } else {
            Cause::Placement
        }
    }

    /// Whether it needs nobody's merge, as the fleet says that was merged. Who merged a policy of failover approved what
    /// follows from it.
    pub(super) fn may_go_unattended(&self) -> bool {
        let approval = self.planned.fleet.spec.scheduling.placement_approval;
        self.deltas.iter().all(|delta| match approval {
            _ if self.is_failover(delta) => true,
            PlacementApproval::Propose => false,
            PlacementApproval::Automatic => true,
            PlacementApproval::WithinBounds => self.is_within_bounds(delta),
        })
    }

    /// Whether replicas or copies of a unit leave clusters that are lost by now, or whose time is over. What a unit notes
    /// of an outage outlives it, and who is heard of again is moved away from for another reason.
    fn is_failover(&self, delta: &Delta) -> bool {
        let before = self.before.get(&delta.unit);
        let after = self.planned.plan.units.get(&delta.unit);
        delta.clusters.iter().any(|change| {
            let name = &change.cluster;
            let Some(placement) = before.and_then(|unit| unit.clusters.get(name)) else {
                return false;
            };
            let is_silent = matches!(self.presence.get(name), Some(Presence::SilentSince(_)));
            let noted = after.and_then(|unit| unit.loss(name));
            let is_lost = is_silent && noted.is_some_and(|lost| !lost.keeps);
            let left = after.and_then(|unit| unit.clusters.get(name));
            (is_over(placement, self.now) || is_lost) && gives_up(placement, left)
        })
    }

    fn is_within_bounds(&self, delta: &Delta) -> bool {
        let unit = self.planned.fleet.units.get(&delta.unit);
        let mut names = delta.clusters.iter().map(|change| &change.cluster);
        unit.is_some_and(|unit| names.all(|name| is_bounded(&unit.subscription, self.planned.fleet.clusters.get(name))))
    }
}

/// Whether a cluster has less of a unit than before.
fn gives_up(before: &Placement, after: Option<&Placement>) -> bool {
    let Some(after) = after else { return true };
    let has_less = |(object, had): (&ObjectKey, &u64)| after.replicas.get(object).is_none_or(|has| has < had);
    before.replicas.iter().any(has_less)
}

fn is_over(placement: &Placement, now: i64) -> bool {
    placement.leaves_at.is_some_and(|at| now >= at)
}

/// Whether Git says how many replicas of a unit a cluster may have at most; no placement has more.
fn is_bounded(subscription: &Subscription, cluster: Option<&Cluster>) -> bool {
    let Some(cluster) = cluster else { return false };
    subscription.subscribers.iter().any(|subscriber| {
        let affinity = subscriber.cluster_affinity.as_ref();
        subscriber.replicas.max.is_some() && affinity.is_some_and(|affinity| affinity.matches(&cluster.labels))
    })
}

/// Whether other numbers of replicas found no place, or clusters are to be left at another time.
pub(super) fn says_otherwise(before: &Units, after: &Units) -> bool {
    after.iter().any(|(key, unit)| {
        before
            .get(key)
            .is_some_and(|before| before.unplaced != unit.unplaced || times(before) != times(unit))
    })
}

fn times(unit: &UnitPlacement) -> Vec<(&ClusterName, i64)> {
    let clusters = unit.clusters.iter();
    clusters
        .filter_map(|(name, placement)| Some((name, placement.leaves_at?)))
        .collect()
}
