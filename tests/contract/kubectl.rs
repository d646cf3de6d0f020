//! The in-memory server on a socket, judged by kubectl.

use std::io::Write as _;
use std::process::Stdio;
use std::time::Duration;

use flotilla_tests::{Output, eventually, parts};
use harness::ApiServer;
use tokio_util::sync::CancellationToken;

use super::runtime;

const LIMIT: Duration = Duration::from_secs(30);

const WEB: &str = "\
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, labels: {app: web}}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers:
        - {name: web, image: 'web:1', ports: [{containerPort: 80}]}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: settings}
data: {word: one}
---
apiVersion: v1
kind: Service
metadata: {name: web}
spec: {selector: {app: web}, ports: [{port: 80}]}
";

/// A server on a port, for as long as this lives.
struct Served {
    _runtime: tokio::runtime::Runtime,
    stop: CancellationToken,
    url: String,
}

impl Served {
    fn start() -> Self {
        let runtime = runtime();
        let stop = CancellationToken::new();
        let listener = runtime.block_on(tokio::net::TcpListener::bind("127.0.0.1:0")).unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let (server, shutdown) = (ApiServer::default(), stop.clone());
        runtime.spawn(async move { server.serve(listener, shutdown).await });
        Self {
            _runtime: runtime,
            stop,
            url,
        }
    }

    fn command(&self, arguments: &[&str]) -> std::process::Command {
        let mut command = parts::command("kubectl");
        // Neither a person's contexts nor their cache.
        command
            .env("KUBECONFIG", "")
            .env("HOME", flotilla_tests::scratch::folder("kubectl"));
        command.args(["--server", &self.url]).args(arguments);
        command
    }

    #[track_caller]
    fn kubectl(&self, arguments: &[&str]) -> String {
        Output::of(&mut self.command(arguments)).expect_ok()
    }

    #[track_caller]
    fn piped(&self, arguments: &[&str], input: &str) -> String {
        let mut command = self.command(arguments);
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
        let output = child.wait_with_output().unwrap();
        let (out, err) = (
            String::from_utf8_lossy(&output.stdout),
            String::from_utf8_lossy(&output.stderr),
        );
        assert!(output.status.success(), "{arguments:?}: {out}{err}");
        format!("{out}{err}")
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

#[track_caller]
fn has(text: &str, parts: &[&str]) {
    for part in parts {
        assert!(text.contains(part), "{part:?} is missing in\n{text}");
    }
}

#[test]
fn kubectl_applies_changes_and_deletes_from_the_client_side() {
    let served = Served::start();
    has(
        &served.piped(&["apply", "-f", "-"], WEB),
        &[
            "deployment.apps/web created",
            "configmap/settings created",
            "service/web created",
        ],
    );
    has(
        &served.piped(&["apply", "-f", "-"], WEB),
        &[
            "deployment.apps/web unchanged",
            "configmap/settings unchanged",
            "service/web unchanged",
        ],
    );
    let changed = WEB.replace("web:1", "web:2").replace("word: one", "other: two");
    has(
        &served.piped(&["apply", "-f", "-"], &changed),
        &[
            "deployment.apps/web configured",
            "configmap/settings configured",
            "service/web unchanged",
        ],
    );
    assert_eq!(
        served.kubectl(&["get", "cm", "settings", "-o", "jsonpath={.data}"]),
        r#"{"other":"two"}"#
    );
    let table = served.kubectl(&["get", "deploy,svc,cm"]);
    has(
        &table,
        &[
            "deployment.apps/web",
            "2/2",
            "ClusterIP",
            "80/TCP",
            "configmap/settings",
        ],
    );
    has(&served.kubectl(&["scale", "deploy/web", "--replicas=5"]), &["scaled"]);
    has(
        &served.kubectl(&["rollout", "status", "deploy/web", "--timeout=20s"]),
        &["successfully rolled out"],
    );
    has(
        &served.kubectl(&["set", "image", "deploy/web", "web=web:3"]),
        &["updated"],
    );
    has(&served.kubectl(&["label", "cm", "settings", "x=y"]), &["labeled"]);
    has(
        &served.kubectl(&["get", "cm", "-l", "x=y", "-o", "name"]),
        &["configmap/settings"],
    );
    has(&served.kubectl(&["diff", "--help"]), &["Usage"]);
    has(&served.piped(&["delete", "-f", "-"], WEB), &["deleted"]);
    has(
        &served.kubectl(&["get", "deploy", "--ignore-not-found", "-o", "name"]),
        &[],
    );
    let missing = Output::of(&mut served.command(&["get", "deploy", "web"]));
    has(&missing.stderr, &["deployments.apps \"web\" not found"]);
}

#[test]
fn kubectl_applies_from_the_server_side_and_is_told_of_conflicts() {
    let served = Served::start();
    let ours = &["apply", "--server-side", "--field-manager=ours", "-f", "-"][..];
    has(&served.piped(ours, WEB), &["deployment.apps/web serverside-applied"]);
    let mut theirs = served.command(&["apply", "--server-side", "--field-manager=theirs", "-f", "-"]);
    theirs
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = theirs.spawn().unwrap();
    child
        .stdin
        .take()
        .unwrap()
        .write_all(WEB.replace("web:1", "web:2").as_bytes())
        .unwrap();
    let output = child.wait_with_output().unwrap();
    let words = String::from_utf8_lossy(&output.stderr);
    has(
        &words,
        &[
            "conflict with \"ours\"",
            ".spec.template.spec.containers[name=\"web\"].image",
        ],
    );
    let forced = &[
        "apply",
        "--server-side",
        "--force-conflicts",
        "--field-manager=theirs",
        "-f",
        "-",
    ][..];
    has(
        &served.piped(forced, &WEB.replace("web:1", "web:2")),
        &["serverside-applied"],
    );
    has(
        &served.kubectl(&["get", "deploy", "web", "-o", "wide"]),
        &["web:2", "app=web"],
    );
}

#[test]
fn kubectl_describes_and_explains_what_is_there() {
    let served = Served::start();
    served.piped(&["apply", "-f", "-"], WEB);
    has(
        &served.kubectl(&["describe", "deploy", "web"]),
        &["Replicas:", "2 desired | 2 updated", "Image:", "web:1"],
    );
    has(&served.kubectl(&["describe", "cm", "settings"]), &["word:", "one"]);
    has(&served.kubectl(&["describe", "svc", "web"]), &["Selector:", "app=web"]);
    has(&served.kubectl(&["describe", "ns", "default"]), &["Status:", "Active"]);
    has(&served.kubectl(&["describe", "node", "node-1"]), &["node-1"]);
    has(
        &served.kubectl(&["explain", "deployment.spec.template"]),
        &["GROUP:", "apps", "spec"],
    );
    has(
        &served.kubectl(&["api-resources", "-o", "name"]),
        &["deployments.apps", "customresourcedefinitions.apiextensions.k8s.io"],
    );
    has(&served.kubectl(&["version"]), &["Server Version: v1.36"]);
}

#[test]
fn kubectl_watches_and_waits() {
    let served = Served::start();
    let log = flotilla_tests::scratch::folder("watched").join("out");
    let mut command = served.command(&["get", "cm", "-w", "--output-watch-events"]);
    command.stdout(std::fs::File::create(&log).unwrap());
    let mut watching = command.spawn().unwrap();
    served.piped(&["apply", "-f", "-"], WEB);
    let seen = |word: &str| {
        eventually(LIMIT, word, || {
            let text = std::fs::read_to_string(&log).map_err(|error| error.to_string())?;
            if text.contains(word) { Ok(()) } else { Err(text) }
        })
    };
    seen("ADDED");
    served.kubectl(&["annotate", "cm", "settings", "a=b"]);
    seen("MODIFIED");
    served.kubectl(&["delete", "cm", "settings"]);
    seen("DELETED");
    watching.kill().unwrap();
    watching.wait().unwrap();
    has(
        &served.kubectl(&["wait", "--for=condition=Available", "deploy/web", "--timeout=20s"]),
        &["condition met"],
    );
}

#[test]
fn kubectl_uses_definitions_and_namespaces() {
    let served = Served::start();
    let definition = "\
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: boats.example.org}
spec:
  group: example.org
  scope: Namespaced
  names: {kind: Boat, plural: boats, shortNames: [bt]}
  versions:
    - name: v1
      served: true
      storage: true
      additionalPrinterColumns: [{name: Hull, type: string, jsonPath: .spec.hull}]
      schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {hull: {type: string}}}}}}
