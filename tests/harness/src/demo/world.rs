//! Everything that runs: the repository's hub, and a simulated cluster with its agent for each of its files.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use render::ClusterName;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tunnel::SecretKey;

use super::arguments::Arguments;
use super::folder::Folder;
use super::places;
use super::repository::{self, Member};
use crate::fleet::{Agent, Hub, HubPlace, HubSetup, HubView, SimulatedCluster};

/// How long the parts may take to end. A person who pressed Ctrl-C waits for no more than a second.
const STOP_TIMEOUT: Duration = Duration::from_millis(600);

/// Hub, clusters and agents.
pub(super) struct World {
    pub(super) hub: Hub,
    pub(super) view: View,
    agents: Vec<Agent>,
}

/// What is to be seen of them.
pub(super) struct View {
    pub(super) clusters: Vec<ShownCluster>,
    /// Where the hub's API answers.
    pub(super) api: SocketAddr,
    /// When it all began.
    pub(super) begun: Instant,
    /// What the hub knows.
    pub(super) hub: HubView,
}

/// One cluster.
pub(super) struct ShownCluster {
    pub(super) name: ClusterName,
    pub(super) environment: &'static str,
    /// Where its API server answers.
    pub(super) address: SocketAddr,
    pub(super) client: kube::Client,
}

impl World {
    /// Starts all of it.
    pub(super) async fn start(
        arguments: &Arguments,
        folder: &Folder,
        shutdown: &CancellationToken,
    ) -> anyhow::Result<Self> {
        let begun = Instant::now();
        let members = repository::open(folder, arguments.clusters).await?;
        let key = hub_key(folder)?;
        let api = places::free(places::HUB_PORT)?;
        let setup = HubSetup {
            repository: folder.bare(),
            key,
            agents: places::free(places::AGENTS_PORT)?,
            api,
        };
        let hub = Hub::start(setup, shutdown);
        let (mut clusters, mut agents) = (Vec::new(), Vec::new());
        for (number, member) in (0_u16..).zip(members) {
            let (shown, agent) = start_cluster(number, member, folder, hub.place(), shutdown).await?;
            clusters.push(shown);
            agents.push(agent);
        }
        let view = View {
            clusters,
            api,
            begun,
            hub: hub.view(),
        };
        Ok(Self { hub, view, agents })
    }

    /// Waits a moment for everything to end; it was told to.
    pub(super) async fn stop(self) {
        let all = async {
            for agent in self.agents {
                agent.ended().await;
            }
            self.hub.stop().await;
        };
        // Past it, the process ends, and everything with it.
        let _in_time = tokio::time::timeout(STOP_TIMEOUT, all).await;
    }
}

async fn start_cluster(
    number: u16,
    member: Member,
    folder: &Folder,
    hub: &HubPlace,
    shutdown: &CancellationToken,
) -> anyhow::Result<(ShownCluster, Agent)> {
    let cluster = SimulatedCluster::new(member.name.clone(), member.key);
    let listener = places::listen(places::CLUSTERS_PORT + number)?;
    let address = listener.local_addr().context("a listener has an address")?;
    cluster.serve(listener, shutdown.clone())?;
    let journal = folder.own(&format!("{}.journal", member.name));
    let agent = Agent::start(&cluster, hub, journal, shutdown);
    let shown = ShownCluster {
        name: member.name,
        environment: member.environment,
        address,
        client: cluster.client(),
    };
    Ok((shown, agent))
}

fn hub_key(folder: &Folder) -> anyhow::Result<Arc<SecretKey>> {
    let path = folder.own("hub.key");
    if path.exists() {
        return Ok(Arc::new(SecretKey::load(&path)?));
    }
    let key = SecretKey::generate().context("failed to make a key")?;
    key.save(&path)?;
    Ok(Arc::new(key))
}
