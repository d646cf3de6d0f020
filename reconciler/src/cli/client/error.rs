//! Why there is no answer, and what to do about it.

use std::io;
use std::process::ExitCode;

use http::StatusCode;

use super::Server;
use crate::cli::{exit, output};

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub(in crate::cli) enum ClientError {
    /// Nobody answers there.
    #[error("no hub answers at {server}")]
    Unreachable {
        /// Where.
        server: Server,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// The answer did not come in time.
    #[error("the hub at {server} gave no answer within {seconds} s")]
    TooLong {
        /// Where.
        server: Server,
        /// How long it had.
        seconds: u64,
    },
    /// The connection broke before the answer or in the middle of it.
    #[error("the connection to the hub at {server} was lost")]
    Lost {
        /// Where.
        server: Server,
    },
    /// Something answers there, and it is not a hub.
    #[error("what answers at {server} is no hub's read-only API: {why}")]
    NotAHub {
        /// Where.
        server: Server,
        /// What it did.
        why: String,
    },
    /// The hub says no, in its own words.
    #[error("{message}")]
    Refused {
        /// Its code.
        status: StatusCode,
        /// Its words.
        message: String,
    },
}

impl ClientError {
    /// Whether the same question may be answered a little later.
    pub(in crate::cli) fn may_pass(&self) -> bool {
        match self {
            Self::Unreachable { .. } | Self::TooLong { .. } | Self::Lost { .. } => true,
            Self::NotAHub { .. } => false,
            Self::Refused { status, .. } => is_outage(*status),
        }
    }

    /// Whether it is about the hub and not about what was asked: another question has no answer either.
    #[cfg(feature = "hub")]
    pub(super) fn is_of_hub(&self) -> bool {
        match self {
            Self::Unreachable { .. } | Self::TooLong { .. } | Self::NotAHub { .. } => true,
            Self::Lost { .. } | Self::Refused { .. } => false,
        }
    }

    fn hint(&self) -> Option<String> {
        match self {
            Self::Unreachable { server, source } if source.kind() == io::ErrorKind::PermissionDenied => {
                Some(format!("{server} is open to the user that the hub runs as"))
            }
            Self::Unreachable { .. } => {
                Some("start the hub with `flotilla hub`, or name its --api address with --server or FLOTILLA_SERVER".to_owned())
            }
            Self::TooLong { .. } => Some("give it more time with --timeout, or look at the hub's log".to_owned()),
            Self::Lost { server } => Some(format!("look at the hub's log, and whether it is the hub that answers at {server}")),
            Self::NotAHub { .. } => Some(
                "--server takes the address of the hub's --api, which is http://127.0.0.1:7070 unless it was changed; the port where agents dial speaks TLS and is another"
                    .to_owned(),
            ),
            Self::Refused { .. } => None,
        }
    }

    fn code(&self) -> u8 {
        match self {
            Self::Refused { status, .. } if !is_outage(*status) => 1,
            _ => exit::UNAVAILABLE,
        }
    }
}

/// Whether an answer says nothing of what was asked, and another one may come later.
pub(in crate::cli) fn is_outage(status: StatusCode) -> bool {
    status.is_server_error() || status == StatusCode::TOO_MANY_REQUESTS
}

/// Says why there is no answer, and what to do about it.
pub(in crate::cli) fn failed(error: &ClientError) -> ExitCode {
    let line = output::visible(&crate::fault::line(error));
    output::tell(&format!("error: {line}\n"));
    if let Some(hint) = error.hint() {
        output::tell(&format!("hint: {hint}\n"));
    }
    ExitCode::from(error.code())
}
