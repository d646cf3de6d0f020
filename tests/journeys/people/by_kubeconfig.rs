//! People who ask a cluster that has no agent: the hub reaches it by its own kubeconfig, and reads in their names.

use std::fs;

use flotilla_tests::eventually;

use super::super::support::*;
use super::{ACCESS, Callers};

const FILE: &str = "apiVersion: fleet.flotilla.dev/v1alpha1
kind: ManagedCluster
metadata: {name: colombo}
spec: {kubeconfigContext: colombo}
";

#[test]
fn a_cluster_by_kubeconfig_is_read_too() {
    let mut fleet = Fleet::prepare();
    let callers = Callers::new(fleet.folder());
    fleet.push(
        "Let people ask colombo",
        &[
            ("clusters/colombo.yaml", FILE),
            ("access/people.yaml", ACCESS),
            ("subscriptions/shop/web.yaml", &subscription("shop", "web")),
            ("feeds/web/namespace.yaml", &namespace("shop")),
            ("feeds/web/greeting.yaml", &config_map("shop", "greeting", "hello")),
        ],
    );
    let kubeconfig = fleet.cluster("colombo").kubeconfig().display().to_string();
    let door = callers.hub_flags();
    let door: Vec<_> = door.iter().map(String::as_str).collect();
    let own = ["--kubeconfig", &kubeconfig, "--allow-interactive"];
    fleet.start_hub(&[&door[..], &own, &NO_GRACE].concat());
    fleet.until_text(&["colombo"], GREETING, "hello");
    callers.write_kubeconfigs(&["colombo"]);
    let ask = |who: &str, arguments: &[&str]| callers.kubectl(who, "colombo", arguments);
    // What access/ says has to be in the cluster first, whose own RBAC judges too.
    let read = [
        "get",
        "configmap",
        "greeting",
        "-n",
        "shop",
        "-o",
        "jsonpath={.data.text}",
    ];
    let text = eventually(LIMIT, "ada reads", || ask("ada", &read).ok());
    assert_eq!(text, "hello");
    let ada = ask("ada", &["auth", "whoami"]).expect_ok();
    assert!(ada.contains("flotilla:ada") && ada.contains("flotilla:ops"), "{ada}");
    let bob = ask("bob", &read);
    assert!(bob.code() == Some(1) && bob.stderr.contains("colombo"), "{bob:?}");
    fs::write(fleet.folder().join("bye.yaml"), config_map("shop", "greeting", "bye")).unwrap();
    let written = ask("ada", &["apply", "-f", &callers.path("bye.yaml")]);
    assert!(
        written.stderr.contains("feeds/web/greeting.yaml, line 1"),
        "{written:?}"
    );
    // The hub's own credential may do anything there, and goes into no container.
    fleet.cluster("colombo").apply(
        "apiVersion: v1\nkind: Pod\nmetadata: {namespace: shop, name: teller}\n\
         spec: {containers: [{name: teller, image: teller.example/teller:1}]}\n",
    );
    let inside = ask("eve", &["exec", "teller", "-n", "shop", "--", "ls"]);
    assert!(inside.stderr.contains("has no agent"), "{inside:?}");
}
