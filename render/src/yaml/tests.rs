use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

#[track_caller]
fn values(text: &str) -> Vec<Value> {
    let text = decode(text.as_bytes()).unwrap();
    read(&text)
        .unwrap()
        .into_iter()
        .map(|document| document.value)
        .collect()
}

#[track_caller]
fn check_scalar(text: &str, expected: Value) {
    assert_eq!(
        values(&format!("v: {text}\n")),
        [json!({ "v": expected })],
        "the plain scalar {text}"
    );
}

#[track_caller]
fn check_error(text: &str, line: u32, part: &str) {
    let error = decode(text.as_bytes()).and_then(|text| read(&text)).unwrap_err();
    assert!(error.message.contains(part), "{error} should say {part:?}");
    assert_eq!(error.line, line, "{error}");
}

#[test]
fn words_are_booleans_and_nulls_as_kubectl_reads_them() {
    for word in ["y", "Y", "yes", "Yes", "YES", "on", "On", "ON", "true", "True", "TRUE"] {
        check_scalar(word, json!(true));
    }
    for word in [
        "n", "N", "no", "No", "NO", "off", "Off", "OFF", "false", "False", "FALSE",
    ] {
        check_scalar(word, json!(false));
    }
    for word in ["", "~", "null", "Null", "NULL"] {
        check_scalar(word, Value::Null);
    }
    for word in [
        "yEs",
        "nope",
        "TrUe",
        "=",
        "nULL",
        "2001-01-01",
        "1:30",
        "12:30:45",
        "1.2.3",
        "v1",
        "0x",
        "1e400",
    ] {
        check_scalar(word, json!(word));
    }
}

#[test]
fn numbers_are_what_kubectl_makes_of_them() {
    check_scalar("0644", json!(420));
    check_scalar("0o17", json!(15));
    check_scalar("0x1F", json!(31));
    check_scalar("-0x10", json!(-16));
    check_scalar("0b101", json!(5));
    check_scalar("1_000", json!(1000));
    check_scalar("08", json!(8));
    check_scalar("0_8", json!(8));
    check_scalar("+5", json!(5));
    check_scalar("1.0", json!(1));
    check_scalar("5.", json!(5));
    check_scalar(".5", json!(0.5));
    check_scalar(".5e3", json!(500));
    check_scalar("-0.0", json!(0));
    check_scalar("1e3", json!(1000));
    check_scalar("706798e8", json!(70_679_800_000_000_i64));
    check_scalar("1e21", json!(1e21));
    check_scalar("9223372036854775807", json!(i64::MAX));
    check_scalar("-9223372036854775808", json!(i64::MIN));
    check_scalar("18446744073709551615", json!(u64::MAX));
}

#[test]
fn what_json_cannot_hold_is_refused_and_not_bent() {
    for word in [".inf", "-.INF", "+.Inf", ".NaN"] {
        check_error(&format!("a: 1\nv: {word}\n"), 2, "infinity");
    }
    check_error("v: 18446744073709551616\n", 1, "64 bits");
    check_error("v: -9223372036854775809\n", 1, "64 bits");
}

#[test]
fn tags_decide_as_kubectl_lets_them() {
    check_scalar("!!str 12", json!("12"));
    check_scalar("!!str true", json!("true"));
    check_scalar("!!int \"12\"", json!(12));
    check_scalar("!!bool yes", json!(true));
    check_scalar("!!binary aGVsbG8=", json!("hello"));
    check_scalar("!theirs 12", json!("12"));
    check_scalar("! 12", json!("12"));
    check_error("v: !!int x\n", 1, "!!int");
    check_error("v: !!binary /w==\n", 1, "!!binary");
}

