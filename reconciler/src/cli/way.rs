//! The way from an agent to its hub, as flags and the environment say it.

use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use clap::{Args, ValueEnum};
use tunnel::{Authorities, Bypass, HubTls, Proxy};

use crate::agent::Way;
use crate::limits::AUTHORITIES_BYTES_MAX;

/// What is between an agent and its hub.
#[derive(Debug, Args)]
pub(super) struct WayFlags {
    /// The proxy to dial through, as `http://[USER:PASSWORD@]HOST[:PORT]`; without it, what HTTPS_PROXY says. Hubs that
    /// NO_PROXY covers are dialled directly, whichever of the two it is.
    // Read by us, since clap would show a password in a message.
    #[arg(long, env = "FLOTILLA_PROXY", hide_env_values = true, value_name = "URL")]
    proxy: Option<String>,
    /// Who ends TLS: the hub itself, whose key is pinned, or a server before it with a certificate of a known authority,
    /// which reads what goes through the tunnel.
    #[arg(long, env = "FLOTILLA_HUB_TLS", value_enum, default_value_t)]
    hub_tls: HubTlsKind,
    /// A PEM file of the authorities to believe with --hub-tls webpki; without it, those of this system.
    #[arg(long, env = "FLOTILLA_HUB_CA", value_name = "FILE")]
    hub_ca: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum HubTlsKind {
    /// The hub itself.
    #[default]
    Pinned,
    /// A server before it.
    Webpki,
}

/// The names under which other programs look for their proxy, in the order of Go's.
const PROXY_VARIABLES: [&str; 2] = ["HTTPS_PROXY", "https_proxy"];
const BYPASS_VARIABLES: [&str; 2] = ["NO_PROXY", "no_proxy"];

impl WayFlags {
    /// Reads files and the environment.
    pub(super) fn way(&self) -> anyhow::Result<Way> {
        let (name, proxy) = match &self.proxy {
            Some(given) => ("--proxy", Some(given.clone())),
            None => ("HTTPS_PROXY", first_of(PROXY_VARIABLES)),
        };
        let proxy = proxy.filter(|text| !text.is_empty());
        let proxy = proxy.map(|text| Proxy::parse(&text)).transpose();
        let tls = match (self.hub_tls, &self.hub_ca) {
            (HubTlsKind::Pinned, None) => HubTls::Pinned,
            (HubTlsKind::Pinned, Some(_)) => {
                anyhow::bail!("--hub-ca is of no use where the hub's key is pinned; hint: add --hub-tls webpki")
            }
            (HubTlsKind::Webpki, None) => HubTls::Authorities(
                Authorities::of_system()
                    .context("failed to read this system's authorities; hint: name a file with --hub-ca")?,
            ),
            (HubTlsKind::Webpki, Some(file)) => {
                let failed = || format!("failed to use {} as --hub-ca", file.display());
                let pem = read(file).with_context(failed)?;
                HubTls::Authorities(Authorities::from_pem(&pem).with_context(failed)?)
            }
        };
        Ok(Way {
            tls,
            proxy: proxy.with_context(|| format!("{name} is not usable"))?,
            bypass: Bypass::parse(&first_of(BYPASS_VARIABLES).unwrap_or_default()),
        })
    }
}

fn read(file: &Path) -> std::io::Result<Vec<u8>> {
    let (mut pem, file) = (Vec::new(), File::open(file)?);
    file.take(AUTHORITIES_BYTES_MAX).read_to_end(&mut pem)?;
    Ok(pem)
}

fn first_of(names: [&str; 2]) -> Option<String> {
    names
        .into_iter()
        .find_map(|name| std::env::var(name).ok().filter(|text| !text.is_empty()))
}
