//! One cluster's tunnel at the hub: envelopes and contents out, answers and reports in.
//!
//! Reading order: this file (a tunnel from its beginning to its end) → `deliver` (what is told) → `news` (whether it is) →
//! `heard` (what agents open).

mod deliver;
mod heard;
pub(super) mod news;

use std::net::IpAddr;
use std::sync::Arc;

use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use render::ClusterName;
use tokio::sync::{mpsc, watch};
use tokio::time::{Duration, sleep, timeout};
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;
use tracing::Instrument as _;
use tunnel::{GoAway, GoAwayReason, Incoming, IncomingOpen, OpenCode, OpenError, Opener, Session, TargetClass, Tunnel};

use super::arrivals::Arrivals;
use super::asking::Door;
use super::connections::Connections;
use super::dispatch::{Dial, Dispatch};
use super::engine::Event;
use super::keeper::{Keeper, chain};
use super::keys::HubKeys;
use super::mode_order::ModeOrder;
use super::push::{self, Pushing};
use super::registry::Registry;
use super::turned_away::{Who, Why};
use crate::key_wish::{self, Within};
use crate::limits::{
    DRAIN_LOOK, DRAIN_TIMEOUT, PUSH_END_TIMEOUT, REPLACED_DRAIN_TIMEOUT, SESSION_CLOSE_TIMEOUT, SESSION_STEP_TIMEOUT,
};
use crate::wire::{Envelope, FramingError, Held};

/// What sessions need from the hub.
#[derive(Clone)]
pub(super) struct Sessions {
    /// The engine's ear.
    pub(super) events: mpsc::Sender<Event>,
    /// What each cluster should be told.
    pub(super) dispatch: Arc<Dispatch>,
    /// Contents.
    pub(super) keeper: Arc<Keeper>,
    /// The hub's own keys, one of which agents pin.
    pub(super) keys: HubKeys,
    /// Who may be connected.
    pub(super) registry: Arc<Registry>,
    /// The hub's appliers behind tunnels.
    pub(super) pushing: Arc<Pushing>,
    /// How agents are let in.
    pub(super) arrivals: Arc<Arrivals>,
    /// What is shown of tunnels.
    pub(super) connections: Arc<Connections>,
    /// Which of two commits' modes is the newer one.
    pub(super) modes: Arc<ModeOrder>,
}

/// What the later of two agents with one identity is told; docs/register-a-cluster.md quotes it.
const DUPLICATE: &str = "duplicate agent: another one with this cluster's key is connected";

