//! The hub's door: TLS, upgrade and handshake over a connection it accepted.

use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use http::StatusCode;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;
use tokio_tungstenite::accept_hdr_async_with_config;
use tokio_tungstenite::tungstenite;
use tokio_tungstenite::tungstenite::handshake::server::{ErrorResponse, Request, Response};

use super::{Step, Tunnel, start};
use crate::allowance::Allowance;
use crate::driver::{tune, websocket_config};
use crate::frame::Token;
use crate::handshake::{HandshakeError, Introduction, as_hub};
use crate::identity::{PublicKey, SecretKey, TokenProof};
use crate::limits::{HANDSHAKE_TIMEOUT, STEP_TIMEOUT};
use crate::meters::{Handshake, HandshakeStep, Meters};
use crate::tls::{TlsError, exporter, server_config};

/// The only path that becomes a tunnel; all others get 404.
pub const PATH: &str = "/tunnel";

/// In the answer to the request for a tunnel: the hub's time, in seconds since 1970. Nothing is decided on it.
pub(crate) const TIME_HEADER: &str = "flotilla-time";

/// Tells which keys a cluster may prove to hold. Must answer from memory: it runs inside the handshake.
pub trait KeyLookup: Send + Sync {
    /// The keys registered for a name; none if the name is unknown.
    fn keys_of(&self, cluster: &str) -> Vec<PublicKey>;

    /// Over what time agents that lost their tunnel come back, see [`spread_of`](crate::backoff::spread_of).
    fn spread(&self) -> Duration {
        Duration::ZERO
    }

    /// Hears of an agent that proved none of them, and says what that one is told; nothing beyond that it is refused by
    /// default.
    fn stranger(&self, stranger: &Stranger<'_>) -> Option<String> {
        let _nobody_is_told = stranger;
        None
    }
}

/// An agent that is not let in.
pub struct Stranger<'a> {
    /// The name that it gave, as it gave it.
    pub cluster: &'a str,
    /// The key that it proved to hold, where it said which; older agents do not.
    pub key: Option<PublicKey>,
    /// That it has a bootstrap token, with that key.
    pub token: Option<TokenProof>,
}

impl<F: Fn(&str) -> Option<Vec<PublicKey>> + Send + Sync> KeyLookup for F {
    fn keys_of(&self, cluster: &str) -> Vec<PublicKey> {
        self(cluster).unwrap_or_default()
    }
}

/// What the hub brings to every handshake; made once and cloned freely.
#[derive(Clone)]
pub struct AcceptOptions {
    hub_key: Arc<SecretKey>,
    tls: TlsAcceptor,
    keys: Arc<dyn KeyLookup>,
    /// Version of this program, told to agents.
    pub version: String,
    /// Which replica this is; may be empty.
    pub server_id: String,
    /// Where agents reach hubs, this one too, as URLs; read for each HELLO, may be empty, at most 16.
    pub endpoints: watch::Receiver<Vec<String>>,
    /// Memory, meters and bandwidth of its tunnels.
    pub allowance: Allowance,
}

impl AcceptOptions {
    /// Makes the hub's certificate from its key.
    pub fn new(hub_key: Arc<SecretKey>, keys: Arc<dyn KeyLookup>) -> Result<Self, TlsError> {
        let tls = TlsAcceptor::from(server_config(&hub_key)?);
        let version = env!("CARGO_PKG_VERSION").to_owned();
        Ok(Self {
            hub_key,
            tls,
            keys,
            version,
            server_id: String::new(),
            endpoints: watch::Sender::default().subscribe(),
            allowance: Allowance::default(),
        })
    }

    /// The same with another key, and the certificate that is made from it.
    pub fn with_key(&self, hub_key: Arc<SecretKey>) -> Result<Self, TlsError> {
        Ok(Self {
            tls: TlsAcceptor::from(server_config(&hub_key)?),
            hub_key,
            keys: Arc::clone(&self.keys),
            version: self.version.clone(),
            server_id: self.server_id.clone(),
            endpoints: self.endpoints.clone(),
            allowance: self.allowance.clone(),
        })
    }
}

