//! Two endpoints over real TCP on loopback, with TLS.

use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt as _;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::timeout;

use super::accept::{AcceptError, AcceptOptions, accept};
use super::connect::{ConnectError, ConnectOptions, connect};
use super::{Incoming, IncomingOpen, OpenError, Step, Tunnel};
use crate::backoff::Outcome;
use crate::frame::{GoAway, GoAwayReason, Open, OpenCode, TargetClass};
use crate::handshake::HandshakeError;
use crate::identity::SecretKey;
use crate::meters::{HandshakeStep, Meters};
use crate::shared::CloseReason;
use crate::stream::{StreamError, TunnelStream};

pub(super) const SOON: Duration = Duration::from_secs(20);

/// A hub that knows the cluster `north`, and an agent of that name.
pub(super) struct Pair {
    listener: TcpListener,
    hub: AcceptOptions,
    agent: ConnectOptions,
}

fn key() -> Arc<SecretKey> {
    Arc::new(SecretKey::generate().expect("the system has random bytes"))
}

impl Pair {
    pub(super) async fn new() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0")
            .await
            .expect("loopback has a free port");
        let port = listener.local_addr().expect("a bound listener has an address").port();
        let (hub_key, agent_key) = (key(), key());
        let registered = agent_key.public();
        let lookup = move |cluster: &str| (cluster == "north").then(|| vec![registered]);
        let pins = vec![key().public(), hub_key.public()];
        let hub = AcceptOptions::new(hub_key, Arc::new(lookup)).expect("a fresh key makes a certificate");
        let agent = ConnectOptions::new(format!("wss://127.0.0.1:{port}"), pins, "north", agent_key, 7);
        Self { listener, hub, agent }
    }

    pub(super) async fn meet(&self) -> (Result<Tunnel, AcceptError>, Result<Tunnel, ConnectError>) {
        let hub = async {
            let (socket, _) = self.listener.accept().await.expect("the agent dials");
            accept(socket, &self.hub).await
        };
        timeout(SOON, async { tokio::join!(hub, connect(&self.agent)) })
            .await
            .expect("a handshake ends")
    }

    async fn tunnels() -> (Tunnel, Tunnel) {
        let pair = Self::new().await;
        let (hub, agent) = pair.meet().await;
        (hub.expect("hub accepts"), agent.expect("agent connects"))
    }
}

/// Opens a stream and hands out both ends.
async fn stream(from: &Tunnel, to: &mut Incoming) -> (TunnelStream, TunnelStream) {
    let opened = from.opener.open(TargetClass::Deliver, "x", SOON);
    let granted = async {
        let wish = to.next().await.expect("an open comes");
        wish.responder.accept().expect("the opener still waits")
    };
    let (ours, theirs) = tokio::join!(opened, granted);
    (ours.expect("granted"), theirs)
}

fn pattern(bytes: usize, seed: u8) -> Vec<u8> {
    (0..bytes)
        .map(|at| {
            (at as u8)
                .wrapping_mul(31)
                .wrapping_add((at >> 8) as u8)
                .wrapping_add(seed)
        })
        .collect()
}

fn code_of(error: &std::io::Error) -> Option<OpenCode> {
    error.get_ref()?.downcast_ref::<StreamError>().map(|error| error.code)
}

#[tokio::test]
async fn both_sides_learn_who_the_other_is() {
    let pair = Pair::new().await;
    let (hub, agent) = pair.meet().await;
    let (hub, agent) = (hub.expect("hub accepts"), agent.expect("agent connects"));
    assert_eq!((hub.peer.cluster.as_str(), hub.peer.epoch), ("north", 7));
    assert_eq!(hub.peer.key, pair.agent.key.public());
    assert!(
        pair.agent.pins.contains(&agent.peer.key),
        "the agent knows which pinned key answered"
    );
}

#[tokio::test]
async fn an_agent_dials_only_a_pinned_hub() {
    let mut pair = Pair::new().await;
    pair.agent.pins = vec![key().public()];
    let (hub, agent) = pair.meet().await;
    assert!(
        matches!(agent, Err(ConnectError::Tls(_))),
        "the agent breaks off inside TLS"
    );
    assert!(
        matches!(hub, Err(AcceptError::Tls(_))),
        "the hub learns nothing about the agent"
    );
}

