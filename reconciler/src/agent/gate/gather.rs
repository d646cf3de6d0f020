//! An answer's body in pieces worth sending. An API server writes a list in pieces of 2 KiB, and each would be a frame of
//! the tunnel, and a write at the hub.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::{Bytes, BytesMut};
use http_body::{Body, Frame, SizeHint};

use crate::limits::{GATE_FIRST_LOOKS, GATE_PIECE_BYTES};

/// Gathers what comes in one go. It waits for nothing: what is there when other tasks had their turn is passed on.
pub(super) struct Gathered<B: Body> {
    body: B,
    gathered: BytesMut,
    /// What came after it and is none of its bytes: an end, an error, a trailer.
    after: Option<Option<Result<Frame<Bytes>, B::Error>>>,
    /// Others had their turn since the last piece came.
    rested: bool,
    /// What came with its head.
    begun: Option<Begun<B>>,
    /// What it said of its length before it was looked into, until something of it is asked for.
    length: Option<SizeHint>,
}

/// The first of a body; `None`: it is empty.
type Begun<B> = Option<Result<Frame<Bytes>, <B as Body>::Error>>;

impl<B: Body<Data = Bytes> + Unpin> Gathered<B> {
    pub(super) fn of(body: B) -> Self {
        Self {
            body,
            gathered: BytesMut::new(),
            after: None,
            rested: false,
            begun: None,
            length: None,
        }
    }

    /// Looks whether its first piece came with its head, so that both leave in one go. It waits for nothing either: a piece
    /// that is not there after a few turns of others follows the head.
    pub(super) async fn begun(mut self) -> Self
    where
        B::Error: Unpin,
    {
        if self.body.is_end_stream() {
            return self;
        }
        let (length, mut looks) = (self.body.size_hint(), GATE_FIRST_LOOKS);
        std::future::poll_fn(|cx| {
            looks -= 1;
            match Pin::new(&mut self).poll_frame(cx) {
                Poll::Ready(first) => self.begun = Some(first),
                Poll::Pending if looks == 0 => {}
                Poll::Pending => {
                    cx.waker().wake_by_ref();
                    return Poll::Pending;
                }
            }
            Poll::Ready(())
        })
        .await;
        self.length = Some(length);
        self
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
        this.length = None;
        if let Some(first) = this.begun.take() {
            return Poll::Ready(first);
        }
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
        self.begun.is_none() && self.gathered.is_empty() && self.after.is_none() && self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        // Asked before the first piece, for the answer's length.
        match self.length {
            Some(length) => length,
            None if self.gathered.is_empty() => self.body.size_hint(),
            None => SizeHint::default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use futures_util::FutureExt as _;
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

    #[tokio::test]
    async fn the_first_piece_is_there_with_its_head_where_it_comes_at_once() {
        let (pieces, told) = mpsc::channel::<Result<Frame<Bytes>, Infallible>>(4);
        let told = futures_util::stream::unfold(told, |mut told| async { Some((told.recv().await?, told)) });
        let body = Gathered::of(StreamBody::new(Box::pin(told)));
        // Like a connection's task, which brings a piece once somebody looks for one.
        tokio::spawn(async move { pieces.send(Ok(Frame::data(Bytes::from_static(b"piece")))).await });
        let mut body = body.begun().await;
        assert!(!body.is_end_stream());
        let first = body.frame().now_or_never().expect("it is there").expect("a piece");
        assert_eq!(first.expect("no error").into_data().expect("bytes"), "piece");
        assert!(body.frame().await.is_none(), "that was all");
    }

    /// Pieces of a body that says its length, one with every other look.
    struct Measured {
        pieces: usize,
        is_there: bool,
    }

    impl Body for Measured {
        type Data = Bytes;
        type Error = Infallible;

        fn poll_frame(
            mut self: Pin<&mut Self>,
            cx: &mut Context<'_>,
        ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
            if self.pieces == 0 {
                return Poll::Ready(None);
            }
            self.is_there = !self.is_there;
            if !self.is_there {
                cx.waker().wake_by_ref();
                return Poll::Pending;
            }
            self.pieces -= 1;
            Poll::Ready(Some(Ok(Frame::data(Bytes::from_static(b"piece")))))
        }

        fn is_end_stream(&self) -> bool {
            self.pieces == 0
        }

        fn size_hint(&self) -> SizeHint {
            SizeHint::with_exact(5 * self.pieces as u64)
        }
    }

    #[tokio::test]
    async fn what_is_looked_into_keeps_the_length_of_all_of_it() {
        for is_there in [false, true] {
            for pieces in 1..6 {
                let body = Gathered::of(Measured { pieces, is_there }).begun().await;
                let length = body.size_hint().exact().expect("it says its length");
                let all = body.collect().await.expect("no error").to_bytes();
                assert_eq!((length, all.len()), (5 * pieces as u64, 5 * pieces));
            }
        }
    }

    #[tokio::test(start_paused = true)]
    async fn what_says_nothing_is_not_waited_for_and_keeps_its_length() {
        let silent = StreamBody::new(futures_util::stream::pending::<Result<Frame<Bytes>, Infallible>>());
        let begun = tokio::time::Instant::now();
        let body = Gathered::of(silent).begun().await;
        assert!(!body.is_end_stream());
        assert!(begun.elapsed().is_zero());
        let whole = Gathered::of(http_body_util::Full::new(Bytes::from_static(b"whole")))
            .begun()
            .await;
        assert_eq!(whole.size_hint().exact(), Some(5), "its piece counts until it is taken");
        let empty = Gathered::of(http_body_util::Empty::<Bytes>::new()).begun().await;
        assert!(empty.is_end_stream());
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
