//! The audit trail: one JSON line for each request, written when its answer ended, and one before for what lasts. Never a
//! payload, never a credential.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use render::access::{Attributes, Person, Target};
use serde::Serialize;
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;
use tracing::Instrument as _;

use crate::audit::{AuditLog, Folded, Share};
use crate::hub::clock::seconds;
use crate::limits::{AUDIT_LOOK, AUDIT_ROOM_TIMEOUT};

/// What is told of one request.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Line {
    /// RFC 3339, of the request's begin.
    pub(super) time: String,
    pub(super) request_id: String,
    /// `begun`, of what lasts; its end is a line of its own.
    #[serde(skip_serializing_if = "str::is_empty")]
    pub(super) stage: &'static str,
    /// The address of the caller.
    pub(super) from: String,
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
    /// The address that was to be reached from the cluster.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(super) target: String,
    /// The binding by which it was allowed.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(super) by: String,
    pub(super) bytes_up: u64,
    pub(super) bytes_down: u64,
    pub(super) duration_ms: u64,
    pub(super) code: u16,
    /// How it ended: `done`, `cancelled` by its caller, `revoked` with its right or login, or the tunnel's own code. Empty: it did
    /// not end yet, or nothing was begun.
    #[serde(skip_serializing_if = "str::is_empty")]
    pub(super) close: &'static str,
    /// It was refused since there is no room for lines.
    #[serde(skip)]
    pub(super) lacked_room: bool,
    /// How many like it this line stands for beside itself.
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

/// Why nothing more can be told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NoRoom {
    /// Lines cannot be written as fast as requests come.
    Behind,
    /// They cannot be written at all.
    Fails,
}

/// Takes lines.
pub(super) struct Audit {
    log: AuditLog,
    folded: Mutex<Folded<Line>>,
}

impl Audit {
    /// Begins to take lines. Until shutdown, what was left out is written now and then.
    pub(super) fn begin(log: AuditLog, shutdown: CancellationToken) -> Arc<Self> {
        let audit = Arc::new(Self::to(log));
        if !audit.log.is_nowhere() {
            tokio::spawn(Arc::clone(&audit).look(shutdown).in_current_span());
        }
        audit
    }

    fn to(log: AuditLog) -> Self {
        Self {
            log,
            folded: Mutex::default(),
        }
    }

    /// Waits until there is room for a line of somebody who is logged in. Where there is none in time, or nothing can be
    /// written, nobody would know of what they do.
    pub(super) async fn room(&self) -> Result<(), NoRoom> {
        if self.log.fails() {
            return Err(NoRoom::Fails);
        }
        let room = timeout(AUDIT_ROOM_TIMEOUT, self.log.room()).await;
        room.map_err(|_| NoRoom::Behind)
    }

    /// Writes a line, soon.
    pub(super) fn write(&self, line: Line) {
        if self.log.is_nowhere() {
            return;
        }
        if let Some(line) = self.folded().fold(line, Instant::now()) {
            self.send(&line);
        }
    }

    fn send(&self, line: &Line) {
        // Half of the queue is for those who are logged in and were not refused for want of it.
        let share = match line.user.is_empty() || line.lacked_room {
            true => Share::Half,
            false => Share::Whole,
        };
        self.log.write_soon(line, share);
    }

    /// Writes what was left out since shutdown: what was under way then had its line later.
    pub(super) fn end(&self) {
        let rest = self.folded().rest();
        rest.iter().for_each(|line| self.send(line));
        self.log.tell_lost();
    }

    async fn look(self: Arc<Self>, shutdown: CancellationToken) {
        loop {
            let rest = shutdown.run_until_cancelled(sleep(AUDIT_LOOK)).await;
            let due = match rest {
                Some(()) => self.folded().due(Instant::now()),
                None => self.folded().rest(),
            };
            for line in due {
                self.send(&line);
            }
            self.log.tell_lost();
            if rest.is_none() {
                return;
            }
        }
    }

    fn folded(&self) -> MutexGuard<'_, Folded<Line>> {
        self.folded.lock().unwrap_or_else(PoisonError::into_inner)
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
    use crate::audit::AuditTo;
    use crate::limits::AUDIT_LINES_MAX;

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

    fn line(user: &str, number: usize) -> Line {
        Line {
            user: user.to_owned(),
            from: number.to_string(),
            resource: "pods/exec".to_owned(),
            code: 401,
            ..Line::default()
        }
    }

    #[tokio::test]
    async fn a_flood_of_nobodys_requests_leaves_room_for_those_who_are_logged_in() {
        let (log, mut waiting) = AuditLog::read(AUDIT_LINES_MAX);
        let lost = log.lost();
        let audit = Audit::to(log);
        for number in 0..AUDIT_LINES_MAX {
            audit.write(line("", number));
        }
        audit.write(line("ada", 0));
        let mut lines = Vec::new();
        while let Ok(line) = waiting.try_recv() {
            lines.push(line);
        }
        assert_eq!(lines.len(), AUDIT_LINES_MAX / 2 + 1);
        assert!(lines.last().is_some_and(|line| line.contains("\"user\":\"ada\"")));
        assert_eq!(lost.count(), AUDIT_LINES_MAX as u64 / 2);
    }

    #[tokio::test(start_paused = true)]
    async fn nobody_is_served_whose_line_finds_no_room_in_time() {
        let (log, mut waiting) = AuditLog::read(1);
        let audit = Audit::to(log);
        assert!(audit.room().await.is_ok());
        audit.send(&line("ada", 0));
        let begin = Instant::now();
        assert!(audit.room().await.is_err());
        assert_eq!(begin.elapsed(), AUDIT_ROOM_TIMEOUT);
        waiting.recv().await.expect("it waits");
        assert!(audit.room().await.is_ok(), "it was written");
    }

    #[tokio::test]
    async fn what_was_left_out_is_in_the_file_when_the_hub_ends() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("audit");
        let shutdown = CancellationToken::new();
        let log = AuditLog::open(Some(&AuditTo::File(file.clone()))).expect("it is writable");
        let audit = Audit::begin(log, shutdown.clone());
        for _ in 0..3 {
            audit.write(line("", 0));
        }
        shutdown.cancel();
        let text = async {
            loop {
                let text = std::fs::read_to_string(&file).expect("it is there");
                if text.lines().count() == 2 {
                    return text;
                }
                tokio::task::yield_now().await;
            }
        };
        let text = timeout(std::time::Duration::from_secs(20), text)
            .await
            .expect("it is written");
        assert!(text.ends_with("\"more\":1}\n"), "{text}");
    }
}
