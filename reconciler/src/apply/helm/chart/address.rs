//! Addresses of repositories: where they lead, and which of them are one origin.

use ::http::Uri;

/// Scheme, host and port: who sees a credential.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Origin {
    /// `http` or `https`.
    pub(super) scheme: String,
    host: String,
    port: u16,
}

impl Origin {
    /// Of an address.
    pub(super) fn of(address: &Uri) -> Self {
        let scheme = address.scheme_str().unwrap_or_default().to_ascii_lowercase();
        let port = address.port_u16().unwrap_or(if scheme == "http" { 80 } else { 443 });
        Self {
            host: address.host().unwrap_or_default().to_ascii_lowercase(),
            scheme,
            port,
        }
    }

    /// Its root.
    pub(super) fn root(&self) -> String {
        format!("{}://{}:{}/", self.scheme, self.host, self.port)
    }
}

/// Reads an address; one with a name or password in it is refused, since it would be shown and logged.
pub(super) fn parse(text: &str) -> Result<Uri, String> {
    let uri: Uri = text
        .parse()
        .map_err(|_| "the repository names an address that is none".to_owned())?;
    let has_secret = uri
        .authority()
        .is_some_and(|authority| authority.as_str().contains('@'));
    match uri.scheme_str() {
        _ if has_secret => Err("the address has a name or password in it; hint: use chartPullSecret".to_owned()),
        Some("http" | "https") if uri.host().is_some() => Ok(uri),
        _ => Err(format!("{} is no address of HTTP", shown(&uri))),
    }
}

/// Where a reference leads that stands in what `base` answered.
pub(super) fn join(base: &Uri, reference: &str) -> Result<Uri, String> {
    let origin = || {
        let authority = base.authority().map_or("", |authority| authority.as_str());
        format!("{}://{authority}", base.scheme_str().unwrap_or_default())
    };
    let text = if reference.contains("://") {
        reference.to_owned()
    } else if let Some(rest) = reference.strip_prefix("//") {
        format!("{}://{rest}", base.scheme_str().unwrap_or_default())
    } else if reference.starts_with('/') {
        format!("{}{reference}", origin())
    } else {
        let folder = base.path().rsplit_once('/').map_or("", |(folder, _)| folder);
        format!("{}{folder}/{}", origin(), reference.trim_start_matches("./"))
    };
    parse(&text)
}

/// An address as people are told it: without its query, in which some storages put a signature.
pub(super) fn shown(address: &Uri) -> String {
    let scheme = address.scheme_str().unwrap_or_default();
    let authority = address.authority().map_or("", |authority| authority.as_str());
    let host = authority.rsplit('@').next().unwrap_or_default();
    format!("{scheme}://{host}{}", address.path())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn uri(text: &str) -> Uri {
        text.parse().expect("a valid address")
    }

    #[test]
    fn an_origin_is_scheme_host_and_port() {
        let same = |a: &str, b: &str| Origin::of(&uri(a)) == Origin::of(&uri(b));
        assert!(same("https://a.example/x", "https://A.example:443/y"));
        assert!(!same("https://a.example/x", "http://a.example/x"));
        assert!(!same("https://a.example/x", "https://a.example:8443/x"));
        assert!(!same("https://a.example/x", "https://b.a.example/x"));
    }

    #[test]
    fn references_lead_where_a_browser_would_go() {
        let base = uri("https://a.example:8443/charts/stable/");
        for (reference, expected) in [
            ("x.tgz", "https://a.example:8443/charts/stable/x.tgz"),
            ("./x.tgz", "https://a.example:8443/charts/stable/x.tgz"),
            ("/x.tgz", "https://a.example:8443/x.tgz"),
            ("//b.example/x.tgz", "https://b.example/x.tgz"),
            ("http://b.example/x.tgz?s=1", "http://b.example/x.tgz?s=1"),
        ] {
            assert_eq!(join(&base, reference).expect("valid").to_string(), expected);
        }
        assert!(join(&base, "https://me:secret@a.example/").is_err());
        assert!(join(&base, "file:///etc/passwd").is_err());
    }

    #[test]
    fn no_signature_is_shown() {
        assert_eq!(
            shown(&uri("https://a.example/x.tgz?X-Signature=abc")),
            "https://a.example/x.tgz"
        );
    }
}
