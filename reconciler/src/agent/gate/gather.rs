//! An answer's body in pieces worth sending. An API server writes a list in pieces of 2 KiB, and each would be a frame of
//! the tunnel, and a write at the hub.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::{Bytes, BytesMut};
use http_body::{Body, Frame, SizeHint};

use crate::limits::GATE_PIECE_BYTES;

/// Gathers what comes in one go. It waits for nothing: what is there when other tasks had their turn is passed on.
pub(super) struct Gathered<B: Body> {
    body: B,
    gathered: BytesMut,
    /// What came after it and is none of its bytes: an end, an error, a trailer.
    after: Option<Option<Result<Frame<Bytes>, B::Error>>>,
    /// Others had their turn since the last piece came.
    rested: bool,
}

impl<B: Body<Data = Bytes> + Unpin> Gathered<B> {
    pub(super) fn of(body: B) -> Self {
        Self {
            body,
            gathered: BytesMut::new(),
            after: None,
            rested: false,
        }
    }

    fn gathered(&mut self) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        Poll::Ready(Some(Ok(Frame::data(self.gathered.split().freeze()))))
    }
}

impl<B> Body for Gathered<B>
where
    B: Body<Data = Bytes> + Unpin,
    B::Error: Unpin,
{
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        let this = &mut *self;
        loop {
            if let Some(after) = this.after.take() {
                return Poll::Ready(after);
            }
            let polled = Pin::new(&mut this.body).poll_frame(cx);
            if polled.is_pending() && !this.gathered.is_empty() {
                if std::mem::replace(&mut this.rested, true) {
                    return this.gathered();
                }
                cx.waker().wake_by_ref();
                return Poll::Pending;
            }
            this.rested = false;
            let after = match ready!(polled) {
                Some(Ok(frame)) => match frame.into_data() {
                    Ok(piece) => {
                        let is_enough =
                            this.gathered.len() + piece.len() >= GATE_PIECE_BYTES || this.body.is_end_stream();
                        if is_enough && this.gathered.is_empty() {
                            return Poll::Ready(Some(Ok(Frame::data(piece))));
                        }
                        this.gathered.extend_from_slice(&piece);
                        if is_enough {
                            return this.gathered();
                        }
                        continue;
                    }
                    Err(trailer) => Some(Ok(trailer)),
                },
                after => after,
            };
            if this.gathered.is_empty() {
                return Poll::Ready(after);
            }
            this.after = Some(after);
            return this.gathered();
        }
    }

    fn is_end_stream(&self) -> bool {
        self.gathered.is_empty() && self.after.is_none() && self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        // Asked before the first piece, for the answer's length.
        match self.gathered.is_empty() {
            true => self.body.size_hint(),
            false => SizeHint::default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use http_body_util::{BodyExt as _, StreamBody};
    use tokio::sync::mpsc;

    use super::*;

    type Piece = Result<Frame<Bytes>, &'static str>;

    fn piece(bytes: usize) -> Piece {
        Ok(Frame::data(Bytes::from(vec![b'x'; bytes])))
    }

    /// What comes of pieces that are there at once: the sizes, and the error at the end.
    async fn gathered(pieces: Vec<Piece>) -> (Vec<usize>, Option<&'static str>) {
        let body = StreamBody::new(futures_util::stream::iter(pieces));
        let (mut body, mut sizes) = (Gathered::of(body), Vec::new());
        while let Some(frame) = body.frame().await {
            match frame {
                Ok(frame) => sizes.push(frame.into_data().map_or(0, |data| data.len())),
                Err(error) => return (sizes, Some(error)),
            }
        }
        (sizes, None)
    }

    #[tokio::test]
    async fn small_pieces_become_one_and_none_is_lost_before_an_error() {
        assert_eq!(
            gathered((0..10).map(|_| piece(2_048)).collect()).await,
            (vec![20_480], None)
        );
        let many = gathered((0..40).map(|_| piece(2_048)).collect()).await;
        assert_eq!(many, (vec![GATE_PIECE_BYTES, GATE_PIECE_BYTES, 8 * 2_048], None));
        assert_eq!(
            gathered(vec![piece(1), piece(2), Err("cut")]).await,
            (vec![3], Some("cut"))
        );
        assert_eq!(gathered(vec![piece(1 << 20)]).await, (vec![1 << 20], None));
    }

    #[tokio::test(start_paused = true)]
    async fn an_event_of_a_watch_does_not_wait_for_the_next() {
        let (events, told) = mpsc::channel::<Result<Frame<Bytes>, Infallible>>(4);
        let told = futures_util::stream::unfold(told, |mut told| async { Some((told.recv().await?, told)) });
        let mut body = Gathered::of(StreamBody::new(Box::pin(told)));
        for _ in 0..3 {
            events
                .send(Ok(Frame::data(Bytes::from_static(b"event"))))
                .await
                .expect("it is taken");
            let frame = body.frame().await.expect("it goes on").expect("no error");
            assert_eq!(frame.into_data().expect("bytes"), "event");
        }
    }
}
