//! One binary WebSocket message enters, one [`Frame`] leaves, and back.
//!
//! `header` is the eight bytes before every payload, `hello` and `open` the two JSON bodies, `code`
//! the enums that decide instead of text, `codec` the rest. Which frame may come when, and on which
//! stream, is not known here: that is [`crate::mux`] and the handshake.

mod code;
mod codec;
pub(crate) mod header;
mod hello;
mod open;

#[cfg(test)]
mod golden_tests;
#[cfg(test)]
mod tests;

pub use code::{GoAwayReason, OpenCode, TargetClass};
pub use codec::{Auth, Frame, GoAway, Reset, decode, encode};
pub use header::{FrameError, Kind};
pub use hello::{Hello, Nonce, ProtocolRange, Token};
pub use open::Open;
