//! A cluster of the simulated fleet: an API server in memory, and the key of its agent.

use std::collections::BTreeMap;
use std::net::{SocketAddr, TcpListener};
use std::sync::{Arc, OnceLock};

use http::Uri;
use k8s_openapi::api::core::v1::ConfigMap;
use render::ClusterName;
use tokio_util::sync::CancellationToken;
use tracing::Instrument as _;
use tunnel::SecretKey;

use crate::{ApiServer, Options};

/// A cluster in memory.
#[derive(Clone)]
pub struct SimulatedCluster {
    name: ClusterName,
    key: Arc<SecretKey>,
    server: ApiServer,
    address: Arc<OnceLock<SocketAddr>>,
    client: Arc<OnceLock<kube::Client>>,
}

impl SimulatedCluster {
    /// An empty cluster.
    pub fn new(name: ClusterName, key: Arc<SecretKey>) -> Self {
        Self::with(name, key, Options::default())
    }

    /// An empty cluster that is as given.
    pub fn with(name: ClusterName, key: Arc<SecretKey>, options: Options) -> Self {
        Self {
            name,
            key,
            server: ApiServer::new(options),
            address: Arc::default(),
            client: Arc::default(),
        }
    }

    /// Its name.
    pub fn name(&self) -> &ClusterName {
        &self.name
    }

    /// Its agent's key.
    pub fn key(&self) -> Arc<SecretKey> {
        Arc::clone(&self.key)
    }

    /// Its API server, for faults and figures.
    pub fn server(&self) -> &ApiServer {
        &self.server
    }

    /// A client in this process, the same for everybody: each has a task of its own in the runtime of whoever asks
    /// first.
    pub fn client(&self) -> kube::Client {
        self.client.get_or_init(|| self.server.client()).clone()
    }

    /// What a ConfigMap holds now; `None` without it.
    pub async fn config_map(&self, namespace: &str, name: &str) -> Option<BTreeMap<String, String>> {
        let api: kube::Api<ConfigMap> = kube::Api::namespaced(self.client(), namespace);
        api.get(name).await.ok()?.data
    }

    /// Answers kubectl on `listener` until shutdown. An error is the listener's.
    pub fn serve(&self, listener: TcpListener, shutdown: CancellationToken) -> std::io::Result<()> {
        listener.set_nonblocking(true)?;
        let listener = tokio::net::TcpListener::from_std(listener)?;
        let _served_before = self.address.set(listener.local_addr()?);
        let (server, span) = (
            self.server.clone(),
            tracing::info_span!("api-server", cluster = %self.name),
        );
        tokio::spawn(async move { server.serve(listener, shutdown).await }.instrument(span));
        Ok(())
    }

    /// Where it answers; a place where nobody does while it is not served.
    pub fn address(&self) -> Uri {
        let served = self.address.get().map(|address| format!("http://{address}").parse());
        served
            .and_then(Result::ok)
            .unwrap_or_else(|| Uri::from_static("http://127.0.0.1:1"))
    }
}
