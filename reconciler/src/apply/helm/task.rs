//! One release, kept as its HelmChart says by a task of its own: what it waits for delays nobody else.

use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use render::ObjectKey;
use render::chart::Crds;
use render::model::DriftMode;
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, sleep_until};
use tracing::{info, warn};

use super::adoption;
use super::decide::{Goal, Step, Tries, decide};
use super::definitions;
use super::live::{Live, LiveRevision, Status};
use super::manifest;
use super::manner::Manner;
use super::news::{News, Order, Told};
use super::objects::{Found, KnownKinds, Objects};
use super::program::HelmError;
use super::run::{Means, Rendered, Run, RunError};
use super::touched::{Touched, Touches};
use super::wanted::Wanted;
use crate::apply::backoff::Backoff;
use crate::apply::health::Verdict;
use crate::apply::message;
use crate::fault::line;
use crate::limits::{
    APPLY_RETRY_FIRST, APPLY_RETRY_MAX, CHART_RETRY_FIRST, CHART_RETRY_MAX, DRIFT_OBJECTS_MAX, HELM_TIMEOUT,
    LOOK_FIRST, LOOK_MAX, RELEASE_LOOK,
};
use crate::wire::{Health, ObjectDrift, ObjectState};

/// How long after its time a release that waits is still undone: later, what is unhealthy became so.
const LATE: u64 = 300;

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
    pub(super) touches: Touches,
    pub(super) listener: watch::Receiver<Touched>,
    pub(super) news: mpsc::Sender<(ObjectKey, News)>,
    pub(super) memory: Memory,
}

