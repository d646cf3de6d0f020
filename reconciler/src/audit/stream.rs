//! What an audit log says of one stream to a cluster, or of one request where several follow one another on it, at its agent
//! and at the hub that holds its tunnel: who, what, how much, how long, and how it ended. What lasts has a line while it does.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use render::access::{Attributes, Target};
use serde::Serialize;
use tokio::time::Instant;

use super::Alike;
use crate::limits::AUDIT_BEGUN_AFTER;
use crate::telemetry::elapsed_ms;
use crate::wire::Caller;

/// One line. What is empty is left out.
#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct StreamLine {
    /// RFC 3339, of the begin of the stream or request.
    pub(crate) time: String,
    /// `begun`, of what lasts; its end is a line of its own.
    #[serde(skip_serializing_if = "str::is_empty")]
    pub(crate) stage: &'static str,
    /// The key of the hub where the caller came in, where that is another one.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) peer: String,
    /// Which cluster was reached: logs of several agents are often read in one place. Empty where a hub could not read which
    /// one another hub meant.
    pub(crate) cluster: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) request_id: String,
    /// As the hub knows them; nobody for the hub itself.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) user: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) groups: Vec<String>,
    pub(crate) class: String,
    #[serde(skip_serializing_if = "str::is_empty")]
    pub(crate) verb: &'static str,
    /// As RBAC names it, or a path without its query.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) resource: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) namespace: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) name: String,
    /// What was to be dialled or answered, and the address that was dialled.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) target: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) address: String,
    /// How many requests, where there may be several.
    #[serde(skip_serializing_if = "is_zero")]
    pub(crate) requests: u64,
    /// The last answer's status.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) code: Option<u16>,
    /// From whoever asks.
    pub(crate) bytes_up: u64,
    /// To them.
    pub(crate) bytes_down: u64,
    pub(crate) duration_ms: u64,
    /// How many watches like it this line stands for beside itself.
    #[serde(skip_serializing_if = "is_zero")]
    pub(crate) more: u64,
    /// `done`, or as the stream's reset was called. Empty: it goes on.
    #[serde(skip_serializing_if = "str::is_empty")]
    pub(crate) close: &'static str,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// A line that is being lived.
#[derive(Debug)]
pub(crate) struct Begun {
    line: Mutex<StreamLine>,
    since: Instant,
    pub(crate) bytes: Bytes,
    /// What had gone over the stream before.
    before: [u64; 2],
}

/// What went over a stream so far.
#[derive(Clone, Debug, Default)]
pub(crate) struct Bytes(Arc<[AtomicU64; 2]>);

impl Bytes {
    /// Of whoever asks, and of the answer.
    pub(crate) fn so_far(&self) -> [u64; 2] {
        [0, 1].map(|way: usize| self.0[way].load(Ordering::Relaxed))
    }

    /// More of whoever asks.
    pub(crate) fn up(&self, bytes: usize) {
        self.0[0].fetch_add(bytes as u64, Ordering::Relaxed);
    }

    /// More of the answer; whether it was the first.
    pub(crate) fn down(&self, bytes: usize) -> bool {
        self.0[1].fetch_add(bytes as u64, Ordering::Relaxed) == 0
    }
}

impl Begun {
    /// A stream that was asked for now.
    pub(crate) fn new(line: StreamLine) -> Self {
        Self {
            line: Mutex::new(line),
            since: Instant::now(),
            bytes: Bytes::default(),
            before: [0; 2],
        }
    }

    /// What follows on the same stream, and the bytes that had gone over it when this one ended.
    #[cfg(feature = "agent")]
    pub(crate) fn next(&self, line: StreamLine, before: [u64; 2]) -> Self {
        Self {
            line: Mutex::new(line),
            since: Instant::now(),
            bytes: self.bytes.clone(),
            before,
        }
    }

    /// When it is to be written that it lasts, if it does.
    #[cfg(feature = "agent")]
    pub(crate) fn lasts_at(&self) -> Instant {
        self.since + AUDIT_BEGUN_AFTER
    }

    /// Takes over what is known more.
    pub(crate) fn tell(&self, tell: impl FnOnce(&mut StreamLine)) {
        tell(&mut self.line());
    }

    /// Waits for what is carried. Once it lasts, it is written that it began.
    #[cfg(feature = "hub")]
    pub(crate) async fn lasting<T>(&self, carried: impl Future<Output = T>, write: impl FnOnce(StreamLine)) -> T {
        let mut carried = std::pin::pin!(carried);
        if let Ok(ended) = tokio::time::timeout(AUDIT_BEGUN_AFTER, carried.as_mut()).await {
            return ended;
        }
        write(self.lasts());
        carried.await
    }

