//! A peer that keeps to the rules and means harm: what it can make us hold.

use std::time::Duration;

use bytes::Bytes;

use super::fuzz::{START, open, terms};
use super::{Event, Mux, Terms};
use crate::frame::{Frame, OpenCode, Reset, encode};
use crate::identity::Role;
use crate::limits::{FRAME_PAYLOAD_BYTES, OPENS_PER_SECOND, QUEUED_IDS_MAX, SMALL_PAYLOAD_BYTES, WINDOW_BYTES_FIRST};

/// A frame of the peer's, as a slice of the block that it was read into.
fn feed(mux: &mut Mux, frame: &Frame, now: Duration) -> Bytes {
    let block = encode(frame).expect("it fits");
    mux.on_frame(block.clone(), now).expect("within the rules");
    block
}

fn granted(agent: &mut Mux, id: u32, now: Duration) {
    feed(agent, &Frame::Open(id, open()), now);
    assert!(agent.accept(id), "it was just asked for");
}

#[test]
fn streams_that_are_gone_leave_nothing_in_the_queues_of_a_peer_that_keeps_us_answering() {
    let terms = Terms {
        window_in: WINDOW_BYTES_FIRST,
        ..terms(Role::Agent)
    };
    let mut agent = Mux::new(terms, START);
    for turn in 0..10 * QUEUED_IDS_MAX as u32 {
        let (id, now) = (
            2 * turn + 1,
            START + Duration::from_secs_f64(f64::from(turn) / OPENS_PER_SECOND),
        );
        granted(&mut agent, id, now);
        agent.write(id, b"an answer").expect("it is open");
        // It takes the OPEN_OK and nothing behind it.
        assert!(agent.next_frame(now).is_some());
        feed(&mut agent, &Frame::Rst(id, Reset::new(OpenCode::Cancelled, "")), now);
        while agent.next_event().is_some() {}
        agent.release(id);
    }
    assert_eq!(agent.streams(), 0);
    assert!(agent.outbox.ids() <= 2 * (QUEUED_IDS_MAX + 1), "{}", agent.outbox.ids());
    granted(
        &mut agent,
        20 * QUEUED_IDS_MAX as u32 + 1,
        START + Duration::from_secs(3_600),
    );
    assert!(agent.write(20 * QUEUED_IDS_MAX as u32 + 1, b"an answer").is_ok());
    let out = std::iter::from_fn(|| agent.next_frame(START)).count();
    assert_eq!(out, 3, "OPEN_OK, WINDOW and DATA of the one that is there");
}

#[test]
fn what_is_kept_of_a_block_that_was_read_is_most_of_it() {
    let mut agent = Mux::new(terms(Role::Agent), START);
    granted(&mut agent, 1, START);
    while agent.next_event() != Some(Event::Incoming(1, open())) {}
    for bytes in [1, 1_024, SMALL_PAYLOAD_BYTES - 1] {
        let block = feed(&mut agent, &Frame::Data(1, Bytes::from(vec![7; bytes])), START);
        assert!(block.is_unique(), "{bytes} bytes hold nothing but themselves");
    }
    let block = feed(
        &mut agent,
        &Frame::Data(1, Bytes::from(vec![7; FRAME_PAYLOAD_BYTES])),
        START,
    );
    assert!(!block.is_unique(), "large ones are not copied");
}
