//! A fleet as people run one: a repository that they push to, three clusters with an agent each, a hub.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use flotilla_tests::{Clusters, ControlPlane, Flotilla, Repository, eventually, pool, ports, scratch, three_clusters};
use serde_json::Value;
use tunnel::SecretKey;

/// How long a push may take to reach a cluster on a busy machine.
pub(super) const LIMIT: Duration = Duration::from_secs(60);

/// Of a hub that has never released: clusters that never come are not waited for until they may say what they hold.
pub(super) const NO_GRACE: [&str; 2] = ["--recovery-grace-seconds", "1"];

/// The namespace of the agents' own objects is left out where a journey compares everything.
const OWN_NAMESPACES: [&str; 2] = ["flotilla-system", "kube-system"];

/// What [`Fleet::start_in_use`] brings.
pub(super) const GREETING: (&str, &str) = ("shop", "greeting");
pub(super) const FAREWELL: (&str, &str) = ("shop", "farewell");
pub(super) const RULES: (&str, &str) = ("office", "rules");

/// A repository, its clusters, and the processes that keep them.
///
/// The clusters are the shared ones and come empty; what runs ends on drop.
pub(super) struct Fleet {
    pub(super) repository: Repository,
    hub: Option<Flotilla>,
    agents: BTreeMap<String, Flotilla>,
    folder: PathBuf,
    hub_key: String,
    hub_port: u16,
    api_port: u16,
    // Last, so that the processes are gone before another journey gets the clusters.
    pub(super) clusters: Clusters,
}

impl Fleet {
    /// Three registered clusters with their agents, and a hub; nothing is subscribed yet.
    #[track_caller]
    pub(super) fn start() -> Self {
        let mut fleet = Self::prepare();
        fleet.start_hub(&[]);
        pool::NAMES.iter().for_each(|name| fleet.start_agent(name));
        fleet
    }

    /// As [`Self::start`], with unit `shop/web` (ConfigMaps `shop/greeting` and `shop/farewell`) and unit
    /// `staff/office` (ConfigMap `office/rules`) in every cluster.
    #[track_caller]
    pub(super) fn start_in_use() -> Self {
        let fleet = Self::start();
        fleet.open_for_use();
        fleet
    }

    /// Brings what [`Self::start_in_use`] does, and waits for it.
    #[track_caller]
    pub(super) fn open_for_use(&self) {
        self.push(
            "Open shop and office",
            &[
                ("subscriptions/shop/web.yaml", &subscription("shop", "web")),
                ("feeds/web/namespace.yaml", &namespace("shop")),
                ("feeds/web/greeting.yaml", &config_map("shop", "greeting", "hello")),
                ("feeds/web/farewell.yaml", &config_map("shop", "farewell", "goodbye")),
                ("subscriptions/staff/office.yaml", &subscription("staff", "office")),
                ("feeds/office/namespace.yaml", &namespace("office")),
                ("feeds/office/rules.yaml", &config_map("office", "rules", "none")),
            ],
        );
        for (config_map, text) in [(GREETING, "hello"), (FAREWELL, "goodbye"), (RULES, "none")] {
            self.until_text(&pool::NAMES, config_map, text);
        }
    }

    /// As [`Self::start`] with nothing running. The first commit, with `fleet.yaml` and the clusters' files, is pushed.
    #[track_caller]
    pub(super) fn prepare() -> Self {
        let clusters = three_clusters();
        let folder = scratch::folder("fleet");
        let key = path(&folder, "hub.key");
        let hub_key = Flotilla::run(&["hub", "key", "--key", &key])
            .expect_ok()
            .trim()
            .to_owned();
        let fleet = Self {
            repository: Repository::empty(),
            hub: None,
            agents: BTreeMap::new(),
            folder,
            hub_key,
            hub_port: ports::free(),
            api_port: ports::free(),
            clusters,
        };
        fleet.repository.write("fleet.yaml", FLEET);
        for name in pool::NAMES {
            fleet
                .repository
                .write(&format!("clusters/{name}.yaml"), fleet.join(name));
        }
        fleet.repository.commit("Register the clusters");
        fleet.repository.push();
        fleet
    }

