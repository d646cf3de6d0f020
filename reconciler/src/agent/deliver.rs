//! A deliver stream: envelopes and contents in, requests and answers out.

use std::sync::Arc;

use render::Digest;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::{Mutex, watch};

use super::journal::{Journal, JournalError};
use crate::apply::Desired;
use crate::wire::{
    Accepted, ContentRequest, Deliver, DeliverReply, Envelope, FramingError, Intake, Refusal, read_message,
    write_message,
};

/// What the agent holds, shared by the sessions that follow one another.
pub struct Holdings {
    taken: Mutex<Taken>,
    journal: Journal,
    hub_keys: Vec<tunnel::PublicKey>,
    desired: watch::Sender<Option<Arc<Desired>>>,
    refused: watch::Sender<Option<(u64, Refusal)>>,
}

/// What was taken, and whether the applier was told of all of it.
struct Taken {
    intake: Intake,
    /// Something new waits for the rest of the contents: one pass with all of them is better than one without them and
    /// another with them. Where one does not come, the others are not kept waiting for it.
    waits: bool,
}

impl Holdings {
    /// Starts with what the journal had.
    pub fn new(intake: Intake, journal: Journal, hub_keys: Vec<tunnel::PublicKey>) -> Self {
        let desired = watch::Sender::new(intake.desired().map(Arc::new));
        let refused = watch::Sender::new(None);
        Self {
            taken: Mutex::new(Taken { intake, waits: false }),
            journal,
            hub_keys,
            desired,
            refused,
        }
    }

    /// What should be in the cluster, newest first.
    pub fn desired(&self) -> watch::Receiver<Option<Arc<Desired>>> {
        self.desired.subscribe()
    }

    /// The envelope that was refused last, unless one was taken since.
    pub(super) fn refused(&self) -> watch::Receiver<Option<(u64, Refusal)>> {
        self.refused.subscribe()
    }

    /// Takes an envelope when it is believed, and starts applying it; what it says is journalled by
    /// [`Holdings::record`].
    async fn take(&self, envelope: &Envelope) -> Result<Accepted, Refusal> {
        let verify = |bytes: &[u8], signature: &[u8]| self.hub_keys.iter().any(|key| key.verifies(bytes, signature));
        let sequence = envelope.sequence;
        let mut taken = self.taken.lock().await;
        let accepted = taken.intake.envelope(envelope, verify);
        match &accepted {
            Err(refusal) => {
                tracing::warn!(sequence, error = %refusal, "Refused envelope.");
                self.refused.send_replace(Some((sequence, refusal.clone())));
            }
            Ok(Accepted::Same) => {}
            Ok(Accepted::New) => {
                tracing::info!(sequence, units = envelope.units.len(), "Took envelope.");
                self.refused.send_replace(None);
                taken.waits = true;
                if taken.intake.missing().is_empty() {
                    // Applied while it is journalled: a crash in between costs a repeated delivery, no more.
                    self.publish(&mut taken);
                }
            }
        }
        accepted
    }

    async fn missing(&self) -> Vec<Digest> {
        self.taken.lock().await.intake.missing()
    }

    async fn record(&self, envelope: &Envelope) -> Result<(), JournalError> {
        let held = envelope.held();
        self.journalled(move |journal| journal.write_held(&held)).await?;
        self.tidy(&mut self.taken.lock().await.intake).await
    }

    async fn content(&self, digest: Digest, bytes: Vec<u8>) -> Result<(), JournalError> {
        let mut taken = self.taken.lock().await;
        if !taken.intake.missing().contains(&digest) {
            return Ok(());
        }
        if let Err(error) = taken.intake.content(digest, &bytes) {
            tracing::warn!(%digest, error = &error as &dyn std::error::Error, "Refused content.");
            self.publish(&mut taken);
            return Ok(());
        }
        // Also where the applier was told already, since another content did not come as it should.
        taken.waits = true;
        if taken.intake.missing().is_empty() {
            tracing::debug!("Took last content.");
            self.publish(&mut taken);
        }
        self.journalled(move |journal| journal.write_content(digest, &bytes))
            .await?;
        self.tidy(&mut taken.intake).await
    }

