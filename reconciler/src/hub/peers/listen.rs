//! Connections of other hubs: they are told who is connected here, and their streams go on to those clusters.

use std::sync::{Arc, PoisonError};

use tokio::io::copy_bidirectional;
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tokio::time::{Instant, MissedTickBehavior, interval, sleep};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tracing::Instrument as _;
use tunnel::{AcceptOptions, IncomingOpen, Open, OpenCode, PublicKey, SecretKey, TargetClass, TlsError, TunnelStream};

use super::endpoints::Endpoints;
use super::words::Words;
use super::{NAMES, now_ms};
use crate::fault::line;
use crate::hub::SharedState;
use crate::hub::asking::Door;
use crate::hub::dispatch::Dispatch;
use crate::limits::{ACCEPT_PAUSE, PEER_HANDSHAKES_MAX, PEER_RESYNC, PEER_TICK};
use crate::wire::{FramingError, Hop, PeerWord, write_message};

/// What answering other hubs needs.
#[derive(Clone)]
pub(in crate::hub) struct Listening {
    options: AcceptOptions,
    state: SharedState,
    dispatch: Arc<Dispatch>,
    /// What is said of this hub before all that it hears.
    begin: PeerWord,
}

impl Listening {
    /// `keys` are those of the other hubs: nobody else is let in.
    pub(in crate::hub) fn new(
        key: Arc<SecretKey>,
        keys: Vec<PublicKey>,
        (state, dispatch): (SharedState, Arc<Dispatch>),
        endpoints: &Endpoints,
    ) -> Result<Self, TlsError> {
        let keys = move |name: &str| name.starts_with(NAMES).then(|| keys.clone());
        Ok(Self {
            options: AcceptOptions::new(key, Arc::new(keys))?,
            state,
            dispatch,
            begin: PeerWord::Begin {
                epoch: now_ms(),
                endpoints: endpoints.own().to_vec(),
            },
        })
    }
}

/// Lets other hubs in until shutdown.
pub(in crate::hub) async fn listen(listener: TcpListener, listening: Listening, shutdown: CancellationToken) {
    let handshakes = Arc::new(Semaphore::new(PEER_HANDSHAKES_MAX));
    let tasks = TaskTracker::new();
    loop {
        let accepted = tokio::select! {
            biased;
            () = shutdown.cancelled() => break,
            accepted = listener.accept() => accepted,
        };
        let socket = match accepted {
            Ok((socket, _)) => socket,
            Err(error) => {
                tracing::warn!(%error, "Could not accept a connection.");
                sleep(ACCEPT_PAUSE).await;
                continue;
            }
        };
        // Who finds all places taken dials again.
        let Ok(permit) = Arc::clone(&handshakes).try_acquire_owned() else {
            continue;
        };
        let (listening, shutdown) = (listening.clone(), shutdown.clone());
        let serve = async move {
            match Box::pin(tunnel::accept(socket, &listening.options)).await {
                Ok(tunnel) => {
                    drop(permit);
                    tracing::info!(peer = tunnel.peer.cluster, "Another hub connected.");
                    Box::pin(listening.serve(tunnel, shutdown)).await;
                }
                Err(error) => tracing::warn!(error = line(&error), "Refused another hub."),
            }
        };
        tasks.spawn(serve.instrument(tracing::info_span!("peer")));
    }
    tasks.close();
    tasks.wait().await;
}

impl Listening {
    async fn serve(&self, tunnel: tunnel::Tunnel, shutdown: CancellationToken) {
        let tunnel::Tunnel {
            mut incoming, session, ..
        } = tunnel;
        let ended = shutdown.child_token();
        let _ended_when_dropped = ended.clone().drop_guard();
        let tasks = TaskTracker::new();
        loop {
            let opened = tokio::select! {
                biased;
                () = shutdown.cancelled() => break,
                _reason = session.closed() => break,
                opened = incoming.next() => opened,
            };
            let Some(opened) = opened else { break };
            let (this, ended) = (self.clone(), ended.clone());
            let serve = async move { ended.run_until_cancelled(Box::pin(this.opened(opened))).await };
            tasks.spawn(serve.in_current_span());
        }
    }

    async fn opened(&self, opened: IncomingOpen) {
        let IncomingOpen { open, responder } = opened;
        match open.class {
            TargetClass::Peer => {
                let Ok(stream) = responder.accept() else { return };
                if let Err(error) = self.tell(stream).await {
                    tracing::debug!(error = line(&error), "Lost the stream to another hub.");
                }
            }
            TargetClass::ApiServer | TargetClass::Interactive | TargetClass::Dial | TargetClass::Look => {
                match self.pass_on(open).await {
                    Ok(mut there) => {
                        let Ok(mut here) = responder.accept() else { return };
                        // How it ended is between the two that talk.
                        let _ended = copy_bidirectional(&mut here, &mut there).await;
                    }
                    Err((code, text)) => responder.refuse(code, &text),
                }
            }
            class @ (TargetClass::Deliver
            | TargetClass::Report
            | TargetClass::Push
            | TargetClass::Keys
            | TargetClass::Unknown(_)) => {
                let text = format!("{class} is not passed on from one hub to another");
                responder.refuse(OpenCode::NotAllowed, &text);
            }
        }
    }

    /// Opens the stream in the cluster's own tunnel, which ends here: nothing is passed on to a third hub.
    async fn pass_on(&self, open: Open) -> Result<TunnelStream, (OpenCode, String)> {
        let hop = Hop::parse(&open.target).map_err(|error| (OpenCode::NotAllowed, error.to_string()))?;
        let away = || {
            (
                OpenCode::Unreachable,
                format!("cluster {} is not connected here", hop.cluster),
            )
        };
        match self.dispatch.own_door(&hop.cluster).ok_or_else(away)? {
            Door::Agent(opener) => {
                let open = Open {
                    target: hop.target.clone(),
                    ..open
                };
                let opened = opener.request(open).await;
                opened.map_err(|error| (error.code, error.text))
            }
            Door::ApiServer(_) | Door::Peer(_) => Err(away()),
        }
    }

    /// Tells who is connected here, all of it now and then.
    async fn tell(&self, stream: TunnelStream) -> Result<(), FramingError> {
        let mut stream = Box::pin(stream);
        let mut words = Words::default();
        let mut ticks = interval(PEER_TICK);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut whole_at: Option<Instant> = None;
        let mut version = None;
        loop {
            ticks.tick().await;
            let whole = whole_at.is_none_or(|at| at.elapsed() >= PEER_RESYNC);
            let news = {
                let state = self.state.read().unwrap_or_else(PoisonError::into_inner);
                if !whole && version == Some(state.version) {
                    continue;
                }
                version = Some(state.version);
                words.news(&state, &self.begin, whole)
            };
            if whole {
                whole_at = Some(Instant::now());
            }
            for word in news {
                write_message(&mut stream, &word).await?;
            }
        }
    }
}
