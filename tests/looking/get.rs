//! `flotilla get`: names, forms, watches and failures.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::time::Duration;

use flotilla_tests::flotilla::flotilla;
use flotilla_tests::{Child, Output, eventually, scratch};
use serde_json::Value;

use crate::kubectl::Hub;

const LIMIT: Duration = Duration::from_secs(60);

#[test]
fn every_form_of_get_is_what_a_script_expects() {
    let hub = Hub::start();
    let all = hub.flotilla(&["get", "all"]).expect_ok();
    for part in [
        "subscription.fleet.flotilla.dev/web",
        "placement.fleet.flotilla.dev/web.a",
        "managedcluster.fleet.flotilla.dev/a",
        "fleet.fleet.flotilla.dev/fleet",
    ] {
        assert!(all.contains(part), "{part} is missing in\n{all}");
    }
    // JSON is JSON, also where nothing is found.
    for arguments in [
        &["get", "all", "-o", "json"][..],
        &["get", "sub,place", "-o", "json"],
        &["get", "findings", "-o", "json"],
        &["get", "sub", "shop/web", "-o", "json"],
        &["get", "sub", "-l", "nothing=here", "-o", "json"],
    ] {
        let text = hub.flotilla(arguments).expect_ok();
        let value: Value = serde_json::from_str(&text).unwrap_or_else(|error| panic!("{arguments:?}: {error}\n{text}"));
        assert!(value["kind"].is_string(), "{arguments:?}: {text}");
    }
    let empty = hub.flotilla(&["get", "findings"]);
    assert_eq!((empty.code(), empty.stdout.as_str()), (Some(0), ""), "{empty:?}");
    assert_eq!(empty.stderr, "No findings found.\n");
    assert_eq!(
        hub.flotilla(&["get", "sub", "-n", "elsewhere", "-o", "name"])
            .expect_ok(),
        "",
        "a namespace narrows"
    );
}

#[test]
fn what_is_not_there_is_said_with_what_may_be_meant() {
    let hub = Hub::start();
    let check = |arguments: &[&str], code: i32, words: &[&str]| {
        let output = hub.flotilla(arguments);
        assert_eq!(output.code(), Some(code), "{output:?}");
        assert_eq!(output.stdout, "", "nothing but the result is on stdout: {output:?}");
        for word in words {
            assert!(output.stderr.contains(word), "{word:?} is missing in {output:?}");
        }
    };
    check(
        &["get", "sub", "wbe"],
        1,
        &["subscriptions \"wbe\" not found", "did you mean \"web\"?"],
    );
    check(
        &["get", "sub", "database"],
        1,
        &["not found", "flotilla get subscriptions"],
    );
    check(
        &["get", "subscritpions"],
        64,
        &["did you mean subscriptions?", "placements"],
    );
    check(&["get", "sub", "-l", "a in b"], 1, &["label selector"]);
    check(&["get", "all", "web"], 64, &["several"]);
    check(&["get", "sub", "--log", "inof"], 64, &["inof", "debug"]);
    check(&["get", "sub", "--timeout", "0"], 64, &["--timeout"]);
}

/// Whoever answers on a port with these bytes, to every caller, and then waits or hangs up.
fn answers(bytes: &'static [u8], hang_up: bool) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
    let address = listener.local_addr().expect("it is bound");
    std::thread::spawn(move || {
        let mut open = Vec::new();
        for mut stream in listener.incoming().flatten() {
            let _asked = stream.read(&mut [0; 4_096]);
            let _answered = stream.write_all(bytes);
            if !hang_up {
                open.push(stream);
            }
        }
    });
    format!("http://{address}")
}

