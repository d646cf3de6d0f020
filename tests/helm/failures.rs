//! Releases that fail: whom they block, how often they are tried, and what is undone.

use flotilla_tests::{eventually, wait};
use reconciler::wire::ObjectState;
use serde_json::json;

use super::applier::*;
use super::charts;

#[test]
fn a_release_that_waits_for_ever_blocks_no_other() {
    let cluster = cluster("helm-blocked");
    let mut applier = Applier::start(&cluster, "helm-blocked");
    let patient = json!({"wait": true, "atomic": true, "timeoutSeconds": 900});
    let hanging = json!({"values": {"block": true}, "timeoutSeconds": 900});
    let mut units = vec![
        (
            "shop/a-waits",
            vec![folder_chart("waits", &charts::deployment(), patient)],
        ),
        (
            "shop/a-hangs",
            vec![folder_chart("hangs", &charts::blocking(), hanging)],
        ),
    ];
    let others = ["b", "c", "d", "e"];
    let names = others.map(|name| format!("shop/{name}"));
    for (name, unit) in others.iter().zip(&names) {
        units.push((unit, vec![folder_chart(name, &charts::settings(), json!({}))]));
    }
    applier.deliver(&units);
    for unit in &names {
        applier.until_well(unit);
    }
    applier.until_told("waits", ObjectState::Waiting, "waits for its objects");
    assert_eq!(history(&cluster, "hangs"), [(1, "pending-install".to_owned())]);
    applier.stop();
}

#[test]
fn a_refused_upgrade_is_rolled_back_where_that_is_asked_for() {
    let cluster = cluster("helm-refused");
    let mut applier = Applier::start(&cluster, "helm-refused");
    let chart = |values| {
        folder_chart(
            "web",
            &charts::refused(),
            json!({"upgradeAtomic": true, "values": values}),
        )
    };
    applier.deliver(&[("shop/web", vec![chart(json!({}))])]);
    applier.until_well("shop/web");
    applier.deliver(&[("shop/web", vec![chart(json!({"bad": true, "colour": "red"}))])]);
    let told = applier.until_told("web", ObjectState::Failed, "try 2 of 3 follows");
    assert!(told.message.contains("Not_A_Name"), "{told:?}");
    let undone = ["superseded", "failed", "deployed"].map(str::to_owned);
    assert_eq!(
        history(&cluster, "web")
            .into_iter()
            .map(|(_, status)| status)
            .collect::<Vec<_>>(),
        undone
    );
    let settings = cluster.get("shop", "configmap/web-settings").unwrap();
    assert_eq!(settings["data"]["colour"], "blue", "it runs as before");
    applier.deliver(&[("shop/web", vec![chart(json!({"colour": "green"}))])]);
    applier.until_well("shop/web");
    let settings = cluster.get("shop", "configmap/web-settings").unwrap();
    assert_eq!(settings["data"]["colour"], "green", "a change is tried at once");
    applier.stop();
}

#[test]
fn an_upgrade_whose_objects_stay_unhealthy_is_rolled_back() {
    let cluster = cluster("helm-unhealthy");
    let mut applier = Applier::start(&cluster, "helm-unhealthy");
    let chart = |replicas: u64| {
        let spec = json!({"upgradeAtomic": true, "timeoutSeconds": 3, "values": {"replicas": replicas}});
        folder_chart("web", &charts::deployment(), spec)
    };
    applier.deliver(&[("shop/web", vec![chart(0)])]);
    applier.until_well("shop/web");
    applier.deliver(&[("shop/web", vec![chart(1)])]);
    let told = applier.until_told("web", ObjectState::Failed, "did not become healthy");
    assert!(told.message.contains("Deployment"), "{told:?}");
    let undone = ["superseded", "superseded", "deployed"].map(str::to_owned);
    assert_eq!(
        history(&cluster, "web")
            .into_iter()
            .map(|(_, status)| status)
            .collect::<Vec<_>>(),
        undone
    );
    assert_eq!(cluster.get("shop", "deployment/web").unwrap()["spec"]["replicas"], 0);
    applier.stop();
}

#[test]
fn a_failed_first_install_is_taken_away_only_where_that_is_asked_for() {
    let cluster = cluster("helm-install");
    let mut applier = Applier::start(&cluster, "helm-install");
    let chart = |name: &str, atomic: bool| {
        folder_chart(
            name,
            &charts::refused(),
            json!({"atomic": atomic, "values": {"bad": true}}),
        )
    };
    applier.deliver(&[
        ("shop/clean", vec![chart("clean", true)]),
        ("shop/stays", vec![chart("stays", false)]),
    ]);
    applier.until_told("clean", ObjectState::Failed, "try 2 of 3 follows");
    applier.until_told("stays", ObjectState::Failed, "try 2 of 3 follows");
    eventually(wait::LONG, "nothing of the one is left", || {
        if cluster.has("shop", "configmap/clean-settings") {
            Err("its ConfigMap is".to_owned())
        } else {
            Ok(())
        }
    });
    assert!(history(&cluster, "clean").is_empty());
    assert_eq!(history(&cluster, "stays"), [(1, "failed".to_owned())]);
    applier.stop();
}

#[test]
fn a_release_waits_for_the_units_that_it_needs() {
    let cluster = cluster("helm-needs");
    let mut applier = Applier::start(&cluster, "helm-needs");
    let first = |replicas: u64| {
        let values = json!({"values": {"replicas": replicas}});
        vec![folder_chart("first", &charts::deployment(), values)]
    };
    let second = || vec![folder_chart("second", &charts::settings(), json!({}))];
    let needs = needing("shop/first");
    let units = |replicas| {
        [
            ("shop/first", first(replicas), None),
            ("shop/second", second(), Some(&needs)),
        ]
    };
    applier.deliver_each(&units(1));
    applier.until_told("second", ObjectState::Waiting, "waits for shop/first");
    assert!(history(&cluster, "second").is_empty());
    applier.deliver_each(&units(0));
    applier.until_well("shop/second");
    applier.stop();
}
