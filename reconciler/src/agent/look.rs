//! A look stream: one question about what goes with objects in, one answer out. Nothing is changed for it.

use kube::Client;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt as _};
use tokio::time::timeout;

use crate::apply;
use crate::limits::REPORT_OPEN_TIMEOUT;
use crate::wire::{DependantsQuestion, FramingError, read_message, write_message};

/// Answers the one question of a stream; one that does not come in time is none.
pub(super) async fn answer<S>(client: Client, stream: S) -> Result<(), FramingError>
where
    S: AsyncRead + AsyncWrite,
{
    let mut stream = Box::pin(stream);
    let asked = timeout(REPORT_OPEN_TIMEOUT, read_message::<_, DependantsQuestion>(&mut stream)).await;
    let Ok(Some(question)) = asked.unwrap_or(Ok(None)) else {
        return Ok(());
    };
    let found = apply::dependants(client, question).await;
    write_message(&mut stream, &found).await?;
    // A stream that is dropped before its end takes along what was not read yet.
    stream.shutdown().await.map_err(FramingError::Stream)
}
