//! The loop: an event is heard, the engine steps, its effects are performed.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::{Notify, mpsc, watch};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tracing::Instrument as _;

use super::SharedState;
use crate::apply::Backoff;
use crate::hub::clock::{seconds, until};
use crate::hub::clusters::Clusters;
use crate::hub::deny;
use crate::hub::dispatch::Dispatch;
use crate::hub::engine::{Event, next_time, step};
use crate::hub::joining::Joining;
use crate::hub::keeper::Keeper;
use crate::hub::keys::HubKeys;
use crate::hub::objects::Objects;
use crate::hub::options::{HubError, HubOptions, OnRewrite};
use crate::hub::planner::Planner;
use crate::hub::predict::Predictor;
use crate::hub::predictors::Predictors;
use crate::hub::registry::Registry;
use crate::hub::remote::Remote;
use crate::hub::source::{Look, Source};
use crate::limits::{EFFECTS_PER_TURN, KNOCKS_TOLD};

/// What the loop works with.
pub(super) struct Hub {
    pub(super) state: SharedState,
    pub(super) source: Arc<Source>,
    pub(super) remote: Option<Arc<Remote>>,
    pub(super) keeper: Arc<Keeper>,
    pub(super) planner: Arc<Planner>,
    pub(super) predictor: Arc<Predictor>,
    pub(super) predictors: Arc<Predictors>,
    pub(super) registry: Arc<Registry>,
    pub(super) clusters: Clusters,
    pub(super) dispatch: Arc<Dispatch>,
    pub(super) events: mpsc::Sender<Event>,
    pub(super) tasks: TaskTracker,
    pub(super) on_rewrite: OnRewrite,
    /// Cancelled when a task panicked whose answer the engine waits for.
    pub(super) panicked: CancellationToken,
    pub(super) look_at_source: Arc<Notify>,
    pub(super) look_at_state: Arc<Notify>,
    /// Somebody asks for a look at both, and at the remote.
    pub(super) look_now: Arc<Notify>,
    pub(super) look_at_objects: Arc<Notify>,
    pub(super) keys: HubKeys,
    /// How long a write rests that failed.
    pub(super) refusals: Arc<Mutex<Backoff>>,
}

impl Hub {
    /// Hears events, and does what follows from them, until shutdown.
    pub(super) async fn run(
        &self,
        mut heard: mpsc::Receiver<Event>,
        options: &HubOptions,
        shutdown: CancellationToken,
    ) -> Result<(), HubError> {
        let mut looks = self.watch_source(options, &shutdown);
        let mut state_looks = self.watch_state(options, &shutdown);
        self.start_looking(&shutdown);
        self.keep_objects(options, &shutdown);
        self.keep_door(options, &shutdown);
        let grace = tokio::time::sleep(options.recovery_grace);
        let mut grace = std::pin::pin!(grace);
        let mut in_grace = true;
        self.look_at_state.notify_one();
        loop {
            let due = next_time(&self.state.read().unwrap_or_else(PoisonError::into_inner));
            tokio::select! {
                biased;
                () = shutdown.cancelled() => break,
                () = self.panicked.cancelled() => return Err(HubError::Ended { part: "a task of the hub" }),
                event = heard.recv() => match event {
                    Some(event) => self.hear(event).await,
                    None => break,
                },
                changed = looks.changed() => match changed {
                    Ok(()) => {
                        self.look_at_source.notify_one();
                        if options.state.is_none() {
                            self.look_at_state.notify_one();
                        }
                    }
                    Err(_) => break,
                },
                changed = next_look(state_looks.as_mut()) => match changed {
                    Ok(()) => self.look_at_state.notify_one(),
                    Err(_) => break,
                },
                () = self.look_now.notified() => self.look_everywhere(),
                () = &mut grace, if in_grace => {
                    in_grace = false;
                    self.hear(Event::GraceOver).await;
                }
                () = until(due) => self.hear(Event::TimeCame).await,
            }
        }
        self.clusters.stop().await;
        self.tasks.close();
        Ok(())
    }

