//! What the hub knows.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use render::chart::Capabilities;
use render::describe::is_chart;
use render::model::DeletionPolicy;
use render::published::Departure;
use render::release::{Observed, Outcome, Seen};
use render::{ClusterName, Finding, Fleet, Published, Revision, UnitKey};

use super::event::{Effect, Head, Relation};
use super::recovery::Recovery;
use super::remote::RemoteState;
use crate::wire::{Envelope, EnvelopeUnit, Health, Held, LineageGrant, Report, UnitReport, UnitState, list_digest};

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
    /// How far the objects in a hub cluster have come.
    pub objects: Option<Condition>,
    /// Counts the writes to the state refs that began or ended.
    pub writes: u64,
    /// What is not released yet, since it waits for another unit: why.
    pub waiting: BTreeMap<(UnitKey, ClusterName), String>,
    /// Why the newest write that ended came to nothing, where it was not that somebody moved a ref.
    pub(super) write_failed: Option<String>,
    pub(super) recovery: Option<Recovery>,
    pub(super) adoption_failed: BTreeMap<Revision, String>,
    /// Told to begin a new lineage where `released` is missing, whatever clusters hold.
    pub(super) new_lineage: bool,
    pub(super) state_seen: bool,
    pub(super) writing: bool,
    /// The state refs were looked at beside a write, and are to be looked at again after it.
    pub(super) overlooked: bool,
    pub(super) grace_over: bool,
    pub(super) planning: Option<Revision>,
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

/// What is known of a cluster.
#[derive(Clone, Debug, Default)]
pub struct ClusterState {
    /// Its session, while it stands.
    pub epoch: Option<u64>,
    /// What it said last.
    pub report: Option<Arc<Report>>,
    /// What it said of its version and kinds.
    pub(super) capabilities: Option<Arc<Capabilities>>,
}

impl ClusterState {
    fn says_the_same(&self, report: &Report) -> bool {
        let before = self.report.as_deref();
        before.is_some_and(|before| {
            before.kubernetes_version == report.kubernetes_version && before.api_versions == report.api_versions
        })
    }
}

/// One thing that is so, in kstatus' form.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Condition {
    /// What it is about.
    #[serde(rename = "type")]
    pub kind: &'static str,
    /// Whether it holds.
    pub status: &'static str,
    /// A CamelCase word for tools.
    pub reason: &'static str,
    /// A sentence for people.
    pub message: String,
}

