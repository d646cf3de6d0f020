//! An agent that is killed (SIGKILL) while it applies and removes, against a real API server. What each write
//! leaves behind is held to account by the thousand in the harness; here is the real thing, some times.

use std::collections::{BTreeMap, BTreeSet};

use flotilla_tests::{ControlPlane, eventually, wait};
use serde_json::Value;

use super::delivery::*;
use super::journalled::Journalled;

const KILLS: usize = 8;
const OBJECTS: usize = 60;

/// Each delivery leaves out some objects, changes all others, and puts every third into another unit.
fn delivery(number: usize) -> BTreeMap<&'static str, Vec<Value>> {
    let mut units = BTreeMap::from([("shop/a", Vec::new()), ("shop/b", Vec::new())]);
    for object in wanted(number) {
        let unit = if (object + number).is_multiple_of(3) {
            "shop/a"
        } else {
            "shop/b"
        };
        let manifest = config_map("default", &name(object), &number.to_string());
        units.entry(unit).or_default().push(manifest);
    }
    units
}

fn wanted(number: usize) -> impl Iterator<Item = usize> {
    (0..OBJECTS).filter(move |object| !(object * 7 + number * 5).is_multiple_of(4))
}

fn name(object: usize) -> String {
    format!("object-{object}")
}

/// Name → (UID, value) of what is there.
fn there(cluster: &ControlPlane) -> Result<BTreeMap<String, (String, String)>, String> {
    let list = cluster.get("default", "configmaps")?;
    let items = list["items"].as_array().cloned().unwrap_or_default();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let objects = items.iter().map(|item| {
        let metadata = &item["metadata"];
        (
            text(&metadata["name"]),
            (text(&metadata["uid"]), text(&item["data"]["value"])),
        )
    });
    Ok(objects.collect())
}

#[test]
fn an_agent_killed_while_it_applies_and_removes_leaves_nothing_and_loses_nothing() {
    let cluster = cluster("killed");
    let theirs = ["create", "configmap", "theirs", "--from-literal=value=1"];
    cluster.kubectl(&theirs).expect_ok();
    let agent = Journalled::new("killed", &cluster.kubeconfig());
    let mut uids: BTreeMap<String, String> = BTreeMap::new();
    for number in 1..=KILLS {
        let units: Vec<_> = delivery(number).into_iter().collect();
        agent.take(number as u64, &units);
        let mut process = agent.start();
        // Somewhere in the middle, at another place each time.
        let enough = 1 + number * 5;
        eventually(wait::LONG, "it is under way", || {
            process.assert_running();
            let value = number.to_string();
            let done = there(&cluster)?.values().filter(|(_, found)| *found == value).count();
            if done >= enough {
                Ok(())
            } else {
                Err(format!("{done} are done"))
            }
        });
        process.kill();
        let now = there(&cluster).expect("the API server answers");
        for object in wanted(number) {
            let name = name(object);
            if let (Some(before), Some((after, _))) = (uids.get(&name), now.get(&name)) {
                assert_eq!(
                    before, after,
                    "{name} was wanted before and is wanted now: it is the same object"
                );
            }
        }
        uids = now.into_iter().map(|(name, (uid, _))| (name, uid)).collect();
    }
    let last = KILLS + 1;
    let units: Vec<_> = delivery(last).into_iter().collect();
    agent.take(last as u64, &units);
    let mut process = agent.start();
    let value = last.to_string();
    let mut expected: BTreeSet<(String, String)> = wanted(last).map(|object| (name(object), value.clone())).collect();
    expected.insert(("theirs".to_owned(), "1".to_owned()));
    eventually(
        wait::LONG,
        "exactly what was delivered last is there, and what others have",
        || {
            process.assert_running();
            let mut found = there(&cluster)?;
            found.remove("kube-root-ca.crt");
            let found: BTreeSet<_> = found.into_iter().map(|(name, (_, value))| (name, value)).collect();
            if found == expected {
                Ok(())
            } else {
                Err(format!("{found:?}"))
            }
        },
    );
}
