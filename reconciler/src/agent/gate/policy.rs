//! What this cluster lends to the hub: a list that only whoever runs the agent can write. What is not on it is refused.
//!
//! In: `--allow`, and the mode that the hub told. Out: what a class of stream is lent, and whether an address may be
//! dialled. The mode takes away and never adds. Sockets and names are deliberately not here.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use render::model::SyncMode;
use tunnel::TargetClass;

use super::Entry;
use super::address::{Network, is_guarded};
use super::own::Own;

/// One thing that is allowed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Allow {
    /// Nothing, not even reads.
    Nothing,
    /// Answers about what goes with an object.
    Look,
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

/// What a stream of the hub's is served with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::agent) enum Lent {
    /// The API server.
    ApiServer(Entry),
    /// An address; which ones is asked again, of each.
    Address,
    /// Answers of the agent's own.
    Answers,
}

/// What an agent allows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Policy {
    allowed: Vec<Allow>,
    /// What is lent to nobody, whatever else is.
    own: Own,
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
        "{0:?} is none of look, read, interactive, push, none, dial:HOST:PORT, dial:NETWORK/BITS:PORTS and service:NAMESPACE/NAME:PORT"
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
            own: Own::default(),
        }
    }
}

impl Policy {
    /// What a command line says; without a word, reads.
    pub fn of(allowed: Vec<Allow>) -> Self {
        if allowed.is_empty() {
            return Self::default();
        }
        Self {
            allowed,
            ..Self::default()
        }
    }

    /// With what is the agent's own.
    #[must_use]
    pub fn keeping(self, own: Own) -> Self {
        Self { own, ..self }
    }

    /// What is the agent's own.
    pub(super) fn own(&self) -> &Own {
        &self.own
    }

    /// Whether anybody's own request is lent the API server, in whatever mode.
    pub fn lends_people(&self) -> bool {
        let lends = |allow: &Allow| matches!(allow, Allow::Read | Allow::Interactive);
        self.allowed.iter().any(lends)
    }

    /// What a class of stream is lent in this mode; if nothing, why not.
    pub(in crate::agent) fn admits(&self, mode: SyncMode, class: &TargetClass) -> Result<Lent, String> {
        let lent = match class {
            TargetClass::ApiServer => Lent::ApiServer(Entry::Read),
            TargetClass::Interactive => Lent::ApiServer(Entry::Interactive),
            TargetClass::Push => Lent::ApiServer(Entry::Push),
            TargetClass::Dial => Lent::Address,
            TargetClass::Look => Lent::Answers,
            TargetClass::Deliver
            | TargetClass::Report
            | TargetClass::Keys
            | TargetClass::Peer
            | TargetClass::Unknown(_) => {
                return Err(format!("this agent knows no target class {:?}", class.as_str()));
            }
        };
        by_mode(mode, lent)?;
        if self.allowed.iter().any(|allow| allow.lends(lent)) {
            return Ok(lent);
        }
        let word = lent.word();
        let form = if lent == Lent::Address { "dial:HOST:PORT" } else { word };
        Err(format!(
            "the agent does not allow {word}; whoever runs it can, with --allow {form}"
        ))
    }

    /// Whether a target may lead to an address that may be dialled. What its name says is asked only then: the hub would
    /// learn by asking which names there are.
    pub(super) fn may_lead(&self, target: &Target) -> bool {
        self.destinations(target.port).any(|to| match to {
            Destination::Host(name) => *name == target.host,
            Destination::Network(_) => true,
        })
    }

    fn destinations(&self, port: u16) -> impl Iterator<Item = &Destination> {
        self.allowed.iter().filter_map(move |allow| match allow {
            Allow::Dial(rule) if (rule.ports.0..=rule.ports.1).contains(&port) => Some(&rule.to),
            _ => None,
        })
    }

    /// Whether an address that a target led to may be dialled; `is_own` where it is this machine's.
    pub(super) fn admits_address(&self, target: &Target, address: IpAddr, is_own: bool) -> bool {
        let guarded = is_own || is_guarded(address);
        self.destinations(target.port).any(|to| match to {
            Destination::Host(name) => !guarded && *name == target.host,
            Destination::Network(network) if guarded => network.is_exactly(address),
            Destination::Network(network) => network.contains(address),
        })
    }
}

impl Allow {
    fn lends(&self, lent: Lent) -> bool {
        match lent {
            Lent::ApiServer(Entry::Read) => *self == Self::Read,
            Lent::ApiServer(Entry::Interactive) => *self == Self::Interactive,
            Lent::ApiServer(Entry::Push) => *self == Self::Push,
            Lent::Address => matches!(self, Self::Dial(_)),
            // Whoever may read or apply learns as much.
            Lent::Answers => matches!(self, Self::Look | Self::Read | Self::Push),
        }
    }
}

impl Lent {
    /// The word of `--allow` for it.
    fn word(self) -> &'static str {
        match self {
            Self::ApiServer(Entry::Read) => "read",
            Self::ApiServer(Entry::Interactive) => "interactive",
            Self::ApiServer(Entry::Push) => "push",
            Self::Address => "dial",
            Self::Answers => "look",
        }
    }
}

/// What a mode takes away. What the agent itself looks up it answers in each.
fn by_mode(mode: SyncMode, lent: Lent) -> Result<(), String> {
    match (mode, lent) {
        (SyncMode::Pull, Lent::ApiServer(_) | Lent::Address) => {
            Err("this cluster is in sync mode Pull: the hub opens no stream to its API server".to_owned())
        }
        (SyncMode::Dual, Lent::ApiServer(Entry::Push)) => {
            Err("this cluster is in sync mode Dual: its agent applies, and nobody else".to_owned())
        }
        (SyncMode::Pull, Lent::Answers) | (SyncMode::Dual | SyncMode::Push, _) => Ok(()),
    }
}

impl FromStr for Allow {
    type Err = Unclear;

    fn from_str(text: &str) -> Result<Self, Unclear> {
        match text {
            "none" => return Ok(Self::Nothing),
            "look" => return Ok(Self::Look),
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
            Self::Look => "look",
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
mod tests;
