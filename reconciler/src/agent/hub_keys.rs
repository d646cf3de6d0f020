//! Asks a hub over its tunnel which keys it has.

use std::collections::BTreeSet;
use std::sync::Arc;

use tokio::io::{AsyncRead, AsyncWrite};
use tunnel::{Opener, PublicKey, TargetClass};

use super::deliver::Holdings;
use crate::key_sets::{self, AskError};
use crate::limits::KEY_STEP_TIMEOUT;

/// Asks, and asks again in the same stream, which a hub answers once it has other keys or denies other hubs.
pub(super) async fn ask(holdings: Arc<Holdings>, opener: Opener, denies: impl Fn(BTreeSet<PublicKey>) + Send) {
    let stream = match opener.open(TargetClass::Keys, "", KEY_STEP_TIMEOUT).await {
        Ok(stream) => stream,
        // An older hub has one key, and no answer.
        Err(error) => return tracing::debug!(%error, "Hub took no keys stream."),
    };
    match converse(&holdings, stream, denies).await {
        Ok(()) => {}
        Err(AskError::Stream(error)) => {
            tracing::debug!(error = &error as &dyn std::error::Error, "Lost keys stream.");
        }
        Err(error) => {
            let error = &error as &dyn std::error::Error;
            tracing::warn!(error, "Took no keys of the hub; those that were known before count.");
        }
    }
}

