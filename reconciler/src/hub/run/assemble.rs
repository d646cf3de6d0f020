//! Puts a hub together, and ends its parts together.

use std::sync::{Arc, Mutex, PoisonError};

use futures_util::FutureExt as _;
use futures_util::future::join3;
use tokio::sync::{mpsc, watch};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tokio_util::task::{AbortOnDropHandle, TaskTracker};
use tracing::Instrument as _;
use tunnel::AcceptOptions;

use super::SharedState;
use super::commit_times::commit_times;
use super::key_times::key_times;
use super::listeners::{beside, listen};
use super::turn::Hub;
use crate::apply::{Backoff, HelmOptions};
use crate::audit::AuditLog;
use crate::hub::asking::Asking;
use crate::hub::blocking::blocking;
use crate::hub::clusters::{Appliers, Clusters};
use crate::hub::deny::Denied;
use crate::hub::dispatch::Dispatch;
use crate::hub::engine::{RemoteState, State};
use crate::hub::gateway::Doors;
use crate::hub::keeper::Keeper;
use crate::hub::key_files::Follower;
use crate::hub::keys::KeyList;
use crate::hub::mode_order::ModeOrder;
use crate::hub::options::{HubError, HubOptions};
use crate::hub::peers::{Endpoints, FirstWords, PeerKeys};
use crate::hub::planner::Planner;
use crate::hub::predict::Predictor;
use crate::hub::predictors::Predictors;
use crate::hub::publish::{Author, StateRepository};
use crate::hub::push::Pushing;
use crate::hub::registry::Registry;
use crate::hub::remote::Remote;
use crate::hub::serve::{GitTimes, Routes};
use crate::hub::session::Sessions;
use crate::hub::source::{Source, full_branch_name};
use crate::hub::tally::Tally;
use crate::hub::tokens::TokenFile;
use crate::hub::{door, gateway, serve};
use crate::limits::{EVENTS_MAX, GOODBYE_TIMEOUT, PEER_FIRST_WORD_TIMEOUT, WRITE_RETRY, WRITE_RETRY_MAX};

/// What the hub reads and writes.
struct Opened {
    source: Arc<Source>,
    repository: StateRepository,
    remote: Option<Arc<Remote>>,
}

/// Runs a hub until shutdown.
pub async fn run(options: HubOptions, shutdown: CancellationToken) -> Result<(), HubError> {
    run_with(options, SharedState::default(), shutdown).await
}

