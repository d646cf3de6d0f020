//! What this cluster lends to the hub: a list that only whoever runs the agent can write. What is not on it is refused.
//!
//! In: `--allow`, and the mode that the hub told. Out: whether a class of stream is served, and whether an address may be
//! dialled. The mode takes away and never adds. Sockets and names are deliberately not here.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use render::model::SyncMode;
use tunnel::TargetClass;

use super::address::{Network, is_guarded};

/// One thing that is allowed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Allow {
    /// Nothing, not even reads.
    Nothing,
    /// The API server, to be read in somebody's name.
    Read,
    /// Into containers and ports of them, in somebody's name.
    Interactive,
    /// The API server, with the agent's own rights, for the hub's applier.
    Push,
    /// Addresses.
    Dial(Rule),
}

/// Addresses that may be dialled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    to: Destination,
    ports: (u16, u16),
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Destination {
    /// Whatever this name says, but for guarded addresses.
    Host(String),
    /// These addresses; one that is named whole may be a guarded one.
    Network(Network),
}

/// What an agent allows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Policy {
    allowed: Vec<Allow>,
}

/// What is to be dialled, as the hub says it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::agent) struct Target {
    /// A name or an address.
    pub(super) host: String,
    pub(super) port: u16,
}

/// What is no rule, or no target.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unclear {
    /// A word that names no class.
    #[error(
        "{0:?} is none of read, interactive, push, none, dial:HOST:PORT, dial:NETWORK/BITS:PORTS and service:NAMESPACE/NAME:PORT"
    )]
    Class(String),
    /// An address without a port, or with one that is none.
    #[error(
        "{0:?} has no port between 1 and 65535 after its last colon; it is like db.example:5432 or 10.0.0.0/8:8000-8100"
    )]
    Port(String),
    /// Neither name nor address.
    #[error("{0:?} is neither the name of a host, an address nor a network")]
    Host(String),
}

impl Default for Policy {
    fn default() -> Self {
        Self {
            allowed: vec![Allow::Read],
        }
    }
}

impl Policy {
    /// What a command line says; without a word, reads.
    pub fn of(allowed: Vec<Allow>) -> Self {
        if allowed.is_empty() {
            return Self::default();
        }
        Self { allowed }
    }

    /// Whether a class of stream is served in this mode; if not, why not.
    pub(in crate::agent) fn admits(&self, mode: SyncMode, class: &TargetClass) -> Result<(), String> {
        let allow = match class {
            TargetClass::ApiServer => Allow::Read,
            TargetClass::Interactive => Allow::Interactive,
            TargetClass::Push => Allow::Push,
            // Which addresses is asked again, of each.
            TargetClass::Dial => return self.admits_dialling(mode),
            TargetClass::Deliver
            | TargetClass::Report
            | TargetClass::Keys
            | TargetClass::Look
            | TargetClass::Peer
            | TargetClass::Unknown(_) => {
                return Err(format!("this agent knows no target class {:?}", class.as_str()));
            }
        };
        by_mode(mode, class)?;
        if self.allowed.contains(&allow) {
            Ok(())
        } else {
            Err(format!(
                "the agent does not allow {allow}; whoever runs it can, with --allow {allow}"
            ))
        }
    }

    fn admits_dialling(&self, mode: SyncMode) -> Result<(), String> {
        by_mode(mode, &TargetClass::Dial)?;
        let dials = |allow: &Allow| matches!(allow, Allow::Dial(_));
        if self.allowed.iter().any(dials) {
            Ok(())
        } else {
            Err("the agent allows no address; whoever runs it can, with --allow dial:HOST:PORT".to_owned())
        }
    }

    /// Whether an address that a target led to may be dialled.
    pub(super) fn admits_address(&self, target: &Target, address: IpAddr) -> bool {
        let rules = self.allowed.iter().filter_map(|allow| match allow {
            Allow::Dial(rule) if (rule.ports.0..=rule.ports.1).contains(&target.port) => Some(&rule.to),
            _ => None,
        });
        let guarded = is_guarded(address);
        let mut rules = rules;
        rules.any(|to| match to {
            Destination::Host(name) => !guarded && *name == target.host,
            Destination::Network(network) if guarded => network.is_exactly(address),
            Destination::Network(network) => network.contains(address),
        })
    }
}

