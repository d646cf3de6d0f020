//! What the first push brings.

use super::support::*;

const LOCALIZATION: &str = "\
apiVersion: fleet.flotilla.dev/v1alpha1
kind: Localization
metadata: {namespace: bogota, name: greeting}
spec:
  feed: {apiVersion: v1, kind: ConfigMap, namespace: shop, name: greeting}
  overrides:
    - {name: words, type: MergePatch, value: '{\"data\": {\"text\": \"hola\"}}'}
";

#[test]
fn first_push_reaches_three_clusters() {
    let fleet = Fleet::start();
    let commit = fleet.push(
        "Greet",
        &[
            ("subscriptions/shop/web.yaml", &subscription("shop", "web")),
            ("feeds/web/namespace.yaml", &namespace("shop")),
            ("feeds/web/greeting.yaml", &config_map("shop", "greeting", "hello")),
            ("localizations/bogota.yaml", LOCALIZATION),
        ],
    );
    fleet.until_text(&["amsterdam", "colombo"], ("shop", "greeting"), "hello");
    fleet.until_text(&["bogota"], ("shop", "greeting"), "hola");
    fleet.until_released(&commit);
    let files = fleet.repository.files("flotilla/released");
    let placement = "placements/shop/web.yaml".to_owned();
    assert!(files.contains(&placement), "{files:?}");
}

/// A cluster's file that names a context of the hub's kubeconfig.
fn by_kubeconfig(name: &str, context: &str) -> String {
    format!(
        "apiVersion: fleet.flotilla.dev/v1alpha1
kind: ManagedCluster
metadata: {{name: {name}}}
spec: {{kubeconfigContext: {context}}}
"
    )
}

#[test]
fn a_cluster_by_kubeconfig_needs_no_agent() {
    let mut fleet = Fleet::prepare();
    fleet.push(
        "Greet",
        &[
            ("clusters/amsterdam.yaml", &by_kubeconfig("amsterdam", "nowhere")),
            ("clusters/colombo.yaml", &by_kubeconfig("colombo", "colombo")),
            ("subscriptions/shop/web.yaml", &subscription("shop", "web")),
            ("feeds/web/namespace.yaml", &namespace("shop")),
            ("feeds/web/greeting.yaml", &config_map("shop", "greeting", "hello")),
        ],
    );
    let kubeconfig = fleet.cluster("colombo").kubeconfig().display().to_string();
    // Amsterdam never comes.
    fleet.start_hub(&[&["--kubeconfig", &kubeconfig][..], &NO_GRACE].concat());
    fleet.start_agent("bogota");
    fleet.until_text(&["bogota", "colombo"], GREETING, "hello");
    // A context that the kubeconfig does not have is that cluster's trouble alone.
    fleet.until_hub_logged("Could not reach a cluster.");
    assert_eq!(fleet.text("amsterdam", GREETING), None);

    fleet.repository.remove("clusters/colombo.yaml");
    fleet.push(
        "Let Colombo go",
        &[("feeds/web/greeting.yaml", &config_map("shop", "greeting", "hi"))],
    );
    fleet.until_text(&["bogota"], GREETING, "hi");
    assert_eq!(
        fleet.text("colombo", GREETING).as_deref(),
        Some("hello"),
        "what it has stays"
    );
    fleet.push(
        "Have Colombo back",
        &[("clusters/colombo.yaml", &by_kubeconfig("colombo", "colombo"))],
    );
    fleet.until_text(&["colombo"], GREETING, "hi");
}