#[test]
fn every_outage_has_its_words_and_none_looks_like_an_answer() {
    let check = |arguments: &[&str], server: &str, words: &[&str]| {
        let output = Output::of(flotilla().args(arguments).args(["--server", server, "--timeout", "1"]));
        assert_eq!(output.code(), Some(69), "{output:?}");
        assert_eq!(output.stdout, "", "{output:?}");
        for word in [words, &["error: ", "hint: ", server]].concat() {
            assert!(output.stderr.contains(word), "{word:?} is missing in {output:?}");
        }
        assert!(!output.stderr.contains("panicked"), "{output:?}");
    };
    let nobody = format!("http://127.0.0.1:{}", flotilla_tests::ports::free());
    let silent = answers(b"", false);
    let page = answers(b"HTTP/1.1 200 OK\r\ncontent-length: 6\r\n\r\n<html>", true);
    let missing = answers(b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n", true);
    // What a TLS server says to somebody who does not speak it.
    let tls = answers(b"\x15\x03\x03\x00\x02\x02\x46", true);
    for command in [&["get", "subscriptions"][..], &["status"]] {
        check(command, &nobody, &["no hub answers", "flotilla hub"]);
        check(command, "unix:/nowhere/hub.sock", &["no hub answers"]);
        check(command, &silent, &["no answer within 1 s"]);
        check(command, &page, &["is no hub", "--api"]);
        check(command, &missing, &["is no hub", "404"]);
        check(command, &tls, &["is no hub", "TLS"]);
    }
    let wrong = Output::of(flotilla().args(["get", "sub", "--server", "https://127.0.0.1:7070"]));
    assert_eq!(wrong.code(), Some(64), "{wrong:?}");
    assert!(wrong.stderr.contains("http://HOST:PORT"), "{wrong:?}");
}

#[test]
fn a_watch_outlives_its_hub_and_shows_what_came_after() {
    let mut hub = Hub::start();
    let mut command = flotilla();
    command.args(["get", "descriptions", "-o", "json", "--watch", "--server", &hub.server]);
    let mut watch = Child::start("watch", &scratch::folder("watch"), &mut command);
    eventually(LIMIT, "the first list", || shows(&watch, "web.default"));
    hub.kill();
    eventually(LIMIT, "a word about the outage", || shows(&watch, "trying again"));
    hub.restart();
    let head = hub.repository.push_files("two", &[("feeds/more.yaml", MORE)]);
    eventually(LIMIT, "what was pushed after", || shows(&watch, &head));
    watch.assert_running();
    assert_eq!(watch.log().matches("trying again").count(), 1, "{}", watch.log());
}

#[test]
fn a_watch_goes_on_when_its_hub_dies_between_the_list_and_the_watch() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
    let server = format!("http://{}", listener.local_addr().expect("it is bound"));
    // It says its kinds and answers the list, and hangs up on whoever watches.
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let mut asked = [0; 4_096];
            let count = stream.read(&mut asked).unwrap_or_default();
            let asked = String::from_utf8_lossy(&asked[..count]);
            let body = match asked.split_whitespace().nth(1).unwrap_or_default() {
                "/apis/fleet.flotilla.dev/v1alpha1" => KINDS,
                path if path.contains("watch=true") => continue,
                _ => LIST,
            };
            let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n", body.len());
            let _answered = stream.write_all(format!("{head}{body}").as_bytes());
        }
    });
    let mut command = flotilla();
    command.args(["get", "descriptions", "-o", "json", "--watch", "--server", &server]);
    let mut watch = Child::start("watch", &scratch::folder("watch-cut"), &mut command);
    eventually(LIMIT, "a word about the outage", || shows(&watch, "trying again"));
    watch.assert_running();
    assert!(watch.log().contains("was lost"), "{}", watch.log());
}

const KINDS: &str = r#"{"kind": "APIResourceList", "groupVersion": "fleet.flotilla.dev/v1alpha1", "resources": [
    {"name": "descriptions", "singularName": "description", "kind": "Description", "namespaced": true, "verbs": ["list"]}]}"#;

const LIST: &str = r#"{"kind": "DescriptionList", "apiVersion": "fleet.flotilla.dev/v1alpha1",
    "metadata": {"resourceVersion": "1"}, "items": []}"#;

const MORE: &str = "\
apiVersion: v1
kind: ConfigMap
metadata: {name: more, namespace: shop}
";

fn shows(watch: &Child, word: &str) -> Result<(), String> {
    if watch.log().contains(word) {
        Ok(())
    } else {
        Err(watch.log())
    }
}
