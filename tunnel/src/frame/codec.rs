//! Payloads: from typed frames to bytes and back.

use std::time::Duration;

use bytes::{Buf, BufMut, Bytes};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::header::{reserve, seal, split};
use super::{FrameError, GoAwayReason, Hello, Kind, Open, OpenCode};
use crate::limits::{JSON_BYTES_MAX, REASON_TEXT_BYTES_MAX};

/// One frame, typed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Frame {
    /// First frame each way.
    Hello(Box<Hello>),
    /// The hub's proof.
    Auth(Auth),
    /// Asks for a stream.
    Open(u32, Open),
    /// Grants it.
    OpenOk(u32),
    /// Bytes of a stream, never none.
    Data(u32, Bytes),
    /// More credit for a stream, in bytes, never 0.
    Window(u32, u32),
    /// No more bytes in this direction.
    Fin(u32),
    /// The stream is over.
    Rst(u32, Reset),
    /// Asks for a sign of life; the eight bytes come back.
    Ping([u8; 8]),
    /// Gives it.
    Pong([u8; 8]),
    /// No new streams.
    GoAway(GoAway),
}

/// Body of AUTH: which of the hub's keys signs, and its signature.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Auth {
    /// Raw Ed25519 public key.
    pub key: [u8; 32],
    /// Raw Ed25519 signature.
    pub signature: [u8; 64],
    /// Over how many milliseconds agents that lost their tunnel come back. 0 from an older hub, which does not say it.
    pub spread_ms: u32,
}

/// Body of RST.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reset {
    /// What callers decide by.
    pub code: OpenCode,
    /// For a person; at most [`REASON_TEXT_BYTES_MAX`] bytes.
    pub text: String,
}

impl Reset {
    /// A reset with its text cut to what the wire allows.
    pub fn new(code: OpenCode, text: impl AsRef<str>) -> Self {
        Self {
            code,
            text: cut(text.as_ref()).to_owned(),
        }
    }
}

/// Body of GOAWAY.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GoAway {
    /// Highest stream id of the receiver's that the sender took up; what is above was never looked at.
    pub last_stream: u32,
    /// What callers decide by.
    pub reason: GoAwayReason,
    /// Earliest time to dial again, in milliseconds; 0 with `retry_ms_max` 0 means "as usual".
    pub retry_ms_min: u32,
    /// Latest time to dial again, in milliseconds.
    pub retry_ms_max: u32,
    /// For a person; at most [`REASON_TEXT_BYTES_MAX`] bytes.
    pub text: String,
}

impl GoAway {
    /// A GOAWAY that leaves the retry to the receiver; `last_stream` is put in when it is sent.
    pub fn new(reason: GoAwayReason, text: impl AsRef<str>) -> Self {
        Self {
            last_stream: 0,
            reason,
            retry_ms_min: 0,
            retry_ms_max: 0,
            text: cut(text.as_ref()).to_owned(),
        }
    }

    /// Asks the receiver to dial again within this range instead of by its own schedule.
    #[must_use]
    pub fn with_retry(self, min: Duration, max: Duration) -> Self {
        let millis = |time: Duration| u32::try_from(time.as_millis()).unwrap_or(u32::MAX);
        Self {
            retry_ms_min: millis(min),
            retry_ms_max: millis(max.max(min)),
            ..self
        }
    }

    /// The range to dial again in, if the sender named one.
    #[must_use]
    pub fn retry(&self) -> Option<(Duration, Duration)> {
        let named = self.retry_ms_max > 0;
        let millis = |number: u32| Duration::from_millis(number.into());
        named.then(|| {
            (
                millis(self.retry_ms_min),
                millis(self.retry_ms_max.max(self.retry_ms_min)),
            )
        })
    }
}

fn cut(text: &str) -> &str {
    let end = (0..=text.len().min(REASON_TEXT_BYTES_MAX))
        .rev()
        .find(|end| text.is_char_boundary(*end));
    &text[..end.unwrap_or(0)]
}

/// Bytes of one WebSocket message.
///
/// Fails only where a JSON body exceeds [`JSON_BYTES_MAX`].
pub fn encode(frame: &Frame) -> Result<Bytes, FrameError> {
    let bytes = match frame {
        Frame::Hello(hello) => json(Kind::Hello, 0, hello)?,
        Frame::Auth(auth) => fixed(
            Kind::Auth,
            0,
            &[&auth.key, &auth.signature, &auth.spread_ms.to_be_bytes()],
        ),
        Frame::Open(stream, open) => json(Kind::Open, *stream, open)?,
        Frame::OpenOk(stream) => fixed(Kind::OpenOk, *stream, &[]),
        Frame::Data(stream, bytes) => fixed(Kind::Data, *stream, &[bytes]),
        Frame::Window(stream, credit) => fixed(Kind::Window, *stream, &[&credit.to_be_bytes()]),
        Frame::Fin(stream) => fixed(Kind::Fin, *stream, &[]),
        Frame::Rst(stream, reset) => fixed(
            Kind::Rst,
            *stream,
            &[&(reset.code as u16).to_be_bytes(), cut(&reset.text).as_bytes()],
        ),
        Frame::Ping(echo) => fixed(Kind::Ping, 0, &[echo]),
        Frame::Pong(echo) => fixed(Kind::Pong, 0, &[echo]),
        Frame::GoAway(away) => fixed(
            Kind::GoAway,
            0,
            &[
                &away.last_stream.to_be_bytes(),
                &(away.reason as u16).to_be_bytes(),
                &away.retry_ms_min.to_be_bytes(),
                &away.retry_ms_max.to_be_bytes(),
                cut(&away.text).as_bytes(),
            ],
        ),
    };
    Ok(bytes)
}

