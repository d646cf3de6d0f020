//! A unit over all its clusters: one ladder, counts, and the worst few.

use render::{ClusterName, Revision, UnitKey};
use serde::Serialize;

use super::condition::{Condition, Status, summary};
use super::evidence::{WorstObject, place};
use super::index::Observation;
use super::ladder::{Ladder, OFFLINE, PlacementView, Rung};
use crate::limits::WORST_OBJECTS_MAX;

/// A unit over all its clusters.
#[derive(Clone, Debug)]
pub struct UnitView {
    /// `Ready`, `Reconciling` or `Stalled` while they are true, then every rung.
    pub conditions: Vec<Condition>,
    /// How many clusters fare how.
    pub clusters: ClusterCounts,
    /// The first few clusters that are not ready, broken ones first.
    pub worst_clusters: Vec<WorstCluster>,
    /// The first few objects that are not as they should be.
    pub worst: Vec<WorstObject>,
    /// What it was made from: the accepted revision, or an older one while an Error holds it.
    pub revision: Option<Revision>,
}

/// How many clusters fare how. Each is in one of the parts, and `total` is their sum.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize)]
pub struct ClusterCounts {
    /// Clusters that shall have it, and those it still has to leave.
    pub total: usize,
    /// At the top of the ladder.
    pub ready: usize,
    /// On the way.
    pub pending: usize,
    /// Something is wrong there.
    pub failed: usize,
    /// Not connected, and nothing known to be wrong.
    pub offline: usize,
}

/// A cluster where a unit is not ready.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct WorstCluster {
    /// Which.
    pub cluster: ClusterName,
    /// As in `Ready`.
    pub reason: String,
    /// As in `Ready`.
    pub message: String,
}

type Placements<'a> = Vec<(&'a ClusterName, PlacementView)>;

impl Observation<'_> {
    /// How a unit fares.
    pub fn unit(&self, unit: &UnitKey) -> UnitView {
        let names = self.placements.get(unit).into_iter().flatten();
        let placements: Placements<'_> = names.map(|name| (*name, self.placement(unit, name))).collect();
        let rungs: Vec<_> = if placements.is_empty() {
            self.unplaced(unit).0.to_vec()
        } else {
            Rung::ALL.iter().map(|rung| aggregate(*rung, &placements)).collect()
        };
        let mut conditions = summary(rungs.iter().skip(1), |rung| {
            // Stalled is for the whole unit: whatever stalls one cluster stalls it.
            rung.reason == "NoClusterMatches" || self.error(unit, None).is_some() || any_stalled(&placements)
        });
        conditions.extend(rungs);
        conditions.extend(somewhere(&placements, |view| view.suspended.as_ref()));
        conditions.extend(somewhere(&placements, |view| view.drifted.as_ref()));
        UnitView {
            conditions,
            clusters: counts(&placements),
            worst_clusters: worst_clusters(&placements),
            worst: worst_objects(&placements),
            revision: self.unit_revision(unit),
        }
    }

    /// A unit that no cluster has: held by an Error from the start, matched by none, or not planned yet.
    fn unplaced(&self, unit: &UnitKey) -> Ladder {
        let kind = Rung::Scheduled.as_str();
        let scheduled = match self.error(unit, None) {
            Some(error) => Condition::no(kind, &error.reason, place(error)),
            None if self.state.rendered.is_none() => {
                Condition::unknown(kind, "NotPlannedYet", "nothing was rendered yet")
            }
            None => Condition::no(kind, "NoClusterMatches", "no cluster matches its subscribers"),
        };
        let open = |rung: Rung| Condition::unknown(rung.as_str(), "NotScheduled", "it is on no cluster");
        let [rendered, released, applied, healthy] =
            [Rung::Rendered, Rung::Released, Rung::Applied, Rung::Healthy].map(open);
        Ladder([
            self.source.clone(),
            scheduled,
            rendered,
            self.approved_unit(unit),
            released,
            applied,
            healthy,
        ])
    }

    /// What is accepted holds for every unit that nothing holds back. One that waits for a person's merge is as it
    /// was released.
    fn unit_revision(&self, unit: &UnitKey) -> Option<Revision> {
        let state = self.state;
        if self.waits(unit) {
            return Some(state.released.as_ref()?.published.record.as_ref()?.source.clone());
        }
        if self.error(unit, None).is_none() && state.accepted.is_some() {
            return state.accepted.clone();
        }
        let variants = &state.rendered.as_ref()?.published.units.get(unit)?.variants;
        variants.values().next().map(|variant| variant.revision.clone())
    }
}

