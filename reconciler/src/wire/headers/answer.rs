//! Which headers of a cluster's answer come back.

use http::header::{
    CONNECTION, HeaderMap, HeaderName, PROXY_AUTHENTICATE, PROXY_AUTHORIZATION, SEC_WEBSOCKET_ACCEPT, SET_COOKIE, TE,
    TRAILER, TRANSFER_ENCODING, UPGRADE, WWW_AUTHENTICATE,
};

use super::of_connection;

/// What of an answer concerns the two at the ends of one connection, or the credential of who asked.
const ANSWERED_HERE: [HeaderName; 10] = [
    CONNECTION,
    HeaderName::from_static("keep-alive"),
    PROXY_AUTHENTICATE,
    PROXY_AUTHORIZATION,
    SET_COOKIE,
    TE,
    TRAILER,
    TRANSFER_ENCODING,
    UPGRADE,
    WWW_AUTHENTICATE,
];

/// Takes out of an answer what is not for the asker. One that changes the protocol keeps what says so.
pub(crate) fn answered(headers: &mut HeaderMap, upgraded: bool) {
    let named: Vec<HeaderName> = of_connection(headers).filter_map(|name| name.parse().ok()).collect();
    for name in ANSWERED_HERE.iter().chain(&named) {
        if !(upgraded && (*name == CONNECTION || *name == UPGRADE)) {
            headers.remove(name);
        }
    }
    if !upgraded {
        headers.remove(SEC_WEBSOCKET_ACCEPT);
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::headers;
    use super::*;

    #[test]
    fn an_answer_keeps_what_is_for_the_asker() {
        let mut answer = headers(&[
            ("content-type", "application/json"),
            ("content-length", "2"),
            ("warning", "299 - old"),
            ("retry-after", "1"),
            ("audit-id", "a"),
            ("connection", "close, x-own"),
            ("x-own", "1"),
            ("transfer-encoding", "chunked"),
            ("www-authenticate", "Bearer"),
            ("set-cookie", "a=b"),
        ]);
        answered(&mut answer, false);
        let mut names: Vec<&str> = answer.keys().map(HeaderName::as_str).collect();
        names.sort_unstable();
        assert_eq!(
            names,
            ["audit-id", "content-length", "content-type", "retry-after", "warning"]
        );
        let mut switched = headers(&[
            ("connection", "upgrade"),
            ("upgrade", "websocket"),
            ("set-cookie", "a=b"),
        ]);
        answered(&mut switched, true);
        assert_eq!(
            switched,
            headers(&[("connection", "upgrade"), ("upgrade", "websocket")])
        );
    }
}
