//! Objects near etcd's request limit, and above it.

use reconciler::wire::{ObjectState, UnitState};
use serde_json::{Value, json};

use super::delivery::*;

fn padded(name: &str, bytes: usize) -> Value {
    config_map("default", name, &"x".repeat(bytes))
}

#[test]
fn objects_near_the_request_limit_are_applied_and_one_above_it_fails_alone() {
    let cluster = cluster("large");
    let mut applier = Applier::start(&cluster, "large");
    // A ConfigMap may hold a MiB; a custom resource of any size is bounded by etcd alone.
    let mut above = widget("default", "above");
    above["metadata"]["annotations"] = json!({"note": "small"});
    above["spec"] = json!({"size": 1, "text": "x".repeat(1_700_000)});
    let mut definition = widgets();
    let schema = "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/text";
    let properties = definition
        .pointer_mut(schema.trim_end_matches("/text"))
        .expect("it has properties");
    properties["text"] = json!({"type": "string"});
    let unit = vec![
        definition,
        above,
        padded("near", 1_048_000),
        padded("also-near", 1_000_000),
        config_map("default", "small", "1"),
    ];
    applier.deliver(&[("shop/web", unit)]);
    let report = applier.until_unit("shop/web", UnitState::Failed);
    assert_eq!(report.counts.applied, 4, "{report:#?}");
    let refused = result(&report, "above");
    assert_eq!(refused.state, ObjectState::Failed);
    assert!(refused.message.contains("too large"), "{}", refused.message);
    let near = cluster.get("default", "configmap/near").unwrap();
    assert_eq!(near["data"]["value"].as_str().map(str::len), Some(1_048_000));
    applier.stop();
}
