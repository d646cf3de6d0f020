//! Clusters that fail, and hands that meddle.

use flotilla_tests::{ControlPlane, Options};
use reconciler::wire::UnitState;

use super::delivery::*;

#[track_caller]
fn value(cluster: &ControlPlane) -> String {
    let settings = cluster.get("default", "configmap/settings").unwrap();
    settings["data"]["value"].as_str().unwrap_or_default().to_owned()
}

#[test]
fn an_api_server_that_goes_away_is_waited_for_and_gets_only_the_newest() {
    // A controller manager that is still starting would not outlive its API server.
    let options = Options {
        controller_manager: false,
        ..Options::default()
    };
    let mut cluster = ControlPlane::start("away", options);
    let mut applier = Applier::start(&cluster, "away");
    let unit = |value| vec![config_map("default", "settings", value)];
    applier.deliver(&[("shop/web", unit("1"))]);
    applier.until_unit("shop/web", UnitState::Applied);
    cluster.stop_apiserver();
    applier.deliver(&[("shop/web", unit("2"))]);
    applier.until("it says so", |report| !report.trouble.is_empty());
    applier.deliver(&[("shop/web", unit("3"))]);
    cluster.start_apiserver();
    applier.until_unit("shop/web", UnitState::Applied);
    assert_eq!(value(&cluster), "3");
    applier.until("and nothing is wrong any more", |report| report.trouble.is_empty());
    applier.stop();
}

#[test]
fn an_inventory_that_somebody_touched_is_read_again() {
    let cluster = cluster("touched");
    let mut applier = Applier::start(&cluster, "touched");
    let unit = |value| vec![config_map("default", "settings", value)];
    applier.deliver(&[("shop/web", unit("1"))]);
    applier.until_unit("shop/web", UnitState::Applied);
    let touch = [
        "annotate",
        "configmap",
        "flotilla-inventory-00",
        "--namespace=flotilla-system",
        "touched=yes",
    ];
    cluster.kubectl(&touch).expect_ok();
    applier.deliver(&[("shop/web", unit("2"))]);
    applier.until("it is applied, and nothing is wrong", |report| {
        let unit = report.units.get(&unit_key("shop/web"));
        report.trouble.is_empty() && unit.is_some_and(|unit| unit.state == UnitState::Applied)
    });
    applier.deliver(&[]);
    applier.until_gone("shop/web");
    assert!(
        !cluster.has("default", "configmap/settings"),
        "the inventory still knows it"
    );
    applier.stop();
}
