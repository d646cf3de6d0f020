//! What the options of a HelmChart do, each against helm's own work in a cluster.

use flotilla_tests::{ControlPlane, eventually, scratch, wait};
use reconciler::wire::{Health, ObjectState};
use serde_json::{Value, json};

use super::applier::*;
use super::charts;

/// Makes a chart's release with more in its spec.
fn unit(files: &[(&str, &str)], colour: &str, more: &Value) -> Vec<(&'static str, Vec<render::describe::Content>)> {
    let mut spec = json!({"values": {"colour": colour}});
    for (name, value) in more.as_object().expect("a mapping") {
        spec[name] = value.clone();
    }
    vec![("shop/web", vec![folder_chart("web", files, spec)])]
}

#[track_caller]
fn until_revisions(cluster: &ControlPlane, count: usize) {
    eventually(wait::LONG, &format!("there are {count} revisions"), || {
        let now = history(cluster, "web");
        let runs = now.last().is_some_and(|(_, status)| status == "deployed");
        (now.len() == count && runs)
            .then_some(())
            .ok_or_else(|| format!("{now:?}"))
    });
}

#[test]
fn hooks_run_at_install_and_upgrade_unless_they_are_disabled() {
    let cluster = cluster("helm-hooks");
    let mut applier = Applier::start(&cluster, "helm-hooks");
    let hooks = || {
        let names = cluster.names("shop", "configmaps");
        names
            .into_iter()
            .filter(|name| name.starts_with("hook-"))
            .collect::<Vec<_>>()
    };
    let off = json!({"disableHooks": true});
    applier.deliver(&unit(&charts::everything(), "blue", &off));
    applier.until_well("shop/web");
    assert!(hooks().is_empty(), "at install: {:?}", hooks());
    applier.deliver(&unit(&charts::everything(), "green", &off));
    until_revisions(&cluster, 2);
    assert!(hooks().is_empty(), "at upgrade: {:?}", hooks());
    applier.deliver(&unit(&charts::everything(), "red", &json!({})));
    until_revisions(&cluster, 3);
    assert_eq!(
        hooks(),
        ["hook-after", "hook-early", "hook-late"],
        "where they are not disabled"
    );
    applier.stop();
}

#[test]
fn a_forced_upgrade_replaces_objects_and_another_one_keeps_what_others_added() {
    let cluster = cluster("helm-force");
    let mut applier = Applier::start(&cluster, "helm-force");
    applier.deliver(&unit(&charts::settings(), "blue", &json!({})));
    applier.until_well("shop/web");
    let arguments = [
        "-n",
        "shop",
        "patch",
        "configmap",
        "web-settings",
        "--patch",
        r#"{"data":{"mine":"1"}}"#,
    ];
    cluster.kubectl(&arguments).expect_ok();
    let data = || cluster.get("shop", "configmap/web-settings").unwrap()["data"].clone();
    for (revision, colour, force, expected) in [
        (2, "green", false, json!({"colour": "green", "mine": "1"})),
        (3, "red", true, json!({"colour": "red"})),
    ] {
        applier.deliver(&unit(&charts::settings(), colour, &json!({ "force": force })));
        until_revisions(&cluster, revision);
        assert_eq!(data(), expected, "force: {force}");
    }
    applier.stop();
}

#[test]
fn a_name_whose_history_was_kept_is_taken_again_only_with_replace() {
    let cluster = cluster("helm-replace");
    let folder = scratch::folder("chart");
    for (path, text) in charts::settings() {
        let file = folder.join(path);
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(file, text).unwrap();
    }
    let path = folder.to_str().unwrap();
    helm(&cluster, &["install", "web", path, "--create-namespace"]).expect_ok();
    helm(&cluster, &["uninstall", "web", "--keep-history"]).expect_ok();
    let mut applier = Applier::start(&cluster, "helm-replace");
    applier.deliver(&unit(&charts::settings(), "green", &json!({})));
    applier.until_told("web", ObjectState::Failed, "hint: replace: true takes its name again");
    assert!(!cluster.has("shop", "configmap/web-settings"));
    applier.deliver(&unit(&charts::settings(), "green", &json!({"replace": true})));
    applier.until_well("shop/web");
    let settings = cluster.get("shop", "configmap/web-settings").unwrap();
    assert_eq!(settings["data"]["colour"], "green");
    applier.stop();
}

