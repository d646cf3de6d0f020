//! The loop that keeps a hub cluster: it looks at the hub's state when that may have changed, at its own
//! pace, and says as a condition of the fleet how far it has come.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, PoisonError};

use kube::Client;
use render::model::RenderMode;
use render::time::rfc3339;
use render::{Fleet, Revision};
use tokio::sync::{Notify, mpsc};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::condition::{condition, idle, trouble, verdict};
use super::desired::{Desired, Release};
use super::kind::Id;
use super::mirror::{Mirror, MirrorError};
use super::plan::{Plan, plan};
use super::status::{Told, statuses};
use crate::apply::{ApiServer, Backoff, ClientError};
use crate::fault::line;
use crate::hub::SharedState;
use crate::hub::blocking::blocking;
use crate::hub::clock::seconds;
use crate::hub::engine::{Condition, Event, State, StateCommit};
use crate::hub::keeper::Keeper;
use crate::hub::observe::Observation;
use crate::limits::{APPLY_RETRY_FIRST, APPLY_RETRY_MAX, OBJECTS_REST, OBJECTS_SILENCE, RESYNC};
use crate::telemetry::elapsed_ms;

/// A round is followed by a pause of at least this many times its own length.
const REST_FACTOR: u32 = 4;

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

/// A round that came to nothing.
#[derive(Debug, thiserror::Error)]
pub(super) enum RoundError {
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
        let kept = memory.mirror.take().filter(|_| !memory.is_list_due(begun));
        let mut mirror = match kept {
            Some(mirror) => mirror,
            None => {
                if memory.listed.is_none() {
                    self.say_begun(&release).await;
                }
                (memory.listed, memory.written) = (Some(begun), false);
                let client = client(cluster).await.map_err(RoundError::Client)?;
                let listed = Mirror::list(client, &plan.desired, &release).await;
                listed.map_err(RoundError::Mirror)?
            }
        };
        if !memory.written {
            let written = write(&mut mirror, &plan.desired, &release, &released.commit).await;
            written.map_err(RoundError::Mirror)?;
        }
        memory.written = true;
        let told = tell(state, Arc::clone(&plan)).await;
        let (patient, now) = (started.elapsed() < OBJECTS_SILENCE, rfc3339(seconds()));
        let more = mirror.tell(&told, patient, &now).await.map_err(RoundError::Mirror)?;
        let all_read = plan.desired.unreadable.is_empty();
        memory.lacking = !(mirror.refused.is_empty() && mirror.foreign.is_empty() && all_read);
        let unheard = patient && told.values().any(|told| !told.heard);
        let next = [
            more.then(Instant::now),
            unheard.then_some(started + OBJECTS_SILENCE),
            memory.listed.map(|listed| listed + RESYNC),
        ];
        let condition = Some(verdict(&mirror, &plan.desired, &release));
        memory.mirror = Some(mirror);
        Ok(Round {
            condition,
            again: next.into_iter().flatten().min(),
        })
    }

    /// The first write of a large fleet takes a while, and whoever looks meanwhile should see that it goes on.
    async fn say_begun(&self, release: &Release) {
        let message = format!("release {} is being written", release.sequence);
        let condition = Some(condition("Unknown", "Writing", message));
        // The engine is gone only when the hub is ending.
        let _sent = self.events.send(Event::ObjectsSeen { condition }).await;
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

impl Memory {
    /// Whether the hub cluster is to be listed anew: once in a while, and when something is tried again.
    fn is_list_due(&self, now: Instant) -> bool {
        self.listed.is_none_or(|listed| listed + RESYNC <= now) || self.retry.is_some_and(|retry| retry <= now)
    }
}

/// Makes a hub cluster say what is desired.
async fn write(
    mirror: &mut Mirror,
    desired: &Desired,
    release: &Release,
    revision: &Revision,
) -> Result<(), MirrorError> {
    let begun = Instant::now();
    let written = mirror.write(desired, release).await?;
    let removed = mirror.remove(desired, release).await?;
    if written + removed > 0 {
        let elapsed_ms = elapsed_ms(begun);
        tracing::info!(%revision, written, removed, elapsed_ms, "Wrote objects to the hub cluster.");
    }
    Ok(())
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
        HubCluster::InCluster => ApiServer::in_cluster().await?,
    };
    Ok(server.client)
}

/// What is to be written, once there is something and while the hub does not hold still.
fn due(state: &State) -> Option<(Arc<Fleet>, StateCommit, Release)> {
    let (fleet, released) = (state.fleet.clone()?, state.released.clone()?);
    let sequence = released.published.record.as_ref()?.sequence?;
    let lineage = released.lineage.short().to_owned();
    let release = Release { lineage, sequence };
    (!state.is_recovering()).then_some((fleet, released, release))
}

async fn tell(state: State, plan: Arc<Plan>) -> BTreeMap<Id, Told> {
    blocking(move || statuses(&Observation::new(&state), &plan.pairs)).await
}
