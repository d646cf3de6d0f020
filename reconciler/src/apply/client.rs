//! Clients of API servers: by kubeconfig, and from inside a cluster.

use std::path::{Path, PathBuf};

use http::Uri;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};

use crate::limits::{API_CONNECT_TIMEOUT, API_REQUEST_TIMEOUT};

/// A client that could not be made. Causes name files and fields, never what a kubeconfig holds.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// The kubeconfig could not be read.
    #[error("failed to read kubeconfig {}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: Box<kube::config::KubeconfigError>,
    },
    /// The kubeconfig does not describe that context.
    #[error("failed to use context {context:?} of kubeconfig {}", path.display())]
    Context {
        /// The file.
        path: PathBuf,
        /// The context; empty for the file's current one.
        context: String,
        /// Why.
        #[source]
        source: Box<kube::config::KubeconfigError>,
    },
    /// This process does not run inside a cluster.
    #[error("failed to read the service account of this pod")]
    InCluster(#[source] Box<kube::config::InClusterError>),
    /// The configuration cannot be used.
    #[error("failed to make a client for the API server")]
    Build(#[source] Box<kube::Error>),
}

/// A cluster's API server, as a kubeconfig or a pod's surroundings describe it.
pub struct ApiServer {
    /// For requests.
    pub client: Client,
    /// Its address, for streams that others speak TLS in.
    pub address: Uri,
}

impl ApiServer {
    /// By a context of a kubeconfig; `None` is the file's current context.
    pub async fn from_kubeconfig(path: &Path, context: Option<&str>) -> Result<Self, ClientError> {
        api_server(config(path, context).await?)
    }

    /// From inside a cluster, by the pod's service account.
    pub fn in_cluster() -> Result<Self, ClientError> {
        api_server(Config::incluster().map_err(|source| ClientError::InCluster(Box::new(source)))?)
    }
}

async fn config(path: &Path, context: Option<&str>) -> Result<Config, ClientError> {
    let kubeconfig = Kubeconfig::read_from(path).map_err(|source| ClientError::Read {
        path: path.to_owned(),
        source: Box::new(source),
    })?;
    let options = KubeConfigOptions {
        context: context.map(str::to_owned),
        ..KubeConfigOptions::default()
    };
    let config = Config::from_custom_kubeconfig(kubeconfig, &options).await;
    config.map_err(|source| ClientError::Context {
        path: path.to_owned(),
        context: context.unwrap_or_default().to_owned(),
        source: Box::new(source),
    })
}

fn api_server(mut config: Config) -> Result<ApiServer, ClientError> {
    let address = config.cluster_url.clone();
    config.connect_timeout = Some(API_CONNECT_TIMEOUT);
    // Reading has no timeout of its own: it would end watches. Requests are bounded where they are made.
    config.read_timeout = None;
    config.write_timeout = Some(API_REQUEST_TIMEOUT);
    // What to try again, and when, is the applier's to say: it has other objects to go on with.
    config.default_retry = false;
    let client = Client::try_from(config).map_err(|source| ClientError::Build(Box::new(source)))?;
    Ok(ApiServer { client, address })
}
