//! Two hubs on loopback, with real keys and TLS; a cluster whose agent answers what it is asked.

mod ending;

use std::collections::BTreeMap;
use std::sync::{Arc, RwLock};
use std::time::Duration;

use render::ClusterName;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, timeout};
use tokio_util::sync::CancellationToken;
use tunnel::limits::ENDPOINT_BYTES_MAX;
use tunnel::{AcceptOptions, ConnectOptions, Open, OpenCode, Opener, PublicKey, SecretKey, TargetClass};

use super::fixture::fleet;
use super::heard::{Heard, Nonsense};
use super::judge::{Asked, Goal};
use super::words::Words;
use super::{Dialling, Endpoints, FirstWords, Here, Listening, Others, Peer, PeerKeys, follow, listen, name};
use crate::apply::HelmOptions;
use crate::audit::{AuditLog, AuditTo};
use crate::hub::Predictor;
use crate::hub::asking::{Asking, Door};
use crate::hub::connections::Connections;
use crate::hub::deny::Denied;
use crate::hub::dispatch::{Dial, Dispatch};
use crate::hub::engine::Event;
use crate::hub::key_files::Follower;
use crate::hub::keys::KeyList;
use crate::hub::observe::fixture::{World, cluster};
use crate::hub::predictors::Predictors;
use crate::hub::registry::Registry;
use crate::limits::{AUDIT_ROOM_TIMEOUT, TOKENS_MAX};
use crate::wire::{self, Caller, Hop, PeerWord, write_message};

const SOON: Duration = Duration::from_secs(60);

fn key() -> Arc<SecretKey> {
    Arc::new(SecretKey::generate().expect("there is randomness"))
}

fn open(target: &str) -> Open {
    Open::new(TargetClass::ApiServer, target, Duration::from_secs(20))
}

fn begin(epoch: u64) -> PeerWord {
    PeerWord::Begin {
        epoch,
        endpoints: Vec::new(),
    }
}

/// A fleet of oslo and bergen, of which oslo is connected and has reported.
fn world() -> World {
    let mut world = World::new();
    world.push('1', &["oslo", "bergen"], &["oslo"]);
    world.connect("oslo");
    world.report_with("oslo", |report| report.trouble = "some".to_owned());
    world
}

/// The end of oslo's tunnel at its hub; its agent answers each stream with its target and what it is sent.
struct OfOslo {
    door: Door,
    peer: tunnel::PeerInfo,
    session: Arc<tunnel::Session>,
}

async fn tunnel_of_oslo() -> OfOslo {
    let (hub, agent) = (key(), key());
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("loopback has a port");
    let url = format!("wss://{}", listener.local_addr().expect("it is bound"));
    let registered = agent.public();
    let lookup = move |name: &str| (name == "oslo").then(|| vec![registered]);
    let accept = AcceptOptions::new(Arc::clone(&hub), Arc::new(lookup)).expect("a key makes a certificate");
    let mut connect = ConnectOptions::new(url, vec![hub.public()], "oslo", agent, 1);
    connect.instance = "process".to_owned();
    let (accepted, connected) = tokio::join!(
        async {
            let (socket, _) = listener.accept().await.expect("the agent dials");
            tunnel::accept(socket, &accept).await.expect("it is proven")
        },
        tunnel::connect(&connect)
    );
    let mut connected = connected.expect("the hub is known");
    tokio::spawn(async move {
        let _kept = connected.session;
        while let Some(opened) = connected.incoming.next().await {
            let mut stream = opened.responder.accept().expect("the opener waits");
            tokio::spawn(async move {
                let mut said = Vec::new();
                let _read = stream.read_to_end(&mut said).await;
                let answer = [opened.open.target.as_bytes(), b" was told ", &said].concat();
                let _written = stream.write_all(&answer).await;
                let _ended = stream.shutdown().await;
            });
        }
    });
    OfOslo {
        door: Door::Agent(accepted.opener),
        peer: accepted.peer,
        session: Arc::new(accepted.session),
    }
}

/// A connection of one hub to another: what comes in at this one, and the other's end.
async fn tunnel_between_hubs() -> (tunnel::Incoming, Opener, [tunnel::Session; 2]) {
    let (one, other) = (key(), key());
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("loopback has a port");
    let url = format!("wss://{}", listener.local_addr().expect("it is bound"));
    let known = other.public();
    let lookup = move |_: &str| Some(vec![known]);
    let accept = AcceptOptions::new(Arc::clone(&one), Arc::new(lookup)).expect("a key makes a certificate");
    let connect = ConnectOptions::new(url, vec![one.public()], name("b"), other, 1);
    let (accepted, connected) = tokio::join!(
        async {
            let (socket, _) = listener.accept().await.expect("the other hub dials");
            tunnel::accept(socket, &accept).await.expect("it is proven")
        },
        tunnel::connect(&connect)
    );
    let connected = connected.expect("this hub is known");
    (
        accepted.incoming,
        connected.opener,
        [accepted.session, connected.session],
    )
}

