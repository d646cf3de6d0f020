//! What a Secret holds reaches its cluster and nothing else.

use flotilla_tests::{Flotilla, eventually, pool};

use super::support::*;

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
