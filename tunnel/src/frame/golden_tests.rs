//! `docs/protocol.md` shows every frame byte by byte, and those are the bytes that go over the wire.
//!
//! A block ` ```frame NAME ` holds hex bytes; `;` begins a comment, and a line between single quotes is text.

use std::collections::BTreeMap;
use std::time::Duration;

use bytes::Bytes;

use super::{
    Auth, Frame, GoAway, GoAwayReason, Hello, Kind, Nonce, Open, OpenCode, ProtocolRange, Reset, TargetClass, Token,
    decode, encode,
};
use crate::limits::FRAME_PAYLOAD_BYTES_MAX;

fn hello(cluster: &str) -> Hello {
    Hello {
        protocol: ProtocolRange { min: 1, max: 1 },
        features: Vec::new(),
        max_frame: 32_768,
        initial_window: 16_384,
        max_streams: 1_000,
        cluster: cluster.to_owned(),
        version: "0.1.0".to_owned(),
        epoch: 0,
        nonce: Nonce([0; 32]),
        server_id: String::new(),
        endpoints: Vec::new(),
        channel_binding: true,
        signature: String::new(),
        key: String::new(),
        instance: String::new(),
        token: Token::default(),
    }
}

/// Every frame the document must show.
fn examples() -> BTreeMap<&'static str, Frame> {
    let server_id = "hub-0".to_owned();
    let endpoints = vec!["wss://hub.example:8443".to_owned()];
    let signature = format!("{}==", "A".repeat(86));
    let open = Open::new(TargetClass::Deliver, "envelope", Duration::from_secs(5));
    let away = GoAway::new(GoAwayReason::Drain, "bye").with_retry(Duration::from_secs(1), Duration::from_secs(10));
    BTreeMap::from([
        (
            "hub-hello",
            Frame::Hello(Box::new(Hello {
                server_id,
                endpoints,
                ..hello("")
            })),
        ),
        (
            "agent-hello",
            Frame::Hello(Box::new(Hello {
                epoch: 7,
                signature,
                ..hello("north")
            })),
        ),
        (
            "auth",
            Frame::Auth(Auth {
                key: [0x11; 32],
                signature: [0x22; 64],
                spread_ms: 33_333,
            }),
        ),
        (
            "open",
            Frame::Open(
                1,
                Open {
                    request_id: "r-1".to_owned(),
                    ..open
                },
            ),
        ),
        ("open-ok", Frame::OpenOk(1)),
        ("data", Frame::Data(1, Bytes::from_static(b"hello"))),
        ("window", Frame::Window(1, 131_072)),
        ("fin", Frame::Fin(1)),
        ("rst", Frame::Rst(2, Reset::new(OpenCode::Unreachable, "no route"))),
        ("ping", Frame::Ping([1, 2, 3, 4, 5, 6, 7, 8])),
        ("pong", Frame::Pong([1, 2, 3, 4, 5, 6, 7, 8])),
        ("goaway", Frame::GoAway(GoAway { last_stream: 6, ..away })),
    ])
}

fn document() -> String {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/protocol.md");
    std::fs::read_to_string(path).expect("the protocol is written down")
}

fn bytes_of(block: &str) -> Vec<u8> {
    let line_bytes = |line: &str| match line.trim().strip_prefix('\'') {
        Some(text) => text
            .strip_suffix('\'')
            .expect("text ends with a quote")
            .as_bytes()
            .to_vec(),
        None => {
            let words = line.split(';').next().unwrap_or_default().split_whitespace();
            words
                .map(|word| u8::from_str_radix(word, 16).expect("two hex digits"))
                .collect()
        }
    };
    block.lines().flat_map(line_bytes).collect()
}

/// The blocks of the document by name.
fn blocks(document: &str) -> BTreeMap<&str, Vec<u8>> {
    let after_marks = document.split("```frame ").skip(1);
    let named = after_marks.map(|rest| rest.split("\n```").next().unwrap_or_default());
    named
        .filter_map(|block| block.split_once('\n'))
        .map(|(name, block)| (name.trim(), bytes_of(block)))
        .collect()
}

#[test]
fn the_document_shows_every_frame_as_it_is_sent_and_read() {
    let document = document();
    let shown = blocks(&document);
    let examples = examples();
    assert_eq!(
        shown.keys().collect::<Vec<_>>(),
        examples.keys().collect::<Vec<_>>(),
        "frames shown"
    );
    for (name, frame) in examples {
        let sent = encode(&frame).expect("it fits");
        assert_eq!(
            String::from_utf8_lossy(&shown[name]),
            String::from_utf8_lossy(&sent),
            "{name} as text"
        );
        assert_eq!(shown[name], sent, "{name} byte by byte");
        let read = decode(Bytes::from(shown[name].clone()), FRAME_PAYLOAD_BYTES_MAX);
        assert_eq!(read, Ok(Some(frame)), "{name} read back");
    }
}

#[test]
fn the_document_lists_every_type_and_code_with_its_number() {
    let document = document();
    let row = |number: String, name: &str| format!("| {number} | `{name}` |");
    let kinds = Kind::ALL.map(|kind| {
        let name = match kind {
            Kind::OpenOk => "OPEN_OK".to_owned(),
            kind => format!("{kind:?}").to_uppercase(),
        };
        row(format!("`{:02x}`", kind as u8), &name)
    });
    let codes = OpenCode::ALL.map(|code| row((code as u16).to_string(), code.as_str()));
    let reasons = GoAwayReason::ALL.map(|reason| row((reason as u16).to_string(), reason.as_str()));
    for row in kinds.iter().chain(&codes).chain(&reasons) {
        assert!(document.contains(row), "docs/protocol.md lacks the row {row}");
    }
}
