//! A real Kubernetes control plane.
//!
//! Enters: a name and [`Options`]. Leaves: a cluster whose `/readyz` answers, with a kubeconfig for people
//! and programs. Deliberately not here: container runtimes; kwok plays the kubelets, so that Deployments
//! roll out and nodes fill up, and nothing runs.

mod files;
mod nodes;
mod options;
mod servers;

use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::process::Command;

use kube::config::{KubeConfigOptions, Kubeconfig};
use serde_json::Value;

pub use self::options::{Options, User};
use self::servers::Servers;
use crate::{Output, eventually, parts, wait};

/// A running cluster. Everything of it ends on drop.
#[derive(Debug)]
pub struct ControlPlane {
    name: String,
    folder: PathBuf,
    servers: Servers,
}

impl ControlPlane {
    /// Starts a cluster and waits until it is ready.
    #[track_caller]
    pub fn start(name: &str, options: Options) -> Self {
        let mut started = Self::start_all([name], options);
        started.pop().expect("one name gives one cluster")
    }

    /// Starts several clusters side by side and waits until all are ready.
    #[track_caller]
    pub fn start_all<'a>(names: impl IntoIterator<Item = &'a str>, options: Options) -> Vec<Self> {
        let mut clusters: Vec<_> = names
            .into_iter()
            .map(|name| Self::launch(name, options.clone()))
            .collect();
        clusters.iter_mut().for_each(Self::complete);
        clusters
    }

    fn launch(name: &str, options: Options) -> Self {
        let folder = crate::scratch::folder(name);
        let servers = Servers::start_apiserver(&folder, options);
        Self {
            name: name.to_owned(),
            folder,
            servers,
        }
    }

    fn complete(&mut self) {
        self.wait_ready();
        let nodes = self.servers.start_others();
        if nodes > 0 {
            self.apply(&nodes::manifest(nodes));
            self.wait_nodes_ready(nodes);
        }
    }

    /// The name it was started with.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The API server's address.
    pub fn url(&self) -> String {
        self.servers.url()
    }

    /// A kubeconfig of its administrator; its one context is named like the cluster.
    pub fn kubeconfig(&self) -> PathBuf {
        self.kubeconfig_of("admin")
    }

    /// A kubeconfig of one of [`Options::users`].
    pub fn kubeconfig_of(&self, user: &str) -> PathBuf {
        self.folder.join(format!("{user}.kubeconfig"))
    }

    /// A client of the administrator, for tests and benches that watch. It lives in the caller's runtime.
    pub async fn client(&self) -> kube::Client {
        let kubeconfig = Kubeconfig::read_from(self.kubeconfig()).expect("it was written before the cluster was ready");
        let options = KubeConfigOptions::default();
        let config = kube::Config::from_custom_kubeconfig(kubeconfig, &options).await;
        kube::Client::try_from(config.expect("its one context is complete")).expect("its certificate is valid")
    }

    /// A command, to be run where the cluster is.
    pub fn placed(&self, command: Command) -> Command {
        self.servers.placed(command)
    }

    /// A folder of its own, for logs and whatever else belongs to it.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Runs `kubectl` as the administrator.
    pub fn kubectl(&self, arguments: &[&str]) -> Output {
        self.kubectl_as("admin", arguments)
    }

    /// Runs `kubectl` as one of [`Options::users`].
    pub fn kubectl_as(&self, user: &str, arguments: &[&str]) -> Output {
        let mut command = parts::command("kubectl");
        // Its discovery cache goes by host and port, which another test may have used for another cluster.
        command
            .arg("--kubeconfig")
            .arg(self.kubeconfig_of(user))
            .arg("--cache-dir")
            .arg(self.folder.join("cache"));
        command.arg("--request-timeout=20s").args(arguments);
        Output::of(&mut self.placed(command))
    }

    /// Applies a manifest, given as text, as a person with `kubectl` would.
    #[track_caller]
    pub fn apply(&self, manifest: &str) {
        let file = crate::scratch::folder("manifest").join("manifest.yaml");
        std::fs::write(&file, manifest).expect("the scratch folder is writable");
        self.kubectl(&["apply", "-f", &file.display().to_string()]).expect_ok();
    }

    /// One object, or a list with a `kind` alone, as the API server has it; `Err` says what kubectl said.
    pub fn get(&self, namespace: &str, resource: &str) -> Result<Value, String> {
        let text = self
            .kubectl(&["get", "--namespace", namespace, resource, "-o", "json"])
            .ok()?;
        serde_json::from_str(&text).map_err(|error| error.to_string())
    }

    /// The names of all objects of a kind, in order.
    #[track_caller]
    pub fn names(&self, namespace: &str, kind: &str) -> Vec<String> {
        let text = self
            .kubectl(&["get", "--namespace", namespace, kind, "-o", "name"])
            .expect_ok();
        text.lines()
            .filter_map(|line| line.split_once('/'))
            .map(|(_, name)| name.to_owned())
            .collect()
    }

    /// Whether an object is there. An API server that does not answer is no answer, and ends the test.
    #[track_caller]
    pub fn has(&self, namespace: &str, resource: &str) -> bool {
        let output = self.kubectl(&[
            "get",
            "--namespace",
            namespace,
            resource,
            "-o",
            "name",
            "--ignore-not-found",
        ]);
        !output.expect_ok().trim().is_empty()
    }

    /// Whether the API server is meant to run: started, and not stopped since.
    pub fn apiserver_runs(&self) -> bool {
        self.servers.apiserver_runs()
    }

    /// Ends the API server at once, as a power cut would. The others stay and wait for it.
    pub fn stop_apiserver(&mut self) {
        self.servers.stop_apiserver();
    }

    /// Starts the API server again, on its old port with its old data, and waits until it is ready.
    #[track_caller]
    pub fn start_apiserver(&mut self) {
        self.servers.restart_apiserver();
        self.wait_ready();
    }

    /// Ends the API server at once, and starts it on another port with another certificate. Its kubeconfigs are written anew; a
    /// controller manager would not read them again.
    #[track_caller]
    pub fn move_apiserver(&mut self) {
        self.servers.move_apiserver();
        self.wait_ready();
    }

    /// Ends the API server at once, and starts it at another address of the loopback interface, with the port and the
    /// certificate that it had; that one names `kubernetes` and `127.0.0.1`, and not this address.
    #[track_caller]
    pub fn move_apiserver_to(&mut self, address: Ipv4Addr) {
        self.servers.move_apiserver_to(address);
        self.wait_ready();
    }

    /// The last lines of every log.
    pub fn log_tails(&self) -> String {
        self.servers.log_tails()
    }

    #[track_caller]
    fn wait_ready(&mut self) {
        let what = format!("the API server of {} is ready", self.name);
        eventually(wait::LONG, &what, || {
            self.servers.assert_running();
            self.servers.write_kubeconfigs(&self.name)?;
            self.kubectl(&["get", "--raw", "/readyz"]).ok()
        });
        // The namespace appears after readiness; without it nothing can be created in it.
        eventually(wait::LONG, "the namespace default is there", || {
            self.get("", "namespace/default")
        });
    }

    #[track_caller]
    fn wait_nodes_ready(&self, count: usize) {
        eventually(wait::LONG, "every node is ready", || {
            let path = r#"jsonpath={.items[*].status.conditions[?(@.type=="Ready")].status}"#;
            let ready = self
                .kubectl(&["get", "nodes", "-o", path])
                .ok()?
                .matches("True")
                .count();
            if ready == count {
                Ok(())
            } else {
                Err(format!("{ready} of {count} nodes are ready"))
            }
        });
    }
}