    /// The line of what goes on.
    pub(crate) fn lasts(&self) -> StreamLine {
        let mut line = self.line().clone();
        line.stage = "begun";
        self.counted(line)
    }

    /// The line of what ended so.
    pub(crate) fn ended(&self, close: &'static str) -> StreamLine {
        let mut line = self.line().clone();
        line.close = close;
        self.counted(line)
    }

    fn counted(&self, mut line: StreamLine) -> StreamLine {
        let so_far = self.bytes.so_far();
        [line.bytes_up, line.bytes_down] = [0, 1].map(|way: usize| so_far[way].saturating_sub(self.before[way]));
        line.duration_ms = elapsed_ms(self.since);
        line
    }

    fn line(&self) -> MutexGuard<'_, StreamLine> {
        self.line.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl StreamLine {
    /// Takes over who asks.
    pub(crate) fn asked_by(&mut self, caller: &Caller) {
        self.user.clone_from(&caller.user);
        self.groups.clone_from(&caller.groups);
        if !caller.request_id.is_empty() {
            self.request_id.clone_from(&caller.request_id);
        }
    }

    /// Takes over what is asked.
    pub(crate) fn asked(&mut self, attributes: &Attributes) {
        self.verb = attributes.verb;
        self.resource = attributes.target.resource_name();
        if let Target::Resource { namespace, name, .. } = &attributes.target {
            self.namespace.clone_from(namespace);
            self.name.clone_from(name);
        }
    }
}

/// Watches of one person and the same objects are alike.
impl Alike for StreamLine {
    type Kind = [String; 6];

    fn kind(&self) -> Option<Self::Kind> {
        let is_watch = self.verb == "watch" && self.code.is_some_and(|code| (200..300).contains(&code));
        // The hub's own are many, and each is a line of its own: they last.
        let is_somebodys = !self.user.is_empty();
        let stage = self.stage.to_owned();
        let kind = [
            &self.cluster,
            &self.user,
            &self.resource,
            &self.namespace,
            &self.name,
            &stage,
        ];
        (is_watch && is_somebodys).then(|| kind.map(String::clone))
    }

    fn stand_for(&mut self, earlier: &Self) {
        self.more += earlier.more + 1;
        self.bytes_up += earlier.bytes_up;
        self.bytes_down += earlier.bytes_down;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn begun() -> Begun {
        let begun = Begun::new(StreamLine {
            time: "2026-11-30T12:00:00Z".to_owned(),
            cluster: "oslo".to_owned(),
            class: "apiserver".to_owned(),
            ..StreamLine::default()
        });
        begun.tell(|line| {
            line.asked_by(&Caller {
                user: "ann".to_owned(),
                groups: vec!["crew".to_owned()],
                request_id: "r-2".to_owned(),
            });
        });
        begun
    }

    #[tokio::test(start_paused = true)]
    async fn a_line_says_who_asked_for_what_and_never_the_query_or_the_answer() {
        let begun = begun();
        let path = "/api/v1/namespaces/shop/pods/web/log";
        let asked = render::access::attributes("GET", path, Some("token=secret")).expect("a clear path");
        begun.tell(|line| {
            line.asked(&asked);
            line.code = Some(200);
        });
        begun.bytes.up(3);
        assert!(begun.bytes.down(5) && !begun.bytes.down(2));
        tokio::time::advance(std::time::Duration::from_millis(12)).await;
        let line = serde_json::to_value(begun.ended("done")).expect("it is JSON");
        let expected = serde_json::json!({
            "time": "2026-11-30T12:00:00Z", "cluster": "oslo", "requestId": "r-2", "user": "ann", "groups": ["crew"],
            "class": "apiserver", "verb": "get", "resource": "pods/log", "namespace": "shop", "name": "web", "code": 200,
            "bytesUp": 3, "bytesDown": 7, "durationMs": 12, "close": "done",
        });
        assert_eq!(line, expected);
    }

    #[tokio::test(start_paused = true)]
    async fn what_lasts_has_a_line_while_it_does_and_what_does_not_has_none() {
        for (seconds, expected) in [(1, 0), (60, 1)] {
            let (begun, mut lines) = (begun(), Vec::new());
            let carried = tokio::time::sleep(std::time::Duration::from_secs(seconds));
            begun.lasting(carried, |line| lines.push(line)).await;
            assert_eq!(lines.len(), expected, "{seconds} s");
            for line in lines {
                assert_eq!((line.stage, line.user.as_str(), line.close), ("begun", "ann", ""));
                assert!(
                    line.duration_ms < 11_000,
                    "it is written in time: {} ms",
                    line.duration_ms
                );
            }
        }
    }
}
