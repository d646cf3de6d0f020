//! What a request may carry: decided by its method and headers, before anybody looks at who sent it.

use http::uri::Authority;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Version, header};
use http_body::Body;
use render::access::Class;

use crate::wire::headers;

/// Headers of an answer that its caller gets. A list of what stays: behind a proxy anything may answer, under the hub's name,
/// where a browser has its user's certificate.
const ANSWER_HEADERS: [HeaderName; 13] = [
    header::ALLOW,
    header::CACHE_CONTROL,
    header::CONTENT_ENCODING,
    header::CONTENT_LENGTH,
    header::CONTENT_TYPE,
    header::DATE,
    header::ETAG,
    header::LAST_MODIFIED,
    header::RETRY_AFTER,
    header::VARY,
    header::WARNING,
    HeaderName::from_static("x-kubernetes-pf-flowschema-uid"),
    HeaderName::from_static("x-kubernetes-pf-prioritylevel-uid"),
];

/// The port of `https` that nobody says.
const HTTPS_PORT: u16 = 443;

/// What is wrong with a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    /// It says that it comes from somebody else.
    Impersonates,
    /// It says that its method is another.
    Overrides,
    /// No client of Kubernetes uses this method.
    Method,
    /// A read that wants to become another protocol.
    Upgrades,
    /// A read or a wish for another protocol with a body, or a body whose length is said in two ways.
    Body,
    /// A page in somebody's browser asks for more than to read.
    Page,
}

impl Fault {
    /// In words.
    pub(super) fn message(self) -> &'static str {
        match self {
            Self::Impersonates => {
                "the headers Impersonate-*, X-Remote-* and their kind are not taken from outside: log in as who you are"
            }
            Self::Overrides => "a method is said in the first line alone, and by no header",
            Self::Method => "this method is not known here",
            Self::Upgrades => "a read does not become another protocol",
            Self::Body => {
                "neither a read nor what becomes another protocol has a body, and the length of a body is said once"
            }
            Self::Page => {
                "a web page asks for this, with the certificate that its reader's browser shows to each: ask with a program, or \
                 with a token"
            }
        }
    }
}

/// Whether somebody other than the caller is meant to be asking, or another method.
pub(super) fn check_headers(method: &Method, headers: &HeaderMap) -> Result<(), Fault> {
    let known = [
        Method::GET,
        Method::HEAD,
        Method::POST,
        Method::PUT,
        Method::PATCH,
        Method::DELETE,
    ];
    if !known.contains(method) {
        return Err(Fault::Method);
    }
    if headers::impersonates(headers) {
        return Err(Fault::Impersonates);
    }
    for name in headers.keys() {
        if matches!(
            name.as_str(),
            "x-http-method-override" | "x-http-method" | "x-method-override"
        ) {
            return Err(Fault::Overrides);
        }
    }
    Ok(())
}

/// Whether the request is what its class promises.
pub(super) fn check_class<B: Body>(request: &Request<B>, class: Class) -> Result<(), Fault> {
    let (version, method, headers) = (request.version(), request.method(), request.headers());
    if class == Class::Interactive {
        // What follows it is the other protocol's already.
        let has_body = headers::names_protocol(headers) && !request.body().is_end_stream();
        return if has_body { Err(Fault::Body) } else { Ok(()) };
    }
    if headers::upgrades(headers) {
        return Err(Fault::Upgrades);
    }
    let lengths = headers.get_all(header::CONTENT_LENGTH).iter().count();
    let is_chunked = headers.contains_key(header::TRANSFER_ENCODING);
    if lengths > 1 || (lengths == 1 && is_chunked) || (is_chunked && version == Version::HTTP_2) {
        return Err(Fault::Body);
    }
    let length = headers
        .get(header::CONTENT_LENGTH)
        .map_or(b"0".as_slice(), |length| length.as_bytes());
    // HTTP/2 says by the stream alone that something follows.
    let has_body = is_chunked || length != b"0" || !request.body().is_end_stream();
    if class == Class::Read && matches!(*method, Method::GET | Method::HEAD) && has_body {
        return Err(Fault::Body);
    }
    Ok(())
}

/// Whether a browser says that a page asks, and not whoever sits before it. Of what is read a page learns nothing; but what
/// reaches into a container acts, and a WebSocket is told to whichever page opened it.
///
/// Programs say an `Origin`, too: the hub itself, which serves no page that has one.
pub(super) fn check_page<B>(request: &Request<B>) -> Result<(), Fault> {
    let headers = request.headers();
    let site = headers.get("sec-fetch-site");
    let by_page = site.is_some_and(|site| site.as_bytes() != b"none");
    let own = asked_of(request);
    let mut origins = headers.get_all(header::ORIGIN).iter().map(origin);
    match by_page || origins.any(|origin| origin.is_none() || origin != own) {
        true => Err(Fault::Page),
        false => Ok(()),
    }
}

