//! A hub that ends, and the agents that are connected to it.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;
use tokio::time::{advance, pause, timeout};
use tokio_util::sync::CancellationToken;
use tunnel::{
    AcceptOptions, ConnectOptions, GoAwayReason, Open, OpenCode, Opener, SecretKey, Session, TargetClass, Tunnel,
    TunnelStream,
};

use super::gateway::{Doors, run};
use super::hostile_tests::{key, registry, sessions};
use super::observe::fixture::cluster;
use super::repository::fixture::Fixture;
use super::session::Sessions;
use crate::limits::{DRAIN_TIMEOUT, HANDSHAKES_PER_SECOND_MIN};

const SOON: Duration = Duration::from_secs(60);

const SECOND: Duration = Duration::from_secs(1);

/// So many that a second is not enough for all to come back.
const AGENTS: usize = 40;

/// A hub and its agents.
struct Crowd {
    sessions: Sessions,
    agents: Vec<Agent>,
    stop: CancellationToken,
    running: JoinHandle<()>,
    address: std::net::SocketAddr,
    _repository: Fixture,
}

/// An agent that takes whatever its hub opens.
struct Agent {
    session: Session,
    asked: mpsc::Receiver<TunnelStream>,
}

impl From<Tunnel> for Agent {
    fn from(tunnel: Tunnel) -> Self {
        let Tunnel {
            session, mut incoming, ..
        } = tunnel;
        let (ask, asked) = mpsc::channel(8);
        tokio::spawn(async move {
            let mut kept = Vec::new();
            while let Some(opened) = incoming.next().await {
                let class = opened.open.class;
                let Ok(stream) = opened.responder.accept() else {
                    continue;
                };
                match class {
                    TargetClass::ApiServer => drop(ask.send(stream).await),
                    _ => kept.push(stream),
                }
            }
        });
        Self { session, asked }
    }
}

fn name(number: usize) -> String {
    format!("edge-{number}")
}

/// Lets time pass as it does, a little at a time: what waits for the next thing begins its wait when that happens.
pub(super) async fn pass(time: Duration) {
    let steps = time.as_millis() / STEP.as_millis();
    for _ in 0..steps {
        advance(STEP).await;
        for _ in 0..YIELDS {
            tokio::task::yield_now().await;
        }
    }
}

/// See [`pass`].
const STEP: Duration = Duration::from_millis(250);

/// Turns that all tasks have in each step.
const YIELDS: usize = 100;

impl Crowd {
    async fn of(count: usize) -> Self {
        let (hub, keys) = (key(), (0..count).map(|_| key()).collect::<Vec<Arc<SecretKey>>>());
        let names: Vec<_> = (0..count).map(name).collect();
        let known = names.iter().map(String::as_str).zip(keys.iter().map(|key| &**key));
        let (events, mut heard) = mpsc::channel(16);
        tokio::spawn(async move { while heard.recv().await.is_some() {} });
        let (repository, stop) = (Fixture::new(), CancellationToken::new());
        let registry = Arc::new(registry(&known.collect::<Vec<_>>()));
        let sessions = sessions(events, &repository, &hub, registry);
        let accept = AcceptOptions::new(Arc::clone(&hub), Arc::clone(&sessions.registry) as _);
        let secured = TcpListener::bind("127.0.0.1:0").await.expect("loopback has a port");
        let address = secured.local_addr().expect("it is bound");
        let doors = Doors { secured, plain: None };
        let accepts = watch::Sender::new(Arc::new(accept.expect("a key makes TLS"))).subscribe();
        let running = tokio::spawn(run(doors, accepts, sessions.clone(), stop.clone()));
        let dial = |(name, key): (&String, &Arc<SecretKey>)| {
            let url = format!("wss://{address}");
            let options = ConnectOptions::new(url, vec![hub.public()], name.clone(), Arc::clone(key), 1);
            async move { Agent::from(tunnel::connect(&options).await.expect("it is let in")) }
        };
        let agents = join_all(names.iter().zip(&keys).map(dial)).await;
        let there = async {
            while sessions.connections.count() < count {
                tokio::task::yield_now().await;
            }
        };
        timeout(SOON, there).await.expect("all are there");
        Self {
            sessions,
            agents,
            stop,
            running,
            address,
            _repository: repository,
        }
    }

