//! Many streams, slow readers and poor links, on a clock that jumps: what the Go tunnels stumbled over.

use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream, duplex};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout};

use super::tests::{End, closed, end, end_with, granted, open};
use super::*;
use crate::allowance::Allowance;
use crate::frame::{Open, OpenCode, Reset, TargetClass};
use crate::identity::Role;
use crate::limits::{OPENS_PER_SECOND, SEND_QUEUE_BYTES, STREAMS_MAX, WINDOW_BYTES};
use crate::mux::Death;
use crate::stream::TunnelStream;

/// Nothing that works takes this long on a clock that only waits.
const SOON: Duration = Duration::from_millis(500);

async fn pair() -> (End, End) {
    let (ours, theirs) = duplex(64 * 1024);
    (end(ours, Role::Hub).await, end(theirs, Role::Agent).await)
}

async fn both(hub: &End, agent: &mut End) -> (TunnelStream, TunnelStream) {
    let ours = open(hub);
    (ours, granted(agent).await)
}

/// Gives back what comes, on every stream.
async fn echo(mut stream: TunnelStream) {
    let mut buffer = vec![0; 4 * 1024];
    while let Ok(bytes @ 1..) = stream.read(&mut buffer).await {
        if stream.write_all(&buffer[..bytes]).await.is_err() {
            return;
        }
    }
    // The other side may be gone already.
    let _ = stream.shutdown().await;
}

async fn ask(stream: &mut TunnelStream, text: &[u8]) {
    let mut answer = vec![0; text.len()];
    stream.write_all(text).await.expect("the tunnel lives");
    stream.read_exact(&mut answer).await.expect("the tunnel lives");
    assert_eq!(answer, text);
}

/// Carries bytes both ways at so many a second, until it is told to swallow them.
async fn link(bytes_per_second: u64) -> (End, End, watch::Sender<bool>) {
    let ((ours, near), (far, theirs)) = (duplex(4 * 1024), duplex(4 * 1024));
    let (silence, silent) = watch::channel(false);
    let (near, far) = (tokio::io::split(near), tokio::io::split(far));
    tokio::spawn(carry(near.0, far.1, bytes_per_second, silent.clone()));
    tokio::spawn(carry(far.0, near.1, bytes_per_second, silent));
    (end(ours, Role::Hub).await, end(theirs, Role::Agent).await, silence)
}