/// Host and port that a request is for, as its asker says it.
fn asked_of<B>(request: &Request<B>) -> Option<(String, u16)> {
    match request.uri().authority() {
        Some(authority) => place(authority.as_str()),
        None => place(request.headers().get(header::HOST)?.to_str().ok()?),
    }
}

/// Host and port of an origin. Of `http://` there is none that is the hub's: whoever is in between could serve its pages.
fn origin(said: &HeaderValue) -> Option<(String, u16)> {
    place(said.to_str().ok()?.strip_prefix("https://")?)
}

fn place(text: &str) -> Option<(String, u16)> {
    let authority: Authority = text.parse().ok()?;
    let port = match text.strip_prefix(authority.host())? {
        "" => HTTPS_PORT,
        port => port.strip_prefix(':')?.parse().ok()?,
    };
    Some((authority.host().to_ascii_lowercase(), port))
}

/// What of a request's headers goes on to a cluster.
pub(super) fn to_cluster(headers: &HeaderMap, class: Class) -> HeaderMap {
    headers::passed(headers, class == Class::Interactive)
}

/// Takes from an answer's headers what its caller does not get, and has a browser run nothing of it.
pub(super) fn from_cluster(headers: &mut HeaderMap) {
    let names: Vec<_> = headers
        .keys()
        .filter(|name| !ANSWER_HEADERS.contains(name))
        .cloned()
        .collect();
    for name in names {
        headers.remove(name);
    }
    headers.insert(header::CONTENT_SECURITY_POLICY, HeaderValue::from_static("sandbox"));
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
}

#[cfg(test)]
mod tests {
    use http::HeaderName;
    use http_body_util::Full;

    use super::*;

    fn headers(pairs: &[(&str, &str)]) -> HeaderMap {
        let pair = |(name, value): &(&str, &str)| (name.parse::<HeaderName>().unwrap(), value.parse().unwrap());
        let mut all = HeaderMap::new();
        for (name, value) in pairs.iter().map(pair) {
            all.append(name, value);
        }
        all
    }

    #[test]
    fn who_says_to_be_somebody_else_is_refused() {
        for name in [
            "Impersonate-User",
            "Impersonate-Group",
            "Impersonate-Uid",
            "Impersonate-Extra-Clusternet-Token",
            "X-Remote-User",
            "X-Remote-Group",
            "X-Remote-Extra-Anything",
        ] {
            let found = check_headers(&Method::GET, &headers(&[(name, "admin")]));
            assert_eq!(found, Err(Fault::Impersonates), "{name}");
        }
        let plain = headers(&[("Authorization", "Bearer x"), ("Accept", "*/*")]);
        assert_eq!(check_headers(&Method::GET, &plain), Ok(()));
    }

