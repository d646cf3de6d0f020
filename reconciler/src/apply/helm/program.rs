//! The `helm` program: the one file that starts it.
//!
//! It runs with none of this machine's configuration and none of this process's environment but the search
//! path and where certificates are: its homes are folders of one run, there are no plugins, and it is ended
//! with its timeout or with whoever waits for it.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt as _};
use tokio::process::Command;
use tokio::sync::Semaphore;

use crate::limits::{HELM_LONG_PROCESSES_MAX, HELM_OUTPUT_BYTES_MAX, HELM_PROCESSES_MAX, HELM_STDERR_BYTES_MAX};

/// Every helm of this process.
static PROCESSES: Semaphore = Semaphore::const_new(HELM_PROCESSES_MAX);

/// Those that may wait for hooks: never all of them, so that a hook that hangs delays no release without.
static LONG: Semaphore = Semaphore::const_new(HELM_LONG_PROCESSES_MAX);

/// Why helm did not do it.
#[derive(Debug, thiserror::Error)]
pub(super) enum HelmError {
    /// It is not installed, or could not be started.
    #[error("failed to run {}; hint: install helm 3 where this process finds it, or name it with --helm", program.display())]
    NotRun {
        /// What was looked for.
        program: PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// It took too long and was ended.
    #[error("helm {command} took longer than {seconds} seconds")]
    Timeout {
        /// Its first argument.
        command: &'static str,
        /// The limit.
        seconds: u64,
    },
    /// It wrote more than anybody can use.
    #[error("helm {command} wrote more than {HELM_OUTPUT_BYTES_MAX} bytes")]
    TooMuch {
        /// Its first argument.
        command: &'static str,
    },
    /// It said no.
    #[error("helm {command} failed: {words}")]
    Failed {
        /// Its first argument.
        command: &'static str,
        /// What it wrote.
        words: String,
    },
}

/// One run of helm.
pub(super) struct Call<'a> {
    /// The program.
    pub(super) program: &'a Path,
    /// The folder of this run: its homes and files.
    pub(super) home: &'a Path,
    /// Its command.
    pub(super) command: &'static str,
    /// What follows the command. Never a secret: every process of the machine may read it.
    pub(super) arguments: Vec<OsString>,
    /// How long it may take.
    pub(super) timeout: Duration,
    /// Whether it may wait for hooks or for objects.
    pub(super) is_long: bool,
}

/// Runs helm to its end, and gives what it said.
pub(super) async fn run(call: Call<'_>) -> Result<String, HelmError> {
    // Neither is ever closed.
    let _long = if call.is_long { LONG.acquire().await.ok() } else { None };
    let _one = PROCESSES.acquire().await.ok();
    let command = call.command;
    let ended = tokio::time::timeout(call.timeout, run_now(&call)).await;
    ended.unwrap_or(Err(HelmError::Timeout {
        command,
        seconds: call.timeout.as_secs(),
    }))
}

async fn run_now(call: &Call<'_>) -> Result<String, HelmError> {
    let not_run = |source| HelmError::NotRun {
        program: call.program.to_owned(),
        source,
    };
    let mut helm = Command::new(call.program);
    let kept = ["PATH", "SSL_CERT_FILE", "SSL_CERT_DIR"];
    helm.env_clear()
        .envs(kept.iter().filter_map(|name| Some((name, std::env::var_os(name)?))))
        .env("HOME", call.home)
        .env("TMPDIR", call.home)
        .env("HELM_CACHE_HOME", call.home.join("cache"))
        .env("HELM_CONFIG_HOME", call.home.join("config"))
        .env("HELM_DATA_HOME", call.home.join("data"))
        .env("HELM_NO_PLUGINS", "1")
        .env("HELM_DRIVER", "secret")
        .env("KUBECONFIG", call.home.join("kubeconfig"))
        .current_dir(call.home)
        .arg(call.command)
        .args(&call.arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true);
    let mut child = helm.spawn().map_err(not_run)?;
    let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
    let (output, errors) = tokio::join!(first(stdout, HELM_OUTPUT_BYTES_MAX), last(stderr));
    let status = child.wait().await.map_err(not_run)?;
    if output.len() > HELM_OUTPUT_BYTES_MAX {
        return Err(HelmError::TooMuch { command: call.command });
    }
    if status.success() {
        return Ok(String::from_utf8_lossy(&output).into_owned());
    }
    let words = spoken(&String::from_utf8_lossy(&errors));
    let words = if words.is_empty() { status.to_string() } else { words };
    Err(HelmError::Failed {
        command: call.command,
        words,
    })
}

