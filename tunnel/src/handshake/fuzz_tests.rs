//! Whatever a peer says instead of its HELLO or AUTH, it is refused: neither side panics, waits for ever, or takes it for
//! somebody.

use std::path::Path;

use bytes::Bytes;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::fuzz::{survive, survive_bytes};
use super::*;

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
            let hello = framed(Kind::Hello, line.as_bytes()).into_data().to_vec();
            crate::fuzz::hello(&crate::fuzz::input_of(&[hello]));
            said += 1;
        }
    }
    assert!(said >= 12, "the corpus is there: {said}");
}
