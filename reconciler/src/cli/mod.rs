//! The command line: arguments go in, data to stdout and everything else to stderr go out.
//!
//! Exit codes stand in `exit`. What commands do is elsewhere; here they are only asked for and told of.

#[cfg(feature = "hub")]
mod accept;
#[cfg(feature = "hub")]
mod add;
#[cfg(feature = "agent")]
mod agent;
#[cfg(feature = "hub")]
mod allow;
mod client;
#[cfg(feature = "hub")]
mod clone;
mod completion;
mod conditions;
#[cfg(feature = "hub")]
mod consent;
#[cfg(feature = "hub")]
mod cordon;
mod crds;
mod describe;
#[cfg(feature = "agent")]
mod doctor;
#[cfg(feature = "hub")]
mod door;
mod drift;
mod exit;
mod explain;
#[cfg(feature = "hub")]
mod forget;
mod get;
#[cfg(feature = "hub")]
mod git;
#[cfg(feature = "hub")]
mod hub;
#[cfg(any(feature = "hub", feature = "agent"))]
mod hub_url;
#[cfg(feature = "hub")]
mod hub_view;
mod init;
#[cfg(feature = "agent")]
mod join;
#[cfg(any(feature = "hub", feature = "agent"))]
mod keys;
mod kubeconfig;
#[cfg(feature = "hub")]
mod manifests;
mod output;
#[cfg(feature = "agent")]
mod place;
#[cfg(feature = "hub")]
mod plan;
#[cfg(feature = "hub")]
mod progress;
#[cfg(feature = "hub")]
mod rebalance;
#[cfg(feature = "hub")]
mod reconcile;
#[cfg(feature = "hub")]
mod remote;
#[cfg(feature = "hub")]
mod rooms;
#[cfg(feature = "hub")]
mod rooted;
mod sibling;
#[cfg(feature = "hub")]
mod simulate;
mod status;
#[cfg(feature = "hub")]
mod suspend;
mod tunnel;
#[cfg(feature = "hub")]
mod verify;
#[cfg(feature = "agent")]
mod way;

use std::process::ExitCode;

use clap::{CommandFactory as _, Parser, Subcommand};
#[cfg(any(feature = "hub", feature = "agent"))]
use tokio_util::sync::CancellationToken;

use crate::telemetry::{self, LogFormat};

/// Part of every help in which the options of all commands stand, apart from the command's own.
const LOGGING: &str = "Logging";

