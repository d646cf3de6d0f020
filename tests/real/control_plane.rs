//! One real cluster does what the journeys rely on.

use flotilla_tests::{ControlPlane, Options, eventually, three_clusters, wait};

const DEPLOYMENT: &str = r#"
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: shop}
spec:
  replicas: 3
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: "registry.example/web:1"}]}
"#;

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap()
}

#[test]
fn deployments_become_ready_and_namespaces_can_be_deleted() {
    let clusters = three_clusters();
    let cluster = &clusters[0];
    cluster.kubectl(&["create", "namespace", "shop"]).expect_ok();
    cluster.apply(DEPLOYMENT);
    cluster
        .kubectl(&[
            "create",
            "configmap",
            "settings",
            "--namespace=shop",
            "--from-literal=color=blue",
        ])
        .expect_ok();
    assert_eq!(
        cluster.get("shop", "configmap/settings").unwrap()["data"]["color"],
        "blue"
    );
    let version = runtime().block_on(async { cluster.client().await.apiserver_version().await });
    assert_eq!(
        version.unwrap().major,
        "1",
        "a program connects with the kubeconfig as well"
    );
    eventually(wait::LONG, "the Deployment is ready", || {
        match cluster.get("shop", "deployment/web")?["status"]["readyReplicas"].as_u64() {
            Some(3) => Ok(()),
            ready => Err(format!("{ready:?} replicas are ready")),
        }
    });
    cluster
        .kubectl(&["delete", "namespace", "shop", "--timeout=60s"])
        .expect_ok();
    assert!(!cluster.has("", "namespace/shop"), "a deleted namespace is gone");
}

#[test]
fn a_cluster_that_went_down_comes_back_with_its_objects() {
    let mut cluster = ControlPlane::start("lone", Options::default());
    cluster.kubectl(&["create", "configmap", "settings"]).expect_ok();
    cluster.stop_apiserver();
    cluster
        .get("default", "configmap/settings")
        .expect_err("nobody answers for a cluster that is down");
    cluster.start_apiserver();
    assert!(
        cluster.has("default", "configmap/settings"),
        "its objects are still there"
    );
}

#[test]
fn rbac_judges_everyone_but_the_administrator() {
    let options = Options {
        controller_manager: false,
        ..Options::default()
    }
    .user("reader", &["readers"]);
    let cluster = ControlPlane::start("guarded", options);
    let refused = cluster.kubectl_as("reader", &["get", "secrets", "--all-namespaces"]);
    assert!(
        refused.stderr.contains("Forbidden"),
        "an unknown caller is refused: {}",
        refused.stderr
    );
    cluster
        .kubectl(&["create", "clusterrole", "look", "--verb=list", "--resource=configmaps"])
        .expect_ok();
    cluster
        .kubectl(&[
            "create",
            "clusterrolebinding",
            "look",
            "--clusterrole=look",
            "--group=readers",
        ])
        .expect_ok();
    eventually(wait::LONG, "a bound caller may read", || {
        cluster
            .kubectl_as("reader", &["get", "configmaps", "--all-namespaces"])
            .ok()
    });
    let refused = cluster.kubectl_as("reader", &["get", "secrets", "--all-namespaces"]);
    assert!(
        refused.stderr.contains("Forbidden"),
        "and nothing else: {}",
        refused.stderr
    );
}

#[test]
fn the_shared_clusters_are_as_new_for_the_next_journey() {
    let clusters = three_clusters();
    clusters[1].kubectl(&["create", "namespace", "left-behind"]).expect_ok();
    clusters[1].kubectl(&["create", "configmap", "left-behind"]).expect_ok();
    drop(clusters);
    let clusters = three_clusters();
    assert!(
        !clusters[1].has("", "namespace/left-behind"),
        "namespaces of the journey before are gone"
    );
    assert!(
        !clusters[1].has("default", "configmap/left-behind"),
        "and so is what it left in the default one"
    );
}
