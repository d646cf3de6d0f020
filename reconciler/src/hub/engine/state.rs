//! What the hub knows.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use render::guard::Holdings;
use render::model::{DeletionPolicy, SyncMode};
use render::published::Departure;
use render::release::{Unfinished, Waiting};
use render::schedule;
use render::{ClusterName, Digest, Finding, Fleet, Published, Revision, UnitKey};

use super::agent_keys::AgentKeys;
use super::behind::Behind;
use super::clusters::ClusterState;
use super::condition::Condition;
use super::event::{Effect, Head, JudgedBy, Relation};
use super::followed::Following;
use super::joins::Joins;
use super::peers::Peers;
use super::recovery::{Recovery, Sought};
use super::remote::RemoteState;
use crate::hub::knocks::Knock;
use crate::limits::REWRITES_REMEMBERED_MAX;
use crate::wire::{AgentCounts, Corrections, Envelope, EnvelopeUnit, LineageGrant, list_digest};

/// What the hub knows. Only [`super::step`] changes it.
#[derive(Clone, Debug, Default)]
pub struct State {
    /// Counts the events that were heard, so that a reader knows cheaply whether to look again.
    pub version: u64,
    /// When the newest of them was heard, in seconds since 1970.
    pub now: i64,
    /// The branch that source is; for people only.
    pub branch: String,
    /// Where source stands; `None` before the first look.
    pub source: Option<Head>,
    /// The newest revision that was planned: only its descendants are followed.
    pub accepted: Option<Revision>,
    /// Heads that were accepted, and that a rewritten history took the place of while this hub runs; the newest last.
    pub(in crate::hub) left: VecDeque<Revision>,
    /// What it says.
    pub fleet: Option<Arc<Fleet>>,
    /// Its findings, sorted.
    pub findings: Vec<Finding>,
    /// The remote that source is copied from; `None` where it is on this disk.
    pub remote: Option<RemoteState>,
    /// `rendered`, as last written or seen.
    pub rendered: Option<StateCommit>,
    /// `released`, as last written or seen.
    pub released: Option<StateCommit>,
    /// The decision that waits for a person to merge it.
    pub proposed: Option<Proposed>,
    /// Branches of other proposals, which people put commits on.
    pub kept_proposals: Vec<String>,
    /// The name of `rendered`; for people only.
    pub rendered_ref: String,
    /// The commit at `rendered` that is no state of the fleet, and what is wrong with it.
    pub malformed: Option<String>,
    /// Why the state refs could not be read.
    pub state_unreadable: Option<String>,
    /// The newest time a state ref had to be put back.
    pub restored: Option<String>,
    /// The revision whose plan failed, and why.
    pub plan_failed: Option<(Revision, String)>,
    /// Cluster → what is known of it; registered ones, and those that reported before.
    pub clusters: BTreeMap<ClusterName, ClusterState>,
    /// What other hubs told of clusters.
    pub(super) peers: Peers,
    /// Who asks for registration with a token.
    pub joins: Joins,
    /// Which agents replace their keys.
    pub agent_keys: AgentKeys,
    /// Who asks to be let in and is not, by name and key.
    pub knocks: Vec<Knock>,
    /// How often appliers put right what others changed, since this hub first heard of each.
    pub corrections: Corrections,
    /// What agents counted of their tunnels, in the same way.
    pub agents: AgentCounts,
    /// How far the objects in a hub cluster have come.
    pub objects: Option<Condition>,
    /// Counts the writes to the state refs that began or ended.
    pub writes: u64,
    /// What is not released yet, since it waits for another unit or another cluster.
    pub waiting: BTreeMap<(UnitKey, ClusterName), Waiting>,
    /// Clusters that are not healthy yet with what they got.
    pub(super) unfinished: Arc<Unfinished>,
    /// What contents have, as far as something waits and others may lose objects to it.
    pub(super) holdings: BTreeMap<Digest, Option<Arc<Holdings>>>,
    /// Contents were asked for.
    pub(super) weighing: bool,
    /// Why the newest write that ended came to nothing, where it was not that somebody moved a ref.
    pub(super) write_failed: Option<String>,
    pub(super) recovery: Option<Recovery>,
    /// The commit that clusters hold and that is looked for, or was last.
    pub(super) sought: Option<Sought>,
    /// `rendered` was made by another hub, from a commit of which this one may not know the fleet yet.
    pub(super) overtaken: bool,
    /// The commit that a hub that restarts knows its clusters by.
    pub(super) following: Following,
    pub(super) adoption_failed: BTreeMap<Revision, String>,
    /// Told to begin a new lineage where `released` is missing, whatever clusters hold.
    pub(super) new_lineage: bool,
    pub(super) state_seen: bool,
    pub(super) writing: bool,
    /// The state refs were looked at beside a write, and are to be looked at again after it.
    pub(super) overlooked: bool,
    pub(super) grace_over: bool,
    pub(super) planning: Option<Revision>,
    /// What room clusters have may be other than when it was planned last.
    pub(super) rooms_moved: bool,
    /// The units of the last plan of which room decided something, so that other room may decide otherwise.
    pub(super) by_room: BTreeSet<UnitKey>,
    /// When predictors were asked for the last plan; `None` where it asked none.
    pub(super) asked_at: Option<i64>,
    /// The newest revision that was decided on, whether that changed anything or not.
    pub(super) decided: Option<Revision>,
    /// The newest revision of which nothing waits for a merge.
    pub(super) merged: Option<Revision>,
    /// After how many seconds of silence the fleet lets somebody lose something.
    pub(super) patience: Option<i64>,
    /// When time alone may decide something, in seconds since 1970.
    pub(super) again_at: Option<i64>,
    /// The merged revision, while a newer one waits for its merge.
    pub(super) behind: Behind,
    /// Units that commits asked to place anew and that had nothing to move: up to which revision.
    pub(super) rebalanced: BTreeMap<UnitKey, Revision>,
    /// What charts are predicted to bring may be other than when it was planned last.
    pub(super) predictions_moved: bool,
    /// A cluster holds the newest sequence with another list, so that another sequence is due.
    pub(super) contradicted: bool,
    /// Where nothing is due.
    pub(super) settled: Option<Settled>,
    /// A plan is being written, to `rendered` or as a proposal: what stands there is not the newest decision.
    pub deciding: bool,
    /// The revision whose plan is being written to `rendered`.
    pub(super) rendering: Option<Revision>,
    /// Proposals may be there that are merged, or that stand on another commit than `rendered`.
    pub(super) stale_proposals: bool,
    /// Proposals may be there although nothing is to be decided.
    pub(super) unwanted_proposals: bool,
    /// Every proposal there is, is one that this hub asked for.
    pub(super) proposals_known: bool,
    /// The revision that was planned last, and the commit of `rendered` it was planned on.
    pub(super) planned: Option<(Revision, Option<Revision>)>,
}