    /// The file that registers a cluster: its key is made when it is missing, its label `place` is its name.
    #[track_caller]
    pub(super) fn join(&self, cluster: &str) -> String {
        let (key, label) = (self.agent_key(cluster), format!("place={cluster}"));
        let join = ["agent", "join", "--cluster", cluster, "--key", &key, "--label", &label];
        Flotilla::run(&join).expect_ok()
    }

    /// Starts the hub, with more arguments than where things are.
    pub(super) fn start_hub(&mut self, more: &[&str]) {
        self.start_hub_of(&self.repository.bare().display().to_string(), more);
    }

    /// As [`Self::start_hub`], of a repository at a path or a URL.
    pub(super) fn start_hub_of(&mut self, repository: &str, more: &[&str]) {
        let key = path(&self.folder, "hub.key");
        self.start_hub_with_key(&key, repository, more);
    }

    /// As [`Self::start_hub_of`], with the key in this file, or in several: `a,b`. A hub that runs is ended first: the next
    /// one has its address.
    pub(super) fn start_hub_with_key(&mut self, key: &str, repository: &str, more: &[&str]) {
        self.kill_hub();
        let (listen, api) = (address(self.hub_port), address(self.api_port));
        let own = [
            "--repository",
            repository,
            "--key",
            key,
            "--listen",
            &listen,
            "--api",
            &api,
        ];
        self.hub = Some(Flotilla::hub(&[&own, more].concat()));
    }

    /// The running hub.
    pub(super) fn hub(&mut self) -> &mut Flotilla {
        self.hub.as_mut().expect("the journey started the hub")
    }

    /// Ends the hub at once, as a crash would.
    pub(super) fn kill_hub(&mut self) {
        self.hub = None;
    }

    /// Starts the agent of a shared cluster; one that runs is ended first.
    pub(super) fn start_agent(&mut self, cluster: &str) {
        self.start_agent_with(cluster, &[]);
    }

    /// As [`Self::start_agent`], with more arguments than where things are.
    pub(super) fn start_agent_with(&mut self, cluster: &str, more: &[&str]) {
        self.start_agent_at(cluster, (&address(self.hub_port), &self.hub_key.clone()), more);
    }

    /// As [`Self::start_agent_with`], with another hub, by its address and key.
    pub(super) fn start_agent_at(&mut self, cluster: &str, (hub, hub_key): (&str, &str), more: &[&str]) {
        self.kill_agent(cluster);
        let (key, journal) = (self.agent_key(cluster), self.journal(cluster));
        let kubeconfig = self.cluster(cluster).kubeconfig().display().to_string();
        let own = [
            "--cluster",
            cluster,
            "--hub",
            hub,
            "--hub-key",
            hub_key,
            "--key",
            &key,
            "--journal",
            &journal,
            "--kubeconfig",
            &kubeconfig,
        ];
        let agent = Flotilla::agent(&[&own, more].concat());
        self.agents.insert(cluster.to_owned(), agent);
    }

    /// The running agent of a cluster.
    #[track_caller]
    pub(super) fn agent(&mut self, cluster: &str) -> &mut Flotilla {
        self.agents.get_mut(cluster).expect("the journey started the agent")
    }

    /// Ends an agent at once, as a crash would.
    pub(super) fn kill_agent(&mut self, cluster: &str) {
        self.agents.remove(cluster);
    }

    /// Where agents dial.
    pub(super) fn hub_address(&self) -> String {
        address(self.hub_port)
    }

    /// The hub's public key.
    pub(super) fn hub_key(&self) -> &str {
        &self.hub_key
    }

    /// The hub's key, for who plays the hub.
    pub(super) fn hub_secret_key(&self) -> SecretKey {
        SecretKey::load(&self.folder.join("hub.key")).expect("the fleet has a hub's key")
    }

