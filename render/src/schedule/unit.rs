//! One unit's placement.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::digest::Digest;
use crate::finding::Finding;
use crate::fleet::{Fleet, Unit};
use crate::model::{Cluster, Subscription, TaintEffect};
use crate::name::{ClusterName, ObjectKey, UnitKey};
use crate::predictor::Question;
use crate::published::{UnitPlacement, Unplaced};
use crate::schedule::candidates::{Search, search};
use crate::schedule::choose::{LeftOut, Matching, choose};
use crate::schedule::desired::{Divided, desired_of};
use crate::schedule::kept::kept;
use crate::schedule::ledger::{Books, Ledger, Workloads};
use crate::schedule::score::{self, Score};
use crate::schedule::{Assignment, Moves, Reports, divided, inputs, taints, trouble};

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
    clusters: BTreeMap<&'a ClusterName, Digest>,
}

/// One unit's placement.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Scheduled {
    /// Cluster → its share.
    pub assignments: BTreeMap<ClusterName, Assignment>,
    /// Divided objects of which some replicas found no place.
    pub unplaced: BTreeMap<ObjectKey, Unplaced>,
    /// Clusters that match and are not taken: why.
    pub left_out: BTreeMap<ClusterName, LeftOut>,
    /// What is wrong.
    pub findings: Vec<Finding>,
    /// Whether the room that clusters have decided something, so that another report may decide otherwise.
    pub by_room: bool,
    /// What predictors are to say of it, whether they have or not.
    pub questions: Vec<Question>,
}

/// What a unit's objects ask for on a cluster, after the overrides that meet it there.
pub trait Inventory {
    /// Each object that has replicas.
    fn workloads(&self, cluster: &Cluster) -> Arc<Workloads>;
}

/// The same on every cluster.
impl Inventory for Arc<Workloads> {
    fn workloads(&self, _: &Cluster) -> Arc<Workloads> {
        Arc::clone(self)
    }
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
        let digest = |(name, cluster)| (name, inputs::of_cluster(cluster));
        Self {
            fleet,
            reports,
            previous,
            moves,
            now,
            clusters: fleet.clusters.iter().map(digest).collect(),
        }
    }

    /// Over what scheduling looks at of a cluster: its labels and taints. `None` for an unknown cluster.
    pub(super) fn cluster_digest(&self, cluster: &ClusterName) -> Option<Digest> {
        self.clusters.get(cluster).copied()
    }

    pub(super) fn books(&self) -> Books<'_> {
        Books {
            reports: self.reports,
            previous: self.previous,
            fleet: self.fleet,
        }
    }
}

/// Places one unit, whether it is blocked or not. What it is given is deducted from the ledger.
///
/// With no feasible cluster the last placement stays and a Warning says so; an Error where clusters have the unit and
/// no subscriber matches any. An Error finding names the unit: its last placement is returned then too, and its
/// content has to stay as well.
pub fn schedule_unit(context: &Context<'_>, ledger: &mut Ledger, inventory: &dyn Inventory, unit: &Unit) -> Scheduled {
    let subscription = unit.subscription.as_ref();
    let previous = context.previous.get(&subscription.key);
    let stays = |desired: &BTreeMap<ObjectKey, u64>, reason: &str, findings| Scheduled {
        assignments: kept(context, subscription, desired, previous, reason),
        unplaced: previous.map(|unit| unit.unplaced.clone()).unwrap_or_default(),
        left_out: BTreeMap::new(),
        findings,
        by_room: false,
        questions: Vec::new(),
    };
    let desired = match desired_of(unit, &Divided::of(subscription)) {
        Ok(desired) => desired,
        Err(findings) => return stays(&BTreeMap::new(), HELD, findings),
    };
    let mut search = search(context.fleet, subscription, previous);
    if search.chosen.is_empty() {
        // A fleet that is begun has no cluster yet: nothing is wrong with any Subscription.
        let begins = context.fleet.clusters.is_empty() && previous.is_none_or(|unit| unit.clusters.is_empty());
        let trouble = || trouble::no_feasible_cluster(context.fleet, subscription, &search, previous);
        let findings = (!begins).then(trouble).into_iter().collect();
        return stays(&desired, NO_CLUSTER, findings);
    }
    if let Err(found) = narrow(subscription, previous, &mut search) {
        let is_placed = previous.is_some_and(|unit| !unit.clusters.is_empty());
        return stays(
            &desired,
            TOO_FEW,
            vec![trouble::too_few(subscription, found, is_placed)],
        );
    }
    if context.reports.waiting && divided::asks_for_room(subscription, &desired, previous) {
        return Scheduled {
            by_room: true,
            ..stays(&desired, WAITS, Vec::new())
        };
    }
    match divided::assign(context, ledger, inventory, subscription, &desired, search) {
        Ok(scheduled) => scheduled,
        Err(finding) => stays(&desired, HELD, vec![*finding]),
    }
}

