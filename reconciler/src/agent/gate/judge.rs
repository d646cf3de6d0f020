//! Whether a request may pass, told by its line and its headers alone.

use http::{HeaderMap, Method, StatusCode, Uri};
use render::access::{self, Attributes, Class};

use super::own::Own;
use crate::limits::GATE_ANSWER_TIMEOUT;
use crate::wire::headers;

/// The way by which a request came: what class of stream it is on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::agent) enum Entry {
    /// To read, in somebody's name.
    Read,
    /// Into a container, or a port of one, in somebody's name.
    Interactive,
    /// As the agent itself, for the hub's applier.
    Push,
}

/// Why a request does not pass, as its caller reads it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Refused {
    pub(super) code: StatusCode,
    /// As Kubernetes has it, in one word.
    pub(super) reason: &'static str,
    pub(super) message: String,
}

impl Refused {
    pub(super) fn new(code: StatusCode, reason: &'static str, message: impl Into<String>) -> Self {
        Self {
            code,
            reason,
            message: message.into(),
        }
    }

    fn forbidden(message: impl Into<String>) -> Self {
        Self::new(StatusCode::FORBIDDEN, "Forbidden", message)
    }

    pub(super) fn unreadable(what: &str) -> Self {
        let message = format!("the request could not be read: {what}");
        Self::new(StatusCode::BAD_REQUEST, "BadRequest", message)
    }

    pub(super) fn late() -> Self {
        let seconds = GATE_ANSWER_TIMEOUT.as_secs();
        let message = format!("the API server did not answer within {seconds} s");
        Self::new(StatusCode::GATEWAY_TIMEOUT, "Timeout", message)
    }
}

/// What a request asks for, if it may pass.
pub(super) fn judge(
    (entry, own): (Entry, &Own),
    method: &Method,
    uri: &Uri,
    headers: &HeaderMap,
) -> Result<Attributes, Refused> {
    let bad = |message: String| Refused::new(StatusCode::BAD_REQUEST, "BadRequest", message);
    if headers::impersonates(headers) {
        return Err(Refused::forbidden(
            "a request says by itself who asks; the hub does that",
        ));
    }
    let attributes =
        access::attributes(method.as_str(), uri.path(), uri.query()).map_err(|unclear| bad(unclear.to_string()))?;
    let class = attributes.class();
    match (entry, class) {
        (Entry::Push, _) | (Entry::Read, Class::Read) | (Entry::Interactive, Class::Interactive) => {}
        (Entry::Read, Class::Interactive) => {
            return Err(Refused::forbidden(
                "what reaches into a container is not read; it goes by a stream of class interactive",
            ));
        }
        (Entry::Read | Entry::Interactive, Class::Write) => {
            return Err(Refused::forbidden(
                "through the hub a cluster is only read; change its objects by a commit to the fleet repository",
            ));
        }
        (Entry::Interactive, Class::Read) => {
            return Err(Refused::forbidden("reads go by a stream of class apiserver"));
        }
    }
    if headers::upgrades(headers) && entry != Entry::Interactive {
        return Err(Refused::forbidden("a request to read asks for another protocol"));
    }
    let withheld = (entry != Entry::Push).then(|| own.withholds(&attributes)).flatten();
    withheld.map_or(Ok(attributes), |why| Err(Refused::forbidden(why)))
}

/// Whether a request may have a body at all. A `GET` with one is read by some as another request.
pub(super) fn takes_body(method: &Method) -> bool {
    !matches!(*method, Method::GET | Method::HEAD)
}

#[cfg(test)]
mod tests {
    use http::Request;

    use super::*;

    #[track_caller]
    fn check(entry: Entry, method: &str, path: &str, headers: &[(&str, &str)], expected: Result<&str, u16>) {
        let mut request = Request::builder().method(method).uri(path);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let (parts, ()) = request.body(()).expect("a request").into_parts();
        let found = judge((entry, &Own::default()), &parts.method, &parts.uri, &parts.headers);
        let found = found.as_ref().map(|found| found.verb);
        assert_eq!(
            found.map_err(|refused| refused.code.as_u16()),
            expected,
            "{method} {path}"
        );
    }

    #[test]
    fn the_query_path_cannot_write_at_the_agent() {
        for entry in [Entry::Read, Entry::Interactive] {
            for (method, path) in [
                ("POST", "/api/v1/namespaces/a/pods"),
                ("PUT", "/api/v1/namespaces/a/pods/b"),
                ("PATCH", "/apis/apps/v1/namespaces/a/deployments/b?dryRun=All"),
                ("DELETE", "/api/v1/namespaces/a/pods/b"),
                ("DELETE", "/api/v1/namespaces/a/pods"),
                ("POST", "/api/v1/namespaces/a/serviceaccounts/b/token"),
                ("POST", "/api/v1/namespaces/a/pods/b/eviction"),
                ("POST", "/api/v1/namespaces/a/pods/b/log"),
                ("CONNECT", "/api/v1/namespaces/a/pods/b"),
                ("OPTIONS", "/api/v1/pods"),
                ("get", "/api/v1/pods"),
            ] {
                check(entry, method, path, &[], Err(403));
            }
        }
        check(
            Entry::Read,
            "GET",
            "/api/v1/namespaces/a/pods/b/log?follow=true",
            &[],
            Ok("get"),
        );
        let review = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
        check(Entry::Read, "POST", review, &[], Ok("create"));
    }

    #[test]
    fn each_stream_has_its_class_and_no_other() {
        let exec = "/api/v1/namespaces/a/pods/b/exec?command=sh";
        check(Entry::Read, "GET", exec, &[("upgrade", "websocket")], Err(403));
        check(Entry::Read, "GET", exec, &[], Err(403));
        check(Entry::Interactive, "GET", exec, &[("upgrade", "websocket")], Ok("get"));
        check(
            Entry::Interactive,
            "POST",
            exec,
            &[("upgrade", "SPDY/3.1")],
            Ok("create"),
        );
        check(Entry::Interactive, "GET", "/api/v1/pods", &[], Err(403));
        check(Entry::Push, "PATCH", "/api/v1/namespaces/a/pods/b", &[], Ok("patch"));
    }

    #[test]
    fn only_the_hubs_applier_has_what_the_agent_has() {
        let key = "/api/v1/namespaces/flotilla-system/secrets/flotilla-agent";
        let exec = "/api/v1/namespaces/flotilla-system/pods/flotilla-agent-a/exec?command=sh";
        check(Entry::Read, "GET", key, &[], Err(403));
        check(Entry::Read, "GET", "/api/v1/secrets", &[], Err(403));
        check(Entry::Interactive, "GET", exec, &[("upgrade", "websocket")], Err(403));
        check(Entry::Push, "GET", key, &[], Ok("get"));
        check(Entry::Read, "GET", "/api/v1/namespaces/shop/secrets/a", &[], Ok("get"));
    }

    #[test]
    fn what_is_smuggled_is_refused() {
        let pods = "/api/v1/pods";
        check(Entry::Read, "GET", pods, &[("upgrade", "websocket")], Err(403));
        check(Entry::Push, "GET", pods, &[("upgrade", "websocket")], Err(403));
        for entry in [Entry::Read, Entry::Interactive, Entry::Push] {
            check(entry, "GET", pods, &[("impersonate-user", "admin")], Err(403));
            check(entry, "GET", pods, &[("x-remote-user", "admin")], Err(403));
            for path in ["/api/v1/../../b", "/api/v1/a%2fb", "//api/v1/pods", "/api/v1/%2e%2e/a"] {
                check(entry, "GET", path, &[], Err(400));
            }
        }
    }
}
