//! The loop that keeps a hub cluster: it looks at the hub's state when that may have changed, at its own
//! pace, and says as a condition of the fleet how far it has come.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, PoisonError};

use kube::Client;
use render::model::RenderMode;
use render::published::{Placement, Variant};
use render::{Digest, Fleet, ObjectKey, Revision, UnitKey, layout};
use tokio::sync::{Notify, mpsc};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::content::{self, Contents, Place};
use super::desired::{Desired, Release, desired};
use super::kind::Id;
use super::mirror::{Mirror, MirrorError};
use super::status::{Told, statuses};
use crate::apply::{ApiServer, Backoff, ClientError};
use crate::fault::line;
use crate::hub::SharedState;
use crate::hub::blocking::blocking;
use crate::hub::engine::{Condition, Event, State, StateCommit};
use crate::hub::keeper::Keeper;
use crate::hub::observe::Observation;
use crate::limits::{
    APPLY_RETRY_FIRST, APPLY_RETRY_MAX, OBJECTS_NAMED_MAX, OBJECTS_REST, OBJECTS_SILENCE, RESULT_MESSAGE_CHARS_MAX,
    RESYNC,
};
use crate::telemetry::elapsed_ms;

/// Type of the fleet's condition about its objects.
const KIND: &str = "ObjectsWritten";

/// A round is followed by a pause of at least this many times its own length.
const REST_FACTOR: u32 = 4;

/// Hex digits of a lineage on an object.
const LINEAGE_DIGITS: usize = 12;

/// Which cluster the objects of the fleet are written to.
#[derive(Clone, Debug)]
pub enum HubCluster {
    /// The one that a context of a kubeconfig names; `None` is the file's current one.
    Kubeconfig {
        /// The file.
        path: PathBuf,
        /// The context.
        context: Option<String>,
    },
    /// The one that the hub runs in.
    InCluster,
}

/// What the loop works with.
pub(in crate::hub) struct Objects {
    pub(in crate::hub) state: SharedState,
    pub(in crate::hub) keeper: Arc<Keeper>,
    pub(in crate::hub) events: mpsc::Sender<Event>,
    pub(in crate::hub) cluster: Option<HubCluster>,
    /// Says that the state may have changed.
    pub(in crate::hub) look: Arc<Notify>,
}

/// What is known between two rounds.
#[derive(Default)]
struct Memory {
    mirror: Option<Mirror>,
    listed: Option<Instant>,
    /// What `plan` was made from: the commit of `released` and the revision of the fleet.
    seen: Option<(Revision, Revision)>,
    plan: Option<Arc<Plan>>,
    /// Whether `plan` was written, as far as that can be.
    written: bool,
    /// Whether something could not be written or read.
    lacking: bool,
    /// When it is tried again, after another list.
    retry: Option<Instant>,
}

/// What should be there, with the contents it was made from.
#[derive(Default)]
struct Plan {
    desired: Desired,
    /// By what they are made from, so that clusters share them and a later plan takes them over.
    shelf: BTreeMap<ShelfKey, Arc<Contents>>,
    pairs: BTreeMap<(UnitKey, String), Arc<Contents>>,
}

/// Digest of the variant, its folder, and the replicas put in.
type ShelfKey = (Digest, String, BTreeMap<ObjectKey, u64>);

