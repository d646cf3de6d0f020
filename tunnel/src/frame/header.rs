//! The eight bytes before every payload, and what can be wrong with a frame.

use bytes::{Buf, BufMut, Bytes, BytesMut};

use crate::limits::HEADER_BYTES;

/// Set in a frame's type when a peer that does not know the type must end the tunnel.
pub(super) const CRITICAL: u8 = 0x80;

/// The frame types of protocol version 1.
///
/// Those that a stream's meaning hangs on are critical; a peer may ignore the others and lose only comfort.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Kind {
    /// First frame each way.
    Hello = 0x81,
    /// The hub's proof, which ends the handshake.
    Auth = 0x82,
    /// Asks for a stream.
    Open = 0x83,
    /// Grants it.
    OpenOk = 0x84,
    /// Bytes of a stream.
    Data = 0x85,
    /// More credit for a stream.
    Window = 0x86,
    /// No more bytes in this direction.
    Fin = 0x87,
    /// The stream is over, in both directions.
    Rst = 0x88,
    /// Asks for a sign of life.
    Ping = 0x09,
    /// Gives it.
    Pong = 0x0a,
    /// No new streams, please.
    GoAway = 0x0b,
}

impl Kind {
    /// Every kind, in the order of `docs/protocol.md`.
    pub const ALL: [Self; 11] = [
        Self::Hello,
        Self::Auth,
        Self::Open,
        Self::OpenOk,
        Self::Data,
        Self::Window,
        Self::Fin,
        Self::Rst,
        Self::Ping,
        Self::Pong,
        Self::GoAway,
    ];

    /// Its place in [`Kind::ALL`].
    pub(crate) fn index(self) -> usize {
        usize::from(self as u8 & !CRITICAL) - 1
    }

    /// What a frame of ours is.
    pub(crate) fn of(frame: &[u8]) -> Option<Self> {
        frame.first().copied().and_then(Self::from_wire)
    }

    /// Its name in metrics.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Hello => "Hello",
            Self::Auth => "Auth",
            Self::Open => "Open",
            Self::OpenOk => "OpenOk",
            Self::Data => "Data",
            Self::Window => "Window",
            Self::Fin => "Fin",
            Self::Rst => "Rst",
            Self::Ping => "Ping",
            Self::Pong => "Pong",
            Self::GoAway => "GoAway",
        }
    }

    fn from_wire(byte: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| *kind as u8 == byte)
    }

    /// Whether frames of this kind belong to a stream and so carry an id other than 0.
    #[must_use]
    pub fn is_of_stream(self) -> bool {
        matches!(
            self,
            Self::Open | Self::OpenOk | Self::Data | Self::Window | Self::Fin | Self::Rst
        )
    }
}

/// Why a message is no frame we can go on with. Each of these ends the tunnel.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FrameError {
    /// Shorter than a header.
    #[error("message of {bytes} bytes is shorter than a frame's header")]
    Truncated {
        /// Length of the whole message.
        bytes: usize,
    },
    /// The header's length is not the message's.
    #[error("frame announces {announced} bytes of payload and carries {carried}")]
    LengthMismatch {
        /// What the header says.
        announced: usize,
        /// What came.
        carried: usize,
    },
    /// More than was agreed.
    #[error("frame payload of {bytes} bytes exceeds the agreed {bytes_max}")]
    TooLarge {
        /// What came.
        bytes: usize,
        /// What we said we take.
        bytes_max: usize,
    },
    /// A type we do not know, with the critical bit.
    #[error("unknown critical frame type {kind:#04x}")]
    UnknownCritical {
        /// The type byte.
        kind: u8,
    },
    /// A stream frame on stream 0, or a tunnel frame on another.
    #[error("{kind:?} frame on stream {stream}")]
    WrongStream {
        /// The frame's type.
        kind: Kind,
        /// The stream id it came with.
        stream: u32,
    },
    /// The payload does not have the form of its type.
    #[error("malformed {kind:?} frame: {what}")]
    Malformed {
        /// The frame's type.
        kind: Kind,
        /// The stream it belongs to, or 0.
        stream: u32,
        /// What is wrong.
        what: &'static str,
    },
}

/// Splits a message into type, stream and payload.
///
/// Gives `None` for an unknown type without the critical bit, which is to be ignored.
pub(super) fn split(mut message: Bytes, payload_bytes_max: usize) -> Result<Option<(Kind, u32, Bytes)>, FrameError> {
    if message.len() < HEADER_BYTES {
        return Err(FrameError::Truncated { bytes: message.len() });
    }
    let first = message.get_u32();
    let stream = message.get_u32();
    let announced = (first & 0x00ff_ffff) as usize;
    if announced != message.len() {
        return Err(FrameError::LengthMismatch {
            announced,
            carried: message.len(),
        });
    }
    if announced > payload_bytes_max {
        return Err(FrameError::TooLarge {
            bytes: announced,
            bytes_max: payload_bytes_max,
        });
    }
    let [byte, ..] = first.to_be_bytes();
    let Some(kind) = Kind::from_wire(byte) else {
        let critical = byte & CRITICAL != 0;
        return if critical {
            Err(FrameError::UnknownCritical { kind: byte })
        } else {
            Ok(None)
        };
    };
    if kind.is_of_stream() == (stream == 0) {
        return Err(FrameError::WrongStream { kind, stream });
    }
    Ok(Some((kind, stream, message)))
}

/// Room for a header and `payload_bytes` more, with the header's place kept free at the front.
pub(crate) fn reserve(payload_bytes: usize) -> BytesMut {
    let mut frame = BytesMut::with_capacity(HEADER_BYTES + payload_bytes);
    frame.put_bytes(0, HEADER_BYTES);
    frame
}

/// Writes the header into the place [`reserve`] kept free.
pub(crate) fn seal(mut frame: BytesMut, kind: Kind, stream: u32) -> Bytes {
    let length = (frame.len() - HEADER_BYTES) as u32;
    debug_assert!(length < 1 << 24, "a frame's length has three bytes");
    frame[..4].copy_from_slice(&((u32::from(kind as u8) << 24) | length).to_be_bytes());
    frame[4..HEADER_BYTES].copy_from_slice(&stream.to_be_bytes());
    frame.freeze()
}
