//! For which targets no proxy is used: `NO_PROXY`, read as Go's programs read it, since one value serves a whole pod.

use std::net::IpAddr;

/// Exceptions from a proxy.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Bypass {
    rules: Vec<Rule>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Rule {
    /// `*`
    All,
    /// `10.0.0.0/8`
    Network { address: IpAddr, bits: u8 },
    /// `10.0.0.1`, `10.0.0.1:443`, `[fd00::1]:443`
    Address { address: IpAddr, port: Option<String> },
    /// `example.com` with all below it, `.example.com` and `*.example.com` only what is below it; each with a port or
    /// without.
    Name {
        /// Begins with a dot.
        suffix: String,
        is_itself: bool,
        port: Option<String>,
    },
}

impl Bypass {
    /// Reads rules between commas. There are no wrong ones: what is no address or network is a name.
    #[must_use]
    pub fn parse(text: &str) -> Self {
        let rules = text
            .split(',')
            .filter_map(|entry| rule(&entry.trim().to_lowercase()))
            .collect();
        Self { rules }
    }

    /// Whether a target is dialled directly. The machine itself always is. Names are not looked up: a network covers
    /// addresses as they are written alone.
    #[must_use]
    pub fn covers(&self, host: &str, port: u16) -> bool {
        let host = super::bare(host).trim_end_matches('.').to_lowercase();
        let address: Option<IpAddr> = host.parse().ok().map(|address: IpAddr| address.to_canonical());
        if host == "localhost" || address.is_some_and(|address| address.is_loopback()) {
            return true;
        }
        let port = port.to_string();
        self.rules.iter().any(|rule| rule.covers(&host, address, &port))
    }
}

impl Rule {
    fn covers(&self, host: &str, address: Option<IpAddr>, port: &str) -> bool {
        let fits = |wanted: &Option<String>| wanted.as_ref().is_none_or(|wanted| wanted == port);
        match self {
            Self::All => true,
            Self::Network { address: network, bits } => address.is_some_and(|address| is_in(address, *network, *bits)),
            Self::Address { address: own, port } => address == Some(*own) && fits(port),
            Self::Name {
                suffix,
                is_itself,
                port,
            } => address.is_none() && (host.ends_with(suffix) || *is_itself && host == &suffix[1..]) && fits(port),
        }
    }
}

fn rule(entry: &str) -> Option<Rule> {
    if entry == "*" {
        return Some(Rule::All);
    }
    if let Some((address, bits)) = entry.split_once('/')
        && let (Ok(address), Ok(bits)) = (address.parse::<IpAddr>(), bits.parse::<u8>())
        && bits <= if address.is_ipv4() { 32 } else { 128 }
    {
        return Some(Rule::Network { address, bits });
    }
    let (host, port) = match entry.rsplit_once(':') {
        // More colons without brackets are an address without a port.
        Some((host, port)) if !host.contains(':') || host.starts_with('[') && host.ends_with(']') => {
            (super::bare(host), Some(port.to_owned()))
        }
        _ => (super::bare(entry), None),
    };
    if let Ok(address) = host.parse::<IpAddr>() {
        let address = address.to_canonical();
        return Some(Rule::Address { address, port });
    }
    let name = host
        .strip_prefix('*')
        .filter(|rest| rest.starts_with('.'))
        .unwrap_or(host);
    let is_itself = !name.starts_with('.');
    let suffix = if is_itself { format!(".{name}") } else { name.to_owned() };
    (suffix.len() > 1).then_some(Rule::Name {
        suffix,
        is_itself,
        port,
    })
}

fn is_in(address: IpAddr, network: IpAddr, bits: u8) -> bool {
    let same = |own: u128, other: u128, width: u32| {
        let free = width - u32::from(bits).min(width);
        own.checked_shr(free).unwrap_or(0) == other.checked_shr(free).unwrap_or(0)
    };
    match (address, network) {
        (IpAddr::V4(own), IpAddr::V4(other)) => same(own.to_bits().into(), other.to_bits().into(), 32),
        (IpAddr::V6(own), IpAddr::V6(other)) => same(own.to_bits(), other.to_bits(), 128),
        (IpAddr::V4(_), IpAddr::V6(_)) | (IpAddr::V6(_), IpAddr::V4(_)) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(rules: &str, target: &str, covered: bool) {
        let (host, port) = target.rsplit_once(':').expect("a target has a port");
        let port = port.parse().expect("a port is a number");
        assert_eq!(
            Bypass::parse(rules).covers(host, port),
            covered,
            "{target} under {rules:?}"
        );
    }

    #[test]
    fn names_cover_themselves_and_what_is_below_them() {
        for target in [
            "example.com:443",
            "hub.example.com:443",
            "HUB.Example.COM:443",
            "example.com.:443",
        ] {
            check("example.com", target, true);
        }
        check("example.com", "anexample.com:443", false);
        check("example.com", "example.com.evil.org:443", false);
        for rules in [".example.com", "*.example.com"] {
            check(rules, "hub.example.com:443", true);
            check(rules, "example.com:443", false);
        }
        check(" other.org , example.com ", "hub.example.com:443", true);
    }

    #[test]
    fn a_port_limits_a_rule() {
        for rules in ["example.com:8443", ".example.com:8443", "*.example.com:8443"] {
            check(rules, "hub.example.com:8443", true);
            check(rules, "hub.example.com:443", false);
        }
        check("10.0.0.1:8443", "10.0.0.1:8443", true);
        check("10.0.0.1:8443", "10.0.0.1:443", false);
        check("[fd00::1]:8443", "[fd00::1]:8443", true);
        check("[fd00::1]:8443", "[fd00::1]:443", false);
    }

    #[test]
    fn addresses_and_networks_cover_what_is_written_as_an_address() {
        check("10.0.0.1", "10.0.0.1:443", true);
        check("10.0.0.1", "10.0.0.2:443", false);
        check("10.0.0.0/8", "10.9.8.7:443", true);
        check("10.0.0.0/8", "11.0.0.1:443", false);
        check("0.0.0.0/0", "8.8.8.8:443", true);
        check("0.0.0.0/0", "[fd00::1]:443", false);
        check("fd00::/8", "[fd12::7]:443", true);
        check("fd00::/8", "[fe80::7]:443", false);
        check("fd00::1", "[fd00:0::1]:443", true);
        check("10.0.0.0/8", "hub.example.com:443", false);
        check("10.0.0.0/99", "10.0.0.1:443", false);
        check("0.1", "10.0.0.1:443", false);
    }

    #[test]
    fn a_star_covers_everything_and_nothing_covers_only_the_machine_itself() {
        check("*", "hub.example.com:443", true);
        for rules in ["", ",", " , ", ":443", "[]"] {
            check(rules, "hub.example.com:443", false);
            for target in [
                "localhost:443",
                "127.0.0.1:443",
                "127.9.9.9:1",
                "[::1]:443",
                "[::ffff:127.0.0.1]:443",
            ] {
                check(rules, target, true);
            }
        }
    }
}
