//! Where a repository is: a path, or a URL that carries no secret.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

/// A path or a URL, as `--repository` takes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RepositoryAddress {
    /// On this disk.
    Path(PathBuf),
    /// Elsewhere.
    Remote(RemoteUrl),
}

/// How a remote is spoken to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Scheme {
    Https,
    Http,
    Ssh,
    File,
}

/// A URL of a repository. It carries no password, so it may be shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RemoteUrl {
    text: String,
    pub(super) scheme: Scheme,
    /// Host and port as they stand in the URL, without a user.
    pub(super) authority: String,
}

/// Why a text is no address of a repository. What may be a secret in it is not repeated.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum AddressError {
    /// Nothing at all.
    #[error("it is empty; hint: name a folder or a URL")]
    Empty,
    /// A user name or a password in the URL.
    #[error(
        "{shown} carries a user name or a password, which logs and process lists would show; hint: put them into a file and name it with --git-credentials"
    )]
    Secret {
        /// The URL without them.
        shown: String,
    },
    /// Something that Git or we do not speak.
    #[error("{scheme}:// is not spoken here; hint: use https://, ssh:// or a path")]
    Scheme {
        /// Which.
        scheme: String,
    },
    /// A part is missing or impossible.
    #[error("{shown} {reason}; hint: a URL is like https://git.example.com/team/fleet.git")]
    Malformed {
        /// The URL, without secrets.
        shown: String,
        /// What is wrong.
        reason: &'static str,
    },
}

impl FromStr for RepositoryAddress {
    type Err = AddressError;

    fn from_str(text: &str) -> Result<Self, AddressError> {
        if text.is_empty() {
            return Err(AddressError::Empty);
        }
        if let Some((scheme, rest)) = text.split_once("://") {
            return url(text, scheme, rest).map(Self::Remote);
        }
        if let Some((transport, _)) = text.split_once("::") {
            let scheme = transport.chars().take(16).collect();
            return Err(AddressError::Scheme { scheme });
        }
        // As Git has it: a colon before the first slash is a host's, any other text is a path.
        let before_slash = text.split('/').next().unwrap_or_default();
        match before_slash.split_once(':') {
            Some((host, _)) => scp(text, host).map(Self::Remote),
            None => Ok(Self::Path(text.into())),
        }
    }
}

fn url(text: &str, scheme: &str, rest: &str) -> Result<RemoteUrl, AddressError> {
    let scheme = match scheme.to_ascii_lowercase().as_str() {
        "https" => Scheme::Https,
        "http" => Scheme::Http,
        "ssh" => Scheme::Ssh,
        "file" => Scheme::File,
        _ => {
            return Err(AddressError::Scheme {
                scheme: scheme.chars().take(16).collect(),
            });
        }
    };
    let (authority, path) = rest.find('/').map_or((rest, ""), |at| rest.split_at(at));
    let (user, host_port) = match authority.rsplit_once('@') {
        Some((user, host_port)) => (Some(user), host_port),
        None => (None, authority),
    };
    match (scheme, user) {
        (Scheme::Http | Scheme::Https | Scheme::File, Some(_)) => {
            return Err(AddressError::Secret { shown: masked(text) });
        }
        (Scheme::Ssh, Some(user)) if user.contains(':') => {
            return Err(AddressError::Secret { shown: masked(text) });
        }
        _ => {}
    }
    // What follows a question mark may be a token.
    let shown = masked(text.split(['?', '#']).next().unwrap_or_default());
    let wrong = |reason| AddressError::Malformed {
        shown: shown.clone(),
        reason,
    };
    if path.trim_matches('/').is_empty() {
        return Err(wrong("names no repository after the host"));
    }
    if scheme == Scheme::File {
        if !host_port.is_empty() {
            return Err(wrong("names a host; a file URL has three slashes: file:///path"));
        }
    } else {
        host(host_port).map_err(wrong)?;
    }
    if scheme != Scheme::File && path.contains(['?', '#']) {
        return Err(wrong("has a query or a fragment, which no repository has"));
    }
    checked(text, user.unwrap_or_default(), wrong)?;
    Ok(RemoteUrl {
        text: text.to_owned(),
        scheme,
        authority: host_port.to_owned(),
    })
}

