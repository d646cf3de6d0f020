//! From a name and a port to a TCP connection: looked up anew each time, all addresses in a race with a head start for
//! the first.

use std::net::{IpAddr, SocketAddr};

use tokio::net::{TcpStream, lookup_host};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use crate::limits::{ADDRESSES_MAX, DIAL_HEAD_START, STEP_TIMEOUT};
use crate::proxy::authority;

/// Why there is no TCP connection.
#[derive(Debug, thiserror::Error)]
pub enum DialError {
    /// The name has no address.
    #[error("failed to look up {host}")]
    Lookup {
        /// Which name.
        host: String,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// The lookup took too long.
    #[error("looking up {host} took longer than {STEP_TIMEOUT:?}")]
    LookupTimeout {
        /// Which name.
        host: String,
    },
    /// All that it leads to is to be avoided.
    #[error("{host} leads only to addresses that are not dialled for it")]
    Avoided {
        /// Which name.
        host: String,
    },
    /// No address answered in time.
    #[error("{address} did not answer within {STEP_TIMEOUT:?}")]
    Timeout {
        /// Host and port, with the addresses that were tried.
        address: String,
    },
    /// Each address refused.
    #[error("failed to connect to {address}")]
    Refused {
        /// Host and port, with the addresses that were tried.
        address: String,
        /// What the last one said.
        #[source]
        source: std::io::Error,
    },
}

/// The addresses of a host, in the order in which they are tried.
pub async fn addresses(host: &str, port: u16) -> Result<Vec<SocketAddr>, DialError> {
    let looked_up = timeout(STEP_TIMEOUT, lookup_host((host, port))).await;
    let host = host.to_owned();
    match looked_up {
        Err(_) => Err(DialError::LookupTimeout { host }),
        Ok(Err(source)) => Err(DialError::Lookup { host, source }),
        Ok(Ok(found)) => {
            let found = in_turn(found);
            if found.is_empty() {
                let source = std::io::Error::from(std::io::ErrorKind::NotFound);
                return Err(DialError::Lookup { host, source });
            }
            Ok(found)
        }
    }
}

/// Connects to the first address that answers, of those that are not to be avoided.
pub(crate) async fn dial(host: &str, port: u16, avoids: Option<fn(IpAddr) -> bool>) -> Result<TcpStream, DialError> {
    let mut addresses = addresses(host, port).await?;
    if let Some(avoids) = avoids {
        addresses.retain(|address| !avoids(address.ip()));
        if addresses.is_empty() {
            let host = host.to_owned();
            return Err(DialError::Avoided { host });
        }
    }
    race(host, port, addresses).await
}

async fn race(host: &str, port: u16, addresses: Vec<SocketAddr>) -> Result<TcpStream, DialError> {
    let named = named(host, port, &addresses);
    let mut waiting = addresses.into_iter();
    let mut dials = JoinSet::new();
    let mut last = None;
    let race = async {
        loop {
            if let Some(address) = waiting.next() {
                dials.spawn(TcpStream::connect(address));
            }
            let has_more = waiting.len() > 0;
            let ended = tokio::select! {
                biased;
                ended = dials.join_next() => ended,
                () = sleep(DIAL_HEAD_START), if has_more => continue,
            };
            match ended {
                Some(Ok(Ok(socket))) => return Some(socket),
                Some(Ok(Err(error))) => last = Some(error),
                Some(Err(error)) => last = Some(std::io::Error::other(error)),
                None if has_more => {}
                None => return None,
            }
        }
    };
    match timeout(STEP_TIMEOUT, race).await {
        Ok(Some(socket)) => Ok(socket),
        Err(_) => Err(DialError::Timeout { address: named }),
        Ok(None) => Err(DialError::Refused {
            address: named,
            source: last.unwrap_or_else(|| std::io::ErrorKind::NotConnected.into()),
        }),
    }
}

/// `hub:443 (10.0.0.1, fd00::1)`; an address says itself once.
fn named(host: &str, port: u16, addresses: &[SocketAddr]) -> String {
    let name = authority(host, port);
    if host.parse::<IpAddr>().is_ok() {
        return name;
    }
    let addresses: Vec<_> = addresses.iter().map(|address| address.ip().to_string()).collect();
    format!("{name} ({})", addresses.join(", "))
}

/// One family after the other, each in the resolver's order, IPv6 first: a broken family costs one head start.
fn in_turn(found: impl Iterator<Item = SocketAddr>) -> Vec<SocketAddr> {
    let (six, four): (Vec<_>, Vec<_>) = found.partition(SocketAddr::is_ipv6);
    let (mut six, mut four) = (six.into_iter(), four.into_iter());
    let mut turns = Vec::new();
    loop {
        let pair = [six.next(), four.next()];
        if pair.iter().all(Option::is_none) || turns.len() >= ADDRESSES_MAX {
            turns.truncate(ADDRESSES_MAX);
            return turns;
        }
        turns.extend(pair.into_iter().flatten());
    }
}

#[cfg(test)]
mod tests {
    use tokio::net::TcpListener;

    use super::*;

    fn parsed(texts: &[&str]) -> Vec<SocketAddr> {
        texts.iter().map(|text| text.parse().expect(text)).collect()
    }

    #[tokio::test]
    async fn an_address_to_avoid_is_not_dialled_whatever_it_is_called() {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let port = listener.local_addr().expect("it is bound").port();
        for host in ["localhost", "127.0.0.1"] {
            let avoided = dial(host, port, Some(|address| address.is_loopback())).await;
            assert!(matches!(avoided, Err(DialError::Avoided { .. })), "{host}");
            dial(host, port, None).await.expect("it listens");
        }
    }

    #[test]
    fn families_take_turns_and_their_number_is_bounded() {
        let found = parsed(&["10.0.0.1:1", "10.0.0.2:1", "[fd00::1]:1", "10.0.0.3:1", "[fd00::2]:1"]);
        let expected = parsed(&["[fd00::1]:1", "10.0.0.1:1", "[fd00::2]:1", "10.0.0.2:1", "10.0.0.3:1"]);
        assert_eq!(in_turn(found.into_iter()), expected);
        let many = (0..200).map(|last| SocketAddr::from(([10, 0, 0, last], 1)));
        assert_eq!(in_turn(many).len(), ADDRESSES_MAX);
    }

    #[tokio::test]
    async fn an_address_that_refuses_does_not_keep_the_next_one_waiting() {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("there are ports");
        let live = listener.local_addr().expect("it listens");
        // A port that was free a moment ago, and that nobody listens on.
        let gone = TcpListener::bind("127.0.0.2:0").await.expect("there are ports");
        let dead = gone.local_addr().expect("it listens");
        drop(gone);
        let socket = race("hub.test", 1, vec![dead, live]).await.expect("one answers");
        assert_eq!(socket.peer_addr().expect("it is connected"), live);
        let error = race("hub.test", 7, vec![dead]).await.expect_err("none answers");
        assert_eq!(error.to_string(), "failed to connect to hub.test:7 (127.0.0.2)");
    }

    #[tokio::test]
    async fn a_name_without_an_address_is_told() {
        let error = dial("no.such.host.invalid", 1, None).await.expect_err("it has none");
        assert!(error.to_string().contains("no.such.host.invalid"), "{error}");
    }
}
