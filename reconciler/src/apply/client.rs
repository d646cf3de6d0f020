//! Clients of API servers: by kubeconfig, and from inside a cluster.

use std::path::{Path, PathBuf};

use http::Uri;
use kube::config::{KubeConfigOptions, Kubeconfig, KubeconfigError};
use kube::{Client, Config};

use super::connections::Connections;
use super::passage::Passage;
use super::renewal::{Proxies, Source, followed};
use super::unreached::{LoginError, login};
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
    /// It asks as somebody other than who logs in.
    #[error(
        "the kubeconfig's user has as, as-uid, as-groups or as-user-extra, which would be added to whomever a request is made for; hint: take them away, and name a user with rights of its own"
    )]
    Impersonates,
    /// The program that gives its credential does not run.
    #[error(
        "failed to run {command}, which the kubeconfig's exec names; hint: install it where this process finds it on the PATH"
    )]
    Exec {
        /// Which.
        command: String,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// There is no credential.
    #[error("failed to log in; hint: `kubectl auth whoami` with this kubeconfig and as this process's user says more")]
    Login(#[source] LoginError),
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
    /// For requests of others.
    pub passage: Passage,
    /// Its address, for streams that others speak TLS in.
    pub address: Uri,
}

impl ApiServer {
    /// By a context of a kubeconfig; `None` is the file's current context.
    pub async fn from_kubeconfig(path: &Path, context: Option<&str>) -> Result<Self, ClientError> {
        Self::open(Source::kubeconfig(path, context, Proxies::Refused)).await
    }

    /// As [`Self::from_kubeconfig`], for an agent that stands beside its API server: `HTTPS_PROXY` is its way to the
    /// hub, and a proxy that the kubeconfig itself names is refused as ever.
    pub async fn beside(path: &Path, context: Option<&str>) -> Result<Self, ClientError> {
        Self::open(Source::kubeconfig(path, context, Proxies::OfEnvironmentIgnored)).await
    }

    /// From inside a cluster, by the pod's service account.
    pub async fn in_cluster() -> Result<Self, ClientError> {
        Self::open(Source::Pod).await
    }

    /// Makes a client, and keeps it what its source says.
    async fn open(source: Source) -> Result<Self, ClientError> {
        let Made {
            connections,
            namespace,
            address,
        } = made(&source).await?;
        let passage = followed(connections, source);
        Ok(Self {
            client: passage.client(&namespace),
            passage,
            address,
        })
    }
}

/// What a source describes now.
pub(super) struct Made {
    pub(super) connections: Connections,
    /// That a client takes where a request names none.
    pub(super) namespace: String,
    pub(super) address: Uri,
}

pub(super) async fn made(source: &Source) -> Result<Made, ClientError> {
    api_server(match source {
        Source::Kubeconfig { path, context, proxies } => config(path, context.as_deref(), *proxies).await?,
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

async fn config(path: &Path, context: Option<&str>, proxies: Proxies) -> Result<Config, ClientError> {
    let kubeconfig = read(path)?;
    let is_ignored = proxies == Proxies::OfEnvironmentIgnored && !names_proxy(&kubeconfig, context);
    let options = KubeConfigOptions {
        context: context.map(str::to_owned),
        ..KubeConfigOptions::default()
    };
    let config = Config::from_custom_kubeconfig(kubeconfig, &options).await;
    let mut config = config.map_err(|error| ClientError::Context {
        path: path.to_owned(),
        context: context.unwrap_or_default().to_owned(),
        why: why(&error),
    })?;
    if is_ignored {
        config.proxy_url = None;
    }
    Ok(config)
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

fn api_server(mut config: Config) -> Result<Made, ClientError> {
    if config.proxy_url.is_some() {
        return Err(ClientError::Proxy);
    }
    if config.root_cert.as_ref().is_some_and(Vec::is_empty) {
        return Err(ClientError::NoCertificate);
    }
    // kube adds these headers to ours, and of groups an API server takes all.
    let user = &config.auth_info;
    let impersonates = user.impersonate.is_some()
        || user.impersonate_uid.is_some()
        || user.impersonate_groups.is_some()
        || user.impersonate_user_extra.is_some();
    if impersonates {
        return Err(ClientError::Impersonates);
    }
    let command = config.auth_info.exec.as_ref().and_then(|exec| exec.command.clone());
    config.connect_timeout = Some(API_CONNECT_TIMEOUT);
    // Reading has no timeout of its own: it would end watches. Requests are bounded where they are made.
    config.read_timeout = None;
    config.write_timeout = Some(API_REQUEST_TIMEOUT);
    let connections = Connections::new(&config).map_err(|source| match (login(&source), command) {
        (Some(LoginError::Start(source)), Some(command)) => ClientError::Exec { command, source },
        (Some(source), _) => ClientError::Login(source),
        (None, _) => ClientError::Build(Box::new(source)),
    })?;
    Ok(Made {
        connections,
        namespace: config.default_namespace,
        address: config.cluster_url,
    })
}

#[cfg(test)]
mod tests {
    use kube::client::Body;

    use super::*;
    use crate::apply::Unreached;

    const NOBODY_LISTENS: &str = "http://127.0.0.1:1";

    /// A kubeconfig whose user is `user`, and its folder.
    fn kubeconfig(user: &str) -> (tempfile::TempDir, PathBuf) {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("kubeconfig");
        let text = format!(
            "apiVersion: v1\nkind: Config\ncurrent-context: a\n\
             clusters: [{{name: a, cluster: {{server: '{NOBODY_LISTENS}'}}}}]\n\
             users: [{{name: a, user: {user}}}]\ncontexts: [{{name: a, context: {{cluster: a, user: a}}}}]\n"
        );
        std::fs::write(&path, text).expect("it is writable");
        (folder, path)
    }

    #[tokio::test]
    async fn a_kubeconfig_that_asks_as_somebody_else_is_lent_to_nobody() {
        for user in [
            "{as: admin}",
            "{as-groups: ['system:masters']}",
            "{as-uid: '1'}",
            "{as-user-extra: {scopes: [all]}}",
        ] {
            let (_folder, path) = kubeconfig(user);
            let opened = [
                ApiServer::beside(&path, None).await,
                ApiServer::from_kubeconfig(&path, Some("a")).await,
            ];
            for opened in opened {
                let error = opened.err().expect(user);
                assert!(matches!(error, ClientError::Impersonates), "{user}: {error}");
            }
        }
    }

    #[tokio::test]
    async fn what_a_login_program_was_told_and_prints_is_told_to_nobody() {
        let exec = |script: &str| {
            format!(
                "{{exec: {{apiVersion: client.authentication.k8s.io/v1, interactiveMode: Never, command: sh, \
                 args: [-c, '{script}', --secret=hunter2]}}}}"
            )
        };
        let (_folder, path) = kubeconfig(&exec("echo hunter2; echo hunter2 >&2; exit 3"));
        let error = ApiServer::beside(&path, None).await.err().expect("it fails");
        let said = fault::line(&error);
        assert!(said.contains("exit status: 3") && !said.contains("hunter2"), "{said}");
        // It gives a credential that is over, and fails when it is asked for the next.
        let credential = r#"{"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential",
            "status": {"token": "hunter2", "expirationTimestamp": "2020-01-01T00:00:00Z"}}"#;
        let (folder, path) = kubeconfig("{}");
        let (given, kept) = (folder.path().join("credential"), folder.path().join("given"));
        std::fs::write(&given, credential).expect("it is writable");
        let script = format!("cat {} || {{ echo hunter2; exit 3; }}", given.display());
        let text = std::fs::read_to_string(&path).expect("it is readable");
        std::fs::write(&path, text.replace("user: {}", &format!("user: {}", exec(&script)))).expect("it is writable");
        let server = ApiServer::beside(&path, None).await.expect("it has a credential");
        std::fs::rename(&given, &kept).expect("it moves");
        let request = http::Request::get("/version").body(Body::empty()).expect("a request");
        let error = server.client.send(request).await.map(drop).expect_err("no login");
        let said = fault::line(&error);
        assert!(said.contains("exit status: 3") && !said.contains("hunter2"), "{said}");
        assert_eq!(Unreached::of(&error), Unreached::Login);
    }
}