#[tokio::test]
async fn an_agent_with_another_key_is_refused_and_waits_a_minute() {
    let mut pair = Pair::new().await;
    pair.agent.key = key();
    let (hub, agent) = pair.meet().await;
    assert!(matches!(
        hub,
        Err(AcceptError::Handshake(HandshakeError::AgentNotProven { .. }))
    ));
    check_refused(agent);
}

#[tokio::test]
async fn programs_one_minor_version_apart_have_a_tunnel_and_two_apart_a_message_on_both_sides() {
    for (hub, agent) in [("1.3.0", "1.2.9"), ("1.2.0", "1.3.4"), ("1.3.1", "1.3.0")] {
        let mut pair = Pair::new().await;
        (pair.hub.version, pair.agent.version) = (hub.to_owned(), agent.to_owned());
        let (at_hub, at_agent) = pair.meet().await;
        let (at_hub, mut at_agent) = (at_hub.expect("it is let in"), at_agent.expect("it is let in"));
        assert_eq!(
            (at_hub.peer.version.as_str(), at_agent.peer.version.as_str()),
            (agent, hub)
        );
        let (mut ours, mut theirs) = stream(&at_hub, &mut at_agent.incoming).await;
        ours.write_all(b"hello").await.expect("it is open");
        let mut said = [0; 5];
        theirs.read_exact(&mut said).await.expect("it is carried");
        assert_eq!(&said, b"hello");
    }
    for (hub, agent) in [("1.4.0", "1.2.9"), ("1.2.0", "1.4.0"), ("2.0.0", "1.9.0")] {
        let mut pair = Pair::new().await;
        (pair.hub.version, pair.agent.version) = (hub.to_owned(), agent.to_owned());
        let (at_hub, at_agent) = pair.meet().await;
        let (Some(AcceptError::Handshake(at_hub)), Some(ConnectError::Handshake(at_agent))) =
            (at_hub.err(), at_agent.err())
        else {
            unreachable!("both know why");
        };
        for error in [at_hub, at_agent] {
            // Whoever hears the other's version first says it.
            let message = match error {
                HandshakeError::Refused(away) => away.text,
                HandshakeError::Version { text, .. } => text,
                other => unreachable!("{other:?}"),
            };
            let names_both = message.contains(hub) && message.contains(agent);
            assert!(names_both && message.contains("within one minor version"), "{message}");
        }
    }
}

#[tokio::test]
async fn an_agent_hears_the_time_of_its_hub() {
    let (hub, agent) = Pair::tunnels().await;
    let now = std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .expect("it is after 1970");
    let heard = agent.hub_time.expect("the hub says it");
    assert!(heard.abs_diff(now.as_secs() as i64) < 600, "{heard}");
    assert_eq!(hub.hub_time, None, "an agent's is nobody's to go by");
}

#[tokio::test]
async fn each_step_of_a_handshake_is_timed_however_it_ends() {
    let counted = |meters: &Meters| {
        HandshakeStep::ALL.map(|step| {
            meters
                .handshake_times(step)
                .buckets
                .iter()
                .map(|(_, count)| count)
                .sum::<u64>()
        })
    };
    let mut pair = Pair::new().await;
    let meters: Arc<Meters> = Arc::default();
    pair.hub.allowance.meters = Arc::clone(&meters);
    assert!(pair.meet().await.0.is_ok());
    assert_eq!(counted(&meters), [1, 1, 1]);
    pair.agent.key = key();
    assert!(pair.meet().await.0.is_err());
    assert_eq!(counted(&meters), [2, 2, 2], "an agent that is refused came as far");
    let cut_off = async {
        let (socket, _) = silent_connection(&pair.listener).await;
        let _ended = timeout(Duration::from_millis(1), accept(socket, &pair.hub)).await;
    };
    cut_off.await;
    assert_eq!(
        counted(&meters),
        [3, 2, 2],
        "one that said nothing had its first step cut off"
    );
}

/// A connection on which nobody says anything.
async fn silent_connection(listener: &TcpListener) -> (TcpStream, TcpStream) {
    let address = listener.local_addr().expect("it is bound");
    let (accepted, dialled) = tokio::join!(listener.accept(), TcpStream::connect(address));
    (accepted.expect("somebody dials").0, dialled.expect("it listens"))
}

