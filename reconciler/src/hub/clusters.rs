//! The clusters that the hub applies to itself, started and stopped as their files come and go.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use kube::Client;
use render::published::Departure;
use render::{ClusterName, Fleet};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tracing::Instrument as _;

use super::direct::{Direct, Memory};
use super::engine::Event;
use super::session::Sessions;
use crate::apply::{ApiServer, ApplierOptions, ApplyReport, HelmOptions};
use crate::fault::line;
use crate::limits::KUBECONFIG_RETRY;
use crate::telemetry::process_name;
use crate::wire::Report;

/// How the hub's appliers work.
#[derive(Clone, Debug)]
pub(super) struct Appliers {
    /// The helm program.
    pub(super) helm: PathBuf,
    /// Field managers that count as earlier tools.
    pub(super) earlier_managers: Vec<String>,
}

impl Appliers {
    /// The choices for one cluster. The hub keeps no archives of charts for it: what it cannot fetch, it cannot deliver
    /// either.
    pub(super) fn options(&self, cluster: ClusterName) -> ApplierOptions {
        ApplierOptions {
            helm: HelmOptions {
                program: self.helm.clone(),
                folder: None,
            },
            earlier_managers: self.earlier_managers.clone(),
            ..ApplierOptions::new(cluster, process_name())
        }
    }
}

/// Cluster → the context it is reached by, and what ends it.
pub(super) struct Clusters {
    kubeconfig: Option<PathBuf>,
    appliers: Appliers,
    sessions: Sessions,
    shutdown: CancellationToken,
    tasks: TaskTracker,
    running: Mutex<BTreeMap<ClusterName, (String, CancellationToken)>>,
}

impl Clusters {
    /// None yet. `kubeconfig` has the contexts; without one, clusters that name a context say so.
    pub(super) fn new(
        kubeconfig: Option<PathBuf>,
        appliers: Appliers,
        sessions: Sessions,
        shutdown: CancellationToken,
    ) -> Self {
        Self {
            kubeconfig,
            appliers,
            sessions,
            shutdown,
            tasks: TaskTracker::new(),
            running: Mutex::default(),
        }
    }

    /// Starts what is new, stops what is gone or has another context. One whose file is gone goes on until it is cleaned
    /// up.
    pub(super) fn replace(&self, fleet: &Fleet, departed: &BTreeMap<ClusterName, Departure>) {
        let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        let declared = fleet
            .clusters
            .iter()
            .map(|(name, cluster)| (name, &cluster.kubeconfig_context));
        let left = departed
            .iter()
            .map(|(name, departed)| (name, &departed.kubeconfig_context));
        let contexts: BTreeMap<_, _> = left.chain(declared).collect();
        let context = |name: &ClusterName| contexts.get(name)?.as_ref();
        running.retain(|name, (standing, token)| {
            let stays = context(name) == Some(standing);
            if !stays {
                token.cancel();
            }
            stays
        });
        for (name, context) in &contexts {
            let Some(context) = context else {
                continue;
            };
            if !running.contains_key(*name) {
                let token = self.shutdown.child_token();
                self.start((*name).clone(), context.clone(), token.clone());
                running.insert((*name).clone(), (context.clone(), token));
            }
        }
    }

    /// Stops all, and waits until each gave its lease back.
    pub(super) async fn stop(&self) {
        self.shutdown.cancel();
        self.tasks.close();
        self.tasks.wait().await;
    }

    fn start(&self, cluster: ClusterName, context: String, shutdown: CancellationToken) {
        let (kubeconfig, sessions) = (self.kubeconfig.clone(), self.sessions.clone());
        let options = self.appliers.options(cluster.clone());
        let span = tracing::info_span!("cluster", cluster = %cluster);
        let run = serve(options, context, kubeconfig, sessions, shutdown);
        self.tasks.spawn(run.instrument(span));
    }
}

/// Serves a cluster until shutdown. A kubeconfig that cannot be used may be mended meanwhile, so it is tried
/// again.
async fn serve(
    options: ApplierOptions,
    context: String,
    kubeconfig: Option<PathBuf>,
    sessions: Sessions,
    shutdown: CancellationToken,
) {
    loop {
        match client(kubeconfig.as_deref(), &context).await {
            Ok(client) => {
                return Direct {
                    cluster: options.cluster.clone(),
                    client,
                    options,
                    sessions,
                    memory: Memory::Cluster,
                }
                .run(shutdown)
                .await;
            }
            Err(trouble) => {
                tracing::warn!(error = trouble, "Could not reach a cluster.");
                let report = Report::unread(
                    options.cluster.clone(),
                    ApplyReport {
                        trouble,
                        ..ApplyReport::default()
                    },
                );
                let _hub_is_ending = sessions
                    .events
                    .send(Event::Reported {
                        report: Box::new(report),
                    })
                    .await;
            }
        }
        tokio::select! {
            biased;
            () = shutdown.cancelled() => return,
            () = tokio::time::sleep(KUBECONFIG_RETRY) => {}
        }
    }
}

async fn client(kubeconfig: Option<&Path>, context: &str) -> Result<Client, String> {
    let path = kubeconfig.ok_or("its file names a kubeconfig context, and the hub has no --kubeconfig")?;
    let api_server = ApiServer::from_kubeconfig(path, Some(context)).await;
    api_server
        .map(|api_server| api_server.client)
        .map_err(|error| line(&error))
}
