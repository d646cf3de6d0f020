//! What leaves a cluster, in which order and by which word, also where another process sees to it.

use std::collections::BTreeMap;
use std::time::Duration;

use kube::api::{Patch, PatchParams};
use render::model::{ApplyPolicy, Dependency, DependencyClusters};
use serde_json::{Value, json};

use super::applier::*;
use crate::ApiServer;

const TIME: Duration = Duration::from_secs(600);

fn config_map_with(name: &str, field: &str, value: Value) -> Value {
    let mut object = config_map(name, "1");
    object["metadata"][field] = value;
    object
}

/// Takes the finalizers off a ConfigMap.
async fn let_go(server: &ApiServer, name: &str) {
    let patch = json!({"metadata": {"finalizers": null}});
    let api = api(server.client(), "ConfigMap", "default");
    let patched = api.patch(name, &PatchParams::default(), &Patch::Merge(&patch)).await;
    patched.expect("it is there");
}

fn is_going(server: &ApiServer, name: &str) -> bool {
    let live = stored(server, "configmaps.", "default", name);
    live.is_some_and(|live| live["metadata"]["deletionTimestamp"].is_string())
}

/// Delivers units with how they are applied.
fn deliver(applier: &mut Applier, units: &[(&str, &[Value], ApplyPolicy)]) {
    let keys: Vec<_> = units.iter().map(|(key, ..)| unit_key(key)).collect();
    let contents = units
        .iter()
        .map(|(_, objects, policy)| governed(objects, policy.clone()));
    let contents: BTreeMap<_, _> = keys.iter().zip(contents).collect();
    let (envelope, contents) = enveloped(applier.sequence + 1, &contents);
    applier.deliver_this(envelope, contents);
}

fn needs(unit: &str) -> ApplyPolicy {
    ApplyPolicy {
        depends_on: vec![Dependency {
            unit: unit_key(unit),
            clusters: DependencyClusters::Same,
        }],
        ..ApplyPolicy::default()
    }
}

/// An applier that goes on where another one ended, with nothing to deliver.
async fn take_all_away(server: &ApiServer, before: Applier) -> Applier {
    let sequence = before.sequence;
    before.stop().await;
    let mut applier = Applier::start(server.client());
    applier.sequence = sequence;
    applier.deliver(&[]);
    applier
}

#[tokio::test(start_paused = true)]
async fn removal_in_reverse_holds_over_a_restart() {
    let server = ApiServer::default();
    let mut applier = Applier::start(server.client());
    let held = config_map_with("web", "finalizers", json!(["example.dev/held"]));
    let after = config_map_with(
        "after",
        "annotations",
        json!({"fleet.flotilla.dev/depends-on": "/ConfigMap/default/first"}),
    );
    let mut after = after;
    after["metadata"]["finalizers"] = json!(["example.dev/held"]);
    // By their names alone, what is needed would go first.
    deliver(
        &mut applier,
        &[
            ("infra/base", &[config_map("base", "1")], ApplyPolicy::default()),
            ("shop/web", &[held], needs("infra/base")),
            ("team/a", &[config_map("first", "1")], ApplyPolicy::default()),
            ("team/b", &[after], ApplyPolicy::default()),
        ],
    );
    applier.until_settled().await;
    let applier = take_all_away(&server, applier).await;
    within(TIME, "what needs others is being deleted", || {
        is_going(&server, "web") && is_going(&server, "after")
    })
    .await;
    tokio::time::sleep(TIME).await;
    assert_eq!(
        value(&server, "base").as_deref(),
        Some("1"),
        "shop/web is there and needs it"
    );
    assert_eq!(
        value(&server, "first").as_deref(),
        Some("1"),
        "an object is there that needs it"
    );
    let_go(&server, "web").await;
    let_go(&server, "after").await;
    within(TIME, "nothing is left", || {
        ["base", "web", "first", "after"]
            .iter()
            .all(|name| value(&server, name).is_none())
    })
    .await;
    applier.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_unit_that_left_stays_by_the_newest_word_and_not_by_the_one_that_came_with_it() {
    let server = ApiServer::default();
    let mut applier = Applier::start(server.client());
    let (kept, gone) = (config_map("kept", "1"), config_map("gone", "1"));
    applier.deliver(&[("shop/kept", vec![kept]), ("shop/gone", vec![gone])]);
    applier.until_settled().await;
    let (mut envelope, contents) = enveloped(applier.sequence + 1, &BTreeMap::new());
    envelope.orphaned = BTreeMap::from([(unit_key("shop/kept"), 7)]);
    applier.deliver_this(envelope, contents);
    within(TIME, "the other one is gone", || value(&server, "gone").is_none()).await;
    within(TIME, "what stays is nobody's", || {
        let live = stored(&server, "configmaps.", "default", "kept");
        live.is_some_and(|live| live["metadata"]["annotations"]["fleet.flotilla.dev/unit"].is_null())
    })
    .await;
    applier
        .until("nothing is reported of it", |report| report.units.is_empty())
        .await;
    tokio::time::sleep(TIME).await;
    assert_eq!(value(&server, "kept").as_deref(), Some("1"));
    applier.stop().await;
}

#[tokio::test(start_paused = true)]
async fn the_word_for_a_unit_that_left_counts_for_nothing_that_is_delivered() {
    let server = ApiServer::default();
    let mut applier = Applier::start(server.client());
    applier.deliver(&[("shop/web", vec![config_map("a", "1"), config_map("b", "1")])]);
    applier.until_settled().await;
    let key = unit_key("shop/web");
    let contents = BTreeMap::from([(&key, described(&[config_map("a", "1")]))]);
    let (mut envelope, contents) = enveloped(applier.sequence + 1, &contents);
    envelope.orphaned = BTreeMap::from([(key.clone(), 7)]);
    applier.deliver_this(envelope, contents);
    within(TIME, "what left the unit is gone", || value(&server, "b").is_none()).await;
    assert_eq!(value(&server, "a").as_deref(), Some("1"));
    applier.stop().await;
}
