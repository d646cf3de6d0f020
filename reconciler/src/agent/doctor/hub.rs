//! The way to a hub: one dial, whose outcome tells how far it came.

use tunnel::limits::PROBE_EPOCH;
use tunnel::{AskError, ConnectError, DialError, GoAwayReason, HandshakeError, PeerInfo, Proxy, PublicKey};

use super::{Patient, Step, Verdict, clock};
use crate::agent::Way;
use crate::fault::told;

/// How far a dial can come, in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Stage {
    Name,
    Connection,
    Proxy,
    Tls,
    WebSocket,
    Registration,
}

impl Stage {
    const ALL: [Self; 6] = [
        Self::Name,
        Self::Connection,
        Self::Proxy,
        Self::Tls,
        Self::WebSocket,
        Self::Registration,
    ];

    fn word(self) -> &'static str {
        match self {
            Self::Name => "name",
            Self::Connection => "connection",
            Self::Proxy => "proxy",
            Self::Tls => "tls",
            Self::WebSocket => "websocket",
            Self::Registration => "registration",
        }
    }
}

/// Dials once, as an agent that only asks.
pub(super) async fn examine(patient: &Patient, hub_keys: &[PublicKey], url: &str) -> Vec<Step> {
    let (pins, key) = (hub_keys.to_vec(), patient.key.clone());
    let options = patient.way.options(url, pins, &patient.cluster, key, PROBE_EPOCH);
    let addresses = match patient.way.first_stop(url) {
        None => String::new(),
        Some((host, port)) => match tunnel::endpoint::addresses(&host, port).await {
            Ok(found) => {
                let found: Vec<_> = found.iter().map(|address| address.ip().to_string()).collect();
                format!("{host} is {}", found.join(", "))
            }
            Err(_) => String::new(),
        },
    };
    let outcome = Box::pin(tunnel::connect(&options)).await;
    let way = Passed {
        addresses,
        proxy: options.proxy.as_ref(),
        way: &patient.way,
    };
    let now = jiff::Timestamp::now().as_second();
    match &outcome {
        Ok(tunnel) => {
            let mut steps = steps(&way, Ok(&tunnel.peer));
            steps.push(clock::beside("the hub", tunnel.hub_time, now));
            steps
        }
        Err(error) => steps(&way, Err(error)),
    }
}

/// What a dial went through.
struct Passed<'a> {
    addresses: String,
    proxy: Option<&'a Proxy>,
    way: &'a Way,
}

/// The steps of a dial by how it ended: those before its last one were good.
fn steps(passed: &Passed<'_>, outcome: Result<&PeerInfo, &ConnectError>) -> Vec<Step> {
    let failed = outcome.err().map(|error| (error, judged(error, passed.way)));
    let step = |stage: Stage| match failed {
        Some((error, (at, hint))) if at == stage => {
            let (what, own_hint) = told(error);
            Step::bad(stage.word(), what, own_hint.unwrap_or_else(|| hint.to_owned()))
        }
        Some((_, (at, _))) if at < stage => Step {
            name: stage.word(),
            verdict: Verdict::NotTried,
        },
        Some(_) | None => Step::good(stage.word(), seen(stage, passed, outcome.ok())),
    };
    let stages = Stage::ALL.into_iter();
    let stages = stages.filter(|stage| *stage != Stage::Proxy || passed.proxy.is_some());
    stages.map(step).collect()
}

fn seen(stage: Stage, passed: &Passed<'_>, peer: Option<&PeerInfo>) -> String {
    match stage {
        Stage::Name => passed.addresses.clone(),
        Stage::Connection => "it answers".to_owned(),
        Stage::Proxy => passed
            .proxy
            .map(|proxy| format!("{proxy} leads on"))
            .unwrap_or_default(),
        Stage::Tls => match passed.way.tls {
            tunnel::HubTls::Pinned => "it ends at the hub, whose key is pinned".to_owned(),
            tunnel::HubTls::Authorities(_) => {
                "it ends at a server before the hub, with a certificate that is believed".to_owned()
            }
        },
        Stage::WebSocket => "it answers as a hub does".to_owned(),
        Stage::Registration => {
            let version = peer.map(|peer| peer.version.as_str()).unwrap_or_default();
            format!("the hub knows this cluster with this key; it is version {version}")
        }
    }
}