/// A round that came to nothing.
#[derive(Debug, thiserror::Error)]
enum RoundError {
    #[error("failed to reach the hub cluster")]
    Client(#[source] ClientError),
    #[error(transparent)]
    Mirror(MirrorError),
}

/// What a round leaves.
struct Round {
    condition: Option<Condition>,
    /// When there is more to do, whatever happens.
    again: Option<Instant>,
}

impl Objects {
    /// Keeps the hub cluster until shutdown. Deliveries never wait for it.
    pub(in crate::hub) async fn run(self, shutdown: CancellationToken) {
        let (mut memory, mut said, started) = (Memory::default(), None, Instant::now());
        let mut backoff = Backoff::new(APPLY_RETRY_FIRST, APPLY_RETRY_MAX);
        let mut again = None;
        loop {
            tokio::select! {
                biased;
                () = shutdown.cancelled() => return,
                () = self.look.notified() => {}
                () = until(again) => {}
            }
            let begun = Instant::now();
            let round = shutdown.run_until_cancelled(Box::pin(self.round(&mut memory, started)));
            let Some(round) = round.await else {
                return;
            };
            // However fast reports come in, looking at them takes at most a fifth of one core.
            let mut rest = OBJECTS_REST.max((begun.elapsed() * REST_FACTOR).min(APPLY_RETRY_MAX));
            let condition = match round {
                Ok(round) => {
                    again = round.again;
                    if !memory.lacking {
                        memory.retry = None;
                        backoff.reset();
                    } else if memory.retry.is_none_or(|retry| retry <= begun) {
                        memory.retry = Some(Instant::now() + backoff.wait());
                    }
                    again = [again, memory.retry].into_iter().flatten().min();
                    round.condition
                }
                Err(error) => {
                    tracing::warn!(error = line(&error), "Could not write to the hub cluster.");
                    memory.mirror = None;
                    rest = rest.max(backoff.wait());
                    again = Some(Instant::now());
                    Some(trouble(&error))
                }
            };
            if condition != said {
                said.clone_from(&condition);
                // The engine is gone only when the hub is ending.
                let _sent = self.events.send(Event::ObjectsSeen { condition }).await;
            }
            tokio::select! {
                biased;
                () = shutdown.cancelled() => return,
                () = tokio::time::sleep(rest) => {}
            }
        }
    }

    async fn round(&self, memory: &mut Memory, started: Instant) -> Result<Round, RoundError> {
        let mode = self.mode();
        let Some(cluster) = self.cluster.as_ref().filter(|_| mode == Some(RenderMode::Objects)) else {
            *memory = Memory::default();
            return Ok(Round {
                condition: idle(mode, self.cluster.is_some()),
                again: None,
            });
        };
        let state = self.state.read().unwrap_or_else(PoisonError::into_inner).clone();
        let Some((fleet, released, release)) = due(&state) else {
            let message = "nothing is written before something is released, and nothing while the hub recovers";
            return Ok(Round {
                condition: Some(condition("Unknown", "NotReleasedYet", message.to_owned())),
                again: None,
            });
        };
        self.plan(memory, &fleet, &released).await;
        let plan = Arc::clone(memory.plan.get_or_insert_default());
        let begun = Instant::now();
        let is_old = |listed: Instant| listed + RESYNC <= begun;
        if memory.mirror.is_none()
            || memory.listed.is_none_or(is_old)
            || memory.retry.is_some_and(|retry| retry <= begun)
        {
            let client = client(cluster).await.map_err(RoundError::Client)?;
            let mirror = Mirror::list(client, &plan.desired, &release).await;
            memory.mirror = Some(mirror.map_err(RoundError::Mirror)?);
            memory.listed = Some(begun);
            memory.written = false;
        }
        let Some(mirror) = memory.mirror.as_mut() else {
            return Ok(Round {
                condition: None,
                again: Some(begun),
            });
        };
        if !memory.written {
            let written = mirror
                .write(&plan.desired, &release)
                .await
                .map_err(RoundError::Mirror)?;
            let removed = mirror
                .remove(&plan.desired, &release)
                .await
                .map_err(RoundError::Mirror)?;
            if written + removed > 0 {
                let (revision, elapsed_ms) = (&released.commit, elapsed_ms(begun));
                tracing::info!(%revision, written, removed, elapsed_ms, "Wrote objects to the hub cluster.");
            }
        }
        memory.written = true;
        let told = tell(state, Arc::clone(&plan)).await;
        let (patient, now) = (started.elapsed() < OBJECTS_SILENCE, now());
        let more = mirror.tell(&told, patient, &now).await.map_err(RoundError::Mirror)?;
        let all_read = plan.desired.unreadable.is_empty();
        memory.lacking = !(mirror.refused.is_empty() && mirror.foreign.is_empty() && all_read);
        let unheard = patient && told.values().any(|told| !told.heard);
        let next = [
            more.then(Instant::now),
            unheard.then_some(started + OBJECTS_SILENCE),
            memory.listed.map(|listed| listed + RESYNC),
        ];
        Ok(Round {
            condition: Some(verdict(mirror, &plan.desired, &release)),
            again: next.into_iter().flatten().min(),
        })
    }

