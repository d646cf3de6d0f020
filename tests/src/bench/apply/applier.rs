//! Our applier, as an agent runs it, in this process.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use reconciler::apply::{self, ApiServer, ApplierOptions, ApplyReport};
use reconciler::wire::UnitState;
use render::ClusterName;
use tokio::sync::watch;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::LIMIT;
use super::objects::Delivery;

/// Nothing is compared again while something else is measured.
const RESYNC: Duration = Duration::from_secs(3_600);

pub(super) struct Applier {
    cluster: ClusterName,
    desired: watch::Sender<Option<std::sync::Arc<apply::Desired>>>,
    report: watch::Receiver<ApplyReport>,
    stop: CancellationToken,
    task: tokio::task::JoinHandle<Result<(), apply::ApplyError>>,
}

impl Applier {
    /// Starts one with lease and inventory in a namespace of its own, and waits until it would begin.
    pub(super) async fn start(kubeconfig: &Path, namespace: &str) -> anyhow::Result<Self> {
        let mut applier = Self::restart(kubeconfig, namespace).await?;
        applier.deliver(&Delivery::new(1, &[])?).await?;
        Ok(applier)
    }

    /// Starts one that finds what one before it left.
    pub(super) async fn restart(kubeconfig: &Path, namespace: &str) -> anyhow::Result<Self> {
        let client = ApiServer::from_kubeconfig(kubeconfig, None).await?.client;
        let cluster = ClusterName::parse("bench")?;
        let options = ApplierOptions {
            namespace: namespace.to_owned(),
            resync: RESYNC,
            ..ApplierOptions::new(cluster.clone(), namespace.to_owned())
        };
        let (desired, desired_receiver) = watch::channel(None);
        let (report_sender, report) = watch::channel(ApplyReport::default());
        let stop = CancellationToken::new();
        let running = apply::run(client, options, desired_receiver, report_sender, stop.clone());
        Ok(Self {
            cluster,
            desired,
            report,
            stop,
            task: tokio::spawn(running),
        })
    }

    /// Delivers, and waits until everything is applied; how long that took.
    pub(super) async fn deliver(&mut self, delivery: &Delivery) -> anyhow::Result<Duration> {
        let started = Instant::now();
        self.desired.send_replace(delivery.desired(self.cluster.clone()));
        let digest = Some(delivery.content.digest);
        let applied = self.report.wait_for(|report| {
            let mut units = report.units.values();
            units.any(|unit| unit.digest == digest && unit.state == UnitState::Applied)
        });
        let applied = timeout(LIMIT, applied).await.ok().and_then(Result::ok).map(drop);
        applied.with_context(|| format!("it was never applied: {:#?}", self.report.borrow()))?;
        Ok(started.elapsed())
    }

    pub(super) async fn stop(self) -> anyhow::Result<()> {
        self.stop.cancel();
        Ok(timeout(LIMIT, self.task).await???)
    }
}