/// The step at which a dial failed, and what to do about it.
fn judged(error: &ConnectError, way: &Way) -> (Stage, &'static str) {
    let is_pinned = matches!(way.tls, tunnel::HubTls::Pinned);
    match error {
        ConnectError::Options { .. } | ConnectError::Prepare(_) => {
            (Stage::Name, "correct --hub, --hub-key or --cluster")
        }
        ConnectError::Dial(DialError::Lookup { .. } | DialError::LookupTimeout { .. }) => (
            Stage::Name,
            "correct the host of --hub or of the proxy, or this machine's name servers (/etc/resolv.conf)",
        ),
        ConnectError::Dial(_) | ConnectError::Socket(_) | ConnectError::Timeout => (
            Stage::Connection,
            "see that something listens there, and that no firewall between drops the way out; where only a proxy leads out, name it with --proxy",
        ),
        ConnectError::StepTimeout {
            step: tunnel::Step::Proxy,
        } => (Stage::Proxy, "ask who runs the proxy why it does not answer CONNECT"),
        ConnectError::Proxy {
            source: AskError::Refused { status: 401 | 407, .. },
            ..
        } => (Stage::Proxy, "correct the name and password in --proxy or HTTPS_PROXY"),
        ConnectError::Proxy {
            source: AskError::Refused { status: 403, .. },
            ..
        } => (
            Stage::Proxy,
            "ask who runs the proxy to allow CONNECT to the hub's host and port",
        ),
        ConnectError::Proxy { .. } => (
            Stage::Proxy,
            "see that --proxy or HTTPS_PROXY names an HTTP proxy that reaches the hub; NO_PROXY lists what it is not asked for",
        ),
        ConnectError::Tls(_) if is_pinned => (
            Stage::Tls,
            "compare --hub-key with what `flotilla hub key` prints at the hub; a server between that ends TLS needs --hub-tls webpki",
        ),
        ConnectError::Tls(_) => (
            Stage::Tls,
            "name the authority of that server's certificate with --hub-ca, and see that its dates and this machine's clock are right",
        ),
        ConnectError::StepTimeout {
            step: tunnel::Step::Tls,
        } => (
            Stage::Tls,
            "something accepts connections there and does not speak TLS: correct the port of --hub",
        ),
        ConnectError::Answered { status } if *status == http::StatusCode::SERVICE_UNAVAILABLE => (
            Stage::WebSocket,
            "the hub has no room just now, or the server before it does not reach it: try again in a minute, and see that the hub runs",
        ),
        ConnectError::Answered { status } if status.is_server_error() => (
            Stage::WebSocket,
            "the server before the hub does not reach it: see that the hub runs, and that this server passes /tunnel on to its --listen-plain",
        ),
        ConnectError::Answered { .. } => (
            Stage::WebSocket,
            "correct the address of --hub, or let the server before the hub pass /tunnel on with its Upgrade headers",
        ),
        ConnectError::Upgrade(_)
        | ConnectError::StepTimeout {
            step: tunnel::Step::Upgrade,
        } => (
            Stage::WebSocket,
            "let whatever is between pass WebSockets on: docs/networks.md has a configuration of nginx",
        ),
        ConnectError::Handshake(error) => (Stage::Registration, refused(error)),
    }
}