    fn mode(&self) -> Option<RenderMode> {
        let state = self.state.read().unwrap_or_else(PoisonError::into_inner);
        state.fleet.as_ref().map(|fleet| fleet.spec.render.mode)
    }

    /// Makes the plan anew where it was made from something else, or contents were missing.
    async fn plan(&self, memory: &mut Memory, fleet: &Arc<Fleet>, released: &StateCommit) {
        let seen = (released.commit.clone(), fleet.revision.clone());
        let whole = memory
            .plan
            .as_ref()
            .is_some_and(|plan| plan.desired.unreadable.is_empty());
        if whole && memory.seen.as_ref() == Some(&seen) {
            return;
        }
        let before = memory.plan.take();
        let (keeper, fleet, released) = (Arc::clone(&self.keeper), Arc::clone(fleet), released.clone());
        let planning = move || plan(&keeper, &fleet, &released, before.as_deref());
        memory.plan = Some(Arc::new(blocking(planning).await));
        memory.seen = Some(seen);
        memory.written = false;
        // What was compared with the plan before is compared with this one by its digest.
    }
}

async fn until(time: Option<Instant>) {
    match time {
        Some(time) => tokio::time::sleep_until(time).await,
        None => std::future::pending().await,
    }
}

async fn client(cluster: &HubCluster) -> Result<Client, ClientError> {
    let server = match cluster {
        HubCluster::Kubeconfig { path, context } => ApiServer::from_kubeconfig(path, context.as_deref()).await?,
        HubCluster::InCluster => ApiServer::in_cluster()?,
    };
    Ok(server.client)
}

/// What is to be written, once there is something and while the hub does not hold still.
fn due(state: &State) -> Option<(Arc<Fleet>, StateCommit, Release)> {
    let (fleet, released) = (state.fleet.clone()?, state.released.clone()?);
    let sequence = released.published.record.as_ref()?.sequence?;
    let lineage = released.lineage.as_str().chars().take(LINEAGE_DIGITS).collect();
    let release = Release { lineage, sequence };
    (!state.is_recovering()).then_some((fleet, released, release))
}

fn plan(keeper: &Keeper, fleet: &Fleet, released: &StateCommit, before: Option<&Plan>) -> Plan {
    let mut shelf: BTreeMap<ShelfKey, Arc<Contents>> = BTreeMap::new();
    let mut pairs = BTreeMap::new();
    // Units share contents over their clusters, so that pairs are named afterwards.
    let mut find = |unit: &UnitKey, placement: &Placement, variant: &Variant| {
        let folder = layout::unit_folder(unit, &placement.variant);
        let key = (variant.digest, folder.clone(), placement.replicas.clone());
        let known = shelf.get(&key).or_else(|| before?.shelf.get(&key)).cloned();
        if let Some(known) = known {
            shelf.insert(key, Arc::clone(&known));
            return Ok(known);
        }
        let description = keeper.content(&released.commit, &variant.digest);
        let description = description.map_err(|error| line(&error))?;
        let place = Place {
            digest: &variant.digest,
            folder: &folder,
        };
        let contents = Arc::new(content::contents(&description, &placement.replicas, place));
        shelf.insert(key, Arc::clone(&contents));
        Ok(contents)
    };
    let desired = desired(fleet, &released.published, &mut find);
    for (key, unit) in &released.published.units {
        for cluster in unit.clusters.keys() {
            let Some((placement, variant)) = unit.entry(cluster) else {
                continue;
            };
            let folder = layout::unit_folder(key, &placement.variant);
            if let Some(contents) = shelf.get(&(variant.digest, folder, placement.replicas.clone())) {
                pairs.insert((key.clone(), cluster.to_string()), Arc::clone(contents));
            }
        }
    }
    Plan { desired, shelf, pairs }
}

async fn tell(state: State, plan: Arc<Plan>) -> BTreeMap<Id, Told> {
    blocking(move || statuses(&Observation::new(&state), &plan.pairs)).await
}

fn now() -> String {
    let now = jiff::Timestamp::now().as_second();
    jiff::Timestamp::from_second(now).unwrap_or_default().to_string()
}

fn condition(status: &'static str, reason: &'static str, message: String) -> Condition {
    Condition {
        kind: KIND,
        status,
        reason,
        message,
    }
}

/// The condition of a fleet whose objects are not written.
fn idle(mode: Option<RenderMode>, has_cluster: bool) -> Option<Condition> {
    match (mode, has_cluster) {
        (Some(RenderMode::Objects), false) => Some(condition(
            "False",
            "NoHubCluster",
            "spec.render.mode of fleet.yaml is objects, and the hub knows no hub cluster; start it with --objects-kubeconfig or --objects-in-cluster".to_owned(),
        )),
        (Some(RenderMode::Commits), true) => Some(condition(
            "True",
            "ModeCommits",
            "spec.render.mode of fleet.yaml is commits: nothing is written to the hub cluster, and what was written before stays".to_owned(),
        )),
        _ => None,
    }
}

fn trouble(error: &RoundError) -> Condition {
    let reason = match error {
        RoundError::Mirror(MirrorError::NotServed { .. }) => "KindsNotServed",
        RoundError::Mirror(_) | RoundError::Client(_) => "HubClusterUnreachable",
    };
    condition("False", reason, line(error))
}

/// How far it has come.
fn verdict(mirror: &Mirror, desired: &Desired, release: &Release) -> Condition {
    if !mirror.foreign.is_empty() {
        let words = "objects of the hub cluster have names that are needed, and are not ours";
        return condition("False", "ForeignObjects", named(words, &mirror.foreign));
    }
    if !mirror.refused.is_empty() {
        let words = "objects were refused by the hub cluster";
        return condition("False", "ObjectsRefused", named(words, &mirror.refused));
    }
    if let Some(first) = desired.unreadable.first() {
        let message = format!(
            "{} contents could not be read, such as {first}",
            desired.unreadable.len()
        );
        return condition("Unknown", "ContentUnreadable", message);
    }
    let mut message = format!(
        "{} objects of the hub cluster say what sequence {} says",
        mirror.len() - mirror.kept.len(),
        release.sequence
    );
    if !mirror.kept.is_empty() {
        message = format!(
            "{message}; {}",
            named("others stay, since a proof is missing", &mirror.kept)
        );
    }
    condition("True", "Written", message)
}

fn named(words: &str, objects: &BTreeMap<Id, String>) -> String {
    let first = objects.iter().take(OBJECTS_NAMED_MAX);
    let short = |reason: &str| reason.chars().take(RESULT_MESSAGE_CHARS_MAX).collect::<String>();
    let first: Vec<_> = first.map(|(id, reason)| format!("{id}: {}", short(reason))).collect();
    format!("{} {words}: {}", objects.len(), first.join("; "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(mode: Option<RenderMode>, has_cluster: bool, expected: Option<(&str, &str)>) {
        let found = idle(mode, has_cluster);
        assert_eq!(found.map(|found| (found.status, found.reason)), expected);
    }

    #[test]
    fn only_a_mode_that_lacks_its_hub_cluster_is_something_to_mend() {
        check(None, true, None);
        check(Some(RenderMode::Commits), false, None);
        check(Some(RenderMode::Commits), true, Some(("True", "ModeCommits")));
        check(Some(RenderMode::Objects), false, Some(("False", "NoHubCluster")));
    }

    #[test]
    fn a_message_names_a_few_and_counts_all() {
        let objects = (0..9).map(|number| (Id::namespace(format!("n{number}")), "why".to_owned()));
        let message = named("objects", &objects.collect());
        assert_eq!(
            message,
            "9 objects: Namespace n0: why; Namespace n1: why; Namespace n2: why"
        );
    }
}
