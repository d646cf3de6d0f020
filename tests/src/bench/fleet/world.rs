//! A hub process, and simulated clusters with their agents in this one.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use harness::fleet::{Agent, HubPlace, SimulatedCluster};
use reconciler::registration::cluster_file;
use render::ClusterName;
use tokio::runtime::Runtime;
use tokio_util::sync::CancellationToken;
use tunnel::SecretKey;

use super::pause;
use crate::{Flotilla, Repository, ports, scratch};

/// How often a cluster that does not have it yet is looked at.
const LOOK: Duration = Duration::from_millis(10);

/// The namespace of all objects of this bench.
const NAMESPACE: &str = "default";

/// All of it.
pub(super) struct World {
    repository: Repository,
    hub_arguments: Vec<String>,
    // From here on in the order in which they should end.
    hub: Option<Flotilla>,
    agents: Vec<Agent>,
    clusters: Vec<SimulatedCluster>,
    runtime: Runtime,
    _journals: tempfile::TempDir,
}

impl World {
    /// Starts everything, and waits until one unit is in every cluster.
    pub(super) fn start(count: usize) -> anyhow::Result<Self> {
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
        let _provider_was_set_before = rustls::crypto::ring::default_provider().install_default();
        let folder = scratch::folder("fleet");
        let (key, address) = (folder.join("hub.key"), format!("127.0.0.1:{}", ports::free()));
        let hub_key = Flotilla::run(&["hub", "key", "--key", &key.display().to_string()]).expect_ok();
        let repository = Repository::empty();
        let hub_arguments = [
            ["--repository".to_owned(), repository.bare().display().to_string()],
            ["--key".to_owned(), key.display().to_string()],
            ["--listen".to_owned(), address.clone()],
            ["--api".to_owned(), format!("127.0.0.1:{}", ports::free())],
            [
                "--log".to_owned(),
                std::env::var("FLEET_BENCH_LOG").unwrap_or_else(|_| "warn".to_owned()),
            ],
        ];
        let hub = HubPlace {
            address: address.parse()?,
            key: hub_key.trim().parse().context("flotilla hub key prints a key")?,
        };
        let clusters = clusters(count)?;
        for cluster in &clusters {
            let file = cluster_file(cluster.name(), &cluster.key().public(), &[], "Dual");
            repository.write(&format!("clusters/{}.yaml", cluster.name()), file);
        }
        repository.write(
            "fleet.yaml",
            "apiVersion: fleet.flotilla.dev/v1alpha1\nkind: Fleet\nmetadata:\n  name: fleet\n",
        );
        let journals = journals()?;
        let agents = {
            let _in_runtime = runtime.enter();
            let never = CancellationToken::new();
            let start = |cluster: &SimulatedCluster| {
                let journal = journals.path().join(cluster.name().as_str());
                Agent::start(cluster, &hub, journal, &never)
            };
            clusters.iter().map(start).collect()
        };
        let mut world = Self {
            repository,
            hub_arguments: hub_arguments.concat(),
            hub: None,
            agents,
            clusters,
            runtime,
            _journals: journals,
        };
        world.write_unit(0, 0);
        let pushed = world.push()?;
        world.start_hub();
        world.wait_everywhere(pushed, super::LIMIT, 0, 0)?;
        Ok(world)
    }

    /// A Subscription of one ConfigMap, for every cluster.
    pub(super) fn write_unit(&self, unit: usize, value: usize) {
        let mut text = String::from("apiVersion: fleet.flotilla.dev/v1alpha1\nkind: Subscription\n");
        let _written = write!(
            text,
            "metadata:\n  name: unit-{unit}\n  namespace: bench\nspec:\n  subscribers:\n    - clusterAffinity: {{}}\n  feeds:\n    - path: feeds/{unit}/**\n"
        );
        self.repository.write(&format!("subscriptions/{unit}.yaml"), text);
        let object = format!(
            "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: unit-{unit}\n  namespace: {NAMESPACE}\ndata:\n  value: \"{value}\"\n"
        );
        self.repository.write(&format!("feeds/{unit}/object.yaml"), object);
    }

    /// Commits and pushes; the time is that of the end of `git push`.
    pub(super) fn push(&self) -> anyhow::Result<Instant> {
        self.repository.commit("change");
        self.repository.push();
        Ok(Instant::now())
    }

    /// How long after `since` the last cluster had this value of this unit.
    pub(super) fn wait_everywhere(
        &self,
        since: Instant,
        limit: Duration,
        unit: usize,
        value: usize,
    ) -> anyhow::Result<Duration> {
        let (name, value) = (format!("unit-{unit}"), value.to_string());
        // One after the other: the last that has it decides, and whoever had it before is not looked at again.
        for (number, cluster) in self.clusters.iter().enumerate() {
            while !self.has(cluster, &name, &value) {
                if since.elapsed() > limit {
                    let log = self.hub.as_ref().map(|hub| hub.log_tail()).unwrap_or_default();
                    anyhow::bail!(
                        "cluster {} did not come so far, after {number} others\n{log}",
                        cluster.name()
                    );
                }
                pause(LOOK);
            }
        }
        Ok(since.elapsed())
    }

    fn has(&self, cluster: &SimulatedCluster, name: &str, value: &str) -> bool {
        let data = self.runtime.block_on(cluster.config_map(NAMESPACE, name));
        data.is_some_and(|data| data.get("value").is_some_and(|found| found == value))
    }

    pub(super) fn start_hub(&mut self) {
        self.hub = Some(Flotilla::hub(&self.hub_arguments));
    }

    pub(super) fn kill_hub(&mut self) {
        self.hub = None;
    }

    pub(super) fn hub_id(&self) -> u32 {
        self.hub.as_ref().map(|hub| hub.id()).unwrap_or_default()
    }
}

impl Drop for World {
    fn drop(&mut self) {
        let _in_runtime = self.runtime.enter();
        self.agents.clear();
    }
}

fn clusters(count: usize) -> anyhow::Result<Vec<SimulatedCluster>> {
    let cluster = |number: usize| {
        let key = SecretKey::generate().context("failed to make a key")?;
        let name = ClusterName::parse(format!("site-{number}")).context("a valid name")?;
        Ok(SimulatedCluster::new(name, Arc::new(key)))
    };
    (1..=count).map(cluster).collect()
}

/// A folder in memory where there is one.
fn journals() -> anyhow::Result<tempfile::TempDir> {
    let memory = Path::new("/dev/shm");
    let folder = if memory.is_dir() {
        PathBuf::from(memory)
    } else {
        std::env::temp_dir()
    };
    tempfile::Builder::new()
        .prefix("flotilla-journals-")
        .tempdir_in(&folder)
        .with_context(|| format!("failed to make a folder in {}", folder.display()))
}