#[test]
fn numbers_that_may_be_text_are_noted_with_their_own_text() {
    let noted = |text: &str| -> Vec<String> {
        let documents = read(text).unwrap();
        documents[0]
            .notes
            .iter()
            .map(|note| format!("{}:{}={}", note.line, note.field, note.text))
            .collect()
    };
    let text =
        "images:\n- newTag: 706798e8\n- newTag: 0e12345\n- newTag: 1_000\n- newTag: 089\nmode: 0644\nnum: 1.5e3\n";
    assert_eq!(
        noted(text),
        [
            "2:images[0].newTag=706798e8",
            "3:images[1].newTag=0e12345",
            "4:images[2].newTag=1_000",
            "5:images[3].newTag=089"
        ]
    );
    assert_eq!(
        noted("y: 1\nx: 2\n"),
        ["1:=y"],
        "a key that becomes another word is noted"
    );
}

#[test]
fn scalar_keys_become_their_text() {
    let text = "200: ok\n404: missing\n1.5: x\n1e10: big\ntrue: t\nno: f\n0x1F: h\n";
    let expected =
        json!({"200": "ok", "404": "missing", "1.5": "x", "1e+10": "big", "true": "t", "false": "f", "31": "h"});
    assert_eq!(values(text), [expected]);
    check_error("200: a\n\"200\": b\n", 2, "\"200\" stands twice");
    check_error("~: a\n", 1, "null is no key");
    check_error("? {a: b}\n: x\n", 1, "no key");
    check_error("? [c]\n: y\n", 1, "no key");
}

#[test]
fn a_repeated_key_is_refused_at_its_second_line() {
    check_error("a: 1\nb:\n  c: 1\n  d: 2\n  c: 3\n", 5, "\"c\" stands twice");
    check_error("{\"a\": 1,\n \"a\": 2}", 2, "\"a\" stands twice");
    check_error("a: 1\n---\nb: 1\nb: 2\n", 4, "\"b\" stands twice");
}

#[test]
fn separators_split_only_where_yaml_says_so() {
    assert_eq!(values("a: 1\n--- # two\na: 2\n---   \na: 3\n---\t\na: 4\n").len(), 4);
    assert_eq!(values("# only a comment\n"), [] as [Value; 0]);
    assert_eq!(values("---\na: 1\n---\n"), [json!({"a": 1})]);
    assert_eq!(values("--- ~\n---\n# x\n---\na: 1\n...\n---\nb: 2\n").len(), 2);
    assert_eq!(values("--- {a: 1}\n--- {a: 2}\n").len(), 2);
    let text = "a: |\n  ---\n  part\nb: |\n  -----BEGIN-----\n  QUJD\n";
    assert_eq!(
        values(text),
        [json!({"a": "---\npart\n", "b": "-----BEGIN-----\nQUJD\n"})]
    );
    check_error("a: 1\n--- junk\nb: 1\n", 3, "");
}

#[test]
fn lines_are_those_of_the_file() {
    let text = "# licence\n\n---\n# source\napiVersion: v1\n---\n\nkind: x\n";
    let lines: Vec<_> = read(text).unwrap().iter().map(|document| document.line).collect();
    assert_eq!(lines, [5, 8]);
    let json = "{\"a\": 1}\n\n{\"b\":\n 2}\n";
    let lines: Vec<_> = read(json).unwrap().iter().map(|document| document.line).collect();
    assert_eq!(lines, [1, 3]);
}

#[test]
fn a_document_knows_its_own_text() {
    let text = "# head\na: 1\n---\nb: 2 # two\n--- # three\nc: 3\n...\n";
    let documents = read(text).unwrap();
    let texts: Vec<_> = documents.iter().map(|document| &text[document.span.clone()]).collect();
    assert_eq!(texts, ["# head\na: 1\n", "b: 2 # two\n", "c: 3\n"]);
}

#[test]
fn every_field_has_a_place() {
    let text = "x: 1\n---\nspec:\n  feeds:\n  - name: a\n  - name: b\n    deep: {k: [1, 2]}\n";
    let documents = read(text).unwrap();
    let places = locate(text, &documents[1]);
    assert_eq!(places.find("spec.feeds[1].name"), Some((6, 5)));
    assert_eq!(places.find("spec.feeds[1].deep.k[1]"), Some((7, 19)));
    assert_eq!(
        places.find("spec.feeds[1].absent"),
        Some((6, 5)),
        "the nearest that is written"
    );
    assert_eq!(places.find("spec"), Some((3, 1)));
    assert_eq!(places.find("absent"), None);
}

