//! Mode objects: what people and tools that know Clusternet see in a hub cluster. That cluster is
//! `amsterdam`, with Clusternet's kinds; it is one of the fleet's own as well, which it may be.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use flotilla_tests::{ControlPlane, eventually, pool, wait};
use serde_json::Value;

use super::still::{pass, until_connected, until_reason};
use super::support::*;

/// Clusternet's kinds, in the form that their API demands.
const KINDS: &str = include_str!("../objects/crds.yaml");

/// `fleet.yaml` in mode objects.
const MODE_OBJECTS: &str = "\
apiVersion: fleet.flotilla.dev/v1alpha1
kind: Fleet
metadata: {name: fleet}
spec: {approval: none, render: {mode: objects}}
";

const CONDITION: &str = "ObjectsWritten";

fn hub_cluster(fleet: &Fleet) -> &ControlPlane {
    fleet.cluster("amsterdam")
}

/// A fleet in mode objects whose hub cluster has the kinds; nothing runs.
fn prepare() -> Fleet {
    let fleet = Fleet::prepare();
    hub_cluster(&fleet).apply(KINDS);
    let wait = ["wait", "--for=condition=Established", "--timeout=60s", "crd", "--all"];
    hub_cluster(&fleet).kubectl(&wait).expect_ok();
    fleet.push("Write objects", &[("fleet.yaml", MODE_OBJECTS)]);
    fleet
}

/// Starts the hub with its hub cluster.
fn start_hub(fleet: &mut Fleet) {
    let kubeconfig = hub_cluster(fleet).kubeconfig().display().to_string();
    let own = ["--objects-kubeconfig", &kubeconfig, "--objects-context", "amsterdam"];
    // Most of these clusters have no agent, and hold nothing that would be waited for.
    fleet.start_hub(&[&own[..], &NO_GRACE].concat());
}

/// Every object of a kind in all namespaces.
#[track_caller]
fn list(cluster: &ControlPlane, kind: &str) -> Vec<Value> {
    let text = cluster
        .kubectl(&["get", kind, "--all-namespaces", "-o", "json"])
        .expect_ok();
    let list: Value = serde_json::from_str(&text).expect("kubectl writes JSON");
    list["items"].as_array().expect("a list has items").clone()
}

fn text<'a>(object: &'a Value, pointer: &str) -> &'a str {
    object.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

/// The Descriptions of a unit on a cluster, each with its manifests in one text.
#[track_caller]
fn descriptions(fleet: &Fleet, unit: &str, cluster: &str) -> Vec<(Value, String)> {
    let all = list(hub_cluster(fleet), "descriptions").into_iter();
    let of = all.filter(|object| {
        let label = |name: &str| text(object, &format!("/metadata/labels/{}", name.replace('/', "~1"))).to_owned();
        label("apps.clusternet.io/subs.name") == unit && label("clusters.clusternet.io/cluster-name") == cluster
    });
    of.map(|object| {
        let raw = object["spec"]["raw"].as_array().cloned().unwrap_or_default();
        let decoded = raw.iter().map(|raw| STANDARD.decode(raw.as_str().unwrap()).unwrap());
        let said = decoded
            .map(|bytes| String::from_utf8(bytes).unwrap())
            .collect::<Vec<_>>();
        (object, said.join("\n"))
    })
    .collect()
}

/// Waits until the Descriptions of a unit on a cluster say these words.
#[track_caller]
fn until_said(fleet: &Fleet, unit: &str, cluster: &str, words: &str) {
    eventually(LIMIT, &format!("{unit} on {cluster} says {words}"), || {
        let said = descriptions(fleet, unit, cluster);
        let found = said.iter().any(|(_, said)| said.contains(words));
        found.then_some(()).ok_or(format!("{said:?}"))
    });
}

/// Waits until every Description, Subscription and ManagedCluster says that all is well.
#[track_caller]
fn until_all_is_well(fleet: &Fleet) {
    eventually(LIMIT, "every status says that all is well", || {
        let cluster = hub_cluster(fleet);
        let descriptions = list(cluster, "descriptions");
        let subscriptions = list(cluster, "subs");
        let clusters = list(cluster, "mcls");
        let ready = |object: &Value| {
            let conditions = object["status"]["conditions"].as_array().cloned().unwrap_or_default();
            conditions
                .iter()
                .any(|condition| condition["type"] == "Ready" && condition["status"] == "True")
        };
        let well = !descriptions.is_empty()
            && descriptions.iter().all(|object| object["status"]["phase"] == "Success")
            && subscriptions
                .iter()
                .all(|object| object["status"]["completedReleases"] == 3)
            && clusters.iter().all(ready);
        let statuses: Vec<_> = [descriptions, subscriptions, clusters]
            .concat()
            .into_iter()
            .map(|object| object["status"].to_string())
            .collect();
        well.then_some(()).ok_or(statuses.join("\n"))
    });
}

