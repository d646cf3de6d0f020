//! What an agent believes: a hub that holds the right key tells it old, repeated and tampered things.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use flotilla_tests::{eventually, wait};
use reconciler::wire::{
    Deliver, DeliverReply, Envelope, EnvelopeUnit, LineageGrant, Refusal, Report, list_digest, read_message,
    write_message,
};
use render::describe::{Content, DescribedObject, Description, key_of};
use render::{ClusterName, Digest, Revision};
use serde_json::json;
use tokio::net::TcpListener;
use tunnel::{AcceptOptions, PublicKey, SecretKey, TargetClass, Tunnel};

use super::support::{Fleet, LIMIT, versions};

const CLUSTER: &str = "amsterdam";
const GREETING: (&str, &str) = ("default", "greeting");

/// A hub of the test's own: it says what it is told to say, to one agent.
struct FakeHub {
    runtime: tokio::runtime::Runtime,
    deliver: Box<dyn Fn(Deliver) + Send>,
    replies: Receiver<DeliverReply>,
    reports: tokio::sync::watch::Receiver<Option<Report>>,
}

impl FakeHub {
    /// Listens, starts the agent, and waits for its tunnel.
    fn start(fleet: &mut Fleet) -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .unwrap();
        let agent_key = public_key(&fleet.join(CLUSTER));
        let keys = move |_: &str| Some(vec![agent_key]);
        let options = AcceptOptions::new(Arc::new(fleet.hub_secret_key()), Arc::new(keys)).unwrap();
        let listener = runtime.block_on(TcpListener::bind(fleet.hub_address())).unwrap();
        fleet.start_agent(CLUSTER);
        let accept = async {
            let (socket, _) = listener.accept().await.unwrap();
            tunnel::accept(socket, &options).await.unwrap()
        };
        let accepted = runtime.block_on(async { tokio::time::timeout(LIMIT, accept).await });
        let tunnel = accepted.expect("the agent dials soon");
        let (said, deliver) = tokio::sync::mpsc::channel(16);
        let (heard, replies) = sync_channel(16);
        let (reported, reports) = tokio::sync::watch::channel(None);
        runtime.spawn(serve(tunnel, deliver, heard, reported));
        let deliver = Box::new(move |message| said.blocking_send(message).expect("the tunnel stands"));
        Self {
            runtime,
            deliver,
            replies,
            reports,
        }
    }

    fn tell(&self, envelope: &Envelope) {
        (self.deliver)(Deliver::Envelope {
            envelope: envelope.clone(),
        });
    }

    #[track_caller]
    fn reply(&self) -> DeliverReply {
        self.replies.recv_timeout(LIMIT).expect("the agent answers")
    }

    /// Delivers an envelope with its content, as an honest hub.
    #[track_caller]
    fn deliver(&self, envelope: &Envelope, description: &Description) {
        self.tell(envelope);
        assert!(
            matches!(self.reply(), DeliverReply::Need(_)),
            "the content is asked for"
        );
        (self.deliver)(Deliver::content(description));
        let sequence = envelope.sequence;
        assert_eq!(self.reply(), DeliverReply::Taken { sequence });
    }

    /// Tells an envelope that must be refused, and returns why it was.
    #[track_caller]
    fn refused(&self, envelope: &Envelope) -> Refusal {
        self.tell(envelope);
        match self.reply() {
            DeliverReply::Refused { sequence, refusal } if sequence == envelope.sequence => refusal,
            other => panic!("{envelope:?} is not refused: {other:?}"),
        }
    }

    /// Waits until the agent says why it refused something.
    #[track_caller]
    fn until_reported(&self, refused: Option<&(u64, Refusal)>) {
        eventually(LIMIT, "the refusal is reported", || {
            let report = self.reports.borrow().clone();
            let said = report.and_then(|report| report.refused);
            (said.as_ref() == refused).then_some(()).ok_or(format!("{said:?}"))
        });
    }

    fn stop(self) {
        self.runtime.shutdown_timeout(LIMIT);
    }
}

async fn serve(
    tunnel: Tunnel,
    mut said: tokio::sync::mpsc::Receiver<Deliver>,
    heard: SyncSender<DeliverReply>,
    reported: tokio::sync::watch::Sender<Option<Report>>,
) {
    let mut incoming = tunnel.incoming;
    let stream = tunnel.opener.open(TargetClass::Deliver, "", LIMIT).await.unwrap();
    let (mut reader, mut writer) = tokio::io::split(stream);
    tokio::spawn(async move {
        while let Ok(Some(reply)) = read_message(&mut reader).await {
            heard.try_send(reply).expect("the test reads what it asked for");
        }
    });
    tokio::spawn(async move {
        while let Some(open) = incoming.next().await {
            let mut stream = open.responder.accept().unwrap();
            while let Ok(Some(report)) = read_message::<_, Report>(&mut stream).await {
                reported.send_replace(Some(report));
            }
        }
    });
    while let Some(message) = said.recv().await {
        write_message(&mut writer, &message).await.unwrap();
    }
    drop(tunnel.session);
}

/// The key in the file that `agent join` prints.
fn public_key(file: &str) -> PublicKey {
    let at = file.find("ed25519:").unwrap();
    let text: String = file[at..]
        .chars()
        .take_while(|c| !c.is_whitespace() && *c != '"')
        .collect();
    text.parse().unwrap()
}