#[test]
fn anchors_and_merge_keys_are_resolved() {
    let text = "base: &b {a: \"1\", b: \"1\"}\nuse: *b\nover:\n  a: \"9\"\n  <<: [*b, {b: \"2\", c: \"2\"}]\n";
    let expected = json!({
        "base": {"a": "1", "b": "1"}, "use": {"a": "1", "b": "1"}, "over": {"a": "9", "b": "1", "c": "2"}
    });
    assert_eq!(values(text), [expected]);
    assert_eq!(values("\"<<\": 1\n"), [json!({"<<": 1})], "a quoted merge key is text");
    check_error("a: &x 1\n---\nb: *x\n", 3, "unknown anchor");
    check_error("a: &x\n  b: *x\n", 2, "inside the node");
    check_error("a: {<<: 1}\n", 1, "merge key");
}

#[test]
fn aliases_and_nesting_have_limits() {
    let mut bomb = "a0: &a0 [w, w, w, w, w, w, w, w, w]\n".to_owned();
    for level in 1..10 {
        let uses = vec![format!("*a{}", level - 1); 9].join(", ");
        bomb.push_str(&format!("a{level}: &a{level} [{uses}]\n"));
    }
    let error = read(&bomb).unwrap_err();
    assert!(error.message.contains("aliases expand"), "{error}");
    let deep = format!("{}1{}", "[".repeat(64), "]".repeat(64));
    assert!(read(&deep).is_ok(), "64 levels are read");
    for levels in [65, 200, 10_000] {
        let deep = format!("{}1{}", "[".repeat(levels), "]".repeat(levels));
        assert!(read(&deep).is_err(), "{levels} levels are refused");
    }
    let by_alias = format!(
        "a: &a {}1{}\nb: {}*a{}\n",
        "[".repeat(40),
        "]".repeat(40),
        "[".repeat(40),
        "]".repeat(40)
    );
    check_error(&by_alias, 2, "nested deeper");
}

#[test]
fn encodings_other_than_utf8_are_named() {
    let utf16: Vec<u8> = "\u{feff}a: 1".encode_utf16().flat_map(u16::to_le_bytes).collect();
    let error = decode(&utf16).unwrap_err();
    assert!(error.message.contains("UTF-16"), "{error}");
    let error = decode(b"a: 1\nb: \xfc\n").unwrap_err();
    assert_eq!((error.line, error.column), (2, 4), "{error}");
    let error = decode(b"a: 1\nb: \x01\n").unwrap_err();
    assert!(error.message.contains("control character 0x01"), "{error}");
    assert_eq!(
        values("\u{feff}a: 1\n---\n\u{feff}b: 2\n"),
        [json!({"a": 1}), json!({"b": 2})]
    );
}

#[test]
fn line_endings_make_no_difference() {
    let text = "a: |-\n {\n   \"a\": 1\n }\nb: >\n x\n y\n---\nc: \"p\n  q\"\n";
    assert_eq!(values(&text.replace('\n', "\r\n")), values(text));
}

#[test]
fn json_is_read_with_tabs_and_surrogates_one_value_after_the_other() {
    assert_eq!(values("{\n\t\"a\": \"\\ud83d\\ude00\\/\"\n}"), [json!({"a": "😀/"})]);
    assert_eq!(values("{\"a\":1}{\"b\":2}\n{\"c\":3}").len(), 3);
    assert_eq!(
        values("{\"a\": 1,}"),
        [json!({"a": 1})],
        "a trailing comma is YAML's flow style"
    );
    assert_eq!(values("{a: b,\nc: d}"), [json!({"a": "b", "c": "d"})]);
    check_error("{\"a\":1}\n{\"b\":2,\n", 2, "");
}

#[test]
fn text_that_looks_like_a_variable_passes_unchanged() {
    let text = "run: |\n  echo ${HOME} $1 ${ARR[@]} ${X:-d} $$ \\. $)\nrev: \"${REV}\"\n";
    let expected = json!({"run": "echo ${HOME} $1 ${ARR[@]} ${X:-d} $$ \\. $)\n", "rev": "${REV}"});
    assert_eq!(values(text), [expected]);
}

