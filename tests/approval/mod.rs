//! Approval by merge: a hub, real `git`, and no cluster.
//!
//! Enters: what people do with branches, in a clone of theirs. Leaves: what the hub made of it. Deliberately not
//! here: that it reaches a cluster; the journeys follow that.

mod hands;
mod merging;
mod rights;
mod waiting;

use std::time::Duration;

use flotilla_tests::flotilla::flotilla;
use flotilla_tests::{Flotilla, Output, Repository, eventually, ports, scratch, wait};
use serde_json::Value;

const LIMIT: Duration = Duration::from_secs(20);

/// How long nothing more may happen once something did: the hub needs well under that for what it does at once.
const STILL: Duration = Duration::from_millis(700);

const PREFIX: &str = "refs/heads/flotilla/proposed/";
const GREETING: &str = "units/shop/web/default/ConfigMap_shop_greeting.yaml";

fn subscription(team: &str, name: &str) -> String {
    format!(
        "apiVersion: fleet.flotilla.dev/v1alpha1
kind: Subscription
metadata: {{namespace: {team}, name: {name}}}
spec:
  subscribers: [{{clusterAffinity: {{}}}}]
  feeds: [{{path: 'feeds/{name}/**'}}]
"
    )
}

fn config_map(namespace: &str, name: &str, text: &str) -> String {
    format!(
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {{namespace: {namespace}, name: {name}}}\ndata: {{text: '{text}'}}\n"
    )
}

/// A hub of a fleet that asks for approval, with units shop/web and staff/office for cluster oslo, which nobody
/// serves. Its first decision is merged and released.
struct Gated {
    repository: Repository,
    arguments: Vec<String>,
    server: String,
    hub: Option<Flotilla>,
}

impl Gated {
    fn start() -> Self {
        let fleet = "apiVersion: fleet.flotilla.dev/v1alpha1\nkind: Fleet\nmetadata: {name: fleet}\nspec: {approval: required}\n";
        let cluster = "apiVersion: fleet.flotilla.dev/v1alpha1\nkind: ManagedCluster\nmetadata: {name: oslo}\n";
        let repository = Repository::with_files(&[
            ("fleet.yaml", fleet),
            ("clusters/oslo.yaml", cluster),
            ("subscriptions/web.yaml", &subscription("shop", "web")),
            ("feeds/web/greeting.yaml", &config_map("shop", "greeting", "hello")),
            ("feeds/web/farewell.yaml", &config_map("shop", "farewell", "goodbye")),
            ("subscriptions/office.yaml", &subscription("staff", "office")),
            ("feeds/office/rules.yaml", &config_map("office", "rules", "none")),
        ]);
        let key = scratch::folder("hub-key").join("hub.key").display().to_string();
        let [listen, api] = [0; 2].map(|_| format!("127.0.0.1:{}", ports::free()));
        let bare = repository.bare().display().to_string();
        let own = ["--repository", &bare, "--key", &key, "--listen", &listen, "--api", &api];
        // Nobody is asked what it holds: there is no cluster behind the file.
        let arguments = [&own[..], &["--recovery-grace-seconds", "0"]].concat();
        let mut gated = Self {
            repository,
            arguments: arguments.into_iter().map(str::to_owned).collect(),
            server: format!("http://{api}"),
            hub: None,
        };
        gated.restart();
        let first = gated.until_proposed("Bring 2 units to 1 cluster");
        gated.fast_forward(&first);
        gated.until_sequence(2);
        gated.until_no_proposal();
        gated
    }

    fn kill(&mut self) {
        self.hub = None;
    }

    fn restart(&mut self) {
        self.hub = Some(Flotilla::hub(&self.arguments));
    }

    /// A push that changes shop/web.
    fn greet(&self, text: &str) -> String {
        let file = config_map("shop", "greeting", text);
        let subject = format!("Say {text}");
        self.repository
            .push_files(&subject, &[("feeds/web/greeting.yaml", &file)])
    }

    /// The proposals there are, by short name.
    fn proposals(&self) -> Vec<String> {
        let listed = self
            .repository
            .git_bare(&["for-each-ref", "--format=%(refname:lstrip=2)", PREFIX])
            .expect_ok();
        listed.lines().map(str::to_owned).collect()
    }

