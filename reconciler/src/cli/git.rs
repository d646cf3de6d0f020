//! A person's own `git`, in a person's clone: it runs their hooks, signs as they sign and is who they are.
//!
//! Unlike the hub's, it has this process's environment and the person's configuration on purpose. It has no
//! timeout: it may ask for a passphrase, and whoever sits before it ends it.

use std::ffi::OsStr;
use std::io::Write as _;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, bail};
use render::Revision;

/// `git` in one folder.
pub(super) struct Git {
    folder: PathBuf,
    environment: Vec<(&'static str, PathBuf)>,
}

impl Git {
    /// As `git -C folder`.
    pub(super) fn at(folder: &Path) -> Self {
        Self {
            folder: folder.to_owned(),
            environment: Vec::new(),
        }
    }

    /// With one more environment variable.
    pub(super) fn with(mut self, name: &'static str, value: PathBuf) -> Self {
        self.environment.push((name, value));
        self
    }

    /// What it prints, without the line's end. Fails with git's own words.
    pub(super) fn ask<S: AsRef<OsStr>>(&self, arguments: &[S]) -> anyhow::Result<String> {
        self.ask_with(arguments, &[])
    }

    /// As [`Self::ask`], with something to read.
    pub(super) fn ask_with<S: AsRef<OsStr>>(&self, arguments: &[S], input: &[u8]) -> anyhow::Result<String> {
        let mut command = self.command(arguments);
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = command.spawn().context(NOT_RUN)?;
        if let Some(mut stdin) = child.stdin.take() {
            // Whoever does not read to the end says why in its exit.
            drop(stdin.write_all(input));
        }
        let output = child.wait_with_output().context(NOT_RUN)?;
        if !output.status.success() {
            let words = String::from_utf8_lossy(&output.stderr);
            bail!("{}", said(words.trim(), arguments));
        }
        let text = String::from_utf8(output.stdout).context("git printed something that is no text")?;
        Ok(text.trim_end_matches('\n').to_owned())
    }

    /// Whether it exits with 0; for commands that answer by their exit.
    pub(super) fn holds<S: AsRef<OsStr>>(&self, arguments: &[S]) -> anyhow::Result<bool> {
        let mut command = self.command(arguments);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        Ok(command.status().context(NOT_RUN)?.success())
    }

    /// Whether a commit is in the clone.
    pub(super) fn knows(&self, commit: &Revision) -> anyhow::Result<bool> {
        self.holds(&["cat-file", "-e", &format!("{commit}^{{commit}}")])
    }

    /// Whether a revision is a commit, or builds on it. False where the commit is not in the clone.
    pub(super) fn contains(&self, commit: &Revision, of: &str) -> anyhow::Result<bool> {
        self.holds(&["merge-base", "--is-ancestor", commit.as_str(), of])
    }

    /// Files of the work tree that differ from the newest commit. `None` where there is no work tree, or no git.
    pub(super) fn not_committed(&self) -> Option<usize> {
        let ask = ["--no-optional-locks", "status", "--porcelain", "--untracked-files=all"];
        Some(self.ask(&ask).ok()?.lines().count())
    }

    /// Runs it before the person: what it and its hooks say is seen, and it may ask. Its own output goes to
    /// stderr, but for that of a command whose output is the answer.
    pub(super) fn run<S: AsRef<OsStr>>(&self, arguments: &[S], shown: Shown) -> anyhow::Result<()> {
        let mut command = self.command(arguments);
        if shown == Shown::Aside {
            command.stdout(std::io::stderr());
        }
        let status = command.status().context(NOT_RUN)?;
        // A reader that has seen enough of the answer goes away, as `head` does; that is no error.
        let unread = shown == Shown::Answer && status.signal() == Some(SIGPIPE);
        if !status.success() && !unread {
            bail!("{}", said("", arguments));
        }
        Ok(())
    }

    fn command<S: AsRef<OsStr>>(&self, arguments: &[S]) -> Command {
        let mut command = Command::new("git");
        command.arg("-C").arg(&self.folder).args(arguments);
        command.envs(self.environment.iter().map(|(name, value)| (name, value)));
        command
    }
}

/// Where a command's output goes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Shown {
    /// To stdout: it is what was asked for.
    Answer,
    /// To stderr.
    Aside,
}

/// The signal that ends who writes to nobody; the number is the same on every Unix.
const SIGPIPE: i32 = 13;

const NOT_RUN: &str = "failed to run git; is it installed?";

/// Git's words, or which command it was that failed.
fn said<S: AsRef<OsStr>>(words: &str, arguments: &[S]) -> String {
    let command = arguments.first().map(|argument| argument.as_ref().to_string_lossy());
    let command = command.unwrap_or_default();
    let words = words
        .strip_prefix("fatal: ")
        .or(words.strip_prefix("error: "))
        .unwrap_or(words);
    match words {
        "" => format!("git {command} failed"),
        words => format!("git {command} failed: {words}"),
    }
}
