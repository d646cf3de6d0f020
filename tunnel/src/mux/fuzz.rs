//! A machine with something in every state, and whatever bytes a peer sends it.

use std::time::Duration;

use bytes::Bytes;

use super::{Mux, Taken, Terms};
use crate::frame::{Open, TargetClass};
use crate::fuzz::messages;
use crate::identity::Role;
use crate::limits::{CONTROL_FRAMES_MAX, FRAME_PAYLOAD_BYTES, STREAMS_MAX, WINDOW_BYTES};

pub(super) const START: Duration = Duration::ZERO;

/// Messages of a peer, told to a machine of either role. It answers, ignores or ends the tunnel.
///
/// # Panics
/// Where it does anything else, or grows.
pub fn mux(input: &[u8]) {
    for role in [Role::Hub, Role::Agent] {
        survive(role, messages(input));
    }
}

pub(super) fn terms(role: Role) -> Terms {
    Terms {
        role,
        frame_bytes_in: FRAME_PAYLOAD_BYTES,
        frame_bytes_out: FRAME_PAYLOAD_BYTES,
        window_in: WINDOW_BYTES,
        window_out: WINDOW_BYTES,
        streams_max: STREAMS_MAX,
        ping_jitter: 0.5,
    }
}

pub(super) fn open() -> Open {
    Open::new(TargetClass::Deliver, "x", Duration::from_secs(5))
}

/// A machine with something in every state: opening, incoming, open, half closed, ended.
fn busy(role: Role) -> Mux {
    let mut mux = Mux::new(terms(role), START);
    let ids: Vec<u32> = (0..4)
        .map(|_| mux.open(&open(), START).expect("there is room"))
        .collect();
    let peer_first = if role == Role::Hub { 2 } else { 1 };
    for id in [peer_first, peer_first + 2, peer_first + 4] {
        let asked = crate::frame::encode(&crate::frame::Frame::Open(id, open())).expect("it fits");
        mux.on_frame(asked, START).expect("sound");
    }
    mux.accept(peer_first);
    mux.accept(peer_first + 2);
    mux.finish(peer_first + 2).expect("open");
    mux.write(ids[1], b"early").expect("open");
    mux.release(ids[3]);
    mux
}

/// Feeds messages as a driver would: up to the first violation, with everything in between done.
pub(super) fn survive(role: Role, messages: impl IntoIterator<Item = Vec<u8>>) {
    let mut mux = busy(role);
    for message in messages {
        if mux.on_frame(Bytes::from(message), START).is_err() {
            break;
        }
        while mux.next_event().is_some() {}
        for id in 0..8 {
            while let Taken::Chunk(_) = mux.take(id) {}
        }
        assert!(mux.streams() <= STREAMS_MAX, "bounded streams");
    }
    let frames = std::iter::from_fn(|| mux.next_frame(START)).take(2 * CONTROL_FRAMES_MAX);
    assert!(frames.count() < 2 * CONTROL_FRAMES_MAX, "bounded answers");
}
