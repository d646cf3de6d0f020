//! What becomes of each push, told in one line when it is known: a person sees their own arrive.

use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use reconciler::hub::engine::{Head, Relation, State};
use reconciler::wire::{ObjectResult, UnitReport};
use render::model::Approval;
use render::{ClusterName, Digest, Finding, Published, Revision};
use tokio::time::{Instant, sleep};

use super::folder::Folder;
use super::rooms::Rooms;
use super::world::View;
use super::{repository, text};

/// How often the state is looked at. A person sees no difference below this.
const LOOK: Duration = Duration::from_millis(10);

/// After this long, a push that has not arrived everywhere is told as it stands.
const PATIENCE: Duration = Duration::from_secs(5);

/// What one cluster was last told to have.
type Lists = Vec<(ClusterName, Digest)>;

/// What is known of the fleet, as far as it was told.
struct Follower {
    revision: Option<Revision>,
    released: Option<Revision>,
    findings: Vec<Finding>,
    lists: Lists,
    /// Something is wrong with the source or the state refs.
    trouble: Option<String>,
    proposed: Option<String>,
    approval: Option<Approval>,
    /// What `rendered` said.
    targets: Option<Arc<Published>>,
    /// What stays of units that were removed.
    kept: Vec<(ClusterName, ObjectResult)>,
    change: Option<Change>,
}

/// A release that is on its way.
struct Change {
    since: Instant,
    clusters: Lists,
    has_been_told: bool,
}

/// What is to be said of a revision.
pub(super) struct News {
    pub(super) revision: Option<String>,
    pub(super) subject: Option<String>,
    pub(super) what: What,
}

/// What became of it.
pub(super) enum What {
    /// It is in the clusters.
    Applied {
        sequence: u64,
        affected: usize,
        total: usize,
        after: Duration,
        failed: Vec<(ClusterName, ObjectResult)>,
        /// What stays of units that were removed, as far as it was not told before.
        kept: Vec<(ClusterName, ObjectResult)>,
    },
    /// Some clusters do not have it yet.
    Slow {
        applied: usize,
        affected: usize,
        waiting: String,
    },
    /// A Suspension keeps clusters as they are.
    Held { by: String },
    /// No cluster has to change; Errors may hold something back.
    NoChange {
        errors: usize,
        /// The approval that this revision changed.
        gate: Option<Approval>,
    },
    /// A person has to merge it.
    Proposed { branch: String },
    /// The hub does not follow.
    Trouble { message: String },
}

/// Tells until the demo is stopped.
pub(super) async fn run(folder: &Folder, rooms: &Rooms, view: &View) -> anyhow::Result<ExitCode> {
    let mut follower = Follower::at(&view.hub.state());
    let mut version = None;
    loop {
        sleep(LOOK).await;
        let now = view.hub.version();
        let is_waiting = follower.change.as_ref().is_some_and(|change| !change.has_been_told);
        if version == Some(now) && !is_waiting {
            continue;
        }
        version = Some(now);
        let state = view.hub.state();
        for what in follower.look(&state, rooms) {
            let revision = follower
                .revision
                .clone()
                .filter(|_| !matches!(what, What::Trouble { .. }));
            let subject = match &revision {
                Some(revision) => repository::subject(folder, revision.as_str()).await,
                None => None,
            };
            let news = News {
                revision: revision.map(|revision| reconciler::hub::observe::short_revision("main", &revision)),
                subject,
                what,
            };
            print!("{}", text::news(&news));
        }
        let (new, mended) = follower.findings(&state);
        print!("{}", text::findings(&new, mended));
    }
}

impl Follower {
    /// Everything up to here needs no telling.
    fn at(state: &State) -> Self {
        Self {
            revision: head(state).cloned(),
            released: state.released.as_ref().map(|released| released.commit.clone()),
            findings: Vec::new(),
            lists: lists(state),
            trouble: None,
            proposed: proposed(state),
            approval: approval(state),
            targets: state.rendered.as_ref().map(|rendered| rendered.published.clone()),
            kept: lists(state).iter().flat_map(|(name, _)| kept(state, name)).collect(),
            change: None,
        }
    }

