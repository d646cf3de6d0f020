//! Single objects that are suspended: neither made nor changed, put right or removed.

use std::collections::BTreeMap;

use flotilla_tests::{ControlPlane, eventually, wait};
use reconciler::wire::{ObjectState, UnitState};
use render::ObjectKey;
use render::model::{ApplyPolicy, SuspendedObject};
use serde_json::{Value, json};

use super::delivery::*;

fn held(name: &str, until: Option<i64>) -> ApplyPolicy {
    let suspended = SuspendedObject {
        object: ObjectKey::new("v1", "ConfigMap", "shop", name),
        clusters: Vec::new(),
        until,
        by: "Suspension fair (audit)".to_owned(),
    };
    ApplyPolicy {
        suspended: vec![suspended],
        ..ApplyPolicy::default()
    }
}

#[track_caller]
fn value(cluster: &ControlPlane, name: &str) -> Value {
    cluster.get("shop", &format!("configmap/{name}")).unwrap()["data"]["value"].clone()
}

fn unit(value: &str) -> Vec<Value> {
    vec![
        namespace("shop"),
        config_map("shop", "a", value),
        config_map("shop", "b", value),
    ]
}

#[test]
fn a_suspended_object_is_left_as_it_is_also_over_a_restart_and_goes_on_when_resumed() {
    let cluster = cluster("suspended");
    let mut applier = Applier::start(&cluster, "suspended");
    applier.deliver(&[("shop/web", unit("1"))]);
    applier.until_unit("shop/web", UnitState::Applied);

    applier.govern("shop/web", held("a", None));
    applier.deliver(&[("shop/web", unit("2"))]);
    let report = applier.until_unit("shop/web", UnitState::Applied);
    assert_eq!(report.counts.suspended, 1, "{report:#?}");
    let left = result(&report, "a");
    assert_eq!(left.state, ObjectState::Suspended);
    assert_eq!(left.message, "suspended by Suspension fair (audit)");
    assert_eq!(value(&cluster, "b"), "2", "the others are delivered");
    assert_eq!(value(&cluster, "a"), "1", "it is not changed");
    let without = vec![namespace("shop"), config_map("shop", "b", "3")];
    applier.deliver(&[("shop/web", without)]);
    applier.until("it is kept, and why", |report| {
        let said = format!("{report:?}");
        said.contains("Kept") && said.contains("suspended by Suspension fair (audit)")
    });
    assert_eq!(value(&cluster, "a"), "1", "nor removed");
    applier.stop();

    let mut applier = Applier::start(&cluster, "suspended-again");
    applier.govern("shop/web", held("a", None));
    cluster.kubectl(&["delete", "configmap", "a", "-n", "shop"]).expect_ok();
    applier.deliver(&[("shop/web", unit("4"))]);
    applier.until_unit("shop/web", UnitState::Applied);
    assert_eq!(value(&cluster, "b"), "4");
    assert!(
        !cluster.has("shop", "configmap/a"),
        "nor made anew, also after a restart"
    );

    applier.govern("shop/web", ApplyPolicy::default());
    applier.deliver(&[("shop/web", unit("4"))]);
    eventually(wait::LONG, "what is resumed is made again", || {
        let found = cluster.get("shop", "configmap/a")?["data"]["value"].clone();
        (found == "4").then_some(()).ok_or(format!("{found}"))
    });
    applier.stop();
}

#[test]
fn a_suspension_of_an_object_ends_at_its_time_without_anybody_saying_so() {
    let cluster = cluster("suspended-until");
    let mut applier = Applier::start_with(&cluster, "until", wait::LONG * 10);
    applier.deliver(&[("shop/web", unit("1"))]);
    applier.until_unit("shop/web", UnitState::Applied);
    let now = std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .unwrap();
    let soon = i64::try_from(now.as_secs()).unwrap() + 6;
    applier.govern("shop/web", held("a", Some(soon)));
    applier.deliver(&[("shop/web", unit("2"))]);
    let report = applier.until_unit("shop/web", UnitState::Applied);
    assert!(result(&report, "a").message.contains(", until 20"), "{report:#?}");
    eventually(wait::LONG, "its time is over", || {
        let found = value(&cluster, "a");
        (found == "2").then_some(()).ok_or(format!("{found}"))
    });
    applier.stop();
}

#[test]
fn an_annotation_in_git_suspends_its_object() {
    let cluster = cluster("suspended-by-annotation");
    let mut applier = Applier::start(&cluster, "annotation");
    applier.deliver(&[("shop/web", unit("1"))]);
    applier.until_unit("shop/web", UnitState::Applied);
    let words = BTreeMap::from([
        ("a", "fleet.flotilla.dev/reconcile"),
        ("b", "kustomize.toolkit.fluxcd.io/reconcile"),
    ]);
    let mut next = unit("2");
    for object in &mut next {
        let name = object["metadata"]["name"].as_str().unwrap_or_default().to_owned();
        if let Some(word) = words.get(name.as_str()) {
            object["metadata"]["annotations"] = json!({*word: "disabled"});
        }
    }
    next.push(config_map("shop", "c", "2"));
    applier.deliver(&[("shop/web", next)]);
    let report = applier.until_unit("shop/web", UnitState::Applied);
    assert_eq!(report.counts.suspended, 2, "{report:#?}");
    assert!(
        result(&report, "a").message.contains("fleet.flotilla.dev/reconcile"),
        "{report:#?}"
    );
    assert_eq!(value(&cluster, "c"), "2");
    assert_eq!((value(&cluster, "a"), value(&cluster, "b")), (json!("1"), json!("1")));
    applier.stop();
}

#[test]
fn what_somebody_changes_of_a_suspended_object_is_told_and_put_right_only_once_it_is_resumed() {
    let cluster = cluster("suspended-drift");
    let mut applier = Applier::start_with(&cluster, "drift", wait::LONG * 10);
    applier.deliver(&[("shop/web", unit("1"))]);
    applier.until_unit("shop/web", UnitState::Applied);
    applier.govern("shop/web", held("a", None));
    applier.deliver(&[("shop/web", unit("1"))]);
    applier.until("it is suspended", |report| {
        report.units.values().any(|unit| unit.counts.suspended == 1)
    });
    for name in ["a", "b"] {
        let patch = [
            "patch",
            "configmap",
            name,
            "-n",
            "shop",
            "--type=merge",
            "-p",
            r#"{"data": {"value": "mine"}}"#,
        ];
        cluster.kubectl(&patch).expect_ok();
    }
    applier.until("its difference is told", |report| {
        let mut drift = report.units.values().flat_map(|unit| &unit.drift);
        drift.any(|object| object.object.name == "a" && object.fields[0].path == "/data/value")
    });
    eventually(wait::LONG, "the other one is put right at once", || {
        let found = value(&cluster, "b");
        (found == "1").then_some(()).ok_or(format!("{found}"))
    });
    assert_eq!(value(&cluster, "a"), "mine", "it is left as it is");

    applier.govern("shop/web", ApplyPolicy::default());
    applier.deliver(&[("shop/web", unit("1"))]);
    eventually(wait::LONG, "what was changed meanwhile is put right", || {
        let found = value(&cluster, "a");
        (found == "1").then_some(()).ok_or(format!("{found}"))
    });
    applier.until("nothing differs any more", |report| {
        report.units.values().all(|unit| unit.drift.is_empty())
    });
    applier.stop();
}
