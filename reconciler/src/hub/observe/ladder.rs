//! The ladder of one unit on one cluster: how far a push has come there, and what it waits for.

use render::{ClusterName, UnitKey};

use super::condition::{Condition, summary};
use super::evidence;
use super::index::Observation;
use crate::wire::{Counts, Health, ObjectDrift, ObjectState, UnitReport, UnitState};

/// Why nothing is known of a cluster's own rungs: it is not connected. Its own word, since a cluster that
/// is away is not a broken one.
pub(super) const OFFLINE: &str = "Offline";

/// Why a cluster is not told what is rendered: a Suspension. Nothing is under way until it ends.
pub(super) const SUSPENDED: &str = "Suspended";

/// Why what Git says is not applied: the drift mode. Nothing is under way until it is another one.
pub(super) const FROZEN: &str = "Frozen";

/// The rungs, lowest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Rung {
    /// The source branch can be read and followed.
    SourceVerified,
    /// Scheduling gave the unit to the cluster.
    Scheduled,
    /// The newest content could be made for the cluster.
    Rendered,
    /// A person merged it, where the fleet wants that.
    Approved,
    /// The cluster is told so.
    Released,
    /// Every object was applied.
    Applied,
    /// Every object is as it should be.
    Healthy,
}

/// Every rung's condition, lowest first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ladder(pub [Condition; 7]);

/// One unit on one cluster.
#[derive(Clone, Debug)]
pub struct PlacementView {
    /// How far it has come.
    pub ladder: Ladder,
    /// `Ready`, and `Reconciling` or `Stalled` while they are true.
    pub summary: Vec<Condition>,
    /// As the cluster said last; nothing where it said nothing.
    pub counts: Counts,
    /// The worst few objects.
    pub worst: Vec<evidence::WorstObject>,
    /// Whether the cluster is away, so that what it said last may be old.
    pub offline: bool,
    /// Whether the unit left this cluster's delivery.
    pub leaving: bool,
    /// `Suspended` while a Suspension keeps it as it is, whether something waits or not.
    pub suspended: Option<Condition>,
    /// `Drifted` while fields that somebody else changed are left so.
    pub drifted: Option<Condition>,
    /// The first few objects with such fields.
    pub drift: Vec<ObjectDrift>,
}

impl Rung {
    /// All of them, lowest first.
    pub const ALL: [Self; 7] = [
        Self::SourceVerified,
        Self::Scheduled,
        Self::Rendered,
        Self::Approved,
        Self::Released,
        Self::Applied,
        Self::Healthy,
    ];

    /// Its name as a condition type.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::SourceVerified => "SourceVerified",
            Self::Scheduled => "Scheduled",
            Self::Rendered => "Rendered",
            Self::Approved => "Approved",
            Self::Released => "Released",
            Self::Applied => "Applied",
            Self::Healthy => "Healthy",
        }
    }
}

impl Ladder {
    /// A rung's condition.
    pub fn rung(&self, rung: Rung) -> &Condition {
        &self.0[rung as usize]
    }

    /// The rungs that `Ready` is about. A source that cannot be followed changes nothing anywhere, so it is
    /// the Fleet that is not ready then, and no unit.
    pub(super) fn own(&self) -> impl Iterator<Item = &Condition> + Clone {
        self.0.iter().skip(1)
    }

    pub(super) fn summary(&self) -> Vec<Condition> {
        summary(self.own(), is_stalled)
    }
}

/// Objects of the unit that the applier leaves as they are.
fn suspended_objects(report: &UnitReport) -> Option<Condition> {
    let count = report.counts.suspended;
    if count == 0 {
        return None;
    }
    let shown = report
        .worst
        .iter()
        .find(|result| result.state == ObjectState::Suspended);
    let such_as = shown.map_or_else(String::new, |result| {
        format!(", such as {}: {}", evidence::label(&result.object), result.message)
    });
    let behind = evidence::behind(report);
    let message = format!("{count} of {} objects{behind}{such_as}", report.counts.objects);
    Some(Condition::yes(SUSPENDED, "ObjectsSuspended", message))
}

/// Whether a rung that does not hold stays so until a person changes something: a commit, or an object in
/// the cluster. What the API server refuses is tried again.
fn is_stalled(rung: &Condition) -> bool {
    let tried_again = [evidence::APPLY_FAILED, evidence::TROUBLE, "NotReleasedYet"];
    !tried_again.contains(&rung.reason.as_str())
}

