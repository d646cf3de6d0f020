//! Requests and their answers over a stream, one after the other, carried by whoever waits for them. A task between the two
//! would be woken for every piece of an answer.

use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body::{Body as HttpBody, Frame, SizeHint};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::client::conn::http1::{self, Connection, SendRequest};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::runtime::Handle;
use tracing::Instrument as _;

/// An HTTP connection over a stream, which is carried on by whoever waits for what it brings.
pub(super) struct Line<C> {
    sender: SendRequest<Full<Bytes>>,
    connection: C,
}

/// What brings an answer.
pub(super) trait Carrying: Future<Output = Result<(), hyper::Error>> + Unpin + Send + 'static {}

impl<C> Carrying for C where C: Future<Output = Result<(), hyper::Error>> + Unpin + Send + 'static {}

/// What HTTP goes over.
pub(super) trait Stream: AsyncRead + AsyncWrite + Unpin + Send + 'static {}

impl<S: AsyncRead + AsyncWrite + Unpin + Send + 'static> Stream for S {}

/// HTTP, and never another protocol.
pub(super) type Plain<S> = Connection<TokioIo<S>, Full<Bytes>>;

/// Takes a line whose answer ended, for the next request.
pub(super) type Home<C> = Box<dyn FnOnce(Line<C>) + Send>;

/// An answer's body, which brings itself over its connection.
pub(super) struct Answer<C> {
    body: Incoming,
    /// `None`: it ended, or ends by itself.
    line: Option<Line<C>>,
    home: Option<Home<C>>,
}

impl<S: Stream> Line<Plain<S>> {
    pub(super) async fn over(stream: S) -> Result<Self, hyper::Error> {
        let (sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
        Ok(Self { sender, connection })
    }
}

/// A line that may become another protocol.
pub(super) async fn changing<S: Stream>(stream: S) -> Result<Line<impl Carrying>, hyper::Error> {
    let (sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
    let connection = connection.with_upgrades();
    Ok(Line { sender, connection })
}

impl<C: Carrying> Line<C> {
    /// Asks, and gives the answer once its head is there. Once it ended, the line goes `home`, if both sides keep it.
    pub(super) async fn ask(
        self,
        request: Request<Full<Bytes>>,
        home: Option<Home<C>>,
    ) -> Result<Response<Answer<C>>, hyper::Error> {
        let Self { mut sender, connection } = self;
        let mut connection = Some(connection);
        let mut failed = None;
        let response = {
            let mut answered = std::pin::pin!(sender.send_request(request));
            let answered = std::future::poll_fn(|cx| {
                if let Some(carrying) = &mut connection
                    && let Poll::Ready(ended) = Pin::new(carrying).poll(cx)
                {
                    connection = None;
                    failed = ended.err();
                }
                answered.as_mut().poll(cx)
            });
            // Why a stream ended is known where its bytes were read.
            answered.await.map_err(|error| failed.unwrap_or(error))?
        };
        let switches = response.status() == StatusCode::SWITCHING_PROTOCOLS;
        Ok(response.map(|body| {
            let line = connection.map(|connection| Line { sender, connection });
            let mut answer = Answer { body, line, home };
            if switches || answer.body.is_end_stream() {
                answer.part();
            }
            answer
        }))
    }

    /// Lets the connection end by itself, in good order: nothing more is asked or read of it here.
    pub(super) fn end(self) {
        if let Ok(runtime) = Handle::try_current() {
            runtime.spawn(self.connection.in_current_span());
        }
    }
}

impl<C: Carrying> Answer<C> {
    /// Brings the line home, or ends it, which mostly takes but a look: the other side's end came with the answer's.
    fn end(&mut self, cx: &mut Context<'_>) {
        if let Some(line) = &mut self.line
            && Pin::new(&mut line.connection).poll(cx).is_ready()
        {
            self.line = None;
        }
        if let Some(line) = self.line.take_if(|line| line.sender.is_ready())
            && let Some(home) = self.home.take()
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

impl<C: Carrying> HttpBody for Answer<C> {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let answer = &mut *self;
        let mut polled = Pin::new(&mut answer.body).poll_frame(cx);
        if polled.is_pending()
            && let Some(line) = &mut answer.line
        {
            // What it ended with is told by the body.
            if Pin::new(&mut line.connection).poll(cx).is_ready() {
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
