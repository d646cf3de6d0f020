//! A fleet in this process, and a repository to push to.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use flotilla_tests::{Repository, eventually, ports, scratch};
use harness::Options;
use harness::fleet::{Agent, Hub, HubPlace, HubSetup, SimulatedCluster};
use reconciler::hub::engine::State;
use reconciler::registration::cluster_file;
use render::ClusterName;
use tokio::runtime::Runtime;
use tokio_util::sync::CancellationToken;
use tunnel::SecretKey;

/// How long anything may take on a busy machine.
pub(super) const LIMIT: Duration = Duration::from_secs(120);

/// Whether the long forms run.
pub(super) fn is_long() -> bool {
    std::env::var_os("FLOTILLA_LONG").is_some_and(|set| set != "0")
}

/// One of two numbers: of the long form, and of the short one.
pub(super) fn long_or(long: usize, short: usize) -> usize {
    if is_long() { long } else { short }
}

/// A hub, clusters with their agents, and a repository.
pub(super) struct Fleet {
    pub(super) repository: Repository,
    // From here on in the order in which they should end.
    hub: Option<Hub>,
    agents: BTreeMap<String, Agent>,
    pub(super) clusters: BTreeMap<String, SimulatedCluster>,
    folder: PathBuf,
    key: Arc<SecretKey>,
    place: HubPlace,
    api: SocketAddr,
    ready_after: Duration,
    pub(super) runtime: Runtime,
}

impl Fleet {
    /// So many registered clusters with agents, and a hub.
    #[track_caller]
    pub(super) fn start(count: usize) -> Self {
        Self::start_slow(count, Duration::ZERO)
    }

    /// As `start`, with clusters where workloads take so long until they are ready.
    #[track_caller]
    pub(super) fn start_slow(count: usize, ready_after: Duration) -> Self {
        let _provider_was_set_before = rustls::crypto::ring::default_provider().install_default();
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .enable_all()
            .build()
            .unwrap();
        let key = Arc::new(SecretKey::generate().unwrap());
        let address = || format!("127.0.0.1:{}", ports::free()).parse().unwrap();
        let mut fleet = Self {
            repository: Repository::empty(),
            hub: None,
            agents: BTreeMap::new(),
            clusters: BTreeMap::new(),
            folder: scratch::folder("simulated"),
            place: HubPlace {
                address: address(),
                key: key.public(),
            },
            key,
            api: address(),
            ready_after,
            runtime,
        };
        let kind = "apiVersion: fleet.flotilla.dev/v1alpha1\nkind: Fleet\nmetadata: {name: fleet}\n";
        fleet.repository.write("fleet.yaml", kind);
        let names: Vec<_> = (1..=count).map(|number| format!("site-{number}")).collect();
        names.iter().for_each(|name| fleet.register(name));
        fleet.push("register the clusters", &[]);
        fleet.start_hub();
        names.iter().for_each(|name| fleet.start_agent(name));
        fleet
    }

    /// Makes a cluster, and writes its file; nothing is pushed yet.
    pub(super) fn register(&mut self, name: &str) {
        let key = Arc::new(SecretKey::generate().unwrap());
        let options = Options {
            ready_after: self.ready_after,
            ..Options::default()
        };
        let cluster = SimulatedCluster::with(ClusterName::parse(name).unwrap(), Arc::clone(&key), options);
        let file = cluster_file(cluster.name(), &key.public(), &[], "Dual");
        self.repository.write(&format!("clusters/{name}.yaml"), file);
        self.clusters.insert(name.to_owned(), cluster);
    }

    pub(super) fn start_hub(&mut self) {
        let _in_runtime = self.runtime.enter();
        let setup = HubSetup {
            repository: self.repository.bare().to_owned(),
            key: Arc::clone(&self.key),
            agents: self.place.address,
            api: self.api,
        };
        self.hub = Some(Hub::start(setup, &CancellationToken::new()));
    }

    /// Ends the hub in good order.
    pub(super) fn stop_hub(&mut self) {
        if let Some(hub) = self.hub.take() {
            self.runtime.block_on(hub.stop());
        }
    }