/// A decision that waits for a person to merge it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Proposed {
    /// The full name of its branch.
    pub branch: String,
    /// The commit of source that it was made from.
    pub source: Option<Revision>,
    /// The units that it changes.
    pub units: BTreeSet<UnitKey>,
}

/// Two commits between which nothing is due, with what else was looked at to say so.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Settled {
    pub(super) rendered: Revision,
    pub(super) released: Revision,
    /// The revision whose Suspensions counted.
    pub(super) fleet: Revision,
    /// When the next of them ends.
    pub(super) until: Option<i64>,
}

/// A commit of a state ref with what it says.
#[derive(Clone, Debug)]
pub struct StateCommit {
    /// The commit.
    pub commit: Revision,
    /// The root of its history.
    pub lineage: Revision,
    /// What it says.
    pub published: Arc<Published>,
}

impl State {
    /// A hub that was told to begin a new lineage when `released` is missing, without asking the clusters.
    pub fn with_new_lineage(new_lineage: bool) -> Self {
        Self {
            new_lineage,
            ..Self::default()
        }
    }

    pub(super) fn begin_write(&mut self) {
        self.writing = true;
        self.writes += 1;
    }

    pub(super) fn end_write(&mut self) {
        self.writing = false;
        self.deciding = false;
        self.write_failed = None;
        self.writes += 1;
    }

    /// Whether a cluster's file is in the accepted revision.
    pub fn is_registered(&self, cluster: &ClusterName) -> bool {
        self.fleet
            .as_ref()
            .is_some_and(|fleet| fleet.clusters.contains_key(cluster))
    }

    /// Clusters whose file is gone, as `released` has them; one whose file came back is none.
    pub fn departures(&self) -> BTreeMap<ClusterName, Departure> {
        let record = self
            .released
            .as_ref()
            .and_then(|released| released.published.record.as_ref());
        let departed = record.map(|record| record.departed.clone()).unwrap_or_default();
        let is_gone = |(name, _): &(ClusterName, Departure)| !self.is_registered(name);
        // Before the fleet is known, nobody can say whose file came back.
        departed
            .into_iter()
            .filter(|_| self.fleet.is_some())
            .filter(is_gone)
            .collect()
    }

