//! `git http-backend` behind TLS.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::time::Duration;

use flotilla_tests::git_host::{Web, WebOptions};
use flotilla_tests::{Repository, eventually, pool};

use super::super::support::{Fleet, GREETING, LIMIT, config_map};
use super::support::{Hub, greet, repository, until_released};

const TOKEN: &str = "hunter2-a-token";

fn web(repository: &Repository, options: WebOptions) -> Web {
    Web::start(folder(repository), options)
}

fn folder(repository: &Repository) -> &Path {
    repository.bare().parent().expect("it is in a folder")
}

fn private() -> WebOptions {
    WebOptions {
        login: Some(("flotilla".to_owned(), TOKEN.to_owned())),
        ..WebOptions::default()
    }
}

fn credentials(hub: &Hub, token: &str) -> String {
    let file = hub.path("token");
    fs::write(&file, format!("username=flotilla\npassword={token}\n")).expect("the scratch folder is writable");
    fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).expect("it is ours");
    file
}

#[test]
fn a_push_over_https_reaches_three_clusters() {
    let mut fleet = Fleet::prepare();
    let web = web(&fleet.repository, WebOptions::default());
    let copy = fleet.folder().join("copy.git").display().to_string();
    let flags = ["--git-ca", &web.ca(), "--copy", &copy, "--poll-seconds", "1"];
    fleet.start_hub_of(&web.url("fleet.git"), &flags);
    pool::NAMES.iter().for_each(|name| fleet.start_agent(name));
    fleet.open_for_use();
    let greeting = config_map(GREETING.0, GREETING.1, "hello over https");
    let commit = fleet.push("Greet", &[("feeds/web/greeting.yaml", &greeting)]);
    fleet.until_text(&pool::NAMES, GREETING, "hello over https");
    fleet.until_released(&commit);
    // Another hub of the same copy is told no; one that starts again goes on.
    fleet.kill_hub();
    fleet.start_hub_of(&web.url("fleet.git"), &flags);
    let greeting = config_map(GREETING.0, GREETING.1, "and again");
    fleet.push("Greet again", &[("feeds/web/greeting.yaml", &greeting)]);
    fleet.until_text(&pool::NAMES, GREETING, "and again");
}

#[test]
fn a_token_opens_a_private_repository_and_is_seen_by_nobody_else() {
    let repository = repository();
    let (web, mut hub) = (web(&repository, private()), Hub::new());
    let ca = web.ca();
    let url = web.url("fleet.git");

    hub.start(&url, &["--git-ca", &ca]);
    let said = hub.until_within(Duration::from_secs(10), "RemoteReached", "AuthenticationFailed");
    assert!(said.starts_with(&format!("authentication failed for {url}")), "{said}");
    assert!(said.contains("--git-credentials"), "{said}");

    let wrong = credentials(&hub, "hunter2-is-wrong");
    hub.start(&url, &["--git-ca", &ca, "--git-credentials", &wrong]);
    hub.until_within(Duration::from_secs(10), "RemoteReached", "AuthenticationFailed");

    // The file is read whenever the host asks: a token is replaced without a restart.
    let right = credentials(&hub, TOKEN);
    hub.until("RemoteReached", "Fetched");
    let commit = greet(&repository, "hello with a token");
    until_released(&repository, &commit);
    hub.until("StatePushed", "Pushed");

    // Another host that the first one names is told nothing, though it asks.
    let elsewhere = self::web(&repository, private());
    web.change(|options| options.redirect_to = Some(elsewhere.url("fleet.git")));
    hub.until("RemoteReached", "CertificateInvalid");
    hub.start(
        &url,
        &["--git-ca", &both(&hub, &web, &elsewhere), "--git-credentials", &right],
    );
    eventually(LIMIT, "the other host is asked", || {
        let asked = !elsewhere.authorizations().is_empty();
        asked.then_some(()).ok_or_else(|| "not yet".to_owned())
    });
    hub.until("RemoteReached", "AuthenticationFailed");
    let told: Vec<_> = elsewhere.authorizations().into_iter().flatten().collect();
    assert!(told.is_empty(), "the host that was redirected to heard {told:?}");
    let everything = format!("{}{}{:?}", hub.log(), hub.status(), hub.fleet());
    assert!(!everything.contains("hunter2"), "{everything}");
}

fn both(hub: &Hub, one: &Web, other: &Web) -> String {
    let (file, read) = (hub.path("both.pem"), |web: &Web| {
        fs::read_to_string(web.ca()).expect("written")
    });
    fs::write(&file, format!("{}{}", read(one), read(other))).expect("the scratch folder is writable");
    file
}

