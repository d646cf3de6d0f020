//! Two HELLOs and an AUTH enter, and what both sides may rely on leaves.
//!
//! ```text
//!  hub   ── HELLO(nonce) ────────────────▶ agent
//!  hub   ◀── HELLO(nonce, signature) ───── agent
//!  hub   ── AUTH(key, signature) ────────▶ agent
//! ```

mod version;

#[cfg(any(test, fuzzing))]
pub(crate) mod fuzz;
#[cfg(test)]
mod fuzz_tests;
#[cfg(test)]
mod tests;

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use futures_util::{SinkExt as _, StreamExt as _};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::timeout;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::{self, Message};

use crate::backoff::random;
use crate::endpoint::PeerInfo;
use crate::endpoint::accept::{KeyLookup, Stranger};
use crate::frame::{Auth, Frame, FrameError, GoAway, GoAwayReason, Hello, Kind, ProtocolRange, Token, decode, encode};
use crate::identity::{KeyError, Proof, PublicKey, Role, SecretKey, TokenProof, fresh_nonce};
use crate::limits::{
    CLOSE_TIMEOUT, CLUSTER_NAME_BYTES_MAX, ENDPOINT_BYTES_MAX, ENDPOINTS_MAX, FRAME_PAYLOAD_BYTES, JSON_BYTES_MAX,
    STEP_TIMEOUT, STREAMS_MAX, VERSION_CHARS_MAX, WINDOW_BYTES_FIRST,
};
use crate::mux::Terms;

/// What an agent is told that the hub does not know. Whether its name exists is not its business.
pub const NOT_REGISTERED: &str = "cluster is not registered or key does not fit";

/// Why two sides did not come to terms.
#[derive(Debug, thiserror::Error)]
pub enum HandshakeError {
    /// The peer took longer than a step may.
    #[error("peer did not send its {awaited:?} in time")]
    Timeout {
        /// What was waited for.
        awaited: Kind,
    },
    /// The WebSocket failed.
    #[error("connection failed during the handshake")]
    Socket(#[source] Box<tungstenite::Error>),
    /// The peer ended the connection without a reason.
    #[error("peer closed the connection before its {awaited:?}")]
    Closed {
        /// What was waited for.
        awaited: Kind,
    },
    /// Not a frame, or not a sound one.
    #[error("peer sent an invalid frame")]
    Frame(#[source] FrameError),
    /// A frame that has no place in a handshake, or a text message.
    #[error("peer sent something else than its {awaited:?}")]
    Unexpected {
        /// What was waited for.
        awaited: Kind,
    },
    /// The peer refused us.
    #[error("refused by the peer: {} {}", .0.reason, .0.text)]
    Refused(GoAway),
    /// The two programs do not go together.
    #[error("{text}")]
    Version {
        /// Which versions both have, and why they do not.
        text: String,
        /// Whose agent says it is; empty at the agent.
        cluster: String,
    },
    /// No such cluster is registered.
    #[error("cluster {cluster:?} is not registered")]
    UnknownCluster {
        /// The name the agent gave.
        cluster: String,
        /// What it is told beyond that it is refused.
        told: Option<String>,
    },
    /// The agent's signature fits none of the cluster's keys.
    #[error("agent did not prove to hold a key of cluster {cluster:?}")]
    AgentNotProven {
        /// The name the agent gave.
        cluster: String,
        /// What it is told beyond that it is refused.
        told: Option<String>,
    },
    /// The hub's signature is not of a pinned key.
    #[error("hub did not prove to hold a pinned key")]
    HubNotProven,
    /// The hub says that somebody else ended TLS, which a pinned connection does not allow.
    #[error("hub did not bind the handshake to this TLS connection")]
    NotBound,
    /// A server in between ends TLS and begins it anew towards the hub.
    #[error(
        "a server in between ends TLS and speaks TLS with the hub again; hint: let it pass the tunnel on in the clear, to the hub's --listen-plain"
    )]
    BoundElsewhere,
    /// The agent has a tunnel to this very hub.
    #[error("there is a tunnel to hub {server_id} already")]
    AlreadyHeld {
        /// Which.
        server_id: String,
    },
    /// No nonce could be made.
    #[error("failed to make a nonce")]
    Nonce(#[source] KeyError),
}

/// What a handshake is made with, on either side.
pub(crate) struct Introduction<'a> {
    pub(crate) key: &'a SecretKey,
    pub(crate) version: &'a str,
    /// The agent's own; empty at the hub.
    pub(crate) cluster: &'a str,
    pub(crate) epoch: u64,
    pub(crate) server_id: &'a str,
    pub(crate) endpoints: &'a [String],
    pub(crate) exporter: Option<[u8; 32]>,
    /// Over what time agents that lost their tunnel are to come back; the hub's to say.
    pub(crate) spread: Duration,
    /// Hubs by their ids that the agent has a tunnel to.
    pub(crate) held: &'a [String],
    /// Which process of its cluster's agents; empty at the hub.
    pub(crate) instance: &'a str,
    /// A bootstrap token; mostly none.
    pub(crate) token: &'a Token,
}