#[tokio::test]
async fn an_unknown_cluster_is_refused_with_the_same_words() {
    let mut pair = Pair::new().await;
    pair.agent.cluster = "south".to_owned();
    let (hub, agent) = pair.meet().await;
    assert!(matches!(
        hub,
        Err(AcceptError::Handshake(HandshakeError::UnknownCluster { .. }))
    ));
    check_refused(agent);
}

#[track_caller]
fn check_refused(agent: Result<Tunnel, ConnectError>) {
    let error = agent.err().expect("no tunnel");
    let ConnectError::Handshake(HandshakeError::Refused(away)) = &error else {
        unreachable!("refused by GOAWAY and not {error:?}");
    };
    assert_eq!(away.reason, GoAwayReason::IdentityRefused);
    assert_eq!(
        away.text, "cluster is not registered or key does not fit",
        "a name cannot be probed"
    );
    assert_eq!(error.outcome(), Outcome::Refused);
}

#[tokio::test]
async fn other_paths_are_not_found() {
    let mut pair = Pair::new().await;
    pair.agent.url += "/metrics";
    let (hub, agent) = pair.meet().await;
    assert!(matches!(hub, Err(AcceptError::Upgrade(_))));
    let Err(ConnectError::Answered { status }) = agent else {
        unreachable!("the upgrade fails")
    };
    assert_eq!(status, 404);
}

#[tokio::test]
async fn a_peer_that_says_nothing_is_dropped_in_time() {
    let pair = Pair::new().await;
    let silent = TcpStream::connect(pair.listener.local_addr().expect("bound"))
        .await
        .expect("loopback");
    let (socket, _) = pair.listener.accept().await.expect("dialled");
    tokio::time::pause();
    let outcome = accept(socket, &pair.hub).await;
    assert!(matches!(outcome, Err(AcceptError::StepTimeout { step: Step::Tls })));
    drop(silent);
}

#[tokio::test]
async fn bytes_arrive_whole_in_both_directions_at_once() {
    let (hub, mut agent) = Pair::tunnels().await;
    let (left, right) = stream(&hub, &mut agent.incoming).await;
    let (down, up) = (pattern(9_000_001, 1), pattern(7_000_003, 2));
    let exchange = |stream: TunnelStream, sent: Vec<u8>, expected: Vec<u8>| async move {
        let (mut reader, mut writer) = tokio::io::split(stream);
        let writing = async {
            writer.write_all(&sent).await.expect("the tunnel lives");
            writer.shutdown().await.expect("the tunnel lives");
        };
        let reading = async {
            let mut read = Vec::new();
            reader.read_to_end(&mut read).await.expect("the tunnel lives");
            assert!(
                read == expected,
                "{} of {} bytes, or others",
                read.len(),
                expected.len()
            );
        };
        tokio::join!(writing, reading);
    };
    let both = async {
        tokio::join!(
            exchange(left, down.clone(), up.clone()),
            exchange(right, up.clone(), down.clone())
        )
    };
    timeout(SOON, both).await.expect("nothing hangs");
}

#[tokio::test]
async fn an_agent_opens_streams_too() {
    let (mut hub, agent) = Pair::tunnels().await;
    let (mut left, mut right) = stream(&agent, &mut hub.incoming).await;
    left.write_all(b"report").await.expect("the tunnel lives");
    left.shutdown().await.expect("the tunnel lives");
    let mut read = Vec::new();
    right.read_to_end(&mut read).await.expect("the tunnel lives");
    assert_eq!(read, b"report");
}

#[tokio::test]
async fn a_finished_direction_leaves_the_other_open() {
    let (hub, mut agent) = Pair::tunnels().await;
    let (mut left, mut right) = stream(&hub, &mut agent.incoming).await;
    left.write_all(b"question").await.expect("the tunnel lives");
    left.shutdown().await.expect("the tunnel lives");
    let mut question = String::new();
    right.read_to_string(&mut question).await.expect("the tunnel lives");
    right.write_all(b"late answer").await.expect("our direction is open");
    right.shutdown().await.expect("the tunnel lives");
    drop(right);
    let mut answer = String::new();
    left.read_to_string(&mut answer).await.expect("the tunnel lives");
    assert_eq!((question.as_str(), answer.as_str()), ("question", "late answer"));
}