fn fixed(kind: Kind, stream: u32, parts: &[&[u8]]) -> Bytes {
    let mut frame = reserve(parts.iter().map(|part| part.len()).sum());
    for part in parts {
        frame.put_slice(part);
    }
    seal(frame, kind, stream)
}

fn json(kind: Kind, stream: u32, body: &impl Serialize) -> Result<Bytes, FrameError> {
    let malformed = |what| FrameError::Malformed { kind, stream, what };
    let text = serde_json::to_vec(body).map_err(|_| malformed("body has no JSON form"))?;
    if text.len() > JSON_BYTES_MAX {
        return Err(malformed("body exceeds 4 KiB"));
    }
    Ok(fixed(kind, stream, &[&text]))
}

/// Reads one WebSocket message.
///
/// Gives `None` for an unknown frame that may be ignored. DATA shares the message's memory.
pub fn decode(message: Bytes, payload_bytes_max: usize) -> Result<Option<Frame>, FrameError> {
    let Some((kind, stream, payload)) = split(message, payload_bytes_max)? else {
        return Ok(None);
    };
    let body = Body { kind, stream, payload };
    let frame = match kind {
        Kind::Hello => Frame::Hello(Box::new(body.hello()?)),
        Kind::Auth => Frame::Auth(body.auth()?),
        Kind::Open => Frame::Open(stream, body.open()?),
        Kind::OpenOk => Frame::OpenOk(stream),
        Kind::Data => Frame::Data(stream, body.data()?),
        Kind::Window => Frame::Window(stream, body.window()?),
        Kind::Fin => Frame::Fin(stream),
        Kind::Rst => Frame::Rst(stream, body.reset()?),
        Kind::Ping => Frame::Ping(body.echo()?),
        Kind::Pong => Frame::Pong(body.echo()?),
        Kind::GoAway => Frame::GoAway(body.go_away()?),
    };
    Ok(Some(frame))
}

/// A payload that knows what it should be. Bytes after the known fields are a newer peer's and ignored.
struct Body {
    kind: Kind,
    stream: u32,
    payload: Bytes,
}

impl Body {
    fn malformed(&self, what: &'static str) -> FrameError {
        FrameError::Malformed {
            kind: self.kind,
            stream: self.stream,
            what,
        }
    }

    fn at_least(&self, bytes: usize) -> Result<Bytes, FrameError> {
        if self.payload.len() < bytes {
            return Err(self.malformed("payload is too short"));
        }
        Ok(self.payload.clone())
    }

    fn json<T: DeserializeOwned>(&self) -> Result<T, FrameError> {
        if self.payload.len() > JSON_BYTES_MAX {
            return Err(self.malformed("body exceeds 4 KiB"));
        }
        serde_json::from_slice(&self.payload).map_err(|_| self.malformed("body is not the JSON it should be"))
    }

    fn hello(&self) -> Result<Hello, FrameError> {
        let hello: Hello = self.json()?;
        hello.check().map_err(|what| self.malformed(what))?;
        Ok(hello)
    }

    fn open(&self) -> Result<Open, FrameError> {
        let open: Open = self.json()?;
        open.check().map_err(|what| self.malformed(what))?;
        Ok(open)
    }

    fn auth(&self) -> Result<Auth, FrameError> {
        let mut payload = self.at_least(32 + 64)?;
        let mut auth = Auth {
            key: [0; 32],
            signature: [0; 64],
            spread_ms: 0,
        };
        payload.copy_to_slice(&mut auth.key);
        payload.copy_to_slice(&mut auth.signature);
        if payload.remaining() >= 4 {
            auth.spread_ms = payload.get_u32();
        }
        Ok(auth)
    }

    fn data(self) -> Result<Bytes, FrameError> {
        if self.payload.is_empty() {
            return Err(self.malformed("no bytes"));
        }
        Ok(self.payload)
    }

    fn window(&self) -> Result<u32, FrameError> {
        match self.at_least(4)?.get_u32() {
            0 => Err(self.malformed("no credit")),
            credit => Ok(credit),
        }
    }

    fn reset(&self) -> Result<Reset, FrameError> {
        let mut payload = self.at_least(2)?;
        let code = OpenCode::from_wire(payload.get_u16());
        Ok(Reset {
            code,
            text: self.text(&payload)?,
        })
    }

    fn echo(&self) -> Result<[u8; 8], FrameError> {
        let mut echo = [0; 8];
        self.at_least(8)?.copy_to_slice(&mut echo);
        Ok(echo)
    }

    fn go_away(&self) -> Result<GoAway, FrameError> {
        let mut payload = self.at_least(14)?;
        Ok(GoAway {
            last_stream: payload.get_u32(),
            reason: GoAwayReason::from_wire(payload.get_u16()),
            retry_ms_min: payload.get_u32(),
            retry_ms_max: payload.get_u32(),
            text: self.text(&payload)?,
        })
    }

    fn text(&self, bytes: &[u8]) -> Result<String, FrameError> {
        if bytes.len() > REASON_TEXT_BYTES_MAX {
            return Err(self.malformed("text exceeds 256 bytes"));
        }
        Ok(String::from_utf8_lossy(bytes).into_owned())
    }
}
