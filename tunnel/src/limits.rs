//! Every number the tunnel holds itself to, with the reason for it.
//!
//! Limits on what a peer may make us keep in memory come first, then those on how long we wait.

use std::time::Duration;

/// Bytes of a frame's header: type, length and stream id.
pub const HEADER_BYTES: usize = 8;

/// Largest payload any frame may announce. The negotiated value lies between this and
/// [`FRAME_PAYLOAD_BYTES_MIN`]: larger frames make a control frame wait longer behind one of data.
pub const FRAME_PAYLOAD_BYTES_MAX: usize = 64 * 1024;

/// Smallest `max_frame` a peer may ask for: HELLO and OPEN must always fit.
pub const FRAME_PAYLOAD_BYTES_MIN: usize = JSON_BYTES_MAX;

/// What we ask for: 32 KiB costs no throughput against 64 KiB and halves the wait behind one frame.
pub const FRAME_PAYLOAD_BYTES: usize = 32 * 1024;

/// What we send at most on a slow link: 1.3 ms of 100 Mbit/s.
pub const FRAME_PAYLOAD_BYTES_SLOW: usize = 16 * 1024;

/// 400 Mbit/s. From here on a batch of large frames holds others up for a millisecond or two, and half of it is still
/// more than 100 Mbit/s. Not higher, because a busy processor looks like a slow link.
pub const FAST_LINK_BYTES_PER_SECOND: f64 = 50e6;

/// Bytes after which a link's pace is judged anew: a few batches, so that one that stalled decides nothing.
pub const PACE_BYTES: u64 = 256 * 1024;

/// Time after which it is judged, however little went through.
pub const PACE_TIME: Duration = Duration::from_millis(20);

/// HELLO and OPEN are parsed as JSON, so they are small before they meet a parser.
pub const JSON_BYTES_MAX: usize = 4 * 1024;

/// What an agent calls its process: 128 random bits as hex digits, and room for another form.
pub const INSTANCE_BYTES_MAX: usize = 64;

/// A bootstrap token: 256 random bits as text, and what says that it is one.
pub const TOKEN_BYTES_MAX: usize = 128;

/// Text beside an error code is for a person's eyes and never decides anything.
pub const REASON_TEXT_BYTES_MAX: usize = 256;

/// A target longer than this is no address, object path or topic we know of.
pub const TARGET_BYTES_MAX: usize = 1024;

/// Same bound as a Kubernetes name; it is only carried into logs and audit lines.
pub const REQUEST_ID_BYTES_MAX: usize = 253;

/// A cluster's name is a Kubernetes name.
pub const CLUSTER_NAME_BYTES_MAX: usize = 253;

/// Hub endpoints a HELLO may list: two tunnels out of a handful of replicas, never a fleet of hubs.
pub const ENDPOINTS_MAX: usize = 16;

/// Bytes of one endpoint's URL; sixteen of these and the rest of HELLO stay below [`JSON_BYTES_MAX`].
pub const ENDPOINT_BYTES_MAX: usize = 128;

/// Characters of a program's version; it only stands in logs and tables.
pub const VERSION_CHARS_MAX: usize = 64;

/// Credit that HELLO gives every stream. The receiver adds to it at once where memory allows, and so
/// [`STREAMS_MAX`] streams that never get more take a quarter of [`TUNNEL_WINDOW_BYTES_MAX`].
pub const WINDOW_BYTES_FIRST: u32 = 16 * 1024;

/// Window a stream starts with. 256 KiB fills a 100 Mbit/s path of 20 ms; growth comes on top.
pub const WINDOW_BYTES: u32 = 256 * 1024;

/// Window a stream starts with where memory is scarce.
pub const WINDOW_BYTES_SCARCE: u32 = 64 * 1024;

/// Smallest first window a peer may grant: below one small frame a stream cannot move sensibly.
pub const WINDOW_BYTES_MIN: u32 = FRAME_PAYLOAD_BYTES_MIN as u32;

/// Largest credit a stream may hold: 4 MiB fills 100 Mbit/s at 300 ms; more only fills memory.
pub const WINDOW_BYTES_MAX: u32 = 4 * 1024 * 1024;

/// Time without a byte after which a grown window is taken back as it is used.
pub const WINDOW_REST: Duration = Duration::from_secs(10);

/// Sum of all windows of a tunnel: what a peer can make us hold. Sixteen streams with the largest window.
pub const TUNNEL_WINDOW_BYTES_MAX: u64 = 64 * 1024 * 1024;

/// One part of so many of a process's memory may be promised to peers.
pub const POOL_SHARE: u64 = 4;

/// However little memory there is: the first credits of one tunnel's streams.
pub const POOL_BYTES_MIN: u64 = STREAMS_MAX as u64 * WINDOW_BYTES_FIRST as u64;

/// Where nobody says how much memory there is: one tunnel's worth.
pub const POOL_BYTES_UNKNOWN: u64 = TUNNEL_WINDOW_BYTES_MAX;

/// Streams one peer may have open at once, in both directions together.
pub const STREAMS_MAX: usize = 1_000;

/// Opens that wait for an answer, each way. A stalled side must not collect tens of thousands.
pub const PENDING_OPENS_MAX: usize = 100;

/// Opens a second, each way. A request of a person may take a stream of its own, and sixteen callers of one cluster get
/// about 3,000 answers a second from an API server; more is a caller that runs wild.
pub const OPENS_PER_SECOND: f64 = 5_000.0;

/// Time whose opens may come at once, after a rest.
pub const OPENS_BURST: Duration = Duration::from_secs(1);

