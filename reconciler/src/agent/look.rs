//! A look stream: one question about what goes with objects in, or a ping, and one answer out. Nothing is changed for it.

use kube::Client;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt as _};
use tokio::time::timeout;

use crate::limits::REPORT_OPEN_TIMEOUT;
use crate::wire::{DependantsQuestion, FramingError, Pong, read_message, write_message};
use crate::{apply, fault};

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

/// Answers a ping: the API server is asked its version, so that the whole way is tried.
pub(super) async fn pong<S>(client: Client, stream: S) -> Result<(), FramingError>
where
    S: AsyncRead + AsyncWrite,
{
    let mut stream = Box::pin(stream);
    let asked = timeout(REPORT_OPEN_TIMEOUT, client.apiserver_version()).await;
    let (api_server, error) = match asked {
        Ok(Ok(version)) => (Some(version.git_version), None),
        Ok(Err(error)) => {
            tracing::debug!(error = fault::line(&error), "Got no answer of the API server.");
            (None, Some(apply::Unreached::of(&error).to_string()))
        }
        Err(_) => (
            None,
            Some(format!("no answer within {} s", REPORT_OPEN_TIMEOUT.as_secs())),
        ),
    };
    let pong = Pong {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        api_server,
        error,
    };
    write_message(&mut stream, &pong).await?;
    stream.shutdown().await.map_err(FramingError::Stream)
}
