//! TLS with an address that is reached from a cluster: always verified, with the roots of this machine.

use std::sync::{Arc, OnceLock};

use kube::Config;
use kube::client::ConfigExt as _;
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tunnel::TunnelStream;

use super::carry::{NotCarried, broken};
use super::route::Address;

/// Speaks TLS inside streams.
#[derive(Default)]
pub(super) struct Dialler {
    config: OnceLock<Option<Arc<ClientConfig>>>,
}

impl Dialler {
    pub(super) async fn trust(
        &self,
        stream: TunnelStream,
        address: &Address,
    ) -> Result<TlsStream<TunnelStream>, NotCarried> {
        let nowhere = || NotCarried::Broken("this hub cannot verify TLS".to_owned());
        let config = self.config.get_or_init(config).clone().ok_or_else(nowhere)?;
        let name = ServerName::try_from(address.host.clone());
        let name = name.map_err(|_| NotCarried::Broken(format!("{:?} is no name of a host", address.host)))?;
        let connected = TlsConnector::from(config).connect(name, stream).await;
        connected.map_err(|error| broken(&error))
    }
}

/// kube's TLS, with the roots of this machine; the address of the configuration is not used.
fn config() -> Option<Arc<ClientConfig>> {
    let mut config = Config::new(http::Uri::from_static("https://localhost"))
        .rustls_client_config()
        .ok()?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Some(Arc::new(config))
}
