//! The audit log: one line of JSON for each thing that somebody reached, in a file that only grows, or on stdout.
//!
//! In: lines. Out: the same lines, written by a thread of their own. What a line says is whose log it is: hub and agent
//! each have their own words. A payload, a query and a credential are in neither.

mod folded;

use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use serde::Serialize;
use tokio::sync::mpsc;

pub(crate) use folded::{Alike, Folded};

use crate::limits::AUDIT_LINES_MAX;

/// Where an audit log goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AuditTo {
    /// To stdout: `-`.
    Stdout,
    /// To the end of a file, which is made for its owner alone.
    File(PathBuf),
}

impl From<&str> for AuditTo {
    fn from(text: &str) -> Self {
        match text {
            "-" => Self::Stdout,
            path => Self::File(path.into()),
        }
    }
}

/// An audit log that cannot be written.
#[derive(Debug, thiserror::Error)]
#[error("failed to open the audit log {}; hint: name a file in a folder that this process may write to, or - for stdout", path.display())]
pub struct AuditError {
    path: PathBuf,
    #[source]
    source: io::Error,
}

/// Takes lines. Clones write to the same log.
#[derive(Clone, Debug, Default)]
pub struct AuditLog {
    lines: Option<mpsc::Sender<String>>,
}

impl AuditLog {
    /// Begins to write there; `None` is nowhere.
    pub fn open(to: Option<&AuditTo>) -> Result<Self, AuditError> {
        let out: Box<dyn Write + Send> = match to {
            None => return Ok(Self::default()),
            Some(AuditTo::Stdout) => Box::new(io::stdout()),
            Some(AuditTo::File(path)) => Box::new(appended(path)?),
        };
        let (lines, waiting) = mpsc::channel(AUDIT_LINES_MAX);
        // Ends with the last of those who write.
        tokio::task::spawn_blocking(move || write(out, waiting));
        Ok(Self { lines: Some(lines) })
    }

    /// A log that its test reads, with so many places.
    #[cfg(test)]
    pub(crate) fn read(places: usize) -> (Self, mpsc::Receiver<String>) {
        let (lines, waiting) = mpsc::channel(places);
        (Self { lines: Some(lines) }, waiting)
    }

    /// Whether all lines are lost on purpose.
    pub fn is_nowhere(&self) -> bool {
        self.lines.is_none()
    }

    /// Waits until there is room for a line.
    pub async fn room(&self) {
        if let Some(lines) = &self.lines {
            let _place = lines.reserve().await;
        }
    }

    /// Writes a line at once, where more places than `spare` are free. `false`: it is lost.
    pub fn try_write(&self, line: &impl Serialize, spare: usize) -> bool {
        let (Some(lines), Ok(text)) = (&self.lines, serde_json::to_string(line)) else {
            return true;
        };
        lines.capacity() > spare && lines.try_send(text).is_ok()
    }

    /// Writes a line, and waits while the disk is behind.
    pub async fn write(&self, line: &impl Serialize) {
        let (Some(lines), Ok(text)) = (&self.lines, serde_json::to_string(line)) else {
            return;
        };
        // The writer ends after all who write.
        let _written = lines.send(text).await;
    }
}

fn appended(path: &Path) -> Result<std::fs::File, AuditError> {
    let opened = std::fs::File::options()
        .create(true)
        .append(true)
        .mode(0o600)
        .open(path);
    opened.map_err(|source| AuditError {
        path: path.to_owned(),
        source,
    })
}

fn write(mut out: Box<dyn Write + Send>, mut lines: mpsc::Receiver<String>) {
    let mut fails = false;
    while let Some(mut line) = lines.blocking_recv() {
        line.push('\n');
        let written = out.write_all(line.as_bytes()).and_then(|()| out.flush());
        if let Err(error) = &written
            && !fails
        {
            tracing::error!(%error, "Could not write the audit log.");
        }
        fails = written.is_err();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn each_line_stands_at_the_end_of_a_file_for_its_owner() {
        use std::os::unix::fs::PermissionsExt as _;
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("audit.log");
        for word in ["one", "two"] {
            let log = AuditLog::open(Some(&AuditTo::File(path.clone()))).expect("it is writable");
            log.write(&serde_json::json!({ "word": word })).await;
            let lines = log.lines.clone().expect("it goes somewhere");
            drop(log);
            // The writer has taken it once the queue is whole again.
            let _all = lines.reserve_many(AUDIT_LINES_MAX).await.expect("it writes");
        }
        let mode = std::fs::metadata(&path).expect("it is there").permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        let text = tokio::task::spawn_blocking(move || {
            loop {
                let text = std::fs::read_to_string(&path).expect("it is readable");
                if text.lines().count() == 2 {
                    return text;
                }
                std::thread::yield_now();
            }
        });
        assert_eq!(
            text.await.expect("it is read"),
            "{\"word\":\"one\"}\n{\"word\":\"two\"}\n"
        );
    }

    #[test]
    fn a_log_that_cannot_be_written_says_so_at_once() {
        let to = AuditTo::from("/nowhere/at/all");
        assert!(AuditLog::open(Some(&to)).is_err());
    }
}
