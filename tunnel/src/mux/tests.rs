//! The state machine's rules, one by one, without socket or clock.

use std::num::NonZeroU64;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;

use super::fuzz::{START, open, terms};
use super::{Death, Event, Mux, Taken, Terms, Violation};
use crate::allowance::Allowance;
use crate::frame::{Frame, FrameError, GoAway, GoAwayReason, Kind, OpenCode, Reset, decode, encode};
use crate::identity::Role;
use crate::limits::{
    CONTROL_FRAMES_MAX, DEAD_AFTER, FRAME_PAYLOAD_BYTES, OPENS_PER_SECOND, PENDING_OPENS_MAX, SEND_QUEUE_BYTES,
    SEND_QUEUE_BYTES_CROWDED, STREAMS_MAX, TUNNEL_QUEUE_BYTES_CROWDED, WINDOW_BYTES, WINDOW_BYTES_FIRST,
};
use crate::meters::{Limit, WaitsFor};

fn at(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// Two machines and the wire between them.
struct Pair {
    hub: Mux,
    agent: Mux,
    now: Duration,
}

impl Pair {
    fn new() -> Self {
        Self {
            hub: Mux::new(terms(Role::Hub), START),
            agent: Mux::new(terms(Role::Agent), START),
            now: START,
        }
    }

    /// Carries frames until both are quiet.
    fn pump(&mut self) {
        loop {
            let down = self.hub.next_frame(self.now);
            let up = self.agent.next_frame(self.now);
            if down.is_none() && up.is_none() {
                return;
            }
            down.into_iter()
                .for_each(|frame| self.agent.on_frame(frame, self.now).expect("an honest hub"));
            up.into_iter()
                .for_each(|frame| self.hub.on_frame(frame, self.now).expect("an honest agent"));
        }
    }

    /// A stream from the hub, granted.
    fn stream(&mut self) -> u32 {
        let id = self.hub.open(&open(), START).expect("there is room");
        self.pump();
        assert!(self.agent.accept(id), "the open has come");
        self.pump();
        id
    }
}

fn events(mux: &mut Mux) -> Vec<Event> {
    std::iter::from_fn(|| mux.next_event()).collect()
}

fn frames(mux: &mut Mux) -> Vec<Frame> {
    let bytes = std::iter::from_fn(|| mux.next_frame(START));
    bytes
        .map(|bytes| {
            decode(bytes, 1 << 16)
                .expect("we send sound frames")
                .expect("and known ones")
        })
        .collect()
}

fn feed(mux: &mut Mux, frame: &Frame) -> Result<(), Violation> {
    mux.on_frame(encode(frame).expect("it fits"), START)
}

fn read_all(mux: &mut Mux, id: u32) -> (Vec<u8>, Taken) {
    let mut read = Vec::new();
    loop {
        match mux.take(id) {
            Taken::Chunk(chunk) => read.extend_from_slice(&chunk),
            end => return (read, end),
        }
    }
}

fn data(id: u32, bytes: usize) -> Frame {
    Frame::Data(id, Bytes::from(vec![7; bytes]))
}

#[test]
fn ids_are_odd_from_the_hub_even_from_the_agent_and_only_rise() {
    for (role, expected) in [(Role::Hub, [1, 3, 5]), (Role::Agent, [2, 4, 6])] {
        let mut mux = Mux::new(terms(role), START);
        let ids = [(); 3].map(|()| {
            let id = mux.open(&open(), START).expect("there is room");
            mux.release(id);
            id
        });
        assert_eq!(ids, expected, "{role:?} never reuses an id");
    }
}

#[test]
fn an_open_is_granted_and_bytes_flow_both_ways() {
    let mut pair = Pair::new();
    let id = pair.stream();
    assert_eq!(events(&mut pair.hub), [Event::Opened(id)]);
    assert_eq!(pair.hub.write(id, b"down"), Ok(4));
    assert_eq!(pair.agent.write(id, b"up"), Ok(2));
    assert_eq!(pair.hub.finish(id), Ok(false));
    pair.pump();
    assert_eq!(read_all(&mut pair.agent, id), (b"down".to_vec(), Taken::Finished));
    assert_eq!(read_all(&mut pair.hub, id), (b"up".to_vec(), Taken::Nothing));
    assert_eq!(pair.hub.finish(id), Ok(true), "the FIN is out");
}

#[test]
fn a_refusal_reaches_the_opener_with_code_and_text() {
    let mut pair = Pair::new();
    let id = pair.hub.open(&open(), START).expect("there is room");
    pair.pump();
    let no = Reset::new(OpenCode::Unreachable, "no route");
    pair.agent.refuse(id, no.clone());
    pair.pump();
    assert_eq!(pair.hub.is_opened(id), Err(no));
    pair.hub.release(id);
    assert_eq!((pair.hub.streams(), pair.agent.streams()), (0, 0));
}

#[test]
fn a_stream_granted_answered_and_let_go_in_one_breath_gives_its_whole_answer() {
    let mut pair = Pair::new();
    let id = pair.hub.open(&open(), START).expect("there is room");
    pair.pump();
    assert!(pair.agent.accept(id));
    assert_eq!(pair.agent.write(id, b"done"), Ok(4));
    pair.agent.finish(id).expect("open");
    let mut sent: Vec<Bytes> = std::iter::from_fn(|| pair.agent.next_frame(START)).collect();
    pair.agent.release(id);
    sent.extend(std::iter::from_fn(|| pair.agent.next_frame(START)));
    assert_eq!(sent.len(), 4, "OPEN_OK, DATA, FIN and RST arrive together");
    sent.into_iter()
        .for_each(|frame| pair.hub.on_frame(frame, START).expect("an honest agent"));
    assert_eq!(pair.hub.is_opened(id), Ok(true), "it was granted, though it is over");
    assert_eq!(read_all(&mut pair.hub, id), (b"done".to_vec(), Taken::Finished));
}

#[test]
fn bytes_may_follow_an_open_before_its_answer() {
    let mut pair = Pair::new();
    let id = pair.hub.open(&open(), START).expect("there is room");
    assert_eq!(pair.hub.write(id, b"early"), Ok(5));
    pair.pump();
    assert!(pair.agent.accept(id));
    assert_eq!(read_all(&mut pair.agent, id).0, b"early");
}

/// Feeds the agent `frames` on stream 1, which is open; expects it to be reset with `code` and stream 3 to live.
#[track_caller]
fn check_stream_violation(broken: &[Frame], code: OpenCode) {
    let mut pair = Pair::new();
    assert_eq!((pair.stream(), pair.stream()), (1, 3));
    for frame in broken {
        feed(&mut pair.agent, frame).expect("the tunnel outlives it");
    }
    let answers = frames(&mut pair.agent);
    let is_reset = |frame: &Frame| matches!(frame, Frame::Rst(1, reset) if reset.code == code);
    assert!(
        answers.iter().any(is_reset),
        "stream 1 is reset with {code}: {answers:?}"
    );
    assert_eq!(pair.agent.write(3, b"alive"), Ok(5), "stream 3 is not touched");
    assert!(matches!(pair.agent.write(1, b"dead"), Err(reset) if reset.code == code));
}

#[test]
fn a_rule_broken_on_one_stream_resets_that_stream_alone() {
    let frame = FRAME_PAYLOAD_BYTES;
    let whole_window = vec![data(1, frame); WINDOW_BYTES as usize / frame];
    check_stream_violation(&[whole_window, vec![data(1, 1)]].concat(), OpenCode::Limit);
    check_stream_violation(&[Frame::Fin(1), data(1, 1)], OpenCode::Internal);
    check_stream_violation(&[Frame::Fin(1), Frame::Fin(1)], OpenCode::Internal);
    check_stream_violation(&[Frame::OpenOk(1)], OpenCode::Internal);
    check_stream_violation(&[Frame::Window(1, i32::MAX as u32)], OpenCode::Limit);
    check_stream_violation(&[Frame::Window(1, 0)], OpenCode::Internal);
    check_stream_violation(&[Frame::Data(1, Bytes::new())], OpenCode::Internal);
}

#[test]
fn a_stream_that_is_not_granted_may_not_talk() {
    let mut hub = Mux::new(terms(Role::Hub), START);
    let id = hub.open(&open(), START).expect("there is room");
    feed(&mut hub, &data(id, 1)).expect("the tunnel outlives it");
    assert!(matches!(hub.is_opened(id), Err(reset) if reset.code == OpenCode::Internal));
}

#[track_caller]
fn check_tunnel_violation(bytes: Bytes, expected: Violation) {
    let mut pair = Pair::new();
    pair.stream();
    assert_eq!(pair.agent.on_frame(bytes, START), Err(expected));
}

#[test]
fn what_cannot_be_pinned_on_a_stream_ends_the_tunnel() {
    let bytes = |frame: Frame| encode(&frame).expect("it fits");
    check_tunnel_violation(bytes(data(3, 1)), Violation::UnknownStream { stream: 3 });
    check_tunnel_violation(bytes(data(2, 1)), Violation::UnknownStream { stream: 2 });
    check_tunnel_violation(
        bytes(Frame::Open(1, open())),
        Violation::StreamId { stream: 1, last: 1 },
    );
    check_tunnel_violation(
        bytes(Frame::Open(4, open())),
        Violation::StreamId { stream: 4, last: 1 },
    );
    let auth = crate::frame::Auth {
        key: [0; 32],
        signature: [0; 64],
        spread_ms: 0,
    };
    check_tunnel_violation(bytes(Frame::Auth(auth)), Violation::Unexpected(Kind::Auth));
    let critical = Bytes::from_static(&[0xff, 0, 0, 0, 0, 0, 0, 0]);
    check_tunnel_violation(critical, Violation::Frame(FrameError::UnknownCritical { kind: 0xff }));
    let large = FRAME_PAYLOAD_BYTES + 1;
    let too_large = FrameError::TooLarge {
        bytes: large,
        bytes_max: FRAME_PAYLOAD_BYTES,
    };
    check_tunnel_violation(bytes(data(1, large)), Violation::Frame(too_large));
}

#[test]
fn an_unknown_optional_frame_is_ignored() {
    let mut pair = Pair::new();
    pair.agent
        .on_frame(Bytes::from_static(&[0x7f, 0, 0, 1, 0, 0, 0, 9, 42]), START)
        .expect("it may be ignored");
    assert!(events(&mut pair.agent).is_empty() && frames(&mut pair.agent).is_empty());
}

#[test]
fn a_malformed_open_is_refused_and_uses_up_its_id() {
    let mut pair = Pair::new();
    let broken = Bytes::from_static(&[0x83, 0, 0, 2, 0, 0, 0, 1, b'{', b'}']);
    pair.agent.on_frame(broken, START).expect("the tunnel outlives it");
    assert!(matches!(&frames(&mut pair.agent)[..], [Frame::Rst(1, reset)] if reset.code == OpenCode::Internal));
    let again = feed(&mut pair.agent, &Frame::Open(1, open()));
    assert_eq!(again, Err(Violation::StreamId { stream: 1, last: 1 }));
}

#[test]
fn frames_on_their_way_to_an_ended_stream_are_ignored() {
    let mut pair = Pair::new();
    let id = pair.stream();
    pair.agent.release(id);
    for frame in [
        data(id, 9),
        Frame::Window(id, 9),
        Frame::Fin(id),
        Frame::Rst(id, Reset::new(OpenCode::Gone, "")),
    ] {
        feed(&mut pair.agent, &frame).expect("the peer could not know");
    }
    assert_eq!(pair.agent.streams(), 0);
}

#[test]
fn what_a_peer_completed_stays_readable_after_its_reset() {
    let mut pair = Pair::new();
    let id = pair.stream();
    pair.hub.write(id, b"all of it").expect("open");
    pair.hub.finish(id).expect("open");
    pair.pump();
    pair.hub.release(id);
    pair.pump();
    assert_eq!(read_all(&mut pair.agent, id), (b"all of it".to_vec(), Taken::Finished));
    assert!(pair.agent.write(id, b"x").is_err(), "but nobody listens any more");
}

#[test]
fn what_a_peer_cut_off_is_an_error_and_never_an_end() {
    let mut pair = Pair::new();
    let id = pair.stream();
    pair.hub.write(id, b"half of i").expect("open");
    pair.pump();
    pair.hub.release(id);
    pair.pump();
    assert!(matches!(pair.agent.take(id), Taken::Ended(reset) if reset.code == OpenCode::Cancelled));
}

#[test]
fn a_writer_is_counted_as_long_as_it_waits_and_for_what() {
    let mut pair = Pair::new();
    let meters = Arc::clone(&pair.hub.meters);
    let waiting = || WaitsFor::ALL.map(|waits_for| meters.waiting(waits_for));
    let (read, unread) = (pair.stream(), pair.stream());
    while pair.hub.write(read, &[1; SEND_QUEUE_BYTES]).expect("open") > 0 {}
    assert_eq!(waiting(), [0, 1], "nothing was taken out yet");
    pair.pump();
    assert_eq!(waiting(), [0, 0]);
    for id in [read, unread] {
        while pair.hub.write(id, &[1; SEND_QUEUE_BYTES]).expect("open") > 0 {
            pair.pump();
        }
    }
    assert_eq!(waiting(), [2, 0]);
    while let Taken::Chunk(_) = pair.agent.take(read) {
        pair.pump();
    }
    assert_eq!(waiting(), [1, 0], "each pause has its end");
    pair.agent.reset(unread, Reset::new(OpenCode::Cancelled, ""));
    pair.pump();
    assert_eq!(waiting(), [0, 0]);
    while pair.hub.write(read, &[1; SEND_QUEUE_BYTES]).expect("open") > 0 {}
    assert_eq!(waiting().iter().sum::<u64>(), 1);
    drop(pair);
    assert_eq!(waiting(), [0, 0], "nothing waits in a tunnel that is gone");
}

#[test]
fn a_writer_stops_at_its_credit_and_goes_on_after_half_a_window_is_read() {
    let mut pair = Pair::new();
    let id = pair.stream();
    let mut sent = 0;
    loop {
        let taken = pair.hub.write(id, &[1; SEND_QUEUE_BYTES]).expect("open");
        sent += taken;
        pair.pump();
        if taken == 0 {
            break;
        }
    }
    assert_eq!(sent, WINDOW_BYTES as usize, "not a byte beyond the credit");
    events(&mut pair.hub);
    let mut read = 0;
    while read < WINDOW_BYTES as usize / 2 {
        assert!(
            events(&mut pair.hub).is_empty(),
            "no grant before half a window was read"
        );
        let Taken::Chunk(chunk) = pair.agent.take(id) else {
            unreachable!("a window is there")
        };
        read += chunk.len();
        pair.pump();
    }
    assert_eq!(events(&mut pair.hub), [Event::Writable(id)]);
    assert!(pair.hub.write(id, &[1; 10]).expect("open") == 10);
}

#[test]
fn a_stream_of_single_bytes_is_gathered_on_both_sides() {
    let mut pair = Pair::new();
    let id = pair.stream();
    (0..3000).for_each(|_| assert_eq!(pair.hub.write(id, b"x"), Ok(1)));
    let out = frames(&mut pair.hub);
    assert_eq!(out.len(), 1, "writes before the next turn share a frame");
    (0..3000).for_each(|_| feed(&mut pair.agent, &data(id, 1)).expect("within credit"));
    let chunks = std::iter::from_fn(|| match pair.agent.take(id) {
        Taken::Chunk(chunk) => Some(chunk.len()),
        _ => None,
    });
    assert!(
        chunks.collect::<Vec<_>>().len() == 1,
        "bytes share memory until they are read"
    );
}

#[test]
fn control_goes_before_data_and_idle_streams_before_busy_ones() {
    let mut pair = Pair::new();
    let (bulk, small) = (pair.stream(), pair.stream());
    pair.hub.write(bulk, &[0; 3 * FRAME_PAYLOAD_BYTES]).expect("open");
    let first = pair.hub.next_frame(START).expect("bulk has begun");
    assert_eq!(first.len(), 8 + FRAME_PAYLOAD_BYTES);
    pair.hub.write(small, b"now").expect("open");
    feed(&mut pair.hub, &Frame::Ping([5; 8])).expect("sound");
    let order: Vec<Frame> = frames(&mut pair.hub);
    assert_eq!(
        order[..2],
        [Frame::Pong([5; 8]), Frame::Data(small, Bytes::from_static(b"now"))]
    );
    assert!(
        matches!(order[2..], [Frame::Data(1, _), Frame::Data(1, _)]),
        "then the busy one"
    );
}

#[test]
fn idle_streams_cannot_starve_a_busy_one() {
    let mut pair = Pair::new();
    let bulk = pair.stream();
    let others: Vec<u32> = (0..20).map(|_| pair.stream()).collect();
    pair.hub.write(bulk, &[0; 4 * FRAME_PAYLOAD_BYTES]).expect("open");
    pair.hub.next_frame(START).expect("bulk has begun");
    others
        .iter()
        .for_each(|id| assert_eq!(pair.hub.write(*id, b"x"), Ok(1)));
    let order = frames(&mut pair.hub);
    let bulk_at: Vec<usize> = (0..order.len())
        .filter(|at| matches!(order[*at], Frame::Data(1, _)))
        .collect();
    assert!(
        bulk_at[0] <= 8,
        "a busy stream waits for eight others at most: {bulk_at:?}"
    );
    assert!(bulk_at[1] <= 17, "and then for eight more: {bulk_at:?}");
}

#[test]
fn too_many_streams_are_refused_with_limit_on_either_side() {
    let mut agent = Mux::new(terms(Role::Agent), START);
    for index in 0..=STREAMS_MAX as u32 {
        let id = 2 * index + 1;
        feed(&mut agent, &Frame::Open(id, open())).expect("asking is allowed");
        agent.accept(id);
    }
    let refused = frames(&mut agent).pop();
    assert!(matches!(refused, Some(Frame::Rst(_, reset)) if reset.code == OpenCode::Limit));
    assert_eq!(agent.streams(), STREAMS_MAX);
    let ours = agent.open(&open(), START);
    assert!(
        matches!(ours, Err(reset) if reset.code == OpenCode::Limit),
        "both directions share the number"
    );
}

#[test]
fn too_many_unanswered_opens_are_refused_with_limit_on_either_side() {
    let mut hub = Mux::new(terms(Role::Hub), START);
    (0..PENDING_OPENS_MAX).for_each(|_| assert!(hub.open(&open(), START).is_ok()));
    assert!(matches!(hub.open(&open(), START), Err(reset) if reset.code == OpenCode::Limit));
    let mut agent = Mux::new(terms(Role::Agent), START);
    for index in 0..=PENDING_OPENS_MAX as u32 {
        feed(&mut agent, &Frame::Open(2 * index + 1, open())).expect("asking is allowed");
    }
    assert!(matches!(&frames(&mut agent)[..], [Frame::Rst(201, reset)] if reset.code == OpenCode::Limit));
}

#[test]
fn a_peer_that_makes_us_answer_and_does_not_read_is_cut_off() {
    let mut agent = Mux::new(terms(Role::Agent), START);
    let flood = (0..)
        .map(|index| feed(&mut agent, &Frame::Open(2 * index + 1, open())))
        .find(Result::is_err);
    assert_eq!(
        flood,
        Some(Err(Violation::Flood {
            waiting: CONTROL_FRAMES_MAX + 1
        }))
    );
}

#[test]
fn unread_pings_cost_sixteen_pongs_and_the_newest_survive() {
    let mut agent = Mux::new(terms(Role::Agent), START);
    (0..100_u8).for_each(|turn| feed(&mut agent, &Frame::Ping([turn; 8])).expect("sound"));
    let pongs = frames(&mut agent);
    assert_eq!((pongs.len(), pongs.last()), (16, Some(&Frame::Pong([99; 8]))));
}

#[test]
fn after_a_goaway_no_side_opens_and_unseen_streams_are_gone() {
    let mut pair = Pair::new();
    let seen = pair.stream();
    let unseen = pair.hub.open(&open(), START).expect("there is room");
    pair.agent.go_away(GoAway::new(GoAwayReason::Shutdown, ""));
    let away = pair.agent.next_frame(START).expect("it is announced");
    pair.hub.on_frame(away, START).expect("sound");
    assert!(matches!(pair.hub.is_opened(unseen), Err(reset) if reset.code == OpenCode::Gone));
    assert_eq!(pair.hub.write(seen, b"go on"), Ok(5));
    assert!(matches!(pair.hub.open(&open(), START), Err(reset) if reset.code == OpenCode::Gone));
    assert!(matches!(pair.agent.open(&open(), START), Err(reset) if reset.code == OpenCode::Gone));
    pair.pump();
    assert_eq!(read_all(&mut pair.agent, seen).0, b"go on");
    assert_eq!(pair.agent.streams(), 1, "the late open was refused and left nothing");
}

#[test]
fn ids_that_run_out_drain_the_tunnel_instead_of_starting_anew() {
    let mut hub = Mux::new(terms(Role::Hub), START);
    hub.next_id = u32::MAX;
    assert_eq!(hub.open(&open(), START), Ok(u32::MAX));
    assert!(matches!(hub.open(&open(), START), Err(reset) if reset.code == OpenCode::Gone));
    let out = frames(&mut hub);
    assert!(
        out.iter()
            .any(|frame| matches!(frame, Frame::GoAway(away) if away.reason == GoAwayReason::Drain))
    );
}

#[test]
fn ten_thousand_cancelled_opens_leave_no_stream() {
    let mut pair = Pair::new();
    for turn in 0..10_000 {
        pair.now += Duration::from_millis(1);
        let id = pair
            .hub
            .open(&open(), pair.now)
            .expect("what was cancelled counts no more");
        match turn % 4 {
            0 => {}
            1 => pair.pump(),
            2 => {
                pair.pump();
                pair.agent.accept(id);
            }
            _ => {
                pair.pump();
                pair.agent.accept(id);
                pair.pump();
                pair.hub.write(id, b"some").expect("open");
            }
        }
        pair.hub.release(id);
        pair.pump();
        events(&mut pair.agent);
        pair.agent.release(id);
    }
    pair.pump();
    assert_eq!((pair.hub.streams(), pair.agent.streams()), (0, 0));
    assert_eq!((pair.hub.opening, pair.agent.incoming), (0, 0));
}

#[test]
fn silence_asks_for_a_ping_and_then_means_death() {
    let mut hub = Mux::new(terms(Role::Hub), START);
    assert_eq!(hub.tick(at(9)), Ok(()));
    assert!(frames(&mut hub).is_empty(), "no ping before its time");
    assert_eq!(hub.tick_due(), at(10));
    assert_eq!(hub.tick(at(10)), Ok(()));
    hub.flushed(START);
    assert!(matches!(&frames(&mut hub)[..], [Frame::Ping(_)]));
    hub.flushed(START);
    assert_eq!(hub.tick(at(20)), Ok(()), "a second ping may still be answered");
    assert_eq!(hub.tick_due(), at(24));
    assert_eq!(hub.tick(at(24)), Err(Death::Silent(DEAD_AFTER)));
}

#[test]
fn any_message_counts_as_life() {
    let mut hub = Mux::new(terms(Role::Hub), START);
    hub.on_frame(Bytes::from_static(&[0x7f, 0, 0, 0, 0, 0, 0, 0]), at(20))
        .expect("it may be ignored");
    assert_eq!(hub.tick(at(29)), Ok(()));
    assert!(frames(&mut hub).is_empty(), "bulk makes pings needless");
    assert_eq!(hub.tick(at(44)), Err(Death::Silent(DEAD_AFTER)));
}

#[test]
fn a_peer_that_talks_but_takes_nothing_is_dead_too() {
    let mut hub = Mux::new(terms(Role::Hub), START);
    hub.open(&open(), START).expect("there is room");
    hub.next_frame(at(1)).expect("the open");
    for second in [10, 20, 26] {
        feed(&mut hub, &Frame::Ping([0; 8])).expect("sound");
        hub.liveness.received(at(second));
    }
    assert_eq!(hub.tick(at(24)), Ok(()));
    assert_eq!(hub.tick(at(25)), Err(Death::Stuck(DEAD_AFTER)));
}

#[test]
fn an_answered_ping_measures_the_round_trip() {
    let mut hub = Mux::new(terms(Role::Hub), START);
    hub.tick(at(10)).expect("alive");
    let Some(Frame::Ping(echo)) = frames(&mut hub).pop() else {
        unreachable!("a ping is due")
    };
    let pong = encode(&Frame::Pong(echo)).expect("it fits");
    hub.on_frame(pong.clone(), at(10) + Duration::from_millis(30))
        .expect("sound");
    assert_eq!(hub.rtt(), Some(Duration::from_millis(30)));
    feed(&mut hub, &Frame::Pong([1; 8])).expect("sound");
    assert_eq!(
        hub.rtt(),
        Some(Duration::from_millis(30)),
        "an answer to nothing measures nothing"
    );
}

#[test]
fn the_end_that_is_asked_first_knows_the_round_trip_too() {
    let mut hub = Mux::new(terms(Role::Hub), START);
    let mut pings_within = |seconds: std::ops::Range<u64>| {
        let mut pings = 0;
        for second in seconds {
            // The agent asks each time before the hub's own silence is over.
            let ping = encode(&Frame::Ping([0; 8])).expect("it fits");
            hub.on_frame(ping, at(second)).expect("sound");
            hub.tick(at(second)).expect("alive");
            let said = frames(&mut hub);
            hub.liveness.flushed();
            for frame in said {
                if let Frame::Ping(echo) = frame {
                    pings += 1;
                    let pong = encode(&Frame::Pong(echo)).expect("it fits");
                    hub.on_frame(pong, at(second) + Duration::from_millis(30))
                        .expect("sound");
                }
            }
        }
        pings
    };
    assert_eq!(pings_within(0..30), 0, "the tunnel is young");
    assert_eq!(pings_within(30..60), 1, "one answer is enough for a while");
    assert_eq!(pings_within(60..90), 1);
    assert_eq!(hub.rtt(), Some(Duration::from_millis(30)));
}

#[test]
fn pings_of_many_tunnels_are_spread() {
    let due = |jitter| {
        Mux::new(
            Terms {
                ping_jitter: jitter,
                ..terms(Role::Hub)
            },
            START,
        )
        .tick_due()
    };
    assert_eq!((due(0.0), due(1.0)), (at(9), at(11)));
    assert_eq!(due(f64::NAN), at(10), "nonsense is no spread");
}

#[test]
fn opens_beyond_the_rate_are_refused_and_counted_on_both_sides() {
    let mut pair = Pair::new();
    let mut asked = 0;
    while let Ok(id) = pair.hub.open(&open(), START) {
        pair.hub.release(id);
        asked += 1;
        pair.pump();
        events(&mut pair.agent).iter().for_each(|event| {
            if let Event::Incoming(id, _) = event {
                pair.agent.release(*id);
            }
        });
    }
    assert_eq!(asked, OPENS_PER_SECOND as usize + 1, "a burst of one second");
    assert_eq!(pair.hub.meters.refusals(Limit::OpenRate), 1);
    pair.now = at(2);
    assert!(
        pair.hub.open(&open(), pair.now).is_ok(),
        "a moment later there is room again"
    );
    // A peer that does not keep to it is refused stream by stream, and keeps its tunnel.
    let mut mux = Mux::new(terms(Role::Agent), START);
    for number in 0..2 * OPENS_PER_SECOND as u32 {
        let id = 2 * number + 1;
        feed(&mut mux, &Frame::Open(id, open())).expect("no reason to end the tunnel");
        mux.release(id);
        while mux.next_frame(START).is_some() {}
    }
    assert_eq!(mux.meters.refusals(Limit::OpenRate), OPENS_PER_SECOND as u64 - 1);
}

#[test]
fn a_stream_of_either_side_starts_with_its_whole_window() {
    let terms = |role| Terms {
        window_in: WINDOW_BYTES_FIRST,
        window_out: WINDOW_BYTES_FIRST,
        ..terms(role)
    };
    let mut pair = Pair {
        hub: Mux::new(terms(Role::Hub), START),
        agent: Mux::new(terms(Role::Agent), START),
        now: START,
    };
    let id = pair.stream();
    for (writer, reader) in [(&pair.hub, &pair.agent), (&pair.agent, &pair.hub)] {
        assert_eq!(
            writer.streams[&id].send.account().0,
            WINDOW_BYTES,
            "credit of the writer"
        );
        assert_eq!(
            reader.window_bytes(),
            u64::from(WINDOW_BYTES),
            "is memory of the reader"
        );
    }
}

#[test]
fn what_was_written_and_not_sent_is_bounded_for_the_tunnel_as_a_whole() {
    let mut pair = Pair::new();
    let mut ids = Vec::new();
    for _ in 0..STREAMS_MAX {
        pair.now += Duration::from_millis(10);
        let id = pair.stream();
        events(&mut pair.agent);
        ids.push(id);
    }
    for id in ids {
        while pair.hub.write(id, &[0; 64 * 1024]).is_ok_and(|bytes| bytes > 0) {}
    }
    let queued = pair.hub.queued_bytes();
    assert!(queued > TUNNEL_QUEUE_BYTES_CROWDED, "all of them wrote");
    assert!(queued <= TUNNEL_QUEUE_BYTES_CROWDED + SEND_QUEUE_BYTES + STREAMS_MAX * SEND_QUEUE_BYTES_CROWDED);
}

#[test]
fn bandwidth_holds_data_back_and_nothing_else() {
    let allowance = Allowance {
        bandwidth: NonZeroU64::new(1_000_000),
        ..Allowance::default()
    };
    let mut pair = Pair::new();
    pair.hub = Mux::with_allowance(terms(Role::Hub), allowance, START);
    let id = pair.stream();
    let (mut sent, mut now) = (0, START);
    while now < at(2) {
        while pair.hub.write(id, &[0; 32 * 1024]).is_ok_and(|bytes| bytes > 0) {}
        while let Some(frame) = pair.hub.next_frame(now) {
            pair.agent.on_frame(frame, now).expect("an honest hub");
        }
        while let Taken::Chunk(chunk) = pair.agent.take(id) {
            sent += chunk.len();
        }
        let other = pair.hub.open(&open(), now).expect("there is room");
        let asked = pair.hub.next_frame(now).expect("an open waits for no bandwidth");
        pair.agent.on_frame(asked, now).expect("an honest hub");
        pair.agent.release(other);
        pair.hub.release(other);
        while let Some(frame) = pair.agent.next_frame(now) {
            pair.hub.on_frame(frame, now).expect("an honest agent");
        }
        let due = pair.hub.held_until().expect("bytes are held back");
        now = due.max(now + Duration::from_millis(1));
    }
    assert!(
        (1_900_000..2_150_000).contains(&sent),
        "a megabyte a second, not {sent} in two"
    );
}

#[test]
fn both_directions_blocked_hold_two_windows_at_most() {
    let mut pair = Pair::new();
    let id = pair.stream();
    for _ in 0..100 {
        pair.now += Duration::from_millis(1);
        for _ in 0..8 {
            pair.hub.write(id, &[1; 64 * 1024]).expect("open");
            pair.agent.write(id, &[2; 64 * 1024]).expect("open");
        }
        pair.pump();
    }
    for mux in [&pair.hub, &pair.agent] {
        let (unread, ..) = mux.streams[&id].recv.account();
        assert_eq!(unread, WINDOW_BYTES, "the peer sent what it may");
        assert!(
            unread as usize + mux.queued_bytes() <= 2 * WINDOW_BYTES as usize,
            "and nothing is held beside it"
        );
    }
    // Both still read what the other wrote.
    assert_eq!(read_all(&mut pair.hub, id).0.len(), WINDOW_BYTES as usize);
    assert_eq!(read_all(&mut pair.agent, id).0.len(), WINDOW_BYTES as usize);
}

#[test]
fn a_full_window_within_two_round_trips_grows_until_the_path_is_full() {
    let mut pair = Pair::new();
    let id = pair.stream();
    let (mut wire, mut read) = (std::collections::VecDeque::new(), Vec::new());
    let (mut now, step, one_way) = (START, Duration::from_millis(1), Duration::from_millis(30));
    let mut per_second = Vec::new();
    for tick in 1..=4_000_u32 {
        now += step;
        while pair.hub.write(id, &[0; 32 * 1024]).is_ok_and(|bytes| bytes > 0) {}
        // 12.5 kB each millisecond, and what is on the line arrives 30 ms later, each way.
        let mut budget = 12_500_i64;
        while budget > 0
            && let Some(frame) = pair.hub.next_frame(now)
        {
            budget -= frame.len() as i64;
            wire.push_back((now + one_way, true, frame));
        }
        while let Some(frame) = pair.agent.next_frame(now) {
            wire.push_back((now + one_way, false, frame));
        }
        while let Some((_, down, frame)) = wire.pop_front_if(|(due, ..)| *due <= now) {
            let to = if down { &mut pair.agent } else { &mut pair.hub };
            to.on_frame(frame, now).expect("honest peers");
        }
        while let Taken::Chunk(chunk) = pair.agent.take(id) {
            read.push(chunk.len());
        }
        if tick % 1_000 == 0 {
            per_second.push(read.drain(..).sum::<usize>());
        }
    }
    assert!(per_second[0] < per_second[1], "it grows: {per_second:?}");
    assert!(per_second[3] > 11_250_000, "nine tenths of 12.5 MB/s: {per_second:?}");
    assert!(pair.agent.window_bytes() <= 4 << 20);
}
