//! Which clusters are silent for so long that others get what they have.
//!
//! In: since when clusters are silent, the fleet's policy, and what was lost before. Out: how a cluster stands to a unit.
//! What becomes of its replicas is deliberately not here, and neither is a unit that every matching cluster has.
//!
//! Many clusters that fall silent together are the hub's own trouble: then nobody loses anything.

mod judgement;

use std::collections::{BTreeMap, BTreeSet};

use crate::finding::Finding;
use crate::fleet::Fleet;
use crate::model::{Failover, Scheduling, Subscription, TAINT_UNREACHABLE, Taint, TaintEffect};
use crate::name::{ClusterName, UnitKey};
use crate::published::{Lost, UnitPlacement};
use crate::schedule::taints::{Patience, patience};
use crate::schedule::{Presence, Reports};
use crate::time::rfc3339;

use judgement::Judgement;

/// How a cluster stands to a unit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Standing {
    /// As any other.
    Here,
    /// It keeps what it has, and gets nothing more.
    Still(Still),
    /// Others get what it has.
    Lost(Lost),
}

/// Why a cluster keeps what it has, and gets nothing more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Still {
    pub(super) why: String,
    /// Since when it is silent, where it is.
    pub(super) since: Option<i64>,
}

/// What silence means for the units of one plan.
#[derive(Debug)]
pub(super) struct Silence<'a> {
    fleet: &'a Fleet,
    policy: Option<&'a Failover>,
    presence: &'a BTreeMap<ClusterName, Presence>,
    now: i64,
    /// Clusters that are silent for as long as the least patient unit bears, since when.
    silent: BTreeMap<&'a ClusterName, i64>,
    judgement: Judgement<'a>,
    /// When it may be judged otherwise, whoever is heard of until then.
    next: Option<i64>,
}

/// What a fleet says of silence, and what was lost before.
#[derive(Clone, Copy, Debug)]
struct Scene<'a> {
    fleet: &'a Fleet,
    policy: &'a Failover,
    presence: &'a BTreeMap<ClusterName, Presence>,
    previous: &'a BTreeMap<UnitKey, UnitPlacement>,
    now: i64,
}

impl<'a> Silence<'a> {
    /// Judges once what all units of a plan ask about.
    pub(super) fn new(
        fleet: &'a Fleet,
        reports: &'a Reports,
        previous: &'a BTreeMap<UnitKey, UnitPlacement>,
        now: i64,
    ) -> Self {
        let policy = fleet.spec.scheduling.failover.as_ref();
        let presence = &reports.presence;
        let mut silence = Self {
            fleet,
            policy,
            presence,
            now,
            silent: BTreeMap::new(),
            judgement: Judgement::default(),
            next: None,
        };
        if let Some(policy) = policy {
            let scene = Scene {
                fleet,
                policy,
                presence,
                previous,
                now,
            };
            silence.silent = scene.silent();
            silence.judgement = Judgement::of(&scene, &silence.silent);
            silence.next = scene.next(&silence.judgement);
        }
        silence
    }

    /// Whether the fleet has such a cluster.
    pub(super) fn knows(&self, cluster: &ClusterName) -> bool {
        self.fleet.clusters.contains_key(cluster)
    }

    /// What the policy keeps from being done.
    pub(super) fn findings(&self) -> &[Finding] {
        &self.judgement.findings
    }

    /// When the next cluster is silent or heard of for long enough, or the budget has room again.
    pub(super) fn next(&self) -> Option<i64> {
        self.next
    }

    /// Whether a unit's placement depends on nobody's silence, now or before.
    pub(super) fn is_quiet(&self, previous: Option<&UnitPlacement>) -> bool {
        self.silent.is_empty() && previous.is_none_or(|unit| unit.lost.is_empty())
    }

    /// How a cluster stands to a unit. `anew` says whether the unit asks for something else than when it was placed, so
    /// that shares by weight are made anew.
    pub(super) fn standing(
        &self,
        subscription: &Subscription,
        previous: Option<&UnitPlacement>,
        cluster: &ClusterName,
        anew: bool,
    ) -> Standing {
        if self.is_quiet(previous) || !may_move(subscription) {
            return Standing::Here;
        }
        let lost = previous.and_then(|unit| unit.loss(cluster));
        if lost.is_none() && !self.silent.contains_key(cluster) {
            return Standing::Here;
        }
        match (lost, self.presence.get(cluster)) {
            (lost, Some(Presence::SilentSince(since))) => self.silent(subscription, previous, cluster, (lost, *since)),
            (None, _) => Standing::Here,
            (Some(_), None) => still("it was lost, and is not heard of since".to_owned(), None),
            (Some(_), Some(Presence::HeardSince(since))) => {
                let is_static = subscription.scheduling.is_by_weight();
                let seconds = self.return_seconds();
                if self.now.saturating_sub(*since) < seconds {
                    let since = rfc3339(*since);
                    let why = format!("it was lost and is heard of since {since}, which has to last {seconds} s");
                    still(why, None)
                } else if is_static && !anew {
                    let why = "it was lost, and gets its share when the unit asks for something else";
                    still(why.to_owned(), None)
                } else {
                    Standing::Here
                }
            }
        }
    }

