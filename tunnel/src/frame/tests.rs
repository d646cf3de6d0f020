//! What the codec takes, ignores and refuses.

use bytes::Bytes;

use super::{Frame, FrameError, GoAway, GoAwayReason, Kind, Open, OpenCode, Reset, TargetClass, decode, encode};
use crate::limits::{FRAME_PAYLOAD_BYTES_MAX, JSON_BYTES_MAX, REASON_TEXT_BYTES_MAX};

fn framed(kind: u8, stream: u32, payload: &[u8]) -> Bytes {
    let head = (u32::from(kind) << 24) | payload.len() as u32;
    [&head.to_be_bytes()[..], &stream.to_be_bytes(), payload]
        .concat()
        .into()
}

#[track_caller]
fn check(message: Bytes, expected: Result<Option<Frame>, FrameError>) {
    assert_eq!(decode(message, FRAME_PAYLOAD_BYTES_MAX), expected);
}

#[track_caller]
fn check_malformed(kind: Kind, stream: u32, payload: &[u8], what: &'static str) {
    check(
        framed(kind as u8, stream, payload),
        Err(FrameError::Malformed { kind, stream, what }),
    );
}

#[test]
fn a_message_is_one_whole_frame() {
    check(Bytes::new(), Err(FrameError::Truncated { bytes: 0 }));
    check(Bytes::from_static(&[0x87; 7]), Err(FrameError::Truncated { bytes: 7 }));
    let two = [framed(0x87, 1, b""), framed(0x87, 1, b"")].concat();
    check(
        two.into(),
        Err(FrameError::LengthMismatch {
            announced: 0,
            carried: 8,
        }),
    );
    let short = Bytes::from_static(&[0x85, 0, 0, 9, 0, 0, 0, 1, 1]);
    check(
        short,
        Err(FrameError::LengthMismatch {
            announced: 9,
            carried: 1,
        }),
    );
}

#[test]
fn a_frame_larger_than_agreed_is_refused_before_it_is_looked_at() {
    let large = framed(0x85, 1, &[0; 5_000]);
    assert_eq!(
        decode(large, 4_096),
        Err(FrameError::TooLarge {
            bytes: 5_000,
            bytes_max: 4_096
        })
    );
}

#[test]
fn unknown_types_are_ignored_unless_critical() {
    check(framed(0x0c, 77, b"later"), Ok(None));
    check(
        framed(0x01, 0, b"a HELLO without its critical bit is another type"),
        Ok(None),
    );
    check(framed(0x8c, 0, b""), Err(FrameError::UnknownCritical { kind: 0x8c }));
}

#[test]
fn tunnel_frames_have_no_stream_and_stream_frames_have_one() {
    check(
        framed(0x09, 1, &[0; 8]),
        Err(FrameError::WrongStream {
            kind: Kind::Ping,
            stream: 1,
        }),
    );
    check(
        framed(0x85, 0, b"x"),
        Err(FrameError::WrongStream {
            kind: Kind::Data,
            stream: 0,
        }),
    );
}

#[test]
fn payloads_that_are_too_short_or_empty_are_malformed() {
    check_malformed(Kind::Auth, 0, &[0; 95], "payload is too short");
    check_malformed(Kind::Window, 1, &[0; 3], "payload is too short");
    check_malformed(Kind::Window, 1, &[0; 4], "no credit");
    check_malformed(Kind::Data, 1, &[], "no bytes");
    check_malformed(Kind::Rst, 1, &[0], "payload is too short");
    check_malformed(Kind::Ping, 0, &[0; 7], "payload is too short");
    check_malformed(Kind::GoAway, 0, &[0; 13], "payload is too short");
}

#[test]
fn what_follows_the_known_fields_is_a_newer_peers() {
    check(framed(0x84, 1, b"{}"), Ok(Some(Frame::OpenOk(1))));
    check(framed(0x86, 1, &[0, 0, 0, 5, 9, 9]), Ok(Some(Frame::Window(1, 5))));
    let json = br#"{"class":"deliver","deadline_ms":5,"priority":{"is":["new"]}}"#;
    let open = Open {
        class: TargetClass::Deliver,
        target: String::new(),
        deadline_ms: 5,
        request_id: String::new(),
    };
    check(framed(0x83, 1, json), Ok(Some(Frame::Open(1, open))));
}

