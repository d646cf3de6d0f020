//! Streams enter at one named peer and leave at another; a delivery goes on to `reconciler::agent`, to be applied.
//!
//! All streams share one WebSocket. The agent dials, both sides prove who they are, and from then on either may
//! open streams: the hub for deliveries and API server requests, the agent for its reports. What a stream
//! carries is not known here, nor is which cluster exists, which tunnel of a cluster counts, or when to dial
//! again; callers decide that from [`PeerInfo`], [`ConnectError`], [`CloseReason`] and [`backoff`].
//!
//! In reading order: [`frame`] is the bytes of one message, [`mux`] the pure state machine over them with [`pool`] and
//! [`allowance`] for what it may take, [`identity`] who may speak, [`endpoint`] the doors, [`connect`] and [`accept`] (or
//! [`accept_plain`] behind a server that ends TLS), [`proxy`] the way to one, and [`meters`] what is counted. The wire is
//! written down in `docs/protocol.md`.
//!
//! ```text
//!   agent                                             hub
//!   connect ──TCP, TLS 1.3, mostly to a pinned key──▶ accept
//!           ◀── HELLO(nonce) ── HELLO(signature) ──▶
//!           ◀── AUTH(signature) ──
//!   Incoming ◀───────── OPEN deliver ──────────────── Opener
//!   Opener ─────────── OPEN report ─────────────────▶ Incoming
//! ```
#![warn(missing_docs)]

pub mod allowance;
pub mod backoff;
pub mod endpoint;
pub mod frame;
#[cfg(any(test, fuzzing))]
pub mod fuzz;
pub mod identity;
pub mod limits;
pub mod meters;
pub mod mux;
pub mod pool;
pub mod proxy;

mod driver;
mod handshake;
mod shared;
mod stream;
mod tls;

pub use allowance::Allowance;
pub use endpoint::accept::{AcceptError, AcceptOptions, KeyLookup, Stranger, accept, accept_plain};
pub use endpoint::connect::{ConnectError, ConnectOptions, HubTls, connect};
pub use endpoint::{
    DialError, Grant, Incoming, IncomingOpen, OpenError, Opener, PeerInfo, Responder, Session, Step, Tunnel,
};
pub use frame::{GoAway, GoAwayReason, Open, OpenCode, TargetClass, Token};
pub use handshake::{HandshakeError, NOT_REGISTERED};
pub use identity::{KeyError, PublicKey, SecretKey, TokenProof, fresh_bytes};
pub use proxy::{AskError, Bypass, Proxy, ProxyError};
pub use shared::CloseReason;
pub use stream::{ReadHalf, StreamError, TunnelStream, WriteHalf};
pub use tls::{Authorities, TlsError};
