//! What hub and agent say to each other on the streams of the tunnel, and when an agent believes it.
//!
//! Every message is a length (u32, big-endian) and that many bytes of JSON; unknown fields are ignored,
//! so that either side may be newer. Frames, keys and sockets are deliberately not here: they are the
//! tunnel's.

mod accept;
mod agent_counts;
mod caller;
mod dependants;
mod envelope;
mod facts;
mod framing;
#[cfg(any(feature = "hub", feature = "agent"))]
pub(crate) mod headers;
mod intake;
mod modes;
mod peer;
mod ping;
mod report;
#[cfg(test)]
mod skew_tests;

pub use accept::{Accepted, Refusal, accept};
pub use agent_counts::AgentCounts;
pub use caller::{Caller, NotImpersonated};
pub use dependants::{ClaimVolume, Counted, Dependants, DependantsQuestion, ObjectDependants};
pub use envelope::{ContentRequest, Deliver, DeliverReply, Envelope, EnvelopeUnit, Held, LineageGrant, list_digest};
pub use facts::{Facts, NodeFacts, NodeStatistics};
pub use framing::{FramingError, read_message, read_message_within, write_message};
pub use intake::Intake;
#[cfg(feature = "hub")]
pub(crate) use modes::takes_mode;
pub use peer::{
    Hop, HopError, PeerWord, StandingTunnel, TUNNEL_TARGET, TunnelEnd, TunnelRefusal, TunnelSeen, TunnelWord, WITH_ASKS,
};
pub use ping::{PING_TARGET, Pong};
pub use report::{
    Corrections, Counts, FieldDrift, Health, ObjectDrift, ObjectResult, ObjectState, Report, UnitReport, UnitState,
    enforcing,
};