/// What both sides may rely on.
pub(crate) struct Agreed {
    pub(crate) terms: Terms,
    pub(crate) peer: PeerInfo,
}

/// The hub's side. `known` gives the keys registered for a name; none means the name is unknown.
pub(crate) async fn as_hub<S: AsyncRead + AsyncWrite + Unpin>(
    socket: &mut WebSocketStream<S>,
    us: &Introduction<'_>,
    known: &dyn KeyLookup,
) -> Result<Agreed, HandshakeError> {
    let outcome = hub_steps(socket, us, known).await;
    if let Err(error) = &outcome {
        refuse(socket, error).await;
    }
    outcome
}

async fn hub_steps<S: AsyncRead + AsyncWrite + Unpin>(
    socket: &mut WebSocketStream<S>,
    us: &Introduction<'_>,
    known: &dyn KeyLookup,
) -> Result<Agreed, HandshakeError> {
    let ours = hello(us)?;
    let (hub_nonce, endpoints, server_id) = (ours.nonce, ours.endpoints.clone(), ours.server_id.clone());
    send(socket, Frame::Hello(Box::new(ours)), Kind::Hello).await?;
    let theirs = receive_hello(socket).await?;
    check_version(Role::Hub, us.version, &theirs)?;
    let proof = Proof {
        hub_nonce,
        agent_nonce: theirs.nonce,
        cluster: &theirs.cluster,
        epoch: theirs.epoch,
        exporter: us.exporter,
        server_id: &server_id,
        endpoints: &endpoints,
    };
    let signature = STANDARD.decode(&theirs.signature).unwrap_or_default();
    let keys = if theirs.cluster.is_empty() {
        Vec::new()
    } else {
        known.keys_of(&theirs.cluster)
    };
    let proven = keys.iter().find(|key| proof.verify(Role::Agent, key, &signature));
    let Some(key) = proven.copied() else {
        let offered = theirs.key.parse().ok();
        let key = offered.filter(|key| proof.verify(Role::Agent, key, &signature));
        let stranger = Stranger {
            cluster: &theirs.cluster,
            key,
            token: key.and_then(|key| TokenProof::heard(&theirs.token.0, &proof, &key)),
        };
        let told = known.stranger(&stranger);
        let cluster = theirs.cluster;
        return Err(match keys.is_empty() {
            true => HandshakeError::UnknownCluster { cluster, told },
            false => HandshakeError::AgentNotProven { cluster, told },
        });
    };
    let auth = Auth {
        key: *us.key.public().as_bytes(),
        signature: proof.sign(Role::Hub, us.key),
        spread_ms: u32::try_from(us.spread.as_millis()).unwrap_or(u32::MAX),
    };
    send(socket, Frame::Auth(auth), Kind::Auth).await?;
    let binding = proof.binding();
    Ok(agree(Role::Hub, *theirs, (key, binding), Duration::ZERO))
}

/// The agent's side. `pins` are the hub's keys; with `us.exporter` the hub must have ended TLS itself.
pub(crate) async fn as_agent<S: AsyncRead + AsyncWrite + Unpin>(
    socket: &mut WebSocketStream<S>,
    us: &Introduction<'_>,
    pins: &[PublicKey],
) -> Result<Agreed, HandshakeError> {
    let outcome = agent_steps(socket, us, pins).await;
    if let Err(error) = &outcome {
        refuse(socket, error).await;
    }
    outcome
}