async fn converse<S>(holdings: &Holdings, stream: S, denies: impl Fn(BTreeSet<PublicKey>)) -> Result<(), AskError>
where
    S: AsyncRead + AsyncWrite,
{
    key_sets::ask(
        stream,
        || holdings.hub_keys(),
        |told| holdings.take_hub_keys(told),
        denies,
    )
    .await
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::time::Duration;

    use render::ClusterName;
    use tokio::sync::watch;
    use tunnel::SecretKey;

    use super::*;
    use crate::agent::{Journal, Store};
    use crate::key_sets::{HubKeysError, KeyAnswer, KeysKept};
    use crate::limits::KEY_MESSAGE_BYTES_MAX;
    use crate::wire::{read_message_within, write_message};

    fn key() -> SecretKey {
        SecretKey::generate().expect("there is randomness")
    }

    /// An agent that was given a key, with its journal in a folder.
    async fn agent(folder: &std::path::Path, given: PublicKey) -> Holdings {
        let mut journal = Journal::open(folder, "agent");
        // Other tests of this binary start processes, which have our lock for a moment.
        while journal.is_err() {
            tokio::task::yield_now().await;
            journal = Journal::open(folder, "agent");
        }
        let journal = journal.expect("it is open");
        let kept = journal.read().await.expect("it is readable");
        let cluster = ClusterName::parse("edge").expect("a valid cluster");
        Holdings::new(cluster, kept, Arc::new(journal), vec![given], watch::channel(None).1)
    }

    /// What becomes of an agent's question when these keys answer it, and what the agent says last.
    async fn answered(agent: &Holdings, keys: &[&SecretKey]) -> (Result<(), AskError>, Option<KeysKept>) {
        let (near, far) = tokio::io::duplex(1 << 12);
        let hub = async move {
            let mut far = far;
            let question = read_message_within(&mut far, KEY_MESSAGE_BYTES_MAX).await;
            let question = question.expect("it is read").expect("it is asked");
            let answer = KeyAnswer::new(&question, keys.iter().copied()).expect("it is signed");
            write_message(&mut far, &answer).await.expect("it is told");
            let last = read_message_within(&mut far, KEY_MESSAGE_BYTES_MAX).await;
            // Whoever asks again hears that nobody is there.
            last.expect("it is read")
        };
        let (done, last) = tokio::join!(converse(agent, near, |_| {}), hub);
        (
            done.or_else(|error| {
                if matches!(error, AskError::Stream(_)) {
                    Ok(())
                } else {
                    Err(error)
                }
            }),
            last,
        )
    }

    #[tokio::test]
    async fn keys_that_a_known_one_vouches_for_outlive_the_agent() {
        let folder = tempfile::tempdir().expect("a folder");
        let (old, new) = (key(), key());
        let first = agent(folder.path(), old.public()).await;
        let (done, last) = answered(&first, &[&old, &new]).await;
        done.expect("they are believed");
        assert_eq!(last, Some(KeysKept { keys: 2 }));
        drop(first);
        let second = agent(folder.path(), old.public()).await;
        assert_eq!(second.hub_keys(), [old.public(), new.public()]);
        let newest = key();
        answered(&second, &[&new, &newest]).await.0.expect("they are believed");
        assert_eq!(
            second.hub_keys().into_iter().collect::<std::collections::BTreeSet<_>>(),
            [old.public(), new.public(), newest.public()].into()
        );
    }

    #[tokio::test]
    async fn since_when_a_hubs_key_is_known_outlives_the_agent() {
        let folder = tempfile::tempdir().expect("a folder");
        let (old, new) = (key(), key());
        let known = |agent: &Holdings| BTreeMap::from(agent.kept().borrow().hub_keys_known.clone());
        let [old_text, new_text] = [&old, &new].map(|key| key.public().to_string());
        // A journal of before says nothing of it.
        let begun = jiff::Timestamp::now().as_second();
        let first = agent(folder.path(), old.public()).await;
        assert!(known(&first)[&old_text] >= begun, "as early as it can be told");
        // Nothing else has to happen for it to be written.
        let first_noted = known(&first);
        let mut written = None;
        for _ in 0..6_000 {
            written = std::fs::read(folder.path().join("hub-keys-known.json")).ok();
            if written.is_some() {
                break;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        let written: BTreeMap<String, i64> = serde_json::from_slice(&written.expect("in time")).expect("it is a note");
        assert_eq!(written, first_noted);
        drop(first);
        let note = format!(r#"{{"{old_text}":1000}}"#);
        std::fs::write(folder.path().join("hub-keys-known.json"), note).expect("it is written");
        let second = agent(folder.path(), old.public()).await;
        answered(&second, &[&old, &new]).await.0.expect("they are believed");
        let noted = known(&second);
        assert_eq!(noted[&old_text], 1_000);
        assert!(noted[&new_text] >= begun, "{noted:?}");
        let mut recorded = noted.clone();
        recorded.insert(new_text, 2_000);
        // It stands there before the hub hears that its keys are kept.
        let path = folder.path().join("hub-keys-known.json");
        let written = std::fs::read(&path).expect("it is written");
        let written: BTreeMap<String, i64> = serde_json::from_slice(&written).expect("it is a note");
        assert_eq!(written, noted);
        drop(second);
        std::fs::write(&path, serde_json::to_vec(&recorded).expect("it is JSON")).expect("it is written");
        assert_eq!(known(&agent(folder.path(), old.public()).await), recorded);
    }

    #[tokio::test]
    async fn keys_that_nobody_vouches_for_change_nothing() {
        let folder = tempfile::tempdir().expect("a folder");
        let (old, strange) = (key(), key());
        let agent = agent(folder.path(), old.public()).await;
        let (done, last) = answered(&agent, &[&strange]).await;
        assert!(
            matches!(done, Err(AskError::Unbelieved(HubKeysError::Unknown))),
            "{done:?}"
        );
        assert_eq!((agent.hub_keys(), last), (vec![old.public()], None));
    }

    #[tokio::test]
    async fn other_keys_of_a_hub_that_runs_are_believed_in_the_same_tunnel() {
        let folder = tempfile::tempdir().expect("a folder");
        let (old, new) = (key(), key());
        let agent = agent(folder.path(), old.public()).await;
        let (near, mut far) = tokio::io::duplex(1 << 12);
        let hub = async {
            for keys in [vec![&old], vec![&old, &new], vec![&new]] {
                let question = read_message_within(&mut far, KEY_MESSAGE_BYTES_MAX).await;
                let question = question.expect("it is read").expect("it is asked again");
                let answer = KeyAnswer::new(&question, keys.iter().copied()).expect("it is signed");
                write_message(&mut far, &answer).await.expect("it is told");
                let kept = read_message_within(&mut far, KEY_MESSAGE_BYTES_MAX).await;
                assert_eq!(kept.expect("it is read"), Some(KeysKept { keys: keys.len() }));
            }
        };
        tokio::select! {
            asked = converse(&agent, near, |_| {}) => unreachable!("the hub goes on: {asked:?}"),
            () = hub => {}
        }
        assert_eq!(
            agent.hub_keys(),
            [old.public(), new.public()],
            "a person gave the old one"
        );
    }
}
