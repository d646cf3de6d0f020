//! Puts an agent together.

use std::path::PathBuf;
use std::sync::Arc;

use http::Uri;
use render::ClusterName;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tracing::Instrument as _;
use tunnel::{PublicKey, SecretKey};

use super::deliver::Holdings;
use super::journal::{Journal, JournalError};
use super::presence::Keeper;
use super::session::Dialer;
use crate::apply::{self, ApplierOptions, ApplyError, ApplyReport, HelmOptions};
use crate::telemetry::process_name;

/// How an agent runs.
pub struct AgentOptions {
    /// Which cluster it is.
    pub cluster: ClusterName,
    /// Where the hub listens: `wss://host:port`.
    pub hub: String,
    /// The hub's keys, any of which is believed.
    pub hub_keys: Vec<PublicKey>,
    /// The cluster's own key.
    pub key: Arc<SecretKey>,
    /// Folder of the journal.
    pub journal: PathBuf,
    /// A file of age identities, beside those in the cluster.
    pub age_key_file: Option<PathBuf>,
    /// The helm program.
    pub helm: PathBuf,
    /// Client of the cluster's API server.
    pub client: kube::Client,
    /// The API server's address, for the hub's reads.
    pub api_server: Uri,
    /// Whether the hub may open streams to it; not in mode Pull.
    pub api_server_allowed: bool,
    /// Field managers that count as earlier tools; see [`ApplierOptions`].
    pub earlier_managers: Vec<String>,
}

/// Why an agent ended.
#[derive(Debug, thiserror::Error)]
pub enum AgentError {
    /// The journal could not be read. It is never taken for empty.
    #[error("failed to open the journal")]
    Journal(#[source] JournalError),
    /// The applier ended.
    #[error("the applier ended")]
    Apply(#[source] ApplyError),
}

/// Runs an agent until shutdown.
pub async fn run(options: AgentOptions, shutdown: CancellationToken) -> Result<(), AgentError> {
    let (cluster, folder) = (options.cluster.clone(), options.journal.clone());
    let read = tokio::task::spawn_blocking(move || {
        let journal = Journal::open(folder, &process_name())?;
        let intake = journal.read(cluster)?;
        Ok((journal, intake))
    });
    let (journal, intake) = match read.await {
        Ok(read) => read.map_err(AgentError::Journal)?,
        Err(join) => std::panic::resume_unwind(join.into_panic()),
    };
    let helm = HelmOptions {
        program: options.helm,
        folder: Some(options.journal.join("helm")),
    };
    let keeper = Keeper::new();
    let applier = ApplierOptions {
        helm,
        age_key_file: options.age_key_file,
        earlier_managers: options.earlier_managers,
        away: Some(keeper.away()),
        ..ApplierOptions::new(options.cluster.clone(), journal.holder().to_owned())
    };
    let held = intake.held().map(|held| held.sequence);
    tracing::info!(cluster = %options.cluster, sequence = held, "Read journal.");
    let holdings = Arc::new(Holdings::new(intake, journal, options.hub_keys.clone()));
    let (applied, report) = watch::channel(ApplyReport::default());
    let dialer = Arc::new(Dialer {
        cluster: options.cluster,
        url: options.hub,
        hub_keys: options.hub_keys,
        key: options.key,
        api_server: options.api_server,
        api_server_allowed: options.api_server_allowed,
        holdings: Arc::clone(&holdings),
        applied: report,
        keeper,
    });
    let desired = holdings.desired();
    let dial = dialer.run(shutdown.clone()).instrument(tracing::info_span!("tunnel"));
    let apply = apply::run(options.client, applier, desired, applied, shutdown.clone());
    let apply = apply.instrument(tracing::info_span!("apply"));
    // The applier ends by itself at shutdown, after it gave its lease back; the tunnel is of no use without
    // it, and ends with it.
    let dialling = tokio::spawn(dial);
    let ended = apply.await;
    dialling.abort();
    ended.map_err(AgentError::Apply)
}