/// What a mode takes away.
fn by_mode(mode: SyncMode, class: &TargetClass) -> Result<(), String> {
    match (mode, class) {
        (SyncMode::Pull, _) => {
            Err("this cluster is in sync mode Pull: the hub opens no stream to its API server".to_owned())
        }
        (SyncMode::Dual, TargetClass::Push) => {
            Err("this cluster is in sync mode Dual: its agent applies, and nobody else".to_owned())
        }
        (SyncMode::Dual | SyncMode::Push, _) => Ok(()),
    }
}

impl FromStr for Allow {
    type Err = Unclear;

    fn from_str(text: &str) -> Result<Self, Unclear> {
        match text {
            "none" => return Ok(Self::Nothing),
            "read" => return Ok(Self::Read),
            "interactive" => return Ok(Self::Interactive),
            "push" => return Ok(Self::Push),
            _ => {}
        }
        match text.split_once(':') {
            Some(("dial", rule)) => Rule::dial(rule).map(Self::Dial),
            Some(("service", _)) => {
                let Target { host, port } = text.parse()?;
                Ok(Self::Dial(Rule {
                    to: Destination::Host(host),
                    ports: (port, port),
                }))
            }
            _ => Err(Unclear::Class(text.to_owned())),
        }
    }
}

impl Rule {
    fn dial(text: &str) -> Result<Self, Unclear> {
        let no_port = || Unclear::Port(text.to_owned());
        let (to, ports) = text.rsplit_once(':').ok_or_else(no_port)?;
        let ports = match ports.split_once('-') {
            Some((first, last)) => Some((port(first), port(last))),
            None => Some((port(ports), port(ports))),
        };
        let Some((Some(first), Some(last))) = ports else {
            return Err(no_port());
        };
        if first > last {
            return Err(no_port());
        }
        let to = match to.trim_matches(['[', ']']).parse::<Network>() {
            Ok(network) => Destination::Network(network),
            Err(_) => Destination::Host(host(to)?),
        };
        Ok(Self {
            to,
            ports: (first, last),
        })
    }
}

/// `host:port`, `[v6]:port` or `service:namespace/name:port`, which is the name that a cluster's DNS has for it.
impl FromStr for Target {
    type Err = Unclear;

    fn from_str(text: &str) -> Result<Self, Unclear> {
        let no_port = || Unclear::Port(text.to_owned());
        let (to, number) = text.rsplit_once(':').ok_or_else(no_port)?;
        let port = port(number).ok_or_else(no_port)?;
        let host = match to.strip_prefix("service:") {
            Some(service) => {
                let (namespace, name) = service.split_once('/').ok_or_else(|| Unclear::Host(to.to_owned()))?;
                host(&format!("{name}.{namespace}.svc"))?
            }
            None => host(to)?,
        };
        Ok(Self { host, port })
    }
}

fn port(text: &str) -> Option<u16> {
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|port| digits && *port != 0)
}

/// The one form of a host: an address as Rust writes it, or a name in lower case without a dot at its end.
fn host(text: &str) -> Result<String, Unclear> {
    let wrong = || Unclear::Host(text.to_owned());
    if let Some(inner) = text.strip_prefix('[').and_then(|inner| inner.strip_suffix(']')) {
        let address: std::net::Ipv6Addr = inner.parse().map_err(|_| wrong())?;
        return Ok(address.to_string());
    }
    if let Ok(address) = text.parse::<IpAddr>() {
        return Ok(address.to_string());
    }
    let name = text.strip_suffix('.').unwrap_or(text).to_ascii_lowercase();
    let is_label = |label: &str| {
        (1..=63).contains(&label.len())
            && label
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'))
    };
    // A last part of digits is another way to write an address (`127.1`, `0x7f000001`), which resolvers read.
    let last_is_number = name
        .rsplit('.')
        .next()
        .is_some_and(|last| last.starts_with(|first: char| first.is_ascii_digit()));
    if name.len() > 253 || last_is_number || !name.split('.').all(is_label) {
        return Err(wrong());
    }
    Ok(name)
}