#[tokio::test]
async fn a_dropped_stream_is_an_error_to_its_peer_and_not_an_end() {
    let (hub, mut agent) = Pair::tunnels().await;
    let (left, mut right) = stream(&hub, &mut agent.incoming).await;
    drop(left);
    let error = timeout(SOON, right.read(&mut [0; 8]))
        .await
        .expect("it ends")
        .expect_err("cut off");
    assert_eq!(code_of(&error), Some(OpenCode::Cancelled));
}

#[tokio::test]
async fn a_refused_open_leaves_other_streams_alone() {
    let (hub, mut agent) = Pair::tunnels().await;
    let (mut left, mut right) = stream(&hub, &mut agent.incoming).await;
    let class = TargetClass::Unknown("shell".to_owned());
    let (refused, ()) = tokio::join!(hub.opener.open(class.clone(), "root", SOON), async {
        let wish = agent.incoming.next().await.expect("an open comes");
        assert_eq!(wish.open.class, class, "a class we do not know is carried as it is");
        wish.responder.refuse(OpenCode::NotAllowed, &"no ".repeat(200));
    });
    let OpenError { code, text } = refused.err().expect("refused");
    assert_eq!((code, text.len()), (OpenCode::NotAllowed, 256));
    left.write_all(b"alive").await.expect("the tunnel lives");
    let mut read = [0; 5];
    right.read_exact(&mut read).await.expect("the tunnel lives");
    assert_eq!(&read, b"alive");
}

#[tokio::test]
async fn a_stream_that_was_begun_carries_bytes_before_it_is_answered() {
    let (hub, mut agent) = Pair::tunnels().await;
    let open = Open::new(TargetClass::Look, "", SOON);
    let (mut stream, grant) = hub.opener.begin(&open).expect("it is begun");
    stream.write_all(b"early").await.expect("there is credit");
    stream.shutdown().await.expect("its end is sent");
    let IncomingOpen { responder, .. } = agent.incoming.next().await.expect("it arrives");
    let mut taken = responder.accept().expect("it is there");
    let mut text = String::new();
    taken.read_to_string(&mut text).await.expect("it is whole");
    assert_eq!(text, "early");
    assert_eq!(timeout(SOON, grant.wait()).await, Ok(Ok(())));

    let (_stream, grant) = hub.opener.begin(&open).expect("it is begun");
    let IncomingOpen { responder, .. } = agent.incoming.next().await.expect("it arrives");
    responder.refuse(OpenCode::NotAllowed, "no");
    let refused = timeout(SOON, grant.wait()).await.expect("it is answered");
    assert_eq!(refused.map_err(|error| error.code), Err(OpenCode::NotAllowed));

    let (stream, grant) = hub.opener.begin(&open).expect("it is begun");
    let (waited, ()) = tokio::join!(grant.wait(), async { drop(stream) });
    assert_eq!(
        waited.map_err(|error| error.code),
        Err(OpenCode::Gone),
        "it hears of the drop"
    );
}

#[tokio::test]
async fn an_open_nobody_answers_times_out_and_leaves_nothing() {
    let (hub, mut agent) = Pair::tunnels().await;
    let slow = hub
        .opener
        .open(TargetClass::ApiServer, "", Duration::from_millis(50))
        .await;
    assert_eq!(slow.err().map(|error| error.code), Some(OpenCode::DialTimeout));
    let wish = agent.incoming.next().await.expect("it was asked for");
    // What comes after the RST proves that the RST has come.
    let later = stream(&hub, &mut agent.incoming).await;
    assert!(wish.responder.accept().is_err(), "the opener is gone");
    assert_eq!((hub.session.streams(), agent.session.streams()), (1, 1));
    drop(later);
}

#[tokio::test]
async fn sixteen_unread_streams_do_not_hinder_another() {
    let (hub, mut agent) = Pair::tunnels().await;
    let mut unread = Vec::new();
    for _ in 0..16 {
        let (mut left, right) = stream(&hub, &mut agent.incoming).await;
        let stuffed = tokio::spawn(async move {
            let _ = left.write_all(&vec![0; 4 << 20]).await;
        });
        unread.push((right, stuffed));
    }
    let (mut left, mut right) = stream(&hub, &mut agent.incoming).await;
    let sent = pattern(3_000_000, 9);
    let transfer = async {
        let writing = async {
            left.write_all(&sent).await.expect("the tunnel lives");
            left.shutdown().await.expect("the tunnel lives");
        };
        let mut read = Vec::new();
        let (_, all) = tokio::join!(writing, right.read_to_end(&mut read));
        all.expect("the tunnel lives");
        assert!(read == sent, "whole and in order");
    };
    timeout(SOON, transfer).await.expect("unread streams hold up nobody");
    assert!(
        unread.iter().all(|(_, stuffed)| !stuffed.is_finished()),
        "they still wait for their credit"
    );
    unread.into_iter().for_each(|(_, stuffed)| stuffed.abort());
}

