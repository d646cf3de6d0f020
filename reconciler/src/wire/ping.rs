//! One question that has an answer wherever the whole way to a cluster is good: a person asks it to see that.

use serde::{Deserialize, Serialize};

/// The target of the look stream on which the answer comes, without a question.
pub const PING_TARGET: &str = "ping";

/// An agent's answer: itself, and whether its API server answers it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Pong {
    /// The agent's version.
    pub version: String,
    /// The API server's version.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub api_server: Option<String>,
    /// Why the API server gave none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}
