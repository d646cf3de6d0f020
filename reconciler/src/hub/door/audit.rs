//! The audit trail: one JSON line for each request, written when its answer ended. Never a payload, never a credential.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use render::access::{Attributes, Person, Target};
use serde::Serialize;
use tokio::sync::mpsc;
use tokio::time::Instant;

use crate::hub::clock::seconds;
use crate::limits::{AUDIT_LINES_MAX, AUDIT_WATCH_REST, AUDIT_WATCHES_MAX};

/// Where audit lines go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AuditTo {
    /// Nowhere.
    Nowhere,
    /// To stdout.
    Stdout,
    /// To the end of a file.
    File(PathBuf),
}

/// What is told of one request.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Line {
    /// RFC 3339, of the request's begin.
    pub(super) time: String,
    pub(super) request_id: String,
    /// Empty: the hub itself.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(super) cluster: String,
    /// Empty: nobody logged in.
    pub(super) user: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) groups: Vec<String>,
    pub(super) class: &'static str,
    pub(super) verb: &'static str,
    /// As RBAC names it, or a path without its query.
    pub(super) resource: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(super) namespace: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(super) name: String,
    /// The binding by which it was allowed.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(super) by: String,
    pub(super) bytes_up: u64,
    pub(super) bytes_down: u64,
    pub(super) duration_ms: u64,
    pub(super) code: u16,
    /// Of a watch: how many like it this line stands for beside itself.
    #[serde(skip_serializing_if = "is_zero")]
    pub(super) more: u64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
fn is_zero(number: &u64) -> bool {
    *number == 0
}

impl Line {
    /// Takes over who asked.
    pub(super) fn person(&mut self, person: &Person) {
        self.user.clone_from(&person.user);
        self.groups.clone_from(&person.groups);
    }

    /// Takes over what was asked.
    pub(super) fn asked(&mut self, attributes: &Attributes) {
        self.class = attributes.class().as_str();
        self.verb = attributes.verb;
        self.resource = attributes.target.resource_name();
        if let Target::Resource { namespace, name, .. } = &attributes.target {
            self.namespace.clone_from(namespace);
            self.name.clone_from(name);
        }
    }
}

/// Which watches are alike.
type Kind = (String, String, String);

/// Takes lines.
pub(super) struct Audit {
    lines: Option<mpsc::Sender<Line>>,
    lost: AtomicU64,
    watches: Mutex<BTreeMap<Kind, (Instant, u64)>>,
}

impl Audit {
    /// Begins to write, in a thread of its own.
    pub(super) fn begin(to: &AuditTo) -> io::Result<Arc<Self>> {
        let out: Option<Box<dyn Write + Send>> = match to {
            AuditTo::Nowhere => None,
            AuditTo::Stdout => Some(Box::new(io::stdout())),
            AuditTo::File(path) => {
                use std::os::unix::fs::OpenOptionsExt as _;
                let file = std::fs::File::options()
                    .create(true)
                    .append(true)
                    .mode(0o600)
                    .open(path)?;
                Some(Box::new(file))
            }
        };
        let lines = out.map(|mut out| {
            let (lines, mut waiting) = mpsc::channel::<Line>(AUDIT_LINES_MAX);
            tokio::task::spawn_blocking(move || {
                let mut failed = false;
                while let Some(line) = waiting.blocking_recv() {
                    let text = serde_json::to_string(&line).unwrap_or_default();
                    let written = writeln!(out, "{text}").and_then(|()| out.flush());
                    if let Err(error) = &written
                        && !failed
                    {
                        tracing::error!(%error, "Could not write the audit log.");
                    }
                    failed = written.is_err();
                }
            });
            lines
        });
        Ok(Arc::new(Self {
            lines,
            lost: AtomicU64::new(0),
            watches: Mutex::default(),
        }))
    }

    /// Writes a line, soon.
    pub(super) fn write(&self, mut line: Line) {
        let Some(lines) = &self.lines else { return };
        if line.verb == "watch" && (200..300).contains(&line.code) {
            match self.watch(&line, Instant::now()) {
                Some(more) => line.more = more,
                None => return,
            }
        }
        if lines.try_send(line).is_err() && self.lost.fetch_add(1, Ordering::Relaxed) == 0 {
            tracing::error!("Audit lines are lost: they cannot be written as fast as requests come.");
        }
    }

    /// How many watches like this one were left out since the last line; `None`: it is left out as well.
    fn watch(&self, line: &Line, now: Instant) -> Option<u64> {
        let mut watches = self.watches.lock().unwrap_or_else(PoisonError::into_inner);
        let kind = (line.user.clone(), line.cluster.clone(), line.resource.clone());
        if let Some((last, left_out)) = watches.get_mut(&kind)
            && now.duration_since(*last) < AUDIT_WATCH_REST
        {
            *left_out += 1;
            return None;
        }
        if watches.len() >= AUDIT_WATCHES_MAX && !watches.contains_key(&kind) {
            watches.retain(|_, (last, _)| now.duration_since(*last) < AUDIT_WATCH_REST);
            if watches.len() >= AUDIT_WATCHES_MAX {
                return Some(0);
            }
        }
        let left_out = watches.insert(kind, (now, 0)).map_or(0, |(_, left_out)| left_out);
        Some(left_out)
    }
}

/// Now, as a line has it.
pub(super) fn now() -> String {
    render::time::rfc3339(seconds())
}

#[cfg(test)]
mod tests {
    use render::access::attributes;

    use super::*;

    #[test]
    fn a_line_names_what_was_asked_and_never_its_query() {
        let mut line = Line::default();
        let path = "/apis/apps/v1/namespaces/shop/deployments/web/scale";
        line.asked(&attributes("PATCH", path, Some("dryRun=All")).expect("a clear path"));
        let told = (
            line.class,
            line.verb,
            line.resource.as_str(),
            line.namespace.as_str(),
            line.name.as_str(),
        );
        assert_eq!(told, ("write", "patch", "deployments.apps/scale", "shop", "web"));
        let text = serde_json::to_string(&line).expect("it is JSON");
        assert!(!text.contains("dryRun"), "{text}");
    }

    #[tokio::test(start_paused = true)]
    async fn watches_that_are_alike_are_one_line_a_minute() {
        let folder = tempfile::tempdir().expect("a folder");
        let audit = Audit::begin(&AuditTo::File(folder.path().join("audit"))).expect("it is writable");
        let line = |user: &str| Line {
            user: user.to_owned(),
            resource: "pods".to_owned(),
            verb: "watch",
            ..Line::default()
        };
        let now = Instant::now();
        assert_eq!(audit.watch(&line("ada"), now), Some(0));
        assert_eq!(audit.watch(&line("ada"), now), None);
        assert_eq!(audit.watch(&line("bob"), now), Some(0), "another person's is told");
        assert_eq!(audit.watch(&line("ada"), now + AUDIT_WATCH_REST), Some(1));
    }
}