/// What it knows of its release.
pub(super) struct Memory {
    /// The content that `tries` and `words` are about.
    content: String,
    pub(super) tries: Tries,
    /// Why the last try failed.
    words: String,
    /// The objects of a revision, by its number.
    pub(super) objects: Option<(u64, Objects)>,
    /// How they were kept when they were looked at last.
    manner: Manner,
    /// The revision whose objects were healthy once.
    settled: Option<u64>,
    compare_due: Instant,
    looks: Backoff,
    pub(super) fetches: Backoff,
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
            manner: Manner::default(),
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
                Order::Keep(wanted, manner) => self.keep(wanted, manner).await,
                Order::Remove(place) => self.remove(place).await,
            };
            // A run of helm is not cut off by a newer order: that would leave its lock behind.
            if !self.rest(Instant::now() + pause).await {
                return;
            }
        }
    }

    /// Waits until that time, a newer order, or until something is to be done about the objects; whether there is
    /// anybody left who gives orders.
    async fn rest(&mut self, until: Instant) -> bool {
        loop {
            let objects = self.memory.objects.as_ref().map(|(_, objects)| objects);
            // What rested until before now was due in this turn, which had something else to do.
            let rested = objects.and_then(Objects::next).filter(|at| *at > Instant::now());
            tokio::select! {
                biased;
                ordered = self.orders.changed() => return ordered.is_ok(),
                // Its sender lives as long as this task.
                _ = self.listener.changed() => {}
                () = sleep_until(rested.map_or(until, |rested| rested.min(until))) => return true,
            }
            self.listener.mark_unchanged();
            let touched = self.touches.take();
            let objects = self.memory.objects.as_mut();
            if objects.is_some_and(|(_, objects)| objects.take(touched)) {
                return true;
            }
        }
    }

    /// One step towards what is wanted; how long to wait before the next.
    async fn keep(&mut self, wanted: &Wanted, manner: &Manner) -> Duration {
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
        if manner.drift == DriftMode::Freeze && step != Step::Nothing {
            return self.freeze(wanted, &live, manner).await;
        }
        match (step, live.latest()) {
            (Step::Nothing, Some(latest)) => {
                let is_first = live.ran_before().is_none();
                self.follow(wanted, latest, is_first, manner).await
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

    /// Nothing is changed, though it is not as wanted. What others do to what runs is told.
    async fn freeze(&mut self, wanted: &Wanted, live: &Live, manner: &Manner) -> Duration {
        let words = "it is frozen: drift.mode is Freeze, and the release is not as its HelmChart says";
        let runs = live.latest().filter(|latest| latest.status == Status::Deployed);
        let found = match runs {
            Some(latest) => self.look(wanted, latest.number, manner).await.ok(),
            None => None,
        };
        let (verdict, drift) = found.map_or_else(|| (unknown(), Vec::new()), |found| (found.verdict, found.drift));
        self.tell_drifting(ObjectState::Suspended, verdict, words.to_owned(), drift)
            .await;
        RELEASE_LOOK
    }

    /// The release is as wanted: how are its objects?
    async fn follow(&mut self, wanted: &Wanted, latest: &LiveRevision, is_first: bool, manner: &Manner) -> Duration {
        let found = match self.look(wanted, latest.number, manner).await {
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
            (ObjectState::Applied, differing(&found.drift))
        };
        self.tell_drifting(state, found.verdict, words, found.drift).await;
        if is_current {
            RELEASE_LOOK.min(self.shared.resync)
        } else {
            self.memory.looks.wait()
        }
    }

    async fn look(&mut self, wanted: &Wanted, number: u64, manner: &Manner) -> Result<Found, String> {
        let (place, client) = (&wanted.place, &self.shared.means.client);
        if self.memory.objects.as_ref().is_none_or(|(known, _)| *known != number) {
            let run = Run::prepare(&self.shared.means, place, HELM_TIMEOUT)
                .await
                .map_err(|error| line(&error))?;
            let text = run.manifest().await.map_err(|error| line(&error))?;
            let managed = manifest::read(&text).map_err(|why| format!("its manifest is not understood: {why}"))?;
            self.memory.objects = Some((number, Objects::new(managed)));
            // They are compared once they are watched.
            self.memory.compare_due = Instant::now() + self.shared.resync;
        }
        let is_due = Instant::now() >= self.memory.compare_due;
        let Some((_, objects)) = &mut self.memory.objects else {
            return Err("its manifest is not known".to_owned());
        };
        objects.take(self.touches.take());
        if is_due || self.memory.manner != *manner {
            objects.doubt();
        }
        let found = objects.look(client, &self.shared.kinds, place, manner).await;
        let mut found = found.map_err(|error| error.line())?;
        self.memory.manner.clone_from(manner);
        if is_due {
            self.memory.compare_due = Instant::now() + self.shared.resync;
        }
        // Nobody listens any more only when this task is about to end.
        if let Some(objects) = found.follow.take() {
            let _ended = self.news.send((self.chart.clone(), News::Follow(objects))).await;
        }
        if !found.corrections.are_none() {
            let news = News::Corrected(found.corrections);
            let _ended = self.news.send((self.chart.clone(), news)).await;
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

    pub(super) async fn unreachable(&mut self, words: &str) -> Duration {
        let state = match *self.orders.borrow() {
            Order::Keep(..) => ObjectState::Waiting,
            Order::Remove(_) => ObjectState::Removing,
        };
        self.tell(state, unknown(), words.to_owned()).await;
        self.memory.requests.wait()
    }

    /// Words, with the failure that led to them.
    pub(super) fn because(&self, words: String) -> String {
        match self.memory.words.as_str() {
            "" => words,
            why => format!("{words}, since {why}"),
        }
    }

    pub(super) async fn tell(&mut self, state: ObjectState, verdict: Verdict, message: String) {
        self.tell_drifting(state, verdict, message, Vec::new()).await;
    }

    async fn tell_drifting(
        &mut self,
        state: ObjectState,
        verdict: Verdict,
        message: String,
        mut drift: Vec<ObjectDrift>,
    ) {
        let more = drift.len().saturating_sub(DRIFT_OBJECTS_MAX);
        drift.truncate(DRIFT_OBJECTS_MAX);
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
            drift,
            more,
        })
        .await;
    }

    pub(super) async fn tell_told(&mut self, told: Told) {
        if self.memory.told.as_ref() == Some(&told) {
            return;
        }
        self.memory.told = Some(told.clone());
        // Nobody listens any more only when this task is about to end.
        let news = News::Told(Box::new(told));
        let _ended = self.news.send((self.chart.clone(), news)).await;
    }
}

fn differing(drift: &[ObjectDrift]) -> String {
    match drift {
        [] => String::new(),
        [one] => format!("{} is not as its manifest says", one.object),
        [first, ..] => format!(
            "{} of its objects are not as its manifest says, as {}",
            drift.len(),
            first.object
        ),
    }
}

async fn release(run: &Run, wanted: &Wanted, rendered: &Rendered, is_install: bool) -> Result<(), RunError> {
    if is_install {
        run.install(wanted, rendered).await
    } else {
        run.upgrade(wanted, rendered).await
    }
}

pub(super) fn unknown() -> Verdict {
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