/// `user@host:path`.
fn scp(text: &str, before_colon: &str) -> Result<RemoteUrl, AddressError> {
    let wrong = |reason| AddressError::Malformed {
        shown: masked(text),
        reason,
    };
    let (user, name) = before_colon.rsplit_once('@').unwrap_or(("", before_colon));
    // A colon before the `@` ends a user's name, and a password follows it.
    if text[before_colon.len()..].contains('@') || user.contains('@') {
        return Err(AddressError::Secret {
            shown: "***".to_owned() + &text[text.rfind('@').unwrap_or_default()..],
        });
    }
    if text.len() == before_colon.len() + 1 {
        return Err(wrong("names no repository after the host"));
    }
    if text[before_colon.len() + 1..].starts_with('-') {
        return Err(wrong("begins its path with a dash"));
    }
    host(name).map_err(wrong)?;
    checked(text, user, wrong)?;
    Ok(RemoteUrl {
        text: text.to_owned(),
        scheme: Scheme::Ssh,
        authority: name.to_owned(),
    })
}

fn host(host_port: &str) -> Result<(), &'static str> {
    let (name, port) = match host_port.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((name, rest)) => (name, rest.strip_prefix(':')),
        None => match host_port.split_once(':') {
            Some((name, port)) => (name, Some(port)),
            None => (host_port, None),
        },
    };
    if name.is_empty() {
        return Err("names no host");
    }
    // Programs that Git starts would take it for an option.
    if name.starts_with('-') {
        return Err("begins its host with a dash");
    }
    match port {
        Some(port) if port.parse::<u16>().is_err() => Err("has no number as its port"),
        _ => Ok(()),
    }
}

fn checked(text: &str, user: &str, wrong: impl Fn(&'static str) -> AddressError) -> Result<(), AddressError> {
    if user.starts_with('-') {
        return Err(wrong("begins its user with a dash"));
    }
    if text.chars().any(|c| c.is_control() || c == ' ') {
        return Err(wrong("contains a blank or a control character"));
    }
    Ok(())
}

/// A text with whatever may be a user and a password in URLs in it replaced.
pub(super) fn masked(text: &str) -> String {
    let word = |word: &str| -> String {
        let Some((scheme, rest)) = word.split_once("://") else {
            return word.to_owned();
        };
        let authority = rest.find('/').map_or(rest, |at| &rest[..at]);
        match authority.rsplit_once('@') {
            Some((user, _)) => format!("{scheme}://***{}", &rest[user.len()..]),
            None => word.to_owned(),
        }
    };
    text.split(' ').map(word).collect::<Vec<_>>().join(" ")
}

impl RemoteUrl {
    /// As Git takes it.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Whether it is spoken to by http or https.
    pub(super) fn is_web(&self) -> bool {
        matches!(self.scheme, Scheme::Http | Scheme::Https)
    }

    /// The part that says who is logged in to: `https://host:port`.
    pub(super) fn origin(&self) -> String {
        let scheme = self.scheme.name();
        format!("{scheme}://{}", self.authority)
    }

    /// Whether the host is this machine.
    pub(super) fn is_loopback(&self) -> bool {
        let name = self
            .authority
            .rsplit_once(':')
            .map_or(&*self.authority, |(name, _)| name);
        let name = name.trim_start_matches('[').trim_end_matches(']');
        name == "localhost"
            || name
                .parse::<std::net::IpAddr>()
                .is_ok_and(|address| address.is_loopback())
    }
}

impl Scheme {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Https => "https",
            Self::Http => "http",
            Self::Ssh => "ssh",
            Self::File => "file",
        }
    }
}

impl fmt::Display for RemoteUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}
