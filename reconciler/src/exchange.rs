//! Requests and their answers over an HTTP connection, one after the other, carried by whoever waits for them. A task between
//! the two would be woken for every piece of an answer.

mod shelf;

use std::error::Error;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body::{Body, Frame, SizeHint};
use hyper::body::Incoming;
use hyper::client::conn::http1::{self, SendRequest};
use hyper::rt::{Read, Write};
use tokio::runtime::Handle;
use tracing::Instrument as _;

pub(crate) use self::shelf::{Room, Shelf};

/// An HTTP connection, which is carried on by whoever waits for what it brings.
pub(crate) struct Line<B> {
    sender: SendRequest<B>,
    connection: Connection,
}

type Connection = Pin<Box<dyn Future<Output = Result<(), hyper::Error>> + Send>>;

/// What HTTP goes over.
pub(crate) trait Stream: Read + Write + Unpin + Send + 'static {}

impl<S: Read + Write + Unpin + Send + 'static> Stream for S {}

/// What a request brings along.
pub trait Asked: Body<Data: Send, Error: Into<Box<dyn Error + Send + Sync>>> + Send + Unpin + 'static {}

impl<B> Asked for B where B: Body<Data: Send, Error: Into<Box<dyn Error + Send + Sync>>> + Send + Unpin + 'static {}

/// Takes a line whose answer ended, for the next request.
pub(crate) type Home<B> = Box<dyn FnOnce(Line<B>) + Send>;

/// An answer's body, which brings itself over its connection. Whoever drops it before its end cuts the connection off: what is
/// left of the answer may be long, and nobody reads it.
pub struct Answer<B> {
    body: Incoming,
    /// `None`: it ended, or ends by itself.
    line: Option<Line<B>>,
    home: Option<Home<B>>,
}

/// No answer began.
pub(crate) struct Unanswered<B> {
    pub(crate) error: hyper::Error,
    /// The request, if the other side has seen nothing of it.
    pub(crate) unsent: Option<Box<Request<B>>>,
}

impl<B: Asked> Line<B> {
    /// HTTP, and never another protocol.
    #[cfg(feature = "hub")]
    pub(crate) async fn over(stream: impl Stream) -> Result<Self, hyper::Error> {
        let (sender, connection) = http1::handshake(stream).await?;
        let connection = Box::pin(connection);
        Ok(Self { sender, connection })
    }

    /// A line that may become another protocol.
    pub(crate) async fn changing(stream: impl Stream) -> Result<Self, hyper::Error> {
        let (sender, connection) = http1::handshake(stream).await?;
        let connection = Box::pin(connection.with_upgrades());
        Ok(Self { sender, connection })
    }

    /// Asks, and gives the answer once its head is there. Once it ended, the line goes `home`, if both sides keep it.
    pub(crate) async fn ask(
        self,
        request: Request<B>,
        home: Option<Home<B>>,
    ) -> Result<Response<Answer<B>>, Unanswered<B>> {
        let Self { mut sender, connection } = self;
        let mut connection = Some(connection);
        let mut failed = None;
        let answered = {
            let mut answered = std::pin::pin!(sender.try_send_request(request));
            let answered = std::future::poll_fn(|cx| {
                if let Some(carrying) = &mut connection
                    && let Poll::Ready(ended) = carrying.as_mut().poll(cx)
                {
                    connection = None;
                    failed = ended.err();
                }
                answered.as_mut().poll(cx)
            });
            answered.await
        };
        let response = answered.map_err(|mut unanswered| Unanswered {
            unsent: unanswered.take_message().map(Box::new),
            // Why a stream ended is known where its bytes were read.
            error: failed.unwrap_or_else(|| unanswered.into_error()),
        })?;
        let switches = response.status() == StatusCode::SWITCHING_PROTOCOLS;
        let (head, body) = response.into_parts();
        let line = connection.map(|connection| Self { sender, connection });
        let mut answer = Answer { body, line, home };
        if switches {
            answer.part();
        } else if answer.body.is_end_stream() {
            std::future::poll_fn(|cx| {
                answer.end(cx);
                Poll::Ready(())
            })
            .await;
        }
        Ok(Response::from_parts(head, answer))
    }

    /// Lets the connection end by itself, in good order: nothing more is asked or read of it here. What it still has to write
    /// takes no longer than what it goes over gives it.
    pub(crate) fn end(self) {
        if let Ok(runtime) = Handle::try_current() {
            runtime.spawn(self.connection.in_current_span());
        }
    }
}

impl<B: Asked> Answer<B> {
    /// Brings the line home, or ends it, which mostly takes but a look: the other side's end came with the answer's.
    fn end(&mut self, cx: &mut Context<'_>) {
        if let Some(line) = &mut self.line
            && line.connection.as_mut().poll(cx).is_ready()
        {
            self.line = None;
        }
        let is_ready = self.line.as_ref().is_some_and(|line| line.sender.is_ready());
        if let Some(home) = self.home.take_if(|_| is_ready)
            && let Some(line) = self.line.take()
        {
            return home(line);
        }
        self.part();
    }

    fn part(&mut self) {
        if let Some(line) = self.line.take() {
            line.end();
        }
    }
}

impl<B: Asked> Body for Answer<B> {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let answer = &mut *self;
        let mut polled = Pin::new(&mut answer.body).poll_frame(cx);
        if polled.is_pending()
            && let Some(line) = &mut answer.line
        {
            // What it ended with is told by the body.
            if line.connection.as_mut().poll(cx).is_ready() {
                answer.line = None;
            }
            polled = Pin::new(&mut answer.body).poll_frame(cx);
        }
        if matches!(polled, Poll::Ready(None)) || answer.body.is_end_stream() {
            answer.end(cx);
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

#[cfg(test)]
mod tests;