/// Keep a fleet of Kubernetes clusters as a Git repository says.
#[derive(Debug, Parser)]
#[command(name = "flotilla", version, propagate_version = true, after_help = exit::HELP)]
struct Arguments {
    /// What is logged to stderr, in tracing's form: `info`, `debug`, `flotilla_reconciler::apply=debug`.
    #[arg(long, global = true, env = "FLOTILLA_LOG", default_value = "info", help_heading = LOGGING, value_parser = telemetry::filter)]
    log: String,
    /// How log lines look.
    #[arg(long, global = true, env = "FLOTILLA_LOG_FORMAT", value_enum, default_value_t, help_heading = LOGGING)]
    log_format: LogFormat,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Make a fleet repository with one Subscription to begin with.
    Init(init::Init),
    /// Run the hub: follow a repository and deliver what it says.
    #[cfg(feature = "hub")]
    Hub(Box<hub::Hub>),
    /// Run the agent of a cluster, or make its key with `agent join`.
    #[cfg(feature = "agent")]
    Agent(Box<agent::Agent>),
    /// Show what a revision of the fleet changes, before it is pushed.
    #[cfg(feature = "hub")]
    Plan(plan::PlanArguments),
    /// Show what would differ if a cluster were lost, a label or a taint another, or replicas more.
    #[cfg(feature = "hub")]
    Simulate(Box<simulate::SimulateArguments>),
    /// Show the hub's objects, as `kubectl get` does; kubectl itself works as well.
    Get(get::GetOptions),
    /// Show one cluster and its tunnel in words: since when it is away, and why.
    Describe(describe::Describe),
    /// Look at tunnels: `tunnel ping CLUSTER` tries one.
    Tunnel(tunnel::Tunnel),
    /// Find out where an agent runs which step of its way is broken: name, proxy, TLS, registration, API server, rights.
    #[cfg(feature = "agent")]
    Doctor(Box<doctor::Doctor>),
    /// Show why each cluster has a unit or not, what its overrides change, and what holds it back.
    Explain(Box<explain::ExplainOptions>),
    /// Show the fleet on one screen; the exit code is 0 when all of it is ready.
    Status(status::StatusOptions),
    /// Show which fields others changed in the clusters; the exit code is 0 when there are none.
    Drift(Box<drift::DriftOptions>),
    /// Commit manifests that an API server would take.
    #[cfg(feature = "hub")]
    Add(Box<add::Add>),
    /// Commit a Suspension: what it names keeps its older revision.
    #[cfg(feature = "hub")]
    Suspend(suspend::Suspend),
    /// Commit the end of a Suspension.
    #[cfg(feature = "hub")]
    Resume(suspend::Resume),
    /// Commit that nothing new comes to clusters; what is there stays.
    #[cfg(feature = "hub")]
    Cordon(cordon::Cordon),
    /// Commit that what clusters have leaves them, once others have it.
    #[cfg(feature = "hub")]
    Drain(cordon::Drain),
    /// Commit that clusters may have something new again.
    #[cfg(feature = "hub")]
    Uncordon(cordon::Uncordon),
    /// Commit that a rewritten history of the fleet repository is accepted.
    #[cfg(feature = "hub")]
    AcceptRewrite(accept::AcceptRewrite),
    /// Commit that objects which a budget holds back may go.
    #[cfg(feature = "hub")]
    AllowPrune(allow::AllowPrune),
    /// Commit that a cluster whose file is gone is remembered no more: what is left there stays.
    #[cfg(feature = "hub")]
    Forget(forget::Forget),
    /// Show what would move if units were placed anew, and commit that they are.
    #[cfg(feature = "hub")]
    Rebalance(rebalance::RebalanceArguments),
    /// Ask the hub to look at its repositories now, and wait for what becomes of it.
    #[cfg(feature = "hub")]
    Reconcile(reconcile::Reconcile),
    /// Render again what released says, from its source revisions, and compare every byte.
    #[cfg(feature = "hub")]
    Verify(verify::Verify),
    /// Write a kubeconfig with which kubectl looks at the hub, and through it at every cluster.
    Kubeconfig(Box<kubeconfig::KubeconfigOptions>),
    /// Print the kinds of a fleet repository as CustomResourceDefinitions.
    Crds(crds::CrdsOptions),
    /// Print a script that completes flotilla's words in a shell.
    Completion(completion::CompletionOptions),
    /// Query index over all clusters (flotilla-pedia); in this version only its --help.
    #[command(disable_help_flag = true)]
    Pedia(sibling::Sibling),
    /// Cache at the edge (flotilla-edge); in this version only its --help.
    #[command(disable_help_flag = true)]
    Edge(sibling::Sibling),
}

/// Runs the command that the process was started with.
pub fn main() -> ExitCode {
    let arguments = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(error) => {
            // Help and versions are answers; everything else is wrong usage.
            let code = if error.use_stderr() { exit::USAGE } else { 0 };
            drop(error.print());
            return ExitCode::from(code);
        }
    };
    telemetry::start(&arguments.log, arguments.log_format);
    // One TLS provider for every library that asks for the process default.
    drop(rustls::crypto::ring::default_provider().install_default());
    match run(arguments.command) {
        Ok(code) if code == ExitCode::SUCCESS && output::is_lost() => ExitCode::FAILURE,
        Ok(code) => code,
        Err(error) => {
            output::fail(error.as_ref());
            ExitCode::FAILURE
        }
    }
}

