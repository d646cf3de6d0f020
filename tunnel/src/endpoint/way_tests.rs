//! Ways to a hub with something in between: a proxy, and a server that ends TLS.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use rustls::ServerConfig;
use rustls::pki_types::PrivateKeyDer;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;

use super::accept::{AcceptError, AcceptOptions, accept, accept_plain};
use super::connect::{ConnectError, ConnectOptions, HubTls, connect};
use crate::backoff::Outcome;
use crate::handshake::HandshakeError;
use crate::identity::SecretKey;
use crate::proxy::Proxy;
use crate::tls::Authorities;

const SOON: Duration = Duration::from_secs(20);

fn key() -> Arc<SecretKey> {
    Arc::new(SecretKey::generate().expect("the system has random bytes"))
}

async fn listen(address: &str) -> (TcpListener, SocketAddr) {
    let listener = TcpListener::bind(address).await.expect("loopback has a free port");
    let address = listener.local_addr().expect("a bound listener has an address");
    (listener, address)
}

/// A hub that knows the cluster `north`, and what its agent dials with, whatever the URL.
fn pair(url: String) -> (AcceptOptions, ConnectOptions) {
    let (hub_key, agent_key) = (key(), key());
    let (registered, pin) = (agent_key.public(), hub_key.public());
    let lookup = move |cluster: &str| (cluster == "north").then(|| vec![registered]);
    let hub = AcceptOptions::new(hub_key, Arc::new(lookup)).expect("a fresh key makes a certificate");
    (hub, ConnectOptions::new(url, vec![pin], "north", agent_key, 7))
}

/// A proxy that answers one CONNECT with `answer`, and leads to `target` if that is a consent.
async fn proxy(answer: &'static str, target: SocketAddr) -> SocketAddr {
    let (listener, address) = listen("127.0.0.1:0").await;
    tokio::spawn(async move {
        let (mut near, _) = listener.accept().await.expect("it is dialled");
        let mut request = [0; 1024];
        let read = near.read(&mut request).await.expect("it is asked");
        let asked = String::from_utf8_lossy(&request[..read]).into_owned();
        assert!(asked.starts_with("CONNECT hub.invalid:7443 "), "{asked}");
        near.write_all(answer.as_bytes()).await.expect("it is heard");
        if answer.starts_with("HTTP/1.1 200") {
            let mut far = TcpStream::connect(target).await.expect("the hub listens");
            let _over = copy_bidirectional(&mut near, &mut far).await;
        }
    });
    address
}

fn through(proxy: SocketAddr, options: ConnectOptions) -> ConnectOptions {
    let proxy = Proxy::parse(&format!("http://ann:secret@{proxy}")).expect("it is one");
    ConnectOptions {
        proxy: Some(proxy),
        ..options
    }
}

#[tokio::test]
async fn a_tunnel_through_a_proxy_ends_at_the_pinned_key() {
    let (listener, address) = listen("127.0.0.1:0").await;
    // The name is the proxy's to look up.
    let (hub, agent) = pair("wss://hub.invalid:7443".to_owned());
    let agent = through(proxy("HTTP/1.1 200 OK\r\n\r\n", address).await, agent);
    let accepted = async { accept(listener.accept().await.expect("dialled").0, &hub).await };
    let (accepted, connected) = tokio::join!(accepted, connect(&agent));
    accepted.expect("hub accepts");
    connected.expect("agent connects");
}

#[tokio::test]
async fn a_proxy_that_denies_the_login_is_asked_each_minute_and_one_that_is_broken_sooner() {
    let nowhere = SocketAddr::from(([127, 0, 0, 1], 9));
    for (answer, outcome) in [
        ("HTTP/1.1 407 Proxy Authentication Required\r\n\r\n", Outcome::Refused),
        ("HTTP/1.1 403 Forbidden\r\n\r\n", Outcome::Refused),
        ("HTTP/1.1 502 Bad Gateway\r\n\r\n", Outcome::Failed),
    ] {
        let (_, agent) = pair("wss://hub.invalid:7443".to_owned());
        let agent = through(proxy(answer, nowhere).await, agent);
        let error = connect(&agent).await.err().expect("there is no hub");
        assert_eq!(error.outcome(), outcome, "{answer}");
        let told = format!("{error} {:?}", std::error::Error::source(&error));
        assert!(told.contains(&answer[9..12]) && !told.contains("secret"), "{told}");
    }
}

/// A certificate for `name` of an authority, as a server's configuration and as the authority in PEM form.
fn certified(name: &str) -> (Arc<ServerConfig>, String) {
    let fresh = || KeyPair::generate().expect("ring makes a P-256 key");
    let mut authority = CertificateParams::default();
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let issuer = CertifiedIssuer::self_signed(authority, fresh()).expect("an authority signs itself");
    let (own, params) = (
        fresh(),
        CertificateParams::new([name.to_owned()]).expect("a name of a host"),
    );
    let certificate = params
        .signed_by(&own, &issuer)
        .expect("an authority signs")
        .der()
        .clone();
    let own = PrivateKeyDer::try_from(own.serialize_der()).expect("a key");
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("ring speaks them")
        .with_no_client_auth()
        .with_single_cert(vec![certificate], own);
    (Arc::new(config.expect("key and certificate fit")), issuer.pem())
}

