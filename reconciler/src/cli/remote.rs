//! Flags for a repository that is elsewhere. They name files, and carry no secret.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, bail};
use clap::Args;

use crate::hub::remote::{Login, RemoteOptions, RepositoryAddress};
use crate::limits::{REFS_POLL, REMOTE_POLL, REMOTE_TIMEOUT, SOURCE_DEPTH};

/// How a remote repository is reached and copied.
#[derive(Debug, Args)]
#[command(next_help_heading = "A repository at a URL")]
pub(super) struct RemoteFlags {
    /// The folder of the hub's own copy of it; made when it is missing, used by this hub alone, and no state to
    /// back up.
    #[arg(long, env = "FLOTILLA_COPY", default_value = "flotilla-copy.git")]
    copy: PathBuf,
    /// A file with the lines username=NAME and password=TOKEN for https, which others may not read.
    #[arg(long, env = "FLOTILLA_GIT_CREDENTIALS_FILE", value_name = "FILE")]
    git_credentials: Option<PathBuf>,
    /// Certificates (PEM) that the host's must descend from, in place of the machine's own.
    #[arg(long, env = "FLOTILLA_GIT_CA_FILE", value_name = "FILE")]
    git_ca: Option<PathBuf>,
    /// The private key for ssh; without it, the agent at SSH_AUTH_SOCK is asked.
    #[arg(long, env = "FLOTILLA_GIT_SSH_KEY_FILE", value_name = "FILE")]
    git_ssh_key: Option<PathBuf>,
    /// Known host keys for ssh, in place of ssh's own files.
    #[arg(long, env = "FLOTILLA_GIT_KNOWN_HOSTS_FILE", value_name = "FILE")]
    git_known_hosts: Option<PathBuf>,
    /// Seconds that one fetch or push may take.
    #[arg(long, value_name = "SECONDS", default_value_t = REMOTE_TIMEOUT.as_secs(), value_parser = seconds)]
    git_timeout_seconds: u64,
    /// Commits of the branch's history to fetch; 0 for all. More are fetched by themselves where they are needed.
    #[arg(long, default_value_t = SOURCE_DEPTH)]
    depth: u32,
    /// Seconds between two looks at the repository; by default 30 for a URL. A folder is watched, and looked at every 10.
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    poll_seconds: Option<u64>,
}

/// A time that lasts.
fn seconds(text: &str) -> Result<u64, String> {
    let wrong = "it is no whole number of seconds above 0, such as 30";
    text.parse()
        .ok()
        .filter(|seconds| *seconds > 0)
        .ok_or_else(|| wrong.to_owned())
}

/// Where the hub reads, and how often.
pub(super) struct Sources {
    /// The folder that is read.
    pub(super) source: PathBuf,
    /// What it is a copy of, if it is one.
    pub(super) remote: Option<RemoteOptions>,
    /// How often is looked without an event.
    pub(super) poll: Duration,
}

/// Understands what was given, and checks the files that it names.
pub(super) fn sources(repository: &str, state: Option<&Path>, flags: RemoteFlags) -> anyhow::Result<Sources> {
    let repository: RepositoryAddress = repository.parse().context("--repository cannot be used")?;
    let state = state.and_then(Path::to_str).map(str::parse);
    if let Some(Err(_) | Ok(RepositoryAddress::Remote(_))) = state {
        bail!("--state-repository is a folder on this disk; hint: without it the hub writes to --repository");
    }
    let poll = flags.poll(&repository);
    let (source, remote) = flags.source(repository)?;
    Ok(Sources { source, remote, poll })
}

impl RemoteFlags {
    fn poll(&self, repository: &RepositoryAddress) -> Duration {
        let usual = match repository {
            RepositoryAddress::Path(_) => REFS_POLL,
            RepositoryAddress::Remote(_) => REMOTE_POLL,
        };
        self.poll_seconds.map_or(usual, Duration::from_secs)
    }

    /// The folder to read, and what it is a copy of.
    fn source(self, repository: RepositoryAddress) -> anyhow::Result<(PathBuf, Option<RemoteOptions>)> {
        let files = [
            ("--git-credentials", &self.git_credentials),
            ("--git-ca", &self.git_ca),
            ("--git-ssh-key", &self.git_ssh_key),
            ("--git-known-hosts", &self.git_known_hosts),
        ];
        let url = match repository {
            RepositoryAddress::Path(path) => {
                if let Some((flag, _)) = files.iter().find(|(_, file)| file.is_some()) {
                    bail!(
                        "{flag} is for a repository at a URL, and {} is a folder; hint: leave it out, or name a URL with --repository",
                        path.display()
                    );
                }
                return Ok((path, None));
            }
            RepositoryAddress::Remote(url) => url,
        };
        let login = Login {
            credentials: absolute(self.git_credentials.as_deref())?,
            ca: absolute(self.git_ca.as_deref())?,
            ssh_key: absolute(self.git_ssh_key.as_deref())?,
            known_hosts: absolute(self.git_known_hosts.as_deref())?,
        };
        login.check(&url)?;
        let copy = std::path::absolute(&self.copy).context("the folder of --copy has no place")?;
        let options = RemoteOptions {
            url,
            copy: copy.clone(),
            login,
            timeout: Duration::from_secs(self.git_timeout_seconds),
            depth: (self.depth > 0).then_some(self.depth),
        };
        Ok((copy, Some(options)))
    }
}

/// Git runs in the folder of the copy, where a relative path would mean another file.
fn absolute(path: Option<&Path>) -> anyhow::Result<Option<PathBuf>> {
    let made = path.map(|path| std::path::absolute(path).with_context(|| format!("{} is no path", path.display())));
    made.transpose()
}