    async fn hear(&self, event: Event) {
        if let Event::ReleasedWritten(commit) = &event {
            self.housekeep_after(commit);
            self.predictors.forget();
        }
        let effects = {
            let mut state = self.state.write().unwrap_or_else(PoisonError::into_inner);
            step(&mut state, event, seconds())
        };
        in_turns(effects, |effect| self.perform(effect)).await;
        self.look_at_objects.notify_one();
    }

    fn keep_objects(&self, options: &HubOptions, shutdown: &CancellationToken) {
        let objects = Objects {
            state: Arc::clone(&self.state),
            keeper: Arc::clone(&self.keeper),
            events: self.events.clone(),
            cluster: options.objects.clone(),
            look: Arc::clone(&self.look_at_objects),
        };
        let keeping = objects.run(shutdown.clone());
        self.watch_over(keeping.instrument(tracing::info_span!("objects")));
    }

    /// Follows the deny list, and tells who asks to be let in.
    fn keep_door(&self, options: &HubOptions, shutdown: &CancellationToken) {
        if let Some(path) = options.deny_file.clone() {
            let following = deny::follow(path, Arc::clone(&self.registry), shutdown.clone());
            self.watch_over(following.instrument(tracing::info_span!("deny")));
        }
        let (registry, events, shutdown) = (Arc::clone(&self.registry), self.events.clone(), shutdown.clone());
        let mut joining = Joining::new(options.tokens.clone());
        let state = Arc::clone(&self.state);
        self.watch_over(async move {
            loop {
                tokio::select! {
                    biased;
                    () = shutdown.cancelled() => return,
                    () = tokio::time::sleep(KNOCKS_TOLD) => {}
                }
                if let Some(knocks) = registry.news() {
                    let _sent = events.send(Event::Knocked { knocks }).await;
                }
                let wished = state.read().unwrap_or_else(PoisonError::into_inner).agent_keys.keys();
                let denied: BTreeSet<_> = wished.into_iter().filter(|key| registry.has_denied(key)).collect();
                if !denied.is_empty() {
                    let _sent = events.send(Event::KeysDenied { keys: denied }).await;
                }
                if let Some(wanted) = joining.look(&registry).await {
                    let _sent = events.send(Event::Joining { wanted }).await;
                }
            }
        });
    }

    /// Runs a task whose panic ends the hub: the engine would wait for its answer for ever.
    pub(super) fn watch_over(&self, work: impl Future<Output = ()> + Send + 'static) {
        let (running, panicked) = (tokio::spawn(work), self.panicked.clone());
        self.tasks.spawn(async move {
            if running.await.is_err_and(|ended| ended.is_panic()) {
                panicked.cancel();
            }
        });
    }
}

/// Does one after another. An effect may be a cluster's whole envelope, made and compared here, and a fleet has thousands of
/// them: now and then others have their turn.
async fn in_turns<T>(effects: impl IntoIterator<Item = T>, mut perform: impl FnMut(T)) {
    for (done, effect) in effects.into_iter().enumerate() {
        if done > 0 && done % EFFECTS_PER_TURN == 0 {
            tokio::task::yield_now().await;
        }
        perform(effect);
    }
}

/// The next look that a watch of the state repository asks for; never, where it is the source's own.
async fn next_look(looks: Option<&mut watch::Receiver<Look>>) -> Result<(), watch::error::RecvError> {
    match looks {
        Some(looks) => looks.changed().await,
        None => std::future::pending().await,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn others_have_their_turn_while_a_whole_fleet_is_told() {
        let clusters = 10 * EFFECTS_PER_TURN;
        let told = std::cell::Cell::new(0);
        let telling = in_turns(0..clusters, |cluster| {
            assert_eq!(cluster, told.get(), "in their order");
            told.set(cluster + 1);
        });
        let others = async {
            let mut before = 0;
            while before < clusters {
                // Who is joined first takes turns as well.
                let turns = 2 * EFFECTS_PER_TURN;
                assert!(told.get() - before <= turns, "{} after {before}", told.get());
                before = told.get();
                tokio::task::yield_now().await;
            }
        };
        tokio::join!(telling, others);
        assert_eq!(told.get(), clusters);
    }
}
