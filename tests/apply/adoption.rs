//! Objects that are there before Flotilla delivers them.

use flotilla_tests::{ControlPlane, eventually, wait};
use reconciler::wire::UnitState;
use serde_json::{Value, json};

use super::delivery::*;

/// What a field manager owns of an object, by its applies or its updates.
fn owned(object: &Value, manager: &str) -> Value {
    let entries = object["metadata"]["managedFields"].as_array().unwrap();
    let found = entries.iter().find(|entry| entry["manager"] == manager);
    found.map(|entry| entry["fieldsV1"].clone()).unwrap_or_default()
}

/// An object with the owners of its fields, which `kubectl get` hides.
fn with_owners(cluster: &ControlPlane, resource: &str) -> Value {
    let arguments = ["get", resource, "-o", "json", "--show-managed-fields"];
    serde_json::from_str(&cluster.kubectl(&arguments).expect_ok()).unwrap()
}

#[test]
fn an_object_that_is_nobodys_is_adopted_field_by_field() {
    let cluster = cluster("adopted");
    let mut theirs = deployment("default", "web", 3);
    theirs["metadata"]["annotations"] = json!({"x": "theirs", "y": "both"});
    cluster.apply(&theirs.to_string());
    let uid = metadata(&cluster, "default", "deployment/web", "uid");
    let last_applied = "/metadata/annotations/kubectl.kubernetes.io~1last-applied-configuration";
    let written = field(&cluster, "deployment/web", last_applied);
    let mut ours = deployment("default", "web", 2);
    ours["metadata"]["annotations"] = json!({"y": "both"});
    let mut applier = Applier::start(&cluster, "adopted");
    applier.deliver(&[("shop/web", vec![ours.clone()])]);
    let report = applier.until_unit("shop/web", UnitState::Applied);
    assert!(
        report.message.contains("adopted") && report.message.contains("web"),
        "{report:#?}"
    );
    let live = with_owners(&cluster, "deployment/web");
    assert_eq!(live["metadata"]["uid"], uid);
    assert_eq!(live["spec"]["replicas"], 2, "what Git sets wins");
    assert_eq!(
        live["metadata"]["annotations"]["x"], "theirs",
        "what Git does not set stays"
    );
    assert_eq!(
        live["metadata"]["annotations"]["kubectl.kubernetes.io/last-applied-configuration"],
        written
    );
    // Exactly the fields of the manifest are ours.
    let fields = owned(&live, "flotilla");
    let annotations: Vec<_> = fields["f:metadata"]["f:annotations"]
        .as_object()
        .unwrap()
        .keys()
        .collect();
    assert_eq!(annotations, ["f:fleet.flotilla.dev/unit", "f:y"]);
    assert!(fields["f:spec"]["f:replicas"].is_object(), "{fields}");
    assert!(
        fields["f:spec"]["f:strategy"].is_null(),
        "defaults are nobody's: {fields}"
    );
    let before = owned(&live, "kubectl-client-side-apply");
    assert!(before["f:spec"]["f:replicas"].is_null(), "{before}");
    assert!(before["f:metadata"]["f:annotations"]["f:x"].is_object(), "{before}");
    // A field that leaves Git leaves the object.
    ours["metadata"].as_object_mut().unwrap().remove("annotations");
    applier.deliver(&[("shop/web", vec![ours])]);
    let report = applier.until_unit("shop/web", UnitState::Applied);
    assert!(!report.message.contains("adopted"), "it is told once: {report:#?}");
    assert_eq!(
        field(&cluster, "deployment/web", "/metadata/annotations/y"),
        json!(null)
    );
    assert_eq!(field(&cluster, "deployment/web", "/metadata/annotations/x"), "theirs");
    applier.stop();
}

#[test]
fn objects_of_other_tools_move_over_without_restarting_a_pod() {
    let cluster = cluster("migrated");
    let tools = [
        ("kubectl-client-side-apply", false),
        ("kubectl", true),
        ("kustomize-controller", true),
        ("argocd-controller", true),
        ("clusternet-agent", false),
    ];
    let object = |name: &str| {
        let mut object = deployment("default", name, 0);
        object["metadata"]["labels"] = json!({"tier": "front"});
        object
    };
    for (tool, server_side) in tools {
        write_as(&cluster, tool, server_side, &object(tool));
    }
    let before: Vec<_> = tools
        .iter()
        .map(|(tool, _)| field(&cluster, &format!("deployment/{tool}"), "/metadata/uid"))
        .collect();
    let generations = eventually(wait::LONG, "each has rolled out", || {
        let generations = cluster.names("default", "replicaset");
        if generations.len() == tools.len() {
            Ok(generations)
        } else {
            Err(format!("{generations:?}"))
        }
    });
    let all = |object: &dyn Fn(&str) -> Value| tools.iter().map(|(tool, _)| object(tool)).collect::<Vec<_>>();
    let mut applier = Applier::start(&cluster, "migrated");
    applier.deliver(&[("shop/web", all(&object))]);
    applier.until_unit("shop/web", UnitState::Applied);
    for ((tool, _), uid) in tools.iter().zip(&before) {
        let live = with_owners(&cluster, &format!("deployment/{tool}"));
        assert_eq!(&live["metadata"]["uid"], uid);
        let left = owned(&live, tool);
        // Who made it by an update owns its defaults too, and keeps those.
        let container = &left["f:spec"]["f:template"]["f:spec"]["f:containers"]["k:{\"name\":\"web\"}"];
        assert!(
            container["f:image"].is_null() && left["f:metadata"]["f:labels"]["f:tier"].is_null(),
            "{tool} still owns {left}"
        );
    }
    // A changed template would have made another one.
    assert_eq!(cluster.names("default", "replicaset"), generations, "no pod restarts");
    // What leaves Git now has no other owner that would keep it.
    applier.deliver(&[("shop/web", all(&|name| deployment("default", name, 0)))]);
    applier.until_unit("shop/web", UnitState::Applied);
    for (tool, _) in tools {
        let tier = field(&cluster, &format!("deployment/{tool}"), "/metadata/labels/tier");
        assert_eq!(tier, json!(null), "{tool}");
    }
    applier.stop();
}
