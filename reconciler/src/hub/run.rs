//! Puts a hub together: looks, events, effects. What is decided is `engine`'s.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use render::Revision;
use tokio::net::TcpListener;
use tokio::sync::{Notify, mpsc};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tracing::Instrument as _;
use tunnel::{AcceptOptions, SecretKey};

use super::clusters::Clusters;
use super::dispatch::Dispatch;
use super::engine::{Effect, Event, State, StateCommit, step};
use super::keeper::{Keeper, chain};
use super::look::look;
use super::options::{HubError, HubOptions, OnRewrite};
use super::planner::Planner;
use super::publish::{Author, StateRepository};
use super::registry::Registry;
use super::serve;
use super::session::Sessions;
use super::source::{RefWatch, Source};
use super::{gateway, git};
use crate::limits::RELEASES_PER_HOUSEKEEPING;
use crate::telemetry::elapsed_ms;
use crate::wire::Envelope;

/// Events that wait for the engine. A step takes microseconds, so a full queue is a storm of reports, and
/// pushes back on whoever sends them.
const EVENTS_MAX: usize = 1_024;

/// How long a refused write rests before its refs are looked at again.
const WRITE_RETRY: Duration = Duration::from_millis(500);

/// Commits whose times are remembered: one a change, about 100 bytes each.
const COMMIT_TIMES_MAX: usize = 65_536;

/// How long agents have to be told that the hub ends.
const GOODBYE_TIMEOUT: Duration = Duration::from_secs(2);

/// The hub's state, as others may read it.
pub type SharedState = Arc<RwLock<State>>;

struct Hub {
    state: SharedState,
    source: Arc<Source>,
    keeper: Arc<Keeper>,
    planner: Arc<Planner>,
    registry: Arc<Registry>,
    clusters: Clusters,
    dispatch: Arc<Dispatch>,
    events: mpsc::Sender<Event>,
    tasks: TaskTracker,
    on_rewrite: OnRewrite,
    panicked: CancellationToken,
    look_at_source: Arc<Notify>,
    look_at_state: Arc<Notify>,
    look_now: Arc<Notify>,
    key: Arc<SecretKey>,
}

/// Runs a hub until shutdown.
pub async fn run(options: HubOptions, shutdown: CancellationToken) -> Result<(), HubError> {
    let (source, repository) = open(&options).await?;
    let keeper = Arc::new(Keeper::new(repository));
    let registry = Arc::new(Registry::default());
    let mut state = State::with_new_lineage(options.new_lineage);
    state.branch = options.branch.clone();
    let state: SharedState = Arc::new(RwLock::new(state));
    let (events, heard) = mpsc::channel(EVENTS_MAX);
    let dispatch = Arc::new(Dispatch::default());
    let sessions = Sessions {
        events: events.clone(),
        dispatch: Arc::clone(&dispatch),
        keeper: Arc::clone(&keeper),
        hub_key: options.key.public(),
        registry: Arc::clone(&registry),
    };
    let accept = AcceptOptions::new(Arc::clone(&options.key), Arc::clone(&registry) as _).map_err(HubError::Tls)?;
    let address = options.listen;
    let listener = TcpListener::bind(address)
        .await
        .map_err(|source| HubError::Listen { address, source })?;
    if let Ok(address) = listener.local_addr() {
        tracing::info!(%address, key = %options.key.public(), "Listening for agents.");
    }
    let api = serve::bind(&options.api).await.map_err(HubError::Serve)?;
    let times = commit_times(Arc::clone(&source), Arc::clone(&keeper));
    let hub = Hub {
        state: Arc::clone(&state),
        planner: Arc::new(Planner::new(Arc::clone(&source))),
        clusters: Clusters::new(options.kubeconfig.clone(), sessions.clone(), shutdown.child_token()),
        source,
        keeper,
        registry: Arc::clone(&registry),
        dispatch,
        events,
        tasks: TaskTracker::new(),
        on_rewrite: options.on_rewrite,
        panicked: CancellationToken::new(),
        look_at_source: Arc::default(),
        look_at_state: Arc::default(),
        look_now: Arc::default(),
        key: Arc::clone(&options.key),
    };
    let stop = shutdown.child_token();
    let _stopped_when_dropped = stop.clone().drop_guard();
    let gateway = {
        let (registry, stop) = (Arc::clone(&registry), stop.clone());
        async move {
            let known = stop.run_until_cancelled(registry.known()).await;
            if known.is_some() {
                gateway::run(listener, accept, sessions, stop).await;
            }
        }
    };
    let api = serve::run(api, state, times, Arc::clone(&hub.look_now), stop.clone());
    let ended = |part| Err(HubError::Ended { part });
    let mut gateway = Box::pin(gateway);
    tokio::select! {
        biased;
        ended = Box::pin(hub.run(heard, &options, stop.clone())) => {
            stop.cancel();
            // Agents are told that the hub ends, and go on to the next one without a word of alarm.
            let _told = tokio::time::timeout(GOODBYE_TIMEOUT, &mut gateway).await;
            ended
        }
        served = Box::pin(api.instrument(tracing::info_span!("api"))) => match served {
            Err(error) => Err(HubError::Serve(error)),
            Ok(()) if shutdown.is_cancelled() => Ok(()),
            Ok(()) => ended("the API"),
        },
        () = &mut gateway => if shutdown.is_cancelled() { Ok(()) } else { ended("the listener for agents") },
    }
}