impl Observation<'_> {
    /// How a unit fares on a cluster.
    pub fn placement(&self, unit: &UnitKey, cluster: &ClusterName) -> PlacementView {
        let report = self.unit_report(unit, cluster);
        // What nobody was told of and nobody has is on its way there, and not on its way out.
        let is_there = report.is_some() || self.released(unit, cluster).is_some();
        let leaving = is_there && self.rendered(unit, cluster).is_none();
        let ladder = if leaving {
            self.leaving_ladder(unit, cluster)
        } else {
            self.ladder(unit, cluster)
        };
        let offline = !self.is_connected(cluster);
        let mut counts = report.map(|report| report.counts).unwrap_or_default();
        let mut worst = report
            .map(|report| evidence::worst(cluster, report))
            .unwrap_or_default();
        if offline {
            // Nobody knows how they fare now: none of them counts as healthy.
            counts.current = 0;
            worst
                .iter_mut()
                .for_each(|object| object.result.health = Health::Unknown);
        }
        PlacementView {
            summary: ladder.summary(),
            ladder,
            counts,
            worst,
            offline,
            leaving,
            drifted: report.and_then(evidence::drifted),
            drift: report.map(|report| report.drift.clone()).unwrap_or_default(),
            suspended: match self.suspension(unit, cluster) {
                Some(suspension) => Some(Condition::yes(
                    SUSPENDED,
                    SUSPENDED,
                    format!("by {}", suspension.label()),
                )),
                None if self.is_frozen(unit, cluster) => Some(Condition::yes(SUSPENDED, FROZEN, evidence::FREEZE)),
                None => report.and_then(suspended_objects),
            },
        }
    }

    fn ladder(&self, unit: &UnitKey, cluster: &ClusterName) -> Ladder {
        Ladder([
            self.source.clone(),
            self.scheduled(unit, cluster),
            self.rendered_rung(unit, cluster),
            self.approved_unit(unit),
            self.released_rung(unit, cluster),
            self.applied(unit, cluster),
            self.healthy(unit, cluster),
        ])
    }

    fn scheduled(&self, unit: &UnitKey, cluster: &ClusterName) -> Condition {
        let kind = Rung::Scheduled.as_str();
        let reasons = self
            .rendered(unit, cluster)
            .map(|(placement, _)| placement.reasons.join("; "));
        let message = reasons.filter(|reasons| !reasons.is_empty());
        Condition::yes(
            kind,
            "Placed",
            message.unwrap_or_else(|| format!("placed on {cluster}")),
        )
    }

    fn rendered_rung(&self, unit: &UnitKey, cluster: &ClusterName) -> Condition {
        let kind = Rung::Rendered.as_str();
        if let Some(error) = self.error(unit, Some(cluster)) {
            return Condition::no(
                kind,
                &error.reason,
                format!("{}; the last good content is kept", evidence::place(error)),
            );
        }
        let Some((placement, variant)) = self.rendered(unit, cluster) else {
            return Condition::unknown(kind, "NotRenderedYet", "not rendered yet");
        };
        let since = super::short_revision(&self.state.branch, &variant.revision);
        Condition::yes(kind, "Rendered", format!("variant {} since {since}", placement.variant))
    }

    /// Whether a unit's newest content waits for a person's merge.
    pub(super) fn waits(&self, unit: &UnitKey) -> bool {
        let proposed = self.state.proposed.as_ref();
        proposed.is_some_and(|proposed| proposed.units.contains(unit))
    }

    pub(super) fn approved_unit(&self, unit: &UnitKey) -> Condition {
        let awaited = self.awaited().filter(|_| self.waits(unit));
        awaited.unwrap_or_else(|| self.approved())
    }

    pub(super) fn approved(&self) -> Condition {
        use render::published::Cause;
        let kind = Rung::Approved.as_str();
        let record = self
            .state
            .rendered
            .as_ref()
            .and_then(|rendered| rendered.published.record.as_ref());
        match record.map(|record| record.cause) {
            Some(Cause::SourceCommit) => Condition::yes(kind, "NotRequired", "the fleet asks for no approval"),
            Some(Cause::Placement) => {
                Condition::yes(kind, "NotRequired", "the fleet lets the hub place what had no place")
            }
            Some(Cause::Failover) => {
                Condition::yes(kind, "NotRequired", "the fleet lets the hub replace lost clusters")
            }
            Some(Cause::Rebalance) => Condition::yes(kind, "NotRequired", "the fleet asks for no approval"),
            Some(Cause::MergedProposal) => Condition::yes(kind, "Merged", "the proposal was merged"),
            None => Condition::unknown(kind, "NotRenderedYet", "nothing was rendered yet"),
        }
    }

    fn released_rung(&self, unit: &UnitKey, cluster: &ClusterName) -> Condition {
        let kind = Rung::Released.as_str();
        if self.is_recovering() {
            return Condition::unknown(kind, "Recovering", "nothing is released while the hub recovers");
        }
        let suspension = self.suspension(unit, cluster);
        let (Some((wanted, variant)), Some((told, released))) =
            (self.rendered(unit, cluster), self.released(unit, cluster))
        else {
            if let Some(suspension) = suspension {
                let message = format!("suspended by {}; {cluster} is not told", suspension.label());
                return Condition::unknown(kind, SUSPENDED, message);
            }
            if let Some(waits) = self.waiting(unit, cluster) {
                return evidence::waiting(kind, waits);
            }
            return Condition::unknown(kind, "NotReleasedYet", format!("{cluster} is not told yet"));
        };
        if variant.digest == released.digest && wanted.replicas == told.replicas {
            return Condition::yes(kind, "Released", format!("{cluster} is told so"));
        }
        let older = super::short_revision(&self.state.branch, &released.revision);
        if let Some(suspension) = suspension {
            let message = format!(
                "suspended by {}; {cluster} is still told what was rendered from {older}",
                suspension.label()
            );
            return Condition::unknown(kind, SUSPENDED, message);
        }
        if let Some(waits) = self.waiting(unit, cluster) {
            if variant.digest == released.digest {
                return evidence::waiting(kind, waits);
            }
            let message = format!("{waits}; {cluster} is still told what was rendered from {older}");
            return Condition {
                message,
                ..evidence::waiting(kind, waits)
            };
        }
        Condition::unknown(
            kind,
            "HeldBack",
            format!("{cluster} is still told what was rendered from {older}"),
        )
    }

    /// A unit that left the delivery: all that counts is whether its objects are gone.
    fn leaving_ladder(&self, unit: &UnitKey, cluster: &ClusterName) -> Ladder {
        let left = |rung: Rung| Condition::yes(rung.as_str(), "Removed", "it has left the delivery");
        let kind = Rung::Applied.as_str();
        let removing = match self.unit_report(unit, cluster) {
            None if self.has_nothing(unit, cluster) => Condition::yes(kind, "Removed", "nothing of it is there"),
            None => evidence::not_reported(kind, self.is_connected(cluster), self.report(cluster)),
            Some(_) if !self.is_connected(cluster) => {
                Condition::unknown(kind, OFFLINE, "it is removed when the cluster is back")
            }
            Some(report) if report.state == UnitState::Failed => evidence::failed(kind, report),
            Some(report) => evidence::removing(kind, report),
        };
        let told = match (self.released(unit, cluster), self.suspension(unit, cluster)) {
            (None, _) => left(Rung::Released),
            (Some(_), Some(suspension)) => Condition::unknown(
                Rung::Released.as_str(),
                SUSPENDED,
                format!("suspended by {}; {cluster} keeps it", suspension.label()),
            ),
            (Some(_), None) => match self.waiting(unit, cluster) {
                Some(waits) => evidence::waiting(Rung::Released.as_str(), waits),
                None => Condition::unknown(
                    Rung::Released.as_str(),
                    "NotReleasedYet",
                    format!("{cluster} is not told yet"),
                ),
            },
        };
        let healthy = if removing.is_true() {
            let message = removing.message.clone();
            Condition::yes(Rung::Healthy.as_str(), &removing.reason, message)
        } else {
            Condition::unknown(Rung::Healthy.as_str(), "Removing", "it is being removed")
        };
        let [scheduled, rendered] = [Rung::Scheduled, Rung::Rendered].map(left);
        Ladder([
            self.source.clone(),
            scheduled,
            rendered,
            self.approved_unit(unit),
            told,
            removing,
            healthy,
        ])
    }
}
