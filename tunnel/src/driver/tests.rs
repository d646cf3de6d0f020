//! Drivers over a pipe in memory, on a clock that jumps.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream, ReadBuf};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;
use tokio::time::Instant;
use tokio_tungstenite::tungstenite::protocol::Role as SocketRole;

use super::*;
use crate::allowance::Allowance;
use crate::frame::{Open, TargetClass};
use crate::identity::Role;
use crate::limits::{FRAME_PAYLOAD_BYTES, STREAMS_MAX, WINDOW_BYTES};
use crate::mux::{Death, Terms};
use crate::stream::TunnelStream;

pub(super) struct End {
    pub(super) shared: Arc<Shared>,
    pub(super) opens: mpsc::Receiver<(u32, Open)>,
}

async fn socket<S>(pipe: S, role: Role) -> WebSocketStream<S>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let role = if role == Role::Hub {
        SocketRole::Server
    } else {
        SocketRole::Client
    };
    WebSocketStream::from_raw_socket(pipe, role, Some(websocket_config())).await
}

pub(super) async fn end(pipe: DuplexStream, role: Role) -> End {
    end_with(pipe, role, Allowance::default()).await
}

pub(super) async fn end_with<S>(pipe: S, role: Role, allowance: Allowance) -> End
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let terms = Terms {
        role,
        frame_bytes_in: FRAME_PAYLOAD_BYTES,
        frame_bytes_out: FRAME_PAYLOAD_BYTES,
        window_in: WINDOW_BYTES,
        window_out: WINDOW_BYTES,
        streams_max: STREAMS_MAX,
        ping_jitter: 0.5,
    };
    let (shared, opens) = Shared::new(terms, allowance);
    tokio::spawn(drive(socket(pipe, role).await, Arc::clone(&shared)));
    End { shared, opens }
}

pub(super) async fn closed(end: &End) -> CloseReason {
    let mut closed = end.shared.closed();
    let reason = closed
        .wait_for(Option::is_some)
        .await
        .expect("the sender lives")
        .clone();
    reason.expect("it was waited for")
}

pub(super) fn open(end: &End) -> TunnelStream {
    let wish = Open::new(TargetClass::Deliver, "", Duration::from_secs(5));
    let id = end
        .shared
        .act(|mux| mux.open(&wish, Duration::ZERO))
        .expect("there is room");
    TunnelStream::new(Arc::clone(&end.shared), id)
}

pub(super) async fn granted(end: &mut End) -> TunnelStream {
    let (id, _) = end.opens.recv().await.expect("an open comes");
    assert!(end.shared.act(|mux| mux.accept(id)), "it is still wanted");
    TunnelStream::new(Arc::clone(&end.shared), id)
}

/// Counts what is written.
struct Counting {
    pipe: DuplexStream,
    writes: Arc<AtomicUsize>,
}

impl AsyncRead for Counting {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.pipe).poll_read(cx, buf)
    }
}

impl AsyncWrite for Counting {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<std::io::Result<usize>> {
        self.writes.fetch_add(1, Ordering::Relaxed);
        Pin::new(&mut self.pipe).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.pipe).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.pipe).poll_shutdown(cx)
    }
}

// With the queues that a program has: those of a test on one thread come in order by themselves.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn what_streams_write_in_the_same_moment_goes_out_at_once() {
    const STREAMS: usize = 10;
    let (pipe, theirs) = tokio::io::duplex(64 * 1024);
    let writes = Arc::<AtomicUsize>::default();
    let counted = Counting {
        pipe,
        writes: Arc::clone(&writes),
    };
    let hub = end_with(counted, Role::Hub, Allowance::default()).await;
    let mut agent = end(theirs, Role::Agent).await;
    let (begin, begun) = watch::channel(());
    let (stands, mut standing) = mpsc::channel(STREAMS);
    let (mut writing, mut far) = (JoinSet::new(), Vec::new());
    for _ in 0..STREAMS {
        let (mut near, mut begun, stands) = (open(&hub), begun.clone(), stands.clone());
        far.push(granted(&mut agent).await);
        writing.spawn(async move {
            stands.send(()).await.expect("somebody counts");
            begun.changed().await.expect("it begins");
            near.write_all(b"asked").await.expect("the tunnel lives");
            near
        });
    }
    for _ in 0..STREAMS {
        standing.recv().await.expect("they come");
    }
    let before = writes.load(Ordering::Relaxed);
    // On the worker, where all of them wait by now.
    let begin = tokio::spawn(async move { begin.send_replace(()) });
    let _near = writing.join_all().await;
    begin.await.expect("no panic");
    for stream in &mut far {
        let mut read = [0; 5];
        stream.read_exact(&mut read).await.expect("the tunnel lives");
        assert_eq!(&read, b"asked");
    }
    assert_eq!(writes.load(Ordering::Relaxed) - before, 1);
}

#[tokio::test(start_paused = true)]
async fn a_peer_that_froze_is_dead_after_25_seconds() {
    let (ours, theirs) = tokio::io::duplex(64 * 1024);
    let hub = end(ours, Role::Hub).await;
    let _frozen = socket(theirs, Role::Agent).await;
    let begun = Instant::now();
    let mut stream = open(&hub);
    let writing = tokio::spawn(async move { stream.write_all(&vec![0; 1 << 20]).await });
    assert!(matches!(
        closed(&hub).await,
        CloseReason::Dead(Death::Silent(_) | Death::Stuck(_))
    ));
    assert!(
        begun.elapsed() < Duration::from_secs(26),
        "found after {:?}",
        begun.elapsed()
    );
    assert!(writing.await.expect("no panic").is_err(), "its streams fail at once");
}

