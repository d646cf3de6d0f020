//! The hub's keys, and what it tells an agent of them; and an agent's own, where it wishes another one.

use std::net::IpAddr;
use std::sync::Arc;

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::{mpsc, watch};
use tokio::time::{interval, timeout};
use tunnel::SecretKey;

use super::clock::seconds;
use super::engine::{Event, KeyWish};
use super::registry::Registry;
use crate::key_sets::{HubKeysError, KeyAnswer, KeyQuestion, KeysKept};
use crate::key_wish::{SignedWish, WishError, Within};
use crate::limits::{KEY_MESSAGE_BYTES_MAX, KEY_STEP_TIMEOUT, KEY_WISH_REPEATED};
use crate::wire::{FramingError, read_message_within, write_message};

/// All of them; the first is the one that is shown.
pub(super) type KeyList = Arc<[Arc<SecretKey>]>;

/// The same, as it changes.
pub(super) type HubKeys = watch::Receiver<KeyList>;

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
    #[error("the deny list has the key that the agent wishes")]
    Denied,
}

/// Answers questions: the first one at once, and each later one when there are other keys than the agent was told of, or
/// other hubs that it asks about are denied. Says by `kept` that the agent keeps those that there are.
pub(super) async fn tell<S>(keys: &HubKeys, registry: &Registry, stream: S, kept: impl Fn()) -> Result<(), TellError>
where
    S: AsyncRead + AsyncWrite,
{
    let (reader, writer) = tokio::io::split(stream);
    let (mut reader, mut writer) = (Box::pin(reader), Box::pin(writer));
    let question = read_message_within::<_, KeyQuestion>(&mut reader, KEY_MESSAGE_BYTES_MAX);
    let question = timeout(KEY_STEP_TIMEOUT, question)
        .await
        .map_err(|_| TellError::Silent)?;
    let mut question = question.map_err(TellError::Stream)?.ok_or(TellError::Silent)?;
    let mut keys = keys.clone();
    loop {
        let told = keys.borrow_and_update().clone();
        let answer = KeyAnswer::new(&question, told.iter().map(AsRef::as_ref)).map_err(TellError::Question)?;
        let denied = registry.denied_of(&question.hubs());
        let answer = match told.first() {
            Some(first) => answer.with_denied(&question, first, &denied),
            None => answer,
        };
        write_message(&mut writer, &answer).await.map_err(TellError::Stream)?;
        // As long as the tunnel stands: an agent that waits for its Lease writes nothing before it has it.
        let said = read_message_within::<_, KeysKept>(&mut reader, KEY_MESSAGE_BYTES_MAX).await;
        let said = said.map_err(TellError::Stream)?;
        if said.is_some_and(|said| said.keys == told.len()) && Arc::ptr_eq(&told, &keys.borrow()) {
            kept();
        }
        // An older agent asks once in a tunnel.
        let next = read_message_within::<_, KeyQuestion>(&mut reader, KEY_MESSAGE_BYTES_MAX).await;
        let Some(next) = next.map_err(TellError::Stream)? else {
            return Ok(());
        };
        question = next;
        let hubs = question.hubs();
        let others = async {
            if keys.changed().await.is_err() {
                // They are what they are as long as this hub runs.
                std::future::pending::<()>().await;
            }
        };
        tokio::select! {
            () = others => {}
            () = registry.denied_other(&hubs, &denied) => {}
        }
    }
}

