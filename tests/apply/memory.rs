//! The memory of an agent goes with what is its own. The API server is the one in memory, since it is the agent
//! that is measured, in a process of its own.

use std::fs;

use flotilla_tests::{eventually, wait};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, PostParams};
use serde_json::{Value, json};

use super::delivery::config_map;
use super::journalled::Journalled;
use super::served::Served;

/// What an agent of a debug build may take: the release build's goals are half of it.
const RESIDENT_MIB_MAX: f64 = 200.0;

impl Served {
    fn config_maps(&self) -> Api<ConfigMap> {
        Api::namespaced(self.client.clone(), "default")
    }

    /// Starts an agent that finds these objects in its journal, waits until they are all there, and says what
    /// memory it took at most, in MiB.
    fn peak_of_an_agent(&self, objects: Vec<Value>) -> f64 {
        let count = objects.len();
        let journalled = Journalled::new("memory", &self.kubeconfig(&json!({})));
        journalled.take(1, &[("shop/web", objects)]);
        let mut agent = journalled.start();
        eventually(wait::LONG * 3, "the inventory says that all are applied", || {
            agent.assert_running();
            self.noted(count)
        });
        peak(agent.id())
    }

    /// Whether the inventory has every object with its UID.
    fn noted(&self, count: usize) -> Result<(), String> {
        let api: Api<ConfigMap> = Api::namespaced(self.client.clone(), "flotilla-system");
        let shards = self
            .runtime
            .block_on(api.list(&Default::default()))
            .map_err(|error| error.to_string())?;
        let texts = shards
            .items
            .iter()
            .filter_map(|shard| shard.data.as_ref()?.get("inventory.json"));
        let noted: usize = texts.map(|text| text.matches("\"uid\"").count()).sum();
        if noted == count {
            Ok(())
        } else {
            Err(format!("{noted} of {count} are noted"))
        }
    }
}

/// The most memory that a process ever had, in MiB.
fn peak(process: u32) -> f64 {
    let status = fs::read_to_string(format!("/proc/{process}/status")).expect("the process runs");
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))
        .expect("Linux says it");
    let kib: f64 = line
        .split_whitespace()
        .next()
        .and_then(|kib| kib.parse().ok())
        .expect("a number");
    kib / 1024.0
}

#[test]
fn memory_goes_with_what_is_ours_and_not_with_what_is_in_the_cluster() {
    let served = Served::start();
    let foreign = if std::env::var_os("FLOTILLA_LONG").is_some_and(|set| set != "0") {
        200_000
    } else {
        20_000
    };
    let api = served.config_maps();
    served.runtime.block_on(async {
        for number in 0..foreign {
            let object = serde_json::from_value(config_map("default", &format!("theirs-{number}"), "1"));
            let object = object.expect("a ConfigMap");
            api.create(&PostParams::default(), &object).await.expect("it is made");
        }
    });
    let objects: Vec<_> = (0..100)
        .map(|number| config_map("default", &format!("ours-{number}"), "1"))
        .collect();
    let peak = served.peak_of_an_agent(objects);
    assert!(
        peak < RESIDENT_MIB_MAX,
        "{peak} MiB with 100 objects of ours and {foreign} of others"
    );
}

#[test]
fn ten_thousand_objects_of_one_unit_are_applied_within_the_memory_bound() {
    let served = Served::start();
    let objects: Vec<_> = (0..10_000)
        .map(|number| config_map("default", &format!("ours-{number:05}"), "1"))
        .collect();
    let peak = served.peak_of_an_agent(objects);
    assert!(peak < RESIDENT_MIB_MAX, "{peak} MiB with 10,000 objects");
}
