//! Who the hub is to a Git host: by files that flags name, or an ssh agent.
//!
//! What a file holds goes to `git` by a helper that reads the file when the host asks, never through an argument,
//! the environment or a message.

use std::ffi::OsString;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use super::address::{RemoteUrl, Scheme};
use crate::limits::CREDENTIALS_BYTES_MAX;

/// What proxies and agents are found by; nothing else of this process's environment reaches `git`. Without HOME it
/// finds no `.netrc` either.
const PASSED_ON: [&str; 8] = [
    "HTTPS_PROXY",
    "https_proxy",
    "http_proxy",
    "ALL_PROXY",
    "all_proxy",
    "NO_PROXY",
    "no_proxy",
    "SSH_AUTH_SOCK",
];

/// Files that the hub logs in with.
#[derive(Clone, Debug, Default)]
pub struct Login {
    /// `username=` and `password=` lines for http and https.
    pub credentials: Option<PathBuf>,
    /// Certificates that the host's must descend from, in place of the machine's.
    pub ca: Option<PathBuf>,
    /// The key for ssh; the agent at SSH_AUTH_SOCK without it.
    pub ssh_key: Option<PathBuf>,
    /// The host keys that are known, in place of ssh's own files.
    pub known_hosts: Option<PathBuf>,
}

/// Why a file cannot be logged in with. No content is repeated.
#[derive(Debug, thiserror::Error)]
pub enum LoginError {
    /// It is not there, or not for us.
    #[error("failed to read {path}, which {flag} names; hint: name a file that this process may read")]
    Read {
        /// Which.
        path: PathBuf,
        /// The flag that named it.
        flag: &'static str,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// Others on this machine can read it.
    #[error("{path} may be read by others (mode {mode:o}); hint: chmod 600 {path}")]
    Open {
        /// Which.
        path: PathBuf,
        /// Its mode.
        mode: u32,
    },
    /// A line that says nothing we know.
    #[error(
        "{path}:{line}: this line is neither username=NAME nor password=TOKEN; hint: write the two, each on a line of its own"
    )]
    Line {
        /// Which file.
        path: PathBuf,
        /// Which line, from 1.
        line: usize,
    },
    /// A line that must be there.
    #[error(
        "{path}: there is no line {field}=…; hint: write username=NAME and password=TOKEN, each on a line of its own"
    )]
    Missing {
        /// Which file.
        path: PathBuf,
        /// `username` or `password`.
        field: &'static str,
    },
    /// More than such a file can be.
    #[error("{path} is larger than {CREDENTIALS_BYTES_MAX} bytes, and holds no credentials")]
    Large {
        /// Which.
        path: PathBuf,
    },
    /// A flag that means nothing for this URL.
    #[error("{flag} is for {scheme} URLs, and {url} is none; hint: leave it out, or change --repository")]
    NotFor {
        /// The flag.
        flag: &'static str,
        /// What it is for.
        scheme: &'static str,
        /// The URL.
        url: String,
    },
    /// A password would cross the network readable by all.
    #[error("{url} is not encrypted, and the password would be readable on the way; hint: use https")]
    Unencrypted {
        /// The URL.
        url: String,
    },
}

impl Login {
    /// Reads each file once, so that a mistake shows when the hub starts.
    pub fn check(&self, url: &RemoteUrl) -> Result<(), LoginError> {
        let not_for = |flag, scheme| LoginError::NotFor {
            flag,
            scheme,
            url: url.to_string(),
        };
        if let Some(path) = &self.credentials {
            if !url.is_web() {
                return Err(not_for("--git-credentials", "https"));
            }
            if url.scheme == Scheme::Http && !url.is_loopback() {
                return Err(LoginError::Unencrypted { url: url.to_string() });
            }
            credentials(path)?;
        }
        if let Some(path) = &self.ca {
            if url.scheme != Scheme::Https {
                return Err(not_for("--git-ca", "https"));
            }
            read(path, "--git-ca")?;
        }
        for (path, flag) in [
            (&self.ssh_key, "--git-ssh-key"),
            (&self.known_hosts, "--git-known-hosts"),
        ] {
            if let Some(path) = path {
                if url.scheme != Scheme::Ssh {
                    return Err(not_for(flag, "ssh"));
                }
                read(path, flag)?;
            }
        }
        self.ssh_key.as_deref().map_or(Ok(()), private)
    }

