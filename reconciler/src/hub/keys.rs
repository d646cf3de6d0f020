//! The hub's keys, and what it tells an agent of them.

use std::sync::Arc;

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::timeout;
use tunnel::SecretKey;

use crate::key_sets::{HubKeysError, KeyAnswer, KeyQuestion, KeysKept};
use crate::limits::{KEY_MESSAGE_BYTES_MAX, KEY_STEP_TIMEOUT};
use crate::wire::{FramingError, read_message_within, write_message};

/// All of them; the first is the one that is shown.
pub(super) type HubKeys = Arc<[Arc<SecretKey>]>;

#[derive(Debug, thiserror::Error)]
pub(super) enum TellError {
    #[error("the stream failed")]
    Stream(#[source] FramingError),
    #[error("the agent asked nothing in time")]
    Silent,
    #[error("the question cannot be answered")]
    Question(#[source] HubKeysError),
}

/// Answers one question, and waits until the agent has kept the answer. Whether it has.
pub(super) async fn tell<S>(keys: &HubKeys, stream: S) -> Result<bool, TellError>
where
    S: AsyncRead + AsyncWrite,
{
    let (reader, writer) = tokio::io::split(stream);
    let (mut reader, mut writer) = (Box::pin(reader), Box::pin(writer));
    let question = read_message_within::<_, KeyQuestion>(&mut reader, KEY_MESSAGE_BYTES_MAX);
    let question = timeout(KEY_STEP_TIMEOUT, question)
        .await
        .map_err(|_| TellError::Silent)?;
    let question = question.map_err(TellError::Stream)?.ok_or(TellError::Silent)?;
    let answer = KeyAnswer::new(&question, keys.iter().map(AsRef::as_ref)).map_err(TellError::Question)?;
    write_message(&mut writer, &answer).await.map_err(TellError::Stream)?;
    // As long as the tunnel stands: an agent that waits for its Lease writes nothing before it has it.
    let kept = read_message_within::<_, KeysKept>(&mut reader, KEY_MESSAGE_BYTES_MAX).await;
    let kept = kept.map_err(TellError::Stream)?;
    Ok(kept.is_some_and(|kept| kept.keys == keys.len()))
}
