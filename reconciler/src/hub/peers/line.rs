//! What the audit log says of one stream that another hub opened to a cluster: who, what, how much, how long, and how it
//! ended. The hub where the caller came in has a line of its own with the same id.

use std::sync::atomic::{AtomicU16, AtomicU64, Ordering};

use render::access::{Attributes, Target};
use render::time::rfc3339;
use serde::Serialize;
use tokio::time::Instant;

use crate::hub::clock::seconds;
use crate::telemetry::elapsed_ms;
use crate::wire::Caller;

/// One line. What is empty is left out.
#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Line {
    /// RFC 3339, of the stream's begin.
    time: String,
    request_id: String,
    /// The key of the hub where the caller came in.
    peer: String,
    cluster: String,
    /// As that hub knows them.
    user: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    groups: Vec<String>,
    class: String,
    #[serde(skip_serializing_if = "str::is_empty")]
    verb: &'static str,
    /// As RBAC names it, or a path without its query.
    #[serde(skip_serializing_if = "String::is_empty")]
    resource: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    namespace: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    name: String,
    bytes_up: u64,
    bytes_down: u64,
    duration_ms: u64,
    /// The answer's status; 0 where there was none.
    code: u16,
    /// How the stream ended, in the tunnel's words.
    closed: &'static str,
}

/// What went through a stream, counted while it does.
#[derive(Debug, Default)]
pub(super) struct Passed {
    up: AtomicU64,
    down: AtomicU64,
    code: AtomicU16,
}

impl Passed {
    /// Bytes of the caller's.
    pub(super) fn up(&self, bytes: usize) {
        self.up.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    /// Bytes of the answer, which begins with its status.
    pub(super) fn down(&self, bytes: &[u8]) {
        if self.down.fetch_add(bytes.len() as u64, Ordering::Relaxed) == 0 {
            self.code.store(status(bytes).unwrap_or_default(), Ordering::Relaxed);
        }
    }
}

/// The status in the first bytes of an answer; an address that was dialled gives none.
fn status(bytes: &[u8]) -> Option<u16> {
    let digits = bytes.strip_prefix(b"HTTP/1.1 ")?.get(..3)?;
    std::str::from_utf8(digits).ok()?.parse().ok()
}

/// A line that is not at its end yet.
pub(super) struct Begun {
    line: Line,
    since: Instant,
}

impl Begun {
    pub(super) fn new(peer: &str, cluster: &str, class: &str, request_id: &str) -> Self {
        Self {
            line: Line {
                time: rfc3339(seconds()),
                peer: peer.to_owned(),
                cluster: cluster.to_owned(),
                class: class.to_owned(),
                request_id: request_id.to_owned(),
                ..Line::default()
            },
            since: Instant::now(),
        }
    }

    /// It is known who asks.
    pub(super) fn asked_by(&mut self, caller: &Caller) {
        self.line.user.clone_from(&caller.user);
        self.line.groups.clone_from(&caller.groups);
    }

    /// It is known for what.
    pub(super) fn asked(&mut self, attributes: &Attributes) {
        self.line.verb = attributes.verb;
        self.line.resource = attributes.target.resource_name();
        if let Target::Resource { namespace, name, .. } = &attributes.target {
            self.line.namespace.clone_from(namespace);
            self.line.name.clone_from(name);
        }
    }

    /// The whole line.
    pub(super) fn ended(mut self, passed: &Passed, closed: &'static str) -> Line {
        self.line.bytes_up = passed.up.load(Ordering::Relaxed);
        self.line.bytes_down = passed.down.load(Ordering::Relaxed);
        self.line.code = passed.code.load(Ordering::Relaxed);
        self.line.duration_ms = elapsed_ms(self.since);
        self.line.closed = closed;
        self.line
    }
}
