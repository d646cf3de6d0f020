//! One stream as tokio reads and writes it. Dropping it resets it, so nothing is ever left behind.

use std::error::Error;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::{Buf as _, Bytes};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::frame::{OpenCode, Reset};
use crate::mux::Taken;
use crate::shared::{Shared, Waiting};

/// Why a stream ended early; found as the source of the `io::Error` that reads and writes give.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("stream ended ({code}) {text}")]
pub struct StreamError {
    /// What to decide by.
    pub code: OpenCode,
    /// For a person; often empty.
    pub text: String,
}

impl StreamError {
    /// The one that an error came of, if its cause is a stream's end; also inside an `io::Error`, which does not call it
    /// its source.
    #[must_use]
    pub fn in_chain<'a>(error: &'a (dyn Error + 'static)) -> Option<&'a Self> {
        let cause = |error: &'a (dyn Error + 'static)| match error.downcast_ref::<io::Error>().map(io::Error::get_ref) {
            Some(Some(inner)) => Some(inner as &(dyn Error + 'static)),
            _ => error.source(),
        };
        std::iter::successors(Some(error), |&error| cause(error)).find_map(|error| error.downcast_ref())
    }
}

fn io_error(reset: Reset) -> io::Error {
    let kind = match reset.code {
        OpenCode::Gone => io::ErrorKind::ConnectionAborted,
        _ => io::ErrorKind::ConnectionReset,
    };
    io::Error::new(
        kind,
        StreamError {
            code: reset.code,
            text: reset.text,
        },
    )
}

/// The one owner of a stream's id.
struct Handle {
    shared: Arc<Shared>,
    id: u32,
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.shared.release(self.id);
    }
}

/// A stream of bytes through the tunnel.
///
/// Reads give back credit, writes wait for it. `shutdown` ends our direction after all bytes written and
/// returns once they are on their way; dropping the stream without it tells the peer that it was cut off.
pub struct TunnelStream {
    read: ReadHalf,
    write: WriteHalf,
}

/// The reading half of a [`TunnelStream`]. Dropping it alone stops the peer once its credit is used.
pub struct ReadHalf {
    handle: Arc<Handle>,
    chunk: Bytes,
}

/// The writing half of a [`TunnelStream`]. Dropping it without `shutdown` resets the stream.
pub struct WriteHalf {
    handle: Arc<Handle>,
    finished: bool,
}

impl TunnelStream {
    /// Takes over the duty to release `id`.
    pub(crate) fn new(shared: Arc<Shared>, id: u32) -> Self {
        let handle = Arc::new(Handle { shared, id });
        let read = ReadHalf {
            handle: Arc::clone(&handle),
            chunk: Bytes::new(),
        };
        Self {
            read,
            write: WriteHalf {
                handle,
                finished: false,
            },
        }
    }

    /// The stream's id, for logs.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.read.handle.id
    }

    /// Both directions, to be used by different tasks.
    #[must_use]
    pub fn into_split(self) -> (ReadHalf, WriteHalf) {
        (self.read, self.write)
    }

    /// Ends both directions and tells the peer why.
    pub fn reset(self, code: OpenCode, text: &str) {
        let id = self.id();
        self.read.handle.shared.act(|mux| mux.reset(id, Reset::new(code, text)));
    }
}

impl ReadHalf {
    /// The next bytes as they came, without a copy; empty at the end.
    fn poll_chunk(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<&mut Bytes>> {
        if self.chunk.is_empty() {
            let Handle { shared, id } = &*self.handle;
            let taken = shared.act_or_wait(*id, Waiting::Read, cx, |mux| match mux.take(*id) {
                Taken::Nothing => None,
                taken => Some(taken),
            });
            self.chunk = match taken {
                None => return Poll::Pending,
                Some(Taken::Chunk(chunk)) => chunk,
                Some(Taken::Ended(reset)) => return Poll::Ready(Err(io_error(reset))),
                Some(Taken::Finished | Taken::Nothing) => Bytes::new(),
            };
        }
        Poll::Ready(Ok(&mut self.chunk))
    }

    /// The next bytes as they came, without a copy; `None` after the peer's last byte.
    pub async fn chunk(&mut self) -> io::Result<Option<Bytes>> {
        std::future::poll_fn(|cx| {
            let chunk = ready!(self.poll_chunk(cx))?;
            Poll::Ready(Ok(Some(std::mem::take(chunk)).filter(|chunk| !chunk.is_empty())))
        })
        .await
    }
}

impl AsyncRead for ReadHalf {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        if buf.remaining() == 0 {
            return Poll::Ready(Ok(()));
        }
        let chunk = ready!(self.poll_chunk(cx))?;
        let bytes = chunk.len().min(buf.remaining());
        buf.put_slice(&chunk[..bytes]);
        chunk.advance(bytes);
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for WriteHalf {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        if bytes.is_empty() {
            return Poll::Ready(Ok(0));
        }
        let Handle { shared, id } = &*self.handle;
        let written = shared.act_or_wait(*id, Waiting::Write, cx, |mux| match mux.write(*id, bytes) {
            Ok(0) => None,
            written => Some(written),
        });
        written.map_or(Poll::Pending, |written| Poll::Ready(written.map_err(io_error)))
    }

    /// The driver sends what is queued by itself; there is nothing to push.
    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let Handle { shared, id } = &*self.handle;
        let sent = shared.act_or_wait(*id, Waiting::Write, cx, |mux| match mux.finish(*id) {
            Ok(false) => None,
            Ok(true) => Some(Ok(())),
            Err(reset) => Some(Err(io_error(reset))),
        });
        let Some(sent) = sent else { return Poll::Pending };
        self.finished = true;
        Poll::Ready(sent)
    }
}

impl Drop for WriteHalf {
    fn drop(&mut self) {
        if !self.finished {
            let Handle { shared, id } = &*self.handle;
            shared.act(|mux| mux.reset(*id, Reset::new(OpenCode::Cancelled, "")));
        }
    }
}

impl AsyncRead for TunnelStream {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.read).poll_read(cx, buf)
    }
}

impl AsyncWrite for TunnelStream {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.write).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.write).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.write).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_a_stream_is_found_wherever_it_is_wrapped() {
        let reset = || io_error(Reset::new(OpenCode::Limit, "too many"));
        let code = |error: &(dyn Error + 'static)| StreamError::in_chain(error).map(|ended| ended.code);
        assert_eq!(code(&reset()), Some(OpenCode::Limit));
        assert_eq!(code(&io::Error::other(reset())), Some(OpenCode::Limit), "twice");
        assert_eq!(code(&io::Error::other("no")), None);
    }
}
