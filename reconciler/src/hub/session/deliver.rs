//! The deliver stream: the newest envelope out, contents that are asked for out, answers in.

use std::sync::Arc;

use render::Digest;
use render::model::SyncMode;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::{mpsc, watch};
use tokio::time::timeout;
use tokio_util::task::AbortOnDropHandle;

use super::Sessions;
use super::news::news;
use crate::hub::blocking::blocking;
use crate::hub::keeper::chain;
use crate::limits::{PUSH_END_TIMEOUT, REPLIES_MAX, SESSION_STEP_TIMEOUT};
use crate::wire::{ContentRequest, Deliver, DeliverReply, Envelope, FramingError, Held, read_message, write_message};

impl Sessions {
    /// Tells the newest envelope whenever it says something else than the cluster holds, and sends what
    /// is asked for.
    pub(super) async fn deliver<S>(
        &self,
        mut newest: watch::Receiver<Option<Arc<Envelope>>>,
        mut applies: watch::Receiver<bool>,
        mut heard: watch::Receiver<Option<Held>>,
        stream: S,
    ) -> Result<(), FramingError>
    where
        S: AsyncRead + AsyncWrite + Send + 'static,
    {
        let (reader, writer) = tokio::io::split(stream);
        let mut writer = Box::pin(writer);
        let (replies, mut answers) = mpsc::channel(REPLIES_MAX);
        // Reading a message is not cancel-safe, so it has its own task, which ends with this session's
        // stream or queue.
        let _reading = AbortOnDropHandle::new(tokio::spawn(read_replies(Box::pin(reader), replies)));
        // A cluster that does not say in time what it holds is told all the same.
        let _heard = timeout(SESSION_STEP_TIMEOUT, heard.changed()).await;
        let mut told: Option<Arc<Envelope>> = None;
        let mut asked: Option<ContentRequest> = None;
        let mut deepened = self.modes.deepened();
        newest.mark_changed();
        loop {
            tokio::select! {
                biased;
                Ok(()) = deepened.changed() => newest.mark_changed(),
                answer = answers.recv() => match answer {
                    Some(answer) => asked = asks(answer?).or(asked),
                    None => return Ok(()),
                },
                changed = newest.changed() => {
                    if changed.is_err() {
                        return Ok(());
                    }
                    let Some(envelope) = newest.borrow_and_update().clone() else { continue };
                    if envelope.mode != SyncMode::Push {
                        // With the word for it the agent cuts off whoever applied here, who gives the Lease back before.
                        let _given_back = timeout(PUSH_END_TIMEOUT, applies.wait_for(|applies| !applies)).await;
                    }
                    let held = heard.borrow().clone();
                    if let Some(envelope) = news(&self.modes, envelope, (told.as_deref(), held.as_ref())).await {
                        write_message(&mut writer, &Deliver::Envelope { envelope: Envelope::clone(&envelope) }).await?;
                        tracing::debug!(cluster = %envelope.cluster, sequence = envelope.sequence, "Told envelope.");
                        told = Some(envelope);
                    }
                }
            }
            // A list that a cluster holds is not told again, although it may lack contents of it.
            if asked.is_some()
                && let Some(list) = told.clone().or_else(|| newest.borrow().clone())
                && let Some(request) = asked.take()
            {
                self.send(request, &list, &mut writer).await?;
            }
        }
    }

    async fn send<W>(&self, request: ContentRequest, list: &Envelope, writer: &mut W) -> Result<(), FramingError>
    where
        W: AsyncWrite + Unpin,
    {
        // Only what this cluster is told of: a digest is no capability.
        let named = |digest: &Digest| list.units.values().any(|unit| unit.digest == *digest);
        for digest in request.digests.into_iter().filter(named) {
            let message = self.content(list, digest).await;
            write_message(writer, &message).await?;
        }
        Ok(())
    }

    async fn content(&self, list: &Envelope, digest: Digest) -> Deliver {
        let (keeper, released) = (Arc::clone(&self.keeper), list.released.clone());
        let read = blocking(move || keeper.content(&released, &digest));
        match read.await {
            Ok(description) => Deliver::content(&description),
            Err(error) => Deliver::Missing {
                digest,
                message: chain(&error),
            },
        }
    }
}

/// What an answer asks for.
fn asks(reply: DeliverReply) -> Option<ContentRequest> {
    match reply {
        DeliverReply::Taken { sequence } => tracing::debug!(sequence, "Envelope was taken."),
        DeliverReply::Refused { sequence, refusal } => {
            tracing::warn!(sequence, error = %refusal, "Envelope was refused.");
        }
        DeliverReply::Need(request) => return Some(request),
    }
    None
}

