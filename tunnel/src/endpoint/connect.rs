//! The agent's door: it dials the hub, checks its key and proves its own.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use http::StatusCode;
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_tungstenite::tungstenite;
use tokio_tungstenite::{WebSocketStream, client_async_with_config};

use super::accept::TIME_HEADER;
use super::dial::{DialError, dial};
use super::target::Target;
use super::{Step, Tunnel, start};
use crate::allowance::Allowance;
use crate::backoff::Outcome;
use crate::driver::{tune, websocket_config};
use crate::frame::Token;
use crate::handshake::{HandshakeError, Introduction, as_agent};
use crate::identity::{PublicKey, SecretKey};
use crate::limits::{CLUSTER_NAME_BYTES_MAX, HANDSHAKE_TIMEOUT, STEP_TIMEOUT};
use crate::proxy::{AskError, Proxy, ask};
use crate::tls::{Authorities, TlsError, client_config, exporter};

/// What an agent dials with.
#[derive(Clone)]
pub struct ConnectOptions {
    /// `wss://host[:port][/tunnel]`; port 443 if none is given.
    pub url: String,
    /// The hub's keys; one of them must be the hub's.
    pub pins: Vec<PublicKey>,
    /// The cluster's name as its file in Git has it.
    pub cluster: String,
    /// The cluster's own key.
    pub key: Arc<SecretKey>,
    /// Must rise with every dial of this cluster, also over restarts; the time in milliseconds does.
    pub epoch: u64,
    /// Version of this program, told to the hub.
    pub version: String,
    /// How the connection is secured.
    pub tls: HubTls,
    /// The way through a proxy; `None` dials the hub itself.
    pub proxy: Option<Proxy>,
    /// Ids of hubs that there is a tunnel to already: one of them is left at once, and keeps its tunnel.
    pub held: Vec<String>,
    /// Which process of the cluster's agents this is: the same for all its dials, and no other's. May be empty.
    pub instance: String,
    /// A bootstrap token, while the cluster is not registered.
    pub token: Token,
    /// Addresses that its name must not lead to; nothing is left out without it. What a proxy leads to is the proxy's.
    pub avoids: Option<fn(IpAddr) -> bool>,
    /// For all steps together; raising it only makes a dead address cost more.
    pub handshake_timeout: Duration,
    /// Memory, meters and bandwidth of its tunnels.
    pub allowance: Allowance,
}

impl ConnectOptions {
    /// Options with the usual time limit and this crate's version.
    pub fn new(
        url: impl Into<String>,
        pins: Vec<PublicKey>,
        cluster: impl Into<String>,
        key: Arc<SecretKey>,
        epoch: u64,
    ) -> Self {
        let version = env!("CARGO_PKG_VERSION").to_owned();
        let handshake_timeout = HANDSHAKE_TIMEOUT;
        Self {
            url: url.into(),
            pins,
            cluster: cluster.into(),
            key,
            epoch,
            version,
            tls: HubTls::Pinned,
            proxy: None,
            held: Vec::new(),
            instance: String::new(),
            token: Token::default(),
            avoids: None,
            handshake_timeout,
            allowance: Allowance::default(),
        }
    }

    pub(crate) fn target(&self) -> Result<Target, ConnectError> {
        let wrong = |what| ConnectError::Options {
            url: self.url.clone(),
            what,
        };
        if self.pins.is_empty() {
            return Err(wrong("no key of the hub is pinned"));
        }
        if self.cluster.is_empty() || self.cluster.len() > CLUSTER_NAME_BYTES_MAX {
            return Err(wrong("cluster name is empty or too long"));
        }
        Target::parse(&self.url).map_err(wrong)
    }
}

/// How the connection to the hub is secured. Whichever it is, the hub proves to hold a pinned key.
#[derive(Clone, Debug)]
pub enum HubTls {
    /// From end to end: TLS ends at the hub, with its pinned key.
    Pinned,
    /// TLS ends at a server before the hub, which has a certificate of one of these authorities, and which reads what
    /// goes through the tunnel.
    Authorities(Authorities),
}

