//! Which headers of a person's request go on to a cluster, and which of its answer come back. Hub and agent each ask this.
//!
//! A list of those that go on, since one of those that do not is never complete: credentials, impersonation, other methods
//! than the request line's, and whatever a server learns to believe next.

#[cfg(feature = "agent")]
mod answer;

use http::header::{
    ACCEPT, ACCEPT_ENCODING, CONNECTION, CONTENT_ENCODING, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, IF_MATCH,
    IF_MODIFIED_SINCE, IF_NONE_MATCH, SEC_WEBSOCKET_EXTENSIONS, SEC_WEBSOCKET_KEY, SEC_WEBSOCKET_PROTOCOL,
    SEC_WEBSOCKET_VERSION, UPGRADE, USER_AGENT,
};

#[cfg(feature = "agent")]
pub(crate) use answer::answered;

#[cfg(feature = "agent")]
use crate::limits::CALLER_NAME_CHARS_MAX;

/// What any request may say.
const ASKED: [HeaderName; 8] = [
    ACCEPT,
    ACCEPT_ENCODING,
    CONTENT_ENCODING,
    CONTENT_TYPE,
    IF_MATCH,
    IF_MODIFIED_SINCE,
    IF_NONE_MATCH,
    USER_AGENT,
];

/// What a request beside these may say that asks for another protocol.
const UPGRADING: [HeaderName; 6] = [
    UPGRADE,
    SEC_WEBSOCKET_KEY,
    SEC_WEBSOCKET_VERSION,
    SEC_WEBSOCKET_PROTOCOL,
    SEC_WEBSOCKET_EXTENSIONS,
    HeaderName::from_static("x-stream-protocol-version"),
];

/// A token in a WebSocket's list of protocols, which an API server takes for a credential.
const TOKEN_PROTOCOL: &str = "base64url.bearer.authorization.k8s.io.";

/// What a request is called in the logs of both sides, as Kubernetes has it. It goes no further than the agent.
const REQUEST_ID: HeaderName = HeaderName::from_static("audit-id");

/// Asks that the stream stays for the same person's next request, and says what this one is called.
#[cfg(feature = "hub")]
pub(crate) fn keep(headers: &mut HeaderMap, request_id: HeaderValue) {
    headers.insert(CONNECTION, HeaderValue::from_static("keep-alive"));
    headers.insert(REQUEST_ID, request_id);
}

/// Whether a request asks that its stream stays.
#[cfg(feature = "agent")]
pub(crate) fn is_kept(headers: &HeaderMap) -> bool {
    of_connection(headers).any(|name| name.eq_ignore_ascii_case("keep-alive"))
}

/// What a request is called.
#[cfg(feature = "agent")]
pub(crate) fn request_id(headers: &HeaderMap) -> Option<&str> {
    let id = headers.get(REQUEST_ID)?.to_str().ok()?;
    (id.len() <= CALLER_NAME_CHARS_MAX).then_some(id)
}

/// Whether a request asks to be somebody: what no hub passes on.
pub(crate) fn impersonates(headers: &HeaderMap) -> bool {
    headers.keys().any(|name| {
        let name = name.as_str();
        name.starts_with("impersonate-") || name.starts_with("x-remote-")
    })
}

/// Whether a request says which other protocol it asks for. One that does not is passed on as any other.
pub(crate) fn names_protocol(headers: &HeaderMap) -> bool {
    headers.contains_key(UPGRADE)
}

/// Whether a request asks for another protocol than HTTP, or might be taken for one that does.
pub(crate) fn upgrades(headers: &HeaderMap) -> bool {
    names_protocol(headers) || of_connection(headers).any(|name| name.eq_ignore_ascii_case("upgrade"))
}

/// What a connection says of itself: headers that go no further than it.
fn of_connection(headers: &HeaderMap) -> impl Iterator<Item = &str> {
    let lists = headers.get_all(CONNECTION).iter().filter_map(|list| list.to_str().ok());
    lists.flat_map(|list| list.split(',')).map(str::trim)
}