async fn agent_steps<S: AsyncRead + AsyncWrite + Unpin>(
    socket: &mut WebSocketStream<S>,
    us: &Introduction<'_>,
    pins: &[PublicKey],
) -> Result<Agreed, HandshakeError> {
    let theirs = receive_hello(socket).await?;
    check_version(Role::Agent, us.version, &theirs)?;
    if us.exporter.is_some() && !theirs.channel_binding {
        return Err(HandshakeError::NotBound);
    }
    // Before it is known whose tunnel this is, so that the hub leaves the one that stands alone.
    if !theirs.server_id.is_empty() && us.held.contains(&theirs.server_id) {
        return Err(HandshakeError::AlreadyHeld {
            server_id: theirs.server_id.clone(),
        });
    }
    // The proofs would not fit, and say less of why.
    if us.exporter.is_none() && theirs.channel_binding {
        return Err(HandshakeError::BoundElsewhere);
    }
    let mut ours = hello(us)?;
    let proof = Proof {
        hub_nonce: theirs.nonce,
        agent_nonce: ours.nonce,
        cluster: us.cluster,
        epoch: us.epoch,
        exporter: us.exporter,
        server_id: &theirs.server_id,
        endpoints: &theirs.endpoints,
    };
    ours.signature = STANDARD.encode(proof.sign(Role::Agent, us.key));
    ours.key = us.key.public().to_string();
    ours.instance = us.instance.to_owned();
    if !us.token.is_empty() {
        ours.token = Token(TokenProof::new(us.token, &proof, &us.key.public()).text());
    }
    send(socket, Frame::Hello(Box::new(ours)), Kind::Hello).await?;
    let Frame::Auth(auth) = receive(socket, Kind::Auth).await? else {
        return Err(HandshakeError::Unexpected { awaited: Kind::Auth });
    };
    let key = PublicKey::from_bytes(auth.key);
    if !pins.contains(&key) || !proof.verify(Role::Hub, &key, &auth.signature) {
        return Err(HandshakeError::HubNotProven);
    }
    let spread = Duration::from_millis(auth.spread_ms.into());
    let binding = proof.binding();
    Ok(agree(Role::Agent, *theirs, (key, binding), spread))
}

fn hello(us: &Introduction<'_>) -> Result<Hello, HandshakeError> {
    Ok(Hello {
        protocol: ProtocolRange::OURS,
        features: Vec::new(),
        max_frame: FRAME_PAYLOAD_BYTES as u32,
        initial_window: WINDOW_BYTES_FIRST,
        max_streams: STREAMS_MAX as u32,
        cluster: us.cluster.to_owned(),
        version: us.version.chars().take(VERSION_CHARS_MAX).collect(),
        epoch: us.epoch,
        nonce: fresh_nonce().map_err(HandshakeError::Nonce)?,
        server_id: us.server_id.chars().take(CLUSTER_NAME_BYTES_MAX).collect(),
        endpoints: fitting(us.endpoints),
        channel_binding: us.exporter.is_some(),
        signature: String::new(),
        key: String::new(),
        instance: String::new(),
        token: Token::default(),
    })
}

/// Endpoints are an offer; those that make a HELLO too large are not made.
fn fitting(endpoints: &[String]) -> Vec<String> {
    let short = endpoints.iter().filter(|url| url.len() <= ENDPOINT_BYTES_MAX);
    short.take(ENDPOINTS_MAX).cloned().collect()
}

fn check_version(role: Role, our_version: &str, theirs: &Hello) -> Result<u16, HandshakeError> {
    let ours = ProtocolRange::OURS;
    let (we, they) = match role {
        Role::Hub => ("hub", "agent"),
        Role::Agent => ("agent", "hub"),
    };
    let refusal = |text| HandshakeError::Version {
        text,
        cluster: theirs.cluster.clone(),
    };
    let their_version: String = theirs.version.chars().take(VERSION_CHARS_MAX).collect();
    let common = ours.common(theirs.protocol).ok_or_else(|| {
        refusal(format!(
            "{we} {our_version} speaks protocol {} to {}, {they} {their_version} speaks {} to {}",
            ours.min, ours.max, theirs.protocol.min, theirs.protocol.max
        ))
    })?;
    match version::too_far_apart(our_version, &theirs.version) {
        None => Ok(common),
        Some(why) => Err(refusal(format!(
            "{we} has version {our_version} and {they} has version {their_version}; {why}"
        ))),
    }
}

