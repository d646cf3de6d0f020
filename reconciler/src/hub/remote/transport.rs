//! Git's own commands, as a remote and its copy need them.

use std::ffi::OsString;
use std::fmt::Write as _;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use super::address::RemoteUrl;
use super::answers::{self, Refs};
use super::failure::Failure;
use super::kind::FailureKind;
use super::login::Login;
use super::refs::{Names, Update};
use crate::hub::git::{Call, GitError, Said, call};
use crate::limits::FETCH_PROGRESS_LOGGED;

/// How much memory Git may take for packs: together with its threads it stays far below 512 MiB.
const MEMORY: [(&str, &str); 7] = [
    ("core.packedGitWindowSize", "16m"),
    ("core.packedGitLimit", "128m"),
    ("core.deltaBaseCacheLimit", "64m"),
    ("core.bigFileThreshold", "16m"),
    ("pack.threads", "1"),
    ("pack.windowMemory", "64m"),
    ("pack.deltaCacheSize", "32m"),
];

/// Has Git write each packet of its protocol to its error output, and how it marks them there.
const PACKETS_SHOWN: &str = "GIT_TRACE_PACKET";
const PACKET: &str = "packet:";

/// Speaks to one remote about one copy.
#[derive(Debug)]
pub(super) struct Transport {
    pub(super) url: RemoteUrl,
    pub(super) path: PathBuf,
    settings: Vec<(String, String)>,
    environment: Vec<(&'static str, OsString)>,
    timeout: Duration,
}

impl Transport {
    pub(super) fn new(url: RemoteUrl, path: PathBuf, login: &Login, timeout: Duration) -> Self {
        let mut settings = login.settings(&url);
        let more = MEMORY.iter().chain(&[
            ("gc.auto", "0"),
            ("maintenance.auto", "false"),
            ("fetch.unpackLimit", "100"),
            ("core.hooksPath", "/dev/null"),
        ]);
        settings.extend(more.map(|(key, value)| ((*key).to_owned(), (*value).to_owned())));
        Self {
            environment: login.environment(&url),
            url,
            path,
            settings,
            timeout,
        }
    }

    /// Makes an empty bare repository, or mends the settings of one.
    pub(super) async fn begin(&self) -> Result<(), GitError> {
        let said = self
            .run(
                "init",
                ["--quiet", "--bare", "--object-format=sha1", "--template=", "."],
            )
            .await?;
        said.succeeded("init").map(drop)
    }

    /// The refs of the remote.
    pub(super) async fn remote_refs(&self, names: &Names) -> Result<Refs, Failure> {
        let mut arguments = vec!["--refs".to_owned(), "--".to_owned(), self.url.as_str().to_owned()];
        arguments.extend(names.patterns());
        let said = self
            .run("ls-remote", arguments)
            .await
            .map_err(|error| self.not_run(&error))?;
        if !said.success {
            return Err(Failure::of_read(&self.url, &said));
        }
        let refs = answers::refs(&said.stdout, |name| names.include(name));
        match refs.values().find(|id| id.len() != 40) {
            None if refs.is_empty() => self.surely_none(names).await.map(|()| refs),
            None => Ok(refs),
            Some(_) => {
                let said = Said {
                    success: false,
                    stdout: String::new(),
                    stderr: "mismatched algorithms: the server's ids are SHA-256".to_owned(),
                };
                Err(Failure::of_read(&self.url, &said))
            }
        }
    }

    /// Whether a remote that names none of our refs is a repository that has none of them. Git takes any body of
    /// one line, such as a login page, for an old server's empty list; and a repository whose refs were all there a
    /// moment ago is more likely to be a broken one than an empty one.
    async fn surely_none(&self, names: &Names) -> Result<(), Failure> {
        let mut environment = self.environment.clone();
        // Servers that speak to Git do so in packets, and old ones in a file.
        environment.push((PACKETS_SHOWN, "1".into()));
        let asked = call(Call {
            arguments: vec!["--".into(), self.url.as_str().into()],
            settings: &self.settings,
            environment: &environment,
            timeout: self.timeout,
            ..Call::new(&self.path, "ls-remote")
        });
        let said = match asked.await {
            // It has more refs than anybody reads: it is no empty one.
            Err(GitError::TooMuch { .. }) => return Ok(()),
            asked => asked.map_err(|error| self.not_run(&error))?,
        };
        if !said.success {
            return Err(Failure::of_read(&self.url, &said));
        }
        if !answers::refs(&said.stdout, |_| true).is_empty() {
            return Ok(());
        }
        if self.url.is_web() && !said.stderr.contains(PACKET) {
            let words = "it answers, and not in Git's protocol";
            return Err(Failure::told(&self.url, FailureKind::NotGit, words));
        }
        match self.local_refs(names).await?.is_empty() {
            true => Ok(()),
            false => {
                let words = "it answers with no refs at all, and had some before; what was read last is kept";
                Err(Failure::told(&self.url, FailureKind::NotGit, words))
            }
        }
    }

