//! How an error of a shell wants to be treated, decided where it is born.

use std::time::Duration;

/// What the caller does about an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Trying again will not help until something else changes.
    Terminal,
    /// Try again, not before this long.
    Retry {
        /// The least wait.
        after: Duration,
    },
    /// Newer input made it pointless.
    Superseded,
}

impl Fault {
    /// Try again after a second.
    pub const RETRY_SOON: Self = Self::Retry {
        after: Duration::from_secs(1),
    };
}