/// When commits were made, each looked up once: a commit never changes.
fn commit_times(source: Arc<Source>, keeper: Arc<Keeper>) -> serve::CommitTimes {
    let known: Mutex<BTreeMap<Revision, Option<i64>>> = Mutex::default();
    Box::new(move |revision| {
        let mut known = known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(seconds) = known.get(revision) {
            return *seconds;
        }
        if known.len() >= COMMIT_TIMES_MAX {
            known.clear();
        }
        let own = || keeper.commit_seconds(revision);
        let seconds = source.commit_seconds(revision).or_else(own);
        known.insert(revision.clone(), seconds);
        seconds
    })
}

async fn open(options: &HubOptions) -> Result<(Arc<Source>, StateRepository), HubError> {
    let (path, branch) = (options.source.clone(), options.branch.clone());
    let (state, refs) = (
        options.state.clone().unwrap_or_else(|| path.clone()),
        options.refs.clone(),
    );
    let own = options.state.is_some();
    blocking(move || {
        let source = Arc::new(Source::open(path, &branch).map_err(HubError::Source)?);
        if own && !state.exists() {
            StateRepository::create(&state).map_err(HubError::State)?;
        }
        let repository = StateRepository::open(state, refs, Author::default(), &source).map_err(HubError::State)?;
        Ok((source, repository))
    })
    .await
}

/// The one boundary to work that blocks: gix, files, digests.
async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => done,
        Err(join) => std::panic::resume_unwind(join.into_panic()),
    }
}

