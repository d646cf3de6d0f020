//! Releases whose HelmChart left the delivery.

use std::time::Duration;

use flotilla_tests::{eventually, wait};
use reconciler::wire::ObjectState;
use render::model::{ApplyPolicy, DeletionPolicy};
use serde_json::{Value, json};

use super::applier::*;
use super::charts;

#[test]
fn a_release_goes_with_its_chart_and_before_its_namespace() {
    let cluster = cluster("helm-gone");
    let mut applier = Applier::start(&cluster, "helm-gone");
    let namespace = plain(json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}}));
    let unit = vec![namespace, folder_chart("web", &charts::everything(), json!({}))];
    applier.deliver(&[("shop/web", unit)]);
    applier.until_well("shop/web");
    applier.deliver(&[]);
    applier.until_gone("shop/web");
    assert!(!cluster.has("", "namespace/shop"));
    assert!(
        cluster.has("", "customresourcedefinition/gadgets.example.org"),
        "definitions stay"
    );
    applier.stop();
}

#[test]
fn a_release_goes_after_what_needs_it_and_before_what_it_needs() {
    let cluster = cluster("helm-needed-gone");
    let mut applier = Applier::start(&cluster, "helm-needed-gone");
    let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "app", "namespace": "default"}});
    // The release of `web` needs that of `base`, and unit shop/app needs the unit of `web`.
    let needs = json!({"fleet.flotilla.dev/depends-on": "apps.clusternet.io/HelmChart/fleet/base"});
    let web = annotated(folder_chart("web", &charts::settings(), json!({})), &needs);
    let base = folder_chart("base", &charts::settings(), json!({}));
    applier.deliver_each(&[
        ("shop/app", vec![plain(object)], Some(&needing("shop/web"))),
        ("shop/web", vec![web], None),
        ("shop/base", vec![base], None),
    ]);
    applier.until_well("shop/app");
    let keep = |finalizers: Value| {
        let patch = json!({"metadata": {"finalizers": finalizers}}).to_string();
        let arguments = ["patch", "configmap/app", "--type=merge", "--patch", &patch];
        cluster.kubectl(&arguments).expect_ok();
    };
    keep(json!(["example.org/hold"]));
    applier.deliver(&[]);
    let waits = "waits until shop/app, which needs it, is gone";
    applier.until_told("web", ObjectState::Removing, waits);
    let sequence = applier.sequence();
    applier.stop();

    // Whoever goes on knows it too.
    let mut applier = Applier::start_with(&cluster, "helm-needed-gone-again", sequence, None);
    applier.deliver(&[]);
    applier.until_told("web", ObjectState::Removing, waits);
    let waits = "waits until HelmChart fleet/web, which needs it, is gone";
    applier.until_told("base", ObjectState::Removing, waits);
    wait::throughout(Duration::from_secs(3), "both releases stay", || {
        let now = ["web", "base"].map(|release| history(&cluster, release).len());
        (now == [1, 1]).then_some(()).ok_or_else(|| format!("{now:?}"))
    });
    keep(json!(null));
    for unit in ["shop/app", "shop/web", "shop/base"] {
        applier.until_gone(unit);
    }
    for release in ["web", "base"] {
        assert!(history(&cluster, release).is_empty(), "{release} is there");
    }
    applier.stop();
}

#[test]
fn a_release_that_is_not_ours_any_more_stays() {
    let cluster = cluster("helm-theirs");
    let mut applier = Applier::start(&cluster, "helm-theirs");
    applier.deliver(&[("shop/web", vec![folder_chart("web", &charts::settings(), json!({}))])]);
    applier.until_well("shop/web");
    let marks = "fleet.flotilla.dev/helm-chart-";
    let secret = "sh.helm.release.v1.web.v1";
    let sequence = applier.sequence();
    applier.stop();
    cluster
        .kubectl(&["-n", "shop", "label", "secret", secret, marks])
        .expect_ok();
    let mut applier = Applier::start_with(&cluster, "helm-theirs-again", sequence, None);
    applier.deliver(&[]);
    applier.until_told("web", ObjectState::Kept, "somebody else's");
    wait::throughout(Duration::from_secs(3), "it stays", || {
        cluster.get("shop", "configmap/web-settings").map(drop)
    });
    applier.stop();
}

