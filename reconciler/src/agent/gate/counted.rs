//! A stream whose bytes are counted, and an answer whose end is seen, for the audit log.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use http::Method;
use http_body::{Body, Frame, SizeHint};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::talk::Talk;

/// A stream whose bytes are counted.
pub(in crate::agent) struct Counted<S> {
    stream: S,
    talk: Arc<Talk>,
}

/// An answer's body, of which it is told when all of it was taken.
pub(super) struct Answering<B> {
    body: B,
    talk: Arc<Talk>,
}

impl<S> Counted<S> {
    pub(in crate::agent) fn new(stream: S, talk: Arc<Talk>) -> Self {
        Self { stream, talk }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Counted<S> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<std::io::Result<()>> {
        let before = buf.filled().len();
        let read = Pin::new(&mut self.stream).poll_read(cx, buf);
        let bytes = buf.filled().len() - before;
        if bytes > 0 {
            self.talk.up(bytes);
        }
        read
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Counted<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<std::io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(cx, bytes);
        if let Poll::Ready(Ok(bytes)) = &written {
            self.talk.down(*bytes);
        }
        written
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        let flushed = Pin::new(&mut self.stream).poll_flush(cx);
        if let Poll::Ready(Ok(())) = &flushed {
            self.talk.is_flushed();
        }
        flushed
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

impl<B: Body> Answering<B> {
    /// Of an answer to such a method.
    pub(super) fn new(body: B, method: &Method, talk: Arc<Talk>) -> Self {
        // Of an answer to a HEAD nobody takes a body.
        if body.is_end_stream() || method == Method::HEAD {
            talk.is_over();
        }
        Self { body, talk }
    }
}

impl<B: Body + Unpin> Body for Answering<B> {
    type Data = B::Data;
    type Error = B::Error;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<B::Data>, B::Error>>> {
        let polled = Pin::new(&mut self.body).poll_frame(cx);
        // One that broke is told by how its stream ends.
        let is_over = match &polled {
            Poll::Ready(None) => true,
            Poll::Ready(Some(Ok(_))) => self.body.is_end_stream(),
            Poll::Ready(Some(Err(_))) | Poll::Pending => false,
        };
        if is_over {
            self.talk.is_over();
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
