//! Many agents that come and go, at a listener as agents find it.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use render::ClusterName;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio::sync::{mpsc, watch};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tunnel::meters::Meters;
use tunnel::{AcceptOptions, ConnectOptions, Open, SecretKey, TargetClass, Tunnel};

use super::gateway::{Doors, run};
use super::hostile_tests::{key, registry, sessions};
use super::observe::fixture::cluster;
use super::repository::fixture::Fixture;

const AGENTS: u64 = 50;

/// As many seconds of fifty agents each as case tunnel-005 of the Go tunnels took to fill a hub with sessions that closed
/// for ever.
const ROUNDS: u64 = 6;

const SOON: Duration = Duration::from_secs(60);

/// How long a request may take while all this happens.
const ANSWER: Duration = Duration::from_secs(2);

fn name(number: u64) -> ClusterName {
    cluster(&format!("edge-{number}"))
}

/// Answers what it is asked, until its tunnel is over.
async fn answer(mut tunnel: Tunnel) {
    let tasks = TaskTracker::new();
    let mut kept = Vec::new();
    while let Some(opened) = tunnel.incoming.next().await {
        let class = opened.open.class;
        let Ok(mut stream) = opened.responder.accept() else {
            continue;
        };
        if class != TargetClass::ApiServer {
            kept.push(stream);
            continue;
        }
        tasks.spawn(async move {
            let _written = stream.write_all(b"here").await;
            let _ended = stream.shutdown().await;
        });
    }
}

#[tokio::test]
async fn fifty_agents_a_second_come_and_go_and_no_session_stays_in_closing() {
    let (hub, keys) = (key(), (0..AGENTS).map(|_| key()).collect::<Vec<Arc<SecretKey>>>());
    let names: Vec<_> = (0..AGENTS).map(|number| name(number).to_string()).collect();
    let known: Vec<_> = names
        .iter()
        .map(String::as_str)
        .zip(keys.iter().map(|key| &**key))
        .collect();
    let (events, mut heard) = mpsc::channel(16);
    let drained = tokio::spawn(async move { while heard.recv().await.is_some() {} });
    let (repository, stop) = (Fixture::new(), CancellationToken::new());
    let sessions = sessions(events, &repository, &hub, Arc::new(registry(&known)));
    let mut accept =
        AcceptOptions::new(Arc::clone(&hub), Arc::clone(&sessions.registry) as _).expect("a key makes TLS");
    let meters = Arc::new(Meters::default());
    accept.allowance.meters = Arc::clone(&meters);
    let secured = TcpListener::bind("127.0.0.1:0").await.expect("loopback has a port");
    let url = format!("wss://{}", secured.local_addr().expect("it is bound"));
    let doors = Doors { secured, plain: None };
    let accepts = watch::Sender::new(Arc::new(accept)).subscribe();
    let running = tokio::spawn(run(doors, accepts, sessions.clone(), stop.clone()));
    let dial = |number: u64, epoch: u64| {
        let key = Arc::clone(&keys[usize::try_from(number).expect("it is small")]);
        let options = ConnectOptions::new(url.clone(), vec![hub.public()], name(number).to_string(), key, epoch);
        async move { tunnel::connect(&options).await.expect("it is let in") }
    };
    for round in 1..=ROUNDS {
        let tunnels = join_all((0..AGENTS).map(|number| dial(number, round))).await;
        // Some end in good order, some are cut off, and some hold a stream open to the end.
        let streams = tunnels.iter().step_by(3);
        let streams = streams.map(|tunnel| tunnel.opener.open(TargetClass::Report, "", SOON));
        let held = join_all(streams).await;
        assert!(held.iter().all(Result::is_ok), "reports are taken in round {round}");
        for tunnel in tunnels.into_iter().skip(1).step_by(2) {
            let away = tunnel::GoAway::new(tunnel::GoAwayReason::Shutdown, "the agent ends");
            tunnel.session.close(away);
        }
    }
    let last = join_all((0..AGENTS).map(|number| dial(number, ROUNDS + 1))).await;
    let agents: Vec<_> = last.into_iter().map(|tunnel| tokio::spawn(answer(tunnel))).collect();
    let ask = async |number: u64| {
        let until = tokio::time::Instant::now() + SOON;
        let door = sessions.dispatch.door_soon(&name(number), until, SOON).await;
        let open = Open::new(TargetClass::ApiServer, "", ANSWER);
        let (opener, open) = door.expect("it is there").tunnel(open).expect("it has a tunnel");
        let answered = async {
            let mut stream = opener.request(open).await.expect("the agent takes it");
            let mut said = String::new();
            stream.read_to_string(&mut said).await.expect("it answers");
            said
        };
        timeout(ANSWER, answered).await
    };
    for number in 0..AGENTS {
        assert_eq!(ask(number).await.as_deref(), Ok("here"), "{}", name(number));
    }
    let left = async |count: u64| {
        let closed = async {
            while meters.tunnels() != count {
                tokio::task::yield_now().await;
            }
        };
        assert!(
            timeout(SOON, closed).await.is_ok(),
            "{} tunnels are left",
            meters.tunnels()
        );
    };
    left(AGENTS).await;
    assert_eq!(u64::try_from(sessions.connections.count()), Ok(AGENTS));
    agents.iter().for_each(tokio::task::JoinHandle::abort);
    stop.cancel();
    timeout(SOON, running)
        .await
        .expect("nobody holds up the end")
        .expect("without a panic");
    drop(sessions);
    timeout(SOON, drained)
        .await
        .expect("all is told")
        .expect("without a panic");
    left(0).await;
}
