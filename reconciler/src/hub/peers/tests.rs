//! Two hubs on loopback, with real keys and TLS; a cluster whose agent answers what it is asked.

use std::sync::{Arc, RwLock};
use std::time::Duration;

use render::ClusterName;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tunnel::limits::ENDPOINT_BYTES_MAX;
use tunnel::{AcceptOptions, ConnectOptions, Open, OpenCode, SecretKey, TargetClass};

use super::heard::{Heard, Nonsense};
use super::words::Words;
use super::{Dialling, Endpoints, Listening, Peer, follow, listen, name};
use crate::hub::asking::Door;
use crate::hub::dispatch::{Dial, Dispatch};
use crate::hub::engine::Event;
use crate::hub::observe::fixture::{World, cluster};
use crate::wire::{Hop, PeerWord};

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
async fn tunnel_of_oslo() -> Door {
    let (hub, agent) = (key(), key());
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("loopback has a port");
    let url = format!("wss://{}", listener.local_addr().expect("it is bound"));
    let registered = agent.public();
    let lookup = move |name: &str| (name == "oslo").then(|| vec![registered]);
    let accept = AcceptOptions::new(Arc::clone(&hub), Arc::new(lookup)).expect("a key makes a certificate");
    let connect = ConnectOptions::new(url, vec![hub.public()], "oslo", agent, 1);
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
    let door = Door::Agent(accepted.opener.clone());
    tokio::spawn(async move { accepted.session.closed().await });
    door
}

/// A hub that holds oslo's tunnel and lets in whoever has one of these keys.
struct Holder {
    url: String,
    key: Arc<SecretKey>,
    stop: CancellationToken,
}

impl Holder {
    async fn start(peers: Vec<tunnel::PublicKey>) -> Self {
        let (key, stop) = (key(), CancellationToken::new());
        let dispatch = Arc::new(Dispatch::default());
        let oslo = cluster("oslo");
        let dial = Dial { epoch: 1, instance: "" };
        let _begun = dispatch.begin(&oslo, dial, &stop).expect("it is the only one");
        dispatch.open(&oslo, 1, tunnel_of_oslo().await);
        let state = Arc::new(RwLock::new(world().state));
        let endpoints = Endpoints::new(vec!["wss://holder".to_owned()]);
        let listening = Listening::new(Arc::clone(&key), peers, (state, dispatch), &endpoints);
        let listening = listening.expect("a key makes a certificate");
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("loopback has a port");
        let url = format!("wss://{}", listener.local_addr().expect("it is bound"));
        tokio::spawn(listen(listener, listening, stop.clone()));
        Self { url, key, stop }
    }