    /// Starts a cluster's agent; one that runs is ended in good order first.
    pub(super) fn start_agent(&mut self, name: &str) {
        self.stop_agent(name);
        let _in_runtime = self.runtime.enter();
        let journal = self.folder.join(format!("{name}.journal"));
        let agent = Agent::start(&self.clusters[name], &self.place, journal, &CancellationToken::new());
        self.agents.insert(name.to_owned(), agent);
    }

    pub(super) fn stop_agent(&mut self, name: &str) {
        if let Some(agent) = self.agents.remove(name) {
            self.runtime.block_on(agent.stop());
        }
    }

    /// Writes files, commits and pushes.
    #[track_caller]
    pub(super) fn push(&self, message: &str, files: &[(&str, &str)]) -> String {
        self.repository.push_files(message, files)
    }

    /// What the hub knows.
    pub(super) fn state(&self) -> State {
        self.hub.as_ref().expect("the test started it").view().state()
    }

    /// Counts what the hub heard.
    pub(super) fn heard(&self) -> u64 {
        self.hub.as_ref().expect("the test started it").view().version()
    }

    /// The `text` of a ConfigMap in namespace `default`.
    pub(super) fn text(&self, cluster: &str, name: &str) -> Option<String> {
        let data = self
            .runtime
            .block_on(self.clusters[cluster].config_map("default", name))?;
        data.get("text").cloned()
    }

    /// Waits until a ConfigMap has this text in every cluster.
    #[track_caller]
    pub(super) fn until_text_everywhere(&self, name: &str, text: &str) {
        for cluster in self.clusters.keys() {
            self.until_text(cluster, name, text);
        }
    }

    #[track_caller]
    pub(super) fn until_text(&self, cluster: &str, name: &str, text: &str) {
        let what = format!("{name} is {text} in {cluster}");
        eventually(LIMIT, &what, || match self.text(cluster, name) {
            Some(found) if found == text => Ok(()),
            found => {
                let state = self.state();
                let trouble = state.clusters.iter().find(|(known, _)| known.as_str() == cluster);
                Err(format!(
                    "{found:?}; {:?}",
                    trouble.map(|(_, known)| known.report.as_ref().map(|report| (&report.trouble, &report.units)))
                ))
            }
        });
    }

    /// Waits until the hub's state is as it should be.
    #[track_caller]
    pub(super) fn until(&self, what: &str, mut so: impl FnMut(&State) -> Result<(), String>) {
        eventually(LIMIT, what, || so(&self.state()));
    }

    /// Waits until every cluster has what is released, and says so.
    #[track_caller]
    pub(super) fn until_settled(&self) {
        self.until("every cluster says that it has what is released", |state| {
            let is_there = |name: &ClusterName| {
                let envelope = state.envelope(name);
                let report = state.clusters.get(name).and_then(|known| known.report.as_ref());
                let held = report.and_then(|report| report.held.as_ref());
                envelope.is_some() && envelope.map(|envelope| envelope.list) == held.map(|held| held.list)
            };
            let fleet = state.fleet.as_ref().ok_or("there is no fleet yet")?;
            match fleet.clusters.keys().find(|name| !is_there(name)) {
                None if state.is_at_rest() => Ok(()),
                missing => Err(format!("{missing:?} has not")),
            }
        });
    }
}

impl Drop for Fleet {
    fn drop(&mut self) {
        // Tasks end with their handles; what they hold needs the runtime.
        let _in_runtime = self.runtime.enter();
        self.agents.clear();
        self.hub = None;
    }
}

/// A Subscription of what is below `feeds/NAME/`, for every cluster.
pub(super) fn subscription(name: &str) -> String {
    format!(
        "apiVersion: fleet.flotilla.dev/v1alpha1
kind: Subscription
metadata: {{namespace: team, name: {name}}}
spec:
  subscribers: [{{clusterAffinity: {{}}}}]
  feeds: [{{path: 'feeds/{name}/**'}}]
"
    )
}

/// A ConfigMap in namespace `default` whose key `text` has this value.
pub(super) fn config_map(name: &str, text: &str) -> String {
    format!(
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {{namespace: default, name: {name}}}\ndata: {{text: '{text}'}}\n"
    )
}
