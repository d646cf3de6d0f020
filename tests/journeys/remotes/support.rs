//! A hub without clusters, beside a repository that is elsewhere: what it pushes and says is looked at.

use std::ffi::OsStr;
use std::path::PathBuf;
use std::time::Duration;

use flotilla_tests::{Flotilla, Output, Repository, eventually, parts, ports, scratch};
use serde_json::Value;

use super::super::support::{FLEET, LIMIT, config_map, namespace, subscription};

/// A hub of a remote repository, and the folder that it keeps its own things in.
pub(super) struct Hub {
    folder: PathBuf,
    api: String,
    listen: String,
    process: Option<Flotilla>,
}

/// A repository with one cluster and one unit; nobody runs that cluster.
pub(super) fn repository() -> Repository {
    let repository = Repository::empty();
    let key = scratch::folder("agent").join("key").display().to_string();
    let join = Flotilla::run(&["agent", "join", "--cluster", "amsterdam", "--key", &key]).expect_ok();
    repository.push_files(
        "Open the shop",
        &[
            ("fleet.yaml", FLEET),
            ("clusters/amsterdam.yaml", &join),
            ("subscriptions/shop/web.yaml", &subscription("shop", "web")),
            ("feeds/web/namespace.yaml", &namespace("shop")),
            ("feeds/web/greeting.yaml", &config_map("shop", "greeting", "hello")),
        ],
    );
    repository
}

/// Changes the unit.
pub(super) fn greet(repository: &Repository, text: &str) -> String {
    repository.push_files(
        text,
        &[("feeds/web/greeting.yaml", &config_map("shop", "greeting", text))],
    )
}

/// Waits until a ref of a repository on this disk is made from a source commit.
#[track_caller]
pub(super) fn until_released(repository: &Repository, commit: &str) {
    eventually(LIMIT, "the commit is released", || {
        let record = repository.read("flotilla/released", "release.yaml");
        match record {
            Some(record) if record.contains(commit) => Ok(()),
            record => Err(format!("{commit} is not in {record:?}")),
        }
    });
}

impl Hub {
    pub(super) fn new() -> Self {
        Self {
            folder: scratch::folder("remote"),
            api: format!("127.0.0.1:{}", ports::free()),
            listen: format!("127.0.0.1:{}", ports::free()),
            process: None,
        }
    }

    /// Starts it; one that runs is killed first.
    pub(super) fn start(&mut self, repository: &str, more: &[&str]) {
        self.start_in(&[], repository, more);
    }

    /// As [`Self::start`], with more environment.
    pub(super) fn start_in(&mut self, environment: &[(&str, &OsStr)], repository: &str, more: &[&str]) {
        self.process = None;
        let (copy, key) = (self.path("copy.git"), self.path("hub.key"));
        let own = [
            "--repository",
            repository,
            "--copy",
            &copy,
            "--key",
            &key,
            "--listen",
            &self.listen,
            "--api",
            &self.api,
            // Nobody holds anything, and nobody will say so.
            "--recovery-grace-seconds",
            "0",
            "--poll-seconds",
            "1",
        ];
        let without = |flag: &&str| more.contains(flag);
        let own: Vec<_> = own
            .chunks(2)
            .filter(|pair| !without(&pair[0]))
            .flatten()
            .copied()
            .collect();
        self.process = Some(Flotilla::hub_in(environment, &[&own[..], more].concat()));
    }

    pub(super) fn kill(&mut self) {
        self.process = None;
    }

    /// A path in the hub's folder.
    pub(super) fn path(&self, name: &str) -> String {
        self.folder.join(name).display().to_string()
    }

    pub(super) fn log(&self) -> String {
        self.process.as_ref().map(|hub| hub.log()).unwrap_or_default()
    }

    /// How `flotilla hub` ends that refuses to start.
    #[track_caller]
    pub(super) fn refusal(&self, repository: &str, more: &[&str]) -> String {
        let (copy, key) = (self.path("copy.git"), self.path("hub.key"));
        let own = ["hub", "--repository", repository, "--key", &key];
        let copy = match more.contains(&"--copy") {
            true => &[][..],
            false => &["--copy", copy.as_str()],
        };
        let output = Flotilla::run(&[&own[..], copy, more].concat());
        assert!(!output.status.success(), "{output:?}");
        output.stderr
    }

    /// The fleet as the API says it.
    pub(super) fn fleet(&self) -> Result<Value, String> {
        let mut kubectl = parts::command("kubectl");
        let path = "/apis/fleet.flotilla.dev/v1alpha1/fleets/fleet";
        let answer =
            Output::of(kubectl.args(["--server", &format!("http://{}", self.api), "get", "--raw", path])).ok()?;
        serde_json::from_str(&answer).map_err(|error| error.to_string())
    }

    /// Waits until a condition has this reason, and says its message.
    #[track_caller]
    pub(super) fn until(&self, condition: &str, reason: &str) -> String {
        self.until_within(LIMIT, condition, reason)
    }

    /// As [`Self::until`], with a limit.
    #[track_caller]
    pub(super) fn until_within(&self, limit: Duration, condition: &str, reason: &str) -> String {
        eventually(limit, &format!("{condition} is {reason}"), || {
            let fleet = self.fleet()?;
            let conditions = fleet["status"]["conditions"].as_array().cloned().unwrap_or_default();
            let found = conditions.iter().find(|found| found["type"] == condition);
            match found {
                Some(found) if found["reason"] == reason => {
                    Ok(found["message"].as_str().unwrap_or_default().to_owned())
                }
                _ => Err(format!("{conditions:#?}\n{}", self.log())),
            }
        })
    }

    /// What `flotilla status` prints.
    #[track_caller]
    pub(super) fn status(&self) -> String {
        Flotilla::run(&["status", "--server", &format!("http://{}", self.api)]).stdout
    }

    /// Calls the webhook as a Git host does, and says the status.
    pub(super) fn webhook(&self, body: &str) -> String {
        use std::io::{Read as _, Write as _};
        let mut stream = std::net::TcpStream::connect(&self.api).expect("the hub listens");
        let request = format!(
            "POST /reconcile HTTP/1.1\r\nHost: hooks.example.com\r\nConnection: close\r\nContent-Type: application/json\r\n\
             X-GitHub-Event: push\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        );
        stream.write_all(request.as_bytes()).expect("the hub reads");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("the hub answers");
        answer.lines().next().unwrap_or_default().to_owned()
    }
}
