//! The `git` program, for the one thing that is not done in process: packing a repository.
//!
//! It runs with none of this machine's configuration and none of this process's environment, so that what it
//! does follows from the arguments alone; it never prompts, and it ends with its timeout.

use std::ffi::OsStr;
use std::path::Path;
use std::process::Stdio;

use tokio::process::Command;

use crate::limits::GIT_COMMAND_TIMEOUT;

/// Bytes of its error output in a message.
const STDERR_CHARS_MAX: usize = 512;

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
    /// It said no.
    #[error("git {command} failed: {stderr}")]
    Failed {
        /// Its first argument.
        command: &'static str,
        /// What it wrote, shortened.
        stderr: String,
    },
}

/// Packs what commits left as loose objects. Objects that no ref reaches stay for Git's usual two weeks, so
/// that a commit being written meanwhile loses nothing.
pub async fn housekeep(repository: &Path) -> Result<(), GitError> {
    run(repository, "gc", &["--quiet"]).await
}

async fn run(repository: &Path, command: &'static str, arguments: &[&str]) -> Result<(), GitError> {
    let mut git = Command::new("git");
    git.env_clear()
        .envs(std::env::var_os("PATH").map(|path| ("PATH", path)))
        .env("LC_ALL", "C")
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_TERMINAL_PROMPT", "0")
        // The path is a process flag, hence trusted whoever owns the folder.
        .args(["-c", "safe.directory=*", "-C"])
        .args([repository.as_os_str(), OsStr::new(command)])
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .kill_on_drop(true);
    let output = tokio::time::timeout(GIT_COMMAND_TIMEOUT, git.output())
        .await
        .map_err(|_| GitError::Timeout {
            command,
            seconds: GIT_COMMAND_TIMEOUT.as_secs(),
        })?
        .map_err(GitError::NotRun)?;
    if output.status.success() {
        return Ok(());
    }
    let stderr = String::from_utf8_lossy(&output.stderr);
    Err(GitError::Failed {
        command,
        stderr: stderr.trim().chars().take(STDERR_CHARS_MAX).collect(),
    })
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
}