    /// The hub's way into a cluster.
    fn way(&self, number: usize) -> (Opener, Open) {
        let door = self
            .sessions
            .dispatch
            .door(&cluster(&name(number)))
            .expect("it is there");
        let open = Open::new(TargetClass::ApiServer, "", SOON);
        door.tunnel(open).expect("it has a tunnel")
    }
}

/// Both ends of a stream that the hub opens.
async fn stream(agent: &mut Agent, (opener, open): (&Opener, &Open)) -> (TunnelStream, TunnelStream) {
    let (here, there) = tokio::join!(opener.request(open.clone()), agent.asked.recv());
    (here.expect("the agent takes it"), there.expect("it hears of it"))
}

#[tokio::test]
async fn a_hub_that_ends_sends_all_its_agents_away_over_one_time_and_waits_for_what_is_under_way() {
    let mut crowd = Crowd::of(AGENTS).await;
    let (opener, open) = crowd.way(0);
    let (mut here, mut there) = stream(&mut crowd.agents[0], (&opener, &open)).await;
    crowd.stop.cancel();
    let told = join_all(crowd.agents.iter().map(|agent| agent.session.draining()));
    let told = timeout(SOON, told).await.expect("all are told");
    // More than a hundred handshakes a second may have been measured meanwhile, and never fewer than the least.
    let longest = Duration::from_secs_f64(AGENTS as f64 * 2.0 / HANDSHAKES_PER_SECOND_MIN);
    let first = told[0].retry().expect("it says when");
    for away in &told {
        assert_eq!(away.reason, GoAwayReason::Shutdown);
        assert_eq!(
            away.retry(),
            Some(first),
            "who left first does not shorten it for the others"
        );
    }
    assert!(
        first.0.is_zero() && !first.1.is_zero() && first.1 <= longest,
        "{first:?}"
    );
    let refused = opener.begin(&open).err().map(|error| error.code);
    assert_eq!(refused, Some(OpenCode::Gone), "nothing new begins");
    assert!(crowd.sessions.dispatch.door(&cluster(&name(0))).is_none());
    let dialled = tokio::net::TcpStream::connect(crowd.address).await;
    assert!(dialled.is_err(), "nobody is let in any more");
    let others = join_all(crowd.agents[1..].iter().map(|agent| agent.session.closed()));
    timeout(SOON, others)
        .await
        .expect("who has nothing under way is closed");
    assert!(!crowd.running.is_finished(), "the hub waits for the one that has");
    there.write_all(b"the last line").await.expect("it goes on");
    there.shutdown().await.expect("it ends");
    let mut heard = String::new();
    here.read_to_string(&mut heard).await.expect("it is whole");
    assert_eq!(heard, "the last line");
    here.shutdown().await.expect("it ends");
    drop((here, there));
    timeout(SOON, crowd.running)
        .await
        .expect("then it is over")
        .expect("without a panic");
}

#[tokio::test]
async fn a_hub_that_ends_cuts_off_in_time_what_never_ends() {
    let mut crowd = Crowd::of(1).await;
    let (opener, open) = crowd.way(0);
    let (mut here, _there) = stream(&mut crowd.agents[0], (&opener, &open)).await;
    pause();
    crowd.stop.cancel();
    let told = timeout(SOON, crowd.agents[0].session.draining());
    told.await.expect("it is told");
    pass(DRAIN_TIMEOUT - SECOND).await;
    assert!(!crowd.running.is_finished(), "it may take so long");
    pass(SECOND * 3).await;
    timeout(SOON, crowd.running)
        .await
        .expect("and no longer")
        .expect("without a panic");
    assert!(
        here.read_to_end(&mut Vec::new()).await.is_err(),
        "it is no whole answer"
    );
}