fn agree(role: Role, theirs: Hello, (key, binding): (PublicKey, [u8; 32]), spread: Duration) -> Agreed {
    let terms = Terms {
        role,
        frame_bytes_in: FRAME_PAYLOAD_BYTES,
        frame_bytes_out: FRAME_PAYLOAD_BYTES.min(theirs.max_frame as usize),
        window_in: WINDOW_BYTES_FIRST,
        window_out: theirs.initial_window,
        streams_max: STREAMS_MAX.min(theirs.max_streams as usize),
        ping_jitter: random(),
    };
    let peer = PeerInfo {
        cluster: theirs.cluster,
        epoch: theirs.epoch,
        version: theirs.version,
        key,
        binding,
        instance: theirs.instance,
        server_id: theirs.server_id,
        endpoints: theirs.endpoints,
        spread,
    };
    Agreed { terms, peer }
}

async fn send<S: AsyncRead + AsyncWrite + Unpin>(
    socket: &mut WebSocketStream<S>,
    frame: Frame,
    kind: Kind,
) -> Result<(), HandshakeError> {
    let message = encode(&frame).map_err(HandshakeError::Frame)?;
    let sent = timeout(STEP_TIMEOUT, socket.send(Message::Binary(message))).await;
    sent.map_err(|_| HandshakeError::Timeout { awaited: kind })?
        .map_err(|error| HandshakeError::Socket(Box::new(error)))
}

async fn receive_hello<S: AsyncRead + AsyncWrite + Unpin>(
    socket: &mut WebSocketStream<S>,
) -> Result<Box<Hello>, HandshakeError> {
    match receive(socket, Kind::Hello).await? {
        Frame::Hello(hello) => Ok(hello),
        _ => Err(HandshakeError::Unexpected { awaited: Kind::Hello }),
    }
}

async fn receive<S: AsyncRead + AsyncWrite + Unpin>(
    socket: &mut WebSocketStream<S>,
    awaited: Kind,
) -> Result<Frame, HandshakeError> {
    let frame = timeout(STEP_TIMEOUT, next_frame(socket, awaited)).await;
    match frame.map_err(|_| HandshakeError::Timeout { awaited })?? {
        Frame::GoAway(away) => Err(HandshakeError::Refused(away)),
        frame => Ok(frame),
    }
}

async fn next_frame<S: AsyncRead + AsyncWrite + Unpin>(
    socket: &mut WebSocketStream<S>,
    awaited: Kind,
) -> Result<Frame, HandshakeError> {
    loop {
        let message = socket.next().await.ok_or(HandshakeError::Closed { awaited })?;
        match message.map_err(|error| HandshakeError::Socket(Box::new(error)))? {
            Message::Binary(bytes) => {
                if let Some(frame) = decode(bytes, JSON_BYTES_MAX).map_err(HandshakeError::Frame)? {
                    return Ok(frame);
                }
            }
            Message::Ping(_) | Message::Pong(_) => {}
            Message::Close(_) => return Err(HandshakeError::Closed { awaited }),
            Message::Text(_) | Message::Frame(_) => return Err(HandshakeError::Unexpected { awaited }),
        }
    }
}

/// Tells the peer why, as far as that is its business. Whether a name exists is not.
async fn refuse<S: AsyncRead + AsyncWrite + Unpin>(socket: &mut WebSocketStream<S>, error: &HandshakeError) {
    let away = match error {
        HandshakeError::UnknownCluster { told, .. } | HandshakeError::AgentNotProven { told, .. } => {
            let text = told.as_deref().unwrap_or(NOT_REGISTERED);
            GoAway::new(GoAwayReason::IdentityRefused, text)
        }
        HandshakeError::HubNotProven | HandshakeError::NotBound | HandshakeError::BoundElsewhere => {
            GoAway::new(GoAwayReason::IdentityRefused, error.to_string())
        }
        HandshakeError::Version { text, .. } => GoAway::new(GoAwayReason::Version, text),
        HandshakeError::Frame(_) | HandshakeError::Unexpected { .. } => {
            GoAway::new(GoAwayReason::ProtocolError, error.to_string())
        }
        HandshakeError::Timeout { .. }
        | HandshakeError::Socket(_)
        | HandshakeError::Closed { .. }
        | HandshakeError::Refused(_)
        | HandshakeError::AlreadyHeld { .. }
        | HandshakeError::Nonce(_) => return,
    };
    if let Ok(message) = encode(&Frame::GoAway(away)) {
        // The peer's own error is what counts; it may be gone already.
        let _ = timeout(CLOSE_TIMEOUT, async {
            socket.send(Message::Binary(message)).await?;
            socket.close(None).await
        })
        .await;
    }
}
