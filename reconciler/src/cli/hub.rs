//! `flotilla hub`.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::num::NonZeroU32;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use clap::{Args, Subcommand};
use jiff::Timestamp;
use render::ClusterName;
use tokio_util::sync::CancellationToken;
use tunnel::SecretKey;

use super::door::DoorFlags;
use super::remote::{RemoteFlags, Sources, sources};
use super::{exit, keys, output};
use crate::hub::publish::StateRefs;
use crate::hub::tokens::TokenFile;
use crate::hub::{self, HubCluster, HubOptions, Listen, OnRewrite, Peer, PeerOptions, PeerPart};
use crate::limits::{HUB_KEYS_MAX, TOKEN_LIFE_MAX};

/// Follow a repository, decide, and deliver.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(super) struct Hub {
    #[command(subcommand)]
    command: Option<HubCommand>,
    /// The repository that people push to: a folder, bare or not, or a URL: https://, ssh://, user@host:path,
    /// file://.
    // Read by us, since clap would show a password in a message.
    #[arg(
        long,
        env = "FLOTILLA_REPOSITORY",
        hide_env_values = true,
        required = true,
        value_name = "PATH|URL"
    )]
    repository: Option<String>,
    #[command(flatten)]
    remote: RemoteFlags,
    /// Its branch.
    #[arg(long, env = "FLOTILLA_BRANCH", default_value = "main")]
    branch: String,
    /// A bare repository of the hub's own for what it decides, made when it is missing; without it, the
    /// refs below are written to the repository itself.
    #[arg(long, env = "FLOTILLA_STATE_REPOSITORY")]
    state_repository: Option<PathBuf>,
    /// The ref of the approved target.
    #[arg(long, default_value = "flotilla/rendered")]
    rendered_ref: String,
    /// The ref of what clusters are told now.
    #[arg(long, default_value = "flotilla/released")]
    released_ref: String,
    /// The hub's key, made when it is missing. Agents pin it, so keep it. The file is followed while the hub runs, and shows
    /// its key to whoever dials then. Beside a single one FILE.next counts, too, as a second key while it is there. May be given
    /// more than once, while one key takes another's place: the first is shown, and agents are told of all.
    #[arg(
        long,
        env = "FLOTILLA_HUB_KEY_FILE",
        default_value = "flotilla-hub.key",
        value_name = "FILE",
        value_delimiter = ','
    )]
    key: Vec<PathBuf>,
    /// Names of clusters and public keys, one in a line, that are not let in whatever the repository says. It is looked
    /// at every second, and counts while Git is away.
    #[arg(long, env = "FLOTILLA_DENY_FILE", value_name = "FILE")]
    deny_file: Option<PathBuf>,
    /// Where hashes of bootstrap tokens are kept, as `flotilla hub token create` writes them.
    #[arg(long, env = "FLOTILLA_TOKENS", value_name = "FILE", default_value = TOKENS)]
    tokens: PathBuf,
    /// Where agents dial.
    #[arg(long, env = "FLOTILLA_LISTEN", default_value = "127.0.0.1:7443", value_parser = address)]
    listen: SocketAddr,
    /// Another hub over the same state: URL=KEY, where the URL is that of its --listen-peers (wss://HOST:PORT) and the key
    /// is what flotilla hub key prints there; URL=KEY,KEY while one takes the other's place. May be given more than once.
    #[arg(long = "peer", env = "FLOTILLA_PEERS", value_name = "URL=KEY", value_delimiter = ',')]
    peers: Vec<PeerPart>,
    /// Where other hubs dial this one; only those that --peer names are let in.
    #[arg(long, env = "FLOTILLA_LISTEN_PEERS", value_parser = address, value_name = "ADDRESS", requires = "peers")]
    listen_peers: Option<SocketAddr>,
    /// Where agents reach this hub, as a URL (wss://HOST:PORT). Hubs tell each other theirs, and their agents of all. May be
    /// given more than once.
    #[arg(long, env = "FLOTILLA_ADVERTISE", value_name = "URL", value_delimiter = ',', value_parser = super::hub_url::hub_url)]
    advertise: Vec<String>,
    /// Which replica this is: agents keep one tunnel to each. Another word at each start by default.
    #[arg(long, env = "FLOTILLA_SERVER_ID", value_name = "NAME")]
    server_id: Option<String>,
    /// Where agents come in the clear, behind a server that ends TLS and passes /tunnel on. Who reaches this address, or
    /// that server, reads what the tunnels carry; name a loopback address, or one that only that server reaches.
    #[arg(long, env = "FLOTILLA_LISTEN_PLAIN", value_parser = address)]
    listen_plain: Option<SocketAddr>,
    /// Where the read-only API answers: a loopback address, or unix:PATH.
    #[arg(long, env = "FLOTILLA_API", default_value = "127.0.0.1:7070")]
    api: Listen,
    /// Megabits a second that streams to one agent may take; without it, as much as the link gives.
    #[arg(long, env = "FLOTILLA_BANDWIDTH", value_name = "MBIT")]
    bandwidth: Option<NonZeroU32>,
    #[command(flatten)]
    door: DoorFlags,
    /// The kubeconfig with the contexts that clusters name in spec.kubeconfigContext.
    #[arg(long, env = "FLOTILLA_KUBECONFIG")]
    kubeconfig: Option<PathBuf>,
    /// The helm program, version 3, for HelmCharts of clusters that the hub applies to itself.
    #[arg(long, env = "FLOTILLA_HELM", default_value = "helm")]
    helm: PathBuf,
    /// The kubeconfig of the hub cluster, to which Clusternet's objects are written where render.mode of
    /// fleet.yaml is objects.
    #[arg(long, env = "FLOTILLA_OBJECTS_KUBECONFIG", value_name = "FILE")]
    objects_kubeconfig: Option<PathBuf>,
    /// The context in it; its current one by default.
    #[arg(
        long,
        env = "FLOTILLA_OBJECTS_CONTEXT",
        value_name = "NAME",
        requires = "objects_kubeconfig"
    )]
    objects_context: Option<String>,
    /// The hub cluster is the one that this hub runs in.
    #[arg(long, conflicts_with = "objects_kubeconfig")]
    objects_in_cluster: bool,
    /// What happens when the branch's history was rewritten.
    #[arg(long, value_enum, default_value_t)]
    on_rewrite: OnRewrite,
    /// Begin a new lineage where the released ref is missing, whatever clusters hold. They go on with
    /// theirs until spec.lineage of fleet.yaml names the new one.
    #[arg(long)]
    new_lineage: bool,
    /// Seconds that clusters may take to say what they hold, when the released ref is missing.
    #[arg(long, default_value_t = 35)]
    recovery_grace_seconds: u64,
    /// Where the hub itself applies: a field manager of the tool that applied objects before: what it owns of an object that is adopted is taken
    /// over. kubectl, Flux, Argo CD, Helm and Clusternet are known. May be given more than once.
    #[arg(
        long = "earlier-manager",
        value_name = "MANAGER",
        env = "FLOTILLA_EARLIER_MANAGERS",
        value_delimiter = ','
    )]
    earlier_managers: Vec<String>,
}