/// As [`run`], with a place for its state that whoever started it can look at. Only the hub writes there.
pub async fn run_with(options: HubOptions, state: SharedState, shutdown: CancellationToken) -> Result<(), HubError> {
    let opened = open(&options).await?;
    begin(&state, &options, opened.remote.as_deref());
    let (events, heard) = mpsc::channel(EVENTS_MAX);
    let appliers = Appliers {
        helm: options.helm.clone(),
        earlier_managers: options.earlier_managers.clone(),
    };
    let keys: KeyList = std::iter::once(&options.key)
        .chain(&options.other_keys)
        .cloned()
        .collect();
    let keys = watch::Sender::new(keys);
    let peer_keys = Arc::new(PeerKeys::of(&options.peers.peers));
    let keeper = Keeper::new(opened.repository).with_keys(keys.subscribe(), Arc::clone(&peer_keys));
    let registry = Arc::new(Registry::default());
    let sessions = Sessions {
        events,
        dispatch: Arc::new(Dispatch::new(Arc::clone(&registry))),
        keeper: Arc::new(keeper),
        keys: keys.subscribe(),
        registry,
        pushing: Arc::new(Pushing::new(appliers.clone())),
        arrivals: Arc::default(),
        connections: Arc::default(),
        modes: Arc::new(ModeOrder::of(
            Arc::clone(&opened.source),
            Arc::clone(&state),
            opened.remote.clone(),
        )),
    };
    deny(&options, &sessions.registry).await?;
    sessions.registry.keep_tokens(TokenFile::new(options.tokens.clone()));
    sessions
        .registry
        .propose(is_proposing(&options, opened.remote.as_deref()));
    let endpoints = Arc::new(Endpoints::new(options.peers.advertise.clone()));
    let (doors, mut accept) = listen(&options, &sessions.registry).await?;
    accept.endpoints = endpoints.all();
    let peers = options.peers.peers.iter().map(|peer| peer.url.clone());
    let first_words = Arc::new(FirstWords::of(peers));
    // One for all that write to it: two that write the same file would tear each other's lines.
    let audit = options.door.as_ref().and_then(|door| door.audit.as_ref());
    let audit = AuditLog::open(audit).map_err(HubError::Audit)?;
    let tally = Arc::new(Tally::of(audit.lost()));
    let beside = beside(
        &options,
        (&state, &audit),
        &sessions,
        (endpoints, Arc::clone(&first_words), peer_keys),
    )
    .await?;
    let api = serve::bind(&options.api).await.map_err(HubError::Serve)?;
    let stop = shutdown.child_token();
    let _stopped_when_dropped = stop.clone().drop_guard();
    let door = match &options.door {
        None => None,
        Some(door) => Some(
            door::bind(door, audit, Arc::clone(&tally), &stop)
                .await
                .map_err(HubError::Door)?,
        ),
    };
    let times = GitTimes {
        commits: commit_times(Arc::clone(&opened.source), Arc::clone(&sessions.keeper)),
        keys: key_times(Arc::clone(&opened.source)),
    };
    let predictor = Arc::new(Predictor::new(HelmOptions {
        program: options.helm.clone(),
        folder: None,
    }));
    let predictors = Arc::new(Predictors::new());
    let others = beside.dialling.others.clone();
    let asking = Asking::new(
        Arc::clone(&sessions.dispatch),
        Arc::clone(&predictor),
        Arc::clone(&predictors),
        (Arc::clone(&sessions.connections), others),
    );
    let hub = Hub {
        state: Arc::clone(&state),
        predictor,
        predictors,
        planner: Arc::new(Planner::new(
            Arc::clone(&opened.source),
            Some(Arc::clone(&sessions.keeper)),
        )),
        clusters: Clusters::new(
            options.kubeconfig.clone(),
            appliers,
            sessions.clone(),
            shutdown.child_token(),
        ),
        source: opened.source,
        remote: opened.remote,
        keeper: Arc::clone(&sessions.keeper),
        registry: Arc::clone(&sessions.registry),
        dispatch: Arc::clone(&sessions.dispatch),
        events: sessions.events.clone(),
        tasks: TaskTracker::new(),
        on_rewrite: options.on_rewrite,
        panicked: CancellationToken::new(),
        look_at_source: Arc::default(),
        look_at_state: Arc::default(),
        look_now: Arc::default(),
        look_at_objects: Arc::default(),
        keys: sessions.keys.clone(),
        refusals: Arc::new(Mutex::new(Backoff::new(WRITE_RETRY, WRITE_RETRY_MAX))),
    };
    let routes = Routes::new(
        Arc::clone(&state),
        times,
        (Arc::clone(&hub.look_now), asking, tally),
        stop.clone(),
    );
    let routes = routes.after(Arc::clone(&first_words));
    let dispatch = Arc::clone(&hub.dispatch);
    let people = {
        let (judged, stop) = (routes.judged(), stop.clone());
        async move {
            match door {
                None => stop.cancelled().await,
                Some(door) => door::run(door, state, dispatch, judged, stop).await,
            }
        }
    };
    let accept = watch::Sender::new(Arc::new(accept));
    let accepts = accept.subscribe();
    let of_peers = beside.accept();
    let (dialled, listened) = beside.split(&stop);
    // Kept to the end: what people asked by way of another hub goes on as long as they may stay.
    let dialled = dialled.instrument(tracing::info_span!("peers"));
    let mut dialled = AbortOnDropHandle::new(tokio::spawn(dialled));
    // Tasks of their own, so that each goes on while the others end.
    let mut people = AbortOnDropHandle::new(tokio::spawn(people));
    let listened = listened.instrument(tracing::info_span!("peers"));
    let mut listened = AbortOnDropHandle::new(tokio::spawn(listened));
    let follower = Follower {
        files: options.key_files.clone(),
        keys,
        accept: std::iter::once(accept).chain(of_peers).collect(),
        connections: Arc::clone(&sessions.connections),
    };
    let gateway = welcome((doors, accepts), (sessions, follower), first_words, stop.clone());
    let mut gateway = AbortOnDropHandle::new(tokio::spawn(gateway));
    // Answers until the hub is gone: whoever asks meanwhile is told that it is ending.
    let api = serve::run(api, &routes, CancellationToken::new());
    let mut api = Box::pin(api.instrument(tracing::info_span!("api"))).fuse();
    let ended = |part| Err(HubError::Ended { part });
    let outcome = tokio::select! {
        biased;
        outcome = Box::pin(hub.run(heard, &options, stop.clone())) => outcome,
        served = &mut api => match served {
            Err(error) => Err(HubError::Serve(error)),
            Ok(()) => ended("the API"),
        },
        () = early(&mut people, &stop) => ended("the door for people"),
        () = early(&mut listened, &stop) => ended("the listener for other hubs"),
        () = early(&mut dialled, &stop) => ended("the connections to other hubs"),
        () = early(&mut gateway, &stop) => ended("the listener for agents"),
    };
    stop.cancel();
    // Agents are told that the hub ends, and when to come back; what is under way for people and for other hubs may be
    // done with.
    let goodbye = async {
        let all = join3(over(&mut gateway), over(&mut people), over(&mut listened));
        let _told = timeout(GOODBYE_TIMEOUT, all).await;
    };
    tokio::select! {
        biased;
        () = goodbye => {}
        () = async { let _over = api.await; std::future::pending().await } => {}
    }
    outcome
}

