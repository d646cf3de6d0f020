//! Body of OPEN: where a new stream wants to go.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::TargetClass;
use crate::limits::{OPEN_DEADLINE_MAX, REQUEST_ID_BYTES_MAX, TARGET_BYTES_MAX};

/// What one side asks of the other. Fields a peer does not know are ignored.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Open {
    /// What kind of thing the stream goes to.
    pub class: TargetClass,
    /// Which one of that kind; its form is the class's matter, and it may be empty.
    #[serde(default)]
    pub target: String,
    /// Milliseconds the receiver may spend before it answers.
    pub deadline_ms: u64,
    /// Ties log lines of both sides together; may be empty.
    #[serde(default)]
    pub request_id: String,
}

impl Open {
    /// An OPEN without a request id.
    #[must_use]
    pub fn new(class: TargetClass, target: impl Into<String>, deadline: Duration) -> Self {
        let deadline_ms = deadline.min(OPEN_DEADLINE_MAX).as_millis() as u64;
        Self {
            class,
            target: target.into(),
            deadline_ms,
            request_id: String::new(),
        }
    }

    /// The time the receiver may spend, capped at [`OPEN_DEADLINE_MAX`].
    #[must_use]
    pub fn deadline(&self) -> Duration {
        Duration::from_millis(self.deadline_ms).min(OPEN_DEADLINE_MAX)
    }

    /// Says what is out of range.
    pub(crate) fn check(&self) -> Result<(), &'static str> {
        if self.target.len() > TARGET_BYTES_MAX {
            return Err("target is too long");
        }
        if self.request_id.len() > REQUEST_ID_BYTES_MAX {
            return Err("request id is too long");
        }
        Ok(())
    }
}
