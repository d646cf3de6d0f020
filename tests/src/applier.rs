//! An applier in this process, as an agent runs it.

use std::sync::Arc;

use reconciler::apply::{self, ApiServer, ApplierOptions, ApplyReport, Desired};
use render::UnitKey;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::{ControlPlane, eventually, wait};

/// A running applier. What it is told is its caller's.
#[derive(Debug)]
pub struct RunningApplier {
    runtime: tokio::runtime::Runtime,
    desired: watch::Sender<Option<Arc<Desired>>>,
    report: watch::Receiver<ApplyReport>,
    shutdown: CancellationToken,
    task: tokio::task::JoinHandle<()>,
}

impl RunningApplier {
    /// Starts one for a cluster.
    ///
    /// # Panics
    /// Later, when the applier ends by itself.
    #[track_caller]
    pub fn start(cluster: &ControlPlane, options: ApplierOptions) -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build()
            .expect("a runtime starts");
        let (desired, desired_receiver) = watch::channel(None);
        let (report_sender, report) = watch::channel(ApplyReport::default());
        let shutdown = CancellationToken::new();
        let (kubeconfig, stop) = (cluster.kubeconfig(), shutdown.clone());
        let task = runtime.spawn(async move {
            let api_server = ApiServer::from_kubeconfig(&kubeconfig, None).await;
            let client = api_server.expect("the kubeconfig is good").client;
            apply::run(client, options, desired_receiver, report_sender, stop)
                .await
                .expect("it runs until it is stopped");
        });
        Self {
            runtime,
            desired,
            report,
            shutdown,
            task,
        }
    }

    /// Says what should be.
    pub fn tell(&self, desired: Desired) {
        self.desired.send_replace(Some(Arc::new(desired)));
    }

    /// What it was told last.
    pub fn told(&self) -> Option<Arc<Desired>> {
        self.desired.borrow().clone()
    }

    /// What is reported now.
    pub fn report(&self) -> ApplyReport {
        self.report.borrow().clone()
    }

    /// Waits until the report fits.
    #[track_caller]
    pub fn until(&self, what: &str, fits: impl Fn(&ApplyReport) -> bool) -> ApplyReport {
        eventually(wait::LONG, what, || {
            let report = self.report();
            if fits(&report) {
                Ok(report)
            } else {
                Err(format!("{report:#?}"))
            }
        })
    }

    /// Waits until a unit is no longer reported.
    #[track_caller]
    pub fn until_gone(&self, unit: &str) {
        let key: UnitKey = unit.parse().expect("a valid unit");
        self.until(&format!("unit {unit} is gone"), |report| {
            !report.units.contains_key(&key)
        });
    }

    /// Stops it, and waits for it.
    #[track_caller]
    pub fn stop(self) {
        self.shutdown.cancel();
        let ended = self
            .runtime
            .block_on(async { tokio::time::timeout(wait::LONG, self.task).await });
        ended.expect("it ends soon").expect("it ends well");
    }

    /// Ends it as a crash would: nothing is said to anybody.
    pub fn crash(self) {
        self.runtime.shutdown_background();
    }
}
