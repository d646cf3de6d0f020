//! What a Secret holds reaches its cluster and nothing else.

use flotilla_tests::{Flotilla, eventually, pool};

use super::support::*;
use crate::sops::Keeper;

const FIRST: &str = "open-sesame-4711";
const SECOND: &str = "close-sesame-1174";

fn secret(value: &str) -> String {
    format!("apiVersion: v1\nkind: Secret\nmetadata: {{namespace: shop, name: safe}}\nstringData: {{word: {value}}}\n")
}

/// Both values as written and as the API server has them.
fn spellings() -> Vec<String> {
    use base64::Engine as _;
    let spell = |value: &&str| {
        [
            (*value).to_owned(),
            base64::engine::general_purpose::STANDARD.encode(value),
        ]
    };
    [FIRST, SECOND].iter().flat_map(spell).collect()
}

#[track_caller]
fn assert_silent(what: &str, text: &str) {
    for spelling in spellings() {
        assert!(!text.contains(&spelling), "{what} has the value of a Secret:\n{text}");
    }
}

/// What `flotilla plan` prints on both streams and in both forms, for the work clone's HEAD.
fn plans(fleet: &Fleet) -> String {
    fleet.repository.git(&["fetch", "--quiet"]);
    let clone = fleet.repository.work().display().to_string();
    let plan = |form| Flotilla::run(&["plan", "--repository", &clone, "-o", form]);
    let texts = ["text", "json"].map(|form| {
        let output = plan(form);
        output.stdout + &output.stderr
    });
    texts.concat()
}

/// All that every ref but `main`, which people write, ever held.
fn refs(fleet: &Fleet) -> String {
    let listed = fleet
        .repository
        .git_bare(&["for-each-ref", "--format=%(refname)"])
        .expect_ok();
    let own: Vec<_> = listed.lines().filter(|name| *name != "refs/heads/main").collect();
    assert!(own.len() >= 2, "rendered and released are there: {own:?}");
    fleet
        .repository
        .git_bare(&[&["log", "--patch", "--format=%B"], &own[..]].concat())
        .expect_ok()
}

#[test]
fn a_plaintext_secret_is_refused_and_shown_nowhere() {
    let fleet = Fleet::start_in_use();
    fleet.push(
        "Put a word in the open",
        &[
            ("feeds/web/safe.yaml", &secret(FIRST)),
            ("feeds/web/greeting.yaml", &config_map("shop", "greeting", "hi")),
            ("feeds/office/rules.yaml", &config_map("office", "rules", "one")),
        ],
    );
    fleet.until_text(&pool::NAMES, RULES, "one");
    for cluster in pool::NAMES {
        assert_eq!(
            fleet.text(cluster, GREETING).as_deref(),
            Some("hello"),
            "the unit keeps what it had"
        );
        assert!(!fleet.cluster(cluster).has("shop", "secret/safe"));
    }
    let plan = plan_json(&fleet.repository);
    assert!(reasons(&plan).contains(&"PlaintextSecret".to_owned()), "{plan:#}");
    assert_silent("a plan", &plans(&fleet));
    assert_silent("a ref", &refs(&fleet));
    assert_silent("a log", &fleet.logs());
}

#[test]
fn an_allowed_plaintext_secret_is_delivered_and_neither_logged_nor_planned() {
    let fleet = Fleet::start_in_use();
    let warn = FLEET.replace("{approval: none}", "{approval: none, plaintextSecrets: warn}");
    fleet.push(
        "Put a word in the open, knowingly",
        &[("fleet.yaml", &warn), ("feeds/web/safe.yaml", &secret(FIRST))],
    );
    until_word(&fleet, FIRST);
    fleet.repository.write("feeds/web/safe.yaml", secret(SECOND));
    fleet.repository.commit("Change the word");
    let plans = plans(&fleet);
    assert!(
        plans.contains("Secret shop/safe"),
        "the change itself is shown: {plans}"
    );
    assert_silent("a plan", &plans);
    fleet.repository.push();
    until_word(&fleet, SECOND);
    assert_silent("a log", &fleet.logs());
}

#[track_caller]
fn until_word(fleet: &Fleet, value: &str) {
    use base64::Engine as _;
    let expected = base64::engine::general_purpose::STANDARD.encode(value);
    for cluster in pool::NAMES {
        // Not by `until_field`, which names what it finds.
        eventually(LIMIT, "the word arrives", || {
            let found = fleet.cluster(cluster).get("shop", "secret/safe")?;
            (found["data"]["word"] == *expected)
                .then_some(())
                .ok_or_else(|| "another word".to_owned())
        });
    }
}

