//! One applier per cluster.

use reconciler::wire::UnitState;

use super::delivery::*;

#[test]
fn a_second_applier_waits_and_says_so() {
    let cluster = cluster("leased");
    let mut first = Applier::start(&cluster, "first");
    first.deliver(&[("shop/web", vec![config_map("default", "settings", "first")])]);
    first.until_unit("shop/web", UnitState::Applied);
    let mut second = Applier::start(&cluster, "second");
    second.deliver(&[("shop/web", vec![config_map("default", "settings", "second")])]);
    let report = second.until("it waits", |report| report.trouble.contains("first"));
    assert!(report.units.is_empty(), "it applies nothing: {report:#?}");
    let settings = cluster.get("default", "configmap/settings").unwrap();
    assert_eq!(settings["data"]["value"], "first");
    first.stop();
    second.until_unit("shop/web", UnitState::Applied);
    let settings = cluster.get("default", "configmap/settings").unwrap();
    assert_eq!(settings["data"]["value"], "second");
    second.stop();
}

#[test]
fn a_holder_that_crashed_is_replaced() {
    let cluster = cluster("crashed");
    let mut first = Applier::start(&cluster, "first");
    first.deliver(&[("shop/web", vec![config_map("default", "settings", "first")])]);
    first.until_unit("shop/web", UnitState::Applied);
    first.crash();
    let mut second = Applier::start(&cluster, "second");
    second.deliver(&[("shop/web", vec![config_map("default", "settings", "second")])]);
    second.until_unit("shop/web", UnitState::Applied);
    second.stop();
}

#[test]
fn a_lease_taken_by_force_ends_the_writing() {
    let cluster = cluster("usurped");
    let mut applier = Applier::start(&cluster, "first");
    applier.deliver(&[("shop/web", vec![config_map("default", "settings", "1")])]);
    applier.until_unit("shop/web", UnitState::Applied);
    let patch = r#"{"spec":{"holderIdentity":"somebody"}}"#;
    cluster
        .kubectl(&[
            "patch",
            "lease",
            "flotilla-applier",
            "--namespace=flotilla-system",
            "--type=merge",
            "-p",
            patch,
        ])
        .expect_ok();
    applier.until("it noticed", |report| report.trouble.contains("somebody"));
    applier.deliver(&[("shop/web", vec![config_map("default", "settings", "2")])]);
    flotilla_tests::wait::throughout(std::time::Duration::from_secs(3), "nothing is written", || {
        let settings = cluster.get("default", "configmap/settings")?;
        if settings["data"]["value"] == "1" {
            Ok(())
        } else {
            Err("it was written".to_owned())
        }
    });
    applier.stop();
}