#[test]
fn a_release_made_by_hand_is_taken_over_and_one_of_another_chart_is_not() {
    let cluster = cluster("helm-adopted");
    let folder = flotilla_tests::scratch::folder("chart");
    for (path, text) in charts::settings() {
        let file = folder.join(path);
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(file, text).unwrap();
    }
    let path = folder.to_str().unwrap();
    helm(
        &cluster,
        &["install", "web", path, "--create-namespace", "--set", "colour=red"],
    )
    .expect_ok();
    let mut applier = Applier::start(&cluster, "helm-adopted");
    let first = folder_chart("web", &charts::settings(), json!({}));
    let second = folder_chart("other", &charts::settings(), json!({"releaseName": "web"}));
    applier.deliver(&[("shop/web", vec![first])]);
    applier.until_well("shop/web");
    assert_eq!(history(&cluster, "web").len(), 2);
    let first = folder_chart("web", &charts::settings(), json!({}));
    applier.deliver(&[("shop/web", vec![first]), ("shop/other", vec![second])]);
    applier.until_told("other", ObjectState::Failed, "belongs to another HelmChart");
    eventually(wait::LONG, "the first keeps it", || {
        let settings = cluster.get("shop", "configmap/web-settings")?;
        if settings["data"]["colour"] == "blue" {
            Ok(())
        } else {
            Err(settings.to_string())
        }
    });
    applier.stop();
}

#[test]
fn objects_that_are_there_become_the_releases_only_when_nobody_owns_them() {
    let cluster = cluster("helm-adopts");
    cluster.kubectl(&["create", "namespace", "shop"]).expect_ok();
    let settings = |name: &str, labels| {
        let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "data": {"mine": "1"},
            "metadata": {"name": name, "namespace": "shop", "labels": labels}});
        cluster.apply(&object.to_string());
    };
    settings("free-settings", json!({}));
    settings("taken-settings", json!({"app.kubernetes.io/managed-by": "somebody"}));
    let mut applier = Applier::start(&cluster, "helm-adopts");
    let chart = |name: &str| vec![folder_chart(name, &charts::settings(), json!({}))];
    applier.deliver(&[("shop/free", chart("free")), ("shop/taken", chart("taken"))]);
    applier.until_well("shop/free");
    let told = applier.until_told("taken", ObjectState::Failed, "taken-settings is there already");
    assert!(told.message.contains("managed-by: somebody"), "{told:?}");
    let free = cluster.get("shop", "configmap/free-settings").unwrap();
    assert_eq!(
        (&free["data"]["colour"], &free["data"]["mine"]),
        (&json!("blue"), &json!("1"))
    );
    assert!(cluster.get("shop", "configmap/taken-settings").unwrap()["data"]["colour"].is_null());
    applier.stop();
}

#[test]
fn a_release_of_a_unit_that_orphans_stays() {
    let cluster = cluster("helm-orphan");
    let mut applier = Applier::start(&cluster, "helm-orphan");
    let policy = ApplyPolicy {
        deletion: DeletionPolicy::Orphan,
        ..ApplyPolicy::default()
    };
    let unit = vec![folder_chart("web", &charts::settings(), json!({}))];
    applier.deliver_under(&[("shop/web", unit)], &policy);
    applier.until_well("shop/web");
    applier.deliver(&[]);
    applier.until_gone("shop/web");
    assert_eq!(history(&cluster, "web"), [(1, "deployed".to_owned())]);
    assert!(cluster.has("shop", "configmap/web-settings"));
    applier.stop();
}
