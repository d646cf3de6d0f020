//! Releases from chart folders: what is made, and that nothing is made twice.

use std::time::Duration;

use flotilla_tests::wait;
use reconciler::wire::ObjectState;
use serde_json::json;

use super::applier::*;
use super::charts;

#[test]
fn a_chart_of_the_repository_becomes_a_release_once() {
    let cluster = cluster("helm-first");
    let mut applier = Applier::start(&cluster, "helm-first");
    let unit = || {
        vec![folder_chart(
            "web",
            &charts::everything(),
            json!({"values": {"cache": {"size": 3}}}),
        )]
    };
    applier.deliver(&[("shop/web", unit())]);
    applier.until_well("shop/web");
    assert_eq!(history(&cluster, "web"), [(1, "deployed".to_owned())]);
    let data =
        |name: &str, field: &str| cluster.get("shop", &format!("configmap/{name}")).unwrap()["data"][field].clone();
    assert_eq!(data("web-settings", "colour"), "blue");
    assert_eq!(data("cache", "size"), "3", "values reach the subchart");
    assert!(
        cluster.has("shop", "gadgets.example.org/one"),
        "the definition was there before its kind"
    );

    let version = |name: &str| -> u64 {
        let hook = cluster.get("shop", &format!("configmap/hook-{name}")).unwrap();
        hook["metadata"]["resourceVersion"].as_str().unwrap().parse().unwrap()
    };
    let settings = cluster.get("shop", "configmap/web-settings").unwrap();
    let settings: u64 = settings["metadata"]["resourceVersion"]
        .as_str()
        .unwrap()
        .parse()
        .unwrap();
    assert!(version("early") < version("late"), "hooks run by their weight");
    assert!(
        version("late") < settings && settings < version("after"),
        "and at their phase"
    );
    assert!(
        !cluster.has("shop", "configmap/hook-test"),
        "a test is nothing that is installed"
    );
    assert!(!cluster.has("shop", "configmap/hook-bye"));

    let before = version("after");
    let unchanged = || {
        let now = (history(&cluster, "web"), version("after"));
        if now == (vec![(1, "deployed".to_owned())], before) {
            Ok(())
        } else {
            Err(format!("{now:?}"))
        }
    };
    applier.deliver(&[("shop/web", unit())]);
    wait::throughout(
        Duration::from_secs(5),
        "no revision is made and no hook runs",
        unchanged,
    );
    let sequence = applier.sequence();
    applier.stop();
    let mut applier = Applier::start_with(&cluster, "helm-first-again", sequence, None);
    applier.deliver(&[("shop/web", unit())]);
    applier.until_well("shop/web");
    unchanged().unwrap();

    let other = folder_chart("web", &charts::everything(), json!({"values": {"colour": "red"}}));
    applier.deliver(&[("shop/web", vec![other])]);
    wait::eventually(wait::LONG, "the new values are released", || {
        let now = history(&cluster, "web");
        if now.last() == Some(&(2, "deployed".to_owned())) {
            Ok(())
        } else {
            Err(format!("{now:?}"))
        }
    });
    assert_eq!(data("web-settings", "colour"), "red");
    assert_eq!(
        data("cache", "size"),
        "1",
        "values that were taken out are the chart's again"
    );
    applier.stop();
}

#[test]
fn what_a_schema_refuses_is_said_and_tried_three_times() {
    let cluster = cluster("helm-schema");
    let mut applier = Applier::start(&cluster, "helm-schema");
    let wrong = folder_chart("web", &charts::everything(), json!({"values": {"colour": 7}}));
    applier.deliver(&[("shop/web", vec![wrong])]);
    let told = applier.until_told("web", ObjectState::Failed, "try 2 of 3 follows");
    assert!(told.message.contains("colour"), "{told:?}");
    assert!(history(&cluster, "web").is_empty());
    let right = folder_chart("web", &charts::everything(), json!({"values": {"colour": "7"}}));
    applier.deliver(&[("shop/web", vec![right])]);
    applier.until_well("shop/web");
    applier.stop();
}

#[test]
fn definitions_of_a_chart_are_replaced_only_where_that_is_asked_for() {
    let cluster = cluster("helm-crds");
    let mut applier = Applier::start(&cluster, "helm-crds");
    let fields = || {
        let definition = cluster.get("", "customresourcedefinition/gadgets.example.org").unwrap();
        let schema = definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"].clone();
        schema["properties"]["spec"]["properties"].as_object().unwrap().len()
    };
    let chart = |more: &[&str], crds: &str| {
        let files = charts::definition(more);
        let files: Vec<_> = files.iter().map(|(path, text)| (*path, text.as_str())).collect();
        folder_chart("web", &files, json!({ "crds": crds }))
    };
    applier.deliver(&[("shop/web", vec![chart(&[], "Skip")])]);
    applier.until_well("shop/web");
    assert!(
        cluster.names("", "customresourcedefinitions").is_empty(),
        "Skip leaves them alone"
    );

    applier.deliver(&[]);
    applier.until_gone("shop/web");
    applier.deliver(&[("shop/web", vec![chart(&[], "Create")])]);
    applier.until_well("shop/web");
    assert_eq!(fields(), 1, "Create makes what is not there");

    applier.deliver(&[("shop/web", vec![chart(&["b"], "Create")])]);
    wait::eventually(wait::LONG, "the second chart is released", || {
        let now = history(&cluster, "web");
        if now.len() == 2 {
            Ok(())
        } else {
            Err(format!("{now:?}"))
        }
    });
    assert_eq!(fields(), 1, "and never changes it");

    applier.deliver(&[("shop/web", vec![chart(&["b", "c"], "CreateReplace")])]);
    wait::eventually(wait::LONG, "the third chart is released", || {
        let now = history(&cluster, "web");
        if now.len() == 3 {
            Ok(())
        } else {
            Err(format!("{now:?}"))
        }
    });
    assert_eq!(fields(), 3, "CreateReplace brings the chart's own");

    cluster.apply(
        r#"{"apiVersion": "example.org/v1", "kind": "Gadget", "metadata": {"name": "mine", "namespace": "shop"}}"#,
    );
    applier.deliver(&[]);
    applier.until_gone("shop/web");
    assert!(history(&cluster, "web").is_empty());
    assert!(
        cluster.has("shop", "gadgets.example.org/mine"),
        "a definition stays, and what people made of it"
    );
    applier.stop();
}
