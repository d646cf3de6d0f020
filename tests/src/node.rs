//! A node on which pods say and do something: kwok plays its kubelet, with the kubelet's own server for streams.
//!
//! Every pod's log is one file, a command in a container is a process of this machine, and every port of a pod leads to
//! the kubelet's own.

use std::fs::{self, File};
use std::io::Write as _;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::{Child, ControlPlane, eventually, parts, ports, scratch, wait};

/// The node of one cluster, where that cluster stands. It ends on drop.
#[derive(Debug)]
pub struct Node {
    log: PathBuf,
    _kubelet: Child,
}

impl Node {
    /// Starts it, and one pod on it: container `teller` of pod `teller` in a namespace that is there.
    #[track_caller]
    pub fn start(cluster: &ControlPlane, name: &str, namespace: &str) -> Self {
        Self::start_at(cluster, name, namespace, ports::free())
    }

    /// As [`Self::start`], with the kubelet's port on the loopback of its cluster. It answers `/healthz` there, with TLS and
    /// without.
    #[track_caller]
    pub fn start_at(cluster: &ControlPlane, name: &str, namespace: &str, port: u16) -> Self {
        let folder = scratch::folder(name);
        let log = folder.join("pod.log");
        write_files(&folder, port, &log);
        let path = |file: &str| folder.join(file).display().to_string();
        let (address, port_text) = (format!("127.0.0.1:{port}"), port.to_string());
        let mut command = parts::command("kwok");
        command
            .env("HOME", &folder)
            .arg("--kubeconfig")
            .arg(cluster.kubeconfig());
        command.args(["--manage-single-node", name, "--node-lease-duration-seconds=40"]);
        command.args([
            "--node-ip=127.0.0.1",
            "--node-port",
            &port_text,
            "--server-address",
            &address,
        ]);
        command.args(["--config", &path("kwok.yaml")]);
        command.args([
            "--tls-cert-file",
            &path("tls.crt"),
            "--tls-private-key-file",
            &path("tls.key"),
        ]);
        let kubelet = Child::start("kwok", &folder, &mut cluster.placed(command));
        let container = json!([{"name": "teller", "image": "teller.example/teller:1"}]);
        let objects = [
            json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}}),
            json!({
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": {"name": "teller", "namespace": namespace},
                "spec": {"nodeName": name, "containers": container},
            }),
        ];
        cluster.apply(&json!({"apiVersion": "v1", "kind": "List", "items": objects}).to_string());
        eventually(wait::LONG, "the pod runs", || {
            let pod = cluster.get(namespace, "pod/teller")?;
            let is_running = pod["status"]["phase"] == "Running";
            is_running.then_some(()).ok_or(kubelet.log_tail())
        });
        Self { log, _kubelet: kubelet }
    }

    /// Adds a line to the log of its pods.
    #[track_caller]
    pub fn say(&self, line: &str) {
        let mut log = File::options().append(true).open(&self.log).expect("it was made");
        // As a container's runtime writes it.
        writeln!(log, "2026-01-01T00:00:00.000000000Z stdout F {line}").expect("the scratch folder is writable");
    }
}

fn write_files(folder: &Path, port: u16, log: &Path) {
    let made = rcgen::generate_simple_self_signed(vec!["127.0.0.1".to_owned()]).expect("ring makes a certificate");
    let rule = |kind: &str, spec: Value| {
        let object = json!({
            "apiVersion": "kwok.x-k8s.io/v1alpha1",
            "kind": kind,
            "metadata": {"name": "all"},
            "spec": spec,
        });
        // JSON is YAML.
        format!("---\n{object}\n")
    };
    let rules = [
        rule("ClusterLogs", json!({"logs": [{"logsFile": log, "follow": true}]})),
        rule("ClusterExec", json!({"execs": [{"local": {"workDir": folder}}]})),
        rule(
            "ClusterPortForward",
            json!({"forwards": [{"target": {"address": "127.0.0.1", "port": port}}]}),
        ),
    ];
    for (file, text) in [
        ("tls.crt", made.cert.pem()),
        ("tls.key", made.signing_key.serialize_pem()),
        ("kwok.yaml", rules.concat()),
        ("pod.log", String::new()),
    ] {
        fs::write(folder.join(file), text).expect("the scratch folder is writable");
    }
}