/// Why there is no tunnel. [`ConnectError::outcome`] says when to try again.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// The options cannot work, whatever the hub says.
    #[error("cannot dial {url:?}: {what}")]
    Options {
        /// The URL given.
        url: String,
        /// What is wrong.
        what: &'static str,
    },
    /// TLS could not be set up on this side.
    #[error("failed to prepare TLS")]
    Prepare(#[source] TlsError),
    /// All steps together took too long.
    #[error("handshake took longer than allowed")]
    Timeout,
    /// One step took too long.
    #[error("{step} took longer than {STEP_TIMEOUT:?}")]
    StepTimeout {
        /// Which.
        step: Step,
    },
    /// No TCP connection came about.
    #[error("failed to dial")]
    Dial(#[source] DialError),
    /// The socket refused its settings.
    #[error("failed to set up the socket")]
    Socket(#[source] std::io::Error),
    /// The proxy did not lead on.
    #[error("failed to get through proxy {proxy}")]
    Proxy {
        /// Its host and port.
        proxy: String,
        /// Why.
        #[source]
        source: AskError,
    },
    /// No TLS connection to a pinned key, or to a certificate of a known authority, came about.
    #[error("failed to complete the TLS handshake")]
    Tls(#[source] std::io::Error),
    /// Whoever answered is no hub, or a server before it that does not let us through.
    #[error("the server answered {status} in the place of a WebSocket")]
    Answered {
        /// How it answered.
        status: StatusCode,
    },
    /// The hub did not upgrade to a WebSocket.
    #[error("failed to upgrade to a WebSocket")]
    Upgrade(#[source] Box<tungstenite::Error>),
    /// The hub is not who it should be, refused us, or does not speak our protocol.
    #[error("failed to agree with the hub")]
    Handshake(#[source] HandshakeError),
}

impl ConnectError {
    /// What this means for the next attempt.
    #[must_use]
    pub fn outcome(&self) -> Outcome {
        match self {
            Self::Handshake(HandshakeError::Refused(away)) => Outcome::told_by(away).unwrap_or(Outcome::Failed),
            Self::Handshake(HandshakeError::AlreadyHeld { .. }) => Outcome::Duplicate,
            // A login that is wrong stays so until a person changes it, and some proxies lock who keeps trying.
            _ if self.is_denied() => Outcome::Refused,
            _ => Outcome::Failed,
        }
    }

    /// Whether a proxy, or a server before the hub, refuses who we are: 401, 403 and 407.
    #[must_use]
    pub fn is_denied(&self) -> bool {
        let status = match self {
            Self::Proxy {
                source: AskError::Refused { status, .. },
                ..
            } => *status,
            Self::Answered { status } => status.as_u16(),
            _ => return false,
        };
        matches!(status, 401 | 403 | 407)
    }
}

/// Dials the hub once, within `handshake_timeout`. The name is looked up anew every time.
pub async fn connect(options: &ConnectOptions) -> Result<Tunnel, ConnectError> {
    let dial = Box::pin(steps(options));
    timeout(options.handshake_timeout, dial)
        .await
        .map_err(|_| ConnectError::Timeout)?
}

async fn steps(options: &ConnectOptions) -> Result<Tunnel, ConnectError> {
    let target = options.target()?;
    let socket = reach(options, &target).await?;
    let (tls, exporter) = secure(options, &target, socket).await?;
    let (mut socket, hub_time) = upgrade(&target, tls).await?;
    let us = Introduction {
        key: &options.key,
        version: &options.version,
        cluster: &options.cluster,
        epoch: options.epoch,
        server_id: "",
        endpoints: &[],
        exporter,
        spread: Duration::ZERO,
        held: &options.held,
        instance: &options.instance,
        token: &options.token,
    };
    let agreed = as_agent(&mut socket, &us, &options.pins)
        .await
        .map_err(ConnectError::Handshake)?;
    Ok(Tunnel {
        hub_time,
        ..start(socket, agreed, options.allowance.clone())
    })
}

/// A TCP connection whose bytes are the hub's, by way of the proxy if there is one.
pub(crate) async fn reach(options: &ConnectOptions, target: &Target) -> Result<TcpStream, ConnectError> {
    let (host, port, avoids) = match &options.proxy {
        Some(proxy) => (proxy.host(), proxy.port(), None),
        None => (target.host.as_str(), target.port, options.avoids),
    };
    let mut socket = dial(host, port, avoids).await.map_err(ConnectError::Dial)?;
    tune(&socket).map_err(ConnectError::Socket)?;
    if let Some(proxy) = &options.proxy {
        let asked = timeout(STEP_TIMEOUT, ask(&mut socket, proxy, &target.authority())).await;
        let asked = asked.map_err(|_| ConnectError::StepTimeout { step: Step::Proxy })?;
        asked.map_err(|source| ConnectError::Proxy {
            proxy: proxy.to_string(),
            source,
        })?;
    }
    Ok(socket)
}

/// TLS over it, and the exporter where it ends at the hub itself.
pub(crate) async fn secure(
    options: &ConnectOptions,
    target: &Target,
    socket: TcpStream,
) -> Result<(TlsStream<TcpStream>, Option<[u8; 32]>), ConnectError> {
    let config = match &options.tls {
        HubTls::Pinned => client_config(&options.pins),
        HubTls::Authorities(authorities) => authorities.client_config(),
    };
    let connector = TlsConnector::from(config.map_err(ConnectError::Prepare)?);
    let tls = timeout(STEP_TIMEOUT, connector.connect(target.name.clone(), socket)).await;
    let tls = tls
        .map_err(|_| ConnectError::StepTimeout { step: Step::Tls })?
        .map_err(ConnectError::Tls)?;
    let exporter = match options.tls {
        HubTls::Pinned => {
            let exporter = exporter(tls.get_ref().1);
            Some(exporter.map_err(|error| ConnectError::Tls(std::io::Error::other(error)))?)
        }
        HubTls::Authorities(_) => None,
    };
    Ok((tls, exporter))
}

/// The WebSocket, and what the hub says of the time.
pub(crate) async fn upgrade(
    target: &Target,
    tls: TlsStream<TcpStream>,
) -> Result<(WebSocketStream<TlsStream<TcpStream>>, Option<i64>), ConnectError> {
    let upgrade = client_async_with_config(target.request.clone(), tls, Some(websocket_config()));
    let upgrade = timeout(STEP_TIMEOUT, upgrade)
        .await
        .map_err(|_| ConnectError::StepTimeout { step: Step::Upgrade })?;
    match upgrade {
        Ok((socket, answer)) => {
            let time = answer.headers().get(TIME_HEADER).and_then(|time| time.to_str().ok());
            Ok((socket, time.and_then(|time| time.parse().ok())))
        }
        Err(tungstenite::Error::Http(answer)) => Err(ConnectError::Answered {
            status: answer.status(),
        }),
        Err(error) => Err(ConnectError::Upgrade(Box::new(error))),
    }
}
