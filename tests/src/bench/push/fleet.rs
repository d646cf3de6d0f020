//! Three real clusters, each with an agent, and a hub that follows a repository.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::Context as _;

use super::requests::Asked;
use super::watch::{Objects, Watch};
use super::{LIMIT, requests};
use crate::pool::NAMES;
use crate::{Child, ControlPlane, Flotilla, Options, Repository, ports, scratch};

/// Selects the first cluster alone.
pub(super) const ONE_CLUSTER: &str = "matchLabels: {first: \"true\"}";

/// The namespace of all objects of this bench.
const NAMESPACE: &str = "bench";

pub(super) struct Fleet {
    repository: Repository,
    hub_arguments: Vec<String>,
    watches: BTreeMap<&'static str, Watch>,
    hub_started: Instant,
    // From here on in the order in which they should end.
    hub: Option<Flotilla>,
    agents: Vec<Flotilla>,
    clusters: Vec<ControlPlane>,
    _runtime: tokio::runtime::Runtime,
}

impl Fleet {
    /// Starts everything and waits until one unit is in every cluster.
    pub(super) fn start() -> anyhow::Result<Self> {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()?;
        let options = requests::audited(Options::default().user(requests::AGENT, &["system:masters"]))?;
        let clusters = ControlPlane::start_all(NAMES, options);
        for cluster in &clusters {
            cluster.kubectl(&["create", "namespace", NAMESPACE]).expect_ok();
        }
        let watch = |(name, cluster): (&'static str, &ControlPlane)| {
            let client = runtime.block_on(cluster.client());
            (name, Watch::start(runtime.handle(), client, NAMESPACE))
        };
        let watches = NAMES.into_iter().zip(&clusters).map(watch).collect();
        let folder = scratch::folder("fleet");
        let (key, port) = (folder.join("hub.key").display().to_string(), ports::free());
        let repository = Repository::empty();
        let hub_arguments = [
            ["--repository".to_owned(), repository.bare().display().to_string()],
            ["--key".to_owned(), key.clone()],
            ["--listen".to_owned(), format!("127.0.0.1:{port}")],
            ["--api".to_owned(), format!("127.0.0.1:{}", ports::free())],
            ["--log".to_owned(), log_level()],
        ];
        let hub_key = Flotilla::run(&["hub", "key", "--key", &key]).expect_ok();
        let mut fleet = Self {
            repository,
            hub_arguments: hub_arguments.concat(),
            watches,
            hub_started: Instant::now(),
            hub: None,
            agents: Vec::new(),
            clusters,
            _runtime: runtime,
        };
        fleet.join_agents(&folder, port, hub_key.trim());
        let kind = "apiVersion: fleet.flotilla.dev/v1alpha1\nkind: Fleet\nmetadata:\n  name: fleet\n";
        fleet.repository.write("fleet.yaml", kind);
        fleet.write_subscription("small", "");
        fleet.write_config_map("feeds/small/small.yaml", "small", usize::MAX);
        let pushed = fleet.push()?;
        fleet.start_hub();
        fleet.wait_everywhere(pushed, |objects| objects.is("small", usize::MAX))?;
        Ok(fleet)
    }

    fn join_agents(&mut self, folder: &std::path::Path, port: u16, hub_key: &str) {
        for (number, cluster) in self.clusters.iter().enumerate() {
            let name = cluster.name();
            let key = folder.join(format!("{name}.key")).display().to_string();
            let label = format!("first={}", number == 0);
            let join = ["agent", "join", "--cluster", name, "--key", &key, "--label", &label];
            let file = Flotilla::run(&join).expect_ok();
            self.repository.write(&format!("clusters/{name}.yaml"), file);
            let path = |path: PathBuf| path.display().to_string();
            let arguments = [
                ["--cluster", name].map(str::to_owned),
                ["--hub".to_owned(), format!("127.0.0.1:{port}")],
                ["--hub-key", hub_key].map(str::to_owned),
                ["--key".to_owned(), key],
                ["--journal".to_owned(), path(folder.join(format!("{name}.journal")))],
                ["--kubeconfig".to_owned(), path(cluster.kubeconfig_of(requests::AGENT))],
                ["--log".to_owned(), log_level()],
            ];
            self.agents.push(Flotilla::agent(&arguments.concat()));
        }
    }