const TREACHEROUS: &[&str] = &[
    "yes",
    "Y",
    "y",
    "n",
    "On",
    "off",
    "NO",
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
    "1:30",
    "1e3",
    "706798e8",
    "0e12345",
    ".inf",
    "-.INF",
    ".nan",
    "2001-01-01",
    "2001-01-01T00:00:00Z",
    "=",
    "<<",
    "-",
    "- dash",
    "1.0",
    "+1",
    "_1",
    "0_8",
    "08",
    ".dockercfg",
    "weird: key/with #hash",
    "a: b # c",
    "?",
    ":",
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
    "a\nb",
    "a\n",
    "\na",
    "a\r\nb",
    "a\u{1}b\u{1b}[0m\u{85}\u{2028}\u{feff}z",
    "a\u{0}b",
    "\t",
    "a\tb",
    "---",
    "...",
    "--- a",
    "{}",
    "[]",
    "{a",
    "\"",
    "'",
    "it's",
    "\\",
    "é",
    "😀",
    "\u{7f}",
    "a\n  b\n c\n\n\n",
    " \n",
    "\n",
    "  a\nb",
    "#",
    "a #b",
    "a:",
    "a: ",
    "-1",
    "1.",
    ".5",
    "0.",
    "1e400",
    "99999999999999999999",
];

#[test]
fn treacherous_strings_are_written_so_that_they_read_back_as_text() {
    for text in TREACHEROUS {
        let value = json!({"kind": text, (*text): [text, {"k": text}], "apiVersion": {"deep": {"er": text}}});
        let written = write(&value);
        assert_eq!(
            read(&written).map(|documents| documents[0].value.clone()),
            Ok(value),
            "{text:?} in\n{written}"
        );
    }
}

#[test]
fn what_identifies_an_object_is_written_first() {
    let value = json!({"spec": {"b": 1, "a": [{"y": "y"}]}, "metadata": {"name": "my-n"}, "kind": "K", "apiVersion": "v1", "data": {}});
    let expected =
        "apiVersion: v1\nkind: K\nmetadata:\n  name: my-n\ndata: {}\nspec:\n  a:\n  - \"y\": \"y\"\n  b: 1\n";
    assert_eq!(write(&value).replace('\'', "\""), expected);
}

fn any_text() -> impl Strategy<Value = String> {
    prop_oneof![
        prop::sample::select(TREACHEROUS).prop_map(str::to_owned),
        any::<String>(),
        "[-+0-9_.eExobn: #'\"\\\\\n\t]{0,12}",
        "[a-z \n]{0,200}",
    ]
}

fn any_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<f64>()
            .prop_filter("finite and not whole", |f| f.is_finite() && f.fract() != 0.0)
            .prop_map(Value::from),
        any_text().prop_map(Value::from),
    ];
    leaf.prop_recursive(5, 40, 5, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            prop::collection::btree_map(any_text(), inner, 0..5).prop_map(|map| map.into_iter().collect()),
        ]
    })
}

proptest! {
    #[test]
    fn what_is_written_reads_back_equal(value in any_value()) {
        let value = json!({"apiVersion": "v1", "v": value});
        let written = write(&value);
        let back = read(&written).map(|documents| documents[0].value.clone());
        prop_assert_eq!(back, Ok(value), "{}", written);
    }

    #[test]
    fn no_text_stops_the_reader(text in any::<String>(), bytes in prop::collection::vec(any::<u8>(), 0..64)) {
        let _ = decode(&bytes).and_then(|text| read(&text));
        let _ = read(&text);
    }

    #[test]
    fn no_yaml_like_text_stops_the_reader(text in "[-a-c:&*<>|?{},\\[\\] \n\t#'\"!%~0-9e.]{0,60}") {
        if let Ok(documents) = read(&text) {
            for document in documents {
                let _ = locate(&text, &document);
            }
        }
    }
}