/// A hub that accepted a fleet in which oslo has this key, and that carries nothing into containers.
fn here(oslo: &PublicKey, dispatch: Arc<Dispatch>, connections: Arc<Connections>) -> Here {
    let mut state = world().state;
    state.fleet = Some(Arc::new(fleet("Dual", Some(oslo))));
    Here {
        state: Arc::new(RwLock::new(state)),
        dispatch,
        connections,
        registry: Arc::default(),
        interactive: false,
    }
}

/// What a hub knows that was started with these keys of another one.
fn known(keys: Vec<PublicKey>) -> Arc<PeerKeys> {
    let url = "wss://other".to_owned();
    Arc::new(PeerKeys::of(&[Peer { url, keys }]))
}

fn alone(key: &Arc<SecretKey>) -> watch::Receiver<KeyList> {
    watch::channel(KeyList::from([Arc::clone(key)])).1
}

/// A hub that holds oslo's tunnel and lets in whoever has one of these keys.
struct Holder {
    url: String,
    key: Arc<SecretKey>,
    /// Replaces its keys.
    follower: Follower,
    /// Of oslo's agent.
    oslo: PublicKey,
    registry: Arc<Registry>,
    connections: Arc<Connections>,
    folder: tempfile::TempDir,
    stop: CancellationToken,
    listening: tokio::task::JoinHandle<()>,
    _session: Arc<tunnel::Session>,
}

impl Holder {
    async fn start(peers: Vec<PublicKey>) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let audit = AuditLog::open(Some(&AuditTo::File(folder.path().join("audit")))).expect("it is writable");
        Self::telling(peers, audit, folder).await
    }

    async fn telling(peers: Vec<PublicKey>, audit: AuditLog, folder: tempfile::TempDir) -> Self {
        let (key, stop) = (key(), CancellationToken::new());
        let (dispatch, connections) = (Arc::new(Dispatch::default()), Arc::new(Connections::default()));
        let (oslo, of_oslo) = (cluster("oslo"), tunnel_of_oslo().await);
        let dial = Dial { epoch: 1, instance: "" };
        let _begun = dispatch.begin(&oslo, dial, &stop).expect("it is the only one");
        connections.begin(&oslo, of_oslo.peer.clone(), Arc::downgrade(&of_oslo.session));
        dispatch.open(&oslo, 1, of_oslo.door);
        let here = here(&of_oslo.peer.key, dispatch, Arc::clone(&connections));
        let registry = Arc::clone(&here.registry);
        let endpoints = Endpoints::new(vec!["wss://holder".to_owned()]);
        let keys = watch::Sender::new(KeyList::from([Arc::clone(&key)]));
        let listening = Listening::new(
            (Arc::clone(&key), keys.subscribe(), known(peers)),
            here,
            audit,
            &endpoints,
        );
        let listening = listening.expect("a key makes a certificate");
        let follower = Follower {
            files: Vec::new(),
            keys,
            accept: vec![listening.accept()],
            connections: Arc::clone(&connections),
        };
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("loopback has a port");
        let url = format!("wss://{}", listener.local_addr().expect("it is bound"));
        let listening = tokio::spawn(listen(listener, listening, stop.clone()));
        Self {
            url,
            key,
            follower,
            oslo: of_oslo.peer.key,
            registry,
            connections,
            folder,
            stop,
            listening,
            _session: of_oslo.session,
        }
    }

    /// With a hub that it knows, which has dialled it, and whose key is told too.
    async fn dialled() -> (Self, tunnel::Tunnel, Arc<SecretKey>) {
        let own = key();
        let holder = Self::start(vec![own.public()]).await;
        let tunnel = holder.dial(name("b"), Arc::clone(&own)).await;
        (holder, tunnel.expect("its key is known"), own)
    }

    fn peer(&self) -> Peer {
        Peer {
            url: self.url.clone(),
            keys: vec![self.key.public()],
        }
    }

    async fn dial(&self, as_name: String, with: Arc<SecretKey>) -> Result<tunnel::Tunnel, tunnel::ConnectError> {
        tunnel::connect(&ConnectOptions::new(
            self.url.clone(),
            vec![self.key.public()],
            as_name,
            with,
            1,
        ))
        .await
    }

    /// Its audit log, once it has so many lines.
    async fn lines(&self, count: usize) -> Vec<serde_json::Value> {
        let read = || std::fs::read_to_string(self.folder.path().join("audit")).unwrap_or_default();
        let complete = async {
            loop {
                let text = read();
                if text.matches('\n').count() >= count {
                    return text;
                }
                tokio::task::yield_now().await;
            }
        };
        let text = timeout(SOON, complete).await.expect("the lines are written");
        text.lines()
            .map(|line| serde_json::from_str(line).expect("it is JSON"))
            .collect()
    }
}

