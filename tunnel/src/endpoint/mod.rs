//! A connection enters by one of two doors, [`connect`] or [`accept`], and leaves as a [`Tunnel`].
//!
//! A tunnel comes in four parts that usually go to different tasks: who the [`peer`](Tunnel::peer) is, an
//! [`Opener`] for streams of ours, [`Incoming`] for the peer's, and the [`Session`] that keeps it alive.
//! Which of several tunnels of a cluster counts, and when to dial again, is the caller's matter.
//!
//! ```no_run
//! # use std::{sync::Arc, time::Duration};
//! # use flotilla_tunnel as tunnel;
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! # let (hub_key, agent_key) = (Arc::new(tunnel::SecretKey::generate()?), Arc::new(tunnel::SecretKey::generate()?));
//! # let (pins, registered, epoch) = (vec![hub_key.public()], agent_key.public(), 1);
//! // The hub: one task per accepted connection.
//! let keys = move |cluster: &str| (cluster == "north").then(|| vec![registered]);
//! let options = tunnel::AcceptOptions::new(hub_key, Arc::new(keys))?;
//! let (socket, _) = tokio::net::TcpListener::bind("0.0.0.0:8443").await?.accept().await?;
//! let hub = tunnel::accept(socket, &options).await?;
//! let stream = hub.opener.open(tunnel::TargetClass::Deliver, "", Duration::from_secs(5)).await?;
//!
//! // The agent: one task per stream.
//! let options = tunnel::ConnectOptions::new("wss://hub:8443", pins, "north", agent_key, epoch);
//! let mut agent = tunnel::connect(&options).await?;
//! while let Some(wish) = agent.incoming.next().await {
//!     match wish.open.class {
//!         tunnel::TargetClass::Deliver => drop(wish.responder.accept()?),
//!         _ => wish.responder.refuse(tunnel::OpenCode::NotAllowed, "only deliveries are taken here"),
//!     }
//! }
//! # drop(stream);
//! # Ok(())
//! # }
//! ```

pub mod accept;
pub mod connect;

mod dial;
mod incoming;
mod opener;
mod session;
mod step;
mod target;

#[cfg(test)]
mod memory_tests;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod way_tests;

pub use dial::{DialError, addresses};
pub use incoming::{Incoming, IncomingOpen, Responder};
pub use opener::{Grant, OpenError, Opener};
pub use session::Session;
pub use step::Step;

use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite};
use tokio_tungstenite::WebSocketStream;
use tracing::Instrument as _;

use crate::allowance::Allowance;
use crate::driver::drive;
use crate::handshake::Agreed;
use crate::identity::PublicKey;
use crate::shared::Shared;

/// Who is at the other end, proven in the handshake.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PeerInfo {
    /// The agent's cluster; empty when the peer is the hub.
    pub cluster: String,
    /// The agent's session epoch: of two tunnels of one cluster the higher one counts. 0 for a hub.
    pub epoch: u64,
    /// Version of the peer's program, as it says.
    pub version: String,
    /// The key it proved to hold.
    pub key: PublicKey,
    /// What both sides signed, in short: another one in each tunnel.
    pub binding: [u8; 32],
    /// Which process of its cluster's agents this is, as it says; empty from older ones, and when the peer is a hub.
    pub instance: String,
    /// Which replica of the hub this is; empty when the peer is an agent.
    pub server_id: String,
    /// Where agents reach hubs, this one too; may be empty, or name one address twice, which leads to two hubs then.
    pub endpoints: Vec<String>,
    /// Over what time the agents of this hub are to come back when they lose it; zero when the peer is an agent.
    pub spread: Duration,
}

/// A tunnel after its handshake.
pub struct Tunnel {
    /// Who is at the other end.
    pub peer: PeerInfo,
    /// Opens streams towards the peer.
    pub opener: Opener,
    /// Streams the peer opens.
    pub incoming: Incoming,
    /// Dropping it closes the tunnel.
    pub session: Session,
    /// The hub's clock when it answered, in seconds since 1970, as it or a server before it said; `None` at the hub, and from
    /// older ones.
    pub hub_time: Option<i64>,
}

fn start<S>(socket: WebSocketStream<S>, agreed: Agreed, allowance: Allowance) -> Tunnel
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let (shared, opens) = Shared::new(agreed.terms, allowance);
    tokio::spawn(drive(socket, Arc::clone(&shared)).instrument(tracing::info_span!("tunnel")));
    Tunnel {
        peer: agreed.peer,
        opener: Opener::new(Arc::clone(&shared)),
        incoming: Incoming::new(Arc::clone(&shared), opens),
        session: Session::new(shared),
        hub_time: None,
    }
}