#[test]
fn the_end_of_jobs_is_waited_for_only_where_that_is_asked_for() {
    let cluster = cluster("helm-jobs");
    let mut applier = Applier::start(&cluster, "helm-jobs");
    let options = |wait_for_job: bool| json!({"wait": true, "waitForJob": wait_for_job, "timeoutSeconds": 3});
    let chart = |name: &str, wait_for_job| vec![folder_chart(name, &charts::job(), options(wait_for_job))];
    applier.deliver(&[
        ("shop/patient", chart("patient", true)),
        ("shop/quick", chart("quick", false)),
    ]);
    let told = applier.until_told("patient", ObjectState::Failed, "did not become healthy");
    assert!(told.message.contains("Job"), "{told:?}");
    let told = applier.until_told("quick", ObjectState::Applied, "Job");
    assert_eq!(told.health, Health::InProgress, "{told:?}");
    assert_eq!(history(&cluster, "quick"), [(1, "deployed".to_owned())]);
    applier.stop();
}

#[test]
fn a_namespace_that_may_not_be_made_is_missed_until_somebody_makes_it() {
    let cluster = cluster("helm-namespace");
    let mut applier = Applier::start(&cluster, "helm-namespace");
    let unmade = json!({"createNamespace": false});
    applier.deliver(&unit(&charts::settings(), "blue", &unmade));
    applier.until_told("web", ObjectState::Failed, "namespaces \"shop\" not found");
    assert!(!cluster.has("", "namespace/shop"));
    cluster.kubectl(&["create", "namespace", "shop"]).expect_ok();
    applier.until_well("shop/web");
    applier.stop();
}

#[test]
fn as_many_revisions_are_kept_as_a_chart_says() {
    let cluster = cluster("helm-history");
    let mut applier = Applier::start(&cluster, "helm-history");
    for colour in ["blue", "green", "red", "white"] {
        applier.deliver(&unit(&charts::settings(), colour, &json!({"historyMax": 2})));
        eventually(wait::LONG, colour, || {
            let found = cluster.get("shop", "configmap/web-settings")?["data"]["colour"].clone();
            (found == colour).then_some(()).ok_or_else(|| found.to_string())
        });
        applier.until_well("shop/web");
    }
    let kept: Vec<_> = history(&cluster, "web").into_iter().map(|(number, _)| number).collect();
    assert_eq!(kept, [3, 4]);
    applier.stop();
}

#[test]
fn clusternets_words_for_definitions_mean_what_ours_mean() {
    let cluster = cluster("helm-skip");
    let mut applier = Applier::start(&cluster, "helm-skip");
    let fields = || {
        let definition = cluster.get("", "customresourcedefinition/gadgets.example.org").unwrap();
        let schema = definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"].clone();
        schema["properties"]["spec"]["properties"].as_object().unwrap().len()
    };
    for (revision, more, option, expected) in [
        (1, vec![], "skipCRDs", None),
        (2, vec!["b"], "replaceCRDs", Some(2)),
        (3, vec!["b", "c"], "replaceCRDs", Some(3)),
    ] {
        let files = charts::definition(&more);
        let files: Vec<_> = files.iter().map(|(path, text)| (*path, text.as_str())).collect();
        applier.deliver(&unit(&files, "blue", &json!({ option: true })));
        until_revisions(&cluster, revision);
        let there = !cluster.names("", "customresourcedefinitions").is_empty();
        assert_eq!(there.then(&fields), expected, "{option}");
    }
    applier.stop();
}