impl fmt::Display for Allow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Nothing => "none",
            Self::Read => "read",
            Self::Interactive => "interactive",
            Self::Push => "push",
            Self::Dial(_) => "dial",
        })
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (open, close) = if self.host.contains(':') { ("[", "]") } else { ("", "") };
        write!(f, "{open}{}{close}:{}", self.host, self.port)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn policy(allowed: &[&str]) -> Policy {
        let allowed = allowed.iter().map(|allow| allow.parse().expect("a rule"));
        Policy::of(allowed.collect())
    }

    #[track_caller]
    fn check(allowed: &[&str], mode: SyncMode, expected: [bool; 4]) {
        let policy = policy(allowed);
        let classes = [
            TargetClass::ApiServer,
            TargetClass::Interactive,
            TargetClass::Push,
            TargetClass::Dial,
        ];
        let found = classes.map(|class| policy.admits(mode, &class).is_ok());
        assert_eq!(found, expected, "{allowed:?} in {mode:?}");
    }

    #[test]
    fn what_is_not_listed_is_refused_and_a_mode_only_takes_away() {
        let all = ["read", "interactive", "push", "dial:db.example:5432"];
        check(&[], SyncMode::Dual, [true, false, false, false]);
        check(&["none"], SyncMode::Dual, [false; 4]);
        check(&["push"], SyncMode::Dual, [false; 4]);
        check(&["push"], SyncMode::Push, [false, false, true, false]);
        check(&[], SyncMode::Push, [true, false, false, false]);
        check(&all, SyncMode::Dual, [true, true, false, true]);
        check(&all, SyncMode::Push, [true; 4]);
        check(&all, SyncMode::Pull, [false; 4]);
        let unknown = TargetClass::Unknown("root".into());
        assert!(policy(&all).admits(SyncMode::Push, &unknown).is_err());
    }

    #[track_caller]
    fn dials(allowed: &[&str], target: &str, address: &str, expected: bool) {
        let target: Target = target.parse().expect("a target");
        let address: IpAddr = address.parse().expect("an address");
        let found = policy(allowed).admits_address(&target, address);
        assert_eq!(found, expected, "{allowed:?} for {target} at {address}");
    }

    #[test]
    fn an_address_is_judged_where_it_is_dialled() {
        let name = ["dial:db.example:5432"];
        dials(&name, "db.example:5432", "10.0.0.7", true);
        dials(&name, "DB.example.:5432", "10.0.0.7", true);
        dials(&name, "db.example:5433", "10.0.0.7", false);
        dials(&name, "other.example:5432", "10.0.0.7", false);
        dials(&name, "10.0.0.7:5432", "10.0.0.7", false);
        let network = ["dial:10.0.0.0/8:8000-8100"];
        dials(&network, "any.example:8080", "10.1.2.3", true);
        dials(&network, "10.1.2.3:8100", "10.1.2.3", true);
        dials(&network, "any.example:8080", "11.1.2.3", false);
        dials(&network, "any.example:8101", "10.1.2.3", false);
        let service = ["service:shop/web:80"];
        dials(&service, "service:shop/web:80", "10.96.0.9", true);
        dials(&service, "service:shop/api:80", "10.96.0.9", false);
        dials(&["dial:[fd00::]/8:443"], "[fd00::7]:443", "fd00::7", true);
    }

    #[test]
    fn a_guarded_address_is_dialled_only_where_it_is_listed_itself() {
        for address in [
            "127.0.0.1",
            "169.254.169.254",
            "::ffff:10.0.0.7",
            "fd00:ec2::254",
            "0.0.0.0",
        ] {
            dials(&["dial:db.example:80"], "db.example:80", address, false);
            dials(&["dial:0.0.0.0/0:80", "dial:::/0:80"], "db.example:80", address, false);
            let exact = format!("dial:[{address}]:80");
            dials(&[&exact], "db.example:80", address, true);
        }
    }

    #[test]
    fn what_is_no_rule_is_refused_with_what_it_could_be() {
        for text in [
            "",
            "reads",
            "dial",
            "dial:",
            "dial:db.example",
            "dial:db.example:0",
            "dial:db.example:+80",
            "dial:db.example:90-80",
            "dial:127.1:80",
            "dial:0x7f000001:80",
            "dial:2130706433:80",
            "dial:a b:80",
            "dial:10.0.0.0/33:80",
            "service:web:80",
            "service:a/b/c:80",
        ] {
            assert!(text.parse::<Allow>().is_err(), "{text:?}");
        }
        for text in [
            "127.1:80",
            "0177.0.0.1:80",
            "a..b:80",
            "[::1:80",
            "user@host:80",
            "host/path:80",
        ] {
            assert!(text.parse::<Target>().is_err(), "{text:?}");
        }
    }
}