#[derive(Debug, Subcommand)]
enum HubCommand {
    /// Print the hub's public keys, which agents pin; makes a key when it is missing.
    Key {
        /// The key's file. May be given more than once; the keys are printed as --hub-key takes them.
        #[arg(
            long,
            env = "FLOTILLA_HUB_KEY_FILE",
            default_value = "flotilla-hub.key",
            value_name = "FILE",
            value_delimiter = ','
        )]
        key: Vec<PathBuf>,
    },
    /// Bootstrap tokens, with which agents ask for registration.
    #[command(subcommand)]
    Token(TokenCommand),
}

#[derive(Debug, Subcommand)]
enum TokenCommand {
    /// Print a token with which one agent may ask once that a cluster is registered. A person merges what comes of it.
    Create {
        /// The cluster's name.
        #[arg(long)]
        cluster: ClusterName,
        /// How long it counts: 30s, 10m, at most 1h.
        #[arg(long, default_value = "1h", value_parser = token_life)]
        ttl: Duration,
        /// The hub's file of tokens.
        #[arg(long, env = "FLOTILLA_TOKENS", value_name = "FILE", default_value = TOKENS)]
        tokens: PathBuf,
    },
}

/// The file of tokens by default, in the folder where the hub is started.
const TOKENS: &str = "flotilla-hub.tokens";

fn token_life(text: &str) -> Result<Duration, String> {
    let seconds = render::time::duration_seconds(text).unwrap_or_default();
    let life = Duration::from_secs(seconds);
    match life.is_zero() || life > TOKEN_LIFE_MAX {
        true => Err("it is a time such as 10m, and at most 1h".to_owned()),
        false => Ok(life),
    }
}

/// An address of this machine.
pub(super) fn address(text: &str) -> Result<SocketAddr, String> {
    let wrong = "it is no ADDRESS:PORT such as 0.0.0.0:7443; names of hosts are not looked up";
    text.parse().map_err(|_| wrong.to_owned())
}