    /// The folder of an agent's journal.
    pub(super) fn journal(&self, cluster: &str) -> String {
        path(&self.folder, &format!("{cluster}.journal"))
    }

    fn agent_key(&self, cluster: &str) -> String {
        path(&self.folder, &format!("{cluster}.key"))
    }

    /// The fleet's folder: keys, journals, and whatever else a journey puts there.
    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Where the hub's read-only API answers.
    pub(super) fn api(&self) -> String {
        format!("http://{}", address(self.api_port))
    }

    /// A shared cluster by its name.
    #[track_caller]
    pub(super) fn cluster(&self, name: &str) -> &ControlPlane {
        let found = self.clusters.iter().find(|cluster| cluster.name() == name);
        found.expect("it is one of the shared clusters")
    }

    /// As [`Self::cluster`], to stop and start it.
    #[track_caller]
    pub(super) fn cluster_mut(&mut self, name: &str) -> &mut ControlPlane {
        let found = self.clusters.iter_mut().find(|cluster| cluster.name() == name);
        found.expect("it is one of the shared clusters")
    }

    /// Writes files (path, content), commits and pushes them. Returns the commit.
    #[track_caller]
    pub(super) fn push(&self, message: &str, files: &[(&str, &str)]) -> String {
        self.repository.push_files(message, files)
    }

    /// Waits until a field of an object, by its JSON pointer, has a value.
    #[track_caller]
    pub(super) fn until_field(&self, cluster: &str, object: (&str, &str), pointer: &str, expected: impl Into<Value>) {
        let (namespace, resource) = object;
        let (what, expected) = (format!("{resource} in {namespace} of {cluster}"), expected.into());
        let cluster = self.cluster(cluster);
        eventually(LIMIT, &what, || {
            let found = cluster.get(namespace, resource)?;
            match found.pointer(pointer) {
                Some(value) if *value == expected => Ok(()),
                value => Err(format!("{pointer} is {value:?}, not {expected}")),
            }
        });
    }

    /// Waits until the ConfigMap has this `text` in each of the clusters.
    #[track_caller]
    pub(super) fn until_text(&self, clusters: &[&str], config_map: (&str, &str), text: &str) {
        let (namespace, name) = config_map;
        for cluster in clusters {
            self.until_field(cluster, (namespace, &format!("configmap/{name}")), "/data/text", text);
        }
    }

    /// The `text` of a ConfigMap now; `None` without the object.
    pub(super) fn text(&self, cluster: &str, config_map: (&str, &str)) -> Option<String> {
        let (namespace, name) = config_map;
        let found = self
            .cluster(cluster)
            .get(namespace, &format!("configmap/{name}"))
            .ok()?;
        found["data"]["text"].as_str().map(str::to_owned)
    }

    /// Waits until an object is gone from each of the clusters.
    #[track_caller]
    pub(super) fn until_gone(&self, clusters: &[&str], namespace: &str, resource: &str) {
        for name in clusters {
            let cluster = self.cluster(name);
            eventually(
                LIMIT,
                &format!("{resource} in {namespace} of {name} is gone"),
                || match cluster.has(namespace, resource) {
                    true => Err("it is there".to_owned()),
                    false => Ok(()),
                },
            );
        }
    }

    /// Waits until the released ref is made from this source commit. A commit that changes no unit is never
    /// released.
    #[track_caller]
    pub(super) fn until_released(&self, commit: &str) {
        eventually(LIMIT, "the commit is released", || {
            let record = self.repository.read("flotilla/released", "release.yaml");
            match record {
                Some(record) if record.contains(commit) => Ok(()),
                record => Err(format!("{commit} is not in {record:?}")),
            }
        });
    }

    /// Waits until the hub has logged these words.
    #[track_caller]
    pub(super) fn until_hub_logged(&self, words: &str) {
        let hub = self.hub.as_ref().expect("the journey started the hub");
        eventually(LIMIT, &format!("the hub logs {words:?}"), || {
            let log = hub.log();
            log.contains(words).then_some(()).ok_or(log)
        });
    }