async fn read_replies<R>(mut reader: R, replies: mpsc::Sender<Result<DeliverReply, FramingError>>)
where
    R: AsyncRead + Unpin,
{
    loop {
        let read = read_message(&mut reader).await.transpose();
        let Some(read) = read else { return };
        let failed = read.is_err();
        if replies.send(read).await.is_err() || failed {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::time::Duration;

    use render::{ClusterName, Revision, UnitKey};

    use super::*;
    use crate::hub::hostile_tests::{key, registry, sessions};
    use crate::hub::mode_order::{ModeOrder, Order};
    use crate::hub::repository::fixture::Fixture;
    use crate::wire::{EnvelopeUnit, list_digest};

    fn revision(digit: char) -> Revision {
        Revision::parse(digit.to_string().repeat(40)).expect("forty digits are a revision")
    }

    fn envelope(units: BTreeMap<UnitKey, EnvelopeUnit>) -> Envelope {
        Envelope {
            version: Envelope::VERSION,
            cluster: ClusterName::parse("oslo").expect("a valid name"),
            lineage: revision('a'),
            sequence: 7,
            released: revision('c'),
            list: list_digest(&units, false),
            units,
            orphan: false,
            orphaned: Default::default(),
            mode: SyncMode::Dual,
            mode_source: None,
            mode_instead: None,
            lineage_grant: None,
        }
    }

    #[tokio::test]
    async fn contents_that_a_cut_link_left_out_are_sent_although_the_list_is_held() {
        let (digest, stranger) = (Digest::of_bytes(b"x"), Digest::of_bytes(b"y"));
        let unit = EnvelopeUnit {
            digest,
            revision: revision('b'),
            replicas: Default::default(),
            drift: Default::default(),
            gates: Vec::new(),
        };
        let list = envelope(BTreeMap::from([("shop/web".parse().expect("a valid unit"), unit)]));
        for is_known in [true, false] {
            let (repository, (events, _heard)) = (Fixture::new(), mpsc::channel(1));
            let sessions = sessions(events, &repository, &key(), Arc::new(registry(&[])));
            let (says, newest) = watch::channel(is_known.then(|| Arc::new(list.clone())));
            let (_applying, applies) = watch::channel(false);
            let (said, heard) = watch::channel(None);
            said.send_replace(Some(list.held()));
            let (ours, mut agents) = tokio::io::duplex(1 << 16);
            let need = DeliverReply::Need(ContentRequest {
                digests: vec![stranger, digest],
            });
            write_message(&mut agents, &need).await.expect("it is asked");
            let delivering = tokio::spawn(async move { sessions.deliver(newest, applies, heard, ours).await });
            if !is_known {
                // A hub that started just now: its own list comes after the question.
                for _ in 0..100 {
                    tokio::task::yield_now().await;
                }
                says.send_replace(Some(Arc::new(list.clone())));
            }
            let first = timeout(Duration::from_secs(60), read_message::<_, Deliver>(&mut agents)).await;
            let first = first.expect("in time").expect("it answers");
            // There is no such commit to read it from. What matters is that no list comes first, and nothing strange.
            assert!(
                matches!(first, Some(Deliver::Missing { digest: told, .. }) if told == digest),
                "{first:?}"
            );
            drop(agents);
            assert!(delivering.await.expect("without a panic").is_ok());
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_mode_that_history_did_not_place_is_told_once_more_history_came() {
        let is_told = Arc::new(AtomicBool::new(false));
        let told = Arc::clone(&is_told);
        let judge = move |_: &_| match told.load(Ordering::Relaxed) {
            true => Ok(Order::After),
            false => Ok(Order::Untold),
        };
        let modes = Arc::new(ModeOrder::by(judge));
        let (repository, (events, _heard)) = (Fixture::new(), mpsc::channel(1));
        let sessions = Sessions {
            modes: Arc::clone(&modes),
            ..sessions(events, &repository, &key(), Arc::new(registry(&[])))
        };
        let dual = Envelope {
            mode_source: Some(revision('2')),
            ..envelope(BTreeMap::new())
        };
        let held = Held {
            mode: SyncMode::Pull,
            mode_source: Some(revision('1')),
            ..dual.held()
        };
        let (_newest, newest) = watch::channel(Some(Arc::new(dual)));
        let (_applying, applies) = watch::channel(false);
        let (said, heard) = watch::channel(None);
        said.send_replace(Some(held));
        let (ours, mut agents) = tokio::io::duplex(1 << 16);
        let delivering = tokio::spawn(async move { sessions.deliver(newest, applies, heard, ours).await });
        let mut next = async || {
            let read = read_message::<_, Deliver>(&mut agents);
            timeout(Duration::from_secs(1), read).await.ok()
        };
        assert!(next().await.is_none(), "nobody knows yet whether it is newer");
        is_told.store(true, Ordering::Relaxed);
        modes.deepen();
        let Some(Ok(Some(Deliver::Envelope { envelope }))) = next().await else {
            unreachable!("it is told once that is known");
        };
        assert_eq!(
            (envelope.mode, envelope.mode_instead),
            (SyncMode::Dual, Some(revision('1')))
        );
        assert!(next().await.is_none(), "once");
        drop(agents);
        assert!(delivering.await.expect("without a panic").is_ok());
    }
}
