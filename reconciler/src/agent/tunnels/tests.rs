//! An agent's lines and hubs that accept what they dial.

use std::time::Duration;

use futures_util::future::BoxFuture;
use kube::{Client, Config};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio::time::{advance, pause, timeout};
use tokio_util::task::AbortOnDropHandle;
use tunnel::{AcceptOptions, GoAway, GoAwayReason, Opener, SecretKey, Session, TargetClass, Tunnel, TunnelStream};

use super::*;
use crate::agent::gate::{Gate, Policy};
use crate::agent::journal::JournalError;
use crate::agent::store::{Kept, Store};
use crate::audit::AuditLog;
use crate::limits::DRAIN_TIMEOUT;

const SOON: Duration = Duration::from_secs(20);

/// A place that keeps nothing.
#[derive(Debug)]
struct Nowhere;

impl Store for Nowhere {
    fn read(&self) -> BoxFuture<'_, Result<Kept, JournalError>> {
        Box::pin(async { Ok(Kept::default()) })
    }

    fn write(&self, _: Kept) -> BoxFuture<'_, Result<(), JournalError>> {
        Box::pin(async { Ok(()) })
    }
}

/// Somebody in the agent's network who says back what it hears.
struct Echo {
    target: String,
    _runs: AbortOnDropHandle<()>,
}

impl Echo {
    async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let target = listener.local_addr().expect("it is bound").to_string();
        let runs = tokio::spawn(async move {
            while let Ok((mut socket, _)) = listener.accept().await {
                tokio::spawn(async move {
                    let (mut read, mut write) = socket.split();
                    let _ended = tokio::io::copy(&mut read, &mut write).await;
                });
            }
        });
        Self {
            target,
            _runs: AbortOnDropHandle::new(runs),
        }
    }
}

/// Whoever accepts an agent's dials.
struct Hub {
    listener: TcpListener,
    options: AcceptOptions,
    url: String,
}

impl Hub {
    async fn start(id: &str, hub_key: &Arc<SecretKey>, agent_key: &SecretKey) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let url = format!("wss://{}", listener.local_addr().expect("it is bound"));
        let registered = agent_key.public();
        let lookup = move |_: &str| Some(vec![registered]);
        let mut options = AcceptOptions::new(Arc::clone(hub_key), Arc::new(lookup)).expect("a certificate");
        id.clone_into(&mut options.server_id);
        Self { listener, options, url }
    }

    /// The next tunnel of the agent.
    async fn accept(&self) -> (Opener, Session) {
        let accepted = async {
            let (socket, _) = self.listener.accept().await.expect("it listens");
            tunnel::accept(socket, &self.options).await.expect("it is the agent")
        };
        let Tunnel {
            opener,
            session,
            mut incoming,
            ..
        } = timeout(SOON, accepted).await.expect("the agent dials");
        // What the agent asks for is taken and not answered.
        tokio::spawn(async move {
            let mut asked = Vec::new();
            while let Some(open) = incoming.next().await {
                asked.push(open.responder.accept());
            }
        });
        (opener, session)
    }

    /// Refuses the next dial of the agent.
    async fn refuse(&self) {
        let refused = async {
            let (socket, _) = self.listener.accept().await.expect("it listens");
            tunnel::accept(socket, &self.options).await.is_err()
        };
        assert!(
            timeout(SOON, refused).await.expect("the agent dials"),
            "its key is unknown"
        );
    }

    /// Whether the agent has dialled again.
    async fn is_dialled(&self) -> bool {
        tokio::select! {
            biased;
            _ = self.listener.accept() => true,
            () = std::future::ready(()) => false,
        }
    }
}

/// An agent that keeps tunnels to hubs, and lends them an echo.
struct Agent {
    hang_up: watch::Sender<u32>,
    counts: Arc<Counts>,
    echo: Echo,
    _applied: watch::Sender<ApplyReport>,
    _runs: AbortOnDropHandle<()>,
}

impl Agent {
    async fn start(hubs: &[&Hub], hub_key: &SecretKey, key: Arc<SecretKey>) -> Self {
        Self::start_with(hubs, hub_key, (key, None)).await
    }

    async fn start_with(
        hubs: &[&Hub],
        hub_key: &SecretKey,
        (key, next): (Arc<SecretKey>, Option<Arc<SecretKey>>),
    ) -> Self {
        let cluster = ClusterName::parse("north").expect("a name");
        let echo = Echo::start().await;
        let keeper = Arc::new(Keeper::new(None));
        let keys = vec![hub_key.public()];
        let holdings = Holdings::new(
            cluster.clone(),
            Kept::default(),
            Arc::new(Nowhere),
            keys,
            keeper.notes(),
        );
        let holdings = Arc::new(holdings);
        let policy = Policy::of(vec![format!("dial:{}", echo.target).parse().expect("a rule")]);
        let client = Client::try_from(Config::new(http::Uri::from_static("http://127.0.0.1:1"))).expect("a client");
        let counts = Arc::<Counts>::default();
        let gate = Gate::new(
            cluster.clone(),
            policy,
            holdings.mode(),
            (client.clone(), client.into()),
            AuditLog::default(),
            Arc::clone(&counts),
        );
        let (applied, report) = watch::channel(ApplyReport::default());
        let (hang_up, hang_ups) = watch::channel(0);
        let dialer = Dialer {
            cluster,
            hubs: hubs.iter().map(|hub| hub.url.clone()).collect(),
            way: Way::default(),
            keys: OwnKeys { present: key, next },
            allowance: Allowance::default(),
            streams: Streams {
                gate: Arc::new(gate),
                holdings: Arc::clone(&holdings),
            },
            holdings,
            applied: report,
            keeper,
            instance: "a".to_owned(),
            token: Token::default(),
            hang_ups,
            counts: Arc::clone(&counts),
        };
        let runs = tokio::spawn(Arc::new(dialer).run(CancellationToken::new()));
        Self {
            hang_up,
            counts,
            echo,
            _applied: applied,
            _runs: AbortOnDropHandle::new(runs),
        }
    }