fn revision(digit: char) -> Revision {
    Revision::parse(digit.to_string().repeat(40)).unwrap()
}

/// One ConfigMap with this text.
fn greeting(text: &str) -> Description {
    let object = json!({"apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": GREETING.1, "namespace": GREETING.0}, "data": {"text": text}});
    let object = DescribedObject {
        key: key_of(&object).unwrap(),
        content: Content::Plain {
            object: Arc::new(object),
        },
        provenance: Vec::new(),
    };
    Description::new(vec![object]).unwrap()
}

fn envelope(sequence: u64, digest: Digest) -> Envelope {
    let unit = EnvelopeUnit {
        digest,
        revision: revision('b'),
        replicas: Default::default(),
        drift: Default::default(),
        gates: Vec::new(),
    };
    let units = BTreeMap::from([("shop/web".parse().unwrap(), unit)]);
    Envelope {
        version: Envelope::VERSION,
        cluster: ClusterName::parse(CLUSTER).unwrap(),
        lineage: revision('a'),
        sequence,
        released: revision('c'),
        list: list_digest(&units, false),
        units,
        orphan: false,
        orphaned: Default::default(),
        mode: Default::default(),
        mode_source: None,
        mode_instead: None,
        lineage_grant: None,
    }
}

/// What is wrong with an envelope that says otherwise what is good, each in its own way.
fn bad_envelopes(held: &Envelope, other: Digest, hub_key: &SecretKey) -> Vec<(&'static str, Envelope)> {
    let own = held.cluster.clone();
    let newer = envelope(held.sequence + 1, other);
    let lineage = |grant| Envelope {
        lineage: revision('d'),
        lineage_grant: grant,
        ..newer.clone()
    };
    let stranger = SecretKey::generate().unwrap();
    let grant = |key: &SecretKey, lineage| LineageGrant::new(&own, lineage, |bytes| key.sign(bytes).to_vec());
    let nothing = BTreeMap::new();
    vec![
        ("oldNews", envelope(held.sequence - 1, other)),
        ("contradiction", envelope(held.sequence, other)),
        (
            "contradiction",
            Envelope {
                list: list_digest(&nothing, false),
                units: nothing,
                ..held.clone()
            },
        ),
        (
            "tampered",
            Envelope {
                list: held.list,
                ..newer.clone()
            },
        ),
        (
            "otherCluster",
            Envelope {
                cluster: ClusterName::parse("bogota").unwrap(),
                ..newer.clone()
            },
        ),
        (
            "unknownVersion",
            Envelope {
                version: Envelope::VERSION + 1,
                ..newer.clone()
            },
        ),
        ("otherLineage", lineage(None)),
        ("otherLineage", lineage(Some(grant(&stranger, revision('d'))))),
        ("otherLineage", lineage(Some(grant(hub_key, revision('e'))))),
    ]
}

#[test]
fn an_old_repeated_or_tampered_envelope_changes_nothing() {
    let mut fleet = Fleet::prepare();
    let hub = FakeHub::start(&mut fleet);
    let (hello, other) = (greeting("hello"), greeting("other"));
    let held = envelope(7, hello.digest);
    hub.deliver(&held, &hello);
    fleet.until_text(&[CLUSTER], GREETING, "hello");
    let before = versions(fleet.cluster(CLUSTER), "configmaps");

    hub.tell(&held);
    assert_eq!(hub.reply(), DeliverReply::Taken { sequence: 7 }, "repeated");
    let hub_key = fleet.hub_secret_key();
    for (reason, bad) in bad_envelopes(&held, other.digest, &hub_key) {
        let refusal = hub.refused(&bad);
        assert_eq!(json!(refusal)["reason"], reason, "{bad:?}");
        hub.until_reported(Some(&(bad.sequence, refusal)));
    }
    // Right envelope, wrong content: the unit stays as it is until the right one comes.
    let newer = envelope(8, other.digest);
    hub.tell(&newer);
    assert!(matches!(hub.reply(), DeliverReply::Need(_)));
    let Deliver::Content { description, .. } = Deliver::content(&greeting("smuggled")) else {
        panic!("a content is a content")
    };
    (hub.deliver)(Deliver::Content {
        digest: other.digest,
        description,
    });
    let what = "nothing of it is in the cluster";
    wait::throughout(std::time::Duration::from_secs(4), what, || {
        let now = versions(fleet.cluster(CLUSTER), "configmaps");
        (now == before).then_some(()).ok_or(format!("{now:?}"))
    });
    assert!(fleet.logs().contains("Refused content."), "{}", fleet.logs());
    (hub.deliver)(Deliver::content(&other));
    assert_eq!(hub.reply(), DeliverReply::Taken { sequence: 8 }, "all of it is here");
    fleet.until_text(&[CLUSTER], GREETING, "other");
    hub.until_reported(None);

    let lineage = revision('d');
    let granted = Envelope {
        lineage: lineage.clone(),
        lineage_grant: Some(LineageGrant::new(&held.cluster, lineage, |bytes| {
            hub_key.sign(bytes).to_vec()
        })),
        ..envelope(1, hello.digest)
    };
    hub.deliver(&granted, &hello);
    fleet.until_text(&[CLUSTER], GREETING, "hello");
    hub.stop();
}
