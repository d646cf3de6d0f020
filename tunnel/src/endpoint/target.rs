//! The hub's URL, taken apart.

use http::Uri;
use rustls::pki_types::ServerName;

use super::accept::PATH;
use crate::proxy::{authority, bare};

/// Where an agent dials.
#[derive(Debug)]
pub(crate) struct Target {
    /// A name or an address, without brackets.
    pub(crate) host: String,
    pub(crate) port: u16,
    /// What its certificate is for.
    pub(crate) name: ServerName<'static>,
    /// What is asked to become a WebSocket.
    pub(crate) request: Uri,
}

impl Target {
    /// Reads `wss://host[:port][/path]`; the error says what is wrong with it.
    pub(crate) fn parse(url: &str) -> Result<Self, &'static str> {
        let url: Uri = url.parse().map_err(|_| "it is no URL")?;
        if url.scheme_str() != Some("wss") {
            return Err("its scheme is not wss");
        }
        let place = url.authority().ok_or("it has no host")?;
        if place.as_str().contains('@') {
            return Err("it holds credentials");
        }
        let host = bare(place.host());
        let name = ServerName::try_from(host.to_owned()).map_err(|_| "its host is no name or address")?;
        let path = if url.path() == "/" { PATH } else { url.path() };
        let request = format!("wss://{place}{path}").parse().map_err(|_| "it is no URL")?;
        Ok(Self {
            host: host.to_owned(),
            port: place.port_u16().unwrap_or(443),
            name,
            request,
        })
    }

    /// Host and port, as a proxy is asked for them.
    pub(crate) fn authority(&self) -> String {
        authority(&self.host, self.port)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_names_host_port_and_path() {
        for (url, place, request) in [
            ("wss://hub", "hub:443", "wss://hub/tunnel"),
            ("wss://hub:7443/", "hub:7443", "wss://hub:7443/tunnel"),
            ("wss://10.0.0.1:7443", "10.0.0.1:7443", "wss://10.0.0.1:7443/tunnel"),
            ("wss://[fd00::1]", "[fd00::1]:443", "wss://[fd00::1]/tunnel"),
            ("wss://[fd00::1]:7443", "[fd00::1]:7443", "wss://[fd00::1]:7443/tunnel"),
            ("wss://hub/fleet/tunnel", "hub:443", "wss://hub/fleet/tunnel"),
        ] {
            let target = Target::parse(url).expect(url);
            assert_eq!(
                (target.authority().as_str(), target.request.to_string().as_str()),
                (place, request)
            );
        }
    }

    #[test]
    fn what_cannot_be_dialled_is_refused_with_its_reason() {
        for (url, reason) in [
            ("hub:443", "its scheme is not wss"),
            ("https://hub", "its scheme is not wss"),
            ("wss://ann:secret@hub", "it holds credentials"),
            ("wss://", "it is no URL"),
            ("wss://-/", "its host is no name or address"),
        ] {
            assert_eq!(Target::parse(url).expect_err(url), reason, "{url}");
        }
    }
}
