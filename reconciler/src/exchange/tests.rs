use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use http_body_util::{BodyExt as _, Empty};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, DuplexStream, ReadBuf, duplex};

use super::*;

/// Notes whether it was ended, and not only left.
struct Noted {
    pipe: DuplexStream,
    is_ended: Arc<AtomicBool>,
}

impl AsyncRead for Noted {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.pipe).poll_read(cx, buf)
    }
}

impl AsyncWrite for Noted {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<std::io::Result<usize>> {
        Pin::new(&mut self.pipe).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.pipe).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        self.is_ended.store(true, Ordering::Relaxed);
        Pin::new(&mut self.pipe).poll_shutdown(cx)
    }
}

/// Asks once, and gives what was answered, the other end, and whether this one was ended.
async fn asked(answer: &str, home: Option<Home<Empty<Bytes>>>) -> (Bytes, DuplexStream, Arc<AtomicBool>) {
    let is_ended = Arc::<AtomicBool>::default();
    let (pipe, mut other) = duplex(1 << 10);
    let stream = Noted {
        pipe,
        is_ended: Arc::clone(&is_ended),
    };
    let line = Line::changing(TokioIo::new(stream)).await.expect("a line");
    let request = Request::get("/").body(Empty::<Bytes>::new()).expect("a request");
    let answering = async {
        let mut asked = Vec::new();
        while !asked.ends_with(b"\r\n\r\n") {
            assert_ne!(other.read_buf(&mut asked).await.expect("it is open"), 0);
        }
        other.write_all(answer.as_bytes()).await.expect("it is open");
    };
    let (answered, ()) = tokio::join!(line.ask(request, home), answering);
    let Ok(answered) = answered else {
        unreachable!("it is answered");
    };
    let said = answered.into_body().collect().await.expect("a body").to_bytes();
    (said, other, is_ended)
}

#[tokio::test]
async fn a_line_that_nobody_keeps_is_ended_in_good_order_although_the_other_side_would_keep_it() {
    for (answer, body) in [
        ("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok", "ok"),
        ("HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n", ""),
        ("HTTP/1.1 204 No Content\r\n\r\n", ""),
    ] {
        let (said, mut other, is_ended) = asked(answer, None).await;
        assert_eq!(said, body);
        assert_eq!(other.read(&mut [0]).await.expect("an end"), 0);
        assert!(is_ended.load(Ordering::Relaxed), "{answer}");
    }
}

#[tokio::test]
async fn lines_that_wait_are_ended_in_good_order_with_their_shelf() {
    let shelf = Shelf::new(Room {
        in_all: 1,
        at_place: 1,
        stay: Duration::from_secs(60),
        look: Duration::from_secs(60),
    });
    let (_, mut other, is_ended) = asked("HTTP/1.1 204 No Content\r\n\r\n", Some(shelf.home((), ()))).await;
    assert!(!is_ended.load(Ordering::Relaxed));
    drop(shelf);
    assert_eq!(other.read(&mut [0]).await.expect("an end"), 0);
    assert!(is_ended.load(Ordering::Relaxed));
}