/// One rung over all clusters: what does not hold somewhere does not hold.
fn aggregate(rung: Rung, placements: &Placements<'_>) -> Condition {
    let of = |status: Status| {
        placements
            .iter()
            .filter(move |(_, view)| view.ladder.rung(rung).status == status)
    };
    let (status, chosen) = if let Some(broken) = of(Status::False).next() {
        (Status::False, broken)
    } else if let Some(open) = of(Status::Unknown).min_by_key(|(_, view)| view.ladder.rung(rung).reason == OFFLINE) {
        (Status::Unknown, open)
    } else {
        let message = format!("on {} of {} clusters", placements.len(), placements.len());
        let reason = placements
            .first()
            .map(|(_, view)| view.ladder.rung(rung).reason.clone())
            .unwrap_or_default();
        return Condition {
            kind: rung.as_str(),
            status: Status::True,
            reason,
            message,
        };
    };
    let (cluster, view) = chosen;
    let condition = view.ladder.rung(rung);
    let alike = |(_, view): &&(&ClusterName, PlacementView)| view.ladder.rung(rung).message == condition.message;
    if placements.iter().all(|placement| alike(&placement)) {
        return condition.clone();
    }
    let count = of(status).count();
    let message = format!(
        "{count} of {} clusters, such as {cluster}: {}",
        placements.len(),
        condition.message
    );
    Condition {
        message,
        ..condition.clone()
    }
}

fn any_stalled(placements: &Placements<'_>) -> bool {
    placements
        .iter()
        .any(|(_, view)| view.summary.iter().any(|condition| condition.kind == "Stalled"))
}

/// A condition that holds on some of the clusters: a Suspension, or drift.
fn somewhere(
    placements: &Placements<'_>,
    condition: impl Fn(&PlacementView) -> Option<&Condition>,
) -> Option<Condition> {
    let mut held = placements
        .iter()
        .filter_map(|(cluster, view)| Some((*cluster, condition(view)?)));
    let (cluster, first) = held.next()?;
    let (count, all) = (held.count() + 1, placements.len());
    if count == all {
        return Some(first.clone());
    }
    let message = format!("on {count} of {all} clusters, such as {cluster}: {}", first.message);
    Some(Condition {
        message,
        ..first.clone()
    })
}

fn counts(placements: &Placements<'_>) -> ClusterCounts {
    let mut counts = ClusterCounts {
        total: placements.len(),
        ..ClusterCounts::default()
    };
    for (_, view) in placements {
        let part = match ready(view) {
            Some(ready) if ready.is_true() => &mut counts.ready,
            Some(ready) if ready.is_false() => &mut counts.failed,
            _ if view.offline => &mut counts.offline,
            _ => &mut counts.pending,
        };
        *part += 1;
    }
    counts
}

fn ready(view: &PlacementView) -> Option<&Condition> {
    view.summary.first()
}

fn worst_clusters(placements: &Placements<'_>) -> Vec<WorstCluster> {
    let mut open: Vec<_> = placements
        .iter()
        .filter_map(|(cluster, view)| Some((*cluster, ready(view).filter(|ready| !ready.is_true())?)))
        .collect();
    open.sort_by_key(|(_, ready)| (!ready.is_false(), ready.reason == OFFLINE));
    let named = |(cluster, ready): (&ClusterName, &Condition)| WorstCluster {
        cluster: cluster.clone(),
        reason: ready.reason.clone(),
        message: ready.message.clone(),
    };
    open.into_iter().take(WORST_OBJECTS_MAX).map(named).collect()
}

fn worst_objects(placements: &Placements<'_>) -> Vec<WorstObject> {
    let mut worst: Vec<_> = placements
        .iter()
        .flat_map(|(_, view)| view.worst.iter().cloned())
        .collect();
    // What could not be applied comes before what is not healthy, wherever that is.
    worst.sort_by_key(|object| (object.result.rank(), std::cmp::Reverse(object.result.health)));
    worst.truncate(WORST_OBJECTS_MAX);
    worst
}
