//! A hub that serves people, and cluster `paris` behind it: its agent dials, and its API server is asked through the tunnel.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use flotilla_tests::{
    Child, ControlPlane, Flotilla, Kubelet, Options, Output, Repository, eventually, parts, ports, scratch,
};

use super::super::support::{FLEET, LIMIT, config_map, namespace, subscription};

/// Whom the hub knows, and where it reads it.
const TOKENS: &str = "token-of-ada,ada,1,\"ops\"\ntoken-of-bob,bob,2,\"guests\"\n";

const ACCESS: &str = "\
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: reader}
rules:
  - {apiGroups: ['*'], resources: ['*'], verbs: [get, list, watch]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: ops}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: reader}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: Group, name: ops}]
";

/// A hub, an agent, a cluster, and kubeconfigs of people.
pub(super) struct Office {
    pub(super) folder: PathBuf,
    pub(super) repository: Repository,
    pub(super) cluster: ControlPlane,
    serve: String,
    hub: Flotilla,
    _agent: Flotilla,
}

impl Office {
    /// Unit `shop/web` (ConfigMap `shop/greeting`) is in the cluster, and the cluster answers ada.
    #[track_caller]
    pub(super) fn open(more: &[&str]) -> Self {
        let cluster = ControlPlane::start("paris", Options::default());
        let (folder, repository) = (scratch::folder("office"), Repository::empty());
        let path = |name: &str| folder.join(name).display().to_string();
        let [listen, api, serve] =
            [ports::free(), ports::free(), ports::free()].map(|port| format!("127.0.0.1:{port}"));
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
        fs::write(folder.join("tokens.csv"), TOKENS).unwrap();
        for who in ["ada", "bob", "nobody"] {
            fs::write(folder.join(format!("{who}.token")), format!("token-of-{who}")).unwrap();
        }
        let bare = repository.bare().display().to_string();
        let tokens = path("tokens.csv");
        let own = [
            "--repository",
            &bare,
            "--key",
            &hub_key,
            "--listen",
            &listen,
            "--api",
            &api,
            "--serve",
            &serve,
            "--token-file",
            &tokens,
        ];
        let hub = Flotilla::hub(&[&own, more].concat());
        let (journal, kubeconfig) = (path("journal"), cluster.kubeconfig().display().to_string());
        let agent = Flotilla::agent(&[
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
        ]);
        let office = Self {
            folder,
            repository,
            cluster,
            serve,
            hub,
            _agent: agent,
        };
        eventually(LIMIT, "the unit is in the cluster", || {
            office.cluster.get("shop", "configmap/greeting").map(drop)
        });
        for who in ["ada", "bob", "nobody"] {
            let token = office.path(&format!("{who}.token"));
            office.write_kubeconfig(
                who,
                &["--token-file", &token, "--cluster", "paris", "--cluster", "rome"],
            );
        }
        eventually(LIMIT, "the cluster answers", || {
            office.kubectl("ada", &["get", "namespace", "shop"]).ok().map(drop)
        });
        office
    }

    pub(super) fn path(&self, name: &str) -> String {
        self.folder.join(name).display().to_string()
    }

    /// Where people ask.
    pub(super) fn url(&self) -> String {
        format!("https://{}", self.serve)
    }

    pub(super) fn hub_log(&self) -> String {
        self.hub.log()
    }

    /// Writes `NAME.kubeconfig`, as people do.
    #[track_caller]
    pub(super) fn write_kubeconfig(&self, name: &str, login: &[&str]) {
        let (url, ca, output) = (
            self.url(),
            self.path("hub-ca.crt"),
            self.path(&format!("{name}.kubeconfig")),
        );
        let own = ["kubeconfig", "--hub", &url, "--ca", &ca, "--output", &output];
        Flotilla::run(&[&own, login].concat()).expect_ok();
    }

    fn command(&self, who: &str) -> Command {
        let mut command = parts::command("kubectl");
        command
            .args(["--kubeconfig", &self.path(&format!("{who}.kubeconfig"))])
            .args(["--cache-dir", &self.path("cache")])
            .env("EDITOR", "sed -i s/hello/bye/");
        command
    }

    /// Runs kubectl for somebody, against `paris`.
    pub(super) fn kubectl(&self, who: &str, arguments: &[&str]) -> Output {
        let mut command = self.command(who);
        Output::of(
            command
                .args(["--context", "paris", "--request-timeout=30s"])
                .args(arguments),
        )
    }

    /// Runs kubectl for ada, against another context.
    pub(super) fn kubectl_at(&self, context: &str, arguments: &[&str]) -> Output {
        let mut command = self.command("ada");
        Output::of(
            command
                .args(["--context", context, "--request-timeout=30s"])
                .args(arguments),
        )
    }

    /// Starts kubectl for ada, against `paris`, which goes on until it is ended.
    pub(super) fn follow(&self, name: &str, arguments: &[&str]) -> Child {
        let mut command = self.command("ada");
        command.args(["--context", "paris"]).args(arguments);
        Child::start(name, &self.folder, &mut command)
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
