//! Puts a hub together: looks, events, effects. What is decided is `engine`'s.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use render::Revision;
use tokio::net::TcpListener;
use tokio::sync::{Notify, mpsc, watch};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tracing::Instrument as _;
use tunnel::{AcceptOptions, SecretKey};

use super::clusters::Clusters;
use super::dispatch::Dispatch;
use super::engine::{Effect, Event, Head, RemoteState, State, StateCommit, StateHead, next_time, step};
use super::keeper::{Keeper, chain};
use super::look::look;
use super::objects::Objects;
use super::options::{HubError, HubOptions, OnRewrite};
use super::planner::Planner;
use super::publish::{Author, StateRepository};
use super::registry::Registry;
use super::remote::Remote;
use super::repository::RepositoryError;
use super::serve;
use super::session::Sessions;
use super::source::{Look, RefWatch, Source, SourceError, WatchState, full_branch_name};
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

/// How long the clock is trusted to go on as it went.
const CLOCK_LOOK: Duration = Duration::from_secs(60);

/// The hub's state, as others may read it.
pub type SharedState = Arc<RwLock<State>>;

struct Hub {
    state: SharedState,
    source: Arc<Source>,
    remote: Option<Arc<Remote>>,
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
    look_at_objects: Arc<Notify>,
    key: Arc<SecretKey>,
}

/// Runs a hub until shutdown.
pub async fn run(options: HubOptions, shutdown: CancellationToken) -> Result<(), HubError> {
    run_with(options, SharedState::default(), shutdown).await
}

