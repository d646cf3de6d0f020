//! A slow link in user space: a token bucket behind a bounded queue, then a line that delays.
//!
//! ```text
//!  socket ─▶ queue of 130 KiB ─▶ token bucket, 100 Mbit/s ─▶ line, 30 ms ─▶ socket      (the same each way)
//! ```
//!
//! All connections of a direction share its queue, in the order in which their bytes came, as at a router.
//! A full queue makes senders wait where a router would drop; what waits in their kernel is theirs. Small
//! receive buffers keep the link itself from being a second queue.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpSocket, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};
use tokio::time::{Instant, sleep_until};

use super::place::Place;

/// 100 Mbit/s.
pub(super) const BYTES_PER_SECOND: f64 = 12_500_000.0;
/// One way; there and back is 60 ms.
const DELAY: Duration = Duration::from_millis(30);
/// What the router queues before it makes senders wait.
const QUEUE_BYTES: usize = 130 * 1024;
/// Doubled by the kernel; the least that does not slow a connection of one machine down.
const RECEIVE_BUFFER_BYTES: u32 = 8 * 1024;
/// What is read at once: a few packets.
const PACKET_BYTES: usize = 4 * 1024;
/// Packets on the line: more than rate x delay can put there.
const LINE_PACKETS: usize = 1_024;
/// Packets in the queue; its bytes are bounded by `QUEUE_BYTES`, and packets may be small.
const QUEUE_PACKETS: usize = 8 * 1024;
/// Time the bucket may have saved up: timers are that coarse.
const BURST: Duration = Duration::from_millis(3);

/// One direction of the link.
struct Way {
    room: Arc<Semaphore>,
    queue: mpsc::Sender<Packet>,
    silent: Arc<AtomicBool>,
}

struct Packet {
    bytes: Bytes,
    room: OwnedSemaphorePermit,
    line: mpsc::Sender<(Instant, Bytes)>,
}

/// The link; each address it gives leads through it to another one.
#[derive(Clone)]
pub(super) struct Link {
    there: Arc<Way>,
    back: Arc<Way>,
    silent: Arc<AtomicBool>,
}

impl Link {
    /// A link whose work is done at `place`.
    pub(super) fn start(place: &Place) -> anyhow::Result<Self> {
        place.run(async {
            let silent = Arc::new(AtomicBool::new(false));
            let way = || Arc::new(Way::start(&silent));
            Ok(Self {
                there: way(),
                back: way(),
                silent: Arc::clone(&silent),
            })
        })
    }

    /// An address from which all connections go through the link to `to`.
    pub(super) fn to(&self, place: &Place, to: SocketAddr) -> anyhow::Result<SocketAddr> {
        let link = self.clone();
        place.run(async move {
            let socket = TcpSocket::new_v4()?;
            socket.set_recv_buffer_size(RECEIVE_BUFFER_BYTES)?;
            socket.bind("127.0.0.1:0".parse()?)?;
            let listener = socket.listen(64)?;
            let address = listener.local_addr()?;
            tokio::spawn(async move {
                while let Ok((near, _)) = listener.accept().await {
                    tokio::spawn(link.clone().carry(near, to));
                }
            });
            Ok(address)
        })
    }

    /// From now on it swallows everything, and says so to nobody.
    pub(super) fn fall_silent(&self) {
        self.silent.store(true, Ordering::Relaxed);
    }

    async fn carry(self, near: TcpStream, to: SocketAddr) -> anyhow::Result<()> {
        let far = TcpSocket::new_v4()?;
        far.set_recv_buffer_size(RECEIVE_BUFFER_BYTES)?;
        let far = far.connect(to).await?;
        near.set_nodelay(true)?;
        far.set_nodelay(true)?;
        let ((near_in, near_out), (far_in, far_out)) = (near.into_split(), far.into_split());
        tokio::spawn(async move { self.there.carry(near_in, far_out).await });
        self.back.carry(far_in, near_out).await;
        Ok(())
    }
}

impl Way {
    fn start(silent: &Arc<AtomicBool>) -> Self {
        let (queue, packets) = mpsc::channel(QUEUE_PACKETS);
        tokio::spawn(shape(packets));
        Self {
            room: Arc::new(Semaphore::new(QUEUE_BYTES)),
            queue,
            silent: Arc::clone(silent),
        }
    }

    async fn carry(&self, mut from: OwnedReadHalf, to: OwnedWriteHalf) {
        let (line, packets) = mpsc::channel(LINE_PACKETS);
        tokio::spawn(delay(packets, to, Arc::clone(&self.silent)));
        loop {
            let Ok(room) = Arc::clone(&self.room).acquire_many_owned(PACKET_BYTES as u32).await else {
                return;
            };
            let mut bytes = BytesMut::with_capacity(PACKET_BYTES);
            match from.read_buf(&mut bytes).await {
                Ok(1..) => {}
                // A silent link does not even say that an end is gone.
                Ok(0) | Err(_) if self.silent.load(Ordering::Relaxed) => return std::future::pending().await,
                Ok(0) | Err(_) => return,
            }
            let (bytes, line) = (bytes.freeze(), line.clone());
            if self.queue.send(Packet { bytes, room, line }).await.is_err() {
                return;
            }
        }
    }
}

/// Lets packets out at the link's rate.
async fn shape(mut packets: mpsc::Receiver<Packet>) {
    let mut free = Instant::now();
    while let Some(Packet { bytes, room, line }) = packets.recv().await {
        let now = Instant::now();
        free = free.max(now - BURST) + Duration::from_secs_f64(bytes.len() as f64 / BYTES_PER_SECOND);
        sleep_until(free).await;
        drop(room);
        // A connection that is gone wants no more packets.
        let _ = line.send((Instant::now() + DELAY, bytes)).await;
    }
}

/// Delivers a connection's packets late.
async fn delay(mut packets: mpsc::Receiver<(Instant, Bytes)>, mut to: OwnedWriteHalf, silent: Arc<AtomicBool>) {
    while let Some((at, bytes)) = packets.recv().await {
        sleep_until(at).await;
        if !silent.load(Ordering::Relaxed) && to.write_all(&bytes).await.is_err() {
            return;
        }
    }
}
