//! Room that somebody else predicts for a cluster: Clusternet's `POST /replicas/predict`.
//!
//! In: what a pod asks for. Out: the question for the predictor, and what its answer says. Which clusters are asked
//! about decides [`crate::schedule`]; the asking itself is deliberately not here: the hub asks, and what it is told
//! comes back in [`Reports`].
//!
//! [`Reports`]: crate::schedule::Reports

mod address;
mod answer;
mod question;

use serde::{Deserialize, Serialize};

pub use address::{InvalidAddress, check_address, is_forbidden};
pub use answer::{InvalidAnswer, predicted_replicas};
pub use question::Question;

use crate::limits::PREDICTION_KEPT_SECONDS;

/// What a predictor said, and when it was asked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Predicted {
    /// In seconds since 1970 by the hub's clock.
    pub at: i64,
    /// What it said.
    pub outcome: Outcome,
}

/// What came of a question to a predictor.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Outcome {
    /// So many more replicas fit.
    Replicas(u64),
    /// No answer that can be used: why.
    Trouble(String),
}

impl Predicted {
    /// Whether it still counts: an answer and a failure alike, so that nobody is asked in a storm.
    pub fn is_fresh(&self, now: i64) -> bool {
        (self.at..self.at.saturating_add(PREDICTION_KEPT_SECONDS)).contains(&now)
    }
}

#[cfg(test)]
mod tests;
