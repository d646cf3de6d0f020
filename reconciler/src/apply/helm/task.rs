//! One release, kept as its HelmChart says by a task of its own: what it waits for delays nobody else.

use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use render::ObjectKey;
use render::chart::Crds;
use render::model::DriftMode;
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, timeout};
use tracing::{info, warn};

use super::adoption;
use super::decide::{Goal, Step, Tries, decide, decide_removal};
use super::definitions;
use super::live::{self, Live, LiveRevision};
use super::manifest;
use super::objects::{Found, KnownKinds, Objects};
use super::program::HelmError;
use super::run::{Means, Rendered, Run, RunError};
use super::wanted::{Place, Wanted};
use crate::apply::backoff::Backoff;
use crate::apply::health::Verdict;
use crate::apply::message;
use crate::fault::line;
use crate::limits::{
    APPLY_RETRY_FIRST, APPLY_RETRY_MAX, CHART_RETRY_FIRST, CHART_RETRY_MAX, HELM_TIMEOUT, LOOK_FIRST, LOOK_MAX,
    RELEASE_LOOK,
};
use crate::wire::{Health, ObjectState};

/// How long after its time a release that waits is still undone: later, what is unhealthy became so.
const LATE: u64 = 300;

/// What a release's task is to do.
#[derive(Clone)]
pub(in crate::apply) enum Order {
    /// Keep it.
    Keep(Arc<Wanted>, DriftMode),
    /// Take it away: its HelmChart left the delivery, and everything that has to prove it does.
    Remove(Place),
}

/// How a release fares.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::apply) struct Told {
    /// The content that this is about; empty while it is taken away.
    pub content: String,
    /// Where it stands.
    pub state: ObjectState,
    /// How its objects are.
    pub verdict: Verdict,
    /// What there is to say.
    pub message: String,
    /// Whether there is none any more.
    pub gone: bool,
}

/// What all releases share.
pub(super) struct Shared {
    pub(super) means: Means,
    pub(super) kinds: KnownKinds,
    /// How long unchanged objects rest before they are compared again.
    pub(super) resync: Duration,
}

/// The task.
pub(super) struct Task {
    pub(super) chart: ObjectKey,
    pub(super) shared: Arc<Shared>,
    pub(super) orders: watch::Receiver<Order>,
    pub(super) news: mpsc::Sender<(ObjectKey, Told)>,
    pub(super) memory: Memory,
}

/// What it knows of its release.
pub(super) struct Memory {
    /// The content that `tries` and `words` are about.
    content: String,
    tries: Tries,
    /// Why the last try failed.
    words: String,
    /// The objects of a revision, by its number.
    objects: Option<(u64, Objects)>,
    /// The revision whose objects were healthy once.
    settled: Option<u64>,
    compare_due: Instant,
    looks: Backoff,
    fetches: Backoff,
    requests: Backoff,
    told: Option<Told>,
}

impl Default for Memory {
    fn default() -> Self {
        Self {
            content: String::new(),
            tries: Tries::default(),
            words: String::new(),
            objects: None,
            settled: None,
            compare_due: Instant::now(),
            looks: Backoff::new(LOOK_FIRST, LOOK_MAX),
            fetches: Backoff::new(CHART_RETRY_FIRST, CHART_RETRY_MAX),
            requests: Backoff::new(APPLY_RETRY_FIRST, APPLY_RETRY_MAX),
            told: None,
        }
    }
}

impl Task {
    /// Works until whoever gives orders is gone.
    pub(super) async fn work(mut self) {
        loop {
            let order = self.orders.borrow_and_update().clone();
            let pause = match &order {
                Order::Keep(wanted, drift) => self.keep(wanted, *drift).await,
                Order::Remove(place) => self.remove(place).await,
            };
            // A run of helm is not cut off by a newer order: that would leave its lock behind.
            if let Ok(Err(_)) = timeout(pause, self.orders.changed()).await {
                return;
            }
        }
    }