/// What no output may hold: of a Secret in plain text, a sealed one, three that the API server refuses, one in a conflict,
/// a value that somebody writes by hand, and values of a chart.
const CANARIES: [&str; 7] = [
    "canary-plain-5810",
    "canary-sealed-5811",
    "canary-refused-5812",
    "canary-immutable-5813",
    "canary-conflict-5814",
    "canary-by-hand-5815",
    "canary-chart-5816",
];

fn named(name: &str, more: &str, value: &str) -> String {
    format!(
        "apiVersion: v1\nkind: Secret\nmetadata: {{namespace: shop, name: {name}}}\n{more}stringData: {{word: {value}}}\n"
    )
}

#[track_caller]
fn assert_no_canary(what: &str, text: &str, canaries: &[&str]) {
    assert!(!text.is_empty(), "{what} says something");
    for canary in canaries {
        for spelling in [(*canary).to_owned(), encoded(canary)] {
            let line = text.lines().find(|line| line.contains(&spelling));
            assert!(line.is_none(), "{what} tells {spelling}: {}", line.unwrap_or_default());
        }
    }
}

/// As the API server has it.
fn encoded(value: &str) -> String {
    use base64::Engine as _;
    base64::engine::general_purpose::STANDARD.encode(value)
}

/// What the hub's API answers at a path, as it stands on the wire.
#[track_caller]
fn answered(fleet: &Fleet, path: &str) -> String {
    use std::io::{Read as _, Write as _};
    let address = fleet.api();
    let address = address.trim_start_matches("http://");
    let mut stream = std::net::TcpStream::connect(address).expect("the hub's API listens");
    stream.set_read_timeout(Some(LIMIT)).expect("a socket has timeouts");
    write!(
        stream,
        "GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n"
    )
    .expect("it reads");
    let mut text = Vec::new();
    stream.read_to_end(&mut text).expect("it answers");
    let text = String::from_utf8_lossy(&text).into_owned();
    assert!(text.starts_with("HTTP/1.1 200"), "{path}: {text}");
    text
}

/// What a command says on both streams.
fn said(arguments: &[&str]) -> String {
    let output = Flotilla::run(arguments);
    output.stdout + &output.stderr
}

/// Everything that hub and command line show of the fleet.
fn shown(fleet: &Fleet) -> String {
    let (api, clone) = (fleet.api(), fleet.repository.work().display().to_string());
    fleet.repository.git(&["fetch", "--quiet"]);
    let mut text = String::new();
    for kind in [
        "fleets",
        "clusters",
        "subscriptions",
        "placements",
        "findings",
        "descriptions",
        "suspensions",
    ] {
        for form in ["yaml", "wide"] {
            text += &said(&["get", kind, "-A", "-o", form, "--server", &api]);
        }
    }
    text += &answered(fleet, "/metrics");
    let group = "/apis/fleet.flotilla.dev/v1alpha1";
    let served: serde_json::Value = {
        let answer = answered(fleet, group);
        let body = answer.split_once("\r\n\r\n").map_or("", |(_, body)| body);
        serde_json::from_str(body).expect("the hub says what it serves")
    };
    let kinds = served["resources"].as_array().expect("a list of kinds");
    assert!(kinds.len() >= 7, "{served}");
    for name in kinds
        .iter()
        .filter_map(|kind| kind["name"].as_str())
        .filter(|name| !name.contains('/'))
    {
        text += &answered(fleet, &format!("{group}/{name}"));
    }
    for arguments in [
        &["status", "--server", &api][..],
        &["status", "-o", "json", "--server", &api],
        &["explain", "shop/web", "--server", &api],
        &["explain", "shop/web", "-o", "json", "--server", &api],
        &["plan", "--repository", &clone],
        &["plan", "--repository", &clone, "-o", "json"],
        &["plan", "--repository", &clone, "-o", "markdown"],
        &["diff", "--repository", &clone],
        &["drift", "--server", &api],
        &["drift", "-o", "json", "--server", &api],
        &["verify", "--repository", &clone],
    ] {
        text += &said(arguments);
    }
    text
}

