//! Streams that this side opens.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::timeout;

use crate::frame::{Open, OpenCode, Reset, TargetClass};
use crate::limits::OPEN_DEADLINE_MAX;
use crate::shared::{Shared, Waiting};
use crate::stream::TunnelStream;

/// Why there is no stream.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("stream was not opened ({code}) {text}")]
pub struct OpenError {
    /// What to decide by.
    pub code: OpenCode,
    /// For a person; often empty.
    pub text: String,
}

impl From<Reset> for OpenError {
    fn from(reset: Reset) -> Self {
        Self {
            code: reset.code,
            text: reset.text,
        }
    }
}

/// Opens streams towards the peer. Cheap to clone; does not keep the tunnel alive.
#[derive(Clone)]
pub struct Opener {
    shared: Arc<Shared>,
}

impl Opener {
    pub(super) fn new(shared: Arc<Shared>) -> Self {
        Self { shared }
    }

    /// Opens a stream and waits for the peer's answer, at most `deadline` (capped at a minute).
    ///
    /// A refusal touches this stream alone. Too slow an answer is `DialTimeout`, a closed tunnel `Gone`.
    pub async fn open(
        &self,
        class: TargetClass,
        target: impl Into<String>,
        deadline: Duration,
    ) -> Result<TunnelStream, OpenError> {
        self.request(Open::new(class, target, deadline)).await
    }

    /// Like [`Opener::open`], with a request id that shows in the logs of both sides.
    pub async fn request(&self, open: Open) -> Result<TunnelStream, OpenError> {
        let deadline = open.deadline().min(OPEN_DEADLINE_MAX);
        let id = self.shared.act(|mux| mux.open(&open))?;
        // From here on the stream's drop gives the id back, also when this future is dropped.
        let stream = TunnelStream::new(Arc::clone(&self.shared), id);
        let granted = std::future::poll_fn(|cx| {
            let opened = self
                .shared
                .act_or_wait(id, Waiting::Opening, cx, |mux| match mux.is_opened(id) {
                    Ok(false) => None,
                    Ok(true) => Some(Ok(())),
                    Err(reset) => Some(Err(reset)),
                });
            opened.map_or(std::task::Poll::Pending, std::task::Poll::Ready)
        });
        match timeout(deadline, granted).await {
            Ok(Ok(())) => Ok(stream),
            Ok(Err(reset)) => Err(reset.into()),
            Err(_) => {
                stream.reset(OpenCode::Cancelled, "not answered in time");
                Err(OpenError {
                    code: OpenCode::DialTimeout,
                    text: "peer did not answer in time".to_owned(),
                })
            }
        }
    }
}
