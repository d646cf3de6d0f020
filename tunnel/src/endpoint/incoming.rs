//! Streams that the peer opens, each to be answered.

use std::sync::Arc;

use tokio::sync::mpsc;

use super::OpenError;
use crate::frame::{Open, OpenCode, Reset};
use crate::shared::Shared;
use crate::stream::TunnelStream;

/// The peer's wishes for streams, in the order they came. Dropping it refuses all that come.
pub struct Incoming {
    shared: Arc<Shared>,
    opens: mpsc::Receiver<(u32, Open)>,
}

/// One wish, and the means to answer it.
pub struct IncomingOpen {
    /// What the peer asks for. Its class may be one this side does not know.
    pub open: Open,
    /// Answers it.
    pub responder: Responder,
}

/// Answers one OPEN. Dropping it unused refuses the stream as `Internal`.
pub struct Responder {
    shared: Arc<Shared>,
    /// `None` once the id has gone to a stream or was refused.
    id: Option<u32>,
}

impl Incoming {
    pub(super) fn new(shared: Arc<Shared>, opens: mpsc::Receiver<(u32, Open)>) -> Self {
        Self { shared, opens }
    }

    /// The next wish; `None` when the tunnel is over. Cancel-safe.
    ///
    /// Answer in a task of its own: the peer's other wishes wait behind this call only.
    pub async fn next(&mut self) -> Option<IncomingOpen> {
        let (id, open) = self.opens.recv().await?;
        Some(self.wish(id, open))
    }

    fn wish(&self, id: u32, open: Open) -> IncomingOpen {
        IncomingOpen {
            open,
            responder: Responder {
                shared: Arc::clone(&self.shared),
                id: Some(id),
            },
        }
    }
}

impl Drop for Incoming {
    fn drop(&mut self) {
        self.opens.close();
        while let Ok((id, open)) = self.opens.try_recv() {
            self.wish(id, open)
                .responder
                .refuse(OpenCode::NotAllowed, "nobody takes streams here");
        }
    }
}

impl Responder {
    /// Grants the stream. Fails if the peer has given up meanwhile.
    pub fn accept(mut self) -> Result<TunnelStream, OpenError> {
        let gone = || OpenError {
            code: OpenCode::Cancelled,
            text: "peer gave up".to_owned(),
        };
        let id = self.id.take().ok_or_else(gone)?;
        let accepted = self.shared.act(|mux| mux.accept(id));
        // The stream owns the id in either case, so that it is given back.
        let stream = TunnelStream::new(Arc::clone(&self.shared), id);
        if accepted { Ok(stream) } else { Err(gone()) }
    }

    /// Refuses the stream; the text is cut at 256 bytes.
    pub fn refuse(mut self, code: OpenCode, text: &str) {
        self.answer_no(code, text);
    }

    fn answer_no(&mut self, code: OpenCode, text: &str) {
        if let Some(id) = self.id.take() {
            self.shared.act(|mux| mux.refuse(id, Reset::new(code, text)));
        }
    }
}

impl Drop for Responder {
    fn drop(&mut self) {
        self.answer_no(OpenCode::Internal, "open was not answered");
    }
}