#[test]
fn no_value_of_a_secret_is_in_any_output_whatever_becomes_of_it() {
    let [plain, sealed, refused, immutable, conflict, by_hand, chart] = CANARIES;
    let mut fleet = Fleet::prepare();
    let keeper = Keeper::new("canary");
    for name in pool::NAMES {
        let cluster = fleet.cluster(name);
        cluster.apply(&namespace("flotilla-system"));
        cluster.apply(&namespace("shop"));
        let keys = serde_json::json!({"apiVersion": "v1", "kind": "Secret", "stringData": {"a.agekey": keeper.identity},
            "metadata": {"name": "sops-age", "namespace": "flotilla-system"}});
        cluster.apply(&keys.to_string());
    }
    fleet.start_hub(&["--log", "trace"]);
    pool::NAMES
        .iter()
        .for_each(|name| fleet.start_agent_with(name, &["--log", "trace"]));
    let warn = FLEET.replace("{approval: none}", "{approval: none, plaintextSecrets: warn}");
    let chart = format!(
        "apiVersion: fleet.flotilla.dev/v1alpha1\nkind: HelmChart\nmetadata: {{namespace: shop, name: release}}\n\
         spec: {{repo: 'https://charts.example.com', chart: web, version: '1', targetNamespace: shop, values: {{word: {chart}}}}}\n"
    );
    let files = [
        ("fleet.yaml", warn),
        ("subscriptions/shop/web.yaml", subscription("shop", "web")),
        ("feeds/web/plain.yaml", named("plain", "", plain)),
        ("feeds/web/sealed.yaml", keeper.encrypt(&named("safe", "", sealed))),
        (
            "feeds/web/refused.yaml",
            named("refused", "type: kubernetes.io/tls\n", refused),
        ),
        (
            "feeds/web/immutable.yaml",
            named("fixed", "immutable: true\n", immutable),
        ),
        ("feeds/web/disputed.yaml", named("disputed", "", "nobody-minds")),
        ("feeds/web/chart.yaml", chart),
    ];
    let files: Vec<_> = files.iter().map(|(path, text)| (*path, text.as_str())).collect();
    fleet.push("Bring every kind of Secret", &files);
    until_word(&fleet, sealed);
    for name in pool::NAMES {
        eventually(LIMIT, "the other one arrives", || {
            fleet.cluster(name).get("shop", "secret/disputed")
        });
        // Somebody else's from now on, and what Git says of it later is refused.
        let patch = ["patch", "secret", "disputed", "-n", "shop", "--type=merge", "-p"];
        let theirs = r#"{"stringData": {"other": "somebody-elses"}}"#;
        fleet
            .cluster(name)
            .kubectl(&[&patch[..], &[theirs]].concat())
            .expect_ok();
    }
    let changed = named("fixed", "immutable: true\n", &format!("{immutable}-changed"));
    let claim = format!("data: {{other: {}}}\n", encoded(conflict));
    let claimed = named("disputed", &claim, "nobody-minds");
    let files = [
        ("feeds/web/immutable.yaml", changed.as_str()),
        ("feeds/web/disputed.yaml", &claimed),
    ];
    fleet.push("Change what cannot change, and claim what is another's", &files);
    for name in pool::NAMES {
        let patch = format!(r#"{{"stringData": {{"word": "{by_hand}"}}}}"#);
        let patch = ["patch", "secret", "plain", "-n", "shop", "--type=merge", "-p", &patch];
        fleet.cluster(name).kubectl(&patch).expect_ok();
    }
    eventually(LIMIT, "the refusals are told", || {
        let placements = said(&["get", "placements", "-A", "-o", "yaml", "--server", &fleet.api()]);
        let told = ["immutable", "tls", "disputed"]
            .into_iter()
            .all(|word| placements.contains(word));
        told.then_some(()).ok_or_else(|| placements.replace("canary", "******"))
    });

    assert_no_canary("what is shown", &shown(&fleet), &CANARIES);
    assert_no_canary("a log at level trace", &fleet.logs(), &CANARIES);
    // Plain text was allowed, and so stands in the refs; what is sealed does not.
    assert_no_canary("a ref", &refs(&fleet), &[sealed]);
    for name in pool::NAMES {
        let cluster = fleet.cluster(name);
        let kept = cluster
            .kubectl(&["get", "configmaps,leases", "-n", "flotilla-system", "-o", "yaml"])
            .expect_ok();
        assert_no_canary("what an applier remembers", &kept, &CANARIES);
        let events = cluster.kubectl(&["get", "events", "-A", "-o", "yaml"]).expect_ok();
        assert_no_canary("an event", &events, &CANARIES);
        let journal = std::path::PathBuf::from(fleet.journal(name)).join("contents");
        for file in std::fs::read_dir(journal).unwrap() {
            let text = std::fs::read_to_string(file.unwrap().path()).unwrap();
            assert_no_canary("a journal", &text, &[sealed]);
        }
    }
}