const WRITTEN_KINDS: &str = "managedclusters.v1beta1.clusters.clusternet.io,subs,bases,descriptions";

fn all_versions(fleet: &Fleet) -> BTreeMap<String, String> {
    versions(hub_cluster(fleet), WRITTEN_KINDS)
}

/// The versions of what is made for the unit `staff/office`.
fn office(fleet: &Fleet) -> BTreeMap<String, String> {
    let mut versions = versions(hub_cluster(fleet), "bases,descriptions");
    versions.retain(|key, _| key.contains("/office-"));
    versions
}

#[test]
fn what_is_released_stands_in_the_hub_cluster_and_follows_every_change() {
    let mut fleet = prepare();
    start_hub(&mut fleet);
    pool::NAMES.iter().for_each(|name| fleet.start_agent(name));
    fleet.open_for_use();
    until_all_is_well(&fleet);
    what_kubectl_prints(&fleet);
    what_clusternet_would_find(&fleet);

    let (before, all_before) = (office(&fleet), all_versions(&fleet));
    assert_eq!(
        before.len(),
        6,
        "a Base and a Description on three clusters: {before:?}"
    );
    fleet.push(
        "Be brief",
        &[("feeds/web/greeting.yaml", &config_map("shop", "greeting", "hi there"))],
    );
    pool::NAMES
        .iter()
        .for_each(|cluster| until_said(&fleet, "web", cluster, "hi there"));
    until_all_is_well(&fleet);
    assert_eq!(office(&fleet), before, "what did not change was not written");
    let all: Vec<_> = all_versions(&fleet).into_keys().collect();
    let expected: Vec<_> = all_before.into_keys().collect();
    assert_eq!(all, expected, "nothing came and nothing went");

    fleet.repository.remove("subscriptions/staff/office.yaml");
    fleet.push("Close the office", &[]);
    eventually(LIMIT, "what was made for the office is gone", || {
        let left: Vec<_> = all_versions(&fleet)
            .into_keys()
            .filter(|key| key.contains("office"))
            .collect();
        left.is_empty().then_some(()).ok_or(format!("{left:?}"))
    });
    assert_eq!(descriptions(&fleet, "web", "bogota").len(), 1, "the others stay");

    until_all_is_well(&fleet);
    fleet.kill_hub();
    let before = all_versions(&fleet);
    start_hub(&mut fleet);
    until_connected(&fleet);
    until_reason(&fleet, CONDITION, "Written");
    wait::throughout(
        std::time::Duration::from_secs(4),
        "a hub that starts writes nothing",
        || {
            let now = all_versions(&fleet);
            (now == before).then_some(()).ok_or(format!("{now:?} was {before:?}"))
        },
    );
}

fn what_kubectl_prints(fleet: &Fleet) {
    let cluster = hub_cluster(fleet);
    let print = |kind: &str| cluster.kubectl(&["get", kind, "--all-namespaces"]).expect_ok();
    let clusters = print("managedclusters.v1beta1.clusters.clusternet.io");
    let line = clusters
        .lines()
        .find(|line| line.starts_with("bogota"))
        .expect("bogota is listed");
    let cells: Vec<_> = line.split_whitespace().collect();
    assert_eq!((cells[1], cells[3]), ("bogota", "Dual"), "{clusters}");
    assert!(cells[4].starts_with("v1."), "{clusters}");
    assert_eq!(cells[5], "True", "{clusters}");
    let descriptions = print("desc");
    let of_bogota: Vec<_> = descriptions.lines().filter(|line| line.starts_with("bogota")).collect();
    assert_eq!(of_bogota.len(), 2, "{descriptions}");
    assert!(
        of_bogota
            .iter()
            .all(|line| line.contains("Generic") && line.contains("Success")),
        "{descriptions}"
    );
    assert!(print("bases").contains("web-"), "{}", print("bases"));
    assert!(print("subs").contains("office"), "{}", print("subs"));
}

