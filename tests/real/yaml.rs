//! YAML that render writes and reads, judged by kubectl.

use flotilla_tests::{Output, parts, scratch};
use render::yaml;
use serde_json::{Value, json};

/// What kubectl makes of an object's YAML.
fn by_kubectl(text: &str) -> Value {
    let file = scratch::folder("yaml").join("object.yaml");
    std::fs::write(&file, text).unwrap();
    let mut command = parts::command("kubectl");
    command
        .args(["annotate", "--local", "by=kubectl", "-o", "json", "-f"])
        .arg(&file);
    serde_json::from_str(&Output::of(&mut command).expect_ok()).expect("kubectl writes JSON")
}

const WORDS: &[&str] = &[
    "yes",
    "Y",
    "n",
    "On",
    "off",
    "True",
    "null",
    "~",
    "",
    "012",
    "0o17",
    "0x1F",
    "0b101",
    "1_000",
    "12:30:45",
    "1e3",
    "706798e8",
    "0e12345",
    ".inf",
    ".nan",
    "2001-01-01",
    "=",
    "<<",
    "-",
    "1.0",
    "+1",
    "08",
    "a: b",
    "a #b",
    "#",
    "&a",
    "*a",
    "!x",
    "|",
    ">",
    "%",
    "@",
    "`",
    " lead",
    "trail ",
    "a\nb\n",
    "\na",
    "a\u{1}b\u{1b}\u{85}\u{2028}\u{feff}z",
    "---",
    "{",
    "[",
    "\"",
    "'",
    "\\",
    "é😀",
];

#[test]
fn kubectl_reads_the_text_that_render_wrote() {
    let data: serde_json::Map<_, _> = WORDS
        .iter()
        .enumerate()
        .map(|(index, word)| (format!("k{index}"), Value::from(*word)))
        .collect();
    let keys: serde_json::Map<_, _> = WORDS
        .iter()
        .map(|word| ((*word).to_owned(), Value::from(*word)))
        .collect();
    let object = json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "words"}, "data": data, "extra": {"keys": keys},
    });
    let read = by_kubectl(&yaml::write(&object));
    assert_eq!(read["data"], object["data"]);
    assert_eq!(read["extra"], object["extra"]);
}

const SCALARS: &[&str] = &[
    "y",
    "yes",
    "off",
    "~",
    "null",
    "0644",
    "0o17",
    "0x1F",
    "-0x10",
    "0b101",
    "1_000",
    "1__0",
    "08",
    "0_8",
    "1:30",
    "1.0",
    ".5",
    "5.",
    ".5e3",
    "-0.0",
    "706798e8",
    "0e12345",
    "1e3",
    "1e21",
    "1e400",
    "0.1",
    "+5",
    "2001-01-01",
    "=",
    "!!str 12",
    "!!int \"12\"",
    "!!float 12",
    "!!binary aGVsbG8=",
    "!theirs 12",
    "-9223372036854775808",
];

#[test]
fn plain_scalars_are_what_kubectl_makes_of_them() {
    let mut text = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: scalars}\ndata:\n".to_owned();
    for (index, scalar) in SCALARS.iter().enumerate() {
        text.push_str(&format!("  k{index}: {scalar}\n"));
    }
    text.push_str("  1.5: a\n  1e10: b\n  0x1F: c\n  no: d\n");
    let ours = &yaml::read(&text).unwrap()[0].value["data"];
    let kubectls = &by_kubectl(&text)["data"];
    for (key, value) in kubectls.as_object().unwrap() {
        assert_eq!(&ours[key], value, "{key}");
    }
    assert_eq!(ours.as_object().unwrap().len(), kubectls.as_object().unwrap().len());
}
