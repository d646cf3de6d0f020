//! What everything is measured against: TLS without a tunnel, from the same library with the same cipher.

use std::net::SocketAddr;
use std::sync::Arc;

use rcgen::{CertificateParams, KeyPair, PKCS_ED25519};
use rustls::crypto::ring;
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer, ServerName};
use rustls::version::TLS13;
use rustls::{ClientConfig, RootCertStore, ServerConfig};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::{TlsAcceptor, TlsConnector};

use super::flow::{self, Flow};
use super::place::Place;

const NAME: &str = "raw";

/// Connections between two places.
pub(super) struct Raw<'a> {
    hub: &'a Place,
    agent: &'a Place,
    address: SocketAddr,
    connector: TlsConnector,
}

impl<'a> Raw<'a> {
    /// A server at the hub that sends what is asked for on every connection.
    pub(super) fn start(hub: &'a Place, agent: &'a Place) -> anyhow::Result<Self> {
        let (acceptor, connector) = ends()?;
        let address = agent.run(async move {
            let listener = TcpListener::bind("127.0.0.1:0").await?;
            let address = listener.local_addr()?;
            tokio::spawn(async move {
                while let Ok((socket, _)) = listener.accept().await {
                    tokio::spawn(send(socket, acceptor.clone()));
                }
            });
            Ok(address)
        })?;
        Ok(Self {
            hub,
            agent,
            address,
            connector,
        })
    }

    /// Moves `bytes` over each of `connections` at once, agent to hub.
    pub(super) fn flow(&self, connections: usize, bytes: u64) -> anyhow::Result<Flow> {
        let (address, connector) = (self.address, self.connector.clone());
        let open = self.hub.run(async move {
            let mut open = Vec::new();
            for _ in 0..connections {
                let socket = TcpStream::connect(address).await?;
                socket.set_nodelay(true)?;
                open.push(connector.connect(ServerName::try_from(NAME)?, socket).await?);
            }
            Ok(open)
        })?;
        flow::measure(&[self.hub, self.agent], self.hub, open, bytes)
    }
}

async fn send(socket: TcpStream, acceptor: TlsAcceptor) -> anyhow::Result<()> {
    socket.set_nodelay(true)?;
    flow::send(acceptor.accept(socket).await?).await
}

fn ends() -> anyhow::Result<(TlsAcceptor, TlsConnector)> {
    let pair = KeyPair::generate_for(&PKCS_ED25519)?;
    let certificate = CertificateParams::new([NAME.to_owned()])?.self_signed(&pair)?;
    let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(pair.serialize_der()));
    let provider = Arc::new(ring::default_provider());
    let server = ServerConfig::builder_with_provider(Arc::clone(&provider))
        .with_protocol_versions(&[&TLS13])?
        .with_no_client_auth()
        .with_single_cert(vec![certificate.der().clone()], key)?;
    let mut roots = RootCertStore::empty();
    roots.add(certificate.der().clone())?;
    let client = ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&TLS13])?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok((
        TlsAcceptor::from(Arc::new(server)),
        TlsConnector::from(Arc::new(client)),
    ))
}
