//! What leaves a cluster, and what never does.

use flotilla_tests::{ControlPlane, eventually, wait};
use reconciler::wire::{ObjectState, UnitState};

use super::delivery::*;

#[test]
fn what_leaves_the_delivery_is_removed_with_its_namespace_last() {
    let cluster = cluster("removed");
    let mut applier = Applier::start(&cluster, "removed");
    let unit = vec![
        namespace("shop"),
        config_map("shop", "settings", "1"),
        widgets(),
        widget("shop", "w"),
    ];
    let stays = vec![config_map("default", "stays", "1")];
    applier.deliver(&[("shop/web", unit), ("shop/stays", stays.clone())]);
    applier.until_unit("shop/web", UnitState::Applied);
    applier.deliver(&[("shop/stays", stays)]);
    applier.until_gone("shop/web");
    eventually(wait::LONG, "the namespace is gone", || {
        absent(&cluster, "", "namespace/shop")
    });
    absent(&cluster, "", "customresourcedefinition/widgets.example.org").unwrap();
    assert!(cluster.has("default", "configmap/stays"));
    applier.stop();
}

fn absent(cluster: &ControlPlane, namespace: &str, resource: &str) -> Result<(), String> {
    if cluster.has(namespace, resource) {
        Err(format!("{resource} is there"))
    } else {
        Ok(())
    }
}

#[test]
fn prune_needs_proof() {
    let cluster = cluster("proof");
    let mut applier = Applier::start(&cluster, "proof");
    let names = ["recreated", "unmanaged", "disabled", "policy", "plain"];
    let unit = names.iter().map(|name| config_map("default", name, "1")).collect();
    applier.deliver(&[("shop/web", unit)]);
    applier.until_unit("shop/web", UnitState::Applied);
    applier.stop();
    let kubectl = |arguments: &[&str]| cluster.kubectl(arguments).expect_ok();
    kubectl(&["delete", "configmap", "recreated"]);
    kubectl(&["create", "configmap", "recreated"]);
    kubectl(&[
        "patch",
        "configmap",
        "unmanaged",
        "--type=json",
        "-p",
        r#"[{"op":"replace","path":"/metadata/managedFields","value":[{}]}]"#,
    ]);
    kubectl(&["annotate", "configmap", "disabled", "fleet.flotilla.dev/prune=disabled"]);
    kubectl(&["annotate", "configmap", "policy", "helm.sh/resource-policy=keep"]);
    let mut applier = Applier::start(&cluster, "proof-again");
    applier.change_lineage('a', 1);
    applier.deliver(&[]);
    let report = applier.until("the plain one is gone", |report| {
        report
            .units
            .get(&unit_key("shop/web"))
            .is_some_and(|unit| unit.counts.objects == 4)
    });
    let report = &report.units[&unit_key("shop/web")];
    for (name, reason) in [
        ("recreated", "UID"),
        ("unmanaged", "manager"),
        ("disabled", "prune"),
        ("policy", "resource-policy"),
    ] {
        let result = result(report, name);
        assert_eq!(result.state, ObjectState::Kept);
        assert!(result.message.contains(reason), "{}", result.message);
        assert!(cluster.has("default", &format!("configmap/{name}")));
    }
    assert!(!cluster.has("default", "configmap/plain"));
    applier.stop();
}

#[test]
fn an_incomplete_or_older_delivery_or_another_lineage_removes_nothing() {
    let cluster = cluster("evidence");
    let mut applier = Applier::start(&cluster, "evidence");
    let unit = || vec![config_map("default", "settings", "1")];
    applier.change_lineage('a', 5);
    applier.deliver(&[("shop/web", unit())]);
    applier.until_unit("shop/web", UnitState::Applied);
    let kept = |applier: &Applier, why: &str| {
        let report = applier.until(&format!("it is kept: {why}"), |report| {
            let unit = report.units.get(&unit_key("shop/web"));
            unit.is_some_and(|unit| unit.worst.iter().any(|result| result.message.contains(why)))
        });
        assert_eq!(report.units[&unit_key("shop/web")].worst[0].state, ObjectState::Kept);
        assert!(cluster.has("default", "configmap/settings"));
    };
    applier.deliver_with(&[], &["shop/other"]);
    kept(&applier, "not complete");
    applier.change_lineage('a', 3);
    applier.deliver(&[]);
    kept(&applier, "not newer");
    applier.change_lineage('d', 0);
    applier.deliver(&[]);
    kept(&applier, "lineage");
    // Delivered again under the new lineage, it is the new lineage's to remove.
    applier.deliver(&[("shop/web", unit())]);
    applier.until_unit("shop/web", UnitState::Applied);
    applier.deliver(&[]);
    applier.until_gone("shop/web");
    assert!(!cluster.has("default", "configmap/settings"));
    applier.stop();
}

