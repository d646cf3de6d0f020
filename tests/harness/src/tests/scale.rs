//! What an applier asks of a cluster where a lot happens that is none of its business.

use std::collections::BTreeMap;
use std::time::Duration;

use kube::api::{Patch, PatchParams};
use serde_json::json;

use super::applier::*;
use crate::ApiServer;

const WORKLOADS: usize = 100;
const SECONDS: usize = 10;

/// What was asked since, leases aside.
fn asked(server: &ApiServer, before: &BTreeMap<(String, String), u64>) -> BTreeMap<(String, String), u64> {
    let asked = server.requests().into_iter().map(|(key, count)| {
        let earlier = before.get(&key).copied().unwrap_or_default();
        (key, count - earlier)
    });
    asked
        .filter(|((_, resource), count)| resource != "leases" && *count > 0)
        .collect()
}

#[tokio::test(start_paused = true)]
async fn statuses_that_change_all_the_time_are_neither_compared_nor_written() {
    let server = ApiServer::default();
    let mut applier = Applier::start(server.client());
    let workloads = (0..WORKLOADS)
        .map(|number| deployment(&format!("web-{number}"), 1))
        .collect();
    applier.deliver(&[("shop/web", workloads)]);
    applier.until_settled().await;
    tokio::time::sleep(Duration::from_secs(30)).await;
    let before = server.requests();
    let api = api(server.client(), "Deployment", "default");
    for second in 0..SECONDS {
        for number in 0..WORKLOADS {
            let status = json!({"status": {"collisionCount": second}});
            let params = PatchParams::default();
            let written = api
                .patch_status(&format!("web-{number}"), &params, &Patch::Merge(status))
                .await;
            written.expect("a controller writes its status");
        }
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    let controllers = ("patch".to_owned(), "deployments".to_owned());
    let theirs = BTreeMap::from([(controllers, (SECONDS * WORKLOADS) as u64)]);
    assert_eq!(
        asked(&server, &before),
        theirs,
        "the controllers' own writes, and nothing of the applier's"
    );
    applier.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_resync_of_unchanged_objects_among_many_of_others_only_reads_them_page_by_page() {
    let server = ApiServer::default();
    let foreign = api(server.client(), "ConfigMap", "default");
    for number in 0..2_000 {
        let object = serde_json::from_value(config_map(&format!("theirs-{number}"), "1")).expect("an object");
        foreign.create(&Default::default(), &object).await.expect("it is made");
    }
    let mut applier = Applier::start(server.client());
    let ours = (0..20)
        .map(|number| config_map(&format!("ours-{number}"), "1"))
        .collect();
    applier.deliver(&[("shop/web", ours)]);
    applier.until_settled().await;
    // The watch lists once as it begins.
    tokio::time::sleep(Duration::from_secs(5)).await;
    let before = server.requests();
    tokio::time::sleep(RESYNC + Duration::from_secs(30)).await;
    let asked = asked(&server, &before);
    let reads = ["get", "list", "watch"];
    let writes: Vec<_> = asked
        .keys()
        .filter(|(verb, _)| !reads.contains(&verb.as_str()))
        .collect();
    assert!(writes.is_empty(), "{asked:?}");
    let lists = asked
        .get(&("list".to_owned(), "configmaps".to_owned()))
        .copied()
        .unwrap_or_default();
    assert!(
        lists <= 10,
        "2,020 objects are five pages, twice at the most: {asked:?}"
    );
    applier.stop().await;
}
