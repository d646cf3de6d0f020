//! The enums of the wire. Peers decide by these and never by the text beside them.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Why a stream was refused or ended.
///
/// The hub maps these to HTTP answers without reading text: `NotAllowed` is 403, `DialTimeout` 504, `Limit`
/// 429, `Gone` 503 and the others 502.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u16)]
pub enum OpenCode {
    /// The target answered and does not want this connection.
    Refused = 1,
    /// The receiver's own policy says no, or it does not know the target class.
    NotAllowed = 2,
    /// The target did not answer in time.
    DialTimeout = 3,
    /// No way to the target: name, route or network.
    Unreachable = 4,
    /// A limit of the receiver is reached, or the sender exceeded its credit.
    Limit = 5,
    /// Something is wrong at the sender of this code, or the stream's rules were broken.
    Internal = 6,
    /// The sender of this code no longer wants the stream.
    Cancelled = 7,
    /// The tunnel is closing or gone.
    Gone = 8,
}

impl OpenCode {
    /// Every code, in the order of its number.
    pub const ALL: [Self; 8] = [
        Self::Refused,
        Self::NotAllowed,
        Self::DialTimeout,
        Self::Unreachable,
        Self::Limit,
        Self::Internal,
        Self::Cancelled,
        Self::Gone,
    ];

    /// Its place in [`OpenCode::ALL`].
    pub(crate) fn index(self) -> usize {
        self as usize - 1
    }

    /// A number we do not know comes from a newer peer and is `Internal` to us.
    pub(super) fn from_wire(number: u16) -> Self {
        Self::ALL
            .into_iter()
            .find(|code| *code as u16 == number)
            .unwrap_or(Self::Internal)
    }

    /// The name used in `docs/protocol.md`, logs and metrics.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Refused => "refused",
            Self::NotAllowed => "not-allowed",
            Self::DialTimeout => "dial-timeout",
            Self::Unreachable => "unreachable",
            Self::Limit => "limit",
            Self::Internal => "internal",
            Self::Cancelled => "cancelled",
            Self::Gone => "gone",
        }
    }
}

impl OpenCode {
    /// Its name in metrics.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Refused => "Refused",
            Self::NotAllowed => "NotAllowed",
            Self::DialTimeout => "DialTimeout",
            Self::Unreachable => "Unreachable",
            Self::Limit => "Limit",
            Self::Internal => "Internal",
            Self::Cancelled => "Cancelled",
            Self::Gone => "Gone",
        }
    }
}

impl fmt::Display for OpenCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Why a peer wants no new streams, or refuses the handshake.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u16)]
pub enum GoAwayReason {
    /// The process ends.
    Shutdown = 1,
    /// The hub moves its agents elsewhere; dial again within the given range.
    Drain = 2,
    /// A tunnel with a newer epoch took this one's place.
    Replaced = 3,
    /// The cluster was removed or its key taken away.
    Revoked = 4,
    /// The peer broke the protocol.
    ProtocolError = 5,
    /// Unknown cluster or wrong signature; deliberately one reason for both.
    IdentityRefused = 6,
    /// No protocol version in common; the text names both ranges.
    Version = 7,
    /// A limit is reached; dial again within the given range.
    Overload = 8,
}

impl GoAwayReason {
    /// Every reason, in the order of its number.
    pub const ALL: [Self; 8] = [
        Self::Shutdown,
        Self::Drain,
        Self::Replaced,
        Self::Revoked,
        Self::ProtocolError,
        Self::IdentityRefused,
        Self::Version,
        Self::Overload,
    ];

    /// Its place in [`GoAwayReason::ALL`].
    pub(crate) fn index(self) -> usize {
        self as usize - 1
    }

    /// A number we do not know comes from a newer peer; it still wants us to leave.
    pub(super) fn from_wire(number: u16) -> Self {
        Self::ALL
            .into_iter()
            .find(|reason| *reason as u16 == number)
            .unwrap_or(Self::Shutdown)
    }

    /// The name used in `docs/protocol.md`, logs and metrics.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Shutdown => "shutdown",
            Self::Drain => "drain",
            Self::Replaced => "replaced",
            Self::Revoked => "revoked",
            Self::ProtocolError => "protocol-error",
            Self::IdentityRefused => "identity-refused",
            Self::Version => "version",
            Self::Overload => "overload",
        }
    }
}

impl GoAwayReason {
    /// Its name in metrics.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Shutdown => "Shutdown",
            Self::Drain => "Drain",
            Self::Replaced => "Replaced",
            Self::Revoked => "Revoked",
            Self::ProtocolError => "ProtocolError",
            Self::IdentityRefused => "IdentityRefused",
            Self::Version => "Version",
            Self::Overload => "Overload",
        }
    }
}

impl fmt::Display for GoAwayReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// What kind of thing a stream goes to.
///
/// A class is a promise of the receiver, never a host and port: the sender cannot widen what it means.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
pub enum TargetClass {
    /// Hub to agent: envelopes and contents.
    Deliver,
    /// Agent to hub: what it holds and how it goes.
    Report,
    /// Hub to agent: the cluster's own API server, to be read.
    ApiServer,
    /// Hub to agent: into a container, or a port of one.
    Interactive,
    /// Hub to agent: the cluster's own API server, for the hub's applier.
    Push,
    /// Hub to agent: an address that the agent's own policy lists.
    Dial,
    /// Agent to hub: a key that is to take another's place.
    Keys,
    /// Hub to agent: one question about objects of the cluster, and its answer.
    Look,
    /// Hub to hub: which clusters are connected there, and what they said.
    Peer,
    /// A class of a newer peer, carried as text; receivers refuse it with [`OpenCode::NotAllowed`].
    Unknown(String),
}

impl TargetClass {
    /// The class as it stands in OPEN.
    #[must_use]
    pub fn as_str(&self) -> &str {
        match self {
            Self::Deliver => "deliver",
            Self::Report => "report",
            Self::ApiServer => "apiserver",
            Self::Interactive => "interactive",
            Self::Push => "push",
            Self::Dial => "dial",
            Self::Keys => "keys",
            Self::Look => "look",
            Self::Peer => "peer",
            Self::Unknown(text) => text,
        }
    }
}

impl From<String> for TargetClass {
    fn from(text: String) -> Self {
        match text.as_str() {
            "deliver" => Self::Deliver,
            "report" => Self::Report,
            "apiserver" => Self::ApiServer,
            "interactive" => Self::Interactive,
            "push" => Self::Push,
            "dial" => Self::Dial,
            "keys" => Self::Keys,
            "look" => Self::Look,
            "peer" => Self::Peer,
            _ => Self::Unknown(text),
        }
    }
}

impl From<TargetClass> for String {
    fn from(class: TargetClass) -> Self {
        class.as_str().to_owned()
    }
}

impl fmt::Display for TargetClass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
