//! What a predictor's answer says.

use serde_json::Value;

use crate::limits::PREDICTOR_WORDS_MAX;

/// Why a body is no answer. None of them is an answer of 0.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidAnswer {
    /// Not even JSON.
    #[error("its answer is no JSON")]
    NotJson,
    /// Kubernetes' form of an error, whatever the status code.
    #[error("it answers with an error: {0}")]
    Status(String),
    /// Something else.
    #[error("its answer does not say replicas.default")]
    NoReplicas,
    /// A number that cannot be.
    #[error("replicas.default is not a whole number from 0 to {}", i32::MAX)]
    NotANumber,
}

/// How many more replicas fit, as the body of an answer says.
///
/// # Errors
///
/// Why it says nothing.
pub fn predicted_replicas(body: &[u8]) -> Result<u64, InvalidAnswer> {
    let answer: Value = serde_json::from_slice(body).map_err(|_| InvalidAnswer::NotJson)?;
    if answer.get("kind").and_then(Value::as_str) == Some("Status") {
        let message = answer
            .get("message")
            .and_then(Value::as_str)
            .unwrap_or("without a message");
        return Err(InvalidAnswer::Status(
            message.chars().take(PREDICTOR_WORDS_MAX).collect(),
        ));
    }
    let replicas = answer.pointer("/replicas/default").ok_or(InvalidAnswer::NoReplicas)?;
    let replicas = replicas.as_u64().and_then(|replicas| i32::try_from(replicas).ok());
    replicas
        .and_then(|replicas| u64::try_from(replicas).ok())
        .ok_or(InvalidAnswer::NotANumber)
}
