//! Agents that are registered and mean ill: what a cluster's own tunnel lets it do, and what not.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use render::model::SyncMode;
use render::published::Departure;
use render::{ClusterName, Digest, Revision};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio::sync::{mpsc, watch};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tunnel::{AcceptOptions, ConnectOptions, OpenCode, SecretKey, TargetClass, Tunnel};

use super::asking::Door;
use super::clusters::Appliers;
use super::connections::Connections;
use super::deny::Denied;
use super::dispatch::{Absent, Dispatch};
use super::engine::Event;
use super::keeper::Keeper;
use super::keys::KeyList;
use super::mode_order::{ModeOrder, Order};
use super::observe::fixture::{World, cluster, revision};
use super::publish::{Author, StateRefs, StateRepository};
use super::push::Pushing;
use super::registry::Registry;
use super::repository::fixture::Fixture;
use super::session::Sessions;
use super::source::Source;
use crate::key_sets::{KeyAnswer, KeyQuestion, KeysKept};
use crate::limits::PUSH_END_TIMEOUT;
use crate::wire::{
    ContentRequest, Deliver, DeliverReply, Envelope, EnvelopeUnit, Report, list_digest, read_message, write_message,
};

const SOON: Duration = Duration::from_secs(60);

/// A hub that knows oslo and bergen, and oslo's agent, which is connected.
struct Meeting {
    events: mpsc::Receiver<Event>,
    dispatch: Arc<Dispatch>,
    connections: Arc<Connections>,
    registry: Arc<Registry>,
    connect: ConnectOptions,
    oslo: Tunnel,
    stop: CancellationToken,
    _repository: Fixture,
}

pub(super) fn key() -> Arc<SecretKey> {
    Arc::new(SecretKey::generate().expect("there is randomness"))
}

fn keeper(repository: &Fixture) -> Keeper {
    repository.write("a.yaml", "a: 1\n");
    repository.commit("one");
    let source = Source::open(repository.file("."), "main").expect("it opens");
    let opened = StateRepository::open(repository.file("."), StateRefs::default(), Author::default(), &source);
    Keeper::new(opened.expect("it opens"))
}

/// Who is known, by their keys: clusters of which the hub remembers no more than that.
pub(super) fn registry(keys: &[(&str, &SecretKey)]) -> Registry {
    let known = |(name, key): &(&str, &SecretKey)| {
        let departure = Departure {
            public_keys: vec![key.public().to_string()],
            kubeconfig_context: None,
            deletion_policy: render::model::DeletionPolicy::Orphan,
            source: revision('1'),
            since: 0,
            units: Vec::new(),
        };
        (cluster(name), departure)
    };
    let mut world = World::new();
    world.push('1', &[], &[]);
    let registry = Registry::default();
    let fleet = world.state.fleet.as_deref().expect("it was planned");
    registry.replace(fleet, &keys.iter().map(known).collect::<BTreeMap<_, _>>());
    registry
}

/// What sessions of a hub need that tells nobody anything.
pub(super) fn sessions(
    events: mpsc::Sender<Event>,
    repository: &Fixture,
    hub: &Arc<SecretKey>,
    registry: Arc<Registry>,
) -> Sessions {
    Sessions {
        events,
        dispatch: Arc::new(Dispatch::new(Arc::clone(&registry))),
        keeper: Arc::new(keeper(repository)),
        keys: watch::Sender::new(KeyList::from([Arc::clone(hub)])).subscribe(),
        registry,
        arrivals: Arc::default(),
        connections: Arc::default(),
        modes: Arc::new(ModeOrder::by(|_| Ok(Order::NotAfter))),
        pushing: Arc::new(Pushing::new(Appliers {
            helm: "helm".into(),
            earlier_managers: Vec::new(),
        })),
    }
}

impl Meeting {
    async fn new() -> Self {
        let (hub, oslo, bergen) = (key(), key(), key());
        let registry = Arc::new(registry(&[("oslo", &oslo), ("bergen", &bergen)]));
        let (sender, events) = mpsc::channel(16);
        let repository = Fixture::new();
        let sessions = sessions(sender, &repository, &hub, Arc::clone(&registry));
        let (dispatch, stop) = (Arc::clone(&sessions.dispatch), CancellationToken::new());
        let connections = Arc::clone(&sessions.connections);
        let known = Arc::clone(&registry) as _;
        let accept = AcceptOptions::new(Arc::clone(&hub), known).expect("a key makes a certificate");
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("loopback has a port");
        let url = format!("wss://{}", listener.local_addr().expect("it is bound"));
        let connect = ConnectOptions::new(url, vec![hub.public()], "oslo", oslo, 1);
        let ended = stop.clone();
        tokio::spawn(async move {
            loop {
                let (socket, _) = listener.accept().await.expect("the agent dials");
                let tunnel = tunnel::accept(socket, &accept).await.expect("it is proven");
                let name = ClusterName::parse(tunnel.peer.cluster.clone()).expect("a valid cluster");
                let (sessions, ended) = (sessions.clone(), ended.clone());
                tokio::spawn(async move { Box::pin(sessions.serve(name, (tunnel, None), &ended)).await });
            }
        });
        Self {
            events,
            dispatch,
            connections,
            registry,
            oslo: tunnel::connect(&connect).await.expect("it is known"),
            connect,
            stop,
            _repository: repository,
        }
    }