    /// One step towards what is wanted; how long to wait before the next.
    async fn keep(&mut self, wanted: &Wanted, drift: DriftMode) -> Duration {
        let memory = &mut self.memory;
        if memory.content != wanted.content {
            memory.content.clone_from(&wanted.content);
            memory.tries = Tries::default();
            memory.words.clear();
            memory.fetches.reset();
        }
        let live = match Live::read(&self.shared.means.client, &wanted.place).await {
            Ok(live) => live,
            Err(error) => return self.unreachable(&error.line()).await,
        };
        self.memory.requests.reset();
        let owner = wanted.owner();
        let goal = Goal {
            content: &wanted.content,
            owner: &owner,
            atomic: wanted.order.atomic,
            upgrade_atomic: wanted.order.upgrade_atomic,
            replace: wanted.order.replace,
            attempts: crate::limits::HELM_ATTEMPTS,
            timeout: wanted.timeout().as_secs(),
        };
        let now = now();
        let step = decide(&goal, &live, &self.memory.tries, now);
        if drift == DriftMode::Freeze && step != Step::Nothing {
            let words = "it is frozen: drift.mode is Freeze, and the release is not as its HelmChart says";
            self.tell(ObjectState::Suspended, unknown(), words.to_owned()).await;
            return RELEASE_LOOK;
        }
        match (step, live.latest()) {
            (Step::Nothing, Some(latest)) => {
                let is_first = live.ran_before().is_none();
                self.follow(wanted, latest, is_first, drift).await
            }
            (Step::Nothing, None) => RELEASE_LOOK,
            (Step::Install, _) => self.apply(wanted, true).await,
            (Step::Upgrade, _) => self.apply(wanted, false).await,
            (Step::Rollback(number), _) => self.rollback(wanted, number).await,
            (Step::Forget, Some(latest)) => self.forget(wanted, latest).await,
            (Step::Forget, None) => Duration::ZERO,
            (Step::Uninstall, _) => self.uninstall(wanted).await,
            (Step::Wait(at, words), _) => {
                let said = &self.memory.words;
                let words = if said.is_empty() {
                    words
                } else {
                    format!("{said}; {words}")
                };
                let failed = live.latest().is_none_or(|latest| !latest.status.is_pending());
                let state = if failed {
                    ObjectState::Failed
                } else {
                    ObjectState::Waiting
                };
                self.tell(state, unknown(), words).await;
                Duration::from_secs(at.saturating_sub(now)).min(RELEASE_LOOK)
            }
            (Step::GiveUp(words), _) => {
                self.tell(ObjectState::Failed, unknown(), words).await;
                RELEASE_LOOK
            }
        }
    }

    /// The release is as wanted: how are its objects?
    async fn follow(&mut self, wanted: &Wanted, latest: &LiveRevision, is_first: bool, drift: DriftMode) -> Duration {
        let found = match self.look(wanted, latest.number, drift).await {
            Ok(found) => found,
            Err(words) => {
                self.tell(ObjectState::Applied, unknown(), words).await;
                return self.memory.requests.wait();
            }
        };
        let memory = &mut self.memory;
        let is_current = found.verdict.health == Health::Current;
        let needed = if wanted.order.wait_for_jobs {
            &found.verdict
        } else {
            &found.without_jobs
        };
        if needed.health == Health::Current {
            memory.settled = Some(latest.number);
            memory.tries = Tries::default();
        }
        if is_current {
            memory.looks.reset();
        }
        let deadline = latest.written.saturating_add(wanted.timeout().as_secs());
        let now = now();
        let awaited = wanted.waits(is_first) && memory.settled != Some(latest.number) && now < deadline + LATE;
        if awaited && !memory.tries.unhealthy && (needed.health == Health::Failed || now >= deadline) {
            memory.words = format!("its objects did not become healthy: {}", needed.message);
            memory.tries = Tries {
                failed: memory.tries.failed.saturating_add(1),
                last: now,
                unhealthy: true,
            };
            return Duration::ZERO;
        }
        let (state, words) = if memory.tries.unhealthy {
            (ObjectState::Failed, memory.words.clone())
        } else if awaited {
            (
                ObjectState::Waiting,
                format!("waits for its objects: {}", needed.message),
            )
        } else {
            (ObjectState::Applied, found.drifted.join("; "))
        };
        self.tell(state, found.verdict, words).await;
        if is_current {
            RELEASE_LOOK.min(self.shared.resync)
        } else {
            self.memory.looks.wait()
        }
    }

