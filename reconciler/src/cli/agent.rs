//! `flotilla agent`; what comes before it is in `join`.

use std::num::NonZeroU32;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::Context as _;
use clap::{Args, Subcommand, ValueEnum};
use render::ClusterName;
use render::model::SyncMode;
use tokio_util::sync::CancellationToken;
use tunnel::{Allowance, SecretKey, Token};

use super::join::Join;
use super::place::{Place, next_key};
use crate::agent::{self, AgentOptions, Allow, KeyPlace, Own, Policy};
use crate::audit::AuditTo;

/// Keep one cluster as the hub says, and go on while the hub is away.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(super) struct Agent {
    #[command(subcommand)]
    command: Option<AgentCommand>,
    #[command(flatten)]
    place: Place,
    /// A key that is to take the place of --key's, made where there is none: a file, or secret:NAMESPACE/NAME for a Secret
    /// of the cluster. The hub proposes it, and the agent goes over to it once that is merged.
    #[arg(long, env = "FLOTILLA_NEW_KEY", value_name = "PLACE")]
    new_key: Option<KeyPlace>,
    /// A token of `flotilla hub token create`: with it an agent that is not registered asks for it, once.
    #[arg(
        long,
        env = "FLOTILLA_BOOTSTRAP_TOKEN",
        hide_env_values = true,
        value_name = "TOKEN",
        value_parser = bootstrap_token
    )]
    bootstrap_token: Option<Token>,
    /// The name of the pod that it runs in, for the cluster's Lease: a container that was killed goes on at once.
    #[arg(long, env = "FLOTILLA_POD")]
    pod: Option<String>,
    /// A file of age keys (`age-keygen` writes one) that SOPS documents are decrypted with, beside those in the Secret
    /// flotilla-system/sops-age of the cluster.
    #[arg(long, env = "FLOTILLA_AGE_KEY_FILE")]
    age_key_file: Option<PathBuf>,
    /// Megabits a second that streams to the hub may take; without it, as much as the link gives.
    #[arg(long, env = "FLOTILLA_BANDWIDTH", value_name = "MBIT")]
    bandwidth: Option<NonZeroU32>,
    /// The helm program, version 3, for the fleet's HelmCharts.
    #[arg(long, env = "FLOTILLA_HELM", default_value = "helm")]
    helm: PathBuf,
    /// What the hub may reach through this agent: look (what goes with an object, which read and push lend too), read (the
    /// API server, in the name of whoever asks), interactive (exec,
    /// attach, port-forward), push (the hub applies with this agent's rights), dial:HOST:PORT, dial:NETWORK/BITS:PORTS,
    /// service:NAMESPACE/NAME:PORT, or none. May be given more than once; without it, read. The mode in the cluster's
    /// file can take away from this, and nothing can add to it.
    #[arg(long, value_name = "WHAT", env = "FLOTILLA_ALLOW", value_delimiter = ',')]
    allow: Vec<Allow>,
    /// A file to which a line of JSON is added for each stream that the hub opened, or each request of a person's on it; - is
    /// stdout.
    #[arg(long, value_name = "FILE", env = "FLOTILLA_AUDIT_LOG")]
    audit_log: Option<String>,
    /// What --allow was before.
    #[arg(long, env = "FLOTILLA_SYNC_MODE", hide = true, value_parser = former_mode)]
    sync_mode: Option<String>,
    /// A field manager of the tool that applied objects before: what it owns of an object that is adopted is taken
    /// over. kubectl, Flux, Argo CD, Helm and Clusternet are known. May be given more than once.
    #[arg(
        long = "earlier-manager",
        value_name = "MANAGER",
        env = "FLOTILLA_EARLIER_MANAGERS",
        value_delimiter = ','
    )]
    earlier_managers: Vec<String>,
}

/// The modes of a cluster with an agent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(super) enum AgentMode {
    /// The agent applies; the hub may read through it.
    #[default]
    Dual,
    /// The agent applies; the hub reaches nothing.
    Pull,
    /// The hub applies through the agent.
    Push,
}

