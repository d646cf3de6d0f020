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

    /// Whether both lead into the same tunnel.
    #[must_use]
    pub fn is_of_same_tunnel(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.shared, &other.shared)
    }

    /// Round-trip time of the last answered ping.
    #[must_use]
    pub fn rtt(&self) -> Option<Duration> {
        self.shared.rtt()
    }

    /// Streams of the tunnel, in both directions, that are open or being opened.
    #[must_use]
    pub fn streams(&self) -> usize {
        self.shared.streams()
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
        let (stream, grant) = self.begin(&open)?;
        match timeout(deadline, grant.wait()).await {
            Ok(Ok(())) => Ok(stream),
            Ok(Err(error)) => Err(error),
            Err(_) => {
                self.shared.unanswered(deadline);
                stream.reset(OpenCode::Cancelled, "not answered in time");
                Err(OpenError {
                    code: OpenCode::DialTimeout,
                    text: "peer did not answer in time".to_owned(),
                })
            }
        }
    }

    /// Opens a stream without waiting for the peer's answer: bytes may be written at once, within the stream's credit, which
    /// saves a round trip. A refusal ends reads and writes; [`Grant::wait`] tells it apart from what comes later.
    pub fn begin(&self, open: &Open) -> Result<(TunnelStream, Grant), OpenError> {
        let now = self.shared.now();
        let id = self.shared.act(|mux| mux.open(open, now))?;
        // From here on the stream's drop gives the id back.
        let stream = TunnelStream::new(Arc::clone(&self.shared), id);
        let grant = Grant {
            shared: Arc::clone(&self.shared),
            id,
        };
        Ok((stream, grant))
    }
}

/// The peer's answer to a stream that was begun.
pub struct Grant {
    shared: Arc<Shared>,
    id: u32,
}

impl Grant {
    /// Waits for the answer. A stream that was dropped meanwhile is `Gone`.
    pub async fn wait(&self) -> Result<(), OpenError> {
        let granted = std::future::poll_fn(|cx| {
            let opened = self
                .shared
                .act_or_wait(self.id, Waiting::Opening, cx, |mux| match mux.is_opened(self.id) {
                    Ok(false) => None,
                    Ok(true) => Some(Ok(())),
                    Err(reset) => Some(Err(reset)),
                });
            opened.map_or(std::task::Poll::Pending, std::task::Poll::Ready)
        });
        granted.await.map_err(OpenError::from)
    }
}
