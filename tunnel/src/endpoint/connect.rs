//! The agent's door: it dials the hub, checks its key and proves its own.

use std::sync::Arc;
use std::time::Duration;

use http::Uri;
use rustls::pki_types::ServerName;
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tokio_tungstenite::client_async_with_config;
use tokio_tungstenite::tungstenite;

use super::accept::PATH;
use super::{Tunnel, start};
use crate::allowance::Allowance;
use crate::backoff::Outcome;
use crate::driver::{tune, websocket_config};
use crate::handshake::{HandshakeError, Introduction, as_agent};
use crate::identity::{PublicKey, SecretKey};
use crate::limits::{CLUSTER_NAME_BYTES_MAX, HANDSHAKE_TIMEOUT, STEP_TIMEOUT};
use crate::tls::{TlsError, client_config, exporter};

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
            handshake_timeout,
            allowance: Allowance::default(),
        }
    }
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
        step: &'static str,
    },
    /// No TCP connection came about.
    #[error("failed to connect to {address}")]
    Dial {
        /// Host and port.
        address: String,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// No TLS connection to a pinned key came about.
    #[error("failed to complete the TLS handshake")]
    Tls(#[source] std::io::Error),
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
            _ => Outcome::Failed,
        }
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
    let target = Target::parse(options)?;
    let connector = TlsConnector::from(client_config(&options.pins).map_err(ConnectError::Prepare)?);
    let dial = timeout(STEP_TIMEOUT, TcpStream::connect(&target.address)).await;
    let dial = dial
        .map_err(|_| ConnectError::StepTimeout { step: "TCP" })?
        .and_then(|socket| {
            tune(&socket)?;
            Ok(socket)
        });
    let socket = dial.map_err(|source| ConnectError::Dial {
        address: target.address.clone(),
        source,
    })?;
    let tls = timeout(STEP_TIMEOUT, connector.connect(target.name, socket)).await;
    let tls = tls
        .map_err(|_| ConnectError::StepTimeout { step: "TLS" })?
        .map_err(ConnectError::Tls)?;
    let exporter = exporter(tls.get_ref().1).map_err(|error| ConnectError::Tls(std::io::Error::other(error)))?;
    let upgrade = client_async_with_config(target.request, tls, Some(websocket_config()));
    let upgrade = timeout(STEP_TIMEOUT, upgrade)
        .await
        .map_err(|_| ConnectError::StepTimeout { step: "upgrade" })?;
    let (mut socket, _) = upgrade.map_err(|error| ConnectError::Upgrade(Box::new(error)))?;
    let us = Introduction {
        key: &options.key,
        version: &options.version,
        cluster: &options.cluster,
        epoch: options.epoch,
        server_id: "",
        endpoints: &[],
        exporter: Some(exporter),
    };
    let agreed = as_agent(&mut socket, &us, &options.pins)
        .await
        .map_err(ConnectError::Handshake)?;
    Ok(start(socket, agreed, options.allowance.clone()))
}

/// A URL taken apart.
struct Target {
    address: String,
    name: ServerName<'static>,
    request: Uri,
}

impl Target {
    fn parse(options: &ConnectOptions) -> Result<Self, ConnectError> {
        let wrong = |what| ConnectError::Options {
            url: options.url.clone(),
            what,
        };
        if options.pins.is_empty() {
            return Err(wrong("no key of the hub is pinned"));
        }
        if options.cluster.is_empty() || options.cluster.len() > CLUSTER_NAME_BYTES_MAX {
            return Err(wrong("cluster name is empty or too long"));
        }
        let url: Uri = options.url.parse().map_err(|_| wrong("it is no URL"))?;
        if url.scheme_str() != Some("wss") {
            return Err(wrong("its scheme is not wss"));
        }
        let authority = url.authority().ok_or_else(|| wrong("it has no host"))?;
        if authority.as_str().contains('@') {
            return Err(wrong("it holds credentials"));
        }
        let host = authority.host();
        // An IPv6 address stands in brackets in a URL and nowhere else.
        let bare = host.trim_start_matches('[').trim_end_matches(']');
        let name = ServerName::try_from(bare.to_owned()).map_err(|_| wrong("its host is no name or address"))?;
        let path = if url.path() == "/" { PATH } else { url.path() };
        let request = format!("wss://{authority}{path}")
            .parse()
            .map_err(|_| wrong("it is no URL"))?;
        Ok(Self {
            address: format!("{host}:{}", authority.port_u16().unwrap_or(443)),
            name,
            request,
        })
    }
}