    /// Waits for one proposal alone whose message has these words.
    #[track_caller]
    fn until_proposed(&self, words: &str) -> String {
        eventually(LIMIT, &format!("{words:?} is proposed"), || {
            let proposals = self.proposals();
            let [one] = proposals.as_slice() else {
                return Err(format!("{proposals:?}"));
            };
            let message = self.repository.git_bare(&["log", "-1", "--format=%B", one]).ok()?;
            match message.contains(words) {
                true => Ok(one.clone()),
                false => Err(message),
            }
        })
    }

    #[track_caller]
    fn until_no_proposal(&self) {
        eventually(LIMIT, "no proposal is left", || match self.proposals() {
            left if left.is_empty() => Ok(()),
            left => Err(format!("{left:?}")),
        });
    }

    fn sequence(&self) -> Option<u64> {
        let record = self.repository.read("flotilla/released", "release.yaml")?;
        let line = record.lines().find_map(|line| line.strip_prefix("sequence: "))?;
        line.parse().ok()
    }

    #[track_caller]
    fn until_sequence(&self, expected: u64) {
        eventually(LIMIT, &format!("sequence {expected} is released"), || {
            match self.sequence() {
                Some(found) if found == expected => Ok(()),
                found => Err(format!("{found:?}")),
            }
        });
    }

    /// Nothing is released and no proposal comes or goes.
    #[track_caller]
    fn assert_still(&self, sequence: u64, proposals: &[String], what: &str) {
        wait::throughout(STILL, what, || {
            let found = (self.sequence(), self.proposals());
            if found == (Some(sequence), proposals.to_vec()) {
                Ok(())
            } else {
                Err(format!("{found:?}"))
            }
        });
    }

    /// Checks `rendered` out as a person does, with everything fetched.
    #[track_caller]
    fn checkout(&self) {
        self.git(&["fetch", "--quiet", "--prune"]);
        self.git(&["checkout", "--quiet", "-B", "rendered", "origin/flotilla/rendered"]);
    }

    /// Pushes what is checked out to `rendered`, and goes back to main.
    #[track_caller]
    fn push_rendered(&self) {
        self.git(&["push", "--quiet", "origin", "HEAD:flotilla/rendered"]);
        self.git(&["checkout", "--quiet", "main"]);
    }

    /// The command that the hub names.
    #[track_caller]
    fn fast_forward(&self, branch: &str) {
        self.git(&["fetch", "--quiet"]);
        self.git(&[
            "push",
            "--quiet",
            "origin",
            &format!("origin/{branch}:flotilla/rendered"),
        ]);
    }

    #[track_caller]
    fn git(&self, arguments: &[&str]) -> String {
        self.repository.git(arguments)
    }

    /// What is released of the greeting.
    fn greeting(&self) -> String {
        let file = self.repository.read("flotilla/released", GREETING);
        file.unwrap_or_default()
    }

    fn flotilla(&self, arguments: &[&str]) -> Output {
        Output::of(flotilla().args(arguments).args(["--server", &self.server]))
    }

    fn get(&self, what: &[&str]) -> Result<Value, String> {
        let answer = self.flotilla(&[&["get"], what, &["-o", "json"]].concat()).ok()?;
        serde_json::from_str(&answer).map_err(|error| error.to_string())
    }

    /// Waits until a condition of the fleet has a reason, and gives its message.
    #[track_caller]
    fn until_reason(&self, kind: &str, reason: &str) -> String {
        eventually(LIMIT, &format!("{kind} is {reason}"), || {
            let fleet = self.get(&["fleets", "fleet"])?;
            let conditions = fleet["status"]["conditions"].as_array().cloned().unwrap_or_default();
            let found = conditions.iter().find(|found| found["type"] == kind);
            match found {
                Some(found) if found["reason"] == reason => {
                    Ok(found["message"].as_str().unwrap_or_default().to_owned())
                }
                _ => Err(format!("{conditions:#?}")),
            }
        })
    }
}