#[test]
fn an_object_that_moves_to_another_unit_keeps_its_uid() {
    let cluster = cluster("moved");
    let mut applier = Applier::start(&cluster, "moved");
    let unit = || vec![config_map("default", "settings", "1")];
    applier.deliver(&[("shop/before", unit())]);
    applier.until_unit("shop/before", UnitState::Applied);
    let uid = metadata(&cluster, "default", "configmap/settings", "uid");
    applier.deliver(&[("shop/after", unit())]);
    applier.until_unit("shop/after", UnitState::Applied);
    applier.until_gone("shop/before");
    assert_eq!(metadata(&cluster, "default", "configmap/settings", "uid"), uid);
    applier.stop();
}

#[test]
fn an_unreadable_inventory_removes_nothing_and_is_left_as_it_is() {
    let cluster = cluster("unreadable");
    let mut applier = Applier::start(&cluster, "unreadable");
    applier.deliver(&[("shop/web", vec![config_map("default", "settings", "1")])]);
    applier.until_unit("shop/web", UnitState::Applied);
    applier.stop();
    let patch = r#"{"data":{"inventory.json":"{\"version\":1,\"uni"}}"#;
    cluster
        .kubectl(&[
            "patch",
            "configmap",
            "flotilla-inventory-00",
            "--namespace=flotilla-system",
            "--type=merge",
            "-p",
            patch,
        ])
        .expect_ok();
    let mut applier = Applier::start(&cluster, "unreadable-again");
    applier.change_lineage('a', 1);
    applier.deliver(&[("shop/new", vec![config_map("default", "new", "1")])]);
    applier.until_unit("shop/new", UnitState::Applied);
    assert!(
        applier.report().trouble.contains("flotilla-inventory-00"),
        "{:#?}",
        applier.report()
    );
    applier.deliver(&[]);
    applier.until("nothing is removed", |report| {
        let unit = report.units.get(&unit_key("shop/new"));
        unit.is_some_and(|unit| unit.worst.iter().any(|result| result.state == ObjectState::Kept))
    });
    assert!(cluster.has("default", "configmap/settings") && cluster.has("default", "configmap/new"));
    let shard = cluster
        .get("flotilla-system", "configmap/flotilla-inventory-00")
        .unwrap();
    assert_eq!(
        shard["data"]["inventory.json"], "{\"version\":1,\"uni",
        "what cannot be read is not written over"
    );
    applier.stop();
}

#[test]
fn a_finalizer_is_waited_for_and_what_it_needs_stays_meanwhile() {
    let cluster = cluster("finalized");
    let mut applier = Applier::start(&cluster, "finalized");
    let mut held = widget("shop", "w");
    held["metadata"]["finalizers"] = serde_json::json!(["example.org/held"]);
    let unit = vec![namespace("shop"), widgets(), held, deployment("shop", "controller", 0)];
    applier.deliver(&[("shop/web", unit)]);
    applier.until_unit("shop/web", UnitState::Applied);
    applier.deliver(&[]);
    applier.until("the widget is on its way out", |report| {
        let unit = report.units.get(&unit_key("shop/web"));
        unit.is_some_and(|unit| {
            unit.worst
                .iter()
                .any(|result| result.object.kind == "Widget" && result.state == ObjectState::Removing)
        })
    });
    assert!(
        cluster.has("shop", "deployment/controller"),
        "its controller is still needed"
    );
    cluster
        .kubectl(&[
            "patch",
            "widget",
            "w",
            "--namespace=shop",
            "--type=merge",
            "-p",
            r#"{"metadata":{"finalizers":null}}"#,
        ])
        .expect_ok();
    applier.until_gone("shop/web");
    eventually(wait::LONG, "the namespace is gone", || {
        absent(&cluster, "", "namespace/shop")
    });
    applier.stop();
}
