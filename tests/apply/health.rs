//! Health as clusters have it.

use flotilla_tests::three_clusters;
use reconciler::wire::{Health, UnitState};

use super::delivery::*;

#[test]
fn a_deployment_becomes_current() {
    let clusters = three_clusters();
    let mut applier = Applier::start(&clusters[0], "health");
    applier.deliver(&[("shop/web", vec![namespace("shop"), deployment("shop", "web", 2)])]);
    applier.until_unit("shop/web", UnitState::Applied);
    applier.until("the unit is healthy", |report| {
        report.units[&unit_key("shop/web")].health == Health::Current
    });
    let live = clusters[0].get("shop", "deployment/web").unwrap();
    assert_eq!(
        live["status"]["availableReplicas"], 2,
        "it was not called Current too early"
    );
    // A change of the template rolls out again, and the report follows.
    let mut changed = deployment("shop", "web", 2);
    changed["spec"]["template"]["spec"]["containers"][0]["image"] = "registry.example/web:2".into();
    applier.deliver(&[("shop/web", vec![namespace("shop"), changed])]);
    applier.until_unit("shop/web", UnitState::Applied);
    applier.until("the unit is healthy again", |report| {
        report.units[&unit_key("shop/web")].health == Health::Current
    });
    applier.stop();
}