    /// What is known of a cluster whose file is gone.
    pub fn departure(&self, cluster: &ClusterName) -> Option<&Departure> {
        let record = self.released.as_ref()?.published.record.as_ref()?;
        let departed = record.departed.get(cluster)?;
        (self.fleet.is_some() && !self.is_registered(cluster)).then_some(departed)
    }

    /// Whether a cluster is registered, or was and is to be cleaned up.
    pub(super) fn is_known(&self, cluster: &ClusterName) -> bool {
        self.is_registered(cluster) || self.departure(cluster).is_some()
    }

    /// Whether no plan and no write is under way, so that whatever is due on what is known was done.
    pub fn is_at_rest(&self) -> bool {
        self.has_looked() && !self.writing && !self.weighing && self.planning.is_none()
    }

    /// Whether source and both state refs were looked at since this hub runs.
    pub fn has_looked(&self) -> bool {
        self.state_seen && self.source.is_some()
    }

    /// Whether nothing is decided until it is known again what clusters hold.
    pub fn is_recovering(&self) -> bool {
        self.recovery
            .as_ref()
            .is_some_and(|recovery| !matches!(recovery, Recovery::Seek { .. }))
    }

    /// What a look at source is to be judged by.
    pub fn judged_by(&self) -> JudgedBy {
        JudgedBy {
            accepted: self.accepted_or_published(),
            named: self.named(),
        }
    }

    /// The newest commit of source that the state repository names.
    pub(super) fn named(&self) -> Option<Revision> {
        self.following.found().or(self.rendered_from()).cloned()
    }

    /// The commit of source that `rendered` was made from.
    pub(super) fn rendered_from(&self) -> Option<&Revision> {
        Some(&self.rendered.as_ref()?.published.record.as_ref()?.source)
    }

    /// The source commit whose descendants are followed: the newest that was planned, else the one that was noted as
    /// such, else the one that the published decisions were made on.
    pub fn accepted_or_published(&self) -> Option<Revision> {
        let published = || Some(self.previous().record.as_ref()?.source.clone());
        let known = self.accepted.as_ref().or(self.following.found());
        known.cloned().or_else(published)
    }

    /// The envelope for a registered cluster; `None` while nothing was released, or the hub recovers.
    /// Nothing in it is signed yet.
    pub fn envelope(&self, cluster: &ClusterName) -> Option<Envelope> {
        let released = self
            .released
            .as_ref()
            .filter(|_| self.recovery.is_none() && self.is_known(cluster))?;
        let sequence = self.released_sequence()?;
        let units: BTreeMap<_, _> = released
            .published
            .units
            .iter()
            .filter_map(|(key, unit)| {
                let (placement, variant) = unit.entry(cluster)?;
                let (digest, revision) = (variant.digest, variant.revision.clone());
                let unit = EnvelopeUnit {
                    digest,
                    revision,
                    replicas: placement.replicas.clone(),
                    drift: placement.drift,
                    gates: Vec::new(),
                };
                Some((key.clone(), unit))
            })
            .collect();
        let departed = self.departure(cluster);
        if departed.is_some() && !units.is_empty() {
            // A Suspension holds something there: it stays, and whoever has the old key is told nothing of it.
            return None;
        }
        let orphan = departed.is_some_and(|departed| departed.deletion_policy == DeletionPolicy::Orphan);
        Some(Envelope {
            version: Envelope::VERSION,
            cluster: cluster.clone(),
            lineage: released.lineage.clone(),
            sequence,
            released: released.commit.clone(),
            list: list_digest(&units, orphan),
            orphaned: self.orphaned_on(cluster, &units),
            units,
            orphan,
            mode: self.mode(cluster),
            mode_source: self.fleet.as_ref().map(|fleet| fleet.revision.clone()),
            mode_instead: None,
            lineage_grant: None,
        })
    }

    /// Who applies to a registered cluster. One without an agent has nobody to tell, and one that left has an agent that
    /// cleans up.
    pub(in crate::hub) fn mode(&self, cluster: &ClusterName) -> SyncMode {
        let declared = self.fleet.as_ref().and_then(|fleet| fleet.clusters.get(cluster));
        declared
            .filter(|cluster| cluster.kubeconfig_context.is_none())
            .map(|cluster| cluster.sync_mode)
            .unwrap_or_default()
    }

    /// Whether a cluster that is connected here says that it goes by another mode than its file has here.
    pub(super) fn goes_by_other_mode(&self, cluster: &ClusterName) -> bool {
        let known = self.clusters.get(cluster).filter(|known| known.epoch.is_some());
        let held = known.and_then(|known| known.report.as_ref()?.held.as_ref());
        held.is_some_and(|held| held.mode_source.is_some() && held.mode != self.mode(cluster))
    }