    fn peer(&self) -> Peer {
        Peer {
            url: self.url.clone(),
            key: self.key.public(),
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
}

impl Drop for Holder {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

#[tokio::test]
async fn a_cluster_that_another_hub_holds_is_heard_of_and_reached_by_one_hop() {
    let own = key();
    let holder = Holder::start(vec![own.public()]).await;
    let dispatch = Arc::new(Dispatch::default());
    let (events, mut heard) = mpsc::channel(16);
    let endpoints = Arc::new(Endpoints::new(vec!["wss://own".to_owned()]));
    let dialling = Dialling {
        key: own,
        server_id: "b".to_owned(),
        dispatch: Arc::clone(&dispatch),
        events,
        endpoints: Arc::clone(&endpoints),
    };
    let stop = CancellationToken::new();
    let following = tokio::spawn(follow(holder.peer(), dialling, stop.clone()));
    let told = timeout(SOON, heard.recv()).await.expect("it tells soon");
    let Some(Event::PeerTold {
        peer,
        clusters,
        reports,
    }) = told
    else {
        unreachable!("{told:?}")
    };
    assert_eq!(peer, holder.url);
    let told = endpoints.all().borrow().clone();
    assert_eq!(told, ["wss://holder", "wss://own"], "agents are told of both");
    assert_eq!(
        clusters.keys().collect::<Vec<_>>(),
        [&cluster("oslo")],
        "bergen is away"
    );
    assert_eq!(reports.len(), 1, "with what it said last");
    assert_eq!(
        (reports[0].cluster.as_str(), reports[0].trouble.as_str()),
        ("oslo", "some")
    );

    let door = dispatch.door(&cluster("oslo")).expect("oslo is elsewhere");
    assert!(matches!(door, Door::Peer(_)));
    assert!(dispatch.own_door(&cluster("oslo")).is_none());
    assert!(dispatch.door(&cluster("bergen")).is_none());
    let (opener, open) = door.tunnel(open("here")).expect("a connection stands");
    let mut stream = opener.request(open).await.expect("the agent takes it");
    stream.write_all(b"hello").await.expect("it is open");
    stream.shutdown().await.expect("it is open");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.expect("it answers");
    assert_eq!(answer, "here was told hello");

    holder.stop.cancel();
    let lost = async { while !matches!(heard.recv().await, Some(Event::PeerLost { .. }) | None) {} };
    timeout(SOON, lost)
        .await
        .expect("it is seen that the other hub is gone");
    assert!(dispatch.door(&cluster("oslo")).is_none(), "and with it the way");
    stop.cancel();
    timeout(SOON, following)
        .await
        .expect("it ends")
        .expect("without a panic");
}

#[tokio::test]
async fn a_second_hop_is_a_loop_and_what_is_no_read_is_not_passed_on() {
    let own = key();
    let holder = Holder::start(vec![own.public()]).await;
    let tunnel = holder.dial(name("b"), own).await.expect("its key is known");
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
        Some(OpenCode::Unreachable),
        "nobody is asked further"
    );
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
    let mut words = Words::default();
    let kinds = |words: &[PeerWord]| -> Vec<&'static str> {
        let kind = |word: &PeerWord| match word {
            PeerWord::Begin { .. } => "begin",
            PeerWord::Cluster { report: Some(_), .. } => "report",
            PeerWord::Cluster { report: None, .. } => "cluster",
            PeerWord::Gone { .. } => "gone",
            PeerWord::End => "end",
        };
        words.iter().map(kind).collect()
    };
    assert_eq!(
        kinds(&words.news(&world.state, &begin(1), true)),
        ["begin", "report", "end"]
    );
    assert!(words.news(&world.state, &begin(1), false).is_empty(), "nothing is new");
    world.report_with("oslo", |report| report.trouble = "other".to_owned());
    assert_eq!(kinds(&words.news(&world.state, &begin(1), false)), ["report"]);
    world.hear(Event::PeerTold {
        peer: "c".to_owned(),
        clusters: [(cluster("bergen"), 0)].into(),
        reports: Vec::new(),
    });
    assert!(
        words.news(&world.state, &begin(1), false).is_empty(),
        "what others told is not told on"
    );
    world.disconnect("oslo");
    assert_eq!(kinds(&words.news(&world.state, &begin(1), false)), ["gone"]);
    assert_eq!(kinds(&words.news(&world.state, &begin(1), true)), ["begin", "end"]);
}

#[test]
fn what_another_hub_tells_counts_once_it_is_whole() {
    let word = |name: &str| PeerWord::Cluster {
        cluster: cluster(name),
        since: 7,
        report: None,
    };
    let mut heard = Heard::since(5);
    assert_eq!(
        heard.take(begin(4)).err(),
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
        let told = heard.take(word).expect("it can be so");
        assert_eq!(told.map(|told| told.clusters.len()), expected);
    }
}

#[test]
fn what_another_hub_calls_itself_is_bounded_and_no_other_address() {
    let urls = ["https://b", "wss://b", "b:7443"].map(str::to_owned);
    let long = format!("wss://{}", "b".repeat(ENDPOINT_BYTES_MAX));
    let many = (0..20).map(|number| format!("wss://b-{number}"));
    let endpoints = urls.into_iter().chain([long]).chain(many).collect();
    let mut heard = Heard::since(0);
    let begun = heard.take(PeerWord::Begin { epoch: 1, endpoints });
    assert!(begun.expect("it can be so").is_none());
    let told = heard.take(PeerWord::End).expect("it can be so").expect("it is whole");
    assert_eq!(told.endpoints, ["wss://b", "wss://b-0", "wss://b-1", "wss://b-2"]);
}

#[test]
fn another_hub_is_named_by_address_and_key() {
    let public = key().public();
    let peer: Peer = format!("wss://hub-b:7444={public}").parse().expect("it is well said");
    assert_eq!((peer.url.as_str(), peer.key), ("wss://hub-b:7444", public));
    for wrong in ["", "wss://hub-b:7444", "https://hub-b=x", "wss://hub-b:7444=x"] {
        assert!(wrong.parse::<Peer>().is_err(), "{wrong}");
    }
}
