//! Puts an agent together.

use std::path::PathBuf;
use std::sync::Arc;

use render::ClusterName;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;
use tracing::Instrument as _;
use tunnel::{PublicKey, SecretKey, Token};

use super::applying;
use super::counts::Counts;
use super::deliver::Holdings;
use super::gate::{Gate, Policy};
use super::journal::{Journal, JournalError};
use super::own_keys::OwnKeys;
use super::place::JournalPlace;
use super::presence::Keeper;
use super::secrets::SecretJournal;
use super::store::{Kept, Store};
use super::streams::Streams;
use super::tunnels::{Dialer, Way, hang_ups};
use crate::apply::{ApplierOptions, ApplyError, ApplyReport, Backoff, HelmOptions, Passage, Prepare, Tenure};
use crate::audit::{AuditError, AuditLog, AuditTo};
use crate::limits::{JOURNAL_RETRY_FIRST, JOURNAL_RETRY_MAX};
use crate::telemetry::process_name;

/// How an agent runs.
pub struct AgentOptions {
    /// Which cluster it is.
    pub cluster: ClusterName,
    /// Where hubs listen: `wss://host:port`.
    pub hubs: Vec<String>,
    /// What is between here and them.
    pub way: Way,
    /// The hub's keys, any of which is believed.
    pub hub_keys: Vec<PublicKey>,
    /// The cluster's own key.
    pub key: Arc<SecretKey>,
    /// Another one that is to take its place.
    pub next_key: Option<Arc<SecretKey>>,
    /// A bootstrap token, while the cluster may not be registered yet.
    pub token: Token,
    /// Where the journal is.
    pub journal: JournalPlace,
    /// The name of the pod that it runs in, where it has one: its identity in the cluster's Lease.
    pub pod: Option<String>,
    /// A file of age identities, beside those in the cluster.
    pub age_key_file: Option<PathBuf>,
    /// The helm program.
    pub helm: PathBuf,
    /// Client of the cluster's API server.
    pub client: kube::Client,
    /// The same, for what the hub asks of it.
    pub passage: Passage,
    /// What it lends to the hub.
    pub allow: Policy,
    /// Where it is written down what the hub reached; `None` is nowhere.
    pub audit: Option<AuditTo>,
    /// Its address, to be told.
    pub api_server: String,
    /// Field managers that count as earlier tools; see [`ApplierOptions`].
    pub earlier_managers: Vec<String>,
    /// Memory, meters and bandwidth of its tunnels.
    pub allowance: tunnel::Allowance,
}