/// Waits until a part ends that was not told to.
async fn early(part: &mut AbortOnDropHandle<()>, stop: &CancellationToken) {
    let _ended = part.await;
    if stop.is_cancelled() {
        std::future::pending::<()>().await;
    }
}

/// Waits until a part has ended.
async fn over(part: &mut AbortOnDropHandle<()>) {
    if !part.is_finished() {
        let _ended = part.await;
    }
}

/// The state before the first event: what the command line says.
fn begin(state: &SharedState, options: &HubOptions, remote: Option<&Remote>) {
    let mut state = state.write().unwrap_or_else(PoisonError::into_inner);
    let peers = options.peers.peers.iter().map(|peer| peer.url.clone());
    *state = State::with_new_lineage(options.new_lineage).with_peers(peers);
    state.branch.clone_from(&options.branch);
    state.joins.is_proposing = is_proposing(options, remote);
    state.rendered_ref.clone_from(&options.refs.rendered);
    state.remote = remote.map(|remote| RemoteState {
        url: remote.url().to_string(),
        holds_state: remote.holds_state(),
        ..RemoteState::default()
    });
}

/// Whether the hub writes to the repository that people push to.
fn is_proposing(options: &HubOptions, remote: Option<&Remote>) -> bool {
    options.state.is_none() && remote.is_none_or(Remote::holds_state)
}

/// Takes over the deny list before anybody is let in.
async fn deny(options: &HubOptions, registry: &Registry) -> Result<(), HubError> {
    if let Some(path) = options.deny_file.clone() {
        let denied = blocking(move || Denied::read(path)).await;
        registry.deny(denied.map_err(HubError::Deny)?);
    }
    Ok(())
}

/// Lets agents in once it is known which ones there are, and where other hubs are, which agents are told as they come.
async fn welcome(
    (doors, accepts): (Doors, watch::Receiver<Arc<AcceptOptions>>),
    (sessions, follower): (Sessions, Follower),
    first_words: Arc<FirstWords>,
    stop: CancellationToken,
) {
    let known = async {
        sessions.registry.known().await;
        // A hub that hangs is told of at the agents' next dial.
        let _told = timeout(PEER_FIRST_WORD_TIMEOUT, first_words.over()).await;
    };
    let known = stop.run_until_cancelled(known).await;
    if known.is_some() {
        tokio::select! {
            () = gateway::run(doors, accepts, sessions, stop) => {}
            // As long as somebody may be let in.
            () = follower.run() => {}
        }
    }
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

#[cfg(test)]
mod tests;
