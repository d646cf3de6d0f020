//! What the audit log says of one stream that the hub opened: who, what, how much, how long, and how it ended.

use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};

use jiff::Timestamp;
use render::ClusterName;
use render::access::{Attributes, Target};
use serde::Serialize;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::Instant;
use tunnel::Open;

use crate::audit::Alike;
use crate::telemetry::elapsed_ms;
use crate::wire::Caller;

/// One line. What is empty is left out.
#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(in crate::agent) struct Line {
    /// RFC 3339, of the stream's begin.
    time: String,
    /// Which cluster was reached: logs of several agents are often read in one place.
    cluster: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    request_id: String,
    /// As the hub knows them; nobody for the hub itself.
    #[serde(skip_serializing_if = "String::is_empty")]
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
    /// What was to be dialled or answered, and the address that was dialled.
    #[serde(skip_serializing_if = "String::is_empty")]
    target: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    address: String,
    /// How many requests, where there may be several.
    #[serde(skip_serializing_if = "is_zero")]
    requests: u64,
    /// The last answer's status.
    #[serde(skip_serializing_if = "Option::is_none")]
    code: Option<u16>,
    /// From the hub.
    bytes_up: u64,
    /// To the hub.
    bytes_down: u64,
    duration_ms: u64,
    /// How many watches like it this line stands for beside itself.
    #[serde(skip_serializing_if = "is_zero")]
    more: u64,
    /// `done`, or as the stream's reset was called.
    close: &'static str,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// A line that is being lived.
pub(in crate::agent) struct Begun {
    line: Line,
    since: Instant,
    pub(in crate::agent) bytes: Bytes,
}

/// What went over a stream so far.
#[derive(Clone, Debug, Default)]
pub(in crate::agent) struct Bytes(Arc<[AtomicU64; 2]>);

impl Begun {
    /// A stream that was asked for now.
    pub(in crate::agent) fn new(cluster: &ClusterName, open: &Open) -> Self {
        Self {
            line: Line {
                time: Timestamp::now().to_string(),
                cluster: cluster.to_string(),
                class: open.class.as_str().to_owned(),
                target: open.target.clone(),
                request_id: open.request_id.clone(),
                ..Line::default()
            },
            since: Instant::now(),
            bytes: Bytes::default(),
        }
    }

    /// Takes over who asks.
    pub(in crate::agent) fn asked_by(&mut self, caller: &Caller) {
        self.line.user.clone_from(&caller.user);
        self.line.groups.clone_from(&caller.groups);
        if !caller.request_id.is_empty() {
            self.line.request_id.clone_from(&caller.request_id);
        }
    }

    /// Takes over what was dialled.
    pub(in crate::agent) fn dialled(&mut self, address: SocketAddr) {
        self.line.address = address.to_string();
    }

    /// Takes over what was asked, and how it was answered. Of several requests only their number is told.
    pub(in crate::agent) fn answered(&mut self, answered: &super::Answered) {
        self.line.code = answered.code;
        if answered.requests > 1 {
            self.line.requests = answered.requests;
        } else if let Some(attributes) = &answered.asked {
            self.line.asked(attributes);
        }
    }

    /// The line of a stream that ended so.
    pub(in crate::agent) fn ended(mut self, close: &'static str) -> Line {
        [self.line.bytes_up, self.line.bytes_down] = [0, 1].map(|way: usize| self.bytes.0[way].load(Ordering::Relaxed));
        self.line.duration_ms = elapsed_ms(self.since);
        self.line.close = close;
        self.line
    }
}

impl Line {
    fn asked(&mut self, attributes: &Attributes) {
        self.verb = attributes.verb;
        self.resource = attributes.target.resource_name();
        if let Target::Resource { namespace, name, .. } = &attributes.target {
            self.namespace.clone_from(namespace);
            self.name.clone_from(name);
        }
    }
}

/// Watches of one person and the same objects are alike.
impl Alike for Line {
    type Kind = [String; 4];

    fn kind(&self) -> Option<Self::Kind> {
        let is_watch = self.verb == "watch" && self.code.is_some_and(|code| (200..300).contains(&code));
        // The hub's own are many, and each is a line of its own: they last.
        let is_somebodys = !self.user.is_empty();
        let kind = [&self.user, &self.resource, &self.namespace, &self.name];
        (is_watch && is_somebodys).then(|| kind.map(String::clone))
    }

    fn stand_for(&mut self, earlier: &Self) {
        self.more += earlier.more + 1;
        self.bytes_up += earlier.bytes_up;
        self.bytes_down += earlier.bytes_down;
    }
}

/// A stream whose bytes are counted.
pub(in crate::agent) struct Counted<S> {
    stream: S,
    bytes: Bytes,
}

impl<S> Counted<S> {
    pub(in crate::agent) fn new(stream: S, bytes: Bytes) -> Self {
        Self { stream, bytes }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Counted<S> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<std::io::Result<()>> {
        let before = buf.filled().len();
        let read = Pin::new(&mut self.stream).poll_read(cx, buf);
        let bytes = buf.filled().len() - before;
        self.bytes.0[0].fetch_add(bytes as u64, Ordering::Relaxed);
        read
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Counted<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<std::io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(cx, bytes);
        if let Poll::Ready(Ok(bytes)) = &written {
            self.bytes.0[1].fetch_add(*bytes as u64, Ordering::Relaxed);
        }
        written
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tunnel::TargetClass;

    use super::*;
    use crate::agent::gate::Answered;

    #[tokio::test(start_paused = true)]
    async fn a_line_says_who_asked_for_what_and_never_the_query_or_the_answer() {
        let cluster = ClusterName::parse("oslo").expect("a name");
        let mut begun = Begun::new(&cluster, &Open::new(TargetClass::ApiServer, "", Duration::from_secs(1)));
        begun.asked_by(&Caller {
            user: "ann".to_owned(),
            groups: vec!["crew".to_owned()],
            request_id: "r-2".to_owned(),
        });
        let path = "/api/v1/namespaces/shop/pods/web/log";
        let asked = render::access::attributes("GET", path, Some("token=secret")).expect("a clear path");
        begun.answered(&Answered {
            asked: Some(asked),
            code: Some(200),
            requests: 1,
        });
        tokio::time::advance(Duration::from_millis(12)).await;
        let line = serde_json::to_value(begun.ended("done")).expect("it is JSON");
        assert!(line["time"].as_str().is_some_and(|time| time.ends_with('Z')), "{line}");
        let mut line = line.as_object().expect("an object").clone();
        line.remove("time");
        let expected = serde_json::json!({
            "cluster": "oslo", "requestId": "r-2", "user": "ann", "groups": ["crew"], "class": "apiserver", "verb": "get",
            "resource": "pods/log", "namespace": "shop", "name": "web", "code": 200,
            "bytesUp": 0, "bytesDown": 0, "durationMs": 12, "close": "done",
        });
        assert_eq!(serde_json::Value::Object(line), expected);
    }
}
