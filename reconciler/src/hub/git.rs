//! The `git` program, for what is not done in process: packing a repository, and talking to a remote one.
//!
//! It runs with none of this machine's configuration and none of this process's environment but what its
//! caller names, so that what it does follows from the call alone; it never prompts, has no input but what it is
//! given, and ends with its timeout.

use std::ffi::{OsStr, OsString};
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _};
use tokio::process::{Child, Command};

use crate::limits::{GIT_COMMAND_TIMEOUT, GIT_OUTPUT_BYTES_MAX, GIT_STDERR_BYTES_MAX, GIT_STDERR_CHARS_MAX};

/// Why `git` did not do it.
#[derive(Debug, thiserror::Error)]
pub enum GitError {
    /// It is not installed, or could not be started.
    #[error("failed to run git; is it installed?")]
    NotRun(#[source] std::io::Error),
    /// It took too long and was ended.
    #[error("git {command} took longer than {seconds} seconds")]
    Timeout {
        /// Its first argument.
        command: &'static str,
        /// The limit.
        seconds: u64,
    },
    /// It wrote more than anybody can use.
    #[error("git {command} wrote more than {GIT_OUTPUT_BYTES_MAX} bytes")]
    TooMuch {
        /// Its first argument.
        command: &'static str,
    },
    /// It said no.
    #[error("git {command} failed: {stderr}")]
    Failed {
        /// Its first argument.
        command: &'static str,
        /// What it wrote, shortened.
        stderr: String,
    },
}

/// One run of `git`.
pub(super) struct Call<'a> {
    /// The repository it works in.
    pub(super) repository: &'a Path,
    /// Its command.
    pub(super) command: &'static str,
    /// What follows the command.
    pub(super) arguments: Vec<OsString>,
    /// More settings (`key`, `value`), which no argument list shows.
    pub(super) settings: &'a [(String, String)],
    /// More environment.
    pub(super) environment: &'a [(&'static str, OsString)],
    /// What it reads.
    pub(super) input: Vec<u8>,
    /// How long it may take.
    pub(super) timeout: Duration,
    /// Hears the lines by which it tells how far it is.
    pub(super) progress: &'a (dyn Fn(&str) + Send + Sync),
}

/// What it said.
#[derive(Debug)]
pub(super) struct Said {
    /// Whether it succeeded.
    pub(super) success: bool,
    /// Its output.
    pub(super) stdout: String,
    /// The end of its error output, without progress.
    pub(super) stderr: String,
}

/// Packs what commits left as loose objects. Objects that no ref reaches stay for Git's usual two weeks, so
/// that a commit being written meanwhile loses nothing.
pub async fn housekeep(repository: &Path) -> Result<(), GitError> {
    let command = "gc";
    let said = call(Call {
        arguments: vec!["--quiet".into()],
        ..Call::new(repository, command)
    })
    .await?;
    said.succeeded(command).map(drop)
}

impl<'a> Call<'a> {
    /// A command without arguments.
    pub(super) fn new(repository: &'a Path, command: &'static str) -> Self {
        Self {
            repository,
            command,
            arguments: Vec::new(),
            settings: &[],
            environment: &[],
            input: Vec::new(),
            timeout: GIT_COMMAND_TIMEOUT,
            progress: &|_| {},
        }
    }

    fn start(&self) -> Result<Child, GitError> {
        let mut git = Command::new("git");
        git.env_clear()
            .envs(std::env::var_os("PATH").map(|path| ("PATH", path)))
            .env("LC_ALL", "C")
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .env("GIT_TERMINAL_PROMPT", "0")
            .env("GIT_ASKPASS", "")
            .env("SSH_ASKPASS_REQUIRE", "never")
            .env("GIT_CONFIG_COUNT", self.settings.len().to_string())
            .envs(self.environment.iter().map(|(name, value)| (name, value)));
        for (at, (key, value)) in self.settings.iter().enumerate() {
            git.env(format!("GIT_CONFIG_KEY_{at}"), key)
                .env(format!("GIT_CONFIG_VALUE_{at}"), value);
        }
        // The path is a process flag, hence trusted whoever owns the folder.
        git.args(["-c", "safe.directory=*", "-C"])
            .args([self.repository.as_os_str(), OsStr::new(self.command)])
            .args(&self.arguments)
            .stdin(if self.input.is_empty() {
                Stdio::null()
            } else {
                Stdio::piped()
            })
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true);
        git.spawn().map_err(GitError::NotRun)
    }
}