/// As [`run`], with a place for its state that whoever started it can look at. Only the hub writes there.
pub async fn run_with(options: HubOptions, state: SharedState, shutdown: CancellationToken) -> Result<(), HubError> {
    let Opened {
        source,
        repository,
        remote,
    } = open(&options).await?;
    let keeper = Arc::new(Keeper::new(repository));
    let registry = Arc::new(Registry::default());
    {
        let mut state = state.write().unwrap_or_else(PoisonError::into_inner);
        *state = State::with_new_lineage(options.new_lineage);
        state.branch = options.branch.clone();
        state.remote = remote.as_ref().map(|remote| RemoteState {
            url: remote.url().to_string(),
            holds_state: remote.holds_state(),
            ..RemoteState::default()
        });
        state.rendered_ref = options.refs.rendered.clone();
    }
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
        remote,
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
        look_at_objects: Arc::default(),
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

/// What the hub reads and writes.
struct Opened {
    source: Arc<Source>,
    repository: StateRepository,
    remote: Option<Arc<Remote>>,
}

async fn open(options: &HubOptions) -> Result<Opened, HubError> {
    let remote = match &options.remote {
        Some(remote) => {
            let branch = full_branch_name(&options.branch).map_err(HubError::Source)?;
            Some(Remote::open(remote.clone(), branch).await.map_err(HubError::Copy)?)
        }
        None => None,
    };
    let (path, branch) = (options.source.clone(), options.branch.clone());
    let (state, refs) = (
        options.state.clone().unwrap_or_else(|| path.clone()),
        options.refs.clone(),
    );
    let own = options.state.is_some();
    let (source, repository) = blocking(move || {
        let source = Arc::new(Source::open(path, &branch).map_err(HubError::Source)?);
        if own && !state.exists() {
            StateRepository::create(&state).map_err(HubError::State)?;
        }
        let repository = StateRepository::open(state, refs, Author::default(), &source).map_err(HubError::State)?;
        Ok((source, repository))
    })
    .await?;
    let remote = remote.map(|remote| match own {
        true => remote,
        false => remote.with_state(&repository),
    });
    Ok(Opened {
        source,
        repository,
        remote: remote.map(Arc::new),
    })
}

/// The one boundary to work that blocks: gix, files, digests.
pub(super) async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
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
        let mut looks = self.watch_source(options, &shutdown);
        let state_watch = options.state.as_ref().map(|path| RefWatch::new(path, options.poll));
        let (state_watch, mut state_looks) = state_watch.unzip();
        if let Some(watch) = state_watch {
            self.watch_over(watch.run(shutdown.clone()).instrument(tracing::info_span!("watch")));
        }
        self.start_looking(&shutdown);
        self.keep_objects(options, &shutdown);
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
                    self.remote.iter().for_each(|remote| remote.look_now());
                    self.look_at_source.notify_one();
                    self.look_at_state.notify_one();
                }
                () = &mut grace, if in_grace => {
                    in_grace = false;
                    self.hear(Event::GraceOver);
                }
                () = until(due) => self.hear(Event::TimeCame),
            }
        }
        self.clusters.stop().await;
        self.tasks.close();
        Ok(())
    }

    /// Looks at source whenever its refs may have moved.
    fn watch_source(&self, options: &HubOptions, shutdown: &CancellationToken) -> watch::Receiver<Look> {
        let Some(remote) = &self.remote else {
            let (watch, looks) = RefWatch::new(&options.source, options.poll);
            self.watch_over(watch.run(shutdown.clone()).instrument(tracing::info_span!("watch")));
            return looks;
        };
        let (sender, looks) = watch::channel(Look {
            count: 0,
            state: WatchState::Gone,
        });
        let follow = Arc::clone(remote).follow(
            Arc::clone(&self.source),
            Arc::clone(&self.state),
            self.events.clone(),
            sender,
            options.poll,
            shutdown.clone(),
        );
        self.watch_over(follow.instrument(tracing::info_span!("remote")));
        looks
    }

    /// Packs what commits left, once in a while. A copy of a remote is packed between two fetches.
    fn housekeep_after(&self, released: &StateCommit) {
        if self.remote.as_ref().is_some_and(|remote| remote.holds_state()) {
            return;
        }
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
                let (planner, remote) = (Arc::clone(&self.planner), self.remote.clone());
                self.answer(move || {
                    let started = Instant::now();
                    let planned = planner.plan(&revision, base, previous, accepted.as_ref(), seconds());
                    tracing::debug!(%revision, elapsed_ms = elapsed_ms(started), "Planned revision.");
                    match planned {
                        Ok(planned) => Event::Planned(Box::new(planned)),
                        Err(error) => {
                            suspect(remote.as_deref(), is_damage(&error));
                            Event::PlanFailed {
                                revision,
                                message: chain(&error),
                            }
                        }
                    }
                });
            }
            Effect::Write(write) => {
                let keeper = Arc::clone(&self.keeper);
                let write = move || keeper.write(write, seconds());
                match self.remote.as_ref().filter(|remote| remote.holds_state()) {
                    None => self.answer(write),
                    Some(remote) => {
                        let (remote, source, events) =
                            (Arc::clone(remote), Arc::clone(&self.source), self.events.clone());
                        self.watch_over(async move {
                            let event = remote.write(&source, &events, write).await;
                            let _sent = events.send(event).await;
                        });
                    }
                }
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
        let remote = self.remote.clone();
        self.looker(&self.look_at_source, shutdown, move || {
            if remote.as_ref().is_some_and(|remote| !remote.is_reached()) {
                return None;
            }
            let judged_by = state
                .read()
                .unwrap_or_else(PoisonError::into_inner)
                .accepted_or_published();
            let head = look(&source, judged_by.as_ref(), on_rewrite);
            let is_unreadable = matches!(head, Head::Unreadable { .. });
            suspect(remote.as_deref(), is_unreadable);
            if let (Some(remote), Some(accepted), Head::At { revision, .. }) = (&remote, &judged_by, &head)
                && !source.is_relation_told(accepted, revision).unwrap_or(true)
            {
                // More history is fetched first, now that it is known what for.
                remote.look_now();
                return None;
            }
            Some(Event::SourceSeen { head, judged_by })
        });
        let (keeper, state) = (Arc::clone(&self.keeper), Arc::clone(&self.state));
        let remote = self.remote.clone().filter(|remote| remote.holds_state());
        self.looker(&self.look_at_state, shutdown, move || {
            if remote.as_ref().is_some_and(|remote| !remote.is_reached()) {
                return None;
            }
            let (rendered, proposed, writes) = {
                let state = state.read().unwrap_or_else(PoisonError::into_inner);
                (
                    state.rendered.as_ref().map(|rendered| rendered.commit.clone()),
                    state.proposed.as_ref().map(|proposed| proposed.branch.clone()),
                    state.writes,
                )
            };
            let seen = keeper.look(rendered.as_ref(), proposed.as_deref(), writes);
            let heads = [&seen.rendered, &seen.released];
            let is_unreadable = heads.iter().any(|head| matches!(head, StateHead::Unreadable(_)));
            suspect(remote.as_deref(), is_unreadable);
            Some(Event::StateSeen(seen))
        });
    }

    fn looker(
        &self,
        asked: &Arc<Notify>,
        shutdown: &CancellationToken,
        look: impl Fn() -> Option<Event> + Clone + Send + 'static,
    ) {
        let (asked, shutdown, events) = (Arc::clone(asked), shutdown.clone(), self.events.clone());
        let looking = async move {
            loop {
                tokio::select! {
                    biased;
                    () = shutdown.cancelled() => return,
                    () = asked.notified() => {}
                }
                if let Some(event) = blocking(look.clone()).await
                    && events.send(event).await.is_err()
                {
                    return;
                }
            }
        };
        self.watch_over(looking.instrument(tracing::info_span!("look")));
    }
}

/// Has a remote's copy fetched anew where what was read in it cannot be so.
fn suspect(remote: Option<&Remote>, is_damaged: bool) {
    if let Some(remote) = remote.filter(|_| is_damaged) {
        remote.suspect();
    }
}

/// Whether a source was there and could not be read; of one that is only too large, a new copy would say the same.
fn is_damage(error: &SourceError) -> bool {
    matches!(error, SourceError::Unreadable(cause) if !matches!(cause, RepositoryError::TooMuch { .. }))
}

async fn next_look(
    looks: Option<&mut tokio::sync::watch::Receiver<super::source::Look>>,
) -> Result<(), tokio::sync::watch::error::RecvError> {
    match looks {
        Some(looks) => looks.changed().await,
        None => std::future::pending().await,
    }
}

/// Waits for a time of the day; for ever where there is none. The clock is asked again once a minute, since it
/// may be set meanwhile.
async fn until(due: Option<i64>) {
    let Some(due) = due else {
        return std::future::pending().await;
    };
    while seconds() < due {
        let left = u64::try_from(due - seconds()).unwrap_or_default();
        tokio::time::sleep(Duration::from_secs(left).min(CLOCK_LOOK)).await;
    }
}

fn seconds() -> i64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(now.as_secs()).unwrap_or(i64::MAX)
}