#[tokio::test]
async fn a_closed_tunnel_tells_why_and_fails_its_streams() {
    let (hub, mut agent) = Pair::tunnels().await;
    let (_left, mut right) = stream(&hub, &mut agent.incoming).await;
    let away = GoAway::new(GoAwayReason::Replaced, "epoch 8 came");
    hub.session.close(away.clone());
    assert_eq!(hub.session.closed().await, CloseReason::Local(away));
    let reason = timeout(SOON, agent.session.closed()).await.expect("the agent notices");
    let CloseReason::Peer(Some(said)) = reason else {
        unreachable!("closed by the hub and not {reason:?}")
    };
    assert_eq!(
        (said.reason, said.text.as_str()),
        (GoAwayReason::Replaced, "epoch 8 came")
    );
    let outcome = CloseReason::Peer(Some(said)).outcome(SOON);
    assert_eq!(outcome, Outcome::Refused, "two agents of one name do not take turns");
    let error = right
        .read(&mut [0; 8])
        .await
        .expect_err("no stream outlives its tunnel");
    assert_eq!(code_of(&error), Some(OpenCode::Gone));
    assert!(agent.incoming.next().await.is_none(), "no open comes any more");
    let late = agent.opener.open(TargetClass::Report, "", SOON).await;
    assert_eq!(late.err().map(|error| error.code), Some(OpenCode::Gone));
}

#[tokio::test]
async fn a_draining_tunnel_takes_no_new_streams_and_keeps_the_old() {
    let (hub, mut agent) = Pair::tunnels().await;
    let (mut left, mut right) = stream(&hub, &mut agent.incoming).await;
    let range = (Duration::from_secs(1), Duration::from_secs(9));
    hub.session
        .go_away(GoAway::new(GoAwayReason::Drain, "").with_retry(range.0, range.1));
    let away = timeout(SOON, agent.session.draining())
        .await
        .expect("the agent is told");
    assert_eq!((away.reason, away.retry()), (GoAwayReason::Drain, Some(range)));
    let late = agent.opener.open(TargetClass::Report, "", SOON).await;
    assert_eq!(late.err().map(|error| error.code), Some(OpenCode::Gone));
    right.write_all(b"still here").await.expect("old streams go on");
    let mut read = [0; 10];
    left.read_exact(&mut read).await.expect("old streams go on");
    assert_eq!(&read, b"still here");
}

#[tokio::test]
async fn dropping_the_session_closes_the_tunnel() {
    let (hub, agent) = Pair::tunnels().await;
    drop(hub.session);
    let reason = timeout(SOON, agent.session.closed()).await.expect("the agent notices");
    assert!(
        matches!(
            reason,
            CloseReason::Peer(Some(GoAway {
                reason: GoAwayReason::Shutdown,
                ..
            }))
        ),
        "{reason:?}"
    );
}

#[tokio::test]
async fn a_listener_that_is_gone_refuses_opens() {
    let (hub, agent) = Pair::tunnels().await;
    drop(agent.incoming);
    let refused = hub.opener.open(TargetClass::Deliver, "", SOON).await;
    assert_eq!(refused.err().map(|error| error.code), Some(OpenCode::NotAllowed));
}

#[tokio::test]
async fn streams_opened_and_dropped_leave_nothing_behind() {
    let (hub, mut agent) = Pair::tunnels().await;
    for _ in 0..300 {
        let (left, right) = stream(&hub, &mut agent.incoming).await;
        drop((left, right));
    }
    // The last RSTs may be on their way; a stream opened after them arrives after them.
    let last = stream(&hub, &mut agent.incoming).await;
    assert_eq!((hub.session.streams(), agent.session.streams()), (1, 1));
    drop(last);
}

