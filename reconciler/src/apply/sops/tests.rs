use serde_json::{Value, json};

use super::*;
use crate::limits::AGE_IDENTITIES_MAX;

/// Written by sops 3.13.3 for the key below.
const DOCUMENT: &str = include_str!("testdata/secret.yaml");

/// Opens the document above and nothing else in the world.
const KEY: &str =
    "# created by age-keygen\nAGE-SECRET-KEY-158VGX49CCG79KC2RLQAZUVDLQCANE9RKD96RDYZV99EGKANSPVSQZ9GEWY\n";

/// Another key.
const OTHER: &str = "AGE-SECRET-KEY-1GQ9778VQXMMJVE8SK7J6VT8UJ4HDQAJUVSFCWCM02D8GEWQ72PVQ2Y5J33";

fn identities(texts: &[&str]) -> Identities {
    let mut identities = Identities::default();
    for text in texts {
        identities.add(text).expect("they are age identities");
    }
    identities
}

#[track_caller]
fn check_refused(document: &str, texts: &[&str], message: &str) {
    let error = open(document, &identities(texts)).err().expect("it is refused");
    let said = format!("{error} {error:?}");
    assert!(said.contains(message), "{said}");
    assert!(!said.contains("hunter2") && !said.contains("SECRET-KEY"), "{said}");
}

fn changed(from: &str, to: &str) -> String {
    assert!(DOCUMENT.contains(from), "{from} stands in the document");
    DOCUMENT.replacen(from, to, 1)
}

#[test]
fn a_document_of_sops_opens_with_its_key() {
    let opened = open(DOCUMENT, &identities(&[OTHER, KEY])).expect("one of the keys is its recipient");
    let expected = json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": {"name": "db", "namespace": "shop"},
        "stringData": {"password": "hunter2", "empty": "", "port": 5432, "ratio": 1.5, "open": true, "off": "no",
            "none": null, "lines": "one ü\ntwo\n", "list": ["a", {"b": "c"}]},
    });
    assert_eq!(*opened.value(), expected);
}

#[test]
fn without_its_key_the_recipient_is_named() {
    check_refused(
        DOCUMENT,
        &[OTHER],
        "none of the 1 age keys at hand opens it; it is encrypted for age1",
    );
    check_refused(DOCUMENT, &[], "none of the 0 age keys at hand");
}

#[test]
fn whatever_was_changed_is_refused() {
    check_refused(
        &changed("namespace: shop", "namespace: bank"),
        &[KEY],
        "its MAC does not fit",
    );
    check_refused(
        &changed("empty: \"\"", "empty: hunter2"),
        &[KEY],
        "the value at stringData.empty",
    );
    check_refused(
        &changed("password: ENC", "passwort: ENC"),
        &[KEY],
        "the value at stringData.passwort",
    );
    check_refused(
        &changed("kind: Secret", "kind: Secret\nmore: x"),
        &[KEY],
        "its MAC does not fit",
    );
    check_refused(
        &changed("lastmodified: \"2", "lastmodified: \"3"),
        &[KEY],
        "its MAC does not fit",
    );
    check_refused(
        &changed("^(data|stringData)$", "^data$"),
        &[KEY],
        "its MAC does not fit",
    );
    check_refused(&changed("BEGIN AGE", "BEGIN"), &[KEY], "the data key for age1");
}

#[test]
fn other_keys_than_ages_are_named() {
    let age = DOCUMENT.find("    age:\n").expect("it has age recipients");
    let end = DOCUMENT.find("    lastmodified").expect("and a time after them");
    let with = |section: &str| format!("{}{section}{}", &DOCUMENT[..age], &DOCUMENT[end..]);
    let kms = "    kms: [{arn: a, enc: b}]\n    pgp: [{fp: a, enc: b}]\n";
    check_refused(
        &with(kms),
        &[KEY],
        "it is encrypted for PGP and AWS KMS and for no age recipient",
    );
    check_refused(&with(""), &[KEY], "it is encrypted for nobody");
    check_refused(&with("    age: [1]\n"), &[KEY], "its sops section is damaged at age");
    check_refused(
        &with("    key_groups: [{age: []}]\n"),
        &[KEY],
        "divided between key groups",
    );
    check_refused(
        &changed("sops:\n", "sops:\n    shamir_threshold: 2\n"),
        &[KEY],
        "divided between key groups",
    );
}

#[test]
fn a_rule_that_says_too_much_or_nothing_is_refused() {
    let add = |rule: &str| changed("sops:\n", &format!("sops:\n    {rule}\n"));
    check_refused(
        &add("encrypted_suffix: _x"),
        &[KEY],
        "encrypted_suffix and encrypted_regex at once",
    );
    check_refused(
        &changed("^(data|stringData)$", "("),
        &[KEY],
        "encrypted_regex is no regular expression",
    );
    let comments = changed(
        "encrypted_regex: ^(data|stringData)$",
        "encrypted_comment_regex: x\n    mac_only_encrypted: true",
    );
    check_refused(&comments, &[KEY], "mac_only_encrypted with a rule for comments");
}

#[test]
fn a_key_file_with_something_else_is_told_by_its_line() {
    let said = |text: &str| Identities::default().add(text).err().map(|error| error.to_string());
    assert_eq!(said("# a comment\n\n"), None);
    let wrong = said(&format!("{KEY}hunter2\n")).expect("it is no identity");
    assert_eq!(wrong, "line 3 is no age identity (AGE-SECRET-KEY-1…), and no comment");
    let many = format!("{KEY}\n").repeat(AGE_IDENTITIES_MAX + 1);
    assert!(said(&many).is_some_and(|words| words.contains("more than")));
}

#[test]
fn numbers_are_in_the_mac_as_sops_writes_them() {
    let cases = [
        (json!(1.5), "1.5"),
        (json!(1e21), "1000000000000000000000"),
        (json!(0.000_001), "0.000001"),
        (json!(-3), "-3"),
        (json!(true), "True"),
        (json!("x"), "x"),
        (Value::Null, ""),
    ];
    for (value, text) in cases {
        assert_eq!(walk::mac_text(&value), text);
    }
}