async fn carry(
    mut from: tokio::io::ReadHalf<DuplexStream>,
    mut to: tokio::io::WriteHalf<DuplexStream>,
    bytes_per_second: u64,
    silent: watch::Receiver<bool>,
) {
    let mut packet = vec![0; 1_250];
    loop {
        let Ok(bytes @ 1..) = from.read(&mut packet).await else {
            return;
        };
        sleep(Duration::from_secs_f64(bytes as f64 / bytes_per_second as f64)).await;
        if !*silent.borrow() && to.write_all(&packet[..bytes]).await.is_err() {
            return;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn unread_streams_of_both_directions_do_not_hinder_a_request() {
    let (hub, mut agent) = pair().await;
    let (mut held, mut writing) = (Vec::new(), JoinSet::new());
    for _ in 0..16 {
        let (ours, theirs) = both(&hub, &mut agent).await;
        for stream in [ours, theirs] {
            let (read, mut write) = stream.into_split();
            held.push(read);
            writing.spawn(async move { write.write_all(&vec![1; 8 << 20]).await });
        }
    }
    sleep(Duration::from_secs(1)).await;
    assert_eq!(writing.len(), 32, "all of them wait for their readers");
    let (mut ours, theirs) = both(&hub, &mut agent).await;
    tokio::spawn(echo(theirs));
    for _ in 0..100 {
        timeout(SOON, ask(&mut ours, b"small"))
            .await
            .expect("nobody stands in the way");
    }
    for end in [&hub, &agent] {
        let held = end.shared.act(|mux| mux.window_bytes() + mux.queued_bytes() as u64);
        let bound = 17 * (u64::from(WINDOW_BYTES) + SEND_QUEUE_BYTES as u64);
        assert!(held <= bound, "{held} bytes for 17 streams, at most {bound}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_slow_reader_gets_everything_twice_while_twenty_others_go_on() {
    const BYTES: usize = 100_000_000;
    let (hub, mut agent) = pair().await;
    let mut others = Vec::new();
    for _ in 0..20 {
        let (ours, theirs) = both(&hub, &mut agent).await;
        tokio::spawn(echo(theirs));
        others.push(ours);
    }
    for _ in 0..2 {
        let (mut ours, mut theirs) = both(&hub, &mut agent).await;
        let writing = tokio::spawn(async move {
            let chunk = vec![9; 1_000_000];
            for _ in 0..BYTES / chunk.len() {
                theirs.write_all(&chunk).await?;
            }
            theirs.shutdown().await
        });
        let (mut read, mut turn, mut buffer) = (0, 0, vec![0; 32 * 1024]);
        loop {
            sleep(Duration::from_millis(50)).await;
            let ready = Instant::now();
            let bytes = ours.read(&mut buffer).await.expect("the tunnel lives");
            assert!(ready.elapsed() < Duration::from_secs(1), "what is there comes at once");
            if bytes == 0 {
                break;
            }
            read += bytes;
            turn += 1;
            if turn % 100 == 0 {
                for other in &mut others {
                    timeout(SOON, ask(other, b"fast"))
                        .await
                        .expect("a slow neighbour holds nobody up");
                }
            }
        }
        assert_eq!(read, BYTES, "every byte came");
        writing.await.expect("no panic").expect("all was sent");
    }
}

#[tokio::test(start_paused = true)]
async fn a_dial_that_hangs_and_a_reader_that_sleeps_hold_no_other_up() {
    let (hub, mut agent) = pair().await;
    let _dialling = open(&hub);
    let (_unanswered, _) = agent.opens.recv().await.expect("the open comes");
    let (_asleep, mut full) = both(&hub, &mut agent).await;
    tokio::spawn(async move { full.write_all(&vec![1; 8 << 20]).await });
    for _ in 3..=50 {
        let request = async {
            let (mut ours, theirs) = both(&hub, &mut agent).await;
            tokio::spawn(echo(theirs));
            ask(&mut ours, b"small").await;
        };
        timeout(SOON, request).await.expect("each stream goes its own way");
    }
}

#[tokio::test(start_paused = true)]
async fn streams_that_are_cut_off_one_by_one_leave_every_line_of_the_last() {
    let (hub, mut agent) = pair().await;
    let mut followed = Vec::new();
    for _ in 0..20 {
        let (ours, mut theirs) = both(&hub, &mut agent).await;
        followed.push(ours);
        tokio::spawn(async move {
            for line in 0_u32.. {
                sleep(Duration::from_millis(1)).await;
                if theirs.write_all(&line.to_be_bytes()).await.is_err() {
                    return;
                }
            }
        });
    }
    let mut last = followed.pop().expect("there are twenty");
    let mut next = 0;
    for interrupted in followed {
        for _ in 0..100 {
            assert_eq!(last.read_u32().await.expect("it goes on"), next, "no line is missing");
            next += 1;
        }
        drop(interrupted);
    }
    assert_eq!(hub.shared.streams(), 1, "nineteen are gone");
}

#[tokio::test(start_paused = true)]
async fn a_hundred_thousand_short_streams_with_a_tenth_cancelled_leave_nothing() {
    const STREAMS: usize = 100_000;
    let (hub, mut agent) = pair().await;
    let serving = tokio::spawn(async move {
        while let Some((id, _)) = agent.opens.recv().await {
            let taken = agent.shared.act(|mux| mux.accept(id));
            let stream = TunnelStream::new(Arc::clone(&agent.shared), id);
            if taken {
                tokio::spawn(echo(stream));
            }
        }
        agent
    });
    let (mut running, mut began) = (JoinSet::new(), 0);
    while began < STREAMS {
        let wish = Open::new(TargetClass::Deliver, "", SOON);
        let now = hub.shared.now();
        match hub.shared.act(|mux| mux.open(&wish, now)) {
            Ok(id) => {
                let mut stream = TunnelStream::new(Arc::clone(&hub.shared), id);
                let cancelled = began % 10 == 0;
                running.spawn(async move {
                    stream.write_all(b"a short request").await.expect("the tunnel lives");
                    if !cancelled {
                        stream.shutdown().await.expect("the tunnel lives");
                        let mut answer = Vec::new();
                        stream.read_to_end(&mut answer).await.expect("the tunnel lives");
                        assert_eq!(answer, b"a short request");
                    }
                });
                began += 1;
            }
            Err(Reset { code, .. }) => {
                assert_eq!(code, OpenCode::Limit, "a caller that is too fast waits");
                sleep(Duration::from_secs_f64(10.0 / OPENS_PER_SECOND)).await;
            }
        }
        if running.len() >= 50 {
            running.join_next().await.expect("there are some").expect("no panic");
        }
    }
    while let Some(ended) = running.join_next().await {
        ended.expect("no panic");
    }
    sleep(Duration::from_secs(30)).await;
    assert_eq!(hub.shared.streams(), 0, "the hub holds no stream");
    let held = hub.shared.act(|mux| (mux.window_bytes(), mux.queued_bytes()));
    assert_eq!(held, (0, 0), "and no memory");
    hub.shared.stop(GoAway::new(GoAwayReason::Shutdown, ""));
    let agent = serving.await.expect("no panic");
    assert_eq!(agent.shared.streams(), 0, "nor does the agent");
}

#[tokio::test(start_paused = true)]
async fn bulk_at_100_kilobits_trips_no_ping_and_lets_requests_through() {
    let (hub, mut agent, _silence) = link(12_500).await;
    let (mut ours, mut theirs) = both(&hub, &mut agent).await;
    tokio::spawn(async move { theirs.write_all(&vec![1; 64 << 20]).await });
    tokio::spawn(async move { tokio::io::copy(&mut ours, &mut tokio::io::sink()).await });
    let (mut request, theirs) = both(&hub, &mut agent).await;
    tokio::spawn(echo(theirs));
    for minute in 0..5 {
        sleep(Duration::from_secs(60)).await;
        assert!(
            hub.shared.closed().borrow().is_none(),
            "the hub waits, in minute {minute}"
        );
        assert!(
            agent.shared.closed().borrow().is_none(),
            "the agent too, in minute {minute}"
        );
        let asked = Instant::now();
        ask(&mut request, b"small").await;
        // Two small frames and what the pipes hold: 45 KiB.
        assert!(asked.elapsed() < Duration::from_secs(5), "after {:?}", asked.elapsed());
    }
}

#[tokio::test(start_paused = true)]
async fn a_link_that_swallows_everything_is_found_within_25_seconds_by_both() {
    for busy in [false, true] {
        let (hub, mut agent, silence) = link(12_500_000).await;
        let (mut ours, mut theirs) = both(&hub, &mut agent).await;
        if busy {
            tokio::spawn(async move { theirs.write_all(&vec![1; 1 << 30]).await });
        }
        let reading = tokio::spawn(async move {
            let mut buffer = vec![0; 64 * 1024];
            loop {
                match ours.read(&mut buffer).await {
                    Ok(0) => return Ok(()),
                    Ok(_) => {}
                    Err(error) => return Err(error),
                }
            }
        });
        sleep(Duration::from_secs(2)).await;
        silence.send(true).expect("the link is there");
        let silent = Instant::now();
        let (at_hub, at_agent) = tokio::join!(closed(&hub), closed(&agent));
        assert!(
            silent.elapsed() <= Duration::from_secs(25),
            "found after {:?}",
            silent.elapsed()
        );
        for reason in [at_hub, at_agent] {
            assert!(matches!(reason, CloseReason::Dead(Death::Silent(_) | Death::Stuck(_))));
        }
        assert!(reading.await.expect("no panic").is_err(), "its streams fail with it");
    }
}

#[tokio::test(start_paused = true)]
async fn capped_bandwidth_is_kept_and_used() {
    let allowance = Allowance::of_megabits(std::num::NonZeroU32::new(8));
    let (ours, theirs) = duplex(64 * 1024);
    let hub = end_with(ours, Role::Hub, allowance).await;
    let mut agent = end(theirs, Role::Agent).await;
    let (mut ours, mut theirs) = both(&hub, &mut agent).await;
    let began = Instant::now();
    let writing = tokio::spawn(async move { ours.write_all(&vec![1; 10_000_000]).await.map(|()| ours) });
    theirs
        .read_exact(&mut vec![0; 10_000_000])
        .await
        .expect("the tunnel lives");
    let took = began.elapsed().as_secs_f64();
    drop(writing.await.expect("no panic"));
    assert!(
        (9.5..10.5).contains(&took),
        "ten megabytes at one a second took {took} s"
    );
}

#[tokio::test(start_paused = true)]
async fn a_thousand_streams_at_once_are_held_and_the_next_is_refused() {
    let (hub, mut agent) = pair().await;
    let mut held = Vec::new();
    for _ in 0..STREAMS_MAX {
        held.push(both(&hub, &mut agent).await);
    }
    let wish = Open::new(TargetClass::Deliver, "", SOON);
    let now = hub.shared.now();
    let refused = hub
        .shared
        .act(|mux| mux.open(&wish, now))
        .expect_err("there are a thousand");
    assert_eq!(refused.code, OpenCode::Limit);
    held.pop();
    timeout(SOON, both(&hub, &mut agent))
        .await
        .expect("one that ends makes room");
}