impl Drop for Holder {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

/// A hub that hears of another one.
struct Hearer {
    dispatch: Arc<Dispatch>,
    others: Others,
    registry: Arc<Registry>,
    endpoints: Arc<Endpoints>,
    peer_keys: Arc<PeerKeys>,
    first_words: Arc<FirstWords>,
    heard: mpsc::Receiver<Event>,
    stop: CancellationToken,
    following: tokio::task::JoinHandle<()>,
}

impl Hearer {
    /// Whose fleet has this key of oslo.
    fn start(holder: &Holder, own: Arc<SecretKey>, oslo: &PublicKey) -> Self {
        let registry = Registry::default();
        registry.replace(&fleet("Dual", Some(oslo)), &BTreeMap::new());
        Self::by(holder, own, Arc::new(registry))
    }

    /// By what is known here.
    fn by(holder: &Holder, own: Arc<SecretKey>, registry: Arc<Registry>) -> Self {
        let (events, heard) = mpsc::channel(16);
        let dialling = Dialling {
            keys: alone(&own),
            peer_keys: Arc::new(PeerKeys::of(&[holder.peer()])),
            server_id: "b".to_owned(),
            dispatch: Arc::default(),
            connections: Arc::default(),
            registry,
            events,
            endpoints: Arc::new(Endpoints::new(vec!["wss://own".to_owned()])),
            first_words: Arc::new(FirstWords::of([holder.url.clone()])),
            others: Others::default(),
        };
        let stop = CancellationToken::new();
        Self {
            dispatch: Arc::clone(&dialling.dispatch),
            others: dialling.others.clone(),
            registry: Arc::clone(&dialling.registry),
            endpoints: Arc::clone(&dialling.endpoints),
            peer_keys: Arc::clone(&dialling.peer_keys),
            first_words: Arc::clone(&dialling.first_words),
            heard,
            following: tokio::spawn(follow(holder.peer(), dialling, stop.clone())),
            stop,
        }
    }

    /// What the other hub tells next: clusters, and whose reports.
    async fn told(&mut self) -> (Vec<String>, Vec<String>) {
        match timeout(SOON, self.heard.recv()).await.expect("it tells soon") {
            Some(Event::PeerTold { clusters, reports, .. }) => (
                clusters.keys().map(ToString::to_string).collect(),
                reports.iter().map(|report| report.cluster.to_string()).collect(),
            ),
            other => unreachable!("{other:?}"),
        }
    }

    /// It ends, and in good order.
    async fn ended(self) {
        self.stop.cancel();
        let following = timeout(SOON, self.following).await.expect("it ends");
        following.expect("without a panic");
    }

