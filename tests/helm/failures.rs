//! Releases that fail: whom they block, how often they are tried, and what is undone.

use flotilla_tests::{ControlPlane, eventually, wait};
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
    let told = applier.until_told("web", ObjectState::Failed, "of 3 follows");
    assert!(told.message.contains("Not_A_Name"), "{told:?}");
    until_undone(&cluster, "failed", "it runs as before", || {
        cluster.get("shop", "configmap/web-settings").unwrap()["data"]["colour"] == "blue"
    });
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
    until_undone(&cluster, "superseded", "it has the replicas of before", || {
        cluster.get("shop", "deployment/web").unwrap()["spec"]["replicas"] == 0
    });
    applier.stop();
}

/// Waits until the last try was rolled back. A machine that is busy may be at the second or third one when it looks, and
/// what is true of one is true of each: something ran, a revision was given up, and another one runs.
#[track_caller]
fn until_undone(cluster: &ControlPlane, given_up: &str, what: &str, runs_as_before: impl Fn() -> bool) {
    eventually(wait::LONG, what, || {
        let before = history(cluster, "web");
        let statuses: Vec<_> = before.iter().map(|(_, status)| status.as_str()).collect();
        let [.., ran, tried, now] = statuses.as_slice() else {
            return Err(format!("{before:?}"));
        };
        let is_undone = (*ran, *tried, *now) == ("superseded", given_up, "deployed");
        // The next try may begin between two looks.
        if is_undone && runs_as_before() && history(cluster, "web") == before {
            Ok(())
        } else {
            Err(format!("{before:?}"))
        }
    });
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
    applier.until_told("clean", ObjectState::Failed, "of 3 follows");
    applier.until_told("stays", ObjectState::Failed, "of 3 follows");
    // Between two tries; a machine that is busy may look during one.
    eventually(wait::LONG, "nothing of the one is left", || {
        let left = history(&cluster, "clean");
        if cluster.has("shop", "configmap/clean-settings") || !left.is_empty() {
            Err(format!("{left:?}"))
        } else {
            Ok(())
        }
    });
    eventually(wait::LONG, "of the other each try is left", || {
        let left = history(&cluster, "stays");
        let failed = |(_, status): &(u64, String)| status == "failed";
        if !left.is_empty() && left.iter().all(failed) && cluster.has("shop", "configmap/stays-settings") {
            Ok(())
        } else {
            Err(format!("{left:?}"))
        }
    });
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