#[test]
fn numbers_of_a_newer_peer_get_the_nearest_meaning() {
    let internal = Reset::new(OpenCode::Internal, "new");
    check(
        framed(0x88, 1, &[0, 99, b'n', b'e', b'w']),
        Ok(Some(Frame::Rst(1, internal))),
    );
    let payload = [[0; 4].as_slice(), &[0, 99], &[0; 8]].concat();
    check(
        framed(0x0b, 0, &payload),
        Ok(Some(Frame::GoAway(GoAway::new(GoAwayReason::Shutdown, "")))),
    );
}

#[test]
fn json_is_small_and_in_range() {
    let blank = " ".repeat(JSON_BYTES_MAX + 1);
    check_malformed(Kind::Open, 1, blank.as_bytes(), "body exceeds 4 KiB");
    check_malformed(Kind::Open, 1, b"[]", "body is not the JSON it should be");
    let target = format!(
        r#"{{"class":"deliver","deadline_ms":5,"target":"{}"}}"#,
        "x".repeat(1_025)
    );
    check_malformed(Kind::Open, 1, target.as_bytes(), "target is too long");
    let nested = "[".repeat(4_000);
    check_malformed(Kind::Hello, 0, nested.as_bytes(), "body is not the JSON it should be");
}

#[test]
fn a_hello_out_of_range_is_refused() {
    let good = [
        ("max_frame", 32_768_u32),
        ("initial_window", 262_144),
        ("max_streams", 5),
    ];
    let hello = |changed: &str, value: u32| {
        let fields = good.map(|(name, usual)| {
            let number = if name == changed { value } else { usual };
            format!(r#""{name}":{number},"#)
        });
        let nonce = format!("{}=", "A".repeat(43));
        format!(
            r#"{{{}"protocol":{{"min":1,"max":1}},"nonce":"{nonce}"}}"#,
            fields.concat()
        )
    };
    let sound = framed(0x81, 0, hello("", 0).as_bytes());
    assert!(matches!(decode(sound, 4_096), Ok(Some(Frame::Hello(_)))));
    for (field, value, what) in [
        ("max_frame", 4_095, "max_frame is out of range"),
        ("max_frame", 65_537, "max_frame is out of range"),
        ("initial_window", 4_095, "initial_window is out of range"),
        ("initial_window", 4_194_305, "initial_window is out of range"),
        ("max_streams", 0, "max_streams is 0"),
    ] {
        check_malformed(Kind::Hello, 0, hello(field, value).as_bytes(), what);
    }
}

#[test]
fn texts_are_cut_at_a_character_and_longer_ones_refused() {
    let cut = Reset::new(OpenCode::Refused, "ü".repeat(200));
    assert_eq!(cut.text.len(), REASON_TEXT_BYTES_MAX);
    let odd = Reset::new(OpenCode::Refused, format!("x{}", "ü".repeat(200)));
    assert_eq!(odd.text.len(), REASON_TEXT_BYTES_MAX - 1, "half a character is no text");
    let sent = encode(&Frame::Rst(1, cut.clone())).expect("it fits");
    check(sent, Ok(Some(Frame::Rst(1, cut))));
    let long = [&[0, 1][..], &[b'x'; REASON_TEXT_BYTES_MAX + 1]].concat();
    check_malformed(Kind::Rst, 1, &long, "text exceeds 256 bytes");
}

#[test]
fn data_shares_the_memory_it_came_in() {
    let message = framed(0x85, 1, &[7; 2_000]);
    let Ok(Some(Frame::Data(1, payload))) = decode(message.clone(), 4_096) else {
        unreachable!("sound")
    };
    assert_eq!(payload.as_ptr(), message[8..].as_ptr());
}

#[test]
fn an_unknown_class_is_carried_as_text() {
    let class: TargetClass = serde_json::from_str(r#""shell""#).expect("any text is a class");
    assert_eq!(class, TargetClass::Unknown("shell".to_owned()));
    assert_eq!(serde_json::to_string(&class).expect("text"), r#""shell""#);
}