    /// Remembers that another history takes the place of the accepted one, by somebody's word.
    pub(super) fn leave_history(&mut self, old: Revision) {
        self.left.retain(|left| *left != old);
        self.left.push_back(old);
        while self.left.len() > REWRITES_REMEMBERED_MAX {
            self.left.pop_front();
        }
    }

    /// The word for the lineage of `released`, where `fleet.yaml` names it. `sign` signs with the hub's key.
    pub fn lineage_grant(&self, cluster: &ClusterName, sign: impl FnOnce(&[u8]) -> Vec<u8>) -> Option<LineageGrant> {
        let named = self.fleet.as_ref()?.spec.lineage.clone()?;
        let is_own = self.released.as_ref()?.lineage == named;
        is_own.then(|| LineageGrant::new(cluster, named, sign))
    }

    /// The revision that should be planned: the head, when it may be followed.
    pub(super) fn source_to_plan(&self) -> Option<Revision> {
        match self.source.as_ref()? {
            Head::At {
                relation: Relation::Rewritten | Relation::Behind,
                ..
            }
            | Head::BranchMissing { .. }
            | Head::Unreadable { .. } => None,
            Head::At {
                revision,
                relation: Relation::Follows | Relation::RewriteAccepted,
            } => Some(revision.clone()),
        }
    }

    /// The revision that was followed last, while its fleet is not known and the head may not be followed:
    /// a hub that starts then still knows its clusters by it.
    pub(super) fn fleet_to_learn(&self) -> Option<Revision> {
        let held = self.source.is_some() && self.source_to_plan().is_none() && self.fleet.is_none();
        let held = held && !self.is_behind();
        self.accepted_or_published().filter(|_| held)
    }

    /// Whether a copy of source is older than what another hub has rendered.
    fn is_behind(&self) -> bool {
        let relation = |head: &Head| {
            matches!(
                head,
                Head::At {
                    relation: Relation::Behind,
                    ..
                }
            )
        };
        self.source.as_ref().is_some_and(relation)
    }

    /// What is published: `rendered`, else what was released.
    pub(super) fn previous(&self) -> Arc<Published> {
        let published = self
            .rendered
            .as_ref()
            .or(self.released.as_ref())
            .map(|commit| Arc::clone(&commit.published));
        published.unwrap_or_default()
    }

    pub(super) fn released_sequence(&self) -> Option<u64> {
        self.released.as_ref()?.published.record.as_ref()?.sequence
    }

    /// Whether a lineage is the one that `released` has; any is, while it has none.
    pub(super) fn is_own_lineage(&self, lineage: &Revision) -> bool {
        self.released
            .as_ref()
            .is_none_or(|released| released.lineage == *lineage)
    }

    /// Takes a revision's fleet over: clusters and keys count from here on.
    pub(super) fn take_fleet(&mut self, fleet: Arc<Fleet>, findings: Vec<Finding>) -> Vec<Effect> {
        let modes: BTreeMap<ClusterName, SyncMode> = self
            .fleet
            .iter()
            .flat_map(|fleet| fleet.clusters.keys())
            .map(|cluster| (cluster.clone(), self.mode(cluster)))
            .collect();
        let before = self.fleet.replace(Arc::clone(&fleet));
        self.following.fleet_taken(before.as_deref(), &fleet);
        self.findings = findings;
        let names_other_lineage = before
            .as_ref()
            .is_some_and(|before| before.spec.lineage != fleet.spec.lineage);
        let mut effects = Vec::new();
        if before.as_ref().map(|before| &before.clusters) != Some(&fleet.clusters) {
            effects.push(Effect::Register);
        }
        let gone = before
            .map(|before| before.clusters.keys().cloned().collect::<Vec<_>>())
            .unwrap_or_default();
        for cluster in gone.into_iter().filter(|cluster| !fleet.clusters.contains_key(cluster)) {
            self.clusters.remove(&cluster);
            effects.push(Effect::Disconnect(cluster));
        }
        self.patience = schedule::least_patience(&fleet);
        self.await_clusters(&fleet);
        // Envelopes carry the hub's word for the lineage that is named, and the mode.
        let told_anew = fleet.clusters.keys().filter(|cluster| {
            names_other_lineage
                || modes.get(*cluster).is_some_and(|before| *before != self.mode(cluster))
                // It may be this hub's turn now to say of which commit it is.
                || self.goes_by_other_mode(cluster)
        });
        effects.extend(told_anew.cloned().map(Effect::Dispatch));
        effects
    }
}
