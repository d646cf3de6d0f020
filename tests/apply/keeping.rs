//! What stays when it leaves the delivery, and why.

use flotilla_tests::ControlPlane;
use reconciler::wire::{ObjectState, UnitState};
use render::model::{ApplyPolicy, DeletionPolicy};
use serde_json::Value;

use super::delivery::*;

/// Waits until an object of a unit stays for this reason.
#[track_caller]
fn until_kept(applier: &Applier, unit: &str, name: &str, why: &str) {
    applier.until(&format!("{name} is kept: {why}"), |report| {
        let results = report.units.get(&unit_key(unit)).map(|unit| &unit.worst);
        results.into_iter().flatten().any(|result| {
            result.object.name == name && result.state == ObjectState::Kept && result.message.contains(why)
        })
    });
}

#[track_caller]
fn annotation(cluster: &ControlPlane, resource: &str, name: &str) -> Option<String> {
    let object = cluster.get("default", resource).expect("the object is there");
    object["metadata"]["annotations"][name].as_str().map(str::to_owned)
}

fn annotated(name: &str, annotation: &str, value: &str) -> Value {
    let mut object = config_map("default", name, "1");
    object["metadata"]["annotations"][annotation] = value.into();
    object
}

#[test]
fn the_words_that_people_know_from_elsewhere_keep_an_object() {
    let cluster = cluster("words");
    let mut applier = Applier::start(&cluster, "words");
    let unit = vec![
        annotated("ours", "fleet.flotilla.dev/prune", "disabled"),
        annotated("helms", "helm.sh/resource-policy", "keep"),
        annotated("fluxs", "kustomize.toolkit.fluxcd.io/prune", "disabled"),
        annotated("argos", "argocd.argoproj.io/sync-options", "Prune=false"),
        config_map("default", "plain", "1"),
    ];
    applier.deliver(&[("shop/web", unit)]);
    applier.until_unit("shop/web", UnitState::Applied);
    applier.deliver(&[]);
    for name in ["ours", "helms", "fluxs", "argos"] {
        until_kept(&applier, "shop/web", name, "the annotation ");
        assert!(cluster.has("default", &format!("configmap/{name}")), "{name}");
    }
    assert!(!cluster.has("default", "configmap/plain"), "nobody said anything of it");
    applier.stop();
}

#[test]
fn namespaces_of_the_system_and_what_is_in_the_appliers_own_are_never_removed() {
    let cluster = cluster("protected");
    let mut applier = Applier::start(&cluster, "protected");
    let system = [
        "kube-system",
        "kube-public",
        "kube-node-lease",
        "default",
        "flotilla-system",
    ];
    let mut unit: Vec<_> = system.iter().map(|name| namespace(name)).collect();
    unit.push(namespace("develop"));
    unit.push(config_map("flotilla-system", "settings", "1"));
    applier.deliver(&[("shop/web", unit)]);
    applier.until_unit("shop/web", UnitState::Applied);
    applier.deliver(&[]);
    applier.until("all of them are kept", |report| {
        let unit = report.units.get(&unit_key("shop/web"));
        // The system's five namespaces and what is in the applier's own; the worst few of them are named.
        unit.is_some_and(|unit| {
            unit.counts.objects == 6 && unit.worst.iter().all(|result| result.state == ObjectState::Kept)
        })
    });
    flotilla_tests::eventually(
        flotilla_tests::wait::LONG,
        "the one that is nobody's home is gone",
        || {
            let gone = !cluster.has("", "namespace/develop");
            gone.then_some(()).ok_or_else(|| "it is there".to_owned())
        },
    );
    for name in system {
        let found = cluster.get("", &format!("namespace/{name}")).expect("it is there");
        assert!(
            found["metadata"]["deletionTimestamp"].is_null(),
            "{name} is on its way out"
        );
    }
    assert!(cluster.has("flotilla-system", "configmap/settings"));
    applier.stop();
}

#[test]
fn an_object_that_only_carries_our_marks_is_never_removed() {
    let cluster = cluster("marks");
    let mut applier = Applier::start(&cluster, "marks");
    applier.deliver(&[("shop/web", vec![config_map("default", "settings", "1")])]);
    applier.until_unit("shop/web", UnitState::Applied);
    // As a controller makes it that copies the labels and annotations of what it watches, with our manager's name even.
    let mut copy = cluster.get("default", "configmap/settings").unwrap();
    copy["metadata"] = serde_json::json!({
        "name": "copied", "namespace": "default", "annotations": copy["metadata"]["annotations"],
    });
    let file = cluster.folder().join("copy.json");
    std::fs::write(&file, copy.to_string()).unwrap();
    let file = file.display().to_string();
    let apply = ["apply", "--server-side", "--field-manager=flotilla", "-f", &file];
    cluster.kubectl(&apply).expect_ok();
    applier.deliver(&[]);
    applier.until_gone("shop/web");
    assert!(!cluster.has("default", "configmap/settings"));
    assert!(
        cluster.has("default", "configmap/copied"),
        "the inventory does not have it"
    );
    applier.stop();
}