fn outcome(unit: &UnitReport) -> Outcome {
    match (unit.state, unit.health) {
        (UnitState::Failed, _) | (_, Health::Failed) => Outcome::Failed,
        (UnitState::Applied, Health::Current) => Outcome::Healthy,
        _ => Outcome::UnderWay,
    }
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
        self.has_looked() && !self.writing && self.planning.is_none()
    }

    /// Whether source and both state refs were looked at since this hub runs.
    pub fn has_looked(&self) -> bool {
        self.state_seen && self.source.is_some()
    }

    /// Whether nothing is decided until it is known again what clusters hold.
    pub fn is_recovering(&self) -> bool {
        self.recovery.is_some()
    }

    /// The source commit whose descendants are followed: the newest that was planned, else the one that
    /// the published decisions were made on.
    pub fn accepted_or_published(&self) -> Option<Revision> {
        let published = || Some(self.previous().record.as_ref()?.source.clone());
        self.accepted.clone().or_else(published)
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
            units,
            orphan,
            lineage_grant: None,
        })
    }

    /// What registered clusters said last of their units, as far as it is about this lineage.
    pub(super) fn observed(&self) -> Observed {
        let said = self.clusters.iter().filter(|(cluster, _)| self.is_registered(cluster));
        let clusters = said.filter_map(|(cluster, known)| {
            let report = known.report.as_ref().filter(|report| report.held_read)?;
            let held = report.held.as_ref();
            let is_own = held.is_none_or(|held| self.is_own_lineage(&held.lineage));
            let held = held.filter(|_| is_own).map(|held| &held.units);
            let mut units: BTreeMap<_, _> = held
                .into_iter()
                .flatten()
                .map(|(key, unit)| {
                    let seen = Seen {
                        digest: Some(unit.digest),
                        outcome: Outcome::UnderWay,
                    };
                    (key.clone(), seen)
                })
                .collect();
            for (key, unit) in &report.units {
                let is_present = match unit.digest {
                    // A result about an older content says nothing of the one that is held.
                    Some(digest) => units.get(key).is_some_and(|held| held.digest == Some(digest)),
                    // What is kept for good is nobody's work any more.
                    None => unit.counts.removing > 0,
                };
                if is_present {
                    let (digest, outcome) = (unit.digest, outcome(unit));
                    units.insert(key.clone(), Seen { digest, outcome });
                }
            }
            Some((cluster.clone(), units))
        });
        Observed {
            clusters: clusters.collect(),
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
                relation: Relation::Rewritten,
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
        self.accepted_or_published().filter(|_| held)
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

    /// Whether a cluster holds the newest sequence with another list, as after a `released` that was rewound
    /// and written on: it refuses that sequence for good.
    fn is_contradicted_by(&self, cluster: &ClusterName, held: &Held) -> bool {
        let same_place = |released: &StateCommit| {
            held.released != released.commit
                && held.lineage == released.lineage
                && Some(held.sequence) == self.released_sequence()
        };
        self.released.as_ref().is_some_and(same_place)
            && self
                .envelope(cluster)
                .is_some_and(|envelope| envelope.list != held.list)
    }

    /// Whether a lineage is the one that `released` has; any is, while it has none.
    pub(super) fn is_own_lineage(&self, lineage: &Revision) -> bool {
        self.released
            .as_ref()
            .is_none_or(|released| released.lineage == *lineage)
    }

    /// Whether a registered cluster has not said yet what it holds. Before a fleet is known, any may.
    pub(super) fn has_silent_cluster(&self) -> bool {
        let spoke = |cluster: &ClusterState| cluster.report.as_ref().is_some_and(|report| report.held_read);
        let silent = |name| !self.clusters.get(name).is_some_and(spoke);
        self.fleet
            .as_ref()
            .is_none_or(|fleet| fleet.clusters.keys().any(silent))
    }

    /// Takes a revision's fleet over: clusters and keys count from here on.
    pub(super) fn take_fleet(&mut self, fleet: Arc<Fleet>, findings: Vec<Finding>) -> Vec<Effect> {
        let before = self.fleet.replace(Arc::clone(&fleet));
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
        for cluster in fleet.clusters.keys() {
            self.clusters.entry(cluster.clone()).or_default();
        }
        if names_other_lineage {
            // Envelopes carry the hub's word for the lineage that is named.
            effects.extend(fleet.clusters.keys().cloned().map(Effect::Dispatch));
        }
        effects
    }

    pub(super) fn connected(&mut self, cluster: ClusterName, epoch: u64) -> Vec<Effect> {
        if !self.is_known(&cluster) {
            return vec![Effect::Disconnect(cluster)];
        }
        let known = self.clusters.entry(cluster.clone()).or_default();
        if known.epoch.is_none_or(|standing| epoch >= standing) {
            known.epoch = Some(epoch);
        }
        vec![Effect::Dispatch(cluster)]
    }

    pub(super) fn disconnected(&mut self, cluster: &ClusterName, epoch: u64) {
        if let Some(known) = self.clusters.get_mut(cluster)
            && known.epoch == Some(epoch)
        {
            known.epoch = None;
        }
    }

    pub(super) fn reported(&mut self, report: Report) {
        let contradicts = |held| self.is_contradicted_by(&report.cluster, held);
        self.contradicted |= report.held.as_ref().is_some_and(contradicts);
        let has_charts = self.has_charts();
        if let Some(known) = self.clusters.get_mut(&report.cluster) {
            if !known.says_the_same(&report) {
                known.capabilities = capabilities(&report).map(Arc::new);
                // What its charts bring may be other objects now, without a commit.
                self.predictions_moved |= has_charts;
            }
            known.report = Some(Arc::new(report));
        }
    }

    /// What clusters said of themselves; those that said nothing are not there.
    pub(super) fn capabilities(&self) -> BTreeMap<ClusterName, Arc<Capabilities>> {
        let said = |(name, cluster): (&ClusterName, &ClusterState)| Some((name.clone(), cluster.capabilities.clone()?));
        self.clusters.iter().filter_map(said).collect()
    }

    fn has_charts(&self) -> bool {
        let units = self.fleet.iter().flat_map(|fleet| fleet.units.values());
        units
            .flat_map(|unit| &unit.base.objects)
            .any(|object| is_chart(&object.key))
    }

    /// What holds for the fleet as a whole.
    pub fn conditions(&self) -> Vec<Condition> {
        let remote = self.remote.iter().flat_map(RemoteState::conditions);
        remote
            .chain([self.source_condition(), self.state_condition()])
            .collect()
    }

    fn source_condition(&self) -> Condition {
        let kind = "SourceVerified";
        let not = |reason, message| Condition {
            kind,
            status: "False",
            reason,
            message,
        };
        if let (Some((failed, message)), Some(Head::At { revision, .. })) = (&self.plan_failed, &self.source)
            && failed == revision
        {
            return not("Unreadable", format!("{revision}: {message}"));
        }
        match &self.source {
            None => Condition {
                kind,
                status: "Unknown",
                reason: "NotLookedYet",
                message: "source was not looked at yet".to_owned(),
            },
            Some(Head::BranchMissing { branch }) => not(
                "BranchMissing",
                format!("branch {branch} does not exist; nothing changes until it does"),
            ),
            Some(Head::Unreadable { message }) => not("Unreadable", message.clone()),
            Some(Head::At {
                revision,
                relation: Relation::Rewritten,
            }) => {
                let old = self
                    .accepted_or_published()
                    .map(|old| old.to_string())
                    .unwrap_or_default();
                not(
                    "HistoryRewritten",
                    format!(
                        "{revision} does not descend from {old}, which was accepted; a commit with the trailer Accept-Rewrite: {old} lets it through"
                    ),
                )
            }
            Some(Head::At { revision, .. }) => Condition {
                kind,
                status: "True",
                reason: "Read",
                message: format!("at {revision}"),
            },
        }
    }

    fn state_condition(&self) -> Condition {
        let kind = "StateKept";
        let not = |reason, message| Condition {
            kind,
            status: "False",
            reason,
            message,
        };
        if let Some(message) = &self.state_unreadable {
            return not("Unreadable", message.clone());
        }
        if let Some(message) = &self.malformed {
            let rendered = &self.rendered_ref;
            let remedy = format!(
                "correct the file, or take the commit back with git revert, and push to {rendered}; until then nothing is rendered, proposed or released"
            );
            return not(
                "RenderedMalformed",
                format!("{rendered} cannot be followed: {message}; {remedy}"),
            );
        }
        match &self.recovery {
            Some(Recovery::WaitForReports) => not("Recovering", "released is missing, and clusters have not said yet what they hold; nothing is scheduled or pruned until they do".to_owned()),
            Some(Recovery::Adopt { commit }) => not("Recovering", format!("clusters hold {commit}, which is being adopted")),
            Some(Recovery::Lost { commit, message }) => not("Recovering", format!("clusters hold {commit}, and it could not be adopted: {message}; restore the state repository from its backup, or start the hub with --new-lineage and name the new root in spec.lineage of fleet.yaml")),
            None if self.write_failed.is_some() => {
                let why = self.write_failed.clone().unwrap_or_default();
                not("WriteFailed", format!("what was decided could not be written: {why}; it is tried again"))
            }
            None => {
                let message = self.restored.clone().unwrap_or_else(|| "rendered and released stand where this hub left them".to_owned());
                Condition { kind, status: "True", reason: "Kept", message }
            }
        }
    }
}

/// What a cluster said of itself: all of it, or nothing that a prediction could be made on.
fn capabilities(report: &Report) -> Option<Capabilities> {
    let kubernetes_version = report.kubernetes_version.clone()?;
    (!report.api_versions.is_empty()).then(|| Capabilities::new(kubernetes_version, report.api_versions.clone()))
}
