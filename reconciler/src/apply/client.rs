//! Clients of API servers: by kubeconfig, and from inside a cluster.

use std::path::{Path, PathBuf};

use http::Uri;
use kube::config::{KubeConfigOptions, Kubeconfig, KubeconfigError};
use kube::{Client, Config};

use super::renewal::{Source, followed};
use crate::fault;
use crate::limits::{API_CONNECT_TIMEOUT, API_REQUEST_TIMEOUT};

/// A client that could not be made. Causes name files and fields, never what a kubeconfig holds.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// The kubeconfig could not be read.
    #[error("failed to read kubeconfig {}: {why}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why, and what to do.
        why: String,
    },
    /// The kubeconfig does not describe that context.
    #[error("failed to use {} of kubeconfig {}: {why}", named(context), path.display())]
    Context {
        /// The file.
        path: PathBuf,
        /// The context; empty for the file's current one.
        context: String,
        /// Why, and what to do.
        why: String,
    },
    /// A setting asks for a way through a proxy.
    #[error(
        "the kubeconfig's proxy-url or HTTPS_PROXY asks for a proxy, and none is spoken with an API server; hint: reach it without a proxy, and take the setting away"
    )]
    Proxy,
    /// It names certificates and has none.
    #[error(
        "the kubeconfig's certificate-authority holds no certificate; hint: it is a file in PEM form, or that file in base64 as certificate-authority-data"
    )]
    NoCertificate,
    /// The program that gives its credential does not run.
    #[error(
        "failed to run {command}, which the kubeconfig's exec names; hint: install it where this process finds it on the PATH"
    )]
    Exec {
        /// Which.
        command: String,
        /// Why.
        #[source]
        source: Box<kube::Error>,
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
        let source = Source::Kubeconfig {
            path: path.to_owned(),
            context: context.map(str::to_owned),
        };
        let Self { client, address } = made(&source).await?;
        Ok(Self {
            client: followed(client, source),
            address,
        })
    }

    /// As [`Self::from_kubeconfig`], for an agent that stands beside its API server: `HTTPS_PROXY` is its way to the
    /// hub, and a proxy that the kubeconfig itself names is refused as ever.
    pub async fn beside(path: &Path, context: Option<&str>) -> Result<Self, ClientError> {
        let names_proxy = names_proxy(&read(path)?, context);
        let mut config = config(path, context).await?;
        if !names_proxy {
            config.proxy_url = None;
        }
        api_server(config)
    }

    /// From inside a cluster, by the pod's service account.
    pub fn in_cluster() -> Result<Self, ClientError> {
        let Self { client, address } = api_server(pod()?)?;
        Ok(Self {
            client: followed(client, Source::Pod),
            address,
        })
    }
}

/// A client as its source describes it now.
pub(super) async fn made(source: &Source) -> Result<ApiServer, ClientError> {
    api_server(match source {
        Source::Kubeconfig { path, context } => config(path, context.as_deref()).await?,
        Source::Pod => pod()?,
    })
}

fn pod() -> Result<Config, ClientError> {
    Config::incluster().map_err(|source| ClientError::InCluster(Box::new(source)))
}

/// Whether a kubeconfig can be read; which of its contexts can be used is not asked.
pub fn check_kubeconfig(path: &Path) -> Result<(), ClientError> {
    read(path).map(drop)
}

fn read(path: &Path) -> Result<Kubeconfig, ClientError> {
    Kubeconfig::read_from(path).map_err(|error| ClientError::Read {
        path: path.to_owned(),
        why: why(&error),
    })
}

async fn config(path: &Path, context: Option<&str>) -> Result<Config, ClientError> {
    let kubeconfig = read(path)?;
    let options = KubeConfigOptions {
        context: context.map(str::to_owned),
        ..KubeConfigOptions::default()
    };
    let config = Config::from_custom_kubeconfig(kubeconfig, &options).await;
    config.map_err(|error| ClientError::Context {
        path: path.to_owned(),
        context: context.unwrap_or_default().to_owned(),
        why: why(&error),
    })
}

/// Whether the cluster of a context has a proxy of its own.
fn names_proxy(kubeconfig: &Kubeconfig, context: Option<&str>) -> bool {
    let context = context.or(kubeconfig.current_context.as_deref());
    let named = kubeconfig
        .contexts
        .iter()
        .find(|named| Some(named.name.as_str()) == context);
    let cluster = named
        .and_then(|named| named.context.as_ref())
        .map(|context| context.cluster.as_str());
    let cluster = kubeconfig
        .clusters
        .iter()
        .find(|named| Some(named.name.as_str()) == cluster);
    cluster
        .and_then(|named| named.cluster.as_ref()?.proxy_url.as_deref())
        .is_some_and(|url| !url.is_empty())
}

fn named(context: &str) -> String {
    match context {
        "" => "the current context".to_owned(),
        name => format!("context {name:?}"),
    }
}

/// What is wrong with a kubeconfig, in our words where kube's would repeat the path or show lines of the file.
fn why(error: &KubeconfigError) -> String {
    const NAME: &str = "hint: name a context that `kubectl config get-contexts` shows";
    match error {
        KubeconfigError::ReadConfig(error, _) => format!("{error}; hint: name a file that this process may read"),
        KubeconfigError::Parse(error) => {
            let text = error.to_string();
            let first = text
                .lines()
                .next()
                .unwrap_or("it is no YAML")
                .trim_start_matches("error: ");
            format!("{first}; hint: `kubectl config view` judges a kubeconfig as well")
        }
        KubeconfigError::CurrentContextNotSet => format!("the file has none; {NAME}"),
        KubeconfigError::LoadContext(_) => format!("the file has no such context; {NAME}"),
        KubeconfigError::LoadClusterOfContext(cluster) => {
            format!("its cluster {cluster:?} is not in the file; {NAME}")
        }
        other => format!(
            "{}; hint: correct the file, or make it anew as for kubectl",
            fault::line(other)
        ),
    }
}

fn api_server(mut config: Config) -> Result<ApiServer, ClientError> {
    let address = config.cluster_url.clone();
    if config.proxy_url.is_some() {
        return Err(ClientError::Proxy);
    }
    if config.root_cert.as_ref().is_some_and(Vec::is_empty) {
        return Err(ClientError::NoCertificate);
    }
    let command = config.auth_info.exec.as_ref().and_then(|exec| exec.command.clone());
    config.connect_timeout = Some(API_CONNECT_TIMEOUT);
    // Reading has no timeout of its own: it would end watches. Requests are bounded where they are made.
    config.read_timeout = None;
    config.write_timeout = Some(API_REQUEST_TIMEOUT);
    // What to try again, and when, is the applier's to say: it has other objects to go on with.
    config.default_retry = false;
    let client = Client::try_from(config).map_err(|source| {
        let source = Box::new(source);
        match (command, &*source) {
            (Some(command), kube::Error::Auth(_)) => ClientError::Exec { command, source },
            _ => ClientError::Build(source),
        }
    })?;
    Ok(ApiServer { client, address })
}
