//! An agent as a task of this process.

use std::net::SocketAddr;
use std::time::Duration;

use reconciler::agent::{self, AgentError, AgentOptions, JournalError, JournalPlace, Policy, Way};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use tracing::Instrument as _;
use tunnel::PublicKey;

use super::cluster::SimulatedCluster;

/// How often a journal that is in use is tried again.
const JOURNAL_RETRY: Duration = Duration::from_millis(20);

/// Where a hub is, and how it is known.
#[derive(Clone, Debug)]
pub struct HubPlace {
    /// Where agents dial.
    pub address: SocketAddr,
    /// Its key.
    pub key: PublicKey,
}

/// A running agent; it ends when it is told to, or when it is dropped.
#[derive(Debug)]
pub struct Agent {
    task: Option<JoinHandle<Result<(), AgentError>>>,
    shutdown: CancellationToken,
}

impl Agent {
    /// Starts the agent of a cluster.
    pub fn start(
        cluster: &SimulatedCluster,
        hub: &HubPlace,
        journal: impl Into<JournalPlace>,
        shutdown: &CancellationToken,
    ) -> Self {
        let journal = journal.into();
        let shutdown = shutdown.child_token();
        let (cluster, hub, stop) = (cluster.clone(), hub.clone(), shutdown.clone());
        let span = tracing::info_span!("simulated", cluster = %cluster.name());
        let run = async move {
            loop {
                let options = options(&cluster, &hub, journal.clone());
                match Box::pin(agent::run(options, stop.clone())).await {
                    // Streams of the agent before it in this process end a moment after it did.
                    Err(AgentError::Journal(JournalError::InUse { .. })) if !stop.is_cancelled() => {
                        tokio::time::sleep(JOURNAL_RETRY).await;
                    }
                    ended => return ended,
                }
            }
        };
        Self {
            task: Some(tokio::spawn(run.instrument(span))),
            shutdown,
        }
    }

    /// Ends it in good order.
    pub async fn stop(self) {
        self.shutdown.cancel();
        self.ended().await;
    }

    /// Waits until it has ended; with what error, where it did with one.
    pub async fn ended(mut self) -> Option<AgentError> {
        self.task.take()?.await.ok()?.err()
    }
}

fn options(cluster: &SimulatedCluster, hub: &HubPlace, journal: JournalPlace) -> AgentOptions {
    AgentOptions {
        cluster: cluster.name().clone(),
        hubs: vec![format!("wss://{}", hub.address)],
        way: Way::default(),
        hub_keys: vec![hub.key],
        key: cluster.key(),
        next_key: None,
        token: Default::default(),
        journal,
        pod: None,
        // A simulated cluster serves no releases: a HelmChart says that there is no program.
        helm: "helm".into(),
        client: cluster.client(),
        passage: cluster.client().into(),
        api_server: cluster.address().to_string(),
        earlier_managers: Vec::new(),
        allow: Policy::default(),
        audit: None,
        age_key_file: None,
        allowance: tunnel::Allowance::default(),
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        self.shutdown.cancel();
        if let Some(task) = &self.task {
            task.abort();
        }
    }
}