impl Hub {
    async fn run(
        &self,
        mut heard: mpsc::Receiver<Event>,
        options: &HubOptions,
        shutdown: CancellationToken,
    ) -> Result<(), HubError> {
        let (watch, mut looks) = RefWatch::new(&options.source, options.poll);
        let watching = watch.run(shutdown.clone()).instrument(tracing::info_span!("watch"));
        self.watch_over(watching);
        let state_watch = options.state.as_ref().map(|path| RefWatch::new(path, options.poll));
        let (state_watch, mut state_looks) = state_watch.unzip();
        if let Some(watch) = state_watch {
            self.watch_over(watch.run(shutdown.clone()).instrument(tracing::info_span!("watch")));
        }
        self.start_looking(&shutdown);
        let grace = tokio::time::sleep(options.recovery_grace);
        let mut grace = std::pin::pin!(grace);
        let mut in_grace = true;
        self.look_at_state.notify_one();
        loop {
            tokio::select! {
                biased;
                () = shutdown.cancelled() => break,
                () = self.panicked.cancelled() => return Err(HubError::Ended { part: "a task of the hub" }),
                event = heard.recv() => match event {
                    Some(event) => self.hear(event),
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
                () = self.look_now.notified() => {
                    self.look_at_source.notify_one();
                    self.look_at_state.notify_one();
                }
                () = &mut grace, if in_grace => {
                    in_grace = false;
                    self.hear(Event::GraceOver);
                }
            }
        }
        self.clusters.stop().await;
        self.tasks.close();
        Ok(())
    }

    /// Packs what commits left, once in a while.
    fn housekeep_after(&self, released: &StateCommit) {
        let sequence = released.published.record.as_ref().and_then(|record| record.sequence);
        if sequence.is_none_or(|sequence| sequence % RELEASES_PER_HOUSEKEEPING != 0) {
            return;
        }
        let path = self.keeper.path().to_owned();
        let pack = async move {
            if let Err(error) = git::housekeep(&path).await {
                tracing::warn!(error = chain(&error), "Could not pack the state repository.");
            }
        };
        self.tasks.spawn(pack.instrument(tracing::info_span!("housekeep")));
    }

    /// Runs a task whose panic ends the hub: the engine would wait for its answer for ever.
    fn watch_over(&self, work: impl Future<Output = ()> + Send + 'static) {
        let (running, panicked) = (tokio::spawn(work), self.panicked.clone());
        self.tasks.spawn(async move {
            if running.await.is_err_and(|ended| ended.is_panic()) {
                panicked.cancel();
            }
        });
    }

    fn hear(&self, event: Event) {
        if let Event::ReleasedWritten(commit) = &event {
            self.housekeep_after(commit);
        }
        let effects = {
            let mut state = self.state.write().unwrap_or_else(PoisonError::into_inner);
            step(&mut state, event, seconds())
        };
        for effect in effects {
            self.perform(effect);
        }
    }

    fn perform(&self, effect: Effect) {
        match effect {
            Effect::LookAtSource => self.look_at_source.notify_one(),
            Effect::LookAtState => self.look_at_state.notify_one(),
            Effect::Plan {
                revision,
                base,
                previous,
                accepted,
            } => {
                let planner = Arc::clone(&self.planner);
                self.answer(move || {
                    let started = Instant::now();
                    let planned = planner.plan(&revision, base, previous, accepted.as_ref(), seconds());
                    tracing::debug!(%revision, elapsed_ms = elapsed_ms(started), "Planned revision.");
                    match planned {
                        Ok(planned) => Event::Planned(Box::new(planned)),
                        Err(error) => Event::PlanFailed {
                            revision,
                            message: chain(&error),
                        },
                    }
                });
            }
            Effect::Write(write) => {
                let keeper = Arc::clone(&self.keeper);
                self.answer(move || keeper.write(write, seconds()));
            }
            Effect::Dispatch(cluster) => {
                let state = self.state.read().unwrap_or_else(PoisonError::into_inner);
                let sign = |bytes: &[u8]| self.key.sign(bytes).to_vec();
                let envelope = state.envelope(&cluster).map(|envelope| Envelope {
                    lineage_grant: state.lineage_grant(&cluster, sign),
                    ..envelope
                });
                self.dispatch.set(&cluster, envelope);
            }
            Effect::Disconnect(cluster) => self.dispatch.forget(&cluster),
            Effect::Register => {
                let state = self.state.read().unwrap_or_else(PoisonError::into_inner);
                if let Some(fleet) = &state.fleet {
                    self.registry.replace(fleet);
                    self.clusters.replace(fleet);
                }
            }
        }
    }

    /// Does blocking work whose outcome is an event.
    fn answer(&self, work: impl FnOnce() -> Event + Send + 'static) {
        let events = self.events.clone();
        self.watch_over(async move {
            let event = blocking(work).await;
            if matches!(event, Event::WriteRefused) {
                // Whoever moved the ref, or filled the disk, is given a moment.
                tokio::time::sleep(WRITE_RETRY).await;
            }
            // The engine is gone only when the hub is ending.
            let _sent = events.send(event).await;
        });
    }

    /// Looks at source and state whenever asked, one look at a time, so that an older look never comes
    /// after a newer one.
    fn start_looking(&self, shutdown: &CancellationToken) {
        let (source, state, on_rewrite) = (Arc::clone(&self.source), Arc::clone(&self.state), self.on_rewrite);
        self.looker(&self.look_at_source, shutdown, move || {
            let judged_by = state
                .read()
                .unwrap_or_else(PoisonError::into_inner)
                .accepted_or_published();
            Event::SourceSeen {
                head: look(&source, judged_by.as_ref(), on_rewrite),
                judged_by,
            }
        });
        let (keeper, state) = (Arc::clone(&self.keeper), Arc::clone(&self.state));
        self.looker(&self.look_at_state, shutdown, move || {
            let (rendered, writes) = {
                let state = state.read().unwrap_or_else(PoisonError::into_inner);
                (
                    state.rendered.as_ref().map(|rendered| rendered.commit.clone()),
                    state.writes,
                )
            };
            Event::StateSeen(keeper.look(rendered.as_ref(), writes))
        });
    }

    fn looker(
        &self,
        asked: &Arc<Notify>,
        shutdown: &CancellationToken,
        look: impl Fn() -> Event + Clone + Send + 'static,
    ) {
        let (asked, shutdown, events) = (Arc::clone(asked), shutdown.clone(), self.events.clone());
        let looking = async move {
            loop {
                tokio::select! {
                    biased;
                    () = shutdown.cancelled() => return,
                    () = asked.notified() => {}
                }
                if events.send(blocking(look.clone()).await).await.is_err() {
                    return;
                }
            }
        };
        self.watch_over(looking.instrument(tracing::info_span!("look")));
    }
}

async fn next_look(
    looks: Option<&mut tokio::sync::watch::Receiver<super::source::Look>>,
) -> Result<(), tokio::sync::watch::error::RecvError> {
    match looks {
        Some(looks) => looks.changed().await,
        None => std::future::pending().await,
    }
}

fn seconds() -> i64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(now.as_secs()).unwrap_or(i64::MAX)
}
