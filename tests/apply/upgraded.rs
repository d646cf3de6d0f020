//! A new version of Flotilla over a cluster that an older one left: nothing is written.
//!
//! `upgraded/sent.json` is what the version that began this sent, and `upgraded/inventory.json` is the inventory
//! that it left, without what the API server says (UIDs and versions). Whoever makes this test fail makes every
//! agent in the world write on its next upgrade; `UPDATE_GOLDEN=1` writes both anew.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use flotilla_tests::{ControlPlane, eventually, wait};
use reconciler::wire::UnitState;
use serde_json::{Value, json};

use super::delivery::*;

/// Every object of ours, as kubectl names kinds.
const KINDS: &str = "configmaps,secrets,deployments,services,clusterroles,namespaces,customresourcedefinitions,widgets";

fn golden(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("apply/upgraded").join(name)
}

fn read(name: &str) -> Value {
    let path = golden(name);
    let text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn unit() -> Vec<Value> {
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "token", "namespace": "shop"},
        "stringData": {"token": "1"}});
    let service = json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web", "namespace": "shop"},
        "spec": {"selector": {"app": "web"}, "ports": [{"port": 80}]}});
    let role = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
        "metadata": {"name": "shop-reader"},
        "rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list"]}]});
    vec![
        namespace("shop"),
        config_map("shop", "settings", "1"),
        secret,
        service,
        role,
        deployment("shop", "web", 0),
        widgets(),
        widget("shop", "w"),
    ]
}

/// What is sent for an object: it names its unit.
fn sent(object: &Value) -> Value {
    let mut object = object.clone();
    object["metadata"]["annotations"] = json!({"fleet.flotilla.dev/unit": "shop/web"});
    object
}

/// Leaves in a cluster what the older version left.
fn leave(cluster: &ControlPlane) {
    for object in read("sent.json").as_array().expect("a list") {
        let file = cluster.folder().join("sent.json");
        fs::write(&file, object.to_string()).expect("the folder is writable");
        let file = file.display().to_string();
        let apply = ["apply", "--server-side", "--field-manager=flotilla", "-f", &file];
        // A custom resource follows its definition, and an object its namespace, as soon as they are there.
        eventually(wait::LONG, "it is applied", || cluster.kubectl(&apply).ok());
    }
    let mut inventory = read("inventory.json");
    let objects = inventory["units"]["shop/web"]
        .as_object_mut()
        .expect("the unit is there");
    for (key, entry) in objects {
        let live = live(cluster, key);
        entry["uid"] = live["metadata"]["uid"].clone();
        entry["resourceVersion"] = live["metadata"]["resourceVersion"].clone();
    }
    cluster.kubectl(&["create", "namespace", "flotilla-system"]).expect_ok();
    let file = cluster.folder().join("inventory.json");
    fs::write(&file, inventory.to_string()).expect("the folder is writable");
    let from = format!("--from-file=inventory.json={}", file.display());
    let create = [
        "create",
        "configmap",
        "flotilla-inventory-00",
        "--namespace=flotilla-system",
        &from,
    ];
    cluster.kubectl(&create).expect_ok();
}

/// The object of an inventory's key: group/Kind/namespace/name.
#[track_caller]
fn live(cluster: &ControlPlane, key: &str) -> Value {
    let words: Vec<_> = key.split('/').collect();
    let [_, kind, namespace, name] = words[..] else {
        panic!("{key} is no key");
    };
    let resource = format!("{}/{name}", kind.to_lowercase());
    cluster.get(namespace, &resource).expect("it is there")
}

/// Object → version, of everything in the cluster that is of one of our kinds, the inventory included.
fn versions(cluster: &ControlPlane) -> Result<BTreeMap<String, String>, String> {
    let path = "jsonpath={range .items[*]}{.kind}/{.metadata.namespace}/{.metadata.name} {.metadata.resourceVersion}{\"\\n\"}{end}";
    let text = cluster.kubectl(&["get", KINDS, "--all-namespaces", "-o", path]).ok()?;
    let lines = text.lines().filter_map(|line| line.split_once(' '));
    Ok(lines
        .map(|(name, version)| (name.to_owned(), version.to_owned()))
        .collect())
}

/// Waits until the cluster's own controllers have nothing more to write.
#[track_caller]
fn settled(cluster: &ControlPlane) -> BTreeMap<String, String> {
    let mut before = BTreeMap::new();
    eventually(wait::LONG, "controllers have settled", || {
        let observed = cluster.get("shop", "deployment/web")?["status"]["observedGeneration"].clone();
        let now = versions(cluster)?;
        let same = now == before && !observed.is_null();
        before = now;
        if same {
            Ok(())
        } else {
            Err("something was written".to_owned())
        }
    });
    before
}

#[test]
fn a_new_version_over_unchanged_objects_writes_nothing() {
    let cluster = cluster("upgraded");
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        write_golden(&cluster);
        return;
    }
    leave(&cluster);
    let before = settled(&cluster);
    let mut applier = Applier::start(&cluster, "upgraded");
    applier.deliver(&[("shop/web", unit())]);
    let report = applier.until_unit("shop/web", UnitState::Applied);
    assert_eq!(report.counts.applied, unit().len());
    // Two comparisons of everything later, too.
    wait::throughout(Duration::from_secs(5), "nothing is written", || {
        let now = versions(&cluster)?;
        if now == before {
            return Ok(());
        }
        let changed: Vec<_> = now
            .iter()
            .filter(|(name, version)| before.get(*name) != Some(*version))
            .collect();
        Err(format!("{changed:?}"))
    });
    applier.stop();
}

fn write_golden(cluster: &ControlPlane) {
    let mut applier = Applier::start(cluster, "upgraded");
    applier.deliver(&[("shop/web", unit())]);
    applier.until_unit("shop/web", UnitState::Applied);
    applier.stop();
    let shard = cluster
        .get("flotilla-system", "configmap/flotilla-inventory-00")
        .expect("it is there");
    let text = shard["data"]["inventory.json"].as_str().expect("it has a text");
    let mut inventory: Value = serde_json::from_str(text).expect("it is JSON");
    for entry in inventory["units"]["shop/web"]
        .as_object_mut()
        .expect("the unit is there")
        .values_mut()
    {
        entry["uid"] = Value::Null;
        entry["resourceVersion"] = Value::Null;
    }
    let objects: Vec<_> = unit().iter().map(sent).collect();
    fs::create_dir_all(golden("")).expect("the checkout is writable");
    for (name, value) in [("inventory.json", inventory), ("sent.json", objects.into())] {
        let text = serde_json::to_string_pretty(&value).expect("it is JSON");
        fs::write(golden(name), text + "\n").expect("the checkout is writable");
    }
}