    /// The refs of the copy.
    pub(super) async fn local_refs(&self, names: &Names) -> Result<Refs, Failure> {
        let mut arguments = vec!["--format=%(objectname) %(refname)".to_owned(), "--".to_owned()];
        // Here a pattern that ends with a slash means all below, whatever its depth.
        arguments.extend(
            names
                .patterns()
                .iter()
                .map(|name| name.trim_end_matches('*').to_owned()),
        );
        let said = self.local("for-each-ref", arguments, Vec::new()).await?;
        Ok(answers::refs(&said.stdout, |name| names.include(name)))
    }

    /// Fetches refs of the remote to the same names here, wherever they stood. `depth`: how many commits of their
    /// history; all that is not here without one.
    pub(super) async fn fetch(&self, refs: &[&str], depth: Option<u32>) -> Result<(), Failure> {
        let mut arguments: Vec<OsString> = [
            "--no-tags",
            "--no-write-fetch-head",
            "--no-auto-gc",
            "--no-recurse-submodules",
            "--update-shallow",
            "--progress",
        ]
        .map(OsString::from)
        .to_vec();
        arguments.extend(depth.map(|depth| format!("--depth={depth}").into()));
        arguments.extend(["--".into(), self.url.as_str().into()]);
        arguments.extend(refs.iter().map(|name| format!("+{name}:{name}").into()));
        let logged = Mutex::new(Instant::now());
        let progress = |line: &str| self.log_progress(&logged, line);
        let said = call(Call {
            arguments,
            settings: &self.settings,
            environment: &self.environment,
            timeout: self.timeout,
            progress: &progress,
            ..Call::new(&self.path, "fetch")
        });
        let said = said.await.map_err(|error| self.not_run(&error))?;
        match said.success {
            true => Ok(()),
            false => Err(Failure::of_read(&self.url, &said)),
        }
    }

    /// A first fetch may take minutes, and whoever waits should see that it goes on.
    fn log_progress(&self, logged: &Mutex<Instant>, line: &str) {
        let mut logged = logged.lock().unwrap_or_else(PoisonError::into_inner);
        if logged.elapsed() >= FETCH_PROGRESS_LOGGED {
            *logged = Instant::now();
            tracing::info!(component = %self.url, object = line, "Fetched a part.");
        }
    }

    /// Moves refs of the remote, all or none, and each only from where it is believed to be.
    pub(super) async fn push(&self, updates: &[Update]) -> Result<(), Failure> {
        let mut arguments = vec!["--porcelain".to_owned(), "--no-verify".to_owned()];
        if updates.len() > 1 {
            arguments.push("--atomic".to_owned());
        }
        let lease = |update: &Update| {
            let old = update.old.as_deref().unwrap_or_default();
            format!("--force-with-lease={}:{old}", update.name)
        };
        arguments.extend(updates.iter().map(lease));
        arguments.extend(["--".to_owned(), self.url.as_str().to_owned()]);
        let refspec = |update: &Update| format!("{}:{}", update.new.as_deref().unwrap_or_default(), update.name);
        arguments.extend(updates.iter().map(refspec));
        let said = self
            .run("push", arguments)
            .await
            .map_err(|error| self.not_run(&error))?;
        match said.success {
            true => Ok(()),
            false => Err(Failure::of_push(&self.url, &said)),
        }
    }

    /// Moves refs of the copy, all or none.
    pub(super) async fn set_refs(&self, updates: &[Update]) -> Result<(), Failure> {
        if updates.is_empty() {
            return Ok(());
        }
        let mut input = String::new();
        for update in updates {
            let line = match &update.new {
                Some(new) => writeln!(input, "update {} {new}", update.name),
                None => writeln!(input, "delete {}", update.name),
            };
            line.expect("text can be written to text");
        }
        self.local("update-ref", ["--stdin"], input.into_bytes())
            .await
            .map(drop)
    }

    /// Packs the copy, and drops what no ref has reached for an hour, which is longer than anybody reads a commit.
    pub(super) async fn pack(&self) -> Result<(), GitError> {
        let said = self.run("gc", ["--quiet", "--prune=1.hour.ago"]).await?;
        said.succeeded("gc").map(drop)
    }

    async fn local<S: Into<OsString>>(
        &self,
        command: &'static str,
        arguments: impl IntoIterator<Item = S>,
        input: Vec<u8>,
    ) -> Result<Said, Failure> {
        let said = call(Call {
            arguments: arguments.into_iter().map(Into::into).collect(),
            settings: &self.settings,
            input,
            ..Call::new(&self.path, command)
        });
        let said = said.await.map_err(|error| self.not_run(&error))?;
        match said.success {
            true => Ok(said),
            false => Err(Failure::of_copy(&self.url, &said)),
        }
    }

    async fn run<S: Into<OsString>>(
        &self,
        command: &'static str,
        arguments: impl IntoIterator<Item = S>,
    ) -> Result<Said, GitError> {
        call(Call {
            arguments: arguments.into_iter().map(Into::into).collect(),
            settings: &self.settings,
            environment: &self.environment,
            timeout: self.timeout,
            ..Call::new(&self.path, command)
        })
        .await
    }

    fn not_run(&self, error: &GitError) -> Failure {
        Failure::of_run(&self.url, error)
    }
}
