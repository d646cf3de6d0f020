//! Frames of a peer enter, events for our streams and frames for the peer leave: pure, without clock or task.
//!
//! [`Mux`] is the whole tunnel after its handshake: `machine` its state, `opening`, `inbound` and `sending` what
//! changes it. `stream` is one stream's credit and queues, `outbox` the order in which frames go out, `window` how
//! much of it at once, `rate` and `pace` how fast, `liveness` when silence means death. Time is handed in as the
//! `Duration` since the tunnel began. Sockets, wakers and tasks are deliberately not here: they are the driver's.
//!
//! Whoever gets a stream's id, from [`Mux::open`] or [`Event::Incoming`], gives it back once with
//! [`Mux::release`] (or [`Mux::refuse`]); until then its entry stays, so that a slow owner can still read why
//! it ended, and counts against the limit on streams.
//!
//! ```text
//!  on_frame ─▶ inbound ─▶ stream ─▶ Event ─▶ next_event
//!  write    ─▶ stream  ─▶ outbox ─▶ next_frame     (control, then idle streams, then busy ones in turn)
//! ```

mod event;
mod inbound;
mod liveness;
mod machine;
mod opening;
mod outbox;
mod pace;
mod rate;
mod sending;
mod stream;
mod window;

#[cfg(any(test, fuzzing))]
pub(crate) mod fuzz;
#[cfg(test)]
mod fuzz_tests;
#[cfg(test)]
mod hostile_tests;
#[cfg(test)]
mod model_tests;
#[cfg(test)]
mod tests;

pub use event::{Death, Event, Taken, Violation};
pub use machine::{Mux, Terms};
