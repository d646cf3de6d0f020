//! One look at the state, with what it takes to find things in it quickly.

use std::collections::{BTreeMap, BTreeSet};

use render::model::Suspension;
use render::published::{Placement, Variant};
use render::release::Waiting;
use render::{ClusterName, Finding, UnitKey};

use super::condition::{Condition, Status};
use crate::hub::engine::{State, StateCommit};
use crate::wire::{Report, UnitReport};

/// One look at the state.
pub struct Observation<'a> {
    /// What is looked at.
    pub state: &'a State,
    /// Unit → clusters that have it, had it released, or still report it.
    pub placements: BTreeMap<&'a UnitKey, BTreeSet<&'a ClusterName>>,
    /// Unit → the Errors that hold it.
    pub(super) errors: BTreeMap<&'a UnitKey, Vec<&'a Finding>>,
    /// Cluster → its units, as in `placements`.
    pub(super) clusters: BTreeMap<&'a ClusterName, BTreeSet<&'a UnitKey>>,
    pub(super) source: Condition,
    /// Of the source and of the state refs, as the engine says them.
    pub(super) fleet: Vec<Condition>,
    recovering: bool,
}

impl<'a> Observation<'a> {
    /// Looks once.
    pub fn new(state: &'a State) -> Self {
        let placements = placements(state);
        let mut clusters: BTreeMap<_, BTreeSet<_>> = BTreeMap::new();
        for (unit, names) in &placements {
            for name in names {
                clusters.entry(*name).or_default().insert(*unit);
            }
        }
        let mut errors: BTreeMap<_, Vec<_>> = BTreeMap::new();
        for finding in state.findings.iter().filter(|finding| finding.is_error()) {
            if let Some(unit) = &finding.unit {
                errors.entry(unit).or_default().push(finding);
            }
        }
        let fleet: Vec<_> = state.conditions().into_iter().map(convert).collect();
        let recovering = fleet.iter().any(|condition| condition.reason == "Recovering");
        Self {
            state,
            placements,
            errors,
            clusters,
            source: source(&fleet),
            fleet,
            recovering,
        }
    }

    /// Every unit: declared, published, or still being removed somewhere.
    pub fn units(&self) -> BTreeSet<&'a UnitKey> {
        let declared = self.state.fleet.as_ref().map(|fleet| fleet.units.keys());
        declared
            .into_iter()
            .flatten()
            .chain(self.placements.keys().copied())
            .collect()
    }

    /// Whether an Error holds a unit, as a whole or somewhere.
    pub fn is_held(&self, unit: &UnitKey) -> bool {
        self.errors.contains_key(unit)
    }

    /// What `rendered` says of a unit on a cluster.
    pub(super) fn rendered(&self, unit: &UnitKey, cluster: &ClusterName) -> Option<(&'a Placement, &'a Variant)> {
        entry(self.state.rendered.as_ref(), unit, cluster)
    }

    /// What `released` says of a unit on a cluster.
    pub(super) fn released(&self, unit: &UnitKey, cluster: &ClusterName) -> Option<(&'a Placement, &'a Variant)> {
        entry(self.state.released.as_ref(), unit, cluster)
    }

    /// The first Error that holds a unit as a whole, or on this cluster.
    pub(super) fn error(&self, unit: &UnitKey, cluster: Option<&ClusterName>) -> Option<&'a Finding> {
        let errors = self.errors.get(unit)?;
        let concerns = |finding: &&&Finding| cluster.is_none_or(|cluster| finding.concerns(cluster));
        errors.iter().find(concerns).copied()
    }

    /// The Error that keeps on a cluster what it has of a unit.
    pub(in crate::hub) fn held_by(&self, unit: &UnitKey, cluster: &ClusterName) -> Option<&'a Finding> {
        self.rendered(unit, cluster)?;
        self.error(unit, Some(cluster))
    }

    /// The Suspension that keeps a unit on a cluster as it is, as of the newest event.
    pub(in crate::hub) fn suspension(&self, unit: &UnitKey, cluster: &ClusterName) -> Option<&'a Suspension> {
        let fleet = self.state.fleet.as_ref()?;
        fleet.suspensions().of(unit, cluster, self.state.now)
    }

    /// What a unit's release on a cluster waits for.
    pub(super) fn waiting(&self, unit: &UnitKey, cluster: &ClusterName) -> Option<&'a Waiting> {
        self.state.waiting.get(&(unit.clone(), cluster.clone()))
    }

    /// The Suspension that keeps all of a cluster as it is.
    pub(super) fn cluster_suspension(&self, cluster: &ClusterName) -> Option<&'a Suspension> {
        let fleet = self.state.fleet.as_ref()?;
        fleet.suspensions().of_cluster(cluster, self.state.now)
    }

    pub(super) fn report(&self, cluster: &ClusterName) -> Option<&'a Report> {
        self.state.clusters.get(cluster)?.report.as_deref()
    }

    pub(super) fn unit_report(&self, unit: &UnitKey, cluster: &ClusterName) -> Option<&'a UnitReport> {
        self.report(cluster)?.units.get(unit)
    }

    pub(super) fn is_connected(&self, cluster: &ClusterName) -> bool {
        self.state.is_heard(cluster)
    }
}

impl Observation<'_> {
    /// Whether the hub holds still until it knows again what clusters hold.
    pub fn is_recovering(&self) -> bool {
        self.recovering
    }
}

fn entry<'a>(
    commit: Option<&'a StateCommit>,
    unit: &UnitKey,
    cluster: &ClusterName,
) -> Option<(&'a Placement, &'a Variant)> {
    commit?.published.units.get(unit)?.entry(cluster)
}

fn placements(state: &State) -> BTreeMap<&UnitKey, BTreeSet<&ClusterName>> {
    let mut placements: BTreeMap<_, BTreeSet<_>> = BTreeMap::new();
    for commit in [&state.rendered, &state.released].into_iter().flatten() {
        for (unit, placement) in &commit.published.units {
            placements.entry(unit).or_default().extend(placement.clusters.keys());
        }
    }
    for (cluster, known) in &state.clusters {
        for unit in known.report.iter().flat_map(|report| report.units.keys()) {
            placements.entry(unit).or_default().insert(cluster);
        }
    }
    placements
}

/// The fleet's own condition of its source: the first rung of every ladder.
fn source(fleet: &[Condition]) -> Condition {
    let kind = super::Rung::SourceVerified.as_str();
    let known = fleet.iter().find(|condition| condition.kind == kind).cloned();
    known.unwrap_or_else(|| Condition::unknown(kind, "NotLookedYet", "source was not looked at yet"))
}

/// The engine's condition in the form that is shown.
pub(super) fn convert(condition: crate::hub::engine::Condition) -> Condition {
    let status = match condition.status {
        "True" => Status::True,
        "False" => Status::False,
        _ => Status::Unknown,
    };
    let (reason, message) = (condition.reason.to_owned(), condition.message);
    Condition {
        kind: condition.kind,
        status,
        reason,
        message,
    }
}