fn what_clusternet_would_find(fleet: &Fleet) {
    let cluster = hub_cluster(fleet);
    let subscription = cluster.get("shop", "subs/web").unwrap();
    let bound: Vec<_> = pool::NAMES.iter().map(|name| format!("{name}/{name}")).collect();
    assert_eq!(subscription["status"]["bindingClusters"], serde_json::json!(bound));
    assert_eq!(subscription["status"]["desiredReleases"], 3);
    let uid = text(&subscription, "/metadata/uid");
    let selector = format!("--selector=apps.clusternet.io/subs.uid={uid}");
    let bases = cluster
        .kubectl(&["get", "bases", "--all-namespaces", &selector, "-o", "json"])
        .expect_ok();
    let bases: Value = serde_json::from_str(&bases).unwrap();
    assert_eq!(
        bases["items"].as_array().map(Vec::len),
        Some(3),
        "its Bases are found by its UID"
    );
    for (description, said) in descriptions(fleet, "web", "colombo") {
        let owner = &description["metadata"]["ownerReferences"][0];
        let base = cluster
            .get("colombo", &format!("base/{}", text(owner, "/name")))
            .unwrap();
        assert_eq!(owner["uid"], base["metadata"]["uid"], "it belongs to its Base");
        let name = format!("{}-generic", text(&base, "/metadata/name"));
        assert_eq!(text(&description, "/metadata/name"), name);
        assert_eq!(base["spec"]["feeds"].as_array().map(Vec::len), Some(3), "{base}");
        assert!(said.contains("goodbye"), "{said}");
    }
}

#[test]
fn what_is_not_ours_is_named_and_left_alone() {
    let mut fleet = prepare();
    let foreign = "apiVersion: apps.clusternet.io/v1alpha1\nkind: Subscription\n\
         metadata: {namespace: default, name: web, labels: {who: me}}\nspec: {subscribers: [], feeds: []}\n";
    hub_cluster(&fleet).apply(&format!("{}---\n{foreign}", namespace("bogota")));
    fleet.push(
        "Open shop and office",
        &[
            ("subscriptions/default/web.yaml", &subscription("default", "web")),
            ("feeds/web/greeting.yaml", &config_map("shop", "greeting", "hello")),
            ("subscriptions/staff/office.yaml", &subscription("staff", "office")),
            ("feeds/office/rules.yaml", &config_map("office", "rules", "none")),
        ],
    );
    let before = versions(hub_cluster(&fleet), "subs");
    start_hub(&mut fleet);
    until_said(&fleet, "office", "colombo", "none");
    until_reason(&fleet, CONDITION, "ForeignObjects");
    let cluster = hub_cluster(&fleet);
    assert_eq!(cluster.names("bogota", "bases,descriptions"), Vec::<String>::new());
    assert!(!cluster.has("bogota", "managedclusters.v1beta1.clusters.clusternet.io/bogota"));
    let foreign = cluster.get("default", "subs/web").unwrap();
    assert_eq!(
        text(&foreign, "/metadata/resourceVersion"),
        before["Subscription/default/web"]
    );
    assert!(
        descriptions(&fleet, "web", "colombo").is_empty(),
        "nothing belongs to what is not ours"
    );

    // A copy of an object of ours has our label and all that we wrote, and is none of ours.
    let (original, _) = descriptions(&fleet, "office", "colombo").remove(0);
    let mut copy = original.clone();
    copy["metadata"]["name"] = "a-copy".into();
    for field in ["uid", "resourceVersion", "managedFields", "ownerReferences"] {
        copy["metadata"].as_object_mut().unwrap().remove(field);
    }
    cluster.apply(&copy.to_string());
    // Room is made, and a person removes what was written and changes the rest.
    cluster
        .kubectl(&["delete", "subs/web", "--namespace=default"])
        .expect_ok();
    cluster.kubectl(&["delete", "namespace", "bogota"]).expect_ok();
    until_said(&fleet, "web", "bogota", "hello");
    until_reason(&fleet, CONDITION, "Written");
    assert!(
        cluster.has("colombo", "desc/a-copy"),
        "nothing is removed without a proof"
    );

    // What a person changes in ours meanwhile, and even takes from us, is put right.
    fleet.kill_hub();
    let cluster = hub_cluster(&fleet);
    let name = text(&original, "/metadata/name");
    let patch = r#"{"spec": {"raw": []}, "metadata": {"labels": {"fleet.flotilla.dev/mode": null}}}"#;
    let edit = [
        "patch",
        "desc",
        name,
        "--namespace=colombo",
        "--type=merge",
        "--patch",
        patch,
    ];
    cluster.kubectl(&edit).expect_ok();
    start_hub(&mut fleet);
    let object = ("colombo", &*format!("desc/{name}"));
    fleet.until_field("amsterdam", object, "/spec/raw", original["spec"]["raw"].clone());
    let put_right = hub_cluster(&fleet).get(object.0, object.1).unwrap();
    assert_eq!(
        put_right["metadata"]["uid"], original["metadata"]["uid"],
        "it was not made anew"
    );
}

