//! What the real `sops` and `age` encrypt, opened by the applier's own decryption.

use std::fs;
use std::path::PathBuf;

use flotilla_tests::{Output, parts, scratch};
use reconciler::apply::sops::{Identities, open};
use render::yaml;
use serde_json::{Value, json};

/// A folder with an age key, in which `sops` works.
pub(crate) struct Keeper {
    folder: PathBuf,
    /// The public key.
    pub(crate) recipient: String,
    /// The private key's file, as `age-keygen` wrote it.
    pub(crate) identity: String,
}

impl Keeper {
    /// A new key pair of the real `age-keygen`.
    pub(crate) fn new(name: &str) -> Self {
        let folder = scratch::folder(name);
        let path = folder.join("key.txt");
        Output::of(parts::command("age-keygen").arg("-o").arg(&path)).expect_ok();
        let identity = fs::read_to_string(&path).unwrap();
        let recipient = identity.lines().find_map(|line| line.strip_prefix("# public key: "));
        let recipient = recipient.expect("age-keygen names the public key").to_owned();
        Self {
            folder,
            recipient,
            identity,
        }
    }

    /// A document as the real `sops` encrypts it, for these recipients and with these further words.
    pub(crate) fn encrypt_for(&self, recipients: &[&str], text: &str, words: &[&str]) -> String {
        let extension = if text.starts_with('{') { "json" } else { "yaml" };
        let path = self.folder.join(format!("plain.{extension}"));
        fs::write(&path, text).unwrap();
        let mut command = parts::command("sops");
        command.arg("--encrypt").arg("--age").arg(recipients.join(","));
        Output::of(command.args(words).arg(&path)).expect_ok()
    }

    /// For its own key, as people encrypt Secrets.
    pub(crate) fn encrypt(&self, text: &str) -> String {
        self.encrypt_for(&[&self.recipient], text, &["--encrypted-regex", "^(data|stringData)$"])
    }

    fn identities(&self) -> Identities {
        let mut identities = Identities::default();
        identities.add(&self.identity).unwrap();
        identities
    }
}

const DOCUMENTS: [&str; 8] = [
    "apiVersion: v1\nkind: Secret\nmetadata: {name: a}\nstringData: {password: open-sesame}\n",
    "apiVersion: v1\nkind: Secret\nmetadata: {name: a}\ndata: {z: eHl6, a: '', b: !!str 7}\ntype: Opaque\n",
    // Every type, and words that are booleans for some readers.
    "kind: Secret\nstringData: {s: text, i: 7, m: -9223372036854775808, f: 1.5, g: 1e3, h: 1.0, t: true, u: false, w: 'yes', v: null}\n",
    // Nested, in lists, with comments in every place.
    "# top\nkind: X\ndata:\n  # above\n  list: # beside\n    # in it\n    - a\n    - {b: [1, 2.25, {c: d}], e: {}}\n    - []\n    # below\n  map:\n    k: v\n# end\n",
    "kind: X\ndata:\n  pem: |\n    -----BEGIN CERTIFICATE-----\n    MIIB\n    -----END CERTIFICATE-----\n  folded: >-\n    one\n    two\n  tabs: \"\\t\\u0000\\e\"\n",
    "kind: X\ndata: {umlaut: grüße, emoji: '🛥️', right: 'שלום', 'a:b': 'x:y', 'sp ace': ' lead and trail ', long: 'ENC[not quite'}\n",
    "kind: X\nmetadata: {labels: {rank: '07'}, count: 12, ratio: 0.25, open: true}\ndata: {x_unencrypted: open, y_secret: shut, z: {y_secret: shut, q: open}}\n",
    "{\"kind\": \"Secret\", \"stringData\": {\"b\": \"x/y\", \"a\": 7, \"f\": 2.5, \"t\": true, \"n\": null, \"l\": [\"a\", {\"b\": \"c\"}]}, \"type\": \"Opaque\"}",
];

