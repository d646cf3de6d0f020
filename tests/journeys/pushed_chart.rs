//! Charts on a cluster that the hub applies to itself: no agent, and no credential in helm's hands.

use std::collections::BTreeSet;
use std::fs;
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;

use flotilla_tests::{eventually, parts};
use serde_json::Value;

use super::support::*;

const CLUSTER: &str = "\
apiVersion: fleet.flotilla.dev/v1alpha1
kind: ManagedCluster
metadata: {name: colombo}
spec: {kubeconfigContext: colombo}
";

const FEED: &str = "\
apiVersion: fleet.flotilla.dev/v1alpha1
kind: Subscription
metadata: {namespace: shop, name: web}
spec:
  schedulingStrategy: Replication
  subscribers: [{clusterAffinity: {}}]
  feeds: [{apiVersion: fleet.flotilla.dev/v1alpha1, kind: HelmChart, namespace: shop, name: web}]
";

fn chart(colour: &str) -> String {
    format!(
        "apiVersion: fleet.flotilla.dev/v1alpha1
kind: HelmChart
metadata: {{namespace: shop, name: web}}
spec: {{path: feeds/charts/web, targetNamespace: shop, values: {{colour: {colour}}}}}
"
    )
}

const TEMPLATE: &str = "\
apiVersion: v1
kind: ConfigMap
metadata: {name: settings}
data: {text: {{ .Values.colour }}}
";

/// The real helm behind a script that writes down, of each run, what it is given to reach the API server.
fn recording_helm(fleet: &Fleet) -> (String, PathBuf) {
    let (script, record) = (fleet.folder().join("helm.sh"), fleet.folder().join("kubeconfigs"));
    let helm = parts::folder().join("helm");
    let text = format!(
        "#!/bin/sh\necho \"$1 $(cat \"$KUBECONFIG\")\" >> '{}'\nexec '{}' \"$@\"\n",
        record.display(),
        helm.display()
    );
    fs::write(&script, text).expect("the fleet's folder is writable");
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).expect("the script is ours");
    (script.display().to_string(), record)
}

/// What each run was given: its command, its kubeconfig, and the server in that.
fn runs(record: &PathBuf) -> Vec<(String, Value, String)> {
    let text = fs::read_to_string(record).expect("helm ran");
    let each = text.lines().map(|line| {
        let (command, kubeconfig) = line.split_once(' ').expect("a command and a kubeconfig");
        let kubeconfig: Value = serde_json::from_str(kubeconfig).expect("it is JSON");
        let server = kubeconfig["clusters"][0]["cluster"]["server"].as_str();
        let server = server.expect("it names a server").to_owned();
        (command.to_owned(), kubeconfig, server)
    });
    each.collect()
}

#[test]
fn a_chart_reaches_a_push_cluster_through_an_address_of_one_use() {
    let mut fleet = Fleet::prepare();
    for name in ["amsterdam", "bogota"] {
        fleet.repository.remove(&format!("clusters/{name}.yaml"));
    }
    fleet.push(
        "Install",
        &[
            ("clusters/colombo.yaml", CLUSTER),
            ("subscriptions/shop/web.yaml", FEED),
            ("feeds/charts/web.yaml", &chart("blue")),
            (
                "feeds/charts/web/Chart.yaml",
                "apiVersion: v2\nname: web\nversion: 1.0.0\n",
            ),
            ("feeds/charts/web/templates/settings.yaml", TEMPLATE),
        ],
    );
    let kubeconfig = fleet.cluster("colombo").kubeconfig().display().to_string();
    let (helm, record) = recording_helm(&fleet);
    fleet.start_hub(&["--kubeconfig", &kubeconfig, "--helm", &helm]);
    let settings = ("shop", "settings");
    fleet.until_text(&["colombo"], settings, "blue");
    fleet.push("Upgrade", &[("feeds/charts/web.yaml", &chart("green"))]);
    fleet.until_text(&["colombo"], settings, "green");
    // Drift of its objects is put right from the hub too.
    let patch = r#"{"data":{"text":"red"}}"#;
    let arguments = [
        "-n",
        "shop",
        "patch",
        "configmap",
        "settings",
        "--type=merge",
        "-p",
        patch,
    ];
    fleet.cluster("colombo").kubectl(&arguments).expect_ok();
    fleet.until_text(&["colombo"], settings, "green");

    let seen = runs(&record);
    let commands: Vec<_> = seen.iter().map(|(command, ..)| command.as_str()).collect();
    assert!(
        commands.contains(&"install") && commands.contains(&"upgrade"),
        "{commands:?}"
    );
    let secret = fs::read_to_string(&kubeconfig).expect("the hub's kubeconfig is there");
    for (command, given, server) in &seen {
        let (address, word) = server
            .strip_prefix("http://127.0.0.1:")
            .and_then(|rest| rest.split_once('/'))
            .unwrap();
        assert!(
            address.parse::<u16>().is_ok(),
            "{command} is sent to loopback: {server}"
        );
        assert!(
            word.len() >= 32 && !secret.contains(word),
            "{command} has a word of its own: {server}"
        );
        let user = &given["users"][0]["user"];
        assert!(
            user.as_object().is_some_and(serde_json::Map::is_empty),
            "{command} has no credential: {user}"
        );
    }
    let servers: BTreeSet<_> = seen
        .iter()
        .filter(|(command, ..)| ["install", "upgrade"].contains(&command.as_str()))
        .map(|(.., server)| server)
        .collect();
    assert!(servers.len() >= 2, "each run has an address of its own: {seen:?}");
    eventually(LIMIT, "no address outlives its run", || {
        let open = runs(&record).into_iter().find(|(.., server)| {
            let address = server
                .trim_start_matches("http://")
                .split('/')
                .next()
                .unwrap_or_default();
            TcpStream::connect(address).is_ok()
        });
        open.map_or(Ok(()), |open| Err(format!("{open:?}")))
    });
    let logs = fleet.logs();
    for (.., server) in &seen {
        let word = server.rsplit('/').next().unwrap_or_default();
        assert!(!logs.contains(word), "no word of a run is logged");
    }
}