/// Answers every stream with its own bytes until the tunnel ends.
async fn echo(mut incoming: Incoming) {
    while let Some(wish) = incoming.next().await {
        let Ok(stream) = wish.responder.accept() else { continue };
        tokio::spawn(async move {
            let (mut reader, mut writer) = stream.into_split();
            let copied = tokio::io::copy(&mut reader, &mut writer).await;
            if copied.is_ok() {
                let _ = writer.shutdown().await;
            }
        });
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn three_hundred_streams_at_once_keep_their_bytes_apart() {
    let (hub, agent) = Pair::tunnels().await;
    let echoing = tokio::spawn(echo(agent.incoming));
    let one = |number: usize| {
        let opener = hub.opener.clone();
        async move {
            let stream = opener.open(TargetClass::Deliver, "", SOON).await.expect("granted");
            let (mut reader, mut writer) = stream.into_split();
            let sent = pattern(number * number * 7 % 90_001 + 1, number as u8);
            let writing = async {
                for piece in sent.chunks(number * 13 % 4_000 + 1) {
                    writer.write_all(piece).await.expect("the tunnel lives");
                }
                writer.shutdown().await.expect("the tunnel lives");
            };
            let mut read = Vec::new();
            let (_, all) = tokio::join!(writing, reader.read_to_end(&mut read));
            all.expect("the tunnel lives");
            assert!(read == sent, "stream {number} got its own bytes, all and in order");
        }
    };
    let all = futures_util::stream::iter(0..300).for_each_concurrent(64, one);
    timeout(SOON, all).await.expect("nothing hangs");
    hub.session.close(GoAway::new(GoAwayReason::Shutdown, ""));
    timeout(SOON, echoing)
        .await
        .expect("the tunnel ends")
        .expect("no panic");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tunnels_cut_under_load_make_room_for_the_next_at_once() {
    let pair = Pair::new().await;
    for _ in 0..10 {
        let (hub, agent) = pair.meet().await;
        let (hub, agent) = (hub.expect("hub accepts"), agent.expect("agent connects"));
        let echoing = tokio::spawn(echo(agent.incoming));
        let mut stream = hub.opener.open(TargetClass::Deliver, "", SOON).await.expect("granted");
        let load = tokio::spawn(async move {
            // Nobody reads what comes back, so that both directions are full when the cut comes.
            while stream.write_all(&[0; 65_536]).await.is_ok() {}
        });
        tokio::task::yield_now().await;
        drop(hub.session);
        let ended = async { tokio::join!(load, echoing, agent.session.closed()) };
        timeout(SOON, ended)
            .await
            .expect("nobody waits for a tunnel that is gone")
            .0
            .expect("no panic");
    }
}

#[tokio::test]
async fn opens_that_were_taken_back_do_not_grow_the_queue() {
    let (hub, mut agent) = Pair::tunnels().await;
    for _ in 0..500 {
        // The deadline is over at once, so each is asked for and taken back.
        let lost = hub.opener.open(TargetClass::Deliver, "", Duration::ZERO).await;
        assert!(lost.is_err(), "nobody answers");
    }
    let answer_all = async {
        while let Some(wish) = agent.incoming.next().await {
            // One may be granted whose end is still on its way.
            drop(wish.responder.accept());
        }
    };
    let ask = async {
        loop {
            match hub.opener.open(TargetClass::Deliver, "", SOON).await {
                Ok(stream) => return stream,
                Err(error) => assert_eq!(error.code, OpenCode::Limit, "a full queue says so"),
            }
        }
    };
    let served = timeout(SOON, async {
        tokio::select! {
            stream = ask => stream,
            () = answer_all => unreachable!("the tunnel lives"),
        }
    });
    drop(served.await.expect("room is made"));
}

#[test]
fn all_that_goes_to_other_tasks_may_go_there() {
    fn may_move<T: Send + Unpin + 'static>() {}
    fn may_be_spawned<F: Send>(_: F) {}
    may_move::<Tunnel>();
    may_move::<TunnelStream>();
    may_move::<super::IncomingOpen>();
    may_be_spawned(async {
        let pair = Pair::new().await;
        let (hub, agent) = pair.meet().await;
        let _ = (hub.map(|tunnel| tunnel.peer), agent.map(|tunnel| tunnel.peer));
    });
}