    pub(super) fn start_hub(&mut self) {
        self.hub = Some(Flotilla::hub(&self.hub_arguments));
        self.hub_started = Instant::now();
    }

    pub(super) fn hub_age(&self) -> Duration {
        self.hub_started.elapsed()
    }

    pub(super) fn kill_hub(&mut self) {
        self.hub = None;
    }

    pub(super) fn hub(&self) -> &Child {
        self.hub.as_ref().expect("it is started again wherever it was killed")
    }

    pub(super) fn agents(&self) -> impl Iterator<Item = &Child> {
        self.agents.iter().map(|agent| &**agent)
    }

    /// A Subscription to the feeds of its own name; `affinity` is a label selector, empty for all clusters.
    pub(super) fn write_subscription(&self, name: &str, affinity: &str) {
        let affinity = if affinity.is_empty() {
            "{}".to_owned()
        } else {
            format!("\n        {affinity}")
        };
        let text = format!(
            "apiVersion: fleet.flotilla.dev/v1alpha1\nkind: Subscription\nmetadata:\n  name: {name}\n  \
             namespace: bench\nspec:\n  subscribers:\n    - clusterAffinity: {affinity}\n  feeds:\n    - path: \
             feeds/{name}/**\n"
        );
        self.repository.write(&format!("subscriptions/{name}.yaml"), text);
    }

    pub(super) fn write_config_map(&self, path: &str, name: &str, value: usize) {
        let text = format!(
            "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {name}\n  namespace: {NAMESPACE}\ndata:\n  \
             value: \"{value}\"\n"
        );
        self.repository.write(path, text);
    }

    /// Commits and pushes; the time is that of the end of `git push`.
    pub(super) fn push(&self) -> anyhow::Result<Instant> {
        self.repository.commit("change");
        self.repository.push();
        Ok(Instant::now())
    }

    /// How long after `since` the objects of every cluster were so.
    pub(super) fn wait_everywhere(&self, since: Instant, so: impl Fn(&Objects) -> bool) -> anyhow::Result<Duration> {
        let mut last = Duration::ZERO;
        for name in NAMES {
            last = last.max(self.wait(name, since, &so)?);
        }
        Ok(last)
    }

    /// The same, of the cluster that [`ONE_CLUSTER`] selects.
    pub(super) fn wait_in_one(&self, since: Instant, so: impl Fn(&Objects) -> bool) -> anyhow::Result<Duration> {
        self.wait(NAMES[0], since, &so)
    }

    fn wait(&self, cluster: &str, since: Instant, so: &impl Fn(&Objects) -> bool) -> anyhow::Result<Duration> {
        let watch = self.watches.get(cluster).context("every cluster is watched")?;
        let seen = watch.wait(LIMIT, so).with_context(|| {
            let logs = self.hub.iter().chain(&self.agents).map(|part| part.log_tail());
            format!("cluster {cluster} did not come so far\n{}", logs.collect::<String>())
        })?;
        Ok(seen.saturating_duration_since(since))
    }

    /// The requests that the agent of that cluster has made so far, renewals of its lease aside.
    pub(super) fn requests_in_one(&self) -> anyhow::Result<BTreeMap<String, Asked>> {
        let log = self.clusters[0].folder().join("kube-apiserver.log");
        let log = fs::read_to_string(&log).with_context(|| format!("failed to read {}", log.display()))?;
        Ok(requests::of(&log))
    }
}

/// With `FLEET_BENCH_LOG=debug` and `FLOTILLA_KEEP=1` every room of every push can be followed in the logs.
fn log_level() -> String {
    std::env::var("FLEET_BENCH_LOG").unwrap_or_else(|_| "info".to_owned())
}