/// Hears an agent's wish for another key, has it proposed, and tells the agent which of its two keys counts, until the
/// tunnel ends.
pub(super) async fn hear_wish<S>(
    (within, from): (Within<'_>, Option<IpAddr>),
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
    let proof = Arc::new((wish, within.binding));
    let since = seconds();
    let mut repeat = interval(KEY_WISH_REPEATED);
    let mut told = None;
    loop {
        let stand = tokio::select! {
            biased;
            () = registry.denied(&proven.next) => return Err(TellError::Denied),
            _ = repeat.tick() => {
                let wish = KeyWish::new(proven, (from, since, seconds()), Arc::clone(&proof));
                let cluster = within.cluster.clone();
                let _sent = events.send(Event::KeyWished { cluster, wish }).await;
                continue;
            }
            stand = registry.stand(within.cluster, &proven, told) => stand,
        };
        write_message(&mut writer, &stand).await.map_err(TellError::Stream)?;
        told = Some(stand);
    }
}

#[cfg(test)]
mod tests {
    use render::ClusterName;

    use super::*;
    use crate::hub::deny::Denied;

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
        let outcome = hear_wish((within, None), &registry, &events, far).await;
        assert!(matches!(outcome, Err(TellError::Wish(WishError::NotSigned(_)))));
        assert!(heard.try_recv().is_err(), "nothing is proposed");
        // Nor is a key that is shut out here, whoever has it.
        registry.deny(Denied::parse(&next.public().to_string()).expect("a list"));
        let (mut near, far) = tokio::io::duplex(1 << 12);
        let wish = SignedWish::new(&within, &old, &next);
        write_message(&mut near, &wish).await.expect("it is told");
        let outcome = hear_wish((within, None), &registry, &events, far).await;
        assert!(matches!(outcome, Err(TellError::Denied)));
        assert!(heard.try_recv().is_err(), "nothing is proposed");
    }

    #[tokio::test(start_paused = true)]
    async fn a_wish_is_said_anew_while_its_tunnel_stands_and_says_from_where_and_since_when() {
        let cluster = ClusterName::parse("oslo").expect("a valid name");
        let [old, next] = [(); 2].map(|()| SecretKey::generate().expect("there is randomness"));
        let within = Within {
            cluster: &cluster,
            used: old.public(),
            binding: [7; 32],
        };
        let (events, mut heard) = mpsc::channel(4);
        let registry = Registry::default();
        let (mut near, far) = tokio::io::duplex(1 << 12);
        write_message(&mut near, &SignedWish::new(&within, &old, &next))
            .await
            .expect("it is told");
        let from = "10.0.0.7".parse().ok();
        let said = async {
            for _ in 0..3 {
                let event = heard.recv().await.expect("it is said again");
                let Event::KeyWished { wish, .. } = event else {
                    unreachable!("{event:?}")
                };
                assert_eq!((wish.next, wish.from), (next.public(), from));
                let carried = wish.carried();
                assert!(carried.proven(&cluster).is_ok(), "it can be told to another hub");
            }
        };
        tokio::select! {
            outcome = hear_wish((within, from), &registry, &events, far) => unreachable!("it goes on: {outcome:?}"),
            () = said => {}
        }
    }

    #[tokio::test]
    async fn an_agent_is_told_at_once_which_hubs_are_denied_and_which_are_no_more() {
        let hub = Arc::new(SecretKey::generate().expect("there is randomness"));
        let other = SecretKey::generate().expect("there is randomness").public();
        let list = watch::Sender::new(KeyList::from([Arc::clone(&hub)]));
        let (mut near, far) = tokio::io::duplex(1 << 12);
        let (keys, registry) = (list.subscribe(), Registry::default());
        let agent = async {
            for (round, text) in [(1, String::new()), (2, other.to_string()), (3, String::new())] {
                let question = KeyQuestion::new([round; 32]).about(&[other]);
                write_message(&mut near, &question).await.expect("it is open");
                registry.deny(Denied::parse(&text).expect("a list"));
                let answer = read_message_within::<_, KeyAnswer>(&mut near, KEY_MESSAGE_BYTES_MAX).await;
                let answer = answer.expect("it is read").expect("it is told");
                let denied = answer.denied(&question).expect("it is signed").expect("it was asked");
                assert_eq!(denied.contains(&other), !text.is_empty());
                let all = KeysKept { keys: 1 };
                write_message(&mut near, &all).await.expect("it is open");
            }
        };
        tokio::select! {
            told = tell(&keys, &registry, far, || {}) => unreachable!("it goes on: {told:?}"),
            () = agent => {}
        }
    }

    #[tokio::test]
    async fn an_agent_is_told_other_keys_in_the_same_tunnel_once_there_are_any() {
        let [old, new] = [(); 2].map(|()| Arc::new(SecretKey::generate().expect("there is randomness")));
        let lists = watch::Sender::new(KeyList::from([Arc::clone(&old)]));
        let (mut near, far) = tokio::io::duplex(1 << 12);
        let kept = watch::Sender::new(0);
        let (keys, mut counted) = (lists.subscribe(), kept.subscribe());
        let agent = async {
            for (round, list) in [(1, vec![&old]), (2, vec![&new, &old])] {
                let question = KeyQuestion::new([round; 32]);
                write_message(&mut near, &question).await.expect("it is open");
                if round == 2 {
                    lists.send_replace(list.iter().map(|key| Arc::clone(key)).collect());
                }
                let answer = read_message_within::<_, KeyAnswer>(&mut near, KEY_MESSAGE_BYTES_MAX).await;
                let answer = answer.expect("it is read").expect("it is told");
                answer.proven(&question).expect("each key signed");
                let told: Vec<_> = answer.keys.iter().map(|signed| signed.key.clone()).collect();
                let expected: Vec<_> = list.iter().map(|key| key.public().to_string()).collect();
                assert_eq!(told, expected);
                let all = KeysKept { keys: told.len() };
                write_message(&mut near, &all).await.expect("it is open");
                counted.wait_for(|count| *count == round).await.expect("it is noted");
            }
        };
        let registry = Registry::default();
        tokio::select! {
            told = tell(&keys, &registry, far, || kept.send_modify(|count| *count += 1)) => unreachable!("it goes on: {told:?}"),
            () = agent => {}
        }
    }
}