#[test]
fn what_is_too_large_is_split_or_referenced() {
    let mut fleet = prepare();
    let large = |name: &str, bytes: usize| config_map("shop", name, &"x".repeat(bytes));
    let files = [
        ("subscriptions/shop/web.yaml", subscription("shop", "web")),
        ("feeds/web/a.yaml", large("a", 500 << 10)),
        ("feeds/web/b.yaml", large("b", 500 << 10)),
        ("feeds/web/c.yaml", large("c", 500 << 10)),
        ("feeds/web/huge.yaml", large("huge", 2 << 20)),
        (
            "feeds/web/key.yaml",
            "apiVersion: v1\nkind: Secret\nmetadata: {namespace: shop, name: key}\nstringData: {word: hunter2}\n"
                .to_owned(),
        ),
        (
            "fleet.yaml",
            MODE_OBJECTS.replace("approval: none", "approval: none, plaintextSecrets: warn"),
        ),
    ];
    let files: Vec<_> = files.iter().map(|(path, text)| (*path, text.as_str())).collect();
    fleet.push("Open a large shop", &files);
    start_hub(&mut fleet);
    until_reason(&fleet, CONDITION, "Written");
    eventually(LIMIT, "all of the unit is in Descriptions", || {
        let found = descriptions(&fleet, "web", "bogota");
        let names: Vec<_> = found
            .iter()
            .map(|(object, _)| text(object, "/metadata/name").to_owned())
            .collect();
        let all: String = found.iter().map(|(_, said)| said.as_str()).collect();
        let whole = [
            "\"a\"",
            "\"b\"",
            "\"c\"",
            "ConfigMap_shop_huge.yaml",
            "Secret_shop_key.yaml",
        ];
        let missing: Vec<_> = whole.iter().filter(|words| !all.contains(**words)).collect();
        let split = names.iter().any(|name| name.ends_with("-generic-2"));
        (missing.is_empty() && split)
            .then_some(())
            .ok_or(format!("{names:?} lack {missing:?}"))
    });
    let found = descriptions(&fleet, "web", "bogota");
    let all: String = found.iter().map(|(object, said)| format!("{object}{said}")).collect();
    assert!(!all.contains("hunter2"), "no value of a Secret is there");
    let reference = all
        .lines()
        .find(|line| line.contains("ConfigMap_shop_huge.yaml"))
        .unwrap();
    let stub: Value = serde_json::from_str(reference).expect("each manifest is one line of JSON");
    let path = text(&stub, "/metadata/annotations/fleet.flotilla.dev~1content-path");
    let released = fleet.repository.read("flotilla/released", path);
    let bytes = released.map_or(0, |text| text.len());
    assert!(bytes > 1 << 20, "{path} has {bytes} bytes in the released ref");
}

#[test]
fn a_hub_cluster_that_is_away_holds_up_no_delivery() {
    let mut fleet = prepare();
    start_hub(&mut fleet);
    ["bogota", "colombo"].iter().for_each(|name| fleet.start_agent(name));
    fleet.push(
        "Open shop",
        &[
            ("subscriptions/shop/web.yaml", &subscription("shop", "web")),
            ("feeds/web/namespace.yaml", &namespace("shop")),
            ("feeds/web/greeting.yaml", &config_map("shop", "greeting", "hello")),
        ],
    );
    until_said(&fleet, "web", "bogota", "hello");
    fleet.cluster_mut("amsterdam").stop_apiserver();
    fleet.push(
        "Go on",
        &[("feeds/web/greeting.yaml", &config_map("shop", "greeting", "again"))],
    );
    fleet.until_text(&["bogota", "colombo"], GREETING, "again");
    until_reason(&fleet, CONDITION, "HubClusterUnreachable");
    fleet.cluster_mut("amsterdam").start_apiserver();
    until_said(&fleet, "web", "bogota", "again");
    until_reason(&fleet, CONDITION, "Written");
}

#[test]
fn the_mode_without_a_hub_cluster_is_named_and_the_other_mode_leaves_what_is_there() {
    let mut fleet = prepare();
    fleet.start_hub(&NO_GRACE);
    let files = [
        ("subscriptions/shop/web.yaml", subscription("shop", "web")),
        ("feeds/web/greeting.yaml", config_map("shop", "greeting", "hello")),
    ];
    let files: Vec<_> = files.iter().map(|(path, text)| (*path, text.as_str())).collect();
    let commit = fleet.push("Open shop", &files);
    fleet.until_released(&commit);
    until_reason(&fleet, CONDITION, "NoHubCluster");
    fleet.kill_hub();
    start_hub(&mut fleet);
    until_said(&fleet, "web", "bogota", "hello");
    fleet.push("Write commits alone", &[("fleet.yaml", FLEET)]);
    until_reason(&fleet, CONDITION, "ModeCommits");
    let commit = fleet.push(
        "Go on",
        &[("feeds/web/greeting.yaml", &config_map("shop", "greeting", "again"))],
    );
    fleet.until_released(&commit);
    pass(std::time::Duration::from_secs(2));
    until_said(&fleet, "web", "bogota", "hello");
    assert!(!descriptions(&fleet, "web", "bogota")[0].1.contains("again"));
}