    async fn look(&mut self, wanted: &Wanted, number: u64, drift: DriftMode) -> Result<Found, String> {
        let (place, client) = (&wanted.place, &self.shared.means.client);
        if self.memory.objects.as_ref().is_none_or(|(known, _)| *known != number) {
            let run = Run::prepare(&self.shared.means, place, HELM_TIMEOUT)
                .await
                .map_err(|error| line(&error))?;
            let text = run.manifest().await.map_err(|error| line(&error))?;
            let managed = manifest::read(&text).map_err(|why| format!("its manifest is not understood: {why}"))?;
            self.memory.objects = Some((number, Objects::new(managed)));
        }
        let compare = Instant::now() >= self.memory.compare_due;
        let Some((_, objects)) = &mut self.memory.objects else {
            return Err("its manifest is not known".to_owned());
        };
        let found = objects
            .look(client, &self.shared.kinds, place, compare.then_some(drift))
            .await;
        let found = found.map_err(|error| error.line())?;
        if compare {
            self.memory.compare_due = Instant::now() + self.shared.resync;
            if !found.drifted.is_empty() {
                info!(object = %self.chart, drifted = found.drifted.len(), "Found drift of a release.");
            }
        }
        Ok(found)
    }

    /// Installs or upgrades.
    async fn apply(&mut self, wanted: &Wanted, is_install: bool) -> Duration {
        let words = if is_install {
            "helm installs it"
        } else {
            "helm upgrades it"
        };
        self.tell(ObjectState::Waiting, unknown(), words.to_owned()).await;
        match self.try_apply(wanted, is_install).await {
            Ok(()) => {
                info!(object = %self.chart, attempt = self.memory.tries.failed + 1, "Released chart.");
                let memory = &mut self.memory;
                memory.fetches.reset();
                memory.looks.reset();
                memory.objects = None;
                // What helm just wrote needs no comparison.
                memory.compare_due = Instant::now() + self.shared.resync;
                Duration::ZERO
            }
            Err(error) => self.failed(error).await,
        }
    }

    async fn try_apply(&self, wanted: &Wanted, is_install: bool) -> Result<(), RunError> {
        let means = &self.shared.means;
        let mut run = Run::prepare(means, &wanted.place, wanted.timeout()).await?;
        run.bring(means, wanted).await?;
        if wanted.order.crds == Crds::CreateReplace {
            definitions::replace(&means.client, &run.definitions().await?).await?;
        }
        let rendered = run.rendered(wanted).await;
        let released = release(&run, wanted, &rendered, is_install).await;
        let Err(RunError::Helm(HelmError::Failed { words, .. })) = &released else {
            return released;
        };
        if !words.contains(adoption::REFUSED) {
            return released;
        }
        let owner = adoption::owner(means, &self.shared.kinds, &wanted.place, &run.templates().await?).await;
        match owner.map_err(RunError::Adoption)? {
            Some(owner) => Err(RunError::Owned(owner)),
            None => {
                let adopting = Rendered {
                    takes_ownership: true,
                    ..rendered
                };
                release(&run, wanted, &adopting, is_install).await
            }
        }
    }

    /// A run failed: what helm itself gave up counts as a try; what could not be begun does not.
    async fn failed(&mut self, error: RunError) -> Duration {
        let words = message::shorten(&line(&error));
        warn!(object = %self.chart, error = words, attempt = self.memory.tries.failed + 1, "Failed to release chart.");
        let pause = match error {
            RunError::Helm(HelmError::NotRun { .. }) | RunError::Prepare(_) => RELEASE_LOOK,
            RunError::Chart(_) => self.memory.fetches.wait(),
            RunError::Adoption(_) => self.memory.requests.wait(),
            RunError::Definitions(_) | RunError::Owned(_) | RunError::Helm(_) => {
                let memory = &mut self.memory;
                memory.tries.failed = memory.tries.failed.saturating_add(1);
                memory.tries.last = now();
                memory.words.clone_from(&words);
                Duration::ZERO
            }
        };
        self.tell(ObjectState::Failed, unknown(), words).await;
        pause
    }

    async fn rollback(&mut self, wanted: &Wanted, number: u64) -> Duration {
        let words = format!("helm goes back to revision {number}");
        self.tell(ObjectState::Waiting, unknown(), self.because(words)).await;
        let rolled = async {
            let run = Run::prepare(&self.shared.means, &wanted.place, wanted.timeout()).await?;
            run.rollback(number, wanted).await
        };
        let rolled = rolled.await;
        self.undone(rolled, "Rolled back a release.").await
    }

