//! How fast and how small the applier is, against one real API server.
//!
//! Enters: the real parts, and for memory the release binary `flotilla`. Leaves: the figures of first applies
//! (beside a bare loop over the same objects), of a resync that finds nothing to do, the memory of an agent, and
//! the figures of changes by hand.

mod agent;
mod applier;
mod bare;
mod drift;
mod objects;

use std::fs;
use std::time::Duration;

use anyhow::Context as _;
use serde_json::json;

use self::applier::Applier;
use self::drift::{Field, Watched};
use self::objects::{Delivery, config_map, deployment};
use super::push::requests;
use super::{Figures, percentile};
use crate::{ControlPlane, Options};

const OBJECTS: usize = 2_000;
/// Each side first in turn; the best of each counts.
const ROUNDS: usize = 4;
/// Of each kind, so that the 99th percentile leaves room for one.
const CHANGES: usize = 101;
const CHANGED_OBJECTS: usize = 20;
const AGENT_OBJECTS: usize = 5_000;
/// No step takes this long, unless it never ends.
const LIMIT: Duration = Duration::from_secs(120);

/// The fields that are changed by hand.
const FIELDS: [Field; 2] = [
    Field {
        group: "",
        kind: "ConfigMap",
        pointer: "/data/value",
    },
    Field {
        group: "apps",
        kind: "Deployment",
        pointer: "/spec/replicas",
    },
];

/// Measures all of it on one cluster.
pub(super) fn run(figures: &mut Figures) -> anyhow::Result<()> {
    if cfg!(debug_assertions) {
        eprintln!("note: this is a debug build, whose figures say nothing; run `cargo fleet-bench apply`");
    }
    let options = requests::audited(Options::default().user(requests::AGENT, &["system:masters"]))?;
    let cluster = ControlPlane::start("apply", options);
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()?;
    runtime.block_on(async {
        first_apply(&cluster, figures).await?;
        resync(&cluster, figures).await?;
        namespace(&cluster, "memory");
        let resident = agent::resident(&cluster, "memory", AGENT_OBJECTS).await?;
        figures.print("agent_rss_5000", resident, "MiB")?;
        drift(&cluster, figures).await
    })
}

fn namespace(cluster: &ControlPlane, name: &str) {
    cluster.kubectl(&["create", "namespace", name]).expect_ok();
}

async fn first_apply(cluster: &ControlPlane, figures: &mut Figures) -> anyhow::Result<()> {
    let kubeconfig = cluster.kubeconfig();
    let (mut ours, mut bare) = (Vec::new(), Vec::new());
    for round in 0..ROUNDS {
        let sides = if round % 2 == 0 { [true, false] } else { [false, true] };
        for is_ours in sides {
            let name = format!("{}-{round}", if is_ours { "ours" } else { "bare" });
            namespace(cluster, &name);
            let objects: Vec<_> = (0..OBJECTS).map(|number| config_map(&name, number)).collect();
            if is_ours {
                let mut applier = Applier::start(&kubeconfig, &format!("flotilla-{name}")).await?;
                ours.push(applier.deliver(&Delivery::new(2, &objects)?).await?);
                applier.stop().await?;
            } else {
                bare.push(bare::apply(&kubeconfig, &name, objects).await?);
            }
        }
    }
    let best = |times: &[Duration]| times.iter().min().copied().context("there were rounds");
    let (ours, bare) = (best(&ours)?, best(&bare)?);
    figures.print(
        "first_apply_vs_bare_loop",
        bare.as_secs_f64() / ours.as_secs_f64(),
        "ratio",
    )?;
    figures.print("first_apply_rate", OBJECTS as f64 / ours.as_secs_f64(), "1/s")
}

/// An applier that was restarted compares everything with what is there.
async fn resync(cluster: &ControlPlane, figures: &mut Figures) -> anyhow::Result<()> {
    let kubeconfig = cluster.kubeconfig_of(requests::AGENT);
    namespace(cluster, "resync");
    let objects: Vec<_> = (0..OBJECTS).map(|number| config_map("resync", number)).collect();
    let delivery = Delivery::new(2, &objects)?;
    let mut applier = Applier::start(&kubeconfig, "flotilla-resync").await?;
    applier.deliver(&delivery).await?;
    applier.stop().await?;
    let log = || fs::read_to_string(cluster.folder().join("kube-apiserver.log")).context("the API server has a log");
    let mut times = Vec::new();
    let before = requests::writes(&log()?);
    for _ in 0..ROUNDS {
        let mut applier = Applier::restart(&kubeconfig, "flotilla-resync").await?;
        times.push(applier.deliver(&delivery).await?);
        applier.stop().await?;
    }
    let writes = requests::writes(&log()?) - before;
    figures.print_ms(
        "noop_resync_2000",
        percentile(&mut times, 0.5).context("there were rounds")?,
    )?;
    figures.print("noop_resync_writes", writes as f64, "count")
}

async fn drift(cluster: &ControlPlane, figures: &mut Figures) -> anyhow::Result<()> {
    namespace(cluster, "drift");
    let mut objects: Vec<_> = (0..CHANGED_OBJECTS).map(|number| config_map("drift", number)).collect();
    objects.extend((0..CHANGED_OBJECTS).map(|number| deployment("drift", number)));
    let mut applier = Applier::start(&cluster.kubeconfig(), "flotilla-drift").await?;
    applier.deliver(&Delivery::new(2, &objects)?).await?;
    let mut times = Vec::new();
    for field in FIELDS {
        let mut watched = Watched::start(cluster.client().await, "drift", field);
        for change in 0..CHANGES {
            let by_hand = if field.kind == "Deployment" {
                json!(1)
            } else {
                json!("by hand")
            };
            let name = format!("object-{}", change % CHANGED_OBJECTS);
            times.push(watched.change(&name, &by_hand).await?);
        }
    }
    for (figure, quantile) in [("drift_corrected_p50", 0.5), ("drift_corrected_p99", 0.99)] {
        figures.print_ms(figure, percentile(&mut times, quantile).context("there were changes")?)?;
    }
    applier.stop().await
}
