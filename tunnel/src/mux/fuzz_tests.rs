//! Whatever bytes a peer sends, the machine answers, ignores or ends the tunnel; it never panics or grows.

use std::path::Path;

use proptest::prelude::*;

use super::fuzz::survive;
use crate::frame::Kind;
use crate::fuzz;
use crate::identity::Role;

/// A frame that gets past the header's checks.
fn framed(kind: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let head = (u32::from(kind) << 24) | payload.len() as u32;
    [&head.to_be_bytes()[..], &stream.to_be_bytes(), payload].concat()
}

fn frame() -> impl Strategy<Value = Vec<u8>> {
    let kinds: Vec<u8> = Kind::ALL.iter().map(|kind| *kind as u8).collect();
    let kind = prop_oneof![9 => proptest::sample::select(kinds), 1 => any::<u8>()];
    let stream = prop_oneof![9 => 0..12_u32, 1 => any::<u32>()];
    let json = Just(br#"{"class":"deliver","target":"x","deadline_ms":18446744073709551615}"#.to_vec());
    let payload = prop_oneof![
        4 => proptest::collection::vec(any::<u8>(), 0..64),
        1 => proptest::collection::vec(any::<u8>(), 4_000..8_000),
        2 => json,
    ];
    (kind, stream, payload).prop_map(|(kind, stream, payload)| framed(kind, stream, &payload))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn arbitrary_bytes_never_panic(messages in proptest::collection::vec(
        proptest::collection::vec(any::<u8>(), 0..64), 0..16)) {
        for role in [Role::Hub, Role::Agent] {
            survive(role, messages.clone());
        }
    }

    #[test]
    fn arbitrary_frames_never_panic(messages in proptest::collection::vec(frame(), 0..40)) {
        for role in [Role::Hub, Role::Agent] {
            survive(role, messages.clone());
        }
    }
}

/// A corpus file holds one message per line, in hex; `#` begins a comment.
fn corpus() -> Vec<(String, Vec<Vec<u8>>)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus");
    let entries = std::fs::read_dir(&folder).expect("the corpus lies in the crate");
    let files = entries.map(|entry| entry.expect("readable").path());
    // Folders are of what comes before streams.
    let files = files.filter(|path| path.is_file());
    let read = |path: std::path::PathBuf| {
        let text = std::fs::read_to_string(&path).expect("readable");
        let lines = text
            .lines()
            .map(|line| line.split('#').next().unwrap_or_default().replace(' ', ""));
        let messages = lines
            .filter(|line| !line.is_empty())
            .map(|line| bytes_of(&line))
            .collect();
        (path.display().to_string(), messages)
    };
    files.map(read).collect()
}

fn bytes_of(hex: &str) -> Vec<u8> {
    let pairs = hex
        .as_bytes()
        .chunks(2)
        .map(|pair| std::str::from_utf8(pair).expect("hex is ASCII"));
    pairs
        .map(|pair| u8::from_str_radix(pair, 16).expect("two hex digits"))
        .collect()
}

#[test]
fn the_corpus_and_its_mutations_never_panic() {
    let corpus = corpus();
    assert!(corpus.len() >= 8, "the corpus is there");
    for (path, messages) in corpus {
        assert!(!messages.is_empty(), "{path} holds messages");
        fuzz::mux(&fuzz::input_of(&messages));
        for seed in 0..300 {
            fuzz::mux(&fuzz::input_of(&mutated(&messages, seed)));
        }
    }
}

/// Changes, cuts, doubles or swaps something, always the same for one seed.
fn mutated(messages: &[Vec<u8>], seed: u64) -> Vec<Vec<u8>> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut random = |below: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state % below.max(1) as u64) as usize
    };
    let mut messages = messages.to_vec();
    for _ in 0..=random(4) {
        let at = random(messages.len());
        let byte = random(messages[at].len());
        match random(5) {
            0 if byte < messages[at].len() => messages[at][byte] = random(256) as u8,
            1 if byte < messages[at].len() => messages[at][byte] ^= 1 << random(8),
            2 => messages[at].truncate(byte),
            3 => {
                let copy = messages[at].clone();
                messages.insert(random(messages.len()), copy);
            }
            _ => {
                let other = random(messages.len());
                messages.swap(at, other);
            }
        }
    }
    messages
}