#[derive(Debug, thiserror::Error)]
enum SessionError {
    #[error("the agent took no deliver stream")]
    Open(#[source] OpenError),
    #[error("a stream failed")]
    Stream(#[source] FramingError),
}

impl Sessions {
    /// Serves one tunnel until it ends, a newer one takes its place, or its cluster is registered no more.
    pub(super) async fn serve(
        &self,
        cluster: ClusterName,
        (tunnel, from): (Tunnel, Option<IpAddr>),
        shutdown: &CancellationToken,
    ) {
        let Tunnel {
            peer,
            opener,
            mut incoming,
            session,
            hub_time: _,
        } = tunnel;
        let (epoch, session) = (peer.epoch, Arc::new(session));
        let dial = Dial {
            epoch,
            instance: &peer.instance,
        };
        let Ok((newest, ended)) = self.dispatch.begin(&cluster, dial, shutdown) else {
            self.registry.duplicate(&cluster, peer.key);
            if let Some(more) = self
                .arrivals
                .turned_away
                .says(Why::Duplicate, Who::Cluster(cluster.clone()))
            {
                tracing::warn!(cluster = %cluster, epoch, more, "Refused a duplicate agent: another one with this key is connected.");
            }
            session.close(GoAway::new(GoAwayReason::Replaced, DUPLICATE));
            let _gone = timeout(SESSION_CLOSE_TIMEOUT, session.closed()).await;
            return;
        };
        self.registry.let_in(&cluster, &peer.key);
        self.dispatch.open(&cluster, epoch, Door::Agent(opener.clone()));
        self.connections.begin(&cluster, peer.clone(), Arc::downgrade(&session));
        tracing::info!(cluster = %cluster, epoch, version = peer.version, "Agent connected.");
        let _sent = self
            .events
            .send(Event::Connected {
                cluster: cluster.clone(),
                epoch,
            })
            .await;
        let (said, heard) = watch::channel(None);
        let (stop, (applying, applies)) = (CancellationToken::new(), watch::channel(false));
        let pushes = push::run(
            self.clone(),
            (cluster.clone(), opener.clone()),
            newest.clone(),
            heard.clone(),
            (applying, stop.clone()),
        );
        let span = tracing::info_span!("push", cluster = %cluster);
        let mut pushes = AbortOnDropHandle::new(tokio::spawn(pushes.instrument(span)));
        let within = Within {
            cluster: &cluster,
            used: peer.key,
            binding: peer.binding,
        };
        let talk = self.talk(
            (within, epoch, from),
            (newest, applies),
            (said, heard),
            &opener,
            &mut incoming,
        );
        let (away, reason) = tokio::select! {
            biased;
            () = self.registry.revoked(&cluster, &peer.key) => {
                let why = match self.registry.is_denied(&cluster, &peer.key) {
                    true => "the hub's deny list has this cluster or its key",
                    false => "the cluster's file is gone or names this key no more",
                };
                (GoAwayReason::Revoked, why.to_owned())
            }
            () = ended.cancelled() => why_ended(shutdown),
            reason = session.closed() => (GoAwayReason::Shutdown, reason.to_string()),
            reason = talk => (GoAwayReason::Shutdown, reason),
        };
        let revoked = || self.registry.revoked(&cluster, &peer.key);
        stop.cancel();
        if away == GoAwayReason::Revoked {
            // Whoever is shut out is asked for nothing more, and decides nothing: not even how long that takes.
            pushes.abort();
            // Where the agent has another key, it comes back with it at once; else nobody waits for it.
            self.dispatch.end(&cluster, epoch);
        } else {
            // Whoever applied through this tunnel gives the Lease back while there is one.
            let given_back = timeout(PUSH_END_TIMEOUT, &mut pushes);
            tokio::select! {
                biased;
                () = revoked() => {}
                _ = given_back => {}
            }
        }
        // What a person at the agent can do something about.
        let text = match away {
            GoAwayReason::Revoked | GoAwayReason::Replaced => reason.as_str(),
            _ => "session ended",
        };
        let away = self.farewell(GoAway::new(away, text), ended.is_cancelled());
        match away.reason {
            GoAwayReason::Revoked => session.close(away.clone()),
            _ => session.go_away(away.clone()),
        }
        self.dispatch.end(&cluster, epoch);
        self.connections.end(&cluster, epoch, &reason);
        tracing::info!(cluster = %cluster, epoch, reason, "Agent disconnected.");
        let disconnected = Event::Disconnected {
            cluster: cluster.clone(),
            epoch,
        };
        let _sent = self.events.send(disconnected).await;
        // Who is replaced, or loses its hub, may end what it is at; who is revoked may not.
        if ended.is_cancelled() && away.reason != GoAwayReason::Revoked {
            let limit = match away.reason {
                GoAwayReason::Replaced => REPLACED_DRAIN_TIMEOUT,
                _ => DRAIN_TIMEOUT,
            };
            tokio::select! {
                biased;
                // A key that counts no more ends what it was at, also beside its successor.
                () = revoked() => {}
                () = leave(&session, incoming, limit) => {}
            }
        }
        session.close(away);
        // The word for it goes out before the connection: without it an agent sees a broken one.
        let _gone = timeout(SESSION_CLOSE_TIMEOUT, session.closed()).await;
    }

    /// The last word to an agent. A hub that ends has its agents come back one after another.
    fn farewell(&self, farewell: GoAway, was_ended: bool) -> GoAway {
        if was_ended && farewell.reason == GoAwayReason::Shutdown {
            let spread = self.arrivals.farewell(|| self.connections.count());
            return farewell.with_retry(Duration::ZERO, spread);
        }
        farewell
    }

    /// Tells and listens until one of the two is over, and says why.
    async fn talk(
        &self,
        (within, epoch, from): (Within<'_>, u64, Option<IpAddr>),
        (newest, applies): (watch::Receiver<Option<Arc<Envelope>>>, watch::Receiver<bool>),
        (said, heard): (watch::Sender<Option<Held>>, watch::Receiver<Option<Held>>),
        opener: &Opener,
        incoming: &mut Incoming,
    ) -> String {
        let (told, of) = (newest.clone(), (within.cluster, epoch));
        let deliver = async {
            let stream = opener.open(TargetClass::Deliver, "", SESSION_STEP_TIMEOUT).await;
            let stream = stream.map_err(SessionError::Open)?;
            self.deliver(newest, applies, heard, stream)
                .await
                .map_err(SessionError::Stream)
        };
        let listen = async {
            let reports = |open| Box::pin(self.opened(of, open, &told, &said));
            let (mut reporting, mut telling) = (FuturesUnordered::new(), FuturesUnordered::new());
            let mut wishing = FuturesUnordered::new();
            loop {
                let open = tokio::select! {
                    biased;
                    Some(()) = reporting.next() => continue,
                    Some(()) = telling.next() => continue,
                    Some(()) = wishing.next() => continue,
                    open = incoming.next() => open,
                };
                let Some(IncomingOpen { open, responder }) = open else {
                    return;
                };
                // One of each at a time.
                match open.class {
                    TargetClass::Report if reporting.is_empty() => reporting.push(reports(responder)),
                    TargetClass::Keys if open.target == key_wish::TARGET && wishing.is_empty() => {
                        wishing.push(Box::pin(self.wishes((within, from), responder)));
                    }
                    TargetClass::Keys if open.target.is_empty() && telling.is_empty() => {
                        telling.push(Box::pin(self.keys(of, responder)))
                    }
                    TargetClass::Report | TargetClass::Keys => {
                        responder.refuse(OpenCode::Limit, "there is such a stream already");
                    }
                    _ => responder.refuse(OpenCode::NotAllowed, "a hub takes reports, and says its keys"),
                }
            }
        };
        tokio::select! {
            biased;
            ended = Box::pin(deliver) => match ended {
                Ok(()) => "the agent closed its deliver stream".to_owned(),
                Err(error) => chain(&error),
            },
            () = Box::pin(listen) => "the tunnel closed".to_owned(),
        }
    }
}

/// Takes no new streams, and waits until those that are open have ended, at most for so long.
async fn leave(session: &Session, mut incoming: Incoming, limit: Duration) {
    let refuse = async {
        while let Some(open) = incoming.next().await {
            open.responder.refuse(OpenCode::Gone, "this tunnel is being left");
        }
    };
    tokio::select! {
        () = drained(session, limit) => {}
        () = refuse => {}
    }
}

/// Waits until no stream of a tunnel is open, at most for so long.
pub(super) async fn drained(session: &Session, limit: Duration) {
    let ended = async {
        while session.streams() > 0 {
            sleep(DRAIN_LOOK).await;
        }
    };
    let _over = timeout(limit, ended).await;
}

/// What ended a session from the hub's side. Two agents with one identity would take it from each other every
/// other second, unless the older one is told that it was replaced.
fn why_ended(shutdown: &CancellationToken) -> (GoAwayReason, String) {
    if shutdown.is_cancelled() {
        (GoAwayReason::Shutdown, "the hub is ending".to_owned())
    } else {
        (GoAwayReason::Replaced, "a newer session took its place".to_owned())
    }
}