/// Error output without the lines by which helm warns of what is no reason.
fn spoken(stderr: &str) -> String {
    let lines = stderr.lines().map(str::trim);
    let said = lines.filter(|line| !line.is_empty() && !line.starts_with("WARNING:"));
    let said: Vec<_> = said.map(|line| line.trim_start_matches("Error: ")).collect();
    said.join(" ")
}

/// The output up to one byte more than may be used; the rest is read and dropped, so that helm ends.
async fn first(stream: Option<impl AsyncRead + Unpin>, limit: usize) -> Vec<u8> {
    let mut kept = Vec::new();
    each_chunk(stream, |chunk| {
        let room = (limit + 1).saturating_sub(kept.len());
        kept.extend_from_slice(&chunk[..chunk.len().min(room)]);
    })
    .await;
    kept
}

/// The end of error output, which says why helm ended.
async fn last(stream: Option<impl AsyncRead + Unpin>) -> Vec<u8> {
    let mut kept = Vec::new();
    each_chunk(stream, |chunk| {
        kept.extend_from_slice(chunk);
        kept.drain(..kept.len().saturating_sub(HELM_STDERR_BYTES_MAX));
    })
    .await;
    kept
}

async fn each_chunk(stream: Option<impl AsyncRead + Unpin>, mut take: impl FnMut(&[u8])) {
    let Some(mut stream) = stream else { return };
    let mut chunk = vec![0; 8 << 10];
    while let Ok(count @ 1..) = stream.read(&mut chunk).await {
        take(&chunk[..count]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call<'a>(program: &'a str, home: &'a Path, command: &'static str, arguments: &[&str]) -> Call<'a> {
        Call {
            program: Path::new(program),
            home,
            command,
            arguments: arguments.iter().map(Into::into).collect(),
            timeout: Duration::from_secs(20),
            is_long: false,
        }
    }

    #[tokio::test]
    async fn a_program_that_is_not_there_says_what_to_do() {
        let folder = tempfile::tempdir().expect("a folder");
        let error = run(call("/nowhere/helm", folder.path(), "version", &[]))
            .await
            .expect_err("there is none");
        assert!(error.to_string().contains("--helm"), "{error}");
    }

    #[tokio::test]
    async fn a_run_that_takes_too_long_is_ended() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut sleeping = call("/bin/sh", folder.path(), "-c", &["read line < /dev/zero & wait"]);
        sleeping.timeout = Duration::from_millis(50);
        sleeping.arguments = vec!["sleep 60".into()];
        assert!(matches!(run(sleeping).await, Err(HelmError::Timeout { .. })));
    }

    #[tokio::test]
    async fn nothing_of_this_processs_environment_is_handed_on() {
        let folder = tempfile::tempdir().expect("a folder");
        let said = run(call("/bin/sh", folder.path(), "-c", &["env"]))
            .await
            .expect("it runs");
        assert!(!said.contains("CARGO"), "{said}");
        assert!(said.contains("HELM_NO_PLUGINS=1"), "{said}");
    }

    #[tokio::test]
    async fn a_failure_says_what_helm_said() {
        let folder = tempfile::tempdir().expect("a folder");
        let script = "echo 'WARNING: Kubernetes configuration file is group-readable' >&2; echo 'Error: no such chart' >&2; exit 1";
        let error = run(call("/bin/sh", folder.path(), "-c", &[script]))
            .await
            .expect_err("it fails");
        assert_eq!(error.to_string(), "helm -c failed: no such chart");
    }

    #[tokio::test]
    async fn output_without_end_is_not_kept() {
        let output = first(Some(&vec![b'a'; 100][..]), 10).await;
        assert_eq!(output.len(), 11);
    }
}
