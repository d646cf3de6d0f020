//! The way through a proxy: which one, for whom not, and what is said to it.
//!
//! A URL and a list of exceptions enter, as people have them in `HTTPS_PROXY` and `NO_PROXY`; a connection that a
//! proxy led to its target leaves. Deliberately not here: the environment, which callers read.

mod ask;
mod bypass;

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::Uri;

pub use ask::AskError;
pub(crate) use ask::ask;
pub use bypass::Bypass;

/// A proxy that speaks HTTP CONNECT. Its credentials are in no text that it gives.
#[derive(Clone, PartialEq, Eq)]
pub struct Proxy {
    host: String,
    port: u16,
    /// The value of `Proxy-Authorization`.
    authorization: Option<String>,
}

/// Why a text names no proxy. It does not repeat the text, which may hold a password.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProxyError {
    /// It cannot be taken apart.
    #[error("it is no http://[USER:PASSWORD@]HOST[:PORT]; other characters of a password are written %40 and so on")]
    NotUrl,
    /// Another scheme.
    #[error("its scheme is not http, the one that is spoken with a proxy here")]
    Scheme,
}

impl Proxy {
    /// Reads `http://[user:password@]host[:port]`; without a scheme http is meant, without a port 80.
    pub fn parse(text: &str) -> Result<Self, ProxyError> {
        let (scheme, rest) = text.split_once("://").unwrap_or(("http", text));
        if !scheme.eq_ignore_ascii_case("http") {
            return Err(ProxyError::Scheme);
        }
        let rest = rest.split(['/', '?', '#']).next().unwrap_or_default();
        let (credentials, place) = match rest.rsplit_once('@') {
            Some((credentials, place)) => (Some(credentials), place),
            None => (None, rest),
        };
        let url: Uri = format!("http://{place}/").parse().map_err(|_| ProxyError::NotUrl)?;
        let host = url.host().filter(|host| !host.is_empty()).ok_or(ProxyError::NotUrl)?;
        let port = match place.strip_prefix(host) {
            Some("") => 80,
            Some(port) => port.strip_prefix(':').and_then(port_of).ok_or(ProxyError::NotUrl)?,
            None => return Err(ProxyError::NotUrl),
        };
        Ok(Self {
            host: bare(host).to_owned(),
            port,
            authorization: credentials.map(authorization).transpose()?,
        })
    }

    /// Its name or address, an IPv6 address without brackets.
    #[must_use]
    pub fn host(&self) -> &str {
        &self.host
    }

    /// Its port.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }
}

/// Where it is, for messages.
impl fmt::Display for Proxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&authority(&self.host, self.port))
    }
}

impl fmt::Debug for Proxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Proxy({self})")
    }
}

/// `host:port`, an IPv6 address in brackets.
pub(crate) fn authority(host: &str, port: u16) -> String {
    if host.contains(':') {
        format!("[{host}]:{port}")
    } else {
        format!("{host}:{port}")
    }
}

/// An IPv6 address stands in brackets in a URL and nowhere else.
pub(crate) fn bare(host: &str) -> &str {
    host.trim_start_matches('[').trim_end_matches(']')
}

fn port_of(text: &str) -> Option<u16> {
    text.parse().ok().filter(|port| *port > 0)
}

fn authorization(credentials: &str) -> Result<String, ProxyError> {
    let (user, password) = credentials.split_once(':').unwrap_or((credentials, ""));
    let mut plain = unescaped(user)?;
    plain.push(b':');
    plain.extend(unescaped(password)?);
    Ok(format!("Basic {}", STANDARD.encode(plain)))
}

fn unescaped(text: &str) -> Result<Vec<u8>, ProxyError> {
    let mut plain = Vec::with_capacity(text.len());
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        if byte != b'%' {
            plain.push(byte);
            continue;
        }
        let digit = |byte: Option<u8>| char::from(byte.unwrap_or(b'%')).to_digit(16).ok_or(ProxyError::NotUrl);
        let (high, low) = (digit(bytes.next())?, digit(bytes.next())?);
        plain.push(u8::try_from(high * 16 + low).map_err(|_| ProxyError::NotUrl)?);
    }
    Ok(plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, place: &str, credentials: Option<&str>) {
        let proxy = Proxy::parse(text).expect(text);
        let expected = credentials.map(|plain| format!("Basic {}", STANDARD.encode(plain)));
        assert_eq!(
            (proxy.to_string().as_str(), proxy.authorization),
            (place, expected),
            "{text}"
        );
    }

    #[test]
    fn a_proxy_is_read_as_other_programs_read_it() {
        check("http://proxy:3128", "proxy:3128", None);
        check("http://proxy", "proxy:80", None);
        check("proxy:3128/", "proxy:3128", None);
        check("HTTP://10.0.0.1:8080/path?query", "10.0.0.1:8080", None);
        check("http://[fd00::1]:3128", "[fd00::1]:3128", None);
        check("http://ann:secret@proxy:3128", "proxy:3128", Some("ann:secret"));
        check("http://ann:p%40ss%3Aword@proxy", "proxy:80", Some("ann:p@ss:word"));
        check("http://ann:p@ss@proxy", "proxy:80", Some("ann:p@ss"));
        check("http://ann@proxy", "proxy:80", Some("ann:"));
    }

    #[test]
    fn what_is_no_proxy_is_refused_without_being_repeated() {
        for text in [
            "",
            "http://",
            "http://ann:%zz@proxy",
            "http://proxy:99999",
            "http://proxy:0",
            "http://a b",
        ] {
            assert_eq!(Proxy::parse(text), Err(ProxyError::NotUrl), "{text}");
        }
        for text in ["https://proxy", "socks5://proxy:1080"] {
            assert_eq!(Proxy::parse(text), Err(ProxyError::Scheme), "{text}");
        }
    }

    #[test]
    fn a_password_is_in_no_text() {
        let proxy = Proxy::parse("http://ann:secret@proxy:3128").expect("it is one");
        let texts = format!("{proxy} {proxy:?}");
        assert_eq!(texts, "proxy:3128 Proxy(proxy:3128)");
    }
}
