//! Clusternet's examples, each folder a repository of its own, unchanged: what load and plan make of them.
//!
//! The clusters carry the ids, names and labels that the examples ask for.

use std::path::Path;
use std::sync::Arc;

use render::capacity::{Capacity, NodeGroup, Nodes, Resources};
use render::load::load;
use render::plan::{Reports, plan};
use render::schedule::Report;
use render::{ClusterName, Digest, Memo, Plan, Previous, Published, Revision, Snapshot, SourceTree};

use crate::inputs::with_inputs;

const FOLDERS: usize = 8;

/// The chart of the folder `oci` has no Subscription there.
const SUBSCRIPTION_OF_THE_CHART: &str = "\
apiVersion: apps.clusternet.io/v1alpha1
kind: Subscription
metadata: {name: mysql, namespace: default}
spec:
  subscribers: [{clusterAffinity: {matchLabels: {region: ap-beijing}}}]
  feeds: [{apiVersion: apps.clusternet.io/v1alpha1, kind: HelmChart, name: mysql, namespace: default}]
";

/// Registered beside every example.
const CLUSTERS: [&str; 3] = [
    "metadata: {name: clusternet-5l82l, labels: {region: ap-shanghai}}\n\
     spec: {clusterId: dc91021d-2361-4f6d-a404-7c33b9e01118}",
    "metadata: {name: area1-cluster, labels: {region: ap-beijing, node.clusternet.io/sample-key: sample-value}}\n\
     spec: {clusterId: 5f9da921-0437-4fea-a89d-42aa1ede9b25}",
    "metadata: {name: area2-cluster, labels: {node.clusternet.io/sample-key: sample-value}}\n\
     spec: {clusterId: d1b34d4c-9deb-4b3b-949d-5454eb35b929}",
];

struct Outcome {
    plan: Plan,
    /// Reasons of load's and the plan's Errors.
    errors: Vec<String>,
}

fn outcome(folder: &Path) -> Outcome {
    let mut files = Vec::new();
    collect(folder, folder, &mut files);
    for (index, cluster) in CLUSTERS.iter().enumerate() {
        let file = format!("apiVersion: clusters.clusternet.io/v1beta1\nkind: ManagedCluster\n{cluster}\n");
        files.push((format!("clusters/{index}.yaml"), file.into_bytes()));
    }
    if folder.ends_with("oci") {
        files.push(("subscription.yaml".to_owned(), SUBSCRIPTION_OF_THE_CHART.into()));
    }
    let revision = Revision::parse("0".repeat(40)).expect("it is a valid revision");
    let (fleet, mut findings) = load(&SourceTree::from_files(revision.clone(), files), &Previous::default());
    let snapshot = Snapshot {
        revision,
        fleet: Arc::new(fleet),
        reports: rooms(),
        moves: Default::default(),
        chart_previews: render::chart::Previews::default(),
        previous: Arc::new(Published::default()),
        now: 0,
    };
    let plan = plan(&snapshot, &mut Memo::default());
    findings.extend(plan.findings.iter().cloned());
    let errors = findings.into_iter().filter(render::Finding::is_error);
    Outcome {
        errors: errors.map(|finding| finding.to_string()).collect(),
        plan,
    }
}

/// Room for four of the examples' replicas on each cluster, by processor.
fn rooms() -> Reports {
    let report = |name: &str| {
        let all = Resources::from([("cpu", 2_000), ("memory", 1 << 40), ("pods", 110)]);
        let group = NodeGroup {
            count: 1,
            allocatable: all.clone(),
            free: all,
            ..NodeGroup::default()
        };
        let capacity = Capacity {
            version: Capacity::VERSION,
            nodes: Nodes(vec![group]),
            ..Capacity::default()
        };
        let report = Report {
            capacity: Arc::new(capacity),
            at: 0,
            doubt: None,
        };
        (ClusterName::parse(name).expect("it is a valid name"), report)
    };
    Reports {
        clusters: ["clusternet-5l82l", "area1-cluster", "area2-cluster"]
            .map(report)
            .into(),
        ..Reports::default()
    }
}

fn collect(root: &Path, folder: &Path, files: &mut Vec<(String, Vec<u8>)>) {
    for entry in std::fs::read_dir(folder).expect("the example is readable") {
        let path = entry.expect("the example is readable").path();
        if path.is_dir() {
            collect(root, &path, files);
        } else {
            let name = path
                .strip_prefix(root)
                .expect("it lies in the folder")
                .display()
                .to_string();
            files.push((name, std::fs::read(&path).expect("the example is readable")));
        }
    }
}