fn run(command: Command) -> anyhow::Result<ExitCode> {
    match command {
        Command::Init(init) => init::run(&init),
        #[cfg(feature = "hub")]
        Command::Hub(hub) => until_signal(HUB_STOP_TIMEOUT, |shutdown| hub::run(*hub, shutdown)),
        #[cfg(feature = "agent")]
        Command::Agent(agent) => match agent.join() {
            Some(join) => join::run(join),
            None => until_signal(AGENT_STOP_TIMEOUT, |shutdown| agent::run(*agent, shutdown)),
        },
        #[cfg(feature = "hub")]
        Command::Plan(plan) => plan::run(&plan),
        #[cfg(feature = "hub")]
        Command::Simulate(simulate) => Ok(simulate::run(&simulate)),
        Command::Get(options) => get::run(&options),
        Command::Describe(options) => describe::run(&options),
        Command::Tunnel(options) => tunnel::run(&options),
        #[cfg(feature = "agent")]
        Command::Doctor(doctor) => wait_for(doctor::run(*doctor))?,
        Command::Explain(options) => explain::run(&options),
        Command::Status(options) => status::run(&options),
        Command::Drift(options) => drift::run(&options),
        #[cfg(feature = "hub")]
        Command::Add(add) => add::run(&add),
        #[cfg(feature = "hub")]
        Command::Suspend(suspend) => suspend::suspend(&suspend),
        #[cfg(feature = "hub")]
        Command::Resume(resume) => suspend::resume(&resume),
        #[cfg(feature = "hub")]
        Command::Cordon(cordon) => cordon::cordon(&cordon),
        #[cfg(feature = "hub")]
        Command::Drain(drain) => cordon::drain(&drain),
        #[cfg(feature = "hub")]
        Command::Uncordon(uncordon) => cordon::uncordon(&uncordon),
        #[cfg(feature = "hub")]
        Command::AcceptRewrite(accept) => accept::run(&accept),
        #[cfg(feature = "hub")]
        Command::AllowPrune(allow) => allow::run(&allow),
        #[cfg(feature = "hub")]
        Command::Forget(forget) => forget::run(&forget),
        #[cfg(feature = "hub")]
        Command::Rebalance(rebalance) => Ok(rebalance::run(&rebalance)),
        #[cfg(feature = "hub")]
        Command::Reconcile(reconcile) => reconcile::run(&reconcile),
        #[cfg(feature = "hub")]
        Command::Verify(verify) => Ok(verify::run(&verify)),
        Command::Kubeconfig(options) => kubeconfig::run(&options),
        Command::Crds(options) => Ok(crds::run(&options)),
        Command::Completion(options) => Ok(completion::run(&options, Arguments::command())),
        Command::Pedia(sibling) => sibling::run("flotilla-pedia", &sibling),
        Command::Edge(sibling) => sibling::run("flotilla-edge", &sibling),
    }
}

/// Waits for what a command asks others for.
fn wait_for<T>(work: impl Future<Output = T>) -> anyhow::Result<T> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    Ok(runtime.block_on(work))
}

/// Runs until done, or until SIGINT or SIGTERM and then a little longer.
#[cfg(any(feature = "hub", feature = "agent"))]
fn until_signal<F, W>(stop: std::time::Duration, work: F) -> anyhow::Result<ExitCode>
where
    F: FnOnce(CancellationToken) -> W,
    W: Future<Output = anyhow::Result<ExitCode>>,
{
    use tokio::signal::unix::{SignalKind, signal};
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(workers())
        .enable_all()
        .build()?;
    let ended = runtime.block_on(async {
        let (mut interrupt, mut terminate) = (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
        let shutdown = CancellationToken::new();
        let mut work = std::pin::pin!(work(shutdown.clone()));
        tokio::select! {
            ended = &mut work => return ended,
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
        tracing::info!("Was told to stop.");
        shutdown.cancel();
        match tokio::time::timeout(stop, work).await {
            Ok(ended) => ended,
            Err(_) => Ok(ExitCode::SUCCESS),
        }
    });
    // Blocking work that is still under way only reads, or writes what may be written twice.
    runtime.shutdown_timeout(std::time::Duration::from_secs(1));
    ended
}

/// Threads that wait for sockets: half of the processors. What blocks or computes for long has threads of its own beside them,
/// and a request that goes from one thread to the other and back pays for it more than it gains.
#[cfg(any(feature = "hub", feature = "agent"))]
fn workers() -> usize {
    std::thread::available_parallelism().map_or(1, |processors| processors.get().div_ceil(2))
}

/// How long a hub may take to end once it was told to: streams through it have most of that.
#[cfg(feature = "hub")]
const HUB_STOP_TIMEOUT: std::time::Duration = std::time::Duration::from_secs(29);

/// As [`HUB_STOP_TIMEOUT`], of an agent.
#[cfg(feature = "agent")]
const AGENT_STOP_TIMEOUT: std::time::Duration = std::time::Duration::from_secs(5);
