//! The memory of an agent that keeps many objects: a process of its own, which finds them in its journal.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, bail};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, ListParams};
use reconciler::agent::{Journal, Kept, Store as _};
use tokio::time::{Instant, sleep};

use super::LIMIT;
use super::objects::{Delivery, config_map};
use crate::bench::push::resident_mib;
use crate::{ControlPlane, Flotilla, ports, scratch};

/// What counts as idle, before memory is looked at.
const REST: Duration = Duration::from_secs(20);

/// Resident memory in MiB, with so many ConfigMaps applied.
pub(super) async fn resident(cluster: &ControlPlane, namespace: &str, count: usize) -> anyhow::Result<f64> {
    let folder = scratch::folder("agent-memory");
    let objects: Vec<_> = (0..count).map(|number| config_map(namespace, number)).collect();
    write_journal(&folder.join("journal"), Delivery::new(1, &objects)?).await?;
    drop(objects);
    let path = |name: &str| folder.join(name).display().to_string();
    let join = [
        "agent",
        "join",
        "--cluster",
        cluster.name(),
        "--key",
        &path("agent.key"),
    ];
    Flotilla::run(&join).expect_ok();
    let hub_key = Flotilla::run(&["hub", "key", "--key", &path("hub.key")]).expect_ok();
    // The hub is away: an agent enforces what it took before.
    let hub = format!("127.0.0.1:{}", ports::free());
    let kubeconfig = cluster.kubeconfig().display().to_string();
    let agent = Flotilla::agent(&[
        "--cluster",
        cluster.name(),
        "--hub",
        &hub,
        "--hub-key",
        hub_key.trim(),
        "--key",
        &path("agent.key"),
        "--journal",
        &path("journal"),
        "--kubeconfig",
        &kubeconfig,
    ]);
    let api: Api<ConfigMap> = Api::namespaced(cluster.client().await, namespace);
    let end = Instant::now() + LIMIT;
    while count_of(&api).await? < count {
        if Instant::now() > end {
            bail!("the agent never applied them\n{}", agent.log_tail());
        }
        sleep(Duration::from_millis(500)).await;
    }
    sleep(REST).await;
    resident_mib(agent.id())
}

async fn count_of(api: &Api<ConfigMap>) -> anyhow::Result<usize> {
    let list = api.list_metadata(&ListParams::default().labels("app=bench")).await?;
    Ok(list.items.len())
}

async fn write_journal(folder: &Path, delivery: Delivery) -> anyhow::Result<()> {
    let journal = Journal::open(folder, "bench").context("failed to make the journal")?;
    let kept = Kept {
        held: Some(delivery.held),
        contents: [(delivery.content.digest, delivery.content)].into(),
        ..Kept::default()
    };
    Ok(journal.write(kept).await?)
}
