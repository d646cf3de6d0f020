//! `git`, as the demo itself calls it: with nothing of the surroundings that could ask, sign or refuse.

use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context as _, bail};
use tokio::process::Command;
use tokio::time::timeout;

/// No command of the demo takes this long, unless it waits for somebody.
const LIMIT: Duration = Duration::from_secs(60);

/// Variables of a git that this process may have been started by.
const INHERITED: [&str; 4] = ["GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_PREFIX"];

/// What a person's own settings must not change about the demo's commits.
const SETTINGS: [&str; 5] = [
    "user.name=Flotilla Demo",
    "user.email=demo@example.com",
    "commit.gpgsign=false",
    "core.hooksPath=/dev/null",
    "core.autocrlf=false",
];

/// Runs git in a folder; what it printed, trimmed.
pub(super) async fn git(folder: &Path, arguments: &[&str]) -> anyhow::Result<String> {
    let mut command = Command::new("git");
    command.current_dir(folder).stdin(Stdio::null()).kill_on_drop(true);
    for name in INHERITED {
        command.env_remove(name);
    }
    for setting in SETTINGS {
        command.args(["-c", setting]);
    }
    let line = format!("git {}", arguments.join(" "));
    let output = timeout(LIMIT, command.args(arguments).output())
        .await
        .with_context(|| format!("`{line}` took longer than {LIMIT:?}"))?
        .context("git could not be started; install it, and start again")?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        bail!("`{line}` failed in {}: {}", folder.display(), said.trim());
    }
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

/// Whether a person who commits in this folder has a name.
pub(super) async fn knows_the_person(folder: &Path) -> bool {
    let mut known = true;
    for field in ["user.name", "user.email"] {
        let asked = Command::new("git")
            .current_dir(folder)
            .args(["config", "--get", field])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status();
        known &= matches!(timeout(LIMIT, asked).await, Ok(Ok(status)) if status.success());
    }
    known
}