/// Why a connection did not become a tunnel. Agents are told no more than they need.
#[derive(Debug, thiserror::Error)]
pub enum AcceptError {
    /// All steps together took too long.
    #[error("handshake took longer than {HANDSHAKE_TIMEOUT:?}")]
    Timeout,
    /// One step took too long.
    #[error("{step} took longer than {STEP_TIMEOUT:?}")]
    StepTimeout {
        /// Which.
        step: Step,
    },
    /// The socket refused its settings.
    #[error("failed to set up the socket")]
    Socket(#[source] std::io::Error),
    /// No TLS connection came about.
    #[error("failed to complete the TLS handshake")]
    Tls(#[source] std::io::Error),
    /// Not a WebSocket request for `/tunnel`.
    #[error("failed to upgrade to a WebSocket")]
    Upgrade(#[source] Box<tungstenite::Error>),
    /// The peer is not who it should be, or does not speak our protocol.
    #[error("failed to agree with the agent")]
    Handshake(#[source] HandshakeError),
}

impl AcceptError {
    fn end(&self) -> Handshake {
        match self {
            Self::Timeout | Self::StepTimeout { .. } => Handshake::TimedOut,
            Self::Socket(_) | Self::Tls(_) => Handshake::NoTls,
            Self::Upgrade(_) => Handshake::NoUpgrade,
            Self::Handshake(_) => Handshake::NotAgreed,
        }
    }
}

/// Makes a tunnel of an accepted connection, within 10 seconds.
///
/// How many of these run at once is the caller's to limit: 64 keep two cores busy with TLS.
pub async fn accept(socket: TcpStream, options: &AcceptOptions) -> Result<Tunnel, AcceptError> {
    let secured = async {
        tune(&socket).map_err(AcceptError::Socket)?;
        let timed = options.allowance.meters.time(HandshakeStep::Tls);
        let tls = timeout(STEP_TIMEOUT, options.tls.accept(socket)).await;
        drop(timed);
        let tls = tls
            .map_err(|_| AcceptError::StepTimeout { step: Step::Tls })?
            .map_err(AcceptError::Tls)?;
        let exporter = exporter(tls.get_ref().1).map_err(|error| AcceptError::Tls(std::io::Error::other(error)))?;
        steps(tls, Some(exporter), options).await
    };
    in_time(Box::pin(secured), &options.allowance.meters).await
}

/// As [`accept`], where a server before the hub ended TLS: what comes is in the clear, and the handshake is bound to no
/// connection. That server reads the tunnel; both sides prove their keys all the same.
pub async fn accept_plain(socket: TcpStream, options: &AcceptOptions) -> Result<Tunnel, AcceptError> {
    let plain = async {
        tune(&socket).map_err(AcceptError::Socket)?;
        steps(socket, None, options).await
    };
    in_time(Box::pin(plain), &options.allowance.meters).await
}

async fn in_time(
    steps: impl Future<Output = Result<Tunnel, AcceptError>>,
    meters: &Meters,
) -> Result<Tunnel, AcceptError> {
    let accepted = timeout(HANDSHAKE_TIMEOUT, steps).await;
    let accepted = accepted.unwrap_or(Err(AcceptError::Timeout));
    let end = accepted.as_ref().err().map_or(Handshake::Agreed, AcceptError::end);
    meters.shook_hands(end);
    accepted
}

async fn steps<S>(socket: S, exporter: Option<[u8; 32]>, options: &AcceptOptions) -> Result<Tunnel, AcceptError>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let timed = options.allowance.meters.time(HandshakeStep::Upgrade);
    let upgrade = accept_hdr_async_with_config(socket, only_tunnel, Some(websocket_config()));
    let upgrade = timeout(STEP_TIMEOUT, upgrade)
        .await
        .map_err(|_| AcceptError::StepTimeout { step: Step::Upgrade })?;
    drop(timed);
    let mut socket = upgrade.map_err(|error| AcceptError::Upgrade(Box::new(error)))?;
    let endpoints = options.endpoints.borrow().clone();
    let us = Introduction {
        key: &options.hub_key,
        version: &options.version,
        cluster: "",
        epoch: 0,
        server_id: &options.server_id,
        endpoints: &endpoints,
        exporter,
        spread: options.keys.spread(),
        held: &[],
        instance: "",
        token: &Token::default(),
    };
    let timed = options.allowance.meters.time(HandshakeStep::Agreement);
    let agreed = as_hub(&mut socket, &us, &*options.keys).await;
    drop(timed);
    let agreed = agreed.map_err(AcceptError::Handshake)?;
    Ok(start(socket, agreed, options.allowance.clone()))
}

#[expect(clippy::result_large_err, reason = "the form of tungstenite's callback")]
fn only_tunnel(request: &Request, mut response: Response) -> Result<Response, ErrorResponse> {
    if request.uri().path() == PATH {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        response.headers_mut().insert(TIME_HEADER, now.as_secs().into());
        return Ok(response);
    }
    let mut refusal = ErrorResponse::new(Some("nothing here but /tunnel\n".to_owned()));
    *refusal.status_mut() = StatusCode::NOT_FOUND;
    Err(refusal)
}