    /// Shuts oslo out.
    fn deny(&self) {
        self.registry.deny(Denied::parse("oslo").expect("a list"));
    }
}

/// What oslo should be told, with this unit's content.
fn envelope(digest: Digest, mode: SyncMode) -> Envelope {
    let unit = EnvelopeUnit {
        digest,
        revision: revision('1'),
        replicas: Default::default(),
        drift: Default::default(),
        gates: Vec::new(),
    };
    let units = BTreeMap::from([("shop/web".parse().expect("a valid unit"), unit)]);
    Envelope {
        version: Envelope::VERSION,
        cluster: cluster("oslo"),
        lineage: revision('2'),
        sequence: 1,
        released: Revision::parse("3".repeat(40)).expect("forty digits"),
        list: list_digest(&units, false),
        units,
        orphan: false,
        orphaned: Default::default(),
        mode,
        mode_source: None,
        mode_instead: None,
        lineage_grant: None,
    }
}

impl Drop for Meeting {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

fn report(name: &str) -> Report {
    let mut world = World::new();
    world.push('1', &[name], &[name]);
    world.report_with(name, |_| {});
    let report = world.state.clusters[&cluster(name)].report.clone();
    Report::clone(&report.expect("it has reported"))
}

#[tokio::test]
async fn an_agent_reports_in_no_other_clusters_name() {
    let mut meeting = Meeting::new().await;
    let stream = meeting.oslo.opener.open(TargetClass::Report, "", SOON).await;
    let mut stream = stream.expect("reports are taken");
    for name in ["bergen", "oslo"] {
        write_message(&mut stream, &report(name)).await.expect("it is open");
    }
    let heard = async {
        loop {
            if let Event::Reported { report } = meeting.events.recv().await.expect("the session goes on") {
                return report.cluster;
            }
        }
    };
    let first = timeout(SOON, heard).await.expect("the second one comes");
    assert_eq!(first, cluster("oslo"), "the one in bergen's name was dropped before it");
}

#[tokio::test]
async fn an_agent_opens_nothing_at_its_hub_but_reports_and_a_question_for_its_keys() {
    let meeting = Meeting::new().await;
    for class in [
        "deliver",
        "apiserver",
        "interactive",
        "push",
        "dial",
        "look",
        "peer",
        "anything",
    ] {
        let class = TargetClass::from(class.to_owned());
        for target in ["", "bergen", "1/bergen/"] {
            let refused = meeting.oslo.opener.open(class.clone(), target, SOON).await;
            let code = refused.err().map(|error| error.code);
            assert_eq!(code, Some(OpenCode::NotAllowed), "{class} {target}");
        }
    }
}

#[tokio::test]
async fn a_hub_says_its_keys_once_at_a_time_while_it_takes_reports() {
    let meeting = Meeting::new().await;
    let open = |class| meeting.oslo.opener.open(class, "", SOON);
    let _reports = open(TargetClass::Report).await.expect("reports are taken");
    let mut keys = open(TargetClass::Keys).await.expect("it is asked for its keys");
    for class in [TargetClass::Report, TargetClass::Keys] {
        let second = open(class).await.err().map(|error| error.code);
        assert_eq!(second, Some(OpenCode::Limit));
    }
    let question = KeyQuestion::new([7; 32]);
    write_message(&mut keys, &question).await.expect("it is open");
    let answer = timeout(SOON, read_message::<_, KeyAnswer>(&mut keys)).await;
    let answer = answer.expect("it answers soon").expect("the stream stands");
    let proven = answer.expect("it says them").proven(&question).expect("each signed");
    assert_eq!(proven.iter().collect::<Vec<_>>(), [meeting.oslo.peer.key]);
    let views = || Connections::view(&meeting.connections, &cluster("oslo"));
    let has_keys = || views().tunnel.is_some_and(|tunnel| tunnel.has_hub_keys);
    assert!(!has_keys(), "it has not said so");
    write_message(&mut keys, &KeysKept { keys: 1 })
        .await
        .expect("it is open");
    let noted = async {
        while !has_keys() {
            tokio::task::yield_now().await;
        }
    };
    timeout(SOON, noted).await.expect("it is noted");
}

#[tokio::test]
async fn an_agent_is_given_no_content_that_its_own_envelope_does_not_name() {
    let mut meeting = Meeting::new().await;
    let (own, others) = (Digest::of_bytes(b"oslo's"), Digest::of_bytes(b"bergen's"));
    let envelope = envelope(own, SyncMode::Dual);
    meeting.dispatch.set(&cluster("oslo"), Some(envelope));
    let opened = timeout(SOON, meeting.oslo.incoming.next()).await;
    let opened = opened.expect("it opens soon").expect("the tunnel stands");
    let mut stream = opened.responder.accept().expect("the hub waits");
    let told = timeout(SOON, read_message::<_, Deliver>(&mut stream)).await;
    let told = told.expect("it tells soon").expect("the stream stands");
    assert!(matches!(told, Some(Deliver::Envelope { .. })), "{told:?}");
    for digests in [vec![others], vec![others, own]] {
        let need = DeliverReply::Need(ContentRequest { digests });
        write_message(&mut stream, &need).await.expect("it is open");
    }
    // What nobody has is answered so; what is another cluster's is not answered at all.
    let answer = timeout(SOON, read_message::<_, Deliver>(&mut stream)).await;
    match answer.expect("it answers soon").expect("the stream stands") {
        Some(Deliver::Missing { digest, .. }) => assert_eq!(digest, own),
        other => unreachable!("{other:?}"),
    }
    meeting.stop.cancel();
    let mut rest = Vec::new();
    let _ended = timeout(SOON, stream.read_to_end(&mut rest)).await.expect("it ends");
    assert!(rest.is_empty(), "nothing else was told");
}

#[tokio::test]
async fn an_agent_that_answers_nothing_is_shut_out_at_once_also_where_the_hub_applies_through_it() {
    let mut meeting = Meeting::new().await;
    let envelope = envelope(Digest::of_bytes(b"oslo's"), SyncMode::Push);
    let held = envelope.held();
    meeting.dispatch.set(&cluster("oslo"), Some(envelope));
    let stream = meeting.oslo.opener.open(TargetClass::Report, "", SOON).await;
    let mut stream = stream.expect("reports are taken");
    let standing_by = Report {
        held: Some(held),
        ..report("oslo")
    };
    write_message(&mut stream, &standing_by).await.expect("it is open");
    // The hub's applier asks for the Lease, and waits for ever.
    let asked = async {
        let mut taken = Vec::new();
        loop {
            let open = meeting.oslo.incoming.next().await.expect("the tunnel stands");
            let is_push = open.open.class == TargetClass::Push;
            taken.push(open.responder.accept());
            if is_push {
                return taken;
            }
        }
    };
    let _unanswered = timeout(SOON, asked).await.expect("the hub applies");
    meeting.deny();
    let closed = timeout(PUSH_END_TIMEOUT, meeting.oslo.session.closed()).await;
    closed.expect("nobody waits for the Lease");
    assert!(meeting.dispatch.door(&cluster("oslo")).is_none(), "and nobody asks it");
    let (name, until) = (cluster("oslo"), tokio::time::Instant::now() + SOON);
    let soon = meeting.dispatch.door_soon(&name, until, SOON).await;
    assert_eq!(
        soon.err(),
        Some(Absent::Long),
        "or waits for it, whose key nobody takes"
    );
}

#[tokio::test]
async fn what_goes_on_in_a_tunnel_that_was_left_ends_with_its_key() {
    let mut meeting = Meeting::new().await;
    let open = async {
        loop {
            if let Some(Door::Agent(opener)) = meeting.dispatch.own_door(&cluster("oslo")) {
                return opener.open(TargetClass::ApiServer, "", SOON).await.expect("it is lent");
            }
            tokio::task::yield_now().await;
        }
    };
    let lend = async {
        loop {
            let open = meeting.oslo.incoming.next().await.expect("the tunnel stands");
            let class = open.open.class.clone();
            let stream = open.responder.accept().expect("the hub waits");
            if class == TargetClass::ApiServer {
                return stream;
            }
        }
    };
    let (mut asked, mut lent) = timeout(SOON, async { tokio::join!(open, lend) }).await.expect("soon");
    let again = ConnectOptions {
        epoch: 2,
        ..meeting.connect.clone()
    };
    let second = tunnel::connect(&again).await.expect("it is known");
    timeout(SOON, meeting.oslo.session.draining())
        .await
        .expect("the older one is left");
    lent.write_all(b"still here").await.expect("its stream goes on");
    let mut heard = [0; 10];
    asked.read_exact(&mut heard).await.expect("and is heard");
    meeting.deny();
    for session in [&meeting.oslo.session, &second.session] {
        timeout(SOON, session.closed()).await.expect("both end with the key");
    }
}