/// Time whose bytes may go at once where bandwidth is capped: a few batches at 100 Mbit/s.
pub const BANDWIDTH_BURST: Duration = Duration::from_millis(20);

/// Bytes a stream queues towards the wire before its writer waits: four frames keep the driver busy,
/// and what is queued here no longer can be overtaken within its stream.
pub const SEND_QUEUE_BYTES: usize = 4 * FRAME_PAYLOAD_BYTES;

/// Bytes that all streams of a tunnel queue before each queues one small frame only.
pub const TUNNEL_QUEUE_BYTES_CROWDED: usize = 16 * 1024 * 1024;

/// What a stream then queues; [`STREAMS_MAX`] of these are as much again.
pub const SEND_QUEUE_BYTES_CROWDED: usize = FRAME_PAYLOAD_BYTES_SLOW;

/// Payloads below this are copied out of the WebSocket's read buffer, and gathered up to one page, so that a stream of
/// one-byte frames costs no allocation per byte. A payload that is not copied keeps the whole block that it was read
/// into, of [`WEBSOCKET_READ_BUFFER_BYTES`] and a frame: a peer that sends little to be kept between much that is
/// ignored makes us hold three times its credit at most.
pub const SMALL_PAYLOAD_BYTES: usize = 16 * 1024;

/// Size at which gathered small payloads become one chunk for the reader.
pub const GATHERED_BYTES: usize = 4 * 1024;

/// Control frames that may wait for the wire. Honest peers need a few per stream
/// (`STREAMS_MAX` x (OPEN, OPEN_OK, RST) + PONGs); a peer that makes us answer and does not read is cut off.
pub const CONTROL_FRAMES_MAX: usize = 4 * STREAMS_MAX;

/// Unsent PONGs kept; older ones are dropped, because the newest answer is the one that proves life.
pub const PENDING_PONGS_MAX: usize = 16;

/// Ids that stand in a queue for the wire, of streams that are open or gone. Beyond, those that are gone are taken out: a
/// peer whose opens keep us answering would let them pile up otherwise.
pub const QUEUED_IDS_MAX: usize = 2 * STREAMS_MAX;

/// Streams that were idle may go first this many times in a row before a busy one gets its turn.
pub const IDLE_FIRST_IN_A_ROW: u32 = 8;

/// Bytes taken from the mux before a flush: two frames, about what `NOTSENT_LOWAT_BYTES` lets out at once.
pub const BATCH_BYTES: usize = 64 * 1024;

/// The same on a slow link: one small frame.
pub const BATCH_BYTES_SLOW: usize = FRAME_PAYLOAD_BYTES_SLOW;

/// Messages the driver reads before it turns to writing: no side can starve the other.
pub const MESSAGES_PER_TURN: usize = 64;

/// Batches the driver writes before other tasks of its worker get their turn: 1 MiB.
pub const BATCHES_PER_TURN: usize = 16;

/// One TLS record. tungstenite zero-fills it for every read, so it is paid once per small message, and every idle
/// tunnel keeps one.
pub const WEBSOCKET_READ_BUFFER_BYTES: usize = 16 * 1024;

/// tungstenite's own bound on what it buffers when the socket does not take it.
pub const WEBSOCKET_WRITE_BUFFER_BYTES_MAX: usize = 1024 * 1024;

/// Unsent bytes in the kernel. What sits there cannot be overtaken by a ping, so it must be little.
pub const NOTSENT_LOWAT_BYTES: u32 = 16 * 1024;

/// Bytes of a proxy's answer to CONNECT: some headers, as other programs allow them, and no page.
pub const PROXY_ANSWER_BYTES_MAX: usize = 8 * 1024;

/// Characters of a proxy's own words for its status; they stand in a log line.
pub const PROXY_REASON_CHARS_MAX: usize = 120;

/// Addresses of one name that are tried: some of each family, and no list that a name server made up.
pub const ADDRESSES_MAX: usize = 16;

/// Bytes of a key file we are willing to read; a PKCS#8 Ed25519 key takes about 200.
pub const KEY_FILE_BYTES_MAX: usize = 16 * 1024;

/// Silence after which we ask the peer for a sign of life. NAT entries live 30 to 60 seconds.
pub const PING_AFTER: Duration = Duration::from_secs(10);

/// Age at which the round-trip time is measured anew, while windows grow by it.
pub const RTT_AGE_MAX: Duration = Duration::from_secs(5);

/// Age at which it is measured anew on a quiet tunnel, and of a tunnel at which it is measured first. The end with the shorter
/// silence asks there, and the other one has no ping of its own.
pub const RTT_QUIET_AGE_MAX: Duration = Duration::from_secs(30);

/// Silence after which the peer is dead. Any byte counts, so bulk never kills a tunnel. A second less than the 25
/// that are promised, because timers and processors may be late.
pub const DEAD_AFTER: Duration = Duration::from_secs(24);

/// All of TCP, TLS, upgrade and HELLO.
pub const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);

/// One step of the handshake.
pub const STEP_TIMEOUT: Duration = Duration::from_secs(5);

/// How long an address may take before the next one is tried beside it: what RFC 8305 recommends.
pub const DIAL_HEAD_START: Duration = Duration::from_millis(250);

/// Time a closing tunnel has to get its last GOAWAY out.
pub const CLOSE_TIMEOUT: Duration = Duration::from_secs(2);

/// Longest time an OPEN may ask the other side to spend on its target.
pub const OPEN_DEADLINE_MAX: Duration = Duration::from_secs(60);

/// The epoch of an agent that only asks whether it would be let in: its tunnel ends after the handshake, and takes no
/// other's place.
pub const PROBE_EPOCH: u64 = 0;
