//! ApplySets as a view: what other tools find, and that nothing is written where nobody asked for it.

use flotilla_tests::{ControlPlane, eventually, wait};
use reconciler::wire::UnitState;
use render::model::ApplyPolicy;
use serde_json::Value;

use super::delivery::*;

/// Of unit shop/web with its parent in flotilla-system, as another program made it.
const ID: &str = "applyset-KqfjHtI91GCCv0ze5n4V2NnwswLnbWv1AG_kjbBlxCk-v1";

const PARENT: &str = "configmap/applyset.shop.web";

fn switched(on: bool) -> ApplyPolicy {
    ApplyPolicy {
        apply_set_labels: on,
        ..ApplyPolicy::default()
    }
}

fn unit() -> Vec<Value> {
    vec![
        namespace("shop"),
        config_map("shop", "a", "1"),
        deployment("shop", "web", 1),
    ]
}

/// What kubectl finds by the label.
#[track_caller]
fn members(cluster: &ControlPlane) -> Vec<String> {
    let label = format!("applyset.kubernetes.io/part-of={ID}");
    let kinds = "namespaces,configmaps,deployments.apps";
    let found = cluster.kubectl(&["get", kinds, "--all-namespaces", "-l", &label, "-o", "name"]);
    found.expect_ok().lines().map(str::to_owned).collect()
}

#[track_caller]
fn uid(cluster: &ControlPlane) -> String {
    metadata(cluster, "shop", "configmap/a", "uid")
}

#[test]
fn members_are_found_by_their_label_while_it_is_switched_on() {
    let cluster = cluster("apply-set");
    let mut applier = Applier::start(&cluster, "apply-set");
    applier.deliver(&[("shop/web", unit())]);
    applier.until_unit("shop/web", UnitState::Applied);
    assert_eq!(members(&cluster), Vec::<String>::new(), "nobody asked for it");
    assert!(!cluster.has("flotilla-system", PARENT));
    let before = uid(&cluster);

    applier.govern("shop/web", switched(true));
    applier.deliver(&[("shop/web", unit())]);
    applier.until_unit("shop/web", UnitState::Applied);
    assert_eq!(
        members(&cluster),
        ["namespace/shop", "configmap/a", "deployment.apps/web"]
    );
    let parent = cluster.get("flotilla-system", PARENT).expect("it has a parent");
    let metadata_of = |pointer: &str| parent.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    assert_eq!(metadata_of("/metadata/labels/applyset.kubernetes.io~1id"), ID);
    let annotation = |name: &str| metadata_of(&format!("/metadata/annotations/applyset.kubernetes.io~1{name}"));
    assert_eq!(
        annotation("contains-group-kinds"),
        "ConfigMap,Deployment.apps,Namespace"
    );
    assert_eq!(annotation("additional-namespaces"), "shop");
    assert!(annotation("tooling").starts_with("flotilla/v"), "{parent}");
    let version = metadata(&cluster, "flotilla-system", PARENT, "resourceVersion");
    applier.stop();

    // Another process finds all as it should be.
    let mut applier = Applier::start(&cluster, "apply-set-again");
    applier.govern("shop/web", switched(true));
    applier.deliver(&[("shop/web", unit())]);
    applier.until_unit("shop/web", UnitState::Applied);
    assert_eq!(
        metadata(&cluster, "flotilla-system", PARENT, "resourceVersion"),
        version
    );

    applier.govern("shop/web", switched(false));
    applier.deliver(&[("shop/web", unit())]);
    applier.until_unit("shop/web", UnitState::Applied);
    eventually(wait::LONG, "the labels are gone", || {
        let found = members(&cluster);
        found.is_empty().then_some(()).ok_or(format!("{found:?}"))
    });
    assert!(!cluster.has("flotilla-system", PARENT), "and so is the parent");
    assert_eq!(uid(&cluster), before, "nothing was made anew by it");
    applier.stop();
}

#[test]
fn a_parent_goes_after_its_last_member() {
    let cluster = cluster("apply-set-gone");
    let mut applier = Applier::start(&cluster, "apply-set-gone");
    applier.govern("shop/web", switched(true));
    applier.deliver(&[("shop/web", unit())]);
    applier.until_unit("shop/web", UnitState::Applied);
    assert!(cluster.has("flotilla-system", PARENT));
    applier.deliver(&[]);
    applier.until_gone("shop/web");
    eventually(wait::LONG, "the parent is gone", || {
        match cluster.has("flotilla-system", PARENT) {
            true => Err("it is there".to_owned()),
            false => Ok(()),
        }
    });
    applier.stop();
}
