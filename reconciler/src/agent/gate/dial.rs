//! Dials an address for the hub: a name is resolved once, its addresses are judged, and one of those is dialled.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use tokio::net::{TcpStream, lookup_host};
use tokio::time::timeout;
use tunnel::OpenCode;

use super::policy::{Policy, Target};
use crate::agent::own_address::is_own;
use crate::limits::DIAL_ADDRESSES_MAX;

/// Why nothing is dialled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::agent) struct Denial {
    pub(in crate::agent) code: OpenCode,
    pub(in crate::agent) text: String,
}

impl Denial {
    fn new(code: OpenCode, text: impl Into<String>) -> Self {
        Self {
            code,
            text: text.into(),
        }
    }
}

/// A connection to `target`, within `limit`, and the address that it has. The resolver's one answer is all that counts:
/// a name that says another address a moment later is not asked again.
pub(in crate::agent) async fn dial<R, F>(
    policy: &Policy,
    target: &str,
    limit: Duration,
    resolve: R,
) -> Result<(TcpStream, SocketAddr), Denial>
where
    R: FnOnce(Target) -> F,
    F: Future<Output = io::Result<Vec<IpAddr>>>,
{
    let target: Target = target
        .parse()
        .map_err(|unclear: super::policy::Unclear| Denial::new(OpenCode::NotAllowed, unclear.to_string()))?;
    // Which addresses a name has is not told: the hub would learn the network by asking.
    let not_allowed = || {
        let text = format!("the agent does not allow {target}, or not where it leads");
        Denial::new(OpenCode::NotAllowed, text)
    };
    if !policy.may_lead(&target) {
        return Err(not_allowed());
    }
    let dialled = async {
        let addresses = match target.host.parse() {
            Ok(address) => vec![address],
            Err(_) => resolve(target.clone()).await.map_err(|error| {
                Denial::new(
                    OpenCode::Unreachable,
                    format!("{} has no address: {error}", target.host),
                )
            })?,
        };
        let mut failed = None;
        for address in addresses.into_iter().take(DIAL_ADDRESSES_MAX) {
            let is_admitted = |is_own| policy.admits_address(&target, address, is_own);
            let address = SocketAddr::new(address, target.port);
            if !is_admitted(is_own(address).await) {
                continue;
            }
            match TcpStream::connect(address).await {
                Ok(stream) => return Ok((stream, address)),
                Err(error) => failed = Some(unreachable(&error)),
            }
        }
        Err(failed.unwrap_or_else(not_allowed))
    };
    let late = || Denial::new(OpenCode::DialTimeout, format!("{target} did not answer in time"));
    let (stream, address) = timeout(limit, dialled).await.unwrap_or_else(|_| Err(late()))?;
    // What is typed is sent; an error here shows with the first byte.
    let _unset = stream.set_nodelay(true);
    Ok((stream, address))
}

/// The addresses that this machine's resolver has for a name.
pub(in crate::agent) async fn resolved(target: Target) -> io::Result<Vec<IpAddr>> {
    let found = lookup_host((target.host.as_str(), target.port)).await?;
    Ok(found.map(|address| address.ip()).collect())
}

fn unreachable(error: &io::Error) -> Denial {
    let code = match error.kind() {
        io::ErrorKind::ConnectionRefused => OpenCode::Refused,
        _ => OpenCode::Unreachable,
    };
    Denial::new(code, error.to_string())
}

#[cfg(test)]
mod tests {
    use tokio::net::TcpListener;

    use super::*;

    const LIMIT: Duration = Duration::from_secs(10);

    fn policy(allowed: &[String]) -> Policy {
        Policy::of(allowed.iter().map(|allow| allow.parse().expect("a rule")).collect())
    }

    async fn listening() -> (TcpListener, u16) {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let port = listener.local_addr().expect("it is bound").port();
        (listener, port)
    }

    /// A resolver that says these addresses; it can be asked only once.
    fn says(addresses: &[&str]) -> impl FnOnce(Target) -> std::future::Ready<io::Result<Vec<IpAddr>>> {
        let addresses = addresses.iter().map(|address| address.parse().expect("an address"));
        let addresses: Vec<IpAddr> = addresses.collect();
        move |_| std::future::ready(Ok(addresses))
    }

    #[tokio::test]
    async fn a_name_that_is_bound_anew_to_an_own_address_is_not_dialled() {
        let (listener, port) = listening().await;
        let allowed = policy(&[format!("dial:db.example:{port}"), format!("dial:0.0.0.0/0:{port}")]);
        let target = format!("db.example:{port}");
        for address in [
            "127.0.0.1",
            "::1",
            "::ffff:127.0.0.1",
            "169.254.169.254",
            "64:ff9b::7f00:1",
            "0.0.0.0",
        ] {
            let denied = dial(&allowed, &target, LIMIT, says(&[address])).await;
            let code = denied.map(drop).map_err(|denial| denial.code);
            assert_eq!(code, Err(OpenCode::NotAllowed), "{address}");
        }
        let denied = dial(&allowed, &format!("127.0.0.1:{port}"), LIMIT, says(&[])).await;
        assert!(denied.is_err(), "nor by its number");
        tokio::select! {
            biased;
            _ = listener.accept() => panic!("somebody dialled it"),
            () = std::future::ready(()) => {}
        }
    }

    #[tokio::test]
    async fn of_several_addresses_one_that_is_allowed_is_dialled() {
        let (_listener, port) = listening().await;
        let allowed = policy(&[format!("dial:127.0.0.1:{port}")]);
        let found = dial(
            &allowed,
            &format!("db.example:{port}"),
            LIMIT,
            says(&["127.0.0.2", "127.0.0.1"]),
        )
        .await;
        let (_, address) = found.expect("one of them is listed");
        assert_eq!(address.ip(), IpAddr::from([127, 0, 0, 1]));
        let closed = dial(
            &policy(&["dial:127.0.0.1:1".to_owned()]),
            "127.0.0.1:1",
            LIMIT,
            says(&[]),
        )
        .await;
        assert_eq!(closed.map(drop).map_err(|denial| denial.code), Err(OpenCode::Refused));
    }

    #[tokio::test]
    async fn a_name_that_no_rule_is_about_is_not_looked_up() {
        let allowed = policy(&["dial:db.example:5432".to_owned(), "dial:10.0.0.0/8:80".to_owned()]);
        for target in ["other.example:5432", "db.example:80000", "db.example:443"] {
            let asked = |_| -> std::future::Ready<io::Result<Vec<IpAddr>>> { panic!("{target} was looked up") };
            let denied = dial(&allowed, target, LIMIT, asked).await;
            let code = denied.map(drop).map_err(|denial| denial.code);
            assert_eq!(code, Err(OpenCode::NotAllowed), "{target}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_name_that_nobody_answers_for_ends_in_time() {
        let allowed = policy(&["dial:db.example:80".to_owned()]);
        let waiting = |_| std::future::pending();
        let denied = dial(&allowed, "db.example:80", LIMIT, waiting).await;
        assert_eq!(
            denied.map(drop).map_err(|denial| denial.code),
            Err(OpenCode::DialTimeout)
        );
    }
}