    /// What is new.
    fn look(&mut self, state: &State, rooms: &Rooms) -> Vec<What> {
        let mut news = Vec::new();
        let trouble = trouble(state);
        if trouble != self.trouble {
            news.extend(trouble.clone().map(|message| What::Trouble { message }));
            self.trouble = trouble;
        }
        if !state.is_at_rest() {
            return news;
        }
        let head = head(state).filter(|head| state.accepted.as_ref() == Some(head));
        let pushed = head.is_some() && head != self.revision.as_ref();
        let released = state.released.as_ref().map(|released| released.commit.clone());
        if pushed || released != self.released {
            let lists = lists(state);
            let clusters: Lists = lists
                .iter()
                .filter(|list| !self.lists.contains(list))
                .cloned()
                .collect();
            let waits = proposed(state).filter(|branch| Some(branch) != self.proposed.as_ref());
            if pushed {
                self.revision = head.cloned();
            }
            (self.lists, self.released, self.proposed) = (lists, released, proposed(state));
            if !clusters.is_empty() {
                let seen = head.and_then(|head| rooms.seen(head.as_str()));
                self.change = Some(Change {
                    since: seen.filter(|_| pushed).unwrap_or_else(Instant::now),
                    clusters,
                    has_been_told: false,
                });
            } else if let Some(branch) = waits {
                news.push(What::Proposed { branch });
            } else if pushed {
                let errors = state.findings.iter().filter(|finding| finding.is_error()).count();
                // What was held before is not held by this revision.
                let targets = state.rendered.as_ref().map(|rendered| &rendered.published.units);
                let has_changed = targets != self.targets.as_ref().map(|before| &before.units);
                news.push(match suspended(state).filter(|_| has_changed) {
                    Some(by) => What::Held { by },
                    None => What::NoChange {
                        errors,
                        gate: approval(state).filter(|now| self.approval.is_some_and(|before| before != *now)),
                    },
                });
            }
            self.approval = approval(state);
            self.targets = state.rendered.as_ref().map(|rendered| rendered.published.clone());
        }
        news.extend(self.arrived(state));
        news
    }

    /// Whether the newest release is where it should be.
    fn arrived(&mut self, state: &State) -> Option<What> {
        let change = self.change.as_mut()?;
        let after = change.since.elapsed();
        let waiting = change
            .clusters
            .iter()
            .filter(|(name, list)| !has_settled(state, name, list));
        let waiting: Vec<_> = waiting.map(|(name, _)| name).collect();
        let affected = change.clusters.len();
        if let Some(first) = waiting.first() {
            if change.has_been_told || after < PATIENCE {
                return None;
            }
            change.has_been_told = true;
            return Some(What::Slow {
                applied: affected - waiting.len(),
                affected,
                waiting: format!("{first}{}", why(state, first)),
            });
        }
        let failed: Vec<_> = change
            .clusters
            .iter()
            .flat_map(|(name, _)| failures(state, name))
            .collect();
        let now: Vec<_> = self.lists.iter().flat_map(|(name, _)| kept(state, name)).collect();
        let kept = now.iter().filter(|kept| !self.kept.contains(kept)).cloned().collect();
        self.kept = now;
        self.change = None;
        Some(What::Applied {
            sequence: sequence(state),
            affected,
            total: self.lists.len(),
            after,
            failed,
            kept,
        })
    }

    /// Findings that were not told yet, and whether the last Error is gone.
    fn findings(&mut self, state: &State) -> (Vec<Finding>, bool) {
        if !state.is_at_rest() || state.findings == self.findings {
            return (Vec::new(), false);
        }
        let had = self.findings.iter().any(Finding::is_error);
        let new = state
            .findings
            .iter()
            .filter(|finding| !self.findings.contains(finding))
            .cloned()
            .collect();
        self.findings.clone_from(&state.findings);
        (new, had && !self.findings.iter().any(Finding::is_error))
    }
}

/// The branch of the decision that waits for a person.
fn proposed(state: &State) -> Option<String> {
    let proposed = state.proposed.as_ref()?;
    Some(proposed.branch.trim_start_matches("refs/heads/").to_owned())
}

/// Who moves `rendered`, as the newest accepted revision says.
fn approval(state: &State) -> Option<Approval> {
    state.fleet.as_ref().map(|fleet| fleet.spec.approval)
}

/// Where source stands, if that is followed.
fn head(state: &State) -> Option<&Revision> {
    match state.source.as_ref()? {
        Head::At {
            relation: Relation::Rewritten,
            ..
        }
        | Head::BranchMissing { .. }
        | Head::Unreadable { .. } => None,
        Head::At { revision, .. } => Some(revision),
    }
}