    async fn stream(&self, opener: &Opener) -> TunnelStream {
        let opened = opener.open(TargetClass::Dial, &self.echo.target, SOON).await;
        opened.expect("the agent lends it")
    }
}

fn keys() -> (Arc<SecretKey>, Arc<SecretKey>) {
    let key = || Arc::new(SecretKey::generate().expect("random bytes"));
    (key(), key())
}

/// Says a word on a stream, and hears it.
async fn say(stream: &mut TunnelStream, word: &str) -> std::io::Result<()> {
    stream.write_all(word.as_bytes()).await?;
    let mut heard = vec![0; word.len()];
    timeout(SOON, stream.read_exact(&mut heard)).await??;
    assert_eq!(heard, word.as_bytes());
    Ok(())
}

#[tokio::test]
async fn sighup_dials_at_once_and_drops_nothing() {
    let (hub_key, key) = keys();
    let hub = Hub::start("a", &hub_key, &key).await;
    let agent = Agent::start(&[&hub], &hub_key, key).await;
    let (first, first_session) = hub.accept().await;
    let mut stream = agent.stream(&first).await;
    say(&mut stream, "before").await.expect("it goes on");
    agent.hang_up.send_modify(|count| *count += 1);
    let (second, _session) = hub.accept().await;
    say(&mut stream, "after")
        .await
        .expect("what is under way is not dropped");
    // As a hub does with a session that a newer one takes the place of.
    first_session.go_away(GoAway::new(GoAwayReason::Replaced, ""));
    say(&mut stream, "still").await.expect("until it ends");
    drop(stream);
    drop(first_session);
    let mut stream = agent.stream(&second).await;
    say(&mut stream, "anew").await.expect("the new tunnel is served");
    assert!(!hub.is_dialled().await, "a tunnel that was left is not dialled for");
    let counted = *agent.counts.told().borrow();
    assert_eq!((counted.left_woken, counted.left_cut), (1, 0), "it is counted once");
}

#[tokio::test]
async fn a_stream_outlives_its_tunnel_that_was_left() {
    let (hub_key, key) = keys();
    let hub = Hub::start("a", &hub_key, &key).await;
    let agent = Agent::start(&[&hub], &hub_key, key).await;
    let (first, first_session) = hub.accept().await;
    let mut stream = agent.stream(&first).await;
    first_session.go_away(GoAway::new(GoAwayReason::Drain, "").with_retry(Duration::ZERO, Duration::from_millis(1)));
    let (second, _session) = hub.accept().await;
    say(&mut stream, "after")
        .await
        .expect("the old tunnel is there until its streams end");
    let mut next = agent.stream(&second).await;
    say(&mut next, "anew").await.expect("beside its successor");
    pause();
    advance(DRAIN_TIMEOUT).await;
    let mut rest = Vec::new();
    let ended = timeout(SOON, stream.read_to_end(&mut rest))
        .await
        .expect("no longer than that");
    assert!(ended.is_err(), "and it is cut off");
    assert!(timeout(SOON, first_session.closed()).await.is_ok(), "with its tunnel");
}

#[tokio::test]
async fn a_hub_that_ends_leaves_the_tunnel_to_the_other_alone() {
    let (hub_key, key) = keys();
    let (one, other) = (
        Hub::start("a", &hub_key, &key).await,
        Hub::start("b", &hub_key, &key).await,
    );
    let agent = Agent::start(&[&one, &other], &hub_key, key).await;
    let ((first, first_session), (second, _session)) = tokio::join!(one.accept(), other.accept());
    let (mut on_first, mut on_second) = (agent.stream(&first).await, agent.stream(&second).await);
    first_session.go_away(GoAway::new(GoAwayReason::Shutdown, "the hub is ending"));
    let (again, _again_session) = one.accept().await;
    say(&mut on_first, "drained").await.expect("what is under way goes on");
    drop(on_first);
    drop(first_session);
    say(&mut on_second, "steady").await.expect("the other hub's goes on");
    assert!(!other.is_dialled().await, "nobody dials a hub that is there");
    let mut anew = agent.stream(&again).await;
    say(&mut anew, "anew").await.expect("and the one that ended is back");
    let counted = *agent.counts.told().borrow();
    assert_eq!((counted.left_asked, counted.left_cut), (1, 0), "it is counted once");
}

#[tokio::test]
async fn an_agent_whose_old_key_is_out_comes_in_with_its_next_one_at_once() {
    let ((hub_key, key), (next, _)) = (keys(), keys());
    let hub = Hub::start("a", &hub_key, &next).await;
    let agent = Agent::start_with(&[&hub], &hub_key, (key, Some(next))).await;
    hub.refuse().await;
    // Whoever has one key alone waits for a minute.
    let (opener, _session) = hub.accept().await;
    let mut stream = agent.stream(&opener).await;
    say(&mut stream, "by the next key").await.expect("it is served");
}
