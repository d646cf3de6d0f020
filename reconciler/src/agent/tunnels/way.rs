//! What is between an agent and its hub: a proxy or none, and who ends TLS.

use std::sync::Arc;

use http::Uri;
use render::ClusterName;
use tunnel::{Bypass, ConnectOptions, HubTls, Proxy, PublicKey, SecretKey};

/// How an agent gets to its hub.
#[derive(Clone, Debug)]
pub struct Way {
    /// How the connection is secured.
    pub tls: HubTls,
    /// The proxy that leads on.
    pub proxy: Option<Proxy>,
    /// For which hubs it is not asked.
    pub bypass: Bypass,
}

impl Default for Way {
    /// Straight to the hub, whose key is pinned.
    fn default() -> Self {
        Self {
            tls: HubTls::Pinned,
            proxy: None,
            bypass: Bypass::default(),
        }
    }
}

impl Way {
    /// The proxy that a hub is reached through.
    pub(crate) fn proxy_to(&self, url: &str) -> Option<&Proxy> {
        let proxy = self.proxy.as_ref()?;
        let url: Uri = url.parse().ok()?;
        let covered = self.bypass.covers(url.host()?, url.port_u16().unwrap_or(443));
        (!covered).then_some(proxy)
    }

    /// The place that is dialled for a hub: its own, or the proxy's.
    pub(crate) fn first_stop(&self, url: &str) -> Option<(String, u16)> {
        if let Some(proxy) = self.proxy_to(url) {
            return Some((proxy.host().to_owned(), proxy.port()));
        }
        let url: Uri = url.parse().ok()?;
        let host = url.host()?.trim_start_matches('[').trim_end_matches(']');
        Some((host.to_owned(), url.port_u16().unwrap_or(443)))
    }

    /// What one dial is made with.
    pub(crate) fn options(
        &self,
        url: &str,
        pins: Vec<PublicKey>,
        cluster: &ClusterName,
        key: Arc<SecretKey>,
        epoch: u64,
    ) -> ConnectOptions {
        let mut options = ConnectOptions::new(url, pins, cluster.to_string(), key, epoch);
        options.tls = self.tls.clone();
        options.proxy = self.proxy_to(url).cloned();
        options
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hub_that_no_proxy_covers_is_dialled_itself() {
        let way = Way {
            proxy: Proxy::parse("http://proxy:3128").ok(),
            bypass: Bypass::parse("example.com,10.0.0.0/8"),
            ..Way::default()
        };
        for (url, stop) in [
            ("wss://hub.example.com", ("hub.example.com", 443)),
            ("wss://10.1.2.3:7443", ("10.1.2.3", 7443)),
            ("wss://hub.example.org:7443", ("proxy", 3128)),
            ("wss://[fd00::1]:7443", ("proxy", 3128)),
        ] {
            let (host, port) = way.first_stop(url).expect(url);
            assert_eq!((host.as_str(), port), stop, "{url}");
        }
        let straight = Way::default().first_stop("wss://[fd00::1]:7443");
        assert_eq!(straight, Some(("fd00::1".to_owned(), 7443)));
    }
}
