//! Connections of other hubs: they are told who is connected here, and their streams go on to those clusters.

use std::net::SocketAddr;
use std::sync::{Arc, PoisonError};

use tokio::io::{AsyncWriteExt as _, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::time::{Instant, MissedTickBehavior, interval, timeout};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tracing::Instrument as _;
use tunnel::{
    AcceptOptions, GoAway, GoAwayReason, IncomingOpen, Open, OpenCode, PublicKey, Responder, SecretKey, TargetClass,
    TlsError, TunnelStream,
};

use super::endpoints::Endpoints;
use super::judge::Goal;
use super::words::Words;
use super::{NAMES, PeerKeys, now_ms};
use crate::audit::AuditLog;
use crate::fault::line;
use crate::hub::SharedState;
use crate::hub::connections::Connections;
use crate::hub::dispatch::Dispatch;
use crate::hub::doorstep::{self, Doorstep, Known, Place};
use crate::hub::keys::{self, HubKeys};
use crate::hub::registry::Registry;
use crate::hub::session::drained;
use crate::limits::{
    DRAIN_TIMEOUT, GATE_END_TIMEOUT, PEER_HANDSHAKES_MAX, PEER_RESYNC, PEER_TICK, SESSION_CLOSE_TIMEOUT,
};
use crate::wire::{FramingError, Hop, PeerWord, TUNNEL_TARGET, TunnelWord, WITH_ASKS, write_message};

/// What this hub is asked by: what it knows, who is connected to it, and what it carries.
#[derive(Clone)]
pub(in crate::hub) struct Here {
    pub(in crate::hub) state: SharedState,
    pub(in crate::hub) dispatch: Arc<Dispatch>,
    pub(in crate::hub) connections: Arc<Connections>,
    pub(in crate::hub) registry: Arc<Registry>,
    /// Whether it carries what reaches into containers.
    pub(in crate::hub) interactive: bool,
}

/// What answering other hubs needs.
#[derive(Clone)]
pub(in crate::hub) struct Listening {
    /// With the key that is shown.
    accept: watch::Sender<Arc<AcceptOptions>>,
    /// This hub's own.
    keys: HubKeys,
    pub(super) here: Here,
    pub(super) audit: AuditLog,
    /// What is said of this hub before all that it hears.
    begin: PeerWord,
}

impl Listening {
    /// `peer_keys` are those of the other hubs: nobody else is let in, and none that the deny list has.
    pub(in crate::hub) fn new(
        (key, keys, peer_keys): (Arc<SecretKey>, HubKeys, Arc<PeerKeys>),
        here: Here,
        audit: AuditLog,
        endpoints: &Endpoints,
    ) -> Result<Self, TlsError> {
        let registry = Arc::clone(&here.registry);
        let counting = move |name: &str| {
            let counting = || peer_keys.all().into_iter().filter(|key| !registry.has_denied(key));
            name.starts_with(NAMES).then(|| counting().collect())
        };
        let accept = AcceptOptions::new(key, Arc::new(counting))?;
        Ok(Self {
            accept: watch::Sender::new(Arc::new(accept)),
            keys,
            here,
            audit,
            begin: PeerWord::Begin {
                epoch: now_ms(),
                endpoints: endpoints.own().to_vec(),
            },
        })
    }

    /// With what other hubs are answered: for whoever follows the key that is shown.
    pub(in crate::hub) fn accept(&self) -> watch::Sender<Arc<AcceptOptions>> {
        self.accept.clone()
    }
}

/// Lets other hubs in until shutdown, and then waits a while for what goes by a hop.
pub(in crate::hub) async fn listen(listener: TcpListener, listening: Listening, shutdown: CancellationToken) {
    let known = Arc::<Known>::default();
    let handshakes = Doorstep::new(PEER_HANDSHAKES_MAX, Arc::clone(&known));
    let serve = |socket: TcpStream, from: SocketAddr, place: Place| {
        let (listening, known, shutdown) = (listening.clone(), Arc::clone(&known), shutdown.clone());
        let serve = async move {
            let options = listening.accept.borrow().clone();
            match Box::pin(tunnel::accept(socket, &options)).await {
                Ok(tunnel) => {
                    known.proven(from.ip());
                    drop(place);
                    tracing::info!(peer = tunnel.peer.cluster, "Another hub connected.");
                    Box::pin(listening.serve(tunnel, shutdown)).await;
                }
                Err(error) => tracing::warn!(error = line(&error), "Refused another hub."),
            }
        };
        serve.instrument(tracing::info_span!("peer"))
    };
    let hubs = doorstep::run(listener, |from| handshakes.place(from), serve, shutdown.cancelled()).await;
    hubs.wait().await;
}

impl Listening {
    async fn serve(&self, tunnel: tunnel::Tunnel, shutdown: CancellationToken) {
        let tunnel::Tunnel {
            peer,
            mut incoming,
            session,
            ..
        } = tunnel;
        let (telling, ended) = (CancellationToken::new(), CancellationToken::new());
        let _end = (telling.clone().drop_guard(), ended.clone().drop_guard());
        let tasks = TaskTracker::new();
        let away = GoAway::new(GoAwayReason::Shutdown, "the hub is ending");
        let leaving = async {
            shutdown.cancelled().await;
            // First, so that the other hub does not take the end of what it is told for the end of the connection.
            session.go_away(away.clone());
            telling.cancel();
            drained(&session, DRAIN_TIMEOUT).await;
        };
        let mut leaving = std::pin::pin!(leaving);
        loop {
            let opened = tokio::select! {
                biased;
                () = self.here.registry.denied(&peer.key) => {
                    tracing::warn!(peer = %peer.key, "Left another hub whose key the deny list has.");
                    break;
                }
                _reason = session.closed() => break,
                () = &mut leaving => break,
                opened = incoming.next() => opened,
            };
            let Some(opened) = opened else { break };
            let (this, key) = (self.clone(), peer.key);
            let ends = match opened.open.class {
                TargetClass::Peer => telling.clone(),
                _ => ended.clone(),
            };
            let serve = async move { Box::pin(this.opened(opened, &key, &ends)).await };
            tasks.spawn(serve.in_current_span());
        }
        // Each stream has its line in the audit log, also one that is cut off. A disk that hangs keeps nobody here.
        telling.cancel();
        ended.cancel();
        tasks.close();
        let _all_have = timeout(GATE_END_TIMEOUT, tasks.wait()).await;
        session.close(away.clone());
        let _gone = timeout(SESSION_CLOSE_TIMEOUT, session.closed()).await;
    }

    async fn opened(&self, opened: IncomingOpen, from: &PublicKey, ended: &CancellationToken) {
        let IncomingOpen { open, responder } = opened;
        if let Some(goal) = Goal::of(&open.class) {
            return self.pass(from, (open, goal), responder, ended).await;
        }
        let answer = async {
            match open.class {
                TargetClass::Peer => {
                    let Ok(stream) = responder.accept() else { return };
                    if let Err(error) = self.tell(stream, open.target == WITH_ASKS).await {
                        tracing::debug!(error = line(&error), "Lost the stream to another hub.");
                    }
                }
                TargetClass::Keys if open.target.is_empty() => {
                    let Ok(stream) = responder.accept() else { return };
                    if let Err(error) = keys::tell(&self.keys, &self.here.registry, stream, || {}).await {
                        tracing::debug!(error = line(&error), "Lost the keys stream to another hub.");
                    }
                }
                TargetClass::Look if Hop::parse(&open.target).is_ok_and(|hop| hop.target == TUNNEL_TARGET) => {
                    self.tell_tunnel(&open, responder).await;
                }
                TargetClass::Look => match self.look(open).await {
                    Ok(mut there) => {
                        let Ok(mut here) = responder.accept() else { return };
                        // How it ended is between the two that talk.
                        let _ended = copy_bidirectional(&mut here, &mut there).await;
                    }
                    Err((code, text)) => responder.refuse(code, &text),
                },
                class => {
                    let text = format!("{class} is not passed on from one hub to another");
                    responder.refuse(OpenCode::NotAllowed, &text);
                }
            }
        };
        ended.run_until_cancelled(answer).await;
    }

    /// Opens a question of a hub's own in the cluster's tunnel: what goes with an object, and whether the agent is there.
    async fn look(&self, open: Open) -> Result<TunnelStream, (OpenCode, String)> {
        let hop = Hop::parse(&open.target).map_err(|error| (OpenCode::NotAllowed, error.to_string()))?;
        let opener = self.opener(&hop)?;
        let target = hop.target;
        let opened = opener.request(Open { target, ..open }).await;
        opened.map_err(|error| (error.code, error.text))
    }

    /// Says what this hub knows of a cluster's tunnel, whether it has one or not.
    async fn tell_tunnel(&self, open: &Open, responder: Responder) {
        let (Ok(hop), Ok(mut stream)) = (Hop::parse(&open.target), responder.accept()) else {
            return;
        };
        let word = TunnelWord {
            hub: env!("CARGO_PKG_VERSION").to_owned(),
            seen: self.here.connections.view(&hop.cluster),
        };
        // Whoever asked has gone where this fails.
        let _told = write_message(&mut stream, &word).await;
        let _ended = stream.shutdown().await;
    }

    /// Tells who is connected here, all of it now and then.
    async fn tell(&self, stream: TunnelStream, with_asks: bool) -> Result<(), FramingError> {
        let mut stream = Box::pin(stream);
        let mut words = Words::new(with_asks);
        let mut ticks = interval(PEER_TICK);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut whole_at: Option<Instant> = None;
        let mut version = None;
        loop {
            ticks.tick().await;
            let whole = whole_at.is_none_or(|at| at.elapsed() >= PEER_RESYNC);
            let news = {
                let state = self.here.state.read().unwrap_or_else(PoisonError::into_inner);
                if !whole && version == Some(state.version) {
                    continue;
                }
                version = Some(state.version);
                words.news(
                    &state,
                    &|cluster| self.here.connections.agent(cluster),
                    &self.begin,
                    whole,
                )
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