    #[test]
    fn no_verb_is_smuggled_in() {
        let found = check_headers(&Method::GET, &headers(&[("X-HTTP-Method-Override", "DELETE")]));
        assert_eq!(found, Err(Fault::Overrides));
        for method in ["CONNECT", "TRACE", "OPTIONS", "get", "PURGE"] {
            let method = Method::from_bytes(method.as_bytes()).unwrap();
            assert_eq!(
                check_headers(&method, &HeaderMap::new()),
                Err(Fault::Method),
                "{method}"
            );
        }
        let get = |pairs: &[(&str, &str)], body: &'static str| {
            let mut request = Request::get("/").body(Full::new(body.as_bytes())).unwrap();
            *request.headers_mut() = headers(pairs);
            request
        };
        let read = |pairs: &[(&str, &str)]| check_class(&get(pairs, ""), Class::Read);
        assert_eq!(read(&[]), Ok(()));
        assert_eq!(read(&[("Content-Length", "0")]), Ok(()));
        assert_eq!(read(&[("Connection", "keep-alive, Upgrade")]), Err(Fault::Upgrades));
        assert_eq!(read(&[("Upgrade", "SPDY/3.1")]), Err(Fault::Upgrades));
        assert_eq!(read(&[("Content-Length", "7")]), Err(Fault::Body));
        assert_eq!(read(&[("Transfer-Encoding", "chunked")]), Err(Fault::Body));
        assert_eq!(
            read(&[("Content-Length", "0"), ("Transfer-Encoding", "chunked")]),
            Err(Fault::Body)
        );
        assert_eq!(
            read(&[("Content-Length", "0"), ("Content-Length", "5")]),
            Err(Fault::Body)
        );
        let unsaid = check_class(&get(&[], "body"), Class::Read);
        assert_eq!(unsaid, Err(Fault::Body), "of HTTP/2 the stream alone says it");
        let exec = get(&[("Connection", "Upgrade"), ("Upgrade", "websocket")], "");
        let exec = check_class(&exec, Class::Interactive);
        assert_eq!(exec, Ok(()), "exec becomes another protocol");
        let proxied = |pairs: &[(&str, &str)]| check_class(&get(pairs, "body"), Class::Interactive);
        let upgrade = [("Connection", "Upgrade"), ("Upgrade", "websocket")];
        assert_eq!(proxied(&upgrade), Err(Fault::Body), "it would be lost");
        assert_eq!(proxied(&[("Connection", "Upgrade")]), Ok(()), "no protocol is named");
        assert_eq!(proxied(&[]), Ok(()));
    }

    #[test]
    fn a_page_is_told_by_what_its_browser_says() {
        for (page, said) in [
            (true, [("Origin", "https://evil.example")].as_slice()),
            (true, &[("Origin", "null")]),
            (true, &[("Origin", "")]),
            (true, &[("Origin", "hub.example:8443")]),
            (true, &[("Origin", "http://hub.example:8443")]),
            (true, &[("Origin", "https://hub.example")]),
            (true, &[("Origin", "https://hub.example:8444")]),
            (true, &[("Origin", "https://hub.example:8443/page")]),
            (true, &[("Origin", "https://hub.example:8443@evil.example:8443")]),
            (
                true,
                &[
                    ("Origin", "https://hub.example:8443"),
                    ("Origin", "https://evil.example"),
                ],
            ),
            (
                true,
                &[
                    ("Origin", "https://hub.example:8443"),
                    ("Sec-Fetch-Site", "same-origin"),
                ],
            ),
            (false, &[("Origin", "https://hub.example:8443")]),
            (false, &[("Origin", "https://Hub.Example:8443")]),
            (true, &[("Sec-Fetch-Site", "cross-site")]),
            (true, &[("Sec-Fetch-Site", "same-origin")]),
            (false, &[("Sec-Fetch-Site", "none")]),
            (false, &[("User-Agent", "kubectl")]),
        ] {
            let mut by_host = Request::get("/").body(()).unwrap();
            *by_host.headers_mut() = headers(said);
            by_host
                .headers_mut()
                .insert(header::HOST, HeaderValue::from_static("hub.example:8443"));
            let mut by_authority = Request::get("https://hub.example:8443/").body(()).unwrap();
            *by_authority.headers_mut() = headers(said);
            for request in [by_host, by_authority] {
                assert_eq!(check_page(&request).is_err(), page, "{request:?}");
            }
        }
        for (page, host, said) in [
            (false, "hub.example", "https://hub.example"),
            (false, "hub.example:443", "https://hub.example"),
            (false, "[2001:db8::1]:8443", "https://[2001:db8::1]:8443"),
            (true, "hub.example", "https://hub.example:99999"),
            (true, "", "https://hub.example"),
            (true, "", "https://"),
        ] {
            let request = Request::get("/").header("Host", host).header("Origin", said).body(());
            assert_eq!(check_page(&request.unwrap()).is_err(), page, "{host} {said}");
        }
        let hostless = Request::get("/").header("Origin", "null").body(()).unwrap();
        assert_eq!(check_page(&hostless), Err(Fault::Page));
    }

    #[test]
    fn a_cluster_sees_no_credential_and_no_header_of_the_connection() {
        let all = headers(&[
            ("Accept", "application/json"),
            ("Authorization", "Bearer secret"),
            ("Cookie", "secret"),
            ("Host", "hub.example"),
            ("Connection", "Upgrade"),
            ("Upgrade", "websocket"),
            ("X-Forwarded-For", "10.0.0.1"),
            ("User-Agent", "kubectl"),
        ]);
        let read = to_cluster(&all, Class::Read);
        assert_eq!(
            read,
            headers(&[("accept", "application/json"), ("user-agent", "kubectl")])
        );
        assert!(to_cluster(&all, Class::Interactive).contains_key(header::UPGRADE));
    }

    #[test]
    fn a_caller_gets_headers_of_the_answer_and_none_that_speak_for_the_hub() {
        let mut answer = headers(&[
            ("Connection", "close, X-Own"),
            ("X-Own", "1"),
            ("Transfer-Encoding", "chunked"),
            ("Set-Cookie", "a=b"),
            ("Location", "https://elsewhere.example/"),
            ("Alt-Svc", "h3=\":443\""),
            ("Strict-Transport-Security", "max-age=1"),
            ("Clear-Site-Data", "*"),
            ("WWW-Authenticate", "Basic"),
            ("Content-Security-Policy", "default-src *"),
            ("Content-Type", "text/html"),
            ("Warning", "299 - old"),
        ]);
        from_cluster(&mut answer);
        let expected = [
            ("content-type", "text/html"),
            ("warning", "299 - old"),
            ("content-security-policy", "sandbox"),
            ("x-content-type-options", "nosniff"),
        ];
        assert_eq!(answer, headers(&expected));
    }
}