#[test]
fn a_host_that_cannot_be_trusted_or_reached_is_a_named_state() {
    let repository = repository();
    let (web, mut hub) = (web(&repository, WebOptions::default()), Hub::new());
    let ca = web.ca();
    let url = web.url("fleet.git");
    hub.start(&url, &[]);
    let said = hub.until("RemoteReached", "CertificateInvalid");
    assert!(said.contains("--git-ca"), "{said}");
    hub.start(&url, &["--git-ca", &ca]);
    until_released(&repository, &repository.head("main").expect("it was pushed"));
    let before = repository.head("flotilla/released");
    for (status, reason) in [
        (502, "ServerError"),
        (403, "AuthenticationFailed"),
        (404, "RepositoryNotFound"),
    ] {
        web.change(|options| options.trouble = Some(status));
        hub.webhook("");
        let said = hub.until("RemoteReached", reason);
        assert!(said.contains(&url), "{said}");
        assert!(hub.status().contains("NotReady"), "{}", hub.status());
    }
    web.change(|options| options.trouble = None);
    hub.webhook("");
    hub.until("RemoteReached", "Fetched");
    assert_eq!(
        repository.head("flotilla/released"),
        before,
        "nothing changed meanwhile"
    );

    let mut elsewhere = Hub::new();
    elsewhere.start("https://flotilla.invalid/fleet.git", &[]);
    let said = elsewhere.until("RemoteReached", "HostNotFound");
    assert!(said.contains("flotilla.invalid"), "{said}");
    let mut elsewhere = Hub::new();
    elsewhere.start("https://localhost:1/fleet.git", &[]);
    elsewhere.until("RemoteReached", "Unreachable");
}

#[test]
fn a_read_only_token_says_so_and_works_with_a_state_repository() {
    let repository = repository();
    let options = WebOptions {
        read_only: true,
        ..private()
    };
    let (web, mut hub) = (web(&repository, options), Hub::new());
    let (url, ca, token) = (web.url("fleet.git"), web.ca(), credentials(&hub, TOKEN));
    let flags = ["--git-ca", &ca, "--git-credentials", &token];
    hub.start(&url, &flags);
    let said = hub.until("StatePushed", "WriteForbidden");
    assert!(said.contains("--state-repository"), "{said}");
    assert!(hub.status().contains("the hub may not write"), "{}", hub.status());
    assert_eq!(repository.head("flotilla/rendered"), None);

    let state = hub.path("state.git");
    hub.start(&url, &[&flags[..], &["--state-repository", &state]].concat());
    let commit = greet(&repository, "hello to readers");
    eventually(LIMIT, "the state repository has it", || {
        let show = ["cat-file", "blob", "refs/heads/flotilla/released:release.yaml"];
        let record = flotilla_tests::repository::git(Path::new(&state), &show).ok()?;
        record.contains(&commit).then_some(()).ok_or(record)
    });
    assert_eq!(repository.head("flotilla/rendered"), None, "nothing was pushed");
}

#[test]
fn a_webhook_of_any_host_brings_a_push_at_once_and_a_lost_one_is_made_up_for() {
    let repository = repository();
    let (web, mut hub) = (web(&repository, WebOptions::default()), Hub::new());
    let (url, ca) = (web.url("fleet.git"), web.ca());
    hub.start(&url, &["--git-ca", &ca, "--poll-seconds", "3600"]);
    until_released(&repository, &repository.head("main").expect("it was pushed"));
    for body in [
        r#"{"ref":"refs/heads/main","repository":{"clone_url":"https://GIT.example.com/o/r.git"}}"#,
        r#"{"object_kind":"push","project":{"git_ssh_url":"git@h:o/r"}}"#,
        "not JSON at all",
    ] {
        let commit = greet(&repository, &format!("hello {}", body.len()));
        assert_eq!(hub.webhook(body), "HTTP/1.1 202 Accepted");
        until_released(&repository, &commit);
    }
    hub.start(&url, &["--git-ca", &ca]);
    let commit = greet(&repository, "nobody called");
    until_released(&repository, &commit);
}

#[test]
fn mistakes_in_flags_are_told_before_anything_starts() {
    let hub = Hub::new();
    let open = credentials(&hub, TOKEN);
    fs::set_permissions(&open, fs::Permissions::from_mode(0o644)).expect("it is ours");
    let path = hub.path("");
    for (repository, more, expected) in [
        (
            "https://ann:hunter2@git.example.com/fleet",
            &[][..],
            "--git-credentials",
        ),
        ("git://git.example.com/fleet", &[], "use https://"),
        (
            "https://git.example.com/fleet",
            &["--git-credentials", &open],
            "chmod 600",
        ),
        (
            "https://git.example.com/fleet",
            &["--git-ca", "/nowhere.pem"],
            "failed to read /nowhere.pem",
        ),
        (
            "git@git.example.com:fleet",
            &["--git-credentials", &open],
            "is for https URLs",
        ),
        (&path, &["--git-ca", "/nowhere.pem"], "is a folder"),
        (
            "https://git.example.com/fleet",
            &["--copy", "/usr"],
            "holds something that is no copy",
        ),
    ] {
        let said = hub.refusal(repository, more);
        assert!(said.contains(expected), "{repository} {more:?}: {said}");
        assert!(!said.contains("hunter2"), "{said}");
    }
}
