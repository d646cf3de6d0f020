//! Who an agent is, where its hubs and its API server are: what `agent` and `doctor` have in common.

use std::path::PathBuf;
use std::sync::Arc;

use anyhow::Context as _;
use clap::Args;
use render::ClusterName;
use tunnel::{PublicKey, SecretKey};

use super::hub_url::hub_url;
use super::keys;
use super::way::WayFlags;
use crate::apply::{ApiServer, ClientError};

/// Flags of an agent's place.
#[derive(Debug, Args)]
pub(super) struct Place {
    /// Which cluster this is: the name of its file in clusters/.
    #[arg(long, env = "FLOTILLA_CLUSTER", required = true)]
    pub(super) cluster: Option<ClusterName>,
    /// Where the hub listens: host:port or wss://host:port. May be given more than once, for several hubs of one fleet: a
    /// tunnel is kept to each of them.
    #[arg(long = "hub", env = "FLOTILLA_HUB", value_delimiter = ',', required = true, value_parser = hub_url)]
    pub(super) hubs: Vec<String>,
    /// The hub's public key (`flotilla hub key` prints it); may be given more than once.
    #[arg(long = "hub-key", env = "FLOTILLA_HUB_KEYS", value_delimiter = ',', value_parser = keys::public, required = true)]
    pub(super) hub_keys: Vec<PublicKey>,
    /// The cluster's key, as `flotilla agent join` made it; without it, flotilla-CLUSTER.key.
    #[arg(long, env = "FLOTILLA_KEY_FILE")]
    key: Option<PathBuf>,
    /// How the cluster's API server is reached; without it, as a pod inside the cluster.
    #[arg(long, env = "FLOTILLA_KUBECONFIG")]
    pub(super) kubeconfig: Option<PathBuf>,
    /// A context of that kubeconfig; without it, the current one.
    #[arg(long, env = "FLOTILLA_CONTEXT", requires = "kubeconfig")]
    context: Option<String>,
    #[command(flatten)]
    pub(super) way: WayFlags,
}

impl Place {
    /// The cluster; clap has seen to it that there is one.
    pub(super) fn cluster(&self) -> anyhow::Result<ClusterName> {
        self.cluster.clone().context("--cluster is missing")
    }

    /// The cluster's key.
    pub(super) fn key(&self, cluster: &ClusterName) -> anyhow::Result<Arc<SecretKey>> {
        keys::read(&super::agent::key_path(self.key.clone(), cluster))
    }

    /// Its API server.
    pub(super) async fn api_server(&self) -> Result<ApiServer, ClientError> {
        match &self.kubeconfig {
            Some(path) => ApiServer::beside(path, self.context.as_deref()).await,
            None => ApiServer::in_cluster().await,
        }
    }
}
