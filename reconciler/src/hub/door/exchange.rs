//! One request and its answer over a stream of its own, carried by whoever waits for them. A task between the two would be
//! woken for every piece of an answer.

use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body::{Body as HttpBody, Frame, SizeHint};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::runtime::Handle;
use tracing::Instrument as _;

/// An answer's body, which brings itself over its connection.
pub(super) struct Answer<C> {
    body: Incoming,
    /// `None`: it ended, or ends by itself.
    connection: Option<C>,
}

/// What brings an answer.
pub(super) trait Carrying: Future<Output = Result<(), hyper::Error>> + Unpin + Send + 'static {}

impl<C> Carrying for C where C: Future<Output = Result<(), hyper::Error>> + Unpin + Send + 'static {}

/// Asks, and gives the answer once its head is there.
pub(super) async fn exchange<S>(
    stream: S,
    request: Request<Full<Bytes>>,
) -> Result<Response<Answer<impl Carrying>>, hyper::Error>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
    let mut connection = Some(connection.with_upgrades());
    let mut failed = None;
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
    let response = answered.await.map_err(|error| failed.unwrap_or(error))?;
    let switches = response.status() == StatusCode::SWITCHING_PROTOCOLS;
    Ok(response.map(|body| {
        let mut answer = Answer { body, connection };
        if switches || answer.body.is_end_stream() {
            answer.part();
        }
        answer
    }))
}

impl<C: Carrying> Answer<C> {
    /// Ends the connection, which mostly takes but a look: the other side's end came with the answer's.
    fn end(&mut self, cx: &mut Context<'_>) {
        if let Some(connection) = &mut self.connection
            && Pin::new(connection).poll(cx).is_ready()
        {
            self.connection = None;
        }
        self.part();
    }

    /// Lets the connection end by itself, in good order: nothing more is read of it here.
    fn part(&mut self) {
        if let Some(connection) = self.connection.take()
            && let Ok(runtime) = Handle::try_current()
        {
            runtime.spawn(connection.in_current_span());
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
            && let Some(connection) = &mut answer.connection
        {
            // What it ended with is told by the body.
            if Pin::new(connection).poll(cx).is_ready() {
                answer.connection = None;
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