/// Why an agent ended.
#[derive(Debug, thiserror::Error)]
pub enum AgentError {
    /// The journal could not be read. It is never taken for empty.
    #[error("failed to open the journal")]
    Journal(#[source] JournalError),
    /// Whom it lends what to could not be written down.
    #[error("the audit log is of no use")]
    Audit(#[source] AuditError),
    /// The applier ended.
    #[error("the applier ended")]
    Apply(#[source] ApplyError),
}

/// Runs an agent until shutdown.
pub async fn run(options: AgentOptions, shutdown: CancellationToken) -> Result<(), AgentError> {
    let audit = AuditLog::open(options.audit.as_ref()).map_err(AgentError::Audit)?;
    let name = options.pod.unwrap_or_else(process_name);
    let (cluster, tenure) = (options.cluster.clone(), Tenure::default());
    let mut helm = HelmOptions {
        program: options.helm,
        folder: None,
    };
    let (store, holder): (Arc<dyn Store>, _) = match options.journal {
        JournalPlace::Folder(folder) => {
            helm.folder = Some(folder.join("helm"));
            let journal = Journal::begin(folder, name).await.map_err(AgentError::Journal)?;
            let holder = journal.holder().to_owned();
            (Arc::new(journal), holder)
        }
        JournalPlace::Secrets { namespace, prefix } => {
            let client = options.client.clone();
            let journal = SecretJournal::new(client, &namespace, &prefix, cluster, tenure.clone());
            (Arc::new(journal), name)
        }
    };
    let Some(kept) = read(&*store, &shutdown).await? else {
        return Ok(());
    };
    let keeper = Arc::new(Keeper::new(kept.absence));
    let applier = ApplierOptions {
        helm,
        age_key_file: options.age_key_file,
        earlier_managers: options.earlier_managers,
        away: Some(keeper.away()),
        api_server: Some(options.api_server),
        tenure,
        ..ApplierOptions::new(options.cluster.clone(), holder)
    };
    let held = kept.held.as_ref().map(|held| held.sequence);
    tracing::info!(cluster = %options.cluster, sequence = held, "Read journal.");
    let (cluster, hub_keys) = (options.cluster.clone(), options.hub_keys);
    let holdings = Arc::new(Holdings::new(cluster, kept, store, hub_keys, keeper.notes()));
    let applier = ApplierOptions {
        prepare: Some(Arc::clone(&holdings) as Arc<dyn Prepare>),
        ..applier
    };
    let (applied, report) = watch::channel(ApplyReport::default());
    let counts = Arc::new(Counts::default());
    let gate = Arc::new(Gate::new(
        options.cluster.clone(),
        options.allow,
        holdings.mode(),
        (options.client.clone(), options.passage),
        audit,
        Arc::clone(&counts),
    ));
    let dialer = Arc::new(Dialer {
        cluster: options.cluster,
        hubs: options.hubs,
        way: options.way,
        keys: OwnKeys {
            present: options.key,
            next: options.next_key,
        },
        allowance: options.allowance,
        streams: Streams {
            gate: Arc::clone(&gate),
            holdings: Arc::clone(&holdings),
        },
        holdings: Arc::clone(&holdings),
        applied: report,
        keeper: Arc::clone(&keeper),
        instance: instance(),
        token: options.token,
        hang_ups: hang_ups(),
        counts,
    });
    let dial = dialer.run(shutdown.clone()).instrument(tracing::info_span!("tunnel"));
    let apply = applying::run(options.client, applier, &holdings, applied, shutdown.clone());
    let apply = apply.instrument(tracing::info_span!("apply"));
    // The applier ends by itself at shutdown, after it gave its lease back; the tunnel is of no use without
    // it, and ends with it.
    let dialling = AbortOnDropHandle::new(tokio::spawn(dial));
    let folding = Arc::clone(&gate);
    let folded = async move { folding.write_folded().await };
    let _folding = AbortOnDropHandle::new(tokio::spawn(folded.instrument(tracing::info_span!("audit"))));
    let look = async move { keeper.look().await };
    let look = look.instrument(tracing::info_span!("presence"));
    let _looking = AbortOnDropHandle::new(tokio::spawn(look));
    let applied = apply.await.map_err(AgentError::Apply);
    drop(dialling);
    gate.end().await;
    applied
}

/// A word that no other process has. Without random bytes there is none, and duplicates cannot be told apart.
fn instance() -> String {
    let bytes = tunnel::fresh_bytes().unwrap_or_default();
    let hex = |byte: &u8| format!("{byte:02x}");
    let word: String = bytes.iter().take(16).map(hex).collect();
    word.trim_start_matches('0').to_owned()
}

/// Reads the journal, again and again while the API server does not give it; `None` at shutdown. What cannot be read is
/// never taken for nothing.
async fn read(store: &dyn Store, shutdown: &CancellationToken) -> Result<Option<Kept>, AgentError> {
    let mut backoff = Backoff::new(JOURNAL_RETRY_FIRST, JOURNAL_RETRY_MAX);
    loop {
        match store.read().await {
            Ok(kept) => return Ok(Some(kept)),
            Err(error) if error.may_pass() => {
                let error = &error as &dyn std::error::Error;
                tracing::warn!(error, "Could not read the journal.");
            }
            Err(error) => return Err(AgentError::Journal(error)),
        }
        tokio::select! {
            biased;
            () = shutdown.cancelled() => return Ok(None),
            () = tokio::time::sleep(backoff.wait()) => {}
        }
    }
}
