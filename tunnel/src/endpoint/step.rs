//! Steps on the way to a tunnel that each have a time of their own.

use std::fmt;

/// One step that waits for the other side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// The proxy's answer to CONNECT.
    Proxy,
    /// The TLS handshake.
    Tls,
    /// From HTTP to a WebSocket.
    Upgrade,
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Proxy => "the proxy's answer",
            Self::Tls => "TLS",
            Self::Upgrade => "upgrade",
        })
    }
}