const NO_CLUSTER: &str = "kept where it was, since no cluster is feasible now";
const TOO_FEW: &str = "kept where it was, since fewer clusters match than are asked for";
const WAITS: &str = "kept as it was, until clusters have said what room they have";
const HELD: &str = "kept as it was, since the unit has an error";

/// Takes the best of the clusters that match, where the Subscription does not want all.
fn narrow<'a>(
    subscription: &Subscription,
    previous: Option<&UnitPlacement>,
    search: &mut Search<'a>,
) -> Result<(), crate::schedule::choose::TooFew> {
    let placing = &subscription.placing;
    if !placing.is_a_choice() {
        return Ok(());
    }
    let scores: BTreeMap<&'a ClusterName, Score> = search
        .chosen
        .iter()
        .map(|(name, chosen)| (*name, score_of(subscription, previous, chosen.cluster)))
        .collect();
    let ranked = score::ranked(&subscription.key, &scores);
    let matching = ranked.iter().filter_map(|name| {
        let chosen = search.chosen.get(name)?;
        Some(Matching {
            name,
            labels: &chosen.cluster.labels,
            subscribers: &chosen.subscribers,
        })
    });
    let matching: Vec<_> = matching.collect();
    let chosen = choose(placing, &subscription.subscribers, &matching)?;
    let left_out = chosen
        .left_out
        .into_iter()
        .map(|(name, why)| (name.clone(), why))
        .collect();
    let taken: std::collections::BTreeSet<ClusterName> = chosen.taken.into_iter().cloned().collect();
    for (place, name) in ranked.iter().enumerate() {
        if let Some(chosen) = search.chosen.get_mut(name) {
            chosen.rank = place;
            chosen.reasons.push(score_text(&scores[name]));
        }
    }
    search.chosen.retain(|name, _| taken.contains(*name));
    search.left_out = left_out;
    Ok(())
}

/// What speaks for a cluster.
pub(super) fn score_of(subscription: &Subscription, previous: Option<&UnitPlacement>, cluster: &Cluster) -> Score {
    let placed = previous.is_some_and(|unit| unit.clusters.contains_key(&cluster.name));
    let avoided = cluster.taints.iter().filter(|taint| {
        taint.effect == TaintEffect::PreferNoSchedule && !taints::tolerates(&subscription.tolerations, taint)
    });
    Score {
        placed: if placed { score::PLACED } else { 0 },
        preferred: score::preferred(&subscription.placing.clusters.preferred, &cluster.labels),
        taint: score::TAINTED * i64::try_from(avoided.count()).unwrap_or(i64::MAX / 1_000),
    }
}

fn score_text(score: &Score) -> String {
    let mut parts = Vec::new();
    if score.placed > 0 {
        parts.push("it has the unit".to_owned());
    }
    parts.push(format!("preferred {}", score.preferred));
    if score.taint < 0 {
        parts.push(format!("taints {}", score.taint));
    }
    format!("among the best: {}", parts.join(", "))
}
