//! Where agents and other hubs come in, and what this hub dials.

use std::net::SocketAddr;
use std::sync::Arc;

use futures_util::future::join_all;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tunnel::AcceptOptions;

use super::SharedState;
use crate::audit::AuditLog;
use crate::hub::gateway::Doors;
use crate::hub::options::{HubError, HubOptions};
use crate::hub::peers::{self, Dialling, Endpoints, FirstWords, Here, Listening, Others, Peer, PeerKeys, PeerOptions};
use crate::hub::registry::Registry;
use crate::hub::session::Sessions;

/// Where agents come in, and what they are answered with.
pub(super) async fn listen(options: &HubOptions, registry: &Arc<Registry>) -> Result<(Doors, AcceptOptions), HubError> {
    let mut accept = AcceptOptions::new(Arc::clone(&options.key), Arc::clone(registry) as _).map_err(HubError::Tls)?;
    accept.allowance = options.allowance.clone();
    accept.server_id.clone_from(&options.peers.server_id);
    let secured = bound(options.listen, "--listen").await?;
    if let Ok(address) = secured.local_addr() {
        tracing::info!(%address, key = %options.key.public(), "Listening for agents.");
    }
    let plain = match options.listen_plain {
        Some(address) => Some(bound(address, "--listen-plain").await?),
        None => None,
    };
    if let Some(address) = plain.as_ref().and_then(|plain| plain.local_addr().ok()) {
        tracing::info!(%address, "Listening for agents behind a server that ends TLS, which reads what they say.");
        if !address.ip().is_loopback() {
            // Behind a server of another machine or pod that is what people need; whether others reach it is not known here.
            tracing::warn!(%address, "Whoever reaches --listen-plain at this address, or reads on the way to it, reads tunnels in the clear: let that server alone reach it.");
        }
    }
    Ok((Doors { secured, plain }, accept))
}

async fn bound(address: SocketAddr, flag: &'static str) -> Result<TcpListener, HubError> {
    let bound = TcpListener::bind(address).await;
    bound.map_err(|source| HubError::Listen { address, flag, source })
}

/// What other hubs are told, and how they are dialled.
pub(super) struct Beside {
    listening: Option<(TcpListener, Listening)>,
    peers: Vec<Peer>,
    pub(super) dialling: Dialling,
}

/// Puts together what is beside this hub.
pub(super) async fn beside(
    options: &HubOptions,
    (state, audit): (&SharedState, &AuditLog),
    sessions: &Sessions,
    (endpoints, first_words, peer_keys): (Arc<Endpoints>, Arc<FirstWords>, Arc<PeerKeys>),
) -> Result<Beside, HubError> {
    let PeerOptions {
        peers,
        listen,
        server_id,
        ..
    } = &options.peers;
    let listening = match *listen {
        Some(address) => {
            let keys = (Arc::clone(&options.key), sessions.keys.clone(), Arc::clone(&peer_keys));
            let door = options.door.as_ref();
            let here = Here {
                state: Arc::clone(state),
                dispatch: Arc::clone(&sessions.dispatch),
                connections: Arc::clone(&sessions.connections),
                registry: Arc::clone(&sessions.registry),
                interactive: door.is_some_and(|door| door.interactive),
            };
            // What comes by way of another hub is written where people's requests are.
            let listening = Listening::new(keys, here, audit.clone(), &endpoints);
            let listening = listening.map_err(HubError::Tls)?;
            Some((bound(address, "--listen-peers").await?, listening))
        }
        None => None,
    };
    Ok(Beside {
        listening,
        peers: peers.clone(),
        dialling: Dialling {
            keys: sessions.keys.clone(),
            peer_keys,
            server_id: server_id.clone(),
            dispatch: Arc::clone(&sessions.dispatch),
            connections: Arc::clone(&sessions.connections),
            registry: Arc::clone(&sessions.registry),
            events: sessions.events.clone(),
            endpoints,
            first_words,
            others: Others::default(),
        },
    })
}

impl Beside {
    /// With what other hubs are answered, where they dial this one.
    pub(super) fn accept(&self) -> Option<watch::Sender<Arc<AcceptOptions>>> {
        self.listening.as_ref().map(|(_, listening)| listening.accept())
    }

    /// What this hub dials, until it is dropped; and what dials it, until that is told of the end and has done.
    pub(super) fn split(
        self,
        stop: &CancellationToken,
    ) -> (
        impl Future<Output = ()> + Send + use<>,
        impl Future<Output = ()> + Send + use<>,
    ) {
        let dialling = self.dialling;
        let dialled = self.peers.into_iter();
        let dialled = dialled.map(move |peer| peers::follow(peer, dialling.clone(), CancellationToken::new()));
        let (until, stop, listening) = (stop.clone(), stop.clone(), self.listening);
        let listened = async move {
            match listening {
                Some((listener, listening)) => Box::pin(peers::listen(listener, listening, stop)).await,
                None => stop.cancelled().await,
            }
        };
        let dialled = async move {
            join_all(dialled).await;
            // Without other hubs there is nothing to do.
            until.cancelled().await;
        };
        (dialled, listened)
    }
}