";
    let boat = "apiVersion: example.org/v1\nkind: Boat\nmetadata: {name: one, namespace: sea}\nspec: {hull: oak}\n";
    served.piped(&["apply", "-f", "-"], definition);
    // These, kubectl sends in Protobuf.
    served.kubectl(&["create", "namespace", "sea"]);
    served.kubectl(&["create", "configmap", "chart", "-n", "sea", "--from-literal=a=b"]);
    assert_eq!(
        served.kubectl(&["get", "cm", "chart", "-n", "sea", "-o", "jsonpath={.data}"]),
        r#"{"a":"b"}"#
    );
    served.kubectl(&["create", "secret", "generic", "key", "-n", "sea", "--from-literal=a=b"]);
    served.kubectl(&["create", "serviceaccount", "crew", "-n", "sea"]);
    has(&served.kubectl(&["auth", "can-i", "get", "pods"]), &["yes"]);
    let refused = Output::of(&mut served.command(&["create", "deployment", "web", "--image=web:1"]));
    has(&refused.stderr, &["Deployment in Protobuf"]);
    has(
        &served.piped(&["apply", "-f", "-"], boat),
        &["boat.example.org/one created"],
    );
    has(&served.kubectl(&["get", "bt", "-n", "sea"]), &["HULL", "oak"]);
    has(&served.kubectl(&["get", "boats", "-A"]), &["NAMESPACE", "sea"]);
    has(&served.kubectl(&["explain", "boat.spec"]), &["hull"]);
    let renamed = boat.replace("one", "two");
    has(
        &served.piped(&["apply", "--dry-run=server", "-f", "-"], &renamed),
        &["created (server dry run)"],
    );
    has(
        &served.kubectl(&["delete", "namespace", "sea", "--timeout=20s"]),
        &["deleted"],
    );
    has(
        &served.kubectl(&["delete", "crd", "boats.example.org", "--timeout=20s"]),
        &["deleted"],
    );
    let gone = Output::of(&mut served.command(&["get", "boats"]));
    has(&gone.stderr, &["the server doesn't have a resource type"]);
}
