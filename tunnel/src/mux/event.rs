//! What the state machine tells its shell.

use std::time::Duration;

use bytes::Bytes;

use crate::frame::{FrameError, GoAway, Kind, Open, Reset};

/// Something a stream's owner may be waiting for. "Look again", never a value that could get lost.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// The peer granted the stream we opened.
    Opened(u32),
    /// The peer wants a stream; answer with `accept` or `refuse`.
    Incoming(u32, Open),
    /// There is something to take.
    Readable(u32),
    /// There is room to write, or the FIN is out.
    Writable(u32),
    /// The stream is over for a reason other than two FINs.
    Ended(u32),
    /// The peer wants no new streams.
    GoAway(GoAway),
}

/// What [`super::Mux::take`] found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Taken {
    /// Bytes, in order; their credit goes back to the peer.
    Chunk(Bytes),
    /// Nothing yet; `Event::Readable` will say when.
    Nothing,
    /// The peer's FIN, after its last byte.
    Finished,
    /// The stream was reset.
    Ended(Reset),
}

/// What a peer did that cannot be pinned on one stream. It ends the tunnel.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Violation {
    /// A message that is no valid frame.
    #[error("invalid frame")]
    Frame(#[source] FrameError),
    /// A handshake's frame after the handshake.
    #[error("{0:?} frame after the handshake")]
    Unexpected(Kind),
    /// A frame for a stream that was never opened.
    #[error("frame for stream {stream}, which was never opened")]
    UnknownStream {
        /// The id.
        stream: u32,
    },
    /// An OPEN whose id is not the peer's to use, or was used before.
    #[error("stream id {stream} is not above {last} with the peer's parity")]
    StreamId {
        /// The id.
        stream: u32,
        /// The highest one the peer used so far.
        last: u32,
    },
    /// The peer made us answer more than it read.
    #[error("{waiting} control frames wait for a peer that does not read")]
    Flood {
        /// How many.
        waiting: usize,
    },
}

/// Why the peer counts as dead.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Death {
    /// Nothing came at all.
    #[error("nothing received for {0:?}")]
    Silent(Duration),
    /// It may answer pings, but takes none of our bytes.
    #[error("nothing could be sent for {0:?}")]
    Stuck(Duration),
}
