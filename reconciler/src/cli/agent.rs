//! `flotilla agent`; what comes before it is in `join`.

use std::num::NonZeroU32;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context as _;
use clap::{Args, Subcommand, ValueEnum};
use render::ClusterName;
use tokio_util::sync::CancellationToken;
use tunnel::{Allowance, PublicKey, Token};

use super::join::Join;
use super::keys;
use crate::agent::{self, AgentOptions, Allow, JournalPlace, Policy};
use crate::apply::ApiServer;
use crate::audit::AuditTo;

/// Keep one cluster as the hub says, and go on while the hub is away.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(super) struct Agent {
    #[command(subcommand)]
    command: Option<AgentCommand>,
    /// Which cluster this is: the name of its file in clusters/.
    #[arg(long, env = "FLOTILLA_CLUSTER", required = true)]
    cluster: Option<ClusterName>,
    /// Where the hub listens: host:port or wss://host:port.
    #[arg(long, env = "FLOTILLA_HUB", required = true, value_parser = hub_url)]
    hub: Option<String>,
    /// The hub's public key (`flotilla hub key` prints it); may be given more than once.
    #[arg(long = "hub-key", env = "FLOTILLA_HUB_KEYS", value_delimiter = ',', value_parser = keys::public, required = true)]
    hub_keys: Vec<PublicKey>,
    /// The cluster's key, as `flotilla agent join` made it; without it, flotilla-CLUSTER.key.
    #[arg(long, env = "FLOTILLA_KEY_FILE")]
    key: Option<PathBuf>,
    /// A token of `flotilla hub token create`: with it an agent that is not registered asks for it, once.
    #[arg(
        long,
        env = "FLOTILLA_BOOTSTRAP_TOKEN",
        hide_env_values = true,
        value_name = "TOKEN",
        value_parser = bootstrap_token
    )]
    bootstrap_token: Option<Token>,
    /// Where what was taken is kept, so that an agent that restarts without its hub goes on with it: a folder, or
    /// secret:NAMESPACE/NAME for Secrets of the cluster. Without it, secret:flotilla-system/flotilla-journal for a pod
    /// inside the cluster, and the folder flotilla-CLUSTER.journal elsewhere.
    #[arg(long, env = "FLOTILLA_JOURNAL")]
    journal: Option<JournalPlace>,
    /// The name of the pod that it runs in, for the cluster's Lease: a container that was killed goes on at once.
    #[arg(long, env = "FLOTILLA_POD")]
    pod: Option<String>,
    /// A file of age keys (`age-keygen` writes one) that SOPS documents are decrypted with, beside those in the Secret
    /// flotilla-system/sops-age of the cluster.
    #[arg(long, env = "FLOTILLA_AGE_KEY_FILE")]
    age_key_file: Option<PathBuf>,
    /// How the cluster's API server is reached; without it, as a pod inside the cluster.
    #[arg(long, env = "FLOTILLA_KUBECONFIG")]
    kubeconfig: Option<PathBuf>,
    /// A context of that kubeconfig; without it, the current one.
    #[arg(long, env = "FLOTILLA_CONTEXT", requires = "kubeconfig")]
    context: Option<String>,
    /// Megabits a second that streams to the hub may take; without it, as much as the link gives.
    #[arg(long, env = "FLOTILLA_BANDWIDTH", value_name = "MBIT")]
    bandwidth: Option<NonZeroU32>,
    /// The helm program, version 3, for the fleet's HelmCharts.
    #[arg(long, env = "FLOTILLA_HELM", default_value = "helm")]
    helm: PathBuf,
    /// What the hub may reach through this agent: read (the API server, in the name of whoever asks), interactive (exec,
    /// attach, port-forward), push (the hub applies with this agent's rights), dial:HOST:PORT, dial:NETWORK/BITS:PORTS,
    /// service:NAMESPACE/NAME:PORT, or none. May be given more than once; without it, read. The mode in the cluster's
    /// file can take away from this, and nothing can add to it.
    #[arg(long, value_name = "WHAT", env = "FLOTILLA_ALLOW", value_delimiter = ',')]
    allow: Vec<Allow>,
    /// A file to which a line of JSON is added for each stream that the hub opened; - is stdout.
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
            Self::Pull => "none",
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

/// Where the hub listens, as a URL. Without a scheme its port is named, since a person means no other.
pub(super) fn hub_url(text: &str) -> Result<String, String> {
    let wrong = || "it is neither HOST:PORT nor wss://HOST:PORT".to_owned();
    let (url, has_scheme) = match text.split_once("://") {
        Some(("wss", _)) => (text.to_owned(), true),
        Some(_) => return Err(format!("{}; agents speak wss alone", wrong())),
        None => (format!("wss://{text}"), false),
    };
    let parsed: http::Uri = url.parse().map_err(|_| wrong())?;
    let is_whole = parsed.host().is_some_and(|host| !host.is_empty()) && (has_scheme || parsed.port_u16().is_some());
    if is_whole { Ok(url) } else { Err(wrong()) }
}

#[expect(clippy::unnecessary_wraps, reason = "the form of clap's parsers")]
fn bootstrap_token(text: &str) -> Result<Token, String> {
    Ok(Token(text.to_owned()))
}

pub(super) fn key_path(given: Option<PathBuf>, cluster: &ClusterName) -> PathBuf {
    given.unwrap_or_else(|| PathBuf::from(format!("flotilla-{cluster}.key")))
}

pub(super) async fn run(arguments: Agent, shutdown: CancellationToken) -> anyhow::Result<ExitCode> {
    let cluster = arguments.cluster.context("--cluster is missing")?;
    let hub = arguments.hub.context("--hub is missing")?;
    let api_server = match &arguments.kubeconfig {
        Some(path) => ApiServer::from_kubeconfig(path, arguments.context.as_deref()).await?,
        None => ApiServer::in_cluster().context("no --kubeconfig was given, and this is no pod of a cluster; hint: name a kubeconfig, and a context of it with --context")?,
    };
    let options = AgentOptions {
        hub,
        hub_keys: arguments.hub_keys,
        key: keys::read(&key_path(arguments.key, &cluster))?,
        journal: arguments.journal.unwrap_or_else(|| match arguments.kubeconfig {
            Some(_) => PathBuf::from(format!("flotilla-{cluster}.journal")).into(),
            None => JournalPlace::in_cluster(),
        }),
        token: arguments.bootstrap_token.unwrap_or_default(),
        pod: arguments.pod.filter(|pod| !pod.is_empty()),
        age_key_file: arguments.age_key_file,
        helm: arguments.helm,
        client: api_server.client,
        allow: Policy::of(arguments.allow),
        audit: arguments.audit_log.as_deref().map(AuditTo::from),
        api_server: api_server.address.to_string(),
        earlier_managers: arguments.earlier_managers,
        allowance: Allowance::of_megabits(arguments.bandwidth),
        cluster,
    };
    Box::pin(agent::run(options, shutdown)).await?;
    Ok(ExitCode::SUCCESS)
}