const RULES: [&[&str]; 9] = [
    &[],
    &["--encrypted-regex", "^(data|stringData)$"],
    &["--unencrypted-regex", "^(kind|metadata|type)$"],
    &["--encrypted-suffix", "_secret"],
    &["--unencrypted-suffix", "_unencrypted"],
    &["--mac-only-encrypted", "--encrypted-regex", "^(data|stringData)$"],
    &["--mac-only-encrypted"],
    &["--encrypted-comment-regex", "above"],
    &["--unencrypted-comment-regex", "above"],
];

fn plain(text: &str) -> Value {
    yaml::read(text).unwrap().remove(0).value
}

#[test]
fn what_real_sops_encrypts_is_decrypted_to_the_original() {
    let keeper = Keeper::new("sops-differential");
    let other = Keeper::new("sops-other");
    for text in DOCUMENTS {
        for rule in RULES {
            let sealed = keeper.encrypt_for(&[&other.recipient, &keeper.recipient], text, rule);
            let opened = open(&sealed, &keeper.identities());
            let opened = opened.unwrap_or_else(|error| panic!("{rule:?} of {text}: {error}\n{sealed}"));
            assert_eq!(*opened.value(), plain(text), "{rule:?} of\n{text}");
        }
    }
}

#[test]
fn a_tampered_document_is_refused_wherever_it_was_changed() {
    let keeper = Keeper::new("sops-tampered");
    let text = DOCUMENTS[3];
    for rule in &RULES[..3] {
        let sealed = keeper.encrypt_for(&[&keeper.recipient], text, rule);
        assert!(open(&sealed, &keeper.identities()).is_ok(), "the whole one opens");
        let end = sealed.find("\nsops:").expect("the section is last");
        let mut refused = 0;
        for (index, line) in sealed[..end].lines().enumerate() {
            // A comment is no part of the object, and nobody reads it.
            if line.trim_start().starts_with('#') || line.contains("type:comment") {
                continue;
            }
            let without: Vec<_> = sealed
                .lines()
                .enumerate()
                .filter(|(at, _)| *at != index)
                .map(|(_, line)| line)
                .collect();
            // Without the line, the document is another one or none; a map that lost its last value, or one that is
            // empty, is the only thing that no value tells of.
            let has_value = line
                .split_once(": ")
                .is_some_and(|(_, value)| !matches!(value, "{}" | "[]"))
                || line.trim_start().starts_with("- E");
            if has_value {
                refused += 1;
                assert!(
                    open(&without.join("\n"), &keeper.identities()).is_err(),
                    "without {line:?} it opens"
                );
            }
        }
        assert!(refused > 3, "{refused} lines were taken out of\n{sealed}");
    }
}

#[test]
fn a_key_that_was_rotated_opens_what_is_encrypted_for_it_alone() {
    let (old, new) = (Keeper::new("sops-old"), Keeper::new("sops-new"));
    let text = DOCUMENTS[0];
    let both = old.encrypt_for(&[&old.recipient, &new.recipient], text, RULES[1]);
    assert_eq!(
        *open(&both, &new.identities())
            .map_err(|error| error.to_string())
            .unwrap()
            .value(),
        plain(text)
    );
    let sealed = old.encrypt_for(&[&new.recipient], text, RULES[1]);
    let error = open(&sealed, &old.identities())
        .err()
        .expect("the old key is no recipient any more");
    assert!(error.to_string().contains(&new.recipient), "{error}");
    let mut identities = old.identities();
    identities.add(&new.identity).unwrap();
    assert_eq!(
        open(&sealed, &identities)
            .map_err(|error| error.to_string())
            .unwrap()
            .value()["stringData"],
        json!({"password": "open-sesame"})
    );
}

#[test]
fn a_document_of_a_file_with_several_says_that_it_needs_its_own() {
    let keeper = Keeper::new("sops-several");
    let text = format!("{}---\n{}", DOCUMENTS[0], DOCUMENTS[1].replace("!!str 7", "c"));
    let sealed = keeper.encrypt(&text);
    let first = sealed.split("\n---\n").next().unwrap();
    let error = open(first, &keeper.identities())
        .err()
        .expect("its MAC is over the other one too");
    assert!(error.to_string().contains("needs a file of its own"), "{error}");
}
