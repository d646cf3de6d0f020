//! The first frame each way: what a peer speaks, grants and is.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};

use crate::limits::{
    CLUSTER_NAME_BYTES_MAX, ENDPOINTS_MAX, FRAME_PAYLOAD_BYTES_MAX, FRAME_PAYLOAD_BYTES_MIN, INSTANCE_BYTES_MAX,
    TOKEN_BYTES_MAX, WINDOW_BYTES_MAX, WINDOW_BYTES_MIN,
};

/// 32 random bytes, as base64 on the wire: a signature over it is good for one handshake only.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Nonce(pub [u8; 32]);

impl TryFrom<String> for Nonce {
    type Error = &'static str;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        let bytes = STANDARD.decode(text).map_err(|_| "nonce is not base64")?;
        bytes.try_into().map(Self).map_err(|_| "nonce is not 32 bytes")
    }
}

impl From<Nonce> for String {
    fn from(nonce: Nonce) -> Self {
        STANDARD.encode(nonce.0)
    }
}

/// Lowest and highest protocol version a peer speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProtocolRange {
    /// Lowest version.
    pub min: u16,
    /// Highest version.
    pub max: u16,
}

impl ProtocolRange {
    /// What this build speaks.
    pub const OURS: Self = Self { min: 1, max: 1 };

    /// The highest version both speak.
    #[must_use]
    pub fn common(self, other: Self) -> Option<u16> {
        let version = self.max.min(other.max);
        (version >= self.min && version >= other.min).then_some(version)
    }
}

/// Body of HELLO. Fields a peer does not know are ignored.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hello {
    /// Versions the sender speaks.
    pub protocol: ProtocolRange,
    /// Optional abilities by name; none exist yet.
    #[serde(default)]
    pub features: Vec<String>,
    /// Largest payload the sender takes, in bytes.
    pub max_frame: u32,
    /// Credit every new stream towards the sender starts with, in bytes.
    pub initial_window: u32,
    /// Streams the sender is willing to hold at once.
    pub max_streams: u32,
    /// The cluster's name in an agent's HELLO; empty in a hub's.
    #[serde(default)]
    pub cluster: String,
    /// Version of the sender's program, for people.
    #[serde(default)]
    pub version: String,
    /// Rises with every tunnel an agent opens, so that the newest can win; 0 in a hub's HELLO.
    #[serde(default)]
    pub epoch: u64,
    /// The sender's challenge.
    pub nonce: Nonce,
    /// Which replica of the hub this is; empty in an agent's HELLO.
    #[serde(default)]
    pub server_id: String,
    /// Where else the hub can be reached, as URLs; may be empty.
    #[serde(default)]
    pub endpoints: Vec<String>,
    /// True in a hub's HELLO when it ended TLS itself, so that signatures include the TLS exporter.
    #[serde(default)]
    pub channel_binding: bool,
    /// The agent's proof, base64 of 64 bytes; empty in a hub's HELLO, whose proof is AUTH.
    #[serde(default)]
    pub signature: String,
    /// The key that `signature` was made with, as text, so that a hub can tell callers that it does not know yet apart;
    /// empty in a hub's HELLO.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub key: String,
    /// Which process of the cluster's agents this is: the same for all its dials; empty in a hub's HELLO.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub instance: String,
    /// That an agent that is not registered yet has a bootstrap token: base64 of 32 bytes; never shown.
    #[serde(default, skip_serializing_if = "Token::is_empty")]
    pub token: Token,
}

/// A secret word. Its `Debug` shows none of it.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Token(pub String);

impl Token {
    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.is_empty() { "none" } else { "…" })
    }
}

impl Hello {
    /// Says what is out of range, before any of it is used.
    pub(crate) fn check(&self) -> Result<(), &'static str> {
        let frame_range = FRAME_PAYLOAD_BYTES_MIN as u32..=FRAME_PAYLOAD_BYTES_MAX as u32;
        if self.protocol.min > self.protocol.max {
            return Err("protocol range is upside down");
        }
        if !frame_range.contains(&self.max_frame) {
            return Err("max_frame is out of range");
        }
        if !(WINDOW_BYTES_MIN..=WINDOW_BYTES_MAX).contains(&self.initial_window) {
            return Err("initial_window is out of range");
        }
        if self.max_streams == 0 {
            return Err("max_streams is 0");
        }
        if self.cluster.len() > CLUSTER_NAME_BYTES_MAX {
            return Err("cluster name is too long");
        }
        if self.instance.len() > INSTANCE_BYTES_MAX {
            return Err("instance is too long");
        }
        if self.token.0.len() > TOKEN_BYTES_MAX {
            return Err("token is too long");
        }
        if self.endpoints.len() > ENDPOINTS_MAX {
            return Err("too many endpoints");
        }
        Ok(())
    }
}
