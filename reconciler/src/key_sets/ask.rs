//! Asks a hub on a `keys` stream which keys it has, and goes on asking: it answers once they are others.

use std::collections::BTreeSet;

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::timeout;
use tunnel::{KeyError, PublicKey};

use super::{HubKeysError, KeyAnswer, KeyQuestion, KeySet, KeysKept};
use crate::limits::{KEY_MESSAGE_BYTES_MAX, KEY_STEP_TIMEOUT};
use crate::wire::{FramingError, read_message_within, write_message};

/// Why whoever asks goes on with the keys that it knew.
#[derive(Debug, thiserror::Error)]
pub enum AskError {
    /// There is no randomness.
    #[error("failed to make a nonce")]
    Nonce(#[source] KeyError),
    /// It ended inside a message, or says something else.
    #[error("the stream failed")]
    Stream(#[source] FramingError),
    /// The first question was not answered in time.
    #[error("the hub did not answer")]
    Silent,
    /// They are not proven, or nobody vouches for them.
    #[error("the keys are not believed")]
    Unbelieved(#[source] HubKeysError),
}

/// One question, its answer, and the word that it is kept; and so on until the hub says no more. `hubs` are those of which is
/// asked whether they are denied, `take` keeps the keys that the hub proved, and `denies` hears, of a hub whose keys were
/// taken, which of those hubs it denies.
pub async fn ask<S, F>(
    stream: S,
    hubs: impl Fn() -> Vec<PublicKey>,
    take: impl Fn(KeySet) -> F,
    denies: impl Fn(BTreeSet<PublicKey>),
) -> Result<(), AskError>
where
    S: AsyncRead + AsyncWrite,
    F: Future<Output = Result<(), HubKeysError>>,
{
    let mut stream = Box::pin(stream);
    let mut is_first = true;
    loop {
        let question = KeyQuestion::new(tunnel::fresh_bytes().map_err(AskError::Nonce)?);
        let question = question.about(&hubs());
        write_message(&mut stream, &question).await.map_err(AskError::Stream)?;
        let answer = read_message_within::<_, KeyAnswer>(&mut stream, KEY_MESSAGE_BYTES_MAX);
        let answer = match is_first {
            true => timeout(KEY_STEP_TIMEOUT, answer).await.map_err(|_| AskError::Silent)?,
            // Until the hub has other keys, or denies others of those hubs.
            false => answer.await,
        };
        let answer = match answer.map_err(AskError::Stream)? {
            Some(answer) => answer,
            None if is_first => return Err(AskError::Silent),
            None => return Ok(()),
        };
        let keys = answer.keys.len();
        let told = answer.proven(&question).map_err(AskError::Unbelieved)?;
        let denied = answer.denied(&question).map_err(AskError::Unbelieved)?;
        take(told).await.map_err(AskError::Unbelieved)?;
        if let Some(denied) = denied {
            denies(denied);
        }
        write_message(&mut stream, &KeysKept { keys })
            .await
            .map_err(AskError::Stream)?;
        is_first = false;
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::Instant;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_hub_that_answers_nothing_is_left_in_time() {
        let (near, _far) = tokio::io::duplex(1 << 12);
        let begun = Instant::now();
        let asked = ask(near, Vec::new, |_| std::future::ready(Ok(())), |_| {}).await;
        assert!(matches!(asked, Err(AskError::Silent)), "{asked:?}");
        assert_eq!(begun.elapsed(), KEY_STEP_TIMEOUT);
    }
}