    /// Everything that the hub and the agents that run have logged.
    pub(super) fn logs(&self) -> String {
        let children = self.hub.iter().chain(self.agents.values());
        children.map(|child| child.log()).collect()
    }
}

/// What `flotilla plan` says about the pushed branch, as JSON.
pub(super) fn plan_json(repository: &Repository) -> Value {
    let bare = repository.bare().display().to_string();
    let output = Flotilla::run(&["plan", "--repository", &bare, "-o", "json"]);
    serde_json::from_str(&output.stdout).unwrap_or_else(|error| panic!("{error}: {output:?}"))
}

/// Every byte that is released is what its source revisions render.
#[track_caller]
pub(super) fn assert_verified(repository: &Repository) {
    let bare = repository.bare().display().to_string();
    let verified = Flotilla::run(&["verify", "--repository", &bare]).expect_ok();
    assert!(verified.starts_with("OK "), "{verified}");
}

/// The reasons of a plan's findings.
pub(super) fn reasons(plan: &Value) -> Vec<String> {
    let findings = plan["findings"].as_array().expect("a plan has findings");
    let reasons = findings
        .iter()
        .map(|finding| finding["reason"].as_str().unwrap_or_default());
    reasons.map(str::to_owned).collect()
}

/// `(kind/namespace/name, resourceVersion)` of every object of these kinds that is not a control plane's or an
/// agent's own, in order.
#[track_caller]
pub(super) fn versions(cluster: &ControlPlane, kinds: &str) -> BTreeMap<String, String> {
    let text = cluster
        .kubectl(&["get", kinds, "--all-namespaces", "-o", "json"])
        .expect_ok();
    let list: Value = serde_json::from_str(&text).expect("kubectl writes JSON");
    let items = list["items"].as_array().expect("a list has items");
    let word = |item: &Value, pointer: &str| item.pointer(pointer).and_then(Value::as_str).unwrap_or("").to_owned();
    let versions = items.iter().map(|item| {
        let namespace = word(item, "/metadata/namespace");
        let key = format!("{}/{namespace}/{}", word(item, "/kind"), word(item, "/metadata/name"));
        (namespace, key, word(item, "/metadata/resourceVersion"))
    });
    versions
        .filter(|(namespace, key, _)| {
            !OWN_NAMESPACES.contains(&namespace.as_str()) && !key.ends_with("/kube-root-ca.crt")
        })
        .map(|(_, key, version)| (key, version))
        .collect()
}

fn path(folder: &Path, name: &str) -> String {
    folder.join(name).display().to_string()
}

fn address(port: u16) -> String {
    format!("127.0.0.1:{port}")
}

/// `fleet.yaml` with the defaults.
pub(super) const FLEET: &str = "\
apiVersion: fleet.flotilla.dev/v1alpha1
kind: Fleet
metadata: {name: fleet}
spec: {approval: none}
";

/// A Subscription in `team` of what is below `feeds/NAME/`, for every cluster.
pub(super) fn subscription(team: &str, name: &str) -> String {
    subscription_on(team, name, "{}")
}

/// A Subscription of what is below `feeds/NAME/`, for the clusters that a selector (as flow YAML) takes.
pub(super) fn subscription_on(team: &str, name: &str, clusters: &str) -> String {
    format!(
        "apiVersion: fleet.flotilla.dev/v1alpha1
kind: Subscription
metadata: {{namespace: {team}, name: {name}}}
spec:
  schedulingStrategy: Replication
  subscribers: [{{clusterAffinity: {clusters}}}]
  feeds: [{{path: 'feeds/{name}/**'}}]
"
    )
}

/// A Namespace.
pub(super) fn namespace(name: &str) -> String {
    format!("apiVersion: v1\nkind: Namespace\nmetadata: {{name: {name}}}\n")
}

/// A ConfigMap whose key `text` has this value.
pub(super) fn config_map(namespace: &str, name: &str, text: &str) -> String {
    format!(
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {{namespace: {namespace}, name: {name}}}\ndata: {{text: '{text}'}}\n"
    )
}