    /// Settings for `git`.
    pub(super) fn settings(&self, url: &RemoteUrl) -> Vec<(String, String)> {
        let mut settings = vec![
            // No helper of this machine is asked.
            ("credential.helper".to_owned(), String::new()),
            ("http.lowSpeedLimit".to_owned(), "100".to_owned()),
            ("http.lowSpeedTime".to_owned(), "60".to_owned()),
            // A renamed repository is found; no later request is sent elsewhere.
            ("http.followRedirects".to_owned(), "initial".to_owned()),
        ];
        if self.credentials.is_some() {
            // For this host alone: one that it redirects to is told nothing.
            let helper =
                "!f() { test \"$1\" = get && grep -E '^(username|password)=' \"$FLOTILLA_GIT_CREDENTIALS\"; }; f";
            settings.push((format!("credential.{}.helper", url.origin()), helper.to_owned()));
        }
        if let Some(ca) = &self.ca {
            settings.push(("http.sslCAInfo".to_owned(), ca.display().to_string()));
        }
        settings
    }

    /// Environment for `git`.
    pub(super) fn environment(&self, url: &RemoteUrl) -> Vec<(&'static str, OsString)> {
        let passed_on = PASSED_ON
            .iter()
            .filter_map(|name| Some((*name, std::env::var_os(name)?)));
        let mut environment: Vec<_> = passed_on.collect();
        environment.push(("GIT_ALLOW_PROTOCOL", url.scheme.name().into()));
        environment.push(("GIT_SSH_COMMAND", self.ssh_command().into()));
        environment.push(("GIT_SSH_VARIANT", "ssh".into()));
        if let Some(path) = &self.credentials {
            environment.push(("FLOTILLA_GIT_CREDENTIALS", path.as_os_str().to_owned()));
        }
        environment
    }

    /// `ssh` that never asks, always verifies, and notices a connection that died.
    fn ssh_command(&self) -> String {
        let mut command = "ssh -F /dev/null -o BatchMode=yes -o StrictHostKeyChecking=yes -o UpdateHostKeys=no \
             -o ConnectTimeout=20 -o ServerAliveInterval=15 -o ServerAliveCountMax=4"
            .to_owned();
        if let Some(path) = &self.known_hosts {
            let file = quoted(path);
            command.push_str(&format!(
                " -o UserKnownHostsFile={file} -o GlobalKnownHostsFile=/dev/null"
            ));
        }
        if let Some(path) = &self.ssh_key {
            command.push_str(&format!(" -o IdentitiesOnly=yes -i {}", quoted(path)));
        }
        command
    }
}

/// A path as one word for a shell.
fn quoted(path: &Path) -> String {
    format!("'{}'", path.display().to_string().replace('\'', r"'\''"))
}

fn read(path: &Path, flag: &'static str) -> Result<Vec<u8>, LoginError> {
    let failed = |source| LoginError::Read {
        path: path.to_owned(),
        flag,
        source,
    };
    let metadata = std::fs::metadata(path).map_err(failed)?;
    // A bundle of every authority in the world has some hundred KiB; keys and credentials are small.
    if flag == "--git-credentials" && metadata.len() > CREDENTIALS_BYTES_MAX {
        return Err(LoginError::Large { path: path.to_owned() });
    }
    std::fs::read(path).map_err(failed)
}

fn private(path: &Path) -> Result<(), LoginError> {
    let mode = std::fs::metadata(path).map_or(0, |metadata| metadata.permissions().mode() & 0o777);
    if mode & 0o077 != 0 {
        return Err(LoginError::Open {
            path: path.to_owned(),
            mode,
        });
    }
    Ok(())
}

/// Checks a file of credentials: Git's own form, blank lines and remarks aside.
fn credentials(path: &Path) -> Result<(), LoginError> {
    let bytes = read(path, "--git-credentials")?;
    private(path)?;
    let text = String::from_utf8_lossy(&bytes);
    let mut found = [("username", false), ("password", false)];
    for (at, line) in text.lines().enumerate() {
        if line.trim().is_empty() || line.starts_with('#') {
            continue;
        }
        let field = line.split_once('=').filter(|(_, value)| !value.is_empty());
        let known = field.and_then(|(name, _)| found.iter_mut().find(|(field, there)| *field == name && !there));
        let Some((_, there)) = known else {
            return Err(LoginError::Line {
                path: path.to_owned(),
                line: at + 1,
            });
        };
        *there = true;
    }
    match found.iter().find(|(_, there)| !there) {
        None => Ok(()),
        Some((field, _)) => Err(LoginError::Missing {
            path: path.to_owned(),
            field,
        }),
    }
}
