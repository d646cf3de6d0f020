//! A real Gitea: pull requests, protected branches.

use flotilla_tests::git_host::Gitea;
use flotilla_tests::repository::git;
use flotilla_tests::{Repository, eventually};
use serde_json::{Value, json};

use super::super::support::{LIMIT, config_map};
use super::support::{Hub, greet, repository, until_released};

const GATED: &str = "\
apiVersion: fleet.flotilla.dev/v1alpha1
kind: Fleet
metadata: {name: fleet}
spec: {approval: required}
";

/// A person's clone of `ada/fleet`, and the hub's login.
struct Host {
    gitea: Gitea,
    /// The bare half is a mirror for looking at; its remote is Gitea's.
    people: Repository,
}

impl Host {
    fn start(permission: &str) -> Self {
        let host = Self {
            gitea: Gitea::start(),
            people: repository(),
        };
        host.gitea.make("fleet", permission);
        host.push();
        host
    }

    /// Pushes what people have in their bare repository to Gitea.
    #[track_caller]
    fn push(&self) {
        let url = self.gitea.url_of_ada("fleet");
        self.people.git_bare(&["push", "--quiet", &url, "main"]).expect_ok();
    }

    /// Fetches what Gitea has, so that it can be looked at.
    fn look(&self) -> &Repository {
        let url = self.gitea.url_of_ada("fleet");
        git(
            self.people.bare(),
            &[
                "fetch",
                "--quiet",
                "--prune",
                &url,
                "+refs/heads/flotilla/*:refs/heads/flotilla/*",
            ],
        )
        .expect_ok();
        &self.people
    }

    #[track_caller]
    fn until_released(&self, commit: &str) {
        eventually(LIMIT, "Gitea has the release", || {
            let record = self.look().read("flotilla/released", "release.yaml");
            match record {
                Some(record) if record.contains(commit) => Ok(()),
                record => Err(format!("{commit} is not in {record:?}")),
            }
        });
    }

    /// Waits for the hub's proposal, and says its branch.
    #[track_caller]
    fn until_proposed(&self, text: &str) -> String {
        eventually(LIMIT, "a proposal is at Gitea", || {
            let listed = self.look().git_bare(&[
                "for-each-ref",
                "--format=%(refname:short)",
                "refs/heads/flotilla/proposed",
            ]);
            let listed = listed.ok()?;
            let says = |branch: &&str| {
                let found = self.people.git_bare(&["grep", "--quiet", text, branch]);
                found.status.success()
            };
            listed.lines().find(says).map(str::to_owned).ok_or(listed.clone())
        })
    }
}

#[test]
fn a_proposal_is_a_pull_request_that_every_style_of_merging_releases() {
    let host = Host::start("write");
    let (mut hub, token) = (Hub::new(), host.gitea.credentials());
    let flags = ["--git-credentials", &token];
    hub.start(&host.gitea.url("fleet"), &flags);
    host.until_released(&host.people.head("main").expect("it was pushed"));
    let asked = host.people.push_files("Ask people", &[("fleet.yaml", GATED)]);
    host.push();
    // Seen together with the next commit, it would count from the one after that on.
    eventually(LIMIT, "the gate is known", || {
        let said = hub.until("Planned", "Planned");
        said.contains(&asked).then_some(()).ok_or(said)
    });
    for (style, text) in [
        ("merge", "merged"),
        ("squash", "squashed"),
        ("rebase", "rebased"),
        ("fast-forward-only", "forwarded"),
    ] {
        let before = host.look().head("flotilla/released");
        let commit = greet(&host.people, text);
        host.push();
        let branch = host.until_proposed(text);
        assert_eq!(
            host.look().head("flotilla/released"),
            before,
            "nothing is released before somebody merged it"
        );
        let open = json!({"title": text, "head": branch, "base": "flotilla/rendered"});
        let pull = host.gitea.ask("POST", "/repos/ada/fleet/pulls", &open);
        let path = format!("/repos/ada/fleet/pulls/{}/merge", pull["number"]);
        eventually(LIMIT, "Gitea merges", || {
            // It looks first, for a moment, whether the branches conflict.
            let (status, answer) = host.gitea.try_ask("POST", &path, &json!({"Do": style}));
            (status == 200).then_some(()).ok_or(format!("{status}: {answer}"))
        });
        host.until_released(&commit);
        let pull = host.gitea.ask(
            "GET",
            &format!("/repos/ada/fleet/pulls/{}", pull["number"]),
            &Value::Null,
        );
        assert_eq!(pull["merged"], true, "{style}: {pull:#}");
    }
    let everything = format!("{}{}{:?}", hub.log(), hub.status(), hub.fleet());
    assert!(
        !everything.contains(host.gitea.token()),
        "the token is nowhere to be seen"
    );
}

#[test]
fn a_protected_branch_is_shown_in_the_servers_words_until_it_lets_the_hub_push() {
    let host = Host::start("write");
    let protect = json!({"rule_name": "flotilla/*", "enable_push": true, "enable_push_whitelist": true, "push_whitelist_usernames": ["ada"]});
    host.gitea.ask("POST", "/repos/ada/fleet/branch_protections", &protect);
    let (mut hub, token) = (Hub::new(), host.gitea.credentials());
    hub.start(&host.gitea.url("fleet"), &["--git-credentials", &token]);
    let said = hub.until("StatePushed", "PushRefused");
    assert!(
        said.contains("Not allowed to push to protected branch flotilla/rendered"),
        "{said}"
    );
    assert!(said.contains("let the hub's user push flotilla/*"), "{said}");
    assert!(hub.status().contains("rules refused the push"), "{}", hub.status());
    assert_eq!(host.look().head("flotilla/rendered"), None);

    let rule = "/repos/ada/fleet/branch_protections/flotilla%2F%2A";
    let allow = json!({"push_whitelist_usernames": ["ada", "hub"]});
    host.gitea.ask("PATCH", rule, &allow);
    hub.webhook("");
    host.until_released(&host.people.head("main").expect("it was pushed"));
    hub.until("StatePushed", "Pushed");
}

#[test]
fn a_reader_at_gitea_works_with_a_state_repository() {
    let host = Host::start("read");
    let (mut hub, token) = (Hub::new(), host.gitea.credentials());
    let url = host.gitea.url("fleet");
    hub.start(&url, &["--git-credentials", &token]);
    let said = hub.until("StatePushed", "WriteForbidden");
    assert!(said.contains("--state-repository"), "{said}");
    let state = Repository::empty();
    let path = state.bare().display().to_string();
    hub.start(&url, &["--git-credentials", &token, "--state-repository", &path]);
    let text = config_map("shop", "greeting", "hello, reader");
    let commit = host.people.push_files("Greet", &[("feeds/web/greeting.yaml", &text)]);
    host.push();
    until_released(&state, &commit);
}