    /// Tells the applier of what is here, when an envelope waits for contents that will not come.
    async fn wait_no_longer(&self) {
        self.publish(&mut *self.taken.lock().await);
    }

    fn publish(&self, taken: &mut Taken) {
        if std::mem::take(&mut taken.waits) {
            self.desired.send_replace(taken.intake.desired().map(Arc::new));
        }
    }

    /// Once nothing is missing: makes the new contents last, and drops those that nothing names any more.
    async fn tidy(&self, intake: &mut Intake) -> Result<(), JournalError> {
        if !intake.missing().is_empty() {
            return Ok(());
        }
        let unwanted = intake.drop_unwanted();
        self.journalled(move |journal| {
            journal.remove_contents(&unwanted);
            journal.sync_contents()
        })
        .await
    }

    async fn journalled(
        &self,
        write: impl FnOnce(&Journal) -> Result<(), JournalError> + Send + 'static,
    ) -> Result<(), JournalError> {
        let journal = self.journal.clone();
        match tokio::task::spawn_blocking(move || write(&journal)).await {
            Ok(written) => written,
            Err(join) => std::panic::resume_unwind(join.into_panic()),
        }
    }
}

/// Why a deliver stream ended before its time.
#[derive(Debug, thiserror::Error)]
pub enum DeliverError {
    /// The stream itself.
    #[error("the stream failed")]
    Stream(#[source] FramingError),
    /// What was taken could not be recorded.
    #[error("the journal failed")]
    Journal(#[source] JournalError),
}

impl DeliverError {
    /// Whether it is the stream's end and nothing else.
    pub(super) fn is_stream(&self) -> bool {
        matches!(self, Self::Stream(FramingError::Stream(_)))
    }
}

/// Serves one deliver stream to its end. Contents that did not come before it do not come any more.
pub async fn serve<S>(holdings: &Holdings, stream: S) -> Result<(), DeliverError>
where
    S: AsyncRead + AsyncWrite,
{
    let served = converse(holdings, stream).await;
    holdings.wait_no_longer().await;
    served
}

async fn converse<S>(holdings: &Holdings, stream: S) -> Result<(), DeliverError>
where
    S: AsyncRead + AsyncWrite,
{
    let (mut reader, mut writer) = tokio::io::split(stream);
    let reader = &mut Box::pin(&mut reader);
    let writer = &mut Box::pin(&mut writer);
    while let Some(message) = read_message::<_, Deliver>(reader).await.map_err(DeliverError::Stream)? {
        match message {
            Deliver::Envelope { envelope } => answer(holdings, &envelope, writer).await?,
            Deliver::Content { digest, description } => {
                let bytes = Box::<str>::from(description).into_string().into_bytes();
                holdings.content(digest, bytes).await.map_err(DeliverError::Journal)?;
            }
            Deliver::Missing { digest, message } => {
                tracing::warn!(%digest, message, "Hub could not send a content.");
                holdings.wait_no_longer().await;
            }
        }
    }
    Ok(())
}

async fn answer<W>(holdings: &Holdings, envelope: &Envelope, writer: &mut W) -> Result<(), DeliverError>
where
    W: AsyncWrite + Unpin,
{
    let sequence = envelope.sequence;
    match holdings.take(envelope).await {
        Err(refusal) => return reply(writer, &DeliverReply::Refused { sequence, refusal }).await,
        Ok(Accepted::Same | Accepted::New) => {}
    }
    // Also for an envelope that is held already: its contents may have been lost.
    let digests = holdings.missing().await;
    if !digests.is_empty() {
        reply(writer, &DeliverReply::Need(ContentRequest { digests })).await?;
    }
    holdings.record(envelope).await.map_err(DeliverError::Journal)?;
    reply(writer, &DeliverReply::Taken { sequence }).await
}

async fn reply<W>(writer: &mut W, reply: &DeliverReply) -> Result<(), DeliverError>
where
    W: AsyncWrite + Unpin,
{
    write_message(writer, reply).await.map_err(DeliverError::Stream)
}

#[cfg(test)]
mod tests;