    fn silent(
        &self,
        subscription: &Subscription,
        previous: Option<&UnitPlacement>,
        cluster: &ClusterName,
        (lost, since): (Option<&Lost>, i64),
    ) -> Standing {
        let still = || still(format!("it is silent since {}", rfc3339(since)), Some(since));
        let Some(policy) = self.policy else {
            return if lost.is_some() { still() } else { Standing::Here };
        };
        if let Some(lost) = lost.filter(|lost| lost.since == since && !lost.keeps) {
            return Standing::Lost(*lost);
        }
        let silent_seconds = self.now.saturating_sub(since);
        let is_due = after(policy, subscription).is_some_and(|after| silent_seconds >= after);
        if is_due && self.judgement.allowed.contains(cluster) && has_a_share(subscription, previous, cluster) {
            let at = self.now;
            let (keeps, returned) = (false, false);
            return Standing::Lost(Lost {
                since,
                at,
                keeps,
                returned,
            });
        }
        if lost.is_some() || is_due || silent_seconds >= seconds(policy.after_seconds) {
            return still();
        }
        Standing::Here
    }

    fn return_seconds(&self) -> i64 {
        self.policy.map_or(0, |policy| seconds(policy.return_seconds))
    }

    /// Whether what was lost counts against the budget still.
    pub(super) fn counts(&self, lost: &Lost) -> bool {
        self.policy.is_some_and(|policy| is_within(lost, policy, self.now))
    }
}

/// Whether a unit is one that moves: some of the clusters have it, or each has a share of it. What every matching cluster
/// has whole needs nobody to take it over.
pub(super) fn may_move(subscription: &Subscription) -> bool {
    subscription.scheduling != Scheduling::Replication || chooses(subscription)
}

/// Whether only some of the clusters that match are taken.
pub(super) fn chooses(subscription: &Subscription) -> bool {
    subscription.placing.takes_some()
}

/// After how many seconds of silence a unit is moved; `None`: never.
pub(super) fn after(policy: &Failover, subscription: &Subscription) -> Option<i64> {
    let taint = Taint {
        key: TAINT_UNREACHABLE.to_owned(),
        value: String::new(),
        effect: TaintEffect::NoExecute,
    };
    match patience(&subscription.tolerations, &taint) {
        Patience::Untolerated => Some(seconds(policy.after_seconds)),
        Patience::Seconds(of_unit) => Some(seconds(of_unit)),
        Patience::Forever => None,
    }
}

/// Whether a cluster has something of a unit that others could take over.
fn has_a_share(subscription: &Subscription, previous: Option<&UnitPlacement>, cluster: &ClusterName) -> bool {
    let placement = previous.and_then(|unit| unit.clusters.get(cluster));
    placement.is_some_and(|placement| {
        let is_whole = placement.replicas.is_empty() && chooses(subscription);
        is_whole || placement.replicas.values().any(|replicas| *replicas > 0)
    })
}

fn is_within(lost: &Lost, policy: &Failover, now: i64) -> bool {
    !lost.keeps && now.saturating_sub(lost.at) < seconds(policy.per_seconds)
}

fn still(why: String, since: Option<i64>) -> Standing {
    Standing::Still(Still { why, since })
}

pub(super) fn seconds(seconds: u64) -> i64 {
    i64::try_from(seconds).unwrap_or(i64::MAX)
}

/// After how many seconds of silence the first unit of a fleet may be moved; `None`: none ever is.
pub fn least_patience(fleet: &Fleet) -> Option<i64> {
    patiences(fleet, fleet.spec.scheduling.failover.as_ref()?)
        .first()
        .copied()
}

/// After how many seconds of silence units are moved, each number once.
fn patiences(fleet: &Fleet, policy: &Failover) -> BTreeSet<i64> {
    let movable = fleet.units.values().filter(|unit| may_move(&unit.subscription));
    let of_units = movable.filter_map(|unit| after(policy, &unit.subscription));
    of_units.chain([seconds(policy.after_seconds)]).collect()
}
