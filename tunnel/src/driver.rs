//! The one task of a tunnel: it carries messages between the WebSocket and the state machine.
//!
//! It never waits for a stream: what a reader does not take stays within that stream's credit. It reads
//! while it cannot write and writes while nothing comes, so two full sockets do not stop each other.

#[cfg(test)]
mod crowd_tests;
#[cfg(test)]
mod tests;

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use futures_util::{Sink as _, SinkExt as _, Stream as _, StreamExt as _};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::time::{Instant, Sleep, sleep_until, timeout};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::tungstenite::protocol::{CloseFrame, WebSocketConfig};
use tokio_tungstenite::tungstenite::{Error, Message};

use crate::frame::{Frame, GoAway, GoAwayReason, encode};
use crate::limits::{
    BATCH_BYTES, BATCHES_PER_TURN, CLOSE_TIMEOUT, DEAD_AFTER, FRAME_PAYLOAD_BYTES_MAX, HEADER_BYTES, MESSAGES_PER_TURN,
    NOTSENT_LOWAT_BYTES, WEBSOCKET_READ_BUFFER_BYTES, WEBSOCKET_WRITE_BUFFER_BYTES_MAX,
};
use crate::shared::{CloseReason, Shared};

/// How both sides set up their WebSocket.
pub(crate) fn websocket_config() -> WebSocketConfig {
    let message_bytes_max = Some(HEADER_BYTES + FRAME_PAYLOAD_BYTES_MAX);
    WebSocketConfig::default()
        .read_buffer_size(WEBSOCKET_READ_BUFFER_BYTES)
        .write_buffer_size(BATCH_BYTES)
        .max_write_buffer_size(WEBSOCKET_WRITE_BUFFER_BYTES_MAX)
        .max_message_size(message_bytes_max)
        .max_frame_size(message_bytes_max)
}

/// Sets the socket up for a tunnel: little in the kernel that a ping cannot overtake, and no write that
/// hangs longer than a silent peer may.
pub(crate) fn tune(socket: &TcpStream) -> std::io::Result<()> {
    socket.set_nodelay(true)?;
    #[cfg(target_os = "linux")]
    {
        let socket = socket2::SockRef::from(socket);
        socket.set_tcp_user_timeout(Some(DEAD_AFTER))?;
        socket.set_tcp_notsent_lowat(NOTSENT_LOWAT_BYTES)?;
    }
    Ok(())
}

/// Closes the tunnel even if the driver is dropped or panics; streams must not wait for nobody.
struct Ending(Arc<Shared>);

impl Drop for Ending {
    fn drop(&mut self) {
        self.0.close(CloseReason::Aborted);
    }
}

/// Drives the tunnel to its end.
pub(crate) async fn drive<S: AsyncRead + AsyncWrite + Unpin>(socket: WebSocketStream<S>, shared: Arc<Shared>) {
    let ending = Ending(Arc::clone(&shared));
    let timer = Box::pin(sleep_until(Instant::now()));
    let mut driver = Driver {
        socket,
        shared,
        timer,
        frames: Vec::new(),
        flushing: false,
        gathered: false,
        held: None,
    };
    let reason = std::future::poll_fn(|cx| driver.poll(cx)).await;
    tracing::debug!(error = %reason, "Closed tunnel.");
    driver.shared.close(reason.clone());
    drop(ending);
    // The other side may be gone; then there is nobody to take leave of.
    let _ = timeout(CLOSE_TIMEOUT, driver.farewell(&reason)).await;
}

struct Driver<S> {
    socket: WebSocketStream<S>,
    shared: Arc<Shared>,
    timer: Pin<Box<Sleep>>,
    frames: Vec<Bytes>,
    flushing: bool,
    /// Streams that were ready as well have had their turn.
    gathered: bool,
    /// Ends when the bandwidth lets something out again.
    held: Option<Pin<Box<Sleep>>>,
}

impl<S: AsyncRead + AsyncWrite + Unpin> Driver<S> {
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<CloseReason> {
        self.shared.register_driver(cx.waker());
        if let Some(away) = self.shared.stopping() {
            return Poll::Ready(CloseReason::Local(away));
        }
        let turn = self
            .poll_time(cx)
            .and_then(|()| self.poll_read(cx))
            .and_then(|()| self.poll_write(cx));
        match turn {
            Ok(()) => Poll::Pending,
            Err(reason) => Poll::Ready(reason),
        }
    }