/// The headers of a request that go on; `upgrading` if it may ask for another protocol.
pub(crate) fn passed(headers: &HeaderMap, upgrading: bool) -> HeaderMap {
    let mut passed = HeaderMap::with_capacity(headers.len());
    let copy = |passed: &mut HeaderMap, name: &HeaderName| {
        for value in headers.get_all(name) {
            passed.append(name.clone(), value.clone());
        }
    };
    for name in &ASKED {
        copy(&mut passed, name);
    }
    if upgrading && names_protocol(headers) {
        for name in &UPGRADING {
            copy(&mut passed, name);
        }
        passed.insert(CONNECTION, HeaderValue::from_static("Upgrade"));
        without_tokens(&mut passed);
    }
    passed
}

/// Takes credentials out of the list of protocols.
fn without_tokens(headers: &mut HeaderMap) {
    let lists: Vec<String> = headers
        .get_all(SEC_WEBSOCKET_PROTOCOL)
        .iter()
        .filter_map(|list| list.to_str().ok())
        .map(str::to_owned)
        .collect();
    let protocols: Vec<&str> = lists
        .iter()
        .flat_map(|list| list.split(','))
        .map(str::trim)
        .filter(|protocol| !protocol.is_empty() && !protocol.to_ascii_lowercase().starts_with(TOKEN_PROTOCOL))
        .collect();
    headers.remove(SEC_WEBSOCKET_PROTOCOL);
    if let Ok(list) = HeaderValue::from_str(&protocols.join(", "))
        && !list.is_empty()
    {
        headers.insert(SEC_WEBSOCKET_PROTOCOL, list);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    pub(super) fn headers(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        let pairs = pairs.iter();
        pairs
            .map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value)))
            .collect()
    }

    #[test]
    fn only_what_is_listed_goes_on() {
        let all = headers(&[
            ("accept", "application/json"),
            ("user-agent", "kubectl"),
            ("authorization", "Bearer hub"),
            ("cookie", "a=b"),
            ("host", "hub.example"),
            ("impersonate-user", "admin"),
            ("x-remote-group", "system:masters"),
            ("x-http-method-override", "DELETE"),
            ("x-forwarded-for", "10.0.0.1"),
            ("connection", "accept, x-evil"),
            ("transfer-encoding", "chunked"),
            ("upgrade", "websocket"),
            (
                "sec-websocket-protocol",
                "v5.channel.k8s.io, base64url.bearer.authorization.k8s.io.c2VjcmV0",
            ),
        ]);
        let plain = passed(&all, false);
        let names: Vec<&str> = plain.keys().map(HeaderName::as_str).collect();
        assert_eq!(names, ["accept", "user-agent"]);
        let upgrading = passed(&all, true);
        assert_eq!(
            upgrading[SEC_WEBSOCKET_PROTOCOL], "v5.channel.k8s.io",
            "without the token"
        );
        assert_eq!(upgrading[CONNECTION], "Upgrade");
        assert!(!upgrading.contains_key("authorization") && !upgrading.contains_key("x-http-method-override"));
    }

    #[test]
    fn whoever_asks_to_be_somebody_is_seen() {
        for name in [
            "impersonate-user",
            "impersonate-uid",
            "impersonate-extra-scopes",
            "x-remote-user",
            "x-remote-extra-a",
        ] {
            assert!(impersonates(&headers(&[(name, "a")])), "{name}");
        }
        assert!(!impersonates(&headers(&[
            ("accept", "a"),
            ("user-agent", "impersonate")
        ])));
    }

    #[test]
    fn a_wish_for_another_protocol_is_seen_in_either_header() {
        assert!(upgrades(&headers(&[("upgrade", "SPDY/3.1")])));
        assert!(upgrades(&headers(&[("connection", "keep-alive, Upgrade")])));
        assert!(!upgrades(&headers(&[("connection", "keep-alive")])));
        let unnamed = headers(&[("connection", "upgrade")]);
        assert!(!names_protocol(&unnamed) && passed(&unnamed, true).is_empty());
    }
}