#[tokio::test(start_paused = true)]
async fn a_peer_that_asks_for_websocket_pongs_and_takes_none_is_dead_too() {
    let (ours, theirs) = tokio::io::duplex(512);
    let hub = end(ours, Role::Hub).await;
    let mut peer = socket(theirs, Role::Agent).await;
    let talking = async {
        loop {
            let alive = encode(&Frame::Pong([0; 8])).expect("it fits");
            for message in [Message::Binary(alive), Message::Ping(vec![0; 100].into())] {
                peer.send(message).await.expect("the tunnel takes it");
            }
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
    };
    let closed = tokio::select! {
        closed = tokio::time::timeout(Duration::from_secs(40), closed(&hub)) => closed,
        () = talking => unreachable!("it talks for ever"),
    };
    assert!(matches!(closed, Ok(CloseReason::Dead(Death::Stuck(_)))), "{closed:?}");
}

#[tokio::test(start_paused = true)]
async fn an_idle_hour_ends_no_tunnel() {
    let (ours, theirs) = tokio::io::duplex(64 * 1024);
    let hub = end(ours, Role::Hub).await;
    let mut agent = end(theirs, Role::Agent).await;
    tokio::time::sleep(Duration::from_secs(3_600)).await;
    assert!(hub.shared.closed().borrow().is_none(), "pings kept it alive");
    assert!(hub.shared.rtt().is_some(), "and measured it");
    let mut left = open(&hub);
    let mut right = granted(&mut agent).await;
    left.write_all(b"hello").await.expect("the tunnel lives");
    let mut read = [0; 5];
    right.read_exact(&mut read).await.expect("the tunnel lives");
    assert_eq!(&read, b"hello");
}

#[tokio::test(start_paused = true)]
async fn bulk_over_a_slow_pipe_kills_no_tunnel() {
    let (ours, theirs) = tokio::io::duplex(4 * 1024);
    let hub = end(ours, Role::Hub).await;
    let mut agent = end(theirs, Role::Agent).await;
    let mut left = open(&hub);
    let mut right = granted(&mut agent).await;
    let writing = tokio::spawn(async move {
        left.write_all(&vec![5; 1 << 20]).await.expect("the tunnel lives");
        left.shutdown().await.expect("the tunnel lives");
        left
    });
    let (mut read, mut chunk) = (0, vec![0; 32 * 1024]);
    loop {
        // Slower than a ping, and longer in sum than any silence may be.
        tokio::time::sleep(Duration::from_secs(7)).await;
        match right.read(&mut chunk).await.expect("the tunnel lives") {
            0 => break,
            bytes => read += bytes,
        }
    }
    assert_eq!(read, 1 << 20);
    drop(writing.await.expect("no panic"));
}

#[tokio::test]
async fn a_text_message_ends_the_tunnel() {
    let (ours, theirs) = tokio::io::duplex(64 * 1024);
    let hub = end(ours, Role::Hub).await;
    let mut peer = socket(theirs, Role::Agent).await;
    peer.send(Message::text("hello")).await.expect("the pipe is open");
    assert_eq!(closed(&hub).await, CloseReason::Connection("text message".to_owned()));
}

#[tokio::test]
async fn a_peer_that_breaks_the_protocol_is_told_so() {
    let (ours, theirs) = tokio::io::duplex(64 * 1024);
    let hub = end(ours, Role::Hub).await;
    let mut peer = socket(theirs, Role::Agent).await;
    peer.send(Message::binary(&[0xff_u8, 0, 0, 0, 0, 0, 0, 0][..]))
        .await
        .expect("the pipe is open");
    assert!(matches!(closed(&hub).await, CloseReason::Violation(_)));
    let Some(Ok(Message::Binary(last))) = peer.next().await else {
        unreachable!("a GOAWAY")
    };
    let away = crate::frame::decode(last, 4_096).expect("sound");
    assert!(matches!(away, Some(Frame::GoAway(away)) if away.reason == GoAwayReason::ProtocolError));
    let Some(Ok(Message::Close(Some(close)))) = peer.next().await else {
        unreachable!("a Close")
    };
    assert_eq!(close.code, CloseCode::Protocol);
}

#[tokio::test]
async fn a_runtime_that_ends_fails_streams_instead_of_leaving_them_waiting() {
    let (ours, _theirs) = tokio::io::duplex(64 * 1024);
    let (shared, _opens) = {
        let hub = end(ours, Role::Hub).await;
        (hub.shared, hub.opens)
    };
    let ending = Ending(Arc::clone(&shared));
    drop(ending);
    let mut closed = shared.closed();
    assert_eq!(
        closed
            .wait_for(Option::is_some)
            .await
            .expect("the sender lives")
            .clone(),
        Some(CloseReason::Aborted)
    );
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_socket_gives_up_on_a_peer_when_the_tunnel_would() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let dialled = TcpStream::connect(listener.local_addr().expect("it is bound"));
    let socket = dialled.await.expect("it listens");
    tune(&socket).expect("it takes them");
    let settings = socket2::SockRef::from(&socket);
    assert_eq!(settings.tcp_user_timeout().expect("it says"), Some(DEAD_AFTER));
    assert_eq!(settings.tcp_notsent_lowat().expect("it says"), NOTSENT_LOWAT_BYTES);
    assert!(
        !settings.keepalive().expect("it says"),
        "pings of the tunnel's own are enough"
    );
}