fn refused(error: &HandshakeError) -> &'static str {
    match error {
        HandshakeError::Refused(away) => match away.reason {
            GoAwayReason::IdentityRefused => {
                "push this cluster's file, as `flotilla agent join` prints it for this key, to clusters/ of the fleet repository"
            }
            GoAwayReason::Revoked => "the cluster's file is gone or names another key: push it with this one",
            GoAwayReason::Version => "bring hub and agent within one minor version of each other",
            _ => "see the hub's log, and try again",
        },
        HandshakeError::Version { .. } => "bring hub and agent within one minor version of each other",
        HandshakeError::HubNotProven => "compare --hub-key with what `flotilla hub key` prints at the hub",
        HandshakeError::NotBound => "a server between ends TLS: dial with --hub-tls webpki",
        _ => "see the hub's log; something between may cut connections",
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tunnel::{GoAway, SecretKey};

    use super::*;

    fn passed(way: &Way) -> Passed<'_> {
        Passed {
            addresses: "hub is 10.0.0.1".to_owned(),
            proxy: way.proxy.as_ref(),
            way,
        }
    }

    fn proxied() -> Way {
        Way {
            proxy: Proxy::parse("http://ann:secret@proxy:3128").ok(),
            ..Way::default()
        }
    }

    #[track_caller]
    fn check(error: &ConnectError, step: &str, words: &str) {
        let way = proxied();
        let steps = steps(&passed(&way), Err(error));
        assert_eq!(steps.len(), Stage::ALL.len());
        let at = steps
            .iter()
            .position(|step| matches!(step.verdict, Verdict::Bad { .. }));
        let at = at.expect("something is wrong");
        assert_eq!(steps[at].name, step, "{error:?}");
        assert!(steps[..at].iter().all(|step| matches!(step.verdict, Verdict::Good(_))));
        assert!(steps[at + 1..].iter().all(|step| step.verdict == Verdict::NotTried));
        let said = format!("{:?}", steps[at]);
        assert!(said.contains(words) && !said.contains("secret"), "{said}");
    }

    #[test]
    fn the_step_at_which_a_dial_failed_is_named_with_what_to_do() {
        let io = || std::io::Error::other("no");
        let (host, address) = ("hub".to_owned(), "hub:443".to_owned());
        let proxy = |status| ConnectError::Proxy {
            proxy: "proxy:3128".to_owned(),
            source: AskError::Refused {
                status,
                reason: "Words of the proxy".to_owned(),
            },
        };
        let refused = |reason| ConnectError::Handshake(HandshakeError::Refused(GoAway::new(reason, "text")));
        check(
            &ConnectError::Dial(DialError::Lookup { host, source: io() }),
            "name",
            "/etc/resolv.conf",
        );
        check(
            &ConnectError::Dial(DialError::Timeout { address }),
            "connection",
            "firewall",
        );
        for (step, name, words) in [
            (tunnel::Step::Proxy, "proxy", "does not answer CONNECT"),
            (tunnel::Step::Tls, "tls", "port of --hub"),
            (tunnel::Step::Upgrade, "websocket", "nginx"),
        ] {
            check(&ConnectError::StepTimeout { step }, name, words);
        }
        check(&proxy(407), "proxy", "407 Words of the proxy");
        check(&proxy(407), "proxy", "name and password");
        check(&proxy(403), "proxy", "allow CONNECT");
        check(&proxy(502), "proxy", "NO_PROXY");
        check(&ConnectError::Tls(io()), "tls", "flotilla hub key");
        check(
            &ConnectError::Answered {
                status: http::StatusCode::NOT_FOUND,
            },
            "websocket",
            "address of --hub",
        );
        check(
            &ConnectError::Answered {
                status: http::StatusCode::BAD_GATEWAY,
            },
            "websocket",
            "--listen-plain",
        );
        check(
            &ConnectError::Answered {
                status: http::StatusCode::SERVICE_UNAVAILABLE,
            },
            "websocket",
            "no room",
        );
        check(&refused(GoAwayReason::IdentityRefused), "registration", "agent join");
        check(&refused(GoAwayReason::Version), "registration", "one minor version");
        check(
            &ConnectError::Handshake(HandshakeError::BoundElsewhere),
            "registration",
            "--listen-plain",
        );
    }

    #[test]
    fn a_dial_that_came_through_is_good_in_every_step() {
        let peer = PeerInfo {
            cluster: String::new(),
            epoch: 0,
            version: "0.1.0".to_owned(),
            key: SecretKey::generate().expect("there is randomness").public(),
            server_id: String::new(),
            endpoints: Vec::new(),
            spread: Duration::ZERO,
            binding: [0; 32],
            instance: String::new(),
        };
        let way = Way::default();
        let steps = steps(&passed(&way), Ok(&peer));
        assert_eq!(steps.len(), Stage::ALL.len() - 1, "there is no proxy");
        assert!(
            steps.iter().all(|step| matches!(step.verdict, Verdict::Good(_))),
            "{steps:?}"
        );
    }
}
