//! A hub that serves people, and cluster `paris` behind it: its agent dials, and its API server is asked through the tunnel.

use std::path::PathBuf;

use flotilla_tests::{Child, ControlPlane, Flotilla, Kubelet, Options, Output, Repository, eventually, ports, scratch};

use super::super::support::{FLEET, LIMIT, NO_GRACE, config_map, namespace, subscription};
use super::callers::{ACCESS, Callers};

/// A hub, an agent, a cluster, and kubeconfigs of people.
pub(super) struct Office {
    pub(super) folder: PathBuf,
    pub(super) repository: Repository,
    pub(super) cluster: ControlPlane,
    callers: Callers,
    hub: Flotilla,
    api: String,
    agent: Flotilla,
}

impl Office {
    /// Unit `shop/web` (ConfigMap `shop/greeting`) is in the cluster, and the cluster answers ada.
    #[track_caller]
    pub(super) fn open(more: &[&str]) -> Self {
        Self::open_with(more, &[])
    }

    /// As [`Self::open`], with arguments of the agent's; `NAME.key` among those of either is a file of the folder.
    #[track_caller]
    pub(super) fn open_with(more: &[&str], of_agent: &[&str]) -> Self {
        let cluster = ControlPlane::start("paris", Options::default());
        let (folder, repository) = (scratch::folder("office"), Repository::empty());
        let path = |name: &str| folder.join(name).display().to_string();
        let [listen, api] = [ports::free(), ports::free()].map(|port| format!("127.0.0.1:{port}"));
        let (key, hub_key) = (path("paris.key"), path("hub.key"));
        let join = Flotilla::run(&["agent", "join", "--cluster", "paris", "--key", &key]).expect_ok();
        let away = Flotilla::run(&["agent", "join", "--cluster", "rome", "--key", &path("rome.key")]).expect_ok();
        let public = Flotilla::run(&["hub", "key", "--key", &hub_key]).expect_ok();
        repository.push_files(
            "begin",
            &[
                ("fleet.yaml", FLEET),
                ("clusters/paris.yaml", &join),
                ("clusters/rome.yaml", &away),
                ("access/ops.yaml", ACCESS),
                ("subscriptions/shop/web.yaml", &subscription("shop", "web")),
                ("feeds/web/namespace.yaml", &namespace("shop")),
                ("feeds/web/greeting.yaml", &config_map("shop", "greeting", "hello")),
            ],
        );
        let callers = Callers::new(&folder);
        let bare = repository.bare().display().to_string();
        let door = callers.hub_flags();
        let own = [
            "--repository",
            &bare,
            "--key",
            &hub_key,
            "--listen",
            &listen,
            "--api",
            &api,
        ];
        let door: Vec<_> = door.iter().map(String::as_str).collect();
        let in_folder = |words: &[&str]| -> Vec<String> {
            let word = |word: &&str| match word.ends_with(".key") {
                true => path(word),
                false => (*word).to_owned(),
            };
            words.iter().map(word).collect()
        };
        let (more, of_agent) = (in_folder(more), in_folder(of_agent));
        let (more, of_agent): (Vec<_>, Vec<_>) = (
            more.iter().map(String::as_str).collect(),
            of_agent.iter().map(String::as_str).collect(),
        );
        // Rome never comes.
        let hub = Flotilla::hub(&[&own, &door[..], &NO_GRACE, &more].concat());
        let (journal, kubeconfig) = (path("journal"), cluster.kubeconfig().display().to_string());
        let own = [
            "--cluster",
            "paris",
            "--hub",
            &listen,
            "--hub-key",
            public.trim(),
            "--key",
            &key,
            "--journal",
            &journal,
            "--kubeconfig",
            &kubeconfig,
        ];
        let agent = Flotilla::agent(&[&own[..], &of_agent].concat());
        let office = Self {
            folder,
            repository,
            cluster,
            callers,
            hub,
            api,
            agent,
        };
        eventually(LIMIT, "the unit is in the cluster", || {
            office.cluster.get("shop", "configmap/greeting").map(drop)
        });
        office.callers.write_kubeconfigs(&["paris", "rome"]);
        eventually(LIMIT, "the cluster answers", || {
            office.kubectl("ada", &["get", "namespace", "shop"]).ok().map(drop)
        });
        office
    }

    pub(super) fn path(&self, name: &str) -> String {
        self.callers.path(name)
    }

    /// Lets the agent dial anew.
    pub(super) fn wake_agent(&self) {
        self.agent.signal("HUP");
    }

    /// What somebody at the hub's machine is told of the cluster.
    pub(super) fn described(&self) -> String {
        let server = format!("http://{}", self.api);
        Flotilla::run(&["describe", "cluster", "paris", "--server", &server]).stdout
    }

    /// What the hub says of the fleet.
    pub(super) fn status(&self) -> String {
        let server = format!("http://{}", self.api);
        Flotilla::run(&["status", "--server", &server]).stdout
    }

    pub(super) fn agent_log(&self) -> String {
        self.agent.log()
    }

    pub(super) fn hub_log(&self) -> String {
        self.hub.log()
    }

    /// Writes `NAME.kubeconfig`, as people do.
    #[track_caller]
    pub(super) fn write_kubeconfig(&self, name: &str, login: &[&str]) {
        self.callers.write_kubeconfig(name, login);
    }

    /// Runs kubectl for somebody, against `paris`.
    pub(super) fn kubectl(&self, who: &str, arguments: &[&str]) -> Output {
        self.callers.kubectl(who, "paris", arguments)
    }

    /// Runs kubectl for ada, against another context.
    pub(super) fn kubectl_at(&self, context: &str, arguments: &[&str]) -> Output {
        self.callers.kubectl("ada", context, arguments)
    }

    /// Starts kubectl for ada, against `paris`, which goes on until it is ended.
    pub(super) fn follow(&self, name: &str, arguments: &[&str]) -> Child {
        self.callers.follow(name, "ada", "paris", arguments)
    }

    /// A pod with a log, on a node whose kubelet has it.
    #[track_caller]
    pub(super) fn pod_with_a_log(&self) {
        Kubelet::start().join(&self.cluster, "scribe");
        self.cluster.apply(
            "apiVersion: v1\nkind: Pod\nmetadata: {namespace: shop, name: teller}\n\
             spec: {nodeName: scribe, containers: [{name: teller, image: teller.example/teller:1}]}\n",
        );
        // kubectl asks nothing of a pod that does not run.
        let runs = [
            "patch",
            "pod",
            "teller",
            "-n",
            "shop",
            "--subresource=status",
            "--type=merge",
            "-p",
        ];
        let running = [&runs[..], &[r#"{"status": {"phase": "Running"}}"#]].concat();
        self.cluster.kubectl(&running).expect_ok();
    }
}