    async fn lost(&mut self) {
        let lost = async { while !matches!(self.heard.recv().await, Some(Event::PeerLost { .. }) | None) {} };
        timeout(SOON, lost)
            .await
            .expect("it is seen that the other hub is gone");
    }
}

/// Asks as a person who looks at a cluster does.
fn asking(hearer: &Hearer) -> Asking {
    Asking::new(
        Arc::clone(&hearer.dispatch),
        Arc::new(Predictor::new(HelmOptions::default())),
        Arc::new(Predictors::new()),
        (Arc::default(), hearer.others.clone()),
    )
}

fn caller(user: &str) -> Caller {
    Caller {
        user: user.to_owned(),
        groups: vec!["ops".to_owned()],
        request_id: "a-1".to_owned(),
    }
}

/// Asks as a door does, and reads to the end.
async fn ask(opener: &Opener, open: Open, user: &str, line: &str) -> Result<String, Option<OpenCode>> {
    let (mut stream, _grant) = opener.begin(&open).map_err(|error| Some(error.code))?;
    let mut answer = String::new();
    let asked = async {
        write_message(&mut stream, &caller(user)).await.ok();
        stream.write_all(line.as_bytes()).await?;
        stream.shutdown().await?;
        stream.read_to_string(&mut answer).await
    };
    let asked = timeout(SOON, asked).await.expect("it ends");
    let code = |error: std::io::Error| {
        let inner = error.get_ref()?.downcast_ref::<tunnel::StreamError>()?;
        Some(inner.code)
    };
    asked.map_err(code)?;
    Ok(answer)
}

const PODS: &str = "GET /api/v1/namespaces/a/pods HTTP/1.1\r\nhost: oslo\r\n\r\n";

#[tokio::test]
async fn a_cluster_that_another_hub_holds_is_heard_of_and_reached_by_one_hop() {
    let own = key();
    let holder = Holder::start(vec![own.public()]).await;
    let mut hearer = Hearer::start(&holder, own, &holder.oslo);
    let oslo = vec!["oslo".to_owned()];
    assert_eq!(
        hearer.told().await,
        (oslo.clone(), oslo),
        "bergen is away; what oslo said last is told"
    );
    assert!(hearer.first_words.are_over(), "it has told");
    let told = hearer.endpoints.all().borrow().clone();
    assert_eq!(told, ["wss://holder", "wss://own"], "agents are told of both");

    let door = hearer.dispatch.door(&cluster("oslo")).expect("oslo is elsewhere");
    assert!(matches!(door, Door::Peer(_)));
    assert!(hearer.dispatch.own_door(&cluster("oslo")).is_none());
    assert!(hearer.dispatch.door(&cluster("bergen")).is_none());
    let (opener, open) = door.tunnel(open("")).expect("a connection stands");
    let answer = ask(&opener, open, "ada", PODS).await.expect("ada may read it");
    assert!(answer.starts_with(" was told "), "{answer}");
    assert!(
        answer.contains("\"user\":\"ada\"") && answer.ends_with(PODS),
        "{answer}"
    );

    let asking = asking(&hearer);
    let said = async |name: &str| {
        let said = asking.elsewhere(&cluster(name)).await;
        serde_json::to_value(said).expect("it is written")
    };
    let of_oslo = said("oslo").await;
    assert_eq!(of_oslo[0]["peer"], holder.url.as_str());
    assert_eq!(of_oslo[0]["hub"], env!("CARGO_PKG_VERSION"));
    assert_eq!(
        of_oslo[0]["seen"]["tunnel"]["key"],
        holder.oslo.to_string(),
        "{of_oslo:#}"
    );
    let refused = "its key is another one".to_owned();
    let from = "192.0.2.1:4".parse().expect("an address");
    holder.connections.refused(&cluster("bergen"), refused.clone(), from);
    let of_bergen = said("bergen").await;
    assert_eq!(of_bergen[0]["seen"]["tunnel"], serde_json::Value::Null);
    assert_eq!(
        of_bergen[0]["seen"]["lastRefusal"]["why"],
        refused.as_str(),
        "{of_bergen:#}"
    );

    holder.stop.cancel();
    hearer.lost().await;
    assert!(hearer.dispatch.door(&cluster("oslo")).is_none(), "and with it the way");
    let silent = said("oslo").await;
    assert!(silent[0]["error"].is_string(), "{silent:#}");
    hearer.ended().await;
}

#[tokio::test]
async fn a_hub_whose_key_is_replaced_is_followed_and_no_hop_is_dropped() {
    let own = key();
    let holder = Holder::start(vec![own.public()]).await;
    let mut hearer = Hearer::start(&holder, Arc::clone(&own), &holder.oslo);
    hearer.told().await;
    let (opener, target) = hearer
        .dispatch
        .door(&cluster("oslo"))
        .expect("oslo is elsewhere")
        .tunnel(open(""))
        .expect("a connection stands");
    let next = key();
    let (old_key, next_key) = (holder.key.public(), next.public());
    let follows = async |keys: &[PublicKey]| {
        let followed = async {
            while hearer.peer_keys.keys(&holder.url) != keys {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        timeout(SOON, followed).await.expect("it follows");
    };
    // As the files change: told beside the old one, then shown, and then alone.
    let takes = |keys| {
        holder
            .follower
            .take(keys)
            .expect("they may take the place of those before")
    };
    takes(vec![Arc::clone(&holder.key), Arc::clone(&next)]);
    follows(&[old_key, next_key]).await;
    takes(vec![Arc::clone(&next), Arc::clone(&holder.key)]);
    let pins = hearer.peer_keys.keys(&holder.url);
    let dial = ConnectOptions::new(holder.url.clone(), pins, name("c"), Arc::clone(&own), 1);
    let again = tunnel::connect(&dial).await.expect("its new key is known by now");
    assert_eq!(again.peer.key, next_key);
    takes(vec![next]);
    let answer = ask(&opener, target, "ada", PODS)
        .await
        .expect("the connection of before stands");
    assert!(answer.ends_with(PODS), "{answer}");
    hearer.stop.cancel();
}

#[tokio::test]
async fn the_owner_of_a_hop_refuses_what_its_own_revision_or_flag_does_not_allow_and_writes_it_down() {
    let (holder, tunnel, own) = Holder::dialled().await;
    let to = |class: TargetClass, target: &str| Open {
        class,
        request_id: "a-1".to_owned(),
        ..open(&Hop::first(cluster("oslo"), target).to_target())
    };
    let not_allowed = Err(Some(OpenCode::NotAllowed));
    let asked = async |class, target: &str, user: &str, line: &str| {
        let answered = ask(&tunnel.opener, to(class, target), user, line).await;
        answered.map(|_| ())
    };
    let exec = "GET /api/v1/namespaces/a/pods/b/exec?command=sh HTTP/1.1\r\n\r\n";
    let secrets = "GET /api/v1/secrets HTTP/1.1\r\n\r\n";
    assert_eq!(asked(TargetClass::ApiServer, "", "ada", PODS).await, Ok(()));
    assert_eq!(asked(TargetClass::ApiServer, "", "bob", PODS).await, not_allowed);
    assert_eq!(asked(TargetClass::ApiServer, "", "ada", secrets).await, not_allowed);
    assert_eq!(asked(TargetClass::Interactive, "", "ada", exec).await, not_allowed);
    assert_eq!(asked(TargetClass::Dial, "10.0.0.1:80", "ada", "raw").await, Ok(()));
    assert_eq!(asked(TargetClass::Dial, "10.0.0.2:80", "ada", "raw").await, not_allowed);
    let lines = holder.lines(6).await;
    let told: Vec<_> = lines
        .iter()
        .map(|line| {
            [&line["class"], &line["user"], &line["resource"], &line["close"]].map(|it| it.as_str().unwrap_or(""))
        })
        .collect();
    assert_eq!(
        told,
        [
            ["apiserver", "ada", "pods", "done"],
            ["apiserver", "bob", "pods", "not-allowed"],
            ["apiserver", "ada", "secrets", "not-allowed"],
            ["interactive", "ada", "pods/exec", "not-allowed"],
            ["dial", "ada", "/dial/10.0.0.1:80", "done"],
            ["dial", "ada", "/dial/10.0.0.2:80", "not-allowed"],
        ]
    );
    for line in &lines {
        assert_eq!((&line["requestId"], &line["cluster"]), (&"a-1".into(), &"oslo".into()));
        assert_eq!(line["peer"], own.public().to_string());
        assert!(!line.to_string().contains("command"), "a query is in no log");
    }
}

#[tokio::test(start_paused = true)]
async fn a_right_that_the_owners_newer_revision_takes_away_ends_what_goes_by_a_hop() {
    let here = here(&key().public(), Arc::default(), Arc::default());
    let state = Arc::clone(&here.state);
    let listening = Listening::new(
        (key(), alone(&key()), Arc::default()),
        here,
        AuditLog::default(),
        &Endpoints::default(),
    );
    let listening = listening.expect("a key makes a certificate");
    let asked = Asked {
        cluster: cluster("oslo"),
        goal: Goal::Read,
        person: render::access::Person {
            user: "ada".to_owned(),
            groups: Vec::new(),
        },
        attributes: render::access::attributes("GET", "/api/v1/pods", Some("watch=1")).expect("a clear path"),
    };
    let mut over = std::pin::pin!(listening.judged_again(&asked));
    let minute = Duration::from_secs(60);
    assert!(timeout(minute, over.as_mut()).await.is_err(), "ada may watch it");
    {
        let mut state = state.write().expect("nobody panicked");
        let mut fleet = state.fleet.as_deref().cloned().expect("it is there");
        fleet.access = Arc::default();
        state.fleet = Some(Arc::new(fleet));
    }
    let why = timeout(Duration::from_secs(6), over).await.expect("within seconds");
    assert!(why.contains("may ask no cluster"), "{why}");
}

#[tokio::test]
async fn what_is_denied_here_does_not_come_back_by_another_hub() {
    let own = key();
    let holder = Holder::start(vec![own.public()]).await;
    let oslo = vec!["oslo".to_owned()];
    let stolen = holder.oslo;
    let mut hearer = Hearer::start(&holder, own, &stolen);
    assert_eq!(hearer.told().await, (oslo.clone(), oslo.clone()));
    hearer
        .registry
        .deny(Denied::parse(&stolen.to_string()).expect("a list"));
    assert_eq!(
        hearer.told().await,
        (Vec::new(), Vec::new()),
        "it is as if it were away"
    );
    assert!(hearer.dispatch.door(&cluster("oslo")).is_none());
    hearer.registry.deny(Denied::default());
    assert_eq!(hearer.told().await.0, oslo, "struck off, it is there again");
    assert!(hearer.dispatch.door(&cluster("oslo")).is_some());
    // A newer revision here has another key of oslo.
    let other = key().public();
    hearer.registry.replace(&fleet("Dual", Some(&other)), &BTreeMap::new());
    assert_eq!(hearer.told().await.0, Vec::<String>::new());
    assert!(hearer.dispatch.door(&cluster("oslo")).is_none());
}

#[tokio::test]
async fn a_hub_whose_key_is_denied_is_let_in_no_more_and_loses_what_stands() {
    let (holder, stands, own) = Holder::dialled().await;
    let list = Denied::parse(&own.public().to_string()).expect("a list");
    holder.registry.deny(list);
    timeout(SOON, stands.session.closed()).await.expect("it is over");
    assert!(holder.dial(name("b"), own).await.is_err());
    // Nor is it dialled, or waited for.
    let list = Denied::parse(&holder.key.public().to_string()).expect("a list");
    holder.registry.deny(list);
    let mut hearer = Hearer::by(&holder, key(), Arc::clone(&holder.registry));
    let over = hearer.first_words.over();
    timeout(SOON, over).await.expect("it is over at once");
    assert!(hearer.heard.try_recv().is_err(), "it told nothing");
    hearer.ended().await;
}

#[tokio::test]
async fn a_hub_whose_key_is_denied_loses_its_connection_although_the_disk_hangs() {
    let own = key();
    let (audit, _waiting) = AuditLog::read(1);
    audit.write(&"one").await;
    let holder = Holder::telling(vec![own.public()], audit, tempfile::tempdir().expect("a folder")).await;
    let stands = holder
        .dial(name("b"), Arc::clone(&own))
        .await
        .expect("its key is known");
    let to_oslo = open(&Hop::first(cluster("oslo"), "").to_target());
    let _under_way = stands.opener.request(to_oslo).await.expect("it is taken");
    let begun = Instant::now();
    holder
        .registry
        .deny(Denied::parse(&own.public().to_string()).expect("a list"));
    timeout(SOON, stands.session.closed()).await.expect("it is over");
    assert!(begun.elapsed() < AUDIT_ROOM_TIMEOUT, "{:?}", begun.elapsed());
}

#[tokio::test]
async fn hops_that_a_full_disk_refuses_wait_for_nothing_and_leave_room_for_what_was_served() {
    let own = key();
    let (audit, mut waiting) = AuditLog::failing(4);
    let lost = audit.lost();
    let holder = Holder::telling(vec![own.public()], audit, tempfile::tempdir().expect("a folder")).await;
    let tunnel = holder.dial(name("b"), own).await.expect("its key is known");
    for _ in 0..20 {
        let to_oslo = open(&Hop::first(cluster("oslo"), "").to_target());
        let refused = tunnel.opener.request(to_oslo).await.map(drop);
        assert_eq!(refused.map_err(|error| error.code), Err(OpenCode::Refused));
    }
    let counted = async {
        while lost.count() < 18 {
            tokio::task::yield_now().await;
        }
    };
    timeout(SOON, counted).await.expect("none of them waits");
    let mut lines = 0;
    while waiting.try_recv().is_ok() {
        lines += 1;
    }
    assert_eq!(lines, 2, "half of the room");
}

#[tokio::test]
async fn a_hop_that_its_caller_gave_up_leaves_its_line() {
    let (audit, mut waiting) = AuditLog::read(4);
    let (oslo, of_oslo) = (cluster("oslo"), tunnel_of_oslo().await);
    let (dispatch, stop) = (Arc::new(Dispatch::default()), CancellationToken::new());
    let dial = Dial { epoch: 1, instance: "" };
    let _begun = dispatch.begin(&oslo, dial, &stop).expect("it is the only one");
    dispatch.open(&oslo, 1, of_oslo.door);
    let here = here(&of_oslo.peer.key, dispatch, Arc::default());
    let keys = (key(), alone(&key()), Arc::default());
    let listening = Listening::new(keys, here, audit, &Endpoints::default()).expect("a key makes a certificate");
    let (mut incoming, opener, _sessions) = tunnel_between_hubs().await;
    let to_oslo = open(&Hop::first(oslo, "").to_target());
    let given_up = opener.begin(&to_oslo).expect("it is asked");
    let asked = timeout(SOON, incoming.next()).await.expect("soon").expect("it comes");
    drop(given_up);
    let _next = opener.begin(&to_oslo).expect("it is asked");
    let _behind = timeout(SOON, incoming.next()).await.expect("soon").expect("it comes");
    let from = key().public();
    listening
        .pass(&from, (asked.open, Goal::Read), asked.responder, &stop)
        .await;
    let line = waiting.try_recv().expect("it has its line");
    assert!(line.contains(r#""close":"cancelled""#), "{line}");
}

#[tokio::test]
async fn a_second_hop_is_a_loop_and_what_is_no_read_is_not_passed_on() {
    let (_holder, tunnel, _) = Holder::dialled().await;
    let refused = async |open: Open| match tunnel.opener.request(open).await {
        Ok(_) => None,
        Err(error) => Some(error.code),
    };
    let first = Hop::first(cluster("oslo"), "").to_target();
    assert_eq!(refused(open(&first)).await, None, "one hop is meant");
    assert_eq!(refused(open("2/oslo/")).await, Some(OpenCode::NotAllowed));
    assert_eq!(refused(open("oslo")).await, Some(OpenCode::NotAllowed));
    assert_eq!(
        refused(open("1/bergen/")).await,
        Some(OpenCode::Gone),
        "nobody is asked further"
    );
    let look = Open {
        class: TargetClass::Look,
        ..open(&first)
    };
    assert_eq!(refused(look).await, None, "the hub's own questions go on");
    for class in [
        TargetClass::Deliver,
        TargetClass::Push,
        TargetClass::Report,
        TargetClass::Keys,
    ] {
        let other = Open { class, ..open(&first) };
        assert_eq!(refused(other).await, Some(OpenCode::NotAllowed));
    }
}

#[tokio::test]
async fn a_hop_whose_target_cannot_be_read_leaves_its_line() {
    let (holder, tunnel, own) = Holder::dialled().await;
    for target in ["oslo", "2/oslo/", "1/No Name/"] {
        let refused = tunnel.opener.request(open(target)).await;
        assert_eq!(
            refused.err().map(|error| error.code),
            Some(OpenCode::NotAllowed),
            "{target}"
        );
    }
    let lines = holder.lines(3).await;
    let said: Vec<_> = lines
        .iter()
        .map(|line| [&line["target"], &line["peer"], &line["class"], &line["close"]])
        .collect();
    let (peer, class, close) = (
        own.public().to_string(),
        TargetClass::ApiServer.as_str(),
        OpenCode::NotAllowed.as_str(),
    );
    for (said, target) in said.iter().zip(["oslo", "2/oslo/", "1/No Name/"]) {
        assert_eq!(*said, [target, &peer, class, close]);
    }
    assert_eq!(lines.len(), 3);
}

#[tokio::test]
async fn only_hubs_that_are_named_are_let_in_and_no_cluster_passes_for_one() {
    let own = key();
    let holder = Holder::start(vec![own.public()]).await;
    assert!(holder.dial(name("b"), key()).await.is_err(), "another key");
    assert!(
        holder.dial("oslo".to_owned(), Arc::clone(&own)).await.is_err(),
        "a cluster's name"
    );
    assert!(
        ClusterName::parse(name("b")).is_err(),
        "no cluster can have a hub's name"
    );
    assert!(holder.dial(name("b"), own).await.is_ok());
}

#[test]
fn another_hub_is_told_what_is_new_and_now_and_then_everything() {
    let mut world = world();
    let mut words = Words::new(true);
    let kinds = |words: &[PeerWord]| -> Vec<&'static str> {
        let kind = |word: &PeerWord| match word {
            PeerWord::Begin { .. } => "begin",
            PeerWord::Cluster { report: Some(_), .. } => "report",
            PeerWord::Cluster { report: None, .. } => "cluster",
            PeerWord::Gone { .. } => "gone",
            PeerWord::Joining { .. } => "joining",
            PeerWord::Wish { .. } => "wish",
            PeerWord::End => "end",
        };
        words.iter().map(kind).collect()
    };
    assert_eq!(
        kinds(&words.news(&world.state, &|_| None, &begin(1), true)),
        ["begin", "report", "end"]
    );
    assert!(
        words.news(&world.state, &|_| None, &begin(1), false).is_empty(),
        "nothing is new"
    );
    world.report_with("oslo", |report| report.trouble = "other".to_owned());
    assert_eq!(
        kinds(&words.news(&world.state, &|_| None, &begin(1), false)),
        ["report"]
    );
    world.hear(Event::PeerTold {
        peer: "c".to_owned(),
        clusters: [(cluster("bergen"), 0)].into(),
        reports: Vec::new(),
        joining: None,
        wishes: Vec::new(),
    });
    assert!(
        words.news(&world.state, &|_| None, &begin(1), false).is_empty(),
        "what others told is not told on"
    );
    world.disconnect("oslo");
    assert_eq!(kinds(&words.news(&world.state, &|_| None, &begin(1), false)), ["gone"]);
    assert_eq!(
        kinds(&words.news(&world.state, &|_| None, &begin(1), true)),
        ["begin", "end"]
    );
    // What is asked for is told once the tokens were read, and an older hub is not told.
    let joining = BTreeMap::from([(cluster("rome"), key().public())]);
    world.state.joins.wanted = Some(joining);
    let mut older = Words::new(false);
    let whole = older.news(&world.state, &|_| None, &begin(1), true);
    assert_eq!(kinds(&whole), ["begin", "end"]);
    for expected in [vec!["joining"], vec![]] {
        assert_eq!(kinds(&words.news(&world.state, &|_| None, &begin(1), false)), expected);
    }
    let whole = words.news(&world.state, &|_| None, &begin(1), true);
    assert_eq!(kinds(&whole), ["begin", "joining", "end"]);
}

fn said(name: &str, key: &str, report: Option<wire::Report>) -> PeerWord {
    PeerWord::Cluster {
        cluster: cluster(name),
        since: 7,
        key: key.to_owned(),
        instance: String::new(),
        report: report.map(Box::new),
    }
}

#[test]
fn another_hub_speaks_for_those_alone_who_count_here_and_for_each_once() {
    let mut world = world();
    world.report_with("bergen", |report| report.trouble = "some".to_owned());
    let report = |name: &str| {
        let known = &world.state.clusters[&cluster(name)];
        known.last_report().expect("it reported")
    };
    let mine = key().public();
    let counts = |name: &ClusterName, key: Option<&PublicKey>| name.as_str() == "oslo" && key == Some(&mine);
    let mut heard = Heard::since(0);
    let other = key().public().to_string();
    heard.take(begin(1), counts).expect("it can be so");
    for _again in 0..100 {
        for (name, key) in [("oslo", &mine.to_string()), ("oslo", &other), ("bergen", &other)] {
            heard
                .take(said(name, key, Some(report(name))), counts)
                .expect("it can be so");
        }
    }
    let told = heard
        .take(PeerWord::End, counts)
        .expect("it can be so")
        .expect("it is whole");
    assert_eq!(told.reports.len(), 1, "a repetition takes the place of what was there");
    let broken = heard.take(said("oslo", "no key", None), counts);
    assert_eq!(broken.err(), Some(Nonsense::Key));
    let anothers = heard.take(said("oslo", "", Some(report("bergen"))), counts);
    assert_eq!(anothers.err(), Some(Nonsense::AnotherName));
}

#[test]
fn what_another_hub_tells_counts_once_it_is_whole() {
    let word = |name: &str| said(name, "", None);
    let mut heard = Heard::since(5);
    assert_eq!(
        heard.take(begin(4), |_, _| true).err(),
        Some(Nonsense::Older(5, 4)),
        "of an older process"
    );
    for (word, expected) in [
        (begin(6), None),
        (word("oslo"), None),
        (word("bergen"), None),
        (PeerWord::End, Some(2)),
        (
            PeerWord::Gone {
                cluster: cluster("oslo"),
            },
            Some(1),
        ),
        (word("oslo"), Some(2)),
        (begin(6), None),
        (word("oslo"), None),
        (PeerWord::End, Some(1)),
    ] {
        let told = heard.take(word, |_, _| true).expect("it can be so");
        assert_eq!(told.map(|told| told.clusters.len()), expected);
    }
}

#[test]
fn who_asks_another_hub_for_registration_is_bounded_and_each_has_a_key() {
    let joining = |clusters: BTreeMap<ClusterName, String>| PeerWord::Joining { clusters };
    let mut heard = Heard::since(0);
    let asked = BTreeMap::from([(cluster("rome"), key().public())]);
    let told = heard.take(PeerWord::joining(&asked), |_, _| true);
    let told = told.expect("it can be so").expect("it is whole");
    assert_eq!(told.joining, Some(asked));
    let broken = BTreeMap::from([(cluster("rome"), "no key".to_owned())]);
    assert_eq!(heard.take(joining(broken), |_, _| true).err(), Some(Nonsense::Key));
    let text = key().public().to_string();
    let many = (0..=TOKENS_MAX).map(|number| (cluster(&format!("c{number}")), text.clone()));
    let many = heard.take(joining(many.collect()), |_, _| true);
    assert_eq!(many.err(), Some(Nonsense::TooManyJoin));
}

#[test]
fn what_another_hub_calls_itself_is_bounded_and_no_other_address() {
    let urls = ["https://b", "wss://b", "b:7443"].map(str::to_owned);
    let long = format!("wss://{}", "b".repeat(ENDPOINT_BYTES_MAX));
    let many = (0..20).map(|number| format!("wss://b-{number}"));
    let endpoints = urls.into_iter().chain([long]).chain(many).collect();
    let mut heard = Heard::since(0);
    let begun = heard.take(PeerWord::Begin { epoch: 1, endpoints }, |_, _| true);
    assert!(begun.expect("it can be so").is_none());
    let told = heard
        .take(PeerWord::End, |_, _| true)
        .expect("it can be so")
        .expect("it is whole");
    assert_eq!(told.endpoints, ["wss://b", "wss://b-0", "wss://b-1", "wss://b-2"]);
}

#[test]
fn another_hub_is_named_by_address_and_key() {
    let public = key().public();
    let peer: Peer = format!("wss://hub-b:7444={public}").parse().expect("it is well said");
    assert_eq!((peer.url.as_str(), &peer.keys), ("wss://hub-b:7444", &vec![public]));
    let words = |text: &str| -> Vec<crate::hub::PeerPart> {
        text.split(',').map(|word| word.parse().expect("well said")).collect()
    };
    let next = key().public();
    let peers = Peer::of(words(&format!("wss://b:1={public},{next},wss://c:1={next}"))).expect("two hubs");
    assert_eq!(
        peers.iter().map(|peer| peer.keys.clone()).collect::<Vec<_>>(),
        [vec![public, next], vec![next]]
    );
    assert_eq!(Peer::of(words(&next.to_string())), None, "whose key is it");
    for wrong in ["", "wss://hub-b:7444", "https://hub-b=x", "wss://hub-b:7444=x"] {
        assert!(wrong.parse::<Peer>().is_err(), "{wrong}");
    }
}
