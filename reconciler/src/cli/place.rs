//! Who an agent is, where its hubs and its API server are: what `agent` and `doctor` have in common.

use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Context as _, bail};
use clap::Args;
use render::ClusterName;
use tunnel::{PublicKey, SecretKey};

use super::hub_url::hub_url;
use super::keys;
use super::way::WayFlags;
use crate::agent::{JournalPlace, KeyPlace, key_secret};
use crate::apply::{ApiServer, ClientError};
use crate::fault::line;

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
    /// The cluster's key, as `flotilla agent join` made it: a file, or secret:NAMESPACE/NAME for a Secret of the cluster
    /// that has it as `key`. Without it, flotilla-CLUSTER.key.
    #[arg(long, env = "FLOTILLA_KEY_FILE", value_name = "PLACE")]
    key: Option<KeyPlace>,
    /// How the cluster's API server is reached; without it, as a pod inside the cluster.
    #[arg(long, env = "FLOTILLA_KUBECONFIG")]
    pub(super) kubeconfig: Option<PathBuf>,
    /// A context of that kubeconfig; without it, the current one.
    #[arg(long, env = "FLOTILLA_CONTEXT", requires = "kubeconfig")]
    context: Option<String>,
    /// Where what was taken is kept, so that an agent that restarts without its hub goes on with it: a folder, or
    /// secret:NAMESPACE/NAME for Secrets of the cluster. Without it, secret:flotilla-system/flotilla-journal for a pod
    /// inside the cluster, and the folder flotilla-CLUSTER.journal elsewhere.
    #[arg(long, env = "FLOTILLA_JOURNAL")]
    journal: Option<JournalPlace>,
    #[command(flatten)]
    pub(super) way: WayFlags,
}

impl Place {
    /// The cluster; clap has seen to it that there is one.
    pub(super) fn cluster(&self) -> anyhow::Result<ClusterName> {
        self.cluster.clone().context("--cluster is missing")
    }

    /// The namespaces in which the agent has something of its own: Secrets, and inside the cluster its pod. `clients` is the
    /// one that its client takes, which is the pod's there.
    pub(super) fn namespaces(&self, new_key: Option<&KeyPlace>, clients: &str) -> Vec<String> {
        let pods = self.kubeconfig.is_none().then(|| clients.to_owned());
        let keys = self.key.as_ref().into_iter().chain(new_key);
        let keys = keys.filter_map(|place| match place {
            KeyPlace::Secret { namespace, .. } => Some(namespace),
            KeyPlace::File(_) => None,
        });
        let journal = match &self.journal {
            Some(JournalPlace::Secrets { namespace, .. }) => Some(namespace),
            Some(JournalPlace::Folder(_)) | None => None,
        };
        keys.chain(journal).cloned().chain(pods).collect()
    }

    /// The cluster's key.
    pub(super) async fn key(
        &self,
        cluster: &ClusterName,
        api_server: Result<&ApiServer, &ClientError>,
    ) -> anyhow::Result<Arc<SecretKey>> {
        match &self.key {
            None => keys::read(&super::agent::key_path(None, cluster)),
            Some(KeyPlace::File(path)) => keys::read(path),
            Some(KeyPlace::Secret { namespace, name }) => {
                let client = client(api_server)?;
                let key = key_secret::read(client, namespace, name).await;
                Ok(Arc::new(key.context(
                    "the cluster's key cannot be used; hint: name with --key the Secret that has it as `key`",
                )?))
            }
        }
    }

    /// Its journal.
    pub(super) fn journal(&self, cluster: &ClusterName) -> JournalPlace {
        self.journal.clone().unwrap_or_else(|| match self.kubeconfig {
            Some(_) => PathBuf::from(format!("flotilla-{cluster}.journal")).into(),
            None => JournalPlace::in_cluster(),
        })
    }

    /// Its API server.
    pub(super) async fn api_server(&self) -> Result<ApiServer, ClientError> {
        match &self.kubeconfig {
            Some(path) => ApiServer::beside(path, self.context.as_deref()).await,
            None => ApiServer::in_cluster().await,
        }
    }
}

/// The key that is to take the place of the cluster's; one is made where there is none.
pub(super) async fn next_key(place: &KeyPlace, client: &kube::Client) -> anyhow::Result<Arc<SecretKey>> {
    match place {
        KeyPlace::File(path) => keys::read_or_make(path),
        KeyPlace::Secret { namespace, name } => {
            let key = key_secret::read_or_make(client, namespace, name).await;
            Ok(Arc::new(key.context(
                "the next key cannot be kept; hint: the agent's Role needs get and create of secrets where --new-key names one",
            )?))
        }
    }
}

fn client<'a>(api_server: Result<&'a ApiServer, &ClientError>) -> anyhow::Result<&'a kube::Client> {
    match api_server {
        Ok(api_server) => Ok(&api_server.client),
        Err(error) => bail!("the key is in a Secret, and there is no API server: {}", line(error)),
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Command {
        #[command(flatten)]
        place: Place,
    }

    #[test]
    fn what_is_an_agents_own_is_where_its_key_its_next_one_its_journal_and_its_pod_are() {
        let own = ["agent", "--cluster", "a", "--hub", "b:1", "--hub-key"];
        let key = tunnel::PublicKey::from_bytes([7; 32]).to_string();
        let namespaces = |more: &[&str], next: Option<&str>| {
            let words = [&own[..], &[&key], more].concat();
            let place = Command::try_parse_from(words).expect("they are good").place;
            let next: Option<KeyPlace> = next.map(|next| next.parse().expect("it is one"));
            place.namespaces(next.as_ref(), "pods")
        };
        let secrets = ["--key", "secret:keys/a", "--journal", "secret:notes/a"];
        assert_eq!(
            namespaces(&secrets, Some("secret:next/a")),
            ["keys", "next", "notes", "pods"]
        );
        let files = ["--key", "a.key", "--journal", "a.journal", "--kubeconfig", "a.yaml"];
        assert_eq!(namespaces(&files, Some("b.key")), [""; 0]);
    }
}