/// What stands before a hub.
async fn front<S>(listener: TcpListener, config: Arc<ServerConfig>, connected: impl Future<Output = S>)
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let (socket, _) = listener.accept().await.expect("dialled");
    if let Ok(mut near) = TlsAcceptor::from(config).accept(socket).await {
        let mut far = connected.await;
        let _over = copy_bidirectional(&mut near, &mut far).await;
    }
}

#[tokio::test]
async fn behind_a_server_that_ends_tls_both_sides_still_prove_their_keys() {
    let (config, pem) = certified("localhost");
    let (outer, address) = listen("127.0.0.1:0").await;
    let (inner, hub_address) = listen("127.0.0.1:0").await;
    let (hub, mut agent) = pair(format!("wss://localhost:{}", address.port()));
    agent.tls = HubTls::Authorities(Authorities::from_pem(pem.as_bytes()).expect("it is an authority"));
    tokio::spawn(front(outer, config, async move {
        TcpStream::connect(hub_address).await.expect("the hub listens")
    }));
    let accepted = async { accept_plain(inner.accept().await.expect("dialled").0, &hub).await };
    let (accepted, connected) = tokio::join!(accepted, connect(&agent));
    assert_eq!(accepted.expect("hub accepts").peer.key, agent.key.public());
    assert_eq!(connected.expect("agent connects").peer.key, agent.pins[0]);
}

#[tokio::test]
async fn a_hub_without_the_pinned_key_is_refused_behind_a_server_too() {
    let (config, pem) = certified("localhost");
    let (outer, address) = listen("127.0.0.1:0").await;
    let (inner, hub_address) = listen("127.0.0.1:0").await;
    let (hub, mut agent) = pair(format!("wss://localhost:{}", address.port()));
    agent.tls = HubTls::Authorities(Authorities::from_pem(pem.as_bytes()).expect("it is an authority"));
    agent.pins = vec![key().public()];
    tokio::spawn(front(outer, config, async move {
        TcpStream::connect(hub_address).await.expect("the hub listens")
    }));
    let accepted = async { accept_plain(inner.accept().await.expect("dialled").0, &hub).await };
    let (_, connected) = tokio::join!(accepted, connect(&agent));
    let error = connected.err().expect("that is another hub");
    assert!(
        matches!(error, ConnectError::Handshake(HandshakeError::HubNotProven)),
        "{error:?}"
    );
}

#[tokio::test]
async fn a_certificate_of_an_unknown_authority_or_for_another_name_is_refused() {
    let (_, other) = certified("localhost");
    for (name, pem) in [("localhost", Some(other)), ("hub.example", None)] {
        let (config, own) = certified(name);
        let (outer, address) = listen("127.0.0.1:0").await;
        let (_, mut agent) = pair(format!("wss://localhost:{}", address.port()));
        let pem = pem.unwrap_or(own);
        agent.tls = HubTls::Authorities(Authorities::from_pem(pem.as_bytes()).expect("it is an authority"));
        tokio::spawn(front(outer, config, std::future::pending::<TcpStream>()));
        let error = connect(&agent).await.err().expect("not believed");
        assert!(matches!(error, ConnectError::Tls(_)), "{error:?}");
    }
}

#[tokio::test]
async fn a_server_that_speaks_tls_with_the_hub_again_is_named_as_the_cause() {
    let (config, pem) = certified("localhost");
    let (outer, address) = listen("127.0.0.1:0").await;
    let (inner, hub_address) = listen("127.0.0.1:0").await;
    let (hub, mut agent) = pair(format!("wss://localhost:{}", address.port()));
    agent.tls = HubTls::Authorities(Authorities::from_pem(pem.as_bytes()).expect("it is an authority"));
    let again = tokio_rustls::TlsConnector::from(crate::tls::client_config(&agent.pins).expect("TLS is there"));
    tokio::spawn(front(outer, config, async move {
        let socket = TcpStream::connect(hub_address).await.expect("the hub listens");
        let name = rustls::pki_types::ServerName::try_from("hub").expect("a name");
        again.connect(name, socket).await.expect("it pins nothing")
    }));
    let accepted = async { accept(inner.accept().await.expect("dialled").0, &hub).await };
    let (accepted, connected) = tokio::join!(accepted, connect(&agent));
    assert!(matches!(accepted, Err(AcceptError::Handshake(_))));
    let error = connected.err().expect("refused");
    let ConnectError::Handshake(inner @ HandshakeError::BoundElsewhere) = &error else {
        unreachable!("not {error:?}");
    };
    assert!(inner.to_string().contains("--listen-plain"), "{inner}");
}

#[tokio::test]
async fn an_ipv6_address_is_dialled_as_it_stands_in_a_url() {
    let (listener, address) = listen("[::1]:0").await;
    let (hub, agent) = pair(format!("wss://[::1]:{}", address.port()));
    let accepted = async { accept(listener.accept().await.expect("dialled").0, &hub).await };
    let both = timeout(SOON, async { tokio::join!(accepted, connect(&agent)) });
    let (accepted, connected) = both.await.expect("it ends");
    accepted.expect("hub accepts");
    connected.expect("agent connects");
}

#[test]
fn a_file_without_a_certificate_is_no_authority() {
    for pem in [
        "",
        "hello",
        "-----BEGIN CERTIFICATE-----\n!!\n-----END CERTIFICATE-----\n",
    ] {
        assert!(Authorities::from_pem(pem.as_bytes()).is_err(), "{pem:?}");
    }
}