pub(super) async fn run(arguments: Hub, shutdown: CancellationToken) -> anyhow::Result<ExitCode> {
    if let Some(HubCommand::Key { key }) = arguments.command {
        let keys = hub_keys(&key)?;
        let texts: Vec<_> = keys.iter().map(|key| key.public().to_string()).collect();
        output::print(&format!("{}\n", texts.join(",")));
        return Ok(ExitCode::SUCCESS);
    }
    if let Some(HubCommand::Token(TokenCommand::Create { cluster, ttl, tokens })) = arguments.command {
        let life = i64::try_from(ttl.as_secs()).unwrap_or(i64::MAX);
        let token = TokenFile::new(tokens).create(cluster, life, Timestamp::now().as_second())?;
        output::print(&format!("{token}\n"));
        return Ok(ExitCode::SUCCESS);
    }
    let objects = objects(&arguments);
    let repository = arguments.repository.context("--repository is missing")?;
    let state = arguments.state_repository.as_deref();
    let Sources { source, remote, poll } = match sources(&repository, state, arguments.remote) {
        Ok(sources) => sources,
        Err(error) => {
            output::fail(error.as_ref());
            return Ok(exit::usage());
        }
    };
    // Later they may change or go away, and are read again; at the start a mistake is told.
    for file in [&arguments.kubeconfig, &arguments.objects_kubeconfig]
        .into_iter()
        .flatten()
    {
        if let Err(error) = crate::apply::check_kubeconfig(file) {
            output::fail(&error);
            return Ok(exit::usage());
        }
    }
    let door = match arguments.door.options(&arguments.key) {
        Ok(door) => door,
        Err(why) => {
            output::tell(&format!("error: {why}\n"));
            return Ok(exit::usage());
        }
    };
    let mut keys = hub_keys(&arguments.key)?;
    let key = keys.remove(0);
    let Some(peers) = Peer::of(arguments.peers) else {
        output::tell(
            "error: --peer begins with a key\nhint: a hub is URL=KEY, and more keys of it follow with commas\n",
        );
        return Ok(exit::usage());
    };
    let peers = PeerOptions {
        server_id: arguments.server_id.unwrap_or_else(any_name),
        peers,
        listen: arguments.listen_peers,
        advertise: arguments.advertise,
    };
    let options = HubOptions {
        source,
        remote,
        branch: arguments.branch,
        state: arguments.state_repository,
        refs: StateRefs {
            rendered: arguments.rendered_ref,
            released: arguments.released_ref,
            ..StateRefs::default()
        },
        on_rewrite: arguments.on_rewrite,
        new_lineage: arguments.new_lineage,
        recovery_grace: Duration::from_secs(arguments.recovery_grace_seconds),
        poll,
        listen: arguments.listen,
        allowance: tunnel::Allowance::of_megabits(arguments.bandwidth),
        listen_plain: arguments.listen_plain,
        api: arguments.api,
        peers,
        key,
        other_keys: keys,
        key_files: arguments.key,
        deny_file: arguments.deny_file,
        tokens: arguments.tokens,
        kubeconfig: arguments.kubeconfig,
        helm: arguments.helm,
        earlier_managers: arguments.earlier_managers,
        objects,
        door,
    };
    Box::pin(hub::run(options, shutdown)).await?;
    Ok(ExitCode::SUCCESS)
}

/// The keys of these files, one or more, each of them another.
fn hub_keys(files: &[PathBuf]) -> anyhow::Result<Vec<Arc<SecretKey>>> {
    anyhow::ensure!(
        (1..=HUB_KEYS_MAX).contains(&files.len()),
        "a hub has 1 to {HUB_KEYS_MAX} keys, and --key names {}",
        files.len()
    );
    let keys: Vec<_> = files
        .iter()
        .map(|file| keys::read_or_make(file))
        .collect::<anyhow::Result<_>>()?;
    let different: BTreeSet<_> = keys.iter().map(|key| key.public()).collect();
    anyhow::ensure!(
        different.len() == keys.len(),
        "--key names one key twice; hint: name each once"
    );
    Ok(keys)
}

/// A name that no other process has, also where two have one key.
fn any_name() -> String {
    format!("{:08x}", (tunnel::backoff::random() * f64::from(u32::MAX)) as u32)
}

/// The hub cluster that the command line names.
fn objects(arguments: &Hub) -> Option<HubCluster> {
    if arguments.objects_in_cluster {
        return Some(HubCluster::InCluster);
    }
    let path = arguments.objects_kubeconfig.clone()?;
    let context = arguments.objects_context.clone();
    Some(HubCluster::Kubeconfig { path, context })
}