fn trouble(state: &State) -> Option<String> {
    let is_wrong = |status: &str| status == "False";
    let wrong = state
        .conditions()
        .into_iter()
        .find(|condition| is_wrong(condition.status))?;
    Some(format!("{}: {}", wrong.reason, wrong.message))
}

/// What each cluster is told to have.
pub(super) fn lists(state: &State) -> Lists {
    let clusters = state.fleet.iter().flat_map(|fleet| fleet.clusters.keys());
    clusters
        .filter_map(|name| Some((name.clone(), state.envelope(name)?.list)))
        .collect()
}

/// The sequence of what is released.
pub(super) fn sequence(state: &State) -> u64 {
    let record = state
        .released
        .as_ref()
        .and_then(|released| released.published.record.as_ref());
    record.and_then(|record| record.sequence).unwrap_or_default()
}

/// Whether a cluster has done all it can about a list.
pub(super) fn has_settled(state: &State, cluster: &ClusterName, list: &Digest) -> bool {
    use reconciler::wire::UnitState;
    let report = state.clusters.get(cluster).and_then(|known| known.report.as_ref());
    report.is_some_and(|report| {
        let held = report.held.as_ref().filter(|held| held.list == *list);
        held.is_some_and(|held| {
            held.units.iter().all(|(key, unit)| {
                report.units.get(key).is_some_and(|said| {
                    said.digest == Some(unit.digest) && matches!(said.state, UnitState::Applied | UnitState::Failed)
                })
            }) && report
                .units
                .iter()
                .all(|(key, said)| held.units.contains_key(key) || stays(said).is_some())
        })
    })
}

/// The first object of a unit that was removed and of which nothing more will go; `None` while it is removed.
fn stays(unit: &UnitReport) -> Option<&ObjectResult> {
    use reconciler::wire::UnitState;
    let is_done = unit.state == UnitState::Removing && unit.counts.removing == 0;
    unit.worst.first().filter(|_| is_done)
}

/// What stays in a cluster of units that were removed.
fn kept(state: &State, cluster: &ClusterName) -> Vec<(ClusterName, ObjectResult)> {
    let report = state.clusters.get(cluster).and_then(|known| known.report.as_ref());
    let units = report.iter().flat_map(|report| report.units.values());
    units
        .filter_map(stays)
        .map(|object| (cluster.clone(), object.clone()))
        .collect()
}

/// The Suspension that keeps a unit where what is rendered differs from what is released: its file, and its reason.
fn suspended(state: &State) -> Option<String> {
    let suspensions = state.fleet.as_ref()?.suspensions();
    let (rendered, released) = (state.rendered.as_ref()?, state.released.as_ref()?);
    let (rendered, released) = (&rendered.published.units, &released.published.units);
    let changed = rendered
        .keys()
        .chain(released.keys())
        .filter(|key| rendered.get(*key) != released.get(*key));
    for unit in changed {
        let placed = [rendered.get(unit), released.get(unit)].into_iter().flatten();
        for cluster in placed.flat_map(|unit| unit.clusters.keys()) {
            if let Some(found) = suspensions.of(unit, cluster, state.now) {
                return Some(match found.reason.as_str() {
                    "" => found.file.to_string(),
                    reason => format!("{}: {reason}", found.file),
                });
            }
        }
    }
    None
}

/// What could not be applied in a cluster.
fn failures(state: &State, cluster: &ClusterName) -> Vec<(ClusterName, ObjectResult)> {
    use reconciler::wire::UnitState;
    let report = state.clusters.get(cluster).and_then(|known| known.report.clone());
    let units = report.iter().flat_map(|report| report.units.values());
    let failed = units.filter(|unit| unit.state == UnitState::Failed);
    failed
        .flat_map(|unit| unit.worst.iter().take(1))
        .map(|object| (cluster.clone(), object.clone()))
        .collect()
}

/// What a cluster says that keeps it.
pub(super) fn why(state: &State, cluster: &ClusterName) -> String {
    match state.clusters.get(cluster) {
        None => ": it is not registered".to_owned(),
        Some(known) if known.epoch.is_none() => ": its agent is not connected".to_owned(),
        Some(known) => match known.report.as_ref().map(|report| report.trouble.as_str()) {
            Some(trouble) if !trouble.is_empty() => format!(": {trouble}"),
            _ => String::new(),
        },
    }
}