    /// Every message moves the deadline, so the timer is set anew only when it fires: it can only be early.
    fn poll_time(&mut self, cx: &mut Context<'_>) -> Result<(), CloseReason> {
        while self.timer.as_mut().poll(cx).is_ready() {
            let due = self.shared.tick().map_err(CloseReason::Dead)?;
            self.timer.as_mut().reset(due);
        }
        Ok(())
    }

    fn poll_read(&mut self, cx: &mut Context<'_>) -> Result<(), CloseReason> {
        for _ in 0..MESSAGES_PER_TURN {
            match Pin::new(&mut self.socket).poll_next(cx) {
                Poll::Pending => return Ok(()),
                Poll::Ready(Some(Ok(message))) => self.on_message(message)?,
                Poll::Ready(Some(Err(error))) => return Err(self.failed(error)),
                Poll::Ready(None) => return Err(self.closed_by_peer()),
            }
        }
        // There may be more; let this worker's other tasks have their turn first.
        cx.waker().wake_by_ref();
        Ok(())
    }

    fn on_message(&mut self, message: Message) -> Result<(), CloseReason> {
        match message {
            Message::Binary(bytes) => self.shared.on_message(bytes).map_err(CloseReason::Violation),
            // tungstenite has put its answer into the buffer, where it waits for a flush.
            Message::Ping(_) => {
                self.flushing = true;
                self.shared.answers();
                Ok(())
            }
            Message::Pong(_) => Ok(()),
            Message::Close(_) => Err(self.closed_by_peer()),
            Message::Text(_) | Message::Frame(_) => Err(CloseReason::Connection("text message".to_owned())),
        }
    }

    fn closed_by_peer(&self) -> CloseReason {
        CloseReason::Peer(self.shared.draining().borrow().clone())
    }

    fn failed(&self, error: Error) -> CloseReason {
        match error {
            Error::ConnectionClosed | Error::AlreadyClosed => self.closed_by_peer(),
            error => CloseReason::Connection(error.to_string()),
        }
    }

    /// Takes a batch only when the last one is with the kernel, so that what is urgent can still go first.
    fn poll_write(&mut self, cx: &mut Context<'_>) -> Result<(), CloseReason> {
        if !self.flushing && !self.gathered && self.shared.has_output() {
            // Whoever is ready in this moment writes first, and all of it goes in one message to the kernel: a task that wakes
            // itself comes behind the others, while one that a stream woke would come before them.
            self.gathered = true;
            cx.waker().wake_by_ref();
            return Ok(());
        }
        self.gathered = false;
        for _ in 0..BATCHES_PER_TURN {
            if !self.flushing {
                let held_until = self.shared.batch(&mut self.frames);
                self.held = held_until.map(|due| Box::pin(sleep_until(due)));
                if let Some(held) = &mut self.held
                    && held.as_mut().poll(cx).is_ready()
                {
                    continue;
                }
                if self.frames.is_empty() {
                    return Ok(());
                }
                self.flushing = true;
                // A batch and a frame fit into tungstenite's buffer many times, so it need not be asked first.
                for frame in self.frames.drain(..) {
                    Pin::new(&mut self.socket)
                        .start_send(Message::Binary(frame))
                        .map_err(closed)?;
                }
            }
            match Pin::new(&mut self.socket).poll_flush(cx) {
                Poll::Pending => return Ok(()),
                Poll::Ready(Err(error)) => return Err(self.failed(error)),
                Poll::Ready(Ok(())) => {
                    self.flushing = false;
                    self.shared.flushed();
                }
            }
        }
        cx.waker().wake_by_ref();
        Ok(())
    }

    async fn farewell(&mut self, reason: &CloseReason) -> Result<(), Error> {
        let (away, code) = match reason {
            CloseReason::Local(away) => (away.clone(), CloseCode::Normal),
            CloseReason::Violation(violation) => (
                GoAway::new(GoAwayReason::ProtocolError, violation.to_string()),
                CloseCode::Protocol,
            ),
            _ => return Ok(()),
        };
        if let Ok(frame) = encode(&Frame::GoAway(away)) {
            self.socket.send(Message::Binary(frame)).await?;
        }
        self.socket
            .close(Some(CloseFrame {
                code,
                reason: "".into(),
            }))
            .await?;
        // Closing a socket with unread bytes resets it, and the peer would lose what we just said.
        while let Some(Ok(_)) = self.socket.next().await {}
        Ok(())
    }
}

fn closed(error: Error) -> CloseReason {
    CloseReason::Connection(error.to_string())
}
