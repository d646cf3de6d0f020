//! Clusternet's examples, each folder a repository of its own and unchanged, in real clusters.
//!
//! The clusters' files carry the ids, namespaces and labels that the examples ask for. What plans make of
//! the examples without a cluster is in `crate::examples`.

use std::path::Path;

use flotilla_tests::Repository;
use serde_json::Value;

use super::support::{Fleet, plan_json, subscription};
use crate::inputs::with_inputs;

/// Cluster → namespace, id and labels, as Clusternet's own registration would have given them.
const IDENTITIES: [(&str, &str, &str, &str); 3] = [
    (
        "amsterdam",
        "clusternet-5l82l",
        "dc91021d-2361-4f6d-a404-7c33b9e01118",
        "{region: ap-shanghai}",
    ),
    (
        "bogota",
        "clusternet-vt5gp",
        "5f9da921-0437-4fea-a89d-42aa1ede9b25",
        "{region: ap-beijing, node.clusternet.io/sample-key: sample-value}",
    ),
    (
        "colombo",
        "clusternet-x9m2k",
        "d1b34d4c-9deb-4b3b-949d-5454eb35b929",
        "{node.clusternet.io/sample-key: sample-value}",
    ),
];

/// The file of a cluster in Clusternet's own group, with more of `spec`.
fn cluster_file(identity: (&str, &str, &str, &str), more: &str) -> String {
    let (name, namespace, id, labels) = identity;
    format!(
        "apiVersion: clusters.clusternet.io/v1beta1
kind: ManagedCluster
metadata: {{name: {name}, namespace: {namespace}, labels: {labels}}}
spec: {{clusterId: {id}, syncMode: Dual{more}}}
"
    )
}

/// A fleet on an example, with a hub and agents that run. Nothing is pushed yet.
#[track_caller]
fn fleet(example: &Path) -> Fleet {
    let mut fleet = Fleet::prepare();
    for identity in IDENTITIES {
        let name = identity.0;
        let joined = fleet.join(name);
        let key = joined
            .split(|c: char| c.is_whitespace() || c == '"')
            .find(|word| word.starts_with("ed25519:"))
            .unwrap();
        let file = cluster_file(identity, &format!(", publicKeys: ['{key}']"));
        fleet.repository.write(&format!("clusters/{name}.yaml"), file);
        fleet.start_agent(name);
    }
    fleet.repository.copy(example, "example");
    fleet.start_hub(&["--recovery-grace-seconds", "1"]);
    fleet
}

/// A unit with one of Clusternet's definitions of custom resources, for every cluster.
fn define(fleet: &Fleet, inputs: &Path, file: &str) {
    let definition = std::fs::read(inputs.join("clusternet/manifests/crds").join(file)).unwrap();
    fleet.repository.write(&format!("feeds/definitions/{file}"), definition);
    let unit = subscription("default", "definitions");
    fleet.repository.write("subscriptions/definitions.yaml", unit);
}

#[track_caller]
fn until_replicas(fleet: &Fleet, cluster: &str, deployment: (&str, &str), replicas: u64) {
    let (namespace, name) = deployment;
    let object = (namespace, &*format!("deployment/{name}"));
    fleet.until_field(cluster, object, "/spec/replicas", replicas);
    fleet.until_field(cluster, object, "/status/readyReplicas", replicas);
}

#[test]
fn static_dividing_is_delivered() {
    with_inputs(1, |inputs| {
        let fleet = fleet(&inputs.join("clusternet/examples/static-dividing-scheduling"));
        fleet.push("Divide", &[]);
        until_replicas(&fleet, "amsterdam", ("bar", "my-nginx"), 2);
        until_replicas(&fleet, "bogota", ("bar", "my-nginx"), 4);
        assert!(fleet.cluster("bogota").has("bar", "service/my-nginx-svc"));
        assert!(
            !fleet.cluster("colombo").has("", "namespace/bar"),
            "it was not asked for"
        );
    });
}

