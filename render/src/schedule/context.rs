//! What the placements of all units of one plan look at.

use std::collections::BTreeMap;

use crate::digest::Digest;
use crate::finding::Finding;
use crate::fleet::Fleet;
use crate::limits::MOVES_PAUSE_SECONDS;
use crate::model::{Subscription, Toleration};
use crate::name::{ClusterName, UnitKey};
use crate::published::UnitPlacement;
use crate::schedule::by_name::ByName;
use crate::schedule::candidates::Sight;
use crate::schedule::ledger::Books;
use crate::schedule::silence::Silence;
use crate::schedule::{Moves, Report, Reports, inputs};

/// What the placements of all units of one plan look at.
#[derive(Debug)]
pub struct Context<'a> {
    /// The loaded revision.
    pub fleet: &'a Fleet,
    /// What clusters said of their room; only dividing by room reads it.
    pub reports: &'a Reports,
    /// Every unit's placement before.
    pub previous: &'a BTreeMap<UnitKey, UnitPlacement>,
    /// What else may move placements.
    pub moves: &'a Moves,
    /// Seconds since 1970.
    pub now: i64,
    pub(super) silence: Silence<'a>,
    clusters: ByName<&'a ClusterName, Seen<'a>>,
}

/// What is seen of one cluster, whatever the unit.
#[derive(Clone, Copy, Debug)]
pub(super) struct Seen<'a> {
    /// Over its labels and taints.
    pub(super) digest: Digest,
    /// What it reported, where that may be believed.
    pub(super) report: Option<&'a Report>,
}

impl<'a> Context<'a> {
    /// Digests every cluster once, so that a thousand units do not do it again.
    pub fn new(
        fleet: &'a Fleet,
        reports: &'a Reports,
        previous: &'a BTreeMap<UnitKey, UnitPlacement>,
        moves: &'a Moves,
        now: i64,
    ) -> Self {
        let seen = |(name, cluster)| {
            let digest = inputs::of_cluster(cluster);
            let report = reports.of(name).ok();
            (name, Seen { digest, report })
        };
        Self {
            fleet,
            reports,
            previous,
            moves,
            now,
            silence: Silence::new(fleet, reports, previous, now),
            clusters: fleet.clusters.iter().map(seen).collect(),
        }
    }

    /// What is seen of a cluster. `None` for an unknown one.
    pub(super) fn seen(&self, cluster: &ClusterName) -> Option<&Seen<'a>> {
        self.clusters.get(cluster)
    }

    /// What is seen of the cluster at a place among all of the fleet.
    pub(super) fn seen_at(&self, place: usize) -> Option<&Seen<'a>> {
        self.clusters.at(place)
    }

    /// What is not done about clusters that are silent.
    pub(crate) fn alarms(&self) -> &[Finding] {
        self.silence.findings()
    }

    /// When clusters are silent, or heard of, for long enough to decide otherwise.
    pub(crate) fn again_at(&self) -> Option<i64> {
        self.silence.next()
    }

    /// Whether the time, or who is silent, may decide something of a unit, so that nothing remembered answers for it.
    pub(crate) fn is_by_time(&self, subscription: &Subscription, previous: Option<&UnitPlacement>) -> bool {
        let has_delays = || {
            let delays = |toleration: &Toleration| toleration.toleration_seconds.is_some();
            subscription.tolerations.iter().any(delays)
        };
        !self.silence.is_quiet(previous) || self.pause(previous).is_some() || has_delays()
    }

    /// Until when a unit stays, since it was moved just now and no source commit asks for more.
    pub(super) fn pause(&self, previous: Option<&UnitPlacement>) -> Option<i64> {
        let moved_at = previous?.moved_at.filter(|_| self.moves.decided)?;
        let until = moved_at.saturating_add(MOVES_PAUSE_SECONDS);
        // A clock that was put back makes nobody wait for longer.
        (moved_at <= self.now && self.now < until).then_some(until)
    }

    /// What a search for a unit's clusters looks at.
    pub(super) fn sight<'s>(
        &'s self,
        subscription: &'s Subscription,
        previous: Option<&'s UnitPlacement>,
        anew: bool,
    ) -> Sight<'s, 'a> {
        Sight {
            fleet: self.fleet,
            silence: &self.silence,
            now: self.now,
            subscription,
            previous,
            anew,
        }
    }

    pub(super) fn books(&self) -> Books<'_> {
        Books {
            reports: self.reports,
            previous: self.previous,
            fleet: self.fleet,
        }
    }
}