/// Unit and cluster, with replicas of its divided objects and the names of all its objects.
fn placed(plan: &Plan) -> Vec<String> {
    let mut lines = Vec::new();
    for (key, unit) in &plan.units {
        for name in unit.clusters.keys() {
            let (placement, variant) = unit.entry(name).expect("a placement names a variant of its unit");
            let replicas: Vec<_> = placement.replicas.values().collect();
            lines.push(format!(
                "{key} on {name}: {replicas:?} {}",
                objects(plan, variant.digest)
            ));
        }
    }
    lines
}

fn objects(plan: &Plan, digest: Digest) -> String {
    let description = &plan.contents[&digest];
    let names = description
        .objects
        .iter()
        .map(|object| format!("{}/{}", object.key.kind, object.key.name));
    names.collect::<Vec<_>>().join(" ")
}

#[track_caller]
fn check(root: &Path, folder: &str, expected: &[&str]) {
    let outcome = outcome(&root.join(folder));
    assert_eq!(outcome.errors, [""; 0], "{folder} has no errors");
    assert_eq!(placed(&outcome.plan), expected, "{folder}");
}

/// Nothing is placed, and the errors say these words.
#[track_caller]
fn check_refused(root: &Path, folder: &str, words: &[&str]) {
    let outcome = outcome(&root.join(folder));
    assert_eq!(placed(&outcome.plan), [""; 0], "{folder} places nothing");
    for word in words {
        let said = outcome.errors.iter().any(|error| error.contains(word));
        assert!(said, "{folder}: no error says {word:?}: {:#?}", outcome.errors);
    }
}

#[test]
fn clusternets_examples_work_unchanged_or_are_refused_with_the_reason() {
    with_inputs(FOLDERS, |inputs| {
        let root = inputs.join("clusternet/examples");
        check(
            &root,
            "static-dividing-scheduling",
            &[
                "default/static-dividing-scheduling-demo on area1-cluster: [4] Namespace/bar Service/my-nginx-svc Deployment/my-nginx",
                "default/static-dividing-scheduling-demo on clusternet-5l82l: [2] Namespace/bar Service/my-nginx-svc Deployment/my-nginx",
            ],
        );
        check(
            &root,
            "replication-scheduling",
            &[
                "default/app-demo on clusternet-5l82l: [] Namespace/foo Service/my-nginx-svc Deployment/my-nginx HelmChart/mysql",
            ],
        );
        check(
            &root,
            "scheduling-with-mcs-api",
            &[
                "default/scheduling-with-mcs-api on area1-cluster: [4] Namespace/baz Service/nginx-svc Deployment/nginx-app ServiceExport/nginx-svc",
                "default/scheduling-with-mcs-api on clusternet-5l82l: [2] Namespace/baz Service/nginx-svc Deployment/nginx-app ServiceExport/nginx-svc",
            ],
        );
        // Without weights upstream gives each cluster all six replicas.
        check(
            &root,
            "scheduling-with-nfd",
            &[
                "default/nfd-all-children on area2-cluster: [] Namespace/node-feature-discovery HelmChart/node-feature-discovery NodeFeatureRule/label-aggregate-rule",
                "default/scheduling-with-nfd-demo on area1-cluster: [3] Namespace/nfd-app-ns Deployment/my-nginx-nfd",
                "default/scheduling-with-nfd-demo on area2-cluster: [3] Namespace/nfd-app-ns Deployment/my-nginx-nfd",
            ],
        );
        check(&root, "oci", &["default/mysql on area1-cluster: [] HelmChart/mysql"]);
        check(
            &root,
            "dynamic-dividing-scheduling",
            &[
                "default/dynamic-dividing-scheduling-demo on area1-cluster: [2] Namespace/qux Service/my-nginx-svc Deployment/my-nginx",
                "default/dynamic-dividing-scheduling-demo on area2-cluster: [2] Namespace/qux Service/my-nginx-svc Deployment/my-nginx",
                "default/dynamic-dividing-scheduling-demo on clusternet-5l82l: [2] Namespace/qux Service/my-nginx-svc Deployment/my-nginx",
            ],
        );
        // Upstream's minimum is a most: two clusters of a region that has one are taken for one there. Here they are too
        // few, and nothing of that Subscription is placed.
        check(
            &root,
            "scheduling-group",
            &[
                "default/dynamic-dividing-scheduling-demo on area1-cluster: [3] Namespace/qux Service/my-nginx-svc Deployment/my-nginx",
                "default/dynamic-dividing-scheduling-demo on clusternet-5l82l: [3] Namespace/qux Service/my-nginx-svc Deployment/my-nginx",
                "default/static-dividing-scheduling-demo on area1-cluster: [2] Namespace/qux Service/my-nginx-svc Deployment/my-nginx",
                "default/static-dividing-scheduling-demo on clusternet-5l82l: [4] Namespace/qux Service/my-nginx-svc Deployment/my-nginx",
            ],
        );
        check_refused(&root, "fieldpatch", &["my-server"]);
    });
}