impl Said {
    /// Its output, or why there is none.
    pub(super) fn succeeded(self, command: &'static str) -> Result<String, GitError> {
        if self.success {
            return Ok(self.stdout);
        }
        Err(GitError::Failed {
            command,
            stderr: self.stderr.trim().chars().take(GIT_STDERR_CHARS_MAX).collect(),
        })
    }
}

/// Runs `git` to its end.
pub(super) async fn call(call: Call<'_>) -> Result<Said, GitError> {
    let command = call.command;
    let ended = tokio::time::timeout(call.timeout, run(&call)).await;
    ended.unwrap_or(Err(GitError::Timeout {
        command,
        seconds: call.timeout.as_secs(),
    }))
}

async fn run(call: &Call<'_>) -> Result<Said, GitError> {
    let mut child = call.start()?;
    let (stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    let write = async {
        if let Some(mut stdin) = stdin {
            // A command that ends without reading all of it says why by itself.
            let _written = stdin.write_all(&call.input).await;
        }
    };
    let mut output = Vec::new();
    let read = async {
        match stdout {
            Some(stdout) => stdout.take(GIT_OUTPUT_BYTES_MAX + 1).read_to_end(&mut output).await,
            None => Ok(0),
        }
    };
    let ((), read, stderr) = tokio::join!(write, read, errors(stderr, call.progress));
    read.map_err(GitError::NotRun)?;
    if output.len() as u64 > GIT_OUTPUT_BYTES_MAX {
        return Err(GitError::TooMuch { command: call.command });
    }
    let status = child.wait().await.map_err(GitError::NotRun)?;
    Ok(Said {
        success: status.success(),
        stdout: String::from_utf8_lossy(&output).into_owned(),
        stderr,
    })
}

/// Reads error output to its end: lines that overwrite each other are progress, and the last of the others are
/// kept.
async fn errors(stderr: Option<impl AsyncRead + Unpin>, progress: &(dyn Fn(&str) + Send + Sync)) -> String {
    let Some(mut stderr) = stderr else {
        return String::new();
    };
    let (mut kept, mut line, mut chunk) = (Vec::new(), Vec::new(), vec![0; 4 << 10]);
    let mut returned = false;
    while let Ok(count @ 1..) = stderr.read(&mut chunk).await {
        for byte in &chunk[..count] {
            // Before a line's end it is only how ssh ends lines.
            if std::mem::take(&mut returned) && *byte != b'\n' {
                progress(String::from_utf8_lossy(&line).trim());
                line.clear();
            }
            match byte {
                b'\r' => returned = true,
                b'\n' => {
                    kept.append(&mut line);
                    kept.push(b'\n');
                }
                byte if line.len() < GIT_STDERR_BYTES_MAX => line.push(*byte),
                _ => {}
            }
        }
        kept.drain(..kept.len().saturating_sub(GIT_STDERR_BYTES_MAX));
    }
    kept.append(&mut line);
    String::from_utf8_lossy(&kept).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hub::repository::fixture::Fixture;

    #[tokio::test]
    async fn housekeeping_packs_loose_objects() {
        let fixture = Fixture::new();
        fixture.write("a.yaml", "a");
        let head = fixture.commit("one");
        assert!(fixture.loose(&head).exists());
        housekeep(fixture.path()).await.expect("git is installed");
        assert!(!fixture.loose(&head).exists());
        assert_eq!(fixture.git(&["cat-file", "-t", &head]), "commit");
    }

    #[tokio::test]
    async fn a_failure_says_what_git_said() {
        let folder = tempfile::tempdir().expect("a folder");
        let Err(GitError::Failed { stderr, .. }) = housekeep(folder.path()).await else {
            unreachable!("there is no repository");
        };
        assert!(stderr.contains("not a git repository"), "{stderr}");
    }

    #[tokio::test]
    async fn progress_is_told_and_not_kept() {
        let told = std::sync::Mutex::new(Vec::new());
        let tell = |line: &str| told.lock().expect("no panic").push(line.to_owned());
        let output: &[u8] = b"Receiving objects: 5%\rReceiving objects: 100%\rdone\nPermission denied.\r\nfatal: no\n";
        assert_eq!(
            errors(Some(output), &tell).await,
            "done\nPermission denied.\nfatal: no\n"
        );
        assert_eq!(
            *told.lock().expect("no panic"),
            ["Receiving objects: 5%", "Receiving objects: 100%"]
        );
    }
}
