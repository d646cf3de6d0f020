//! A long run of streams and tunnels over real TLS, in a process of its own, since what a process takes is its own alone:
//! at the end it takes what it took before.
#![cfg(target_os = "linux")]

use std::env;
use std::fs;
use std::process::Command;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::task::JoinSet;
use tokio::time::{Duration, sleep, timeout};

use super::tests::{Pair, SOON};
use super::{Incoming, OpenError, Opener, Tunnel};
use crate::frame::{GoAway, GoAwayReason, Open, OpenCode, TargetClass};
use crate::meters::Meters;
use crate::pool::Pool;
use crate::stream::TunnelStream;

/// Set for the process that runs alone.
const ALONE: &str = "FLOTILLA_TEST_ALONE";

const NAME: &str = "endpoint::memory_tests::streams_and_tunnels_that_come_and_go_leave_memory_as_it_was";

/// How long whoever opened too many streams within a second lets it be.
const REST: Duration = Duration::from_millis(20);

/// Streams at a time.
const AT_ONCE: usize = 100;

/// What the process may take more at the end than before: pages of an allocator that gives them back in its own time. A
/// stream that left 100 bytes behind, or a tunnel that left 6 KiB, would be seen.
const GROWTH_KIB_MAX: u64 = 1_024;

fn long_or(long: usize, short: usize) -> usize {
    let is_long = env::var_os("FLOTILLA_LONG").is_some_and(|set| set != "0");
    if is_long { long } else { short }
}

fn resident_kib() -> u64 {
    let status = fs::read_to_string("/proc/self/status").expect("Linux says it");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kib = line.and_then(|line| line.split_whitespace().next()?.parse().ok());
    kib.expect("a number")
}

/// Gives back what comes, on every stream.
async fn serve(mut incoming: Incoming) {
    while let Some(opened) = incoming.next().await {
        if let Ok(stream) = opened.responder.accept() {
            tokio::spawn(echo(stream));
        }
    }
}

async fn echo(mut stream: TunnelStream) {
    let mut buffer = vec![0; 4 * 1024];
    while let Ok(bytes @ 1..) = stream.read(&mut buffer).await {
        if stream.write_all(&buffer[..bytes]).await.is_err() {
            return;
        }
    }
    // The other side may be gone already.
    let _ended = stream.shutdown().await;
}

/// One stream: every tenth is left before its answer comes, and every tenth with an answer that nobody reads.
async fn ask(opener: Opener, number: usize) {
    let wish = Open::new(TargetClass::Deliver, "", SOON);
    let too_fast = |error: OpenError| assert_eq!(error.code, OpenCode::Limit, "whoever is too fast comes again");
    let mut stream = loop {
        match opener.begin(&wish) {
            Ok(_) if number % 10 == 1 => return,
            Ok((stream, grant)) => match grant.wait().await {
                Ok(()) => break stream,
                Err(error) => too_fast(error),
            },
            Err(error) => too_fast(error),
        }
        sleep(REST).await;
    };
    stream.write_all(&[7; 3_000]).await.expect("the tunnel lives");
    if number % 10 == 2 {
        return;
    }
    stream.shutdown().await.expect("the tunnel lives");
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).await.expect("the tunnel lives");
    assert_eq!(answer.len(), 3_000);
}

async fn ask_often(opener: &Opener, times: usize) {
    let mut asking = JoinSet::new();
    for number in 0..times {
        asking.spawn(ask(opener.clone(), number));
        if asking.len() == AT_ONCE {
            asking.join_next().await.expect("there are some").expect("no panic");
        }
    }
    while let Some(asked) = asking.join_next().await {
        asked.expect("no panic");
    }
}

/// A tunnel with streams, that its hub, its agent or nobody says a word about when it ends.
async fn come_and_go(pair: &Pair, number: usize) {
    let (hub, agent) = pair.meet().await;
    let (hub, agent) = (hub.expect("hub accepts"), agent.expect("agent connects"));
    let Tunnel { opener, session, .. } = hub;
    let serving = tokio::spawn(serve(agent.incoming));
    ask_often(&opener, 10).await;
    let away = GoAway::new(GoAwayReason::Shutdown, "");
    match number % 3 {
        0 => session.close(away),
        1 => agent.session.close(away),
        _ => drop(agent.session),
    }
    let ended = async {
        session.closed().await;
        serving.await.expect("no panic");
    };
    timeout(SOON, ended).await.expect("both ends see it");
}

/// Waits until the accounts of all tunnels say that nothing is held but so many tunnels.
async fn until_nothing_is_held(tunnels: u64) {
    let (meters, pool) = (Meters::of_process(), Pool::of_process());
    let held = || (meters.tunnels(), meters.streams(), meters.queued_bytes(), pool.used());
    let is_free = async {
        while held() != (tunnels, 0, 0, 0) {
            tokio::task::yield_now().await;
        }
    };
    let freed = timeout(SOON, is_free).await;
    assert!(
        freed.is_ok(),
        "tunnels, streams, queued and promised bytes: {:?}",
        held()
    );
}

/// Does it for a while, and then for three times as long: the second time leaves nothing that the first did not.
async fn stays_flat(what: &str, times: usize, tunnels: u64, run: impl AsyncFn(usize)) {
    run(times).await;
    until_nothing_is_held(tunnels).await;
    let before = resident_kib();
    run(times * 3).await;
    until_nothing_is_held(tunnels).await;
    let after = resident_kib();
    assert!(
        after <= before + GROWTH_KIB_MAX,
        "{times} {what} took {before} KiB, and three times as many {after} KiB"
    );
    println!("{times} {what}: {before} KiB, and then {after} KiB");
}

async fn long_run() {
    let pair = Pair::new().await;
    let (hub, agent) = pair.meet().await;
    let (hub, agent) = (hub.expect("hub accepts"), agent.expect("agent connects"));
    let serving = tokio::spawn(serve(agent.incoming));
    stays_flat("streams", long_or(100_000, 4_000), 2, async |times: usize| {
        ask_often(&hub.opener, times).await;
    })
    .await;
    hub.session.close(GoAway::new(GoAwayReason::Shutdown, ""));
    timeout(SOON, serving)
        .await
        .expect("the agent sees it")
        .expect("no panic");
    until_nothing_is_held(0).await;
    stays_flat("tunnels", long_or(3_000, 60), 0, async |times: usize| {
        for number in 0..times {
            come_and_go(&pair, number).await;
        }
    })
    .await;
}

#[test]
fn streams_and_tunnels_that_come_and_go_leave_memory_as_it_was() {
    if env::var_os(ALONE).is_some() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        return runtime.expect("a runtime").block_on(long_run());
    }
    let this = env::current_exe().expect("it runs");
    let alone = Command::new(this)
        .args([NAME, "--exact", "--nocapture"])
        .env(ALONE, "1")
        .output();
    let alone = alone.expect("it starts");
    let said = String::from_utf8_lossy(&alone.stdout);
    let failed = String::from_utf8_lossy(&alone.stderr);
    assert!(alone.status.success() && said.contains("1 passed"), "{said}{failed}");
}