#[test]
fn a_kind_whose_scope_changed_removes_nothing() {
    let cluster = cluster("scope");
    let mut applier = Applier::start(&cluster, "scope");
    applier.deliver(&[
        ("shop/kinds", vec![widgets()]),
        ("shop/web", vec![namespace("shop"), widget("shop", "w")]),
    ]);
    applier.until_unit("shop/web", UnitState::Applied);
    applier.stop();
    cluster
        .kubectl(&["delete", "customresourcedefinition", "widgets.example.org"])
        .expect_ok();
    let mut wide = widgets();
    wide["spec"]["scope"] = "Cluster".into();
    cluster.apply(&wide.to_string());
    let established = ["wait", "--for=condition=Established", "crd/widgets.example.org"];
    cluster.kubectl(&established).expect_ok();
    let w = r#"{"apiVersion": "example.org/v1", "kind": "Widget", "metadata": {"name": "w"}, "spec": {"size": 2}}"#;
    cluster.apply(w);
    let mut applier = Applier::start(&cluster, "scope-again");
    applier.change_lineage('a', 1);
    applier.deliver(&[]);
    until_kept(&applier, "shop/web", "w", "was namespaced when it was applied");
    until_kept(&applier, "shop/kinds", "widgets.example.org", "");
    assert!(cluster.has("", "widget/w") && cluster.has("", "customresourcedefinition/widgets.example.org"));
    applier.stop();
}

#[test]
fn a_unit_whose_namespace_was_renamed_takes_only_what_it_put_into_the_old_one() {
    let cluster = cluster("renamed");
    cluster.kubectl(&["create", "namespace", "before"]).expect_ok();
    cluster
        .kubectl(&["create", "configmap", "theirs", "--namespace=before"])
        .expect_ok();
    let mut applier = Applier::start(&cluster, "renamed");
    applier.deliver(&[("shop/web", vec![config_map("before", "settings", "1")])]);
    applier.until_unit("shop/web", UnitState::Applied);
    applier.deliver(&[(
        "shop/web",
        vec![namespace("after"), config_map("after", "settings", "1")],
    )]);
    applier.until_unit("shop/web", UnitState::Applied);
    flotilla_tests::eventually(flotilla_tests::wait::LONG, "the old one is gone", || {
        let gone = !cluster.has("before", "configmap/settings");
        gone.then_some(()).ok_or_else(|| "it is there".to_owned())
    });
    assert!(cluster.has("before", "configmap/theirs") && cluster.has("", "namespace/before"));
    assert!(cluster.has("after", "configmap/settings"));
    applier.stop();
}

#[test]
fn what_a_unit_leaves_behind_by_its_own_word_stays_without_marks_and_is_forgotten() {
    let cluster = cluster("orphaned");
    let mut applier = Applier::start(&cluster, "orphaned");
    let both = || {
        vec![
            config_map("default", "settings", "1"),
            config_map("default", "extra", "1"),
        ]
    };
    applier.deliver(&[("shop/web", both())]);
    applier.until_unit("shop/web", UnitState::Applied);
    // The word comes later than the objects, and alone.
    let orphan = ApplyPolicy {
        deletion: DeletionPolicy::Orphan,
        ..ApplyPolicy::default()
    };
    applier.govern("shop/web", orphan);
    applier.deliver(&[("shop/web", both())]);
    applier.until_unit("shop/web", UnitState::Applied);
    // It is about the unit as a whole: what leaves a unit that stays is removed as ever.
    applier.deliver(&[("shop/web", vec![config_map("default", "settings", "1")])]);
    flotilla_tests::eventually(flotilla_tests::wait::LONG, "what left the unit is gone", || {
        let gone = !cluster.has("default", "configmap/extra");
        gone.then_some(()).ok_or_else(|| "it is there".to_owned())
    });
    let uid = metadata(&cluster, "default", "configmap/settings", "uid");
    assert!(annotation(&cluster, "configmap/settings", "fleet.flotilla.dev/unit").is_some());
    // The applier that hears of the removal is another one than the one that heard the word.
    applier.stop();
    let mut applier = Applier::start(&cluster, "orphaned-again");
    applier.change_lineage('a', 3);
    applier.deliver(&[]);
    applier.until_gone("shop/web");
    flotilla_tests::eventually(flotilla_tests::wait::LONG, "its mark is gone", || {
        let mark = annotation(&cluster, "configmap/settings", "fleet.flotilla.dev/unit");
        mark.is_none().then_some(()).ok_or(format!("{mark:?}"))
    });
    assert_eq!(metadata(&cluster, "default", "configmap/settings", "uid"), uid);
    let settings = cluster.get("default", "configmap/settings").unwrap();
    assert_eq!(settings["data"]["value"], "1", "its fields stay as they are");
    // It is nobody's: a delivery without it does not remove it either, and one with it adopts it.
    applier.deliver(&[("shop/other", vec![config_map("default", "other", "1")])]);
    applier.until_unit("shop/other", UnitState::Applied);
    assert!(cluster.has("default", "configmap/settings"));
    applier.deliver(&[("shop/web", vec![config_map("default", "settings", "2")])]);
    applier.until_unit("shop/web", UnitState::Applied);
    assert_eq!(
        metadata(&cluster, "default", "configmap/settings", "uid"),
        uid,
        "adopted, not made anew"
    );
    applier.stop();
}
