//! A deliver stream: envelopes and contents in, requests and answers out.

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::{mpsc, watch};
use tokio::time::timeout;

use super::{Holdings, Mark, Shared};
use crate::limits::{JOURNAL_PATIENCE, REPLIES_MAX};
use crate::wire::{ContentRequest, Deliver, DeliverReply, FramingError, read_message, write_message};

/// Why a deliver stream ended before its time.
#[derive(Debug, thiserror::Error)]
#[error("the stream failed")]
pub struct DeliverError(#[source] FramingError);

impl DeliverError {
    /// Whether it is the stream's end and nothing else.
    pub(in crate::agent) fn is_stream(&self) -> bool {
        matches!(self.0, FramingError::Stream(_))
    }
}

/// An envelope whose sender waits to hear that it is journalled.
#[derive(Clone, Debug)]
struct Owed {
    mark: Mark,
    /// Of those of this stream, counted from one: the same envelope may be said twice, and is answered twice.
    number: u64,
}

/// Serves one deliver stream to its end. Contents that did not come before it do not come any more.
pub async fn serve<S>(holdings: &Holdings, stream: S) -> Result<(), DeliverError>
where
    S: AsyncRead + AsyncWrite,
{
    let shared = &*holdings.shared;
    let (reader, writer) = tokio::io::split(stream);
    let (replies, outbox) = mpsc::channel(REPLIES_MAX);
    let (owed, owes) = watch::channel(None);
    let mut hearing = Box::pin(async {
        let heard = hear(shared, Box::pin(reader), replies, owed).await;
        shared.wait_no_longer().await;
        heard
    });
    let mut telling = Box::pin(tell(shared.recorded.subscribe(), owes, outbox, Box::pin(writer)));
    let served = tokio::select! {
        biased;
        heard = &mut hearing => match heard {
            // What is owed is still said, if whoever asked listens.
            Ok(()) => timeout(JOURNAL_PATIENCE, telling).await.unwrap_or(Ok(())),
            Err(error) => Err(error),
        },
        told = &mut telling => {
            shared.wait_no_longer().await;
            told
        }
    };
    served.map_err(DeliverError)
}

/// Takes what the hub says.
async fn hear<R>(
    shared: &Shared,
    mut reader: R,
    replies: mpsc::Sender<DeliverReply>,
    owed: watch::Sender<Option<Owed>>,
) -> Result<(), FramingError>
where
    R: AsyncRead + Unpin,
{
    // What a stream before this one left out: a list that is held is not told again.
    ask(shared, &replies).await;
    let mut number = 0;
    while let Some(message) = read_message::<_, Deliver>(&mut reader).await? {
        match message {
            Deliver::Envelope { envelope } => match shared.take(&envelope).await {
                Err(refusal) => {
                    let sequence = envelope.sequence;
                    say(&replies, DeliverReply::Refused { sequence, refusal }).await;
                }
                Ok(mark) => {
                    // Also for an envelope that is held already: its contents may have been lost.
                    ask(shared, &replies).await;
                    number += 1;
                    owed.send_replace(mark.map(|mark| Owed { mark, number }));
                }
            },
            Deliver::Content { digest, description } => {
                let bytes = Box::<str>::from(description).into_string().into_bytes();
                shared.content(digest, bytes).await;
            }
            Deliver::Missing { digest, message } => {
                tracing::warn!(%digest, message, "Hub could not send a content.");
                shared.wait_no_longer().await;
            }
        }
    }
    Ok(())
}

/// Asks for what is missing, if anything is.
async fn ask(shared: &Shared, replies: &mpsc::Sender<DeliverReply>) {
    let digests = shared.missing().await;
    if !digests.is_empty() {
        say(replies, DeliverReply::Need(ContentRequest { digests })).await;
    }
}

/// A reply that nobody carries any more is dropped: the stream is gone, and reading says so.
async fn say(replies: &mpsc::Sender<DeliverReply>, reply: DeliverReply) {
    drop(replies.send(reply).await);
}

/// Tells the hub what there is to say, and that an envelope was taken once it is journalled with its contents.
async fn tell<W>(
    mut recorded: watch::Receiver<Option<Mark>>,
    mut owes: watch::Receiver<Option<Owed>>,
    mut outbox: mpsc::Receiver<DeliverReply>,
    mut writer: W,
) -> Result<(), FramingError>
where
    W: AsyncWrite + Unpin,
{
    let (mut told, mut listens) = (0, true);
    loop {
        let owed = owes.borrow_and_update().clone().filter(|owed| owed.number > told);
        match owed {
            Some(Owed { mark, number })
                if outbox.is_empty() && recorded.borrow_and_update().as_ref() == Some(&mark) =>
            {
                told = number;
                write_message(
                    &mut writer,
                    &DeliverReply::Taken {
                        sequence: mark.sequence,
                    },
                )
                .await?;
                continue;
            }
            None if !listens && outbox.is_empty() => return Ok(()),
            _ => {}
        }
        tokio::select! {
            biased;
            reply = outbox.recv(), if listens => match reply {
                Some(reply) => write_message(&mut writer, &reply).await?,
                None => listens = false,
            },
            changed = recorded.changed() => if changed.is_err() { return Ok(()) },
            changed = owes.changed(), if listens => if changed.is_err() { listens = false },
        }
    }
}