#[test]
fn replication_is_delivered_without_its_chart() {
    with_inputs(1, |inputs| {
        let fleet = fleet(&inputs.join("clusternet/examples/replication-scheduling"));
        fleet.push("Replicate", &[]);
        until_replicas(&fleet, "amsterdam", ("foo", "my-nginx"), 3);
        let nginx = fleet.cluster("amsterdam").get("foo", "deployment/my-nginx").unwrap();
        let containers = &nginx["spec"]["template"]["spec"]["containers"];
        let images = [&containers[0]["image"], &containers[1]["image"]];
        assert_eq!(images, ["nginx:1.14.0-alpine", "redis:6.2.5"]);
        assert_eq!(nginx["metadata"]["annotations"]["foo"], "bar");
        assert_eq!(nginx["metadata"]["labels"]["deployed-in-cluster"], "clusternet-5l82l");
        let placement = fleet
            .repository
            .read("flotilla/released", "placements/default/app-demo.yaml");
        assert!(placement.is_some(), "{:?}", fleet.repository.files("flotilla/released"));
    });
}

#[test]
fn a_unit_with_a_custom_resource_is_delivered_beside_its_definition() {
    with_inputs(1, |inputs| {
        let fleet = fleet(&inputs.join("clusternet/examples/scheduling-with-mcs-api"));
        define(&fleet, inputs, "multicluster.x-k8s.io_serviceexports.yaml");
        fleet.push("Export a service", &[]);
        for (cluster, replicas) in [("amsterdam", 2), ("bogota", 4)] {
            until_replicas(&fleet, cluster, ("baz", "nginx-app"), replicas);
            let export = ("baz", "serviceexports.multicluster.x-k8s.io/nginx-svc");
            fleet.until_field(cluster, export, "/metadata/name", "nginx-svc");
        }
    });
}

#[test]
fn node_features_divide_by_label_while_the_chart_waits() {
    with_inputs(1, |inputs| {
        let fleet = fleet(&inputs.join("clusternet/examples/scheduling-with-nfd"));
        define(&fleet, inputs, "nodefeaturerule-crd.yaml");
        fleet.push("Divide by label", &[]);
        for cluster in ["bogota", "colombo"] {
            until_replicas(&fleet, cluster, ("nfd-app-ns", "my-nginx-nfd"), 3);
        }
        // The chart that is not delivered yet does not hold up the rest of its unit.
        let rule = ("", "nodefeaturerules.nfd.k8s-sigs.io/label-aggregate-rule");
        fleet.until_field("colombo", rule, "/metadata/name", "label-aggregate-rule");
        assert!(fleet.cluster("colombo").has("", "namespace/node-feature-discovery"));
    });
}

/// What `flotilla plan` says about an example.
fn planned(inputs: &Path, example: &str, more: &[(&str, &str)]) -> Value {
    let repository = Repository::empty();
    for identity in IDENTITIES {
        repository.write(&format!("clusters/{}.yaml", identity.0), cluster_file(identity, ""));
    }
    repository.copy(&inputs.join("clusternet/examples").join(example), "example");
    repository.push_files("An example", more);
    plan_json(&repository)
}

#[test]
fn what_cannot_be_placed_is_told_with_its_place() {
    with_inputs(2, |inputs| {
        for (example, severity, words) in [
            // Nobody is asked here what room clusters have.
            ("dynamic-dividing-scheduling", "Warning", "unplaced 6 of 6 replicas"),
            ("fieldpatch", "Error", "my-server"),
        ] {
            let plan = planned(inputs, example, &[]);
            let findings = plan["findings"].as_array().unwrap();
            let found = findings.iter().any(|finding| {
                finding["severity"] == severity
                    && finding["file"] == "example/subscription.yaml"
                    && finding["line"].as_u64() > Some(0)
                    && finding["message"]
                        .as_str()
                        .is_some_and(|message| message.contains(words))
            });
            assert!(found, "{example}: {findings:#?}");
        }
    });
}

#[test]
fn a_chart_of_an_oci_registry_is_described() {
    with_inputs(1, |inputs| {
        let unit = "apiVersion: apps.clusternet.io/v1alpha1\nkind: Subscription\n\
                    metadata: {name: mysql, namespace: default}\n\
                    spec:\n  subscribers: [{clusterAffinity: {matchLabels: {region: ap-beijing}}}]\n  \
                    feeds: [{apiVersion: apps.clusternet.io/v1alpha1, kind: HelmChart, name: mysql, namespace: default}]\n";
        let plan = planned(inputs, "oci", &[("subscriptions/mysql.yaml", unit)]);
        assert_eq!(plan["units"][0]["unit"], "default/mysql", "{plan:#}");
        let group = &plan["units"][0]["groups"][0];
        assert_eq!(group["clusters"], serde_json::json!(["bogota"]));
        assert_eq!(
            group["objects"][0]["object"],
            "fleet.flotilla.dev/HelmChart/default/mysql"
        );
    });
}
