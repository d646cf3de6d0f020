//! The hub's keys, and what it tells an agent of them; and an agent's own, where it wishes another one.

use std::sync::Arc;

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::mpsc;
use tokio::time::timeout;
use tunnel::SecretKey;

use super::engine::{Event, KeyWish};
use super::registry::Registry;
use crate::key_sets::{HubKeysError, KeyAnswer, KeyQuestion, KeysKept};
use crate::key_wish::{SignedWish, WishError, Within};
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
    #[error("the agent's wish for another key is not believed")]
    Wish(#[source] WishError),
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

/// Hears an agent's wish for another key, has it proposed, and tells the agent which of its two keys counts, until the
/// tunnel ends.
pub(super) async fn hear_wish<S>(
    within: Within<'_>,
    registry: &Registry,
    events: &mpsc::Sender<Event>,
    stream: S,
) -> Result<(), TellError>
where
    S: AsyncRead + AsyncWrite,
{
    let (reader, writer) = tokio::io::split(stream);
    let (mut reader, mut writer) = (Box::pin(reader), Box::pin(writer));
    let wish = read_message_within::<_, SignedWish>(&mut reader, KEY_MESSAGE_BYTES_MAX);
    let wish = timeout(KEY_STEP_TIMEOUT, wish).await.map_err(|_| TellError::Silent)?;
    let wish = wish.map_err(TellError::Stream)?.ok_or(TellError::Silent)?;
    let proven = wish.proven(&within).map_err(TellError::Wish)?;
    tracing::info!(cluster = %within.cluster, "Heard an agent's wish for another key.");
    let wish = KeyWish {
        old: proven.old,
        next: proven.next,
        is_in_use: proven.is_in_use,
    };
    let cluster = within.cluster.clone();
    let _sent = events.send(Event::KeyWished { cluster, wish }).await;
    let mut told = None;
    loop {
        let stand = registry.stand(within.cluster, &proven, told).await;
        write_message(&mut writer, &stand).await.map_err(TellError::Stream)?;
        told = Some(stand);
    }
}

#[cfg(test)]
mod tests {
    use render::ClusterName;

    use super::*;

    #[tokio::test]
    async fn a_wish_that_is_not_proven_is_heard_by_nobody() {
        let cluster = ClusterName::parse("oslo").expect("a valid name");
        let [old, next] = [(); 2].map(|()| SecretKey::generate().expect("there is randomness"));
        let within = Within {
            cluster: &cluster,
            used: old.public(),
            binding: [7; 32],
        };
        let elsewhere = Within {
            binding: [8; 32],
            ..within
        };
        let (events, mut heard) = mpsc::channel(1);
        let registry = Registry::default();
        let (mut near, far) = tokio::io::duplex(1 << 12);
        let wish = SignedWish::new(&elsewhere, &old, &next);
        write_message(&mut near, &wish).await.expect("it is told");
        let outcome = hear_wish(within, &registry, &events, far).await;
        assert!(matches!(outcome, Err(TellError::Wish(WishError::NotSigned(_)))));
        assert!(heard.try_recv().is_err(), "nothing is proposed");
    }
}