    async fn uninstall(&mut self, wanted: &Wanted) -> Duration {
        let words = self.because("helm takes it away to install it anew".to_owned());
        self.tell(ObjectState::Waiting, unknown(), words).await;
        let uninstalled = async {
            let run = Run::prepare(&self.shared.means, &wanted.place, wanted.timeout()).await?;
            run.uninstall(wanted.order.disable_hooks).await
        };
        let uninstalled = uninstalled.await;
        self.undone(uninstalled, "Took away a failed install.").await
    }

    async fn undone(&mut self, outcome: Result<(), RunError>, done: &'static str) -> Duration {
        match outcome {
            Ok(()) => {
                info!(object = %self.chart, "{done}");
                self.memory.tries.unhealthy = false;
                Duration::ZERO
            }
            Err(error) => {
                let words = self.because(message::shorten(&line(&error)));
                self.tell(ObjectState::Failed, unknown(), words).await;
                self.memory.fetches.wait()
            }
        }
    }

    async fn forget(&mut self, wanted: &Wanted, latest: &LiveRevision) -> Duration {
        match live::forget(&self.shared.means.client, &wanted.place, latest).await {
            Ok(()) => {
                info!(object = %self.chart, "Forgot a half-made revision.");
                Duration::ZERO
            }
            Err(error) => self.unreachable(&error.line()).await,
        }
    }

    /// One step towards no release.
    async fn remove(&mut self, place: &Place) -> Duration {
        let live = match Live::read(&self.shared.means.client, place).await {
            Ok(live) => live,
            Err(error) => return self.unreachable(&error.line()).await,
        };
        let owner = super::wanted::owner(&self.chart);
        match decide_removal(&owner, &live) {
            Step::Nothing => {
                self.tell_told(Told {
                    content: String::new(),
                    state: ObjectState::Removing,
                    verdict: unknown(),
                    message: "it is gone".to_owned(),
                    gone: true,
                })
                .await;
                RELEASE_LOOK
            }
            Step::GiveUp(words) => {
                self.tell(ObjectState::Kept, unknown(), words).await;
                RELEASE_LOOK
            }
            _ => {
                self.tell(ObjectState::Removing, unknown(), "helm uninstalls it".to_owned())
                    .await;
                let uninstalled = async {
                    let run = Run::prepare(&self.shared.means, place, HELM_TIMEOUT).await?;
                    run.uninstall(false).await
                };
                match uninstalled.await {
                    Ok(()) => {
                        info!(object = %self.chart, "Uninstalled a release.");
                        Duration::ZERO
                    }
                    Err(error) => {
                        let words = message::shorten(&line(&error));
                        warn!(object = %self.chart, error = words, "Failed to uninstall a release.");
                        self.tell(ObjectState::Removing, unknown(), words).await;
                        self.memory.fetches.wait()
                    }
                }
            }
        }
    }

    async fn unreachable(&mut self, words: &str) -> Duration {
        let state = match *self.orders.borrow() {
            Order::Keep(..) => ObjectState::Waiting,
            Order::Remove(_) => ObjectState::Removing,
        };
        self.tell(state, unknown(), words.to_owned()).await;
        self.memory.requests.wait()
    }

    /// Words, with the failure that led to them.
    fn because(&self, words: String) -> String {
        match self.memory.words.as_str() {
            "" => words,
            why => format!("{words}, since {why}"),
        }
    }

    async fn tell(&mut self, state: ObjectState, verdict: Verdict, message: String) {
        let content = match &*self.orders.borrow() {
            Order::Keep(..) => self.memory.content.clone(),
            Order::Remove(_) => String::new(),
        };
        self.tell_told(Told {
            content,
            state,
            verdict,
            message: message::shorten(&message),
            gone: false,
        })
        .await;
    }

    async fn tell_told(&mut self, told: Told) {
        if self.memory.told.as_ref() == Some(&told) {
            return;
        }
        self.memory.told = Some(told.clone());
        // Nobody listens any more only when this task is about to end.
        let _ended = self.news.send((self.chart.clone(), told)).await;
    }
}

async fn release(run: &Run, wanted: &Wanted, rendered: &Rendered, is_install: bool) -> Result<(), RunError> {
    if is_install {
        run.install(wanted, rendered).await
    } else {
        run.upgrade(wanted, rendered).await
    }
}

fn unknown() -> Verdict {
    Verdict {
        health: Health::Unknown,
        message: String::new(),
    }
}

fn now() -> u64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default()
        .as_secs()
}
