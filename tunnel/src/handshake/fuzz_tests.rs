//! Whatever a peer says instead of its HELLO or AUTH, it is refused: neither side panics, waits for ever, or takes it for
//! somebody.

use std::path::Path;

use bytes::Bytes;
use proptest::prelude::*;
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt as _;
use tokio_tungstenite::tungstenite::protocol::Role as SocketRole;

use super::tests::{key, sockets, us};
use super::*;

/// Handshakes in memory; whoever waits for nothing is at the end of its patience at once.
fn in_memory<T>(work: impl Future<Output = T>) -> T {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = runtime.enable_time().start_paused(true).build();
    runtime.expect("a runtime needs nothing").block_on(work)
}

/// Both sides hear these messages from a peer that has no key of either, and then nothing more.
fn survive(messages: &[Message]) {
    in_memory(async {
        for role in [Role::Hub, Role::Agent] {
            let (hub_socket, agent_socket) = sockets().await;
            let (mut socket, mut peer) = match role {
                Role::Hub => (hub_socket, agent_socket),
                Role::Agent => (agent_socket, hub_socket),
            };
            let (own, other) = (key(), key().public());
            let talk = async {
                for message in messages {
                    if peer.send(message.clone()).await.is_err() {
                        break;
                    }
                }
                // Whoever goes on listening hears it out.
                while let Some(Ok(_)) = peer.next().await {}
            };
            let known = move |_: &str| Some(vec![other]);
            let refused = async {
                let outcome = match role {
                    Role::Hub => as_hub(&mut socket, &us(&own, "", None), &known).await.err(),
                    Role::Agent => as_agent(&mut socket, &us(&own, "north", None), &[other]).await.err(),
                };
                drop(socket);
                outcome
            };
            let (refused, ()) = tokio::join!(refused, talk);
            assert!(refused.is_some(), "nobody comes to terms with {messages:?}");
        }
    });
}

/// As [`survive`], with bytes that may be no WebSocket's.
fn survive_bytes(bytes: &[u8]) {
    in_memory(async {
        let (own, other) = (key(), key().public());
        let (near, mut far) = tokio::io::duplex(64 * 1024);
        let mut socket = WebSocketStream::from_raw_socket(near, SocketRole::Server, None).await;
        // It may have hung up before.
        let _written = far.write_all(bytes).await;
        let _ended = far.shutdown().await;
        let outcome = as_hub(&mut socket, &us(&own, "", None), &move |_: &str| Some(vec![other])).await;
        assert!(outcome.is_err());
    });
}

/// A frame of a handshake with this payload.
fn framed(kind: Kind, payload: &[u8]) -> Message {
    let head = (u32::from(kind as u8) << 24) | payload.len() as u32;
    Message::Binary(Bytes::from([&head.to_be_bytes()[..], &[0; 4], payload].concat()))
}

/// A HELLO in which nothing is wrong but its proof.
fn hello_fields() -> Value {
    let nonce = STANDARD.encode([5; 32]);
    json!({
        "protocol": { "min": 1, "max": 1 }, "features": [], "max_frame": 32_768, "initial_window": 16_384,
        "max_streams": 1_000, "cluster": "north", "version": "0.1.0", "epoch": 7, "nonce": nonce, "server_id": "",
        "endpoints": [], "channel_binding": false, "signature": STANDARD.encode([0; 64]), "key": "", "instance": "",
        "token": "",
    })
}

fn value() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        ".{0,64}".prop_map(Value::from),
        (0..40_000_usize).prop_map(|length| Value::from("x".repeat(length))),
        (0..600_usize).prop_map(|count| json!(vec!["wss://h"; count])),
        (0..200_usize).prop_map(|depth| (0..depth).fold(json!(1), |inner, _| json!([inner]))),
    ]
}

/// A HELLO with one field that says something else.
fn odd_hello() -> impl Strategy<Value = Message> {
    let names: Vec<String> = hello_fields().as_object().expect("a map").keys().cloned().collect();
    (proptest::sample::select(names), value()).prop_map(|(name, value)| {
        let mut fields = hello_fields();
        fields[name] = value;
        framed(Kind::Hello, fields.to_string().as_bytes())
    })
}

fn message() -> impl Strategy<Value = Message> {
    let bytes = || proptest::collection::vec(any::<u8>(), 0..200);
    let kinds: Vec<Kind> = Kind::ALL.to_vec();
    prop_oneof![
        3 => odd_hello(),
        2 => (proptest::sample::select(kinds), bytes()).prop_map(|(kind, payload)| framed(kind, &payload)),
        1 => bytes().prop_map(|bytes| Message::Binary(bytes.into())),
        1 => ".{0,64}".prop_map(|text| Message::Text(text.into())),
        1 => proptest::collection::vec(any::<u8>(), 0..100).prop_map(|bytes| Message::Ping(bytes.into())),
        1 => proptest::collection::vec(any::<u8>(), 100).prop_map(|payload| framed(Kind::Auth, &payload)),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn whatever_is_said_in_a_handshake_is_refused(messages in proptest::collection::vec(message(), 0..5)) {
        survive(&messages);
    }

    #[test]
    fn a_sound_hello_is_worth_nothing_with_whatever_comes_after_it(messages in proptest::collection::vec(message(), 0..3)) {
        let sound = framed(Kind::Hello, hello_fields().to_string().as_bytes());
        survive(&std::iter::once(sound).chain(messages).collect::<Vec<_>>());
    }

    #[test]
    fn bytes_that_are_no_websockets_are_refused(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        survive_bytes(&bytes);
    }
}

#[test]
fn each_hello_of_the_corpus_is_refused() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus/hello");
    let mut said = 0;
    for entry in std::fs::read_dir(&folder).expect("the corpus lies in the crate") {
        let text = std::fs::read_to_string(entry.expect("readable").path()).expect("readable");
        for line in text.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
            survive(&[framed(Kind::Hello, line.as_bytes())]);
            said += 1;
        }
    }
    assert!(said >= 12, "the corpus is there: {said}");
}