#[derive(Debug, Subcommand)]
enum AgentCommand {
    /// Make a cluster's key and print the file to commit as clusters/NAME.yaml.
    Join(Join),
}

impl AgentMode {
    pub(super) fn of(mode: SyncMode) -> Self {
        match mode {
            SyncMode::Dual => Self::Dual,
            SyncMode::Pull => Self::Pull,
            SyncMode::Push => Self::Push,
        }
    }

    pub(super) fn text(self) -> &'static str {
        match self {
            Self::Dual => "Dual",
            Self::Pull => "Pull",
            Self::Push => "Push",
        }
    }

    /// What its agent lends, as `--allow` has it.
    pub(super) fn allow(self) -> &'static str {
        match self {
            Self::Dual => "read",
            Self::Pull => "look",
            Self::Push => "read,push",
        }
    }
}

impl Agent {
    pub(super) fn join(&self) -> Option<&Join> {
        self.command.as_ref().map(|AgentCommand::Join(join)| join)
    }
}

/// Whoever relied on it would be wrong to go on unheard.
fn former_mode(_: &str) -> Result<String, String> {
    Err("the mode is in the cluster's file in Git; what this agent lends is said by --allow (FLOTILLA_ALLOW), and --allow none lends nothing".to_owned())
}

#[expect(clippy::unnecessary_wraps, reason = "the form of clap's parsers")]
fn bootstrap_token(text: &str) -> Result<Token, String> {
    Ok(Token(text.to_owned()))
}

pub(super) fn key_path(given: Option<PathBuf>, cluster: &ClusterName) -> PathBuf {
    given.unwrap_or_else(|| PathBuf::from(format!("flotilla-{cluster}.key")))
}

/// A key that is to take the place of another one; the same key, as after it did, takes nobody's.
fn another(next: Arc<SecretKey>, key: &SecretKey) -> Option<Arc<SecretKey>> {
    if next.public() == key.public() {
        tracing::warn!("--new-key holds the key that --key holds already, so that there is none to go over to.");
        return None;
    }
    Some(next)
}

pub(super) async fn run(arguments: Agent, shutdown: CancellationToken) -> anyhow::Result<ExitCode> {
    let place = arguments.place;
    let (cluster, way) = (place.cluster()?, place.way.way()?);
    let journal = place.journal(&cluster);
    let api_server = place.api_server().await;
    let key = place.key(&cluster, api_server.as_ref()).await?;
    let api_server = match place.kubeconfig {
        Some(_) => api_server?,
        None => api_server.context("no --kubeconfig was given, and this is no pod of a cluster; hint: name a kubeconfig, and a context of it with --context")?,
    };
    let namespaces = place.namespaces(arguments.new_key.as_ref(), api_server.client.default_namespace());
    let own = Own::with(namespaces);
    let next_key = match &arguments.new_key {
        Some(place) => another(next_key(place, &api_server.client).await?, &key),
        None => None,
    };
    let options = AgentOptions {
        hubs: place.hubs,
        way,
        hub_keys: place.hub_keys,
        key,
        next_key,
        journal,
        token: arguments.bootstrap_token.unwrap_or_default(),
        pod: arguments.pod.filter(|pod| !pod.is_empty()),
        age_key_file: arguments.age_key_file,
        helm: arguments.helm,
        client: api_server.client,
        passage: api_server.passage,
        allow: Policy::of(arguments.allow).keeping(own),
        audit: arguments.audit_log.as_deref().map(AuditTo::from),
        api_server: api_server.address.to_string(),
        earlier_managers: arguments.earlier_managers,
        allowance: Allowance::of_megabits(arguments.bandwidth),
        cluster,
    };
    Box::pin(agent::run(options, shutdown)).await?;
    Ok(ExitCode::SUCCESS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_that_is_there_already_is_none_to_go_over_to() {
        let key = Arc::new(SecretKey::generate().expect("there is randomness"));
        let next = Arc::new(SecretKey::generate().expect("there is randomness"));
        assert!(another(Arc::clone(&key), &key).is_none());
        let taken = another(Arc::clone(&next), &key).expect("it is another one");
        assert_eq!(taken.public(), next.public());
    }
}
