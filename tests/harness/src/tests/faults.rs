//! Our applier against a server that fails: it tries again, not too often, and removes nothing wrongly.

use std::time::Duration;

use kube::api::DeleteParams;
use reconciler::wire::{ObjectState, UnitState};
use serde_json::Value;

use super::applier::*;
use crate::{ApiServer, Cut, Fault, Requests};

/// Verb and resource of every request that an applier makes for a unit of ConfigMaps and Deployments.
const REQUESTS: [(&str, &str); 12] = [
    ("list", "configmaps"),
    ("create", "configmaps"),
    ("update", "configmaps"),
    ("patch", "configmaps"),
    ("get", "configmaps"),
    ("delete", "configmaps"),
    ("patch", "deployments"),
    ("get", "deployments"),
    ("watch", "deployments"),
    ("create", "leases"),
    ("get", "leases"),
    ("update", "leases"),
];

fn only(verb: &str, resource: &str) -> Requests {
    Requests {
        verb: Some(verb.to_owned()),
        resource: Some(resource.to_owned()),
        ..Requests::default()
    }
}

fn requests(server: &ApiServer, verb: &str, resource: &str) -> u64 {
    let key = (verb.to_owned(), resource.to_owned());
    server.requests().get(&key).copied().unwrap_or_default()
}

fn unit(value: &str) -> Vec<Value> {
    vec![config_map("a", value), config_map("b", value), deployment("web", 1)]
}

/// Applies, changes and removes, while each kind of request fails some times in a row.
async fn check(fault: Fault) {
    for (verb, resource) in REQUESTS {
        let server = ApiServer::default();
        let foreign = api(server.client(), "ConfigMap", "default");
        let theirs = serde_json::from_value(config_map("theirs", "1")).expect("an object");
        foreign.create(&Default::default(), &theirs).await.expect("it is made");
        let fail = || {
            let next = Some(3);
            server.faults().set(
                fault,
                Requests {
                    next,
                    ..only(verb, resource)
                },
            );
        };
        fail();
        let mut applier = Applier::start(server.client());
        applier.deliver(&[("shop/web", unit("1")), ("shop/other", vec![config_map("c", "1")])]);
        applier.until_settled().await;
        fail();
        applier.deliver(&[("shop/web", unit("2")), ("shop/other", vec![config_map("c", "1")])]);
        applier.until_settled().await;
        fail();
        applier.deliver(&[("shop/web", vec![config_map("a", "2"), deployment("web", 1)])]);
        applier.until_settled().await;
        let what = format!("{fault:?} of {verb} {resource}");
        assert_eq!(
            value(&server, "a").as_deref(),
            Some("2"),
            "{what}: what is delivered is there"
        );
        within(
            Duration::from_secs(600),
            &format!("{what}: what left its unit, or with its unit, is gone"),
            || value(&server, "b").is_none() && value(&server, "c").is_none(),
        )
        .await;
        assert_eq!(
            value(&server, "theirs").as_deref(),
            Some("1"),
            "{what}: others' objects stay"
        );
        assert!(
            stored(&server, "deployments.apps", "default", "web").is_some(),
            "{what}: and so does the rest"
        );
        if resource != "leases" {
            let made = requests(&server, verb, resource);
            assert!(made < 60, "{what}: {made} requests were made");
        }
        applier.stop().await;
    }
}

#[tokio::test(start_paused = true)]
async fn every_request_that_fails_with_5xx_is_tried_again() {
    for code in [500, 502, 503, 504] {
        check(Fault::ServerError { code }).await;
    }
}

#[tokio::test(start_paused = true)]
async fn every_request_that_is_refused_for_the_moment_is_tried_again() {
    let retry_after = Duration::from_secs(2);
    check(Fault::TooManyRequests { retry_after }).await;
    check(Fault::Unauthorized).await;
    check(Fault::Conflict).await;
}

#[tokio::test(start_paused = true)]
async fn every_request_whose_connection_fails_is_tried_again() {
    check(Fault::Unreachable).await;
    check(Fault::AnswerLost).await;
    check(Fault::AnswerCut(Cut::Reset)).await;
    check(Fault::AnswerCut(Cut::Truncated)).await;
}

#[tokio::test(start_paused = true)]
async fn every_request_without_an_answer_is_tried_again() {
    check(Fault::Hang).await;
    check(Fault::AnswerCut(Cut::Stalled)).await;
}

#[tokio::test(start_paused = true)]
async fn slow_answers_are_waited_for() {
    check(Fault::Latency(Duration::from_secs(8))).await;
}

#[tokio::test(start_paused = true)]
async fn a_busy_server_is_left_alone_as_long_as_it_says() {
    let server = ApiServer::default();
    let mut applier = Applier::start(server.client());
    applier.deliver(&[("shop/web", vec![config_map("a", "1")])]);
    applier.until_settled().await;
    let retry_after = Duration::from_secs(20);
    let id = server
        .faults()
        .set(Fault::TooManyRequests { retry_after }, only("patch", "configmaps"));
    let before = requests(&server, "patch", "configmaps");
    applier.deliver(&[("shop/web", vec![config_map("a", "2")])]);
    applier
        .until("it is said", |report| report.trouble.contains("many requests"))
        .await;
    assert_eq!(requests(&server, "patch", "configmaps"), before + 1);
    tokio::time::sleep(Duration::from_secs(19)).await;
    assert_eq!(
        requests(&server, "patch", "configmaps"),
        before + 1,
        "it asked for twenty seconds"
    );
    // A newer delivery is no reason to ask earlier, and is what is sent then.
    server.faults().clear(id);
    applier.deliver(&[("shop/web", vec![config_map("a", "3")])]);
    applier.until_settled().await;
    assert_eq!(requests(&server, "patch", "configmaps"), before + 2);
    assert_eq!(value(&server, "a").as_deref(), Some("3"));
    applier.stop().await;
}

#[tokio::test(start_paused = true)]
async fn one_object_that_always_fails_holds_up_no_other_and_is_asked_for_less_and_less() {
    for fault in [
        Fault::ServerError { code: 500 },
        Fault::Hang,
        Fault::AnswerCut(Cut::Truncated),
    ] {
        let server = ApiServer::default();
        let name = Some("b".to_owned());
        server.faults().set(
            fault,
            Requests {
                name,
                ..only("patch", "configmaps")
            },
        );
        let mut applier = Applier::start(server.client());
        applier.deliver(&[("shop/web", unit("1")), ("shop/other", vec![config_map("c", "1")])]);
        applier.until_unit("shop/other", UnitState::Applied).await;
        let report = applier.until_unit("shop/web", UnitState::Failed).await;
        assert_eq!(report.counts.applied, 2, "{fault:?}: {report:#?}");
        assert_eq!(report.worst[0].state, ObjectState::Failed);
        assert_eq!(report.worst[0].object.name, "b");
        let before = requests(&server, "patch", "configmaps");
        tokio::time::sleep(Duration::from_secs(600)).await;
        let made = requests(&server, "patch", "configmaps") - before;
        // Every thirty seconds at the most, a quarter less with jitter.
        assert!((5..=35).contains(&made), "{fault:?}: {made} requests in ten minutes");
        server.faults().clear_all();
        applier.until_settled().await;
        applier.stop().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_group_that_is_away_removes_nothing_and_stops_nothing_else() {
    let server = ApiServer::default();
    let mut applier = Applier::start(server.client());
    applier.deliver(&[("shop/web", unit("1")), ("shop/other", vec![deployment("other", 1)])]);
    applier.until_settled().await;
    server.faults().take_away_group("apps");
    // A new process knows the kinds only by what discovery says now.
    applier.stop().await;
    let mut applier = Applier::start(server.client());
    applier.sequence = 1;
    applier.deliver(&[("shop/web", vec![config_map("a", "2"), config_map("new", "2")])]);
    applier
        .until("what can be removed is", |report| {
            let unit = report.units.get(&unit_key("shop/web"));
            unit.is_some_and(|unit| unit.counts.applied == 2)
        })
        .await;
    assert_eq!(value(&server, "new").as_deref(), Some("2"), "the rest is applied");
    tokio::time::sleep(Duration::from_secs(900)).await;
    for name in ["web", "other"] {
        let there = stored(&server, "deployments.apps", "default", name);
        assert!(
            there.is_some_and(|object| object["metadata"]["deletionTimestamp"].is_null()),
            "{name} stays"
        );
    }
    server.faults().bring_back_group("apps");
    within(Duration::from_secs(60), "they go when the group is back", || {
        ["web", "other"]
            .iter()
            .all(|name| stored(&server, "deployments.apps", "default", name).is_none())
    })
    .await;
    applier.stop().await;
}

/// Takes an object away by hand, and waits until it is back.
async fn put_back(server: &ApiServer, kind: &str, shelf: &str, name: &str, time: Duration) {
    let uid = |object: Option<Value>| object.map(|object| object["metadata"]["uid"].clone());
    let before = uid(stored(server, shelf, "default", name));
    let api = api(server.client(), kind, "default");
    api.delete(name, &DeleteParams::default()).await.expect("it is removed");
    within(time, &format!("{kind} {name} is back"), || {
        let now = uid(stored(server, shelf, "default", name));
        now.is_some() && now != before
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn drift_is_put_right_again_after_the_server_was_away_forgot_or_fell_silent() {
    let server = ApiServer::default();
    let mut applier = Applier::start(server.client());
    applier.deliver(&[("shop/web", unit("1"))]);
    applier.until_settled().await;
    let soon = Duration::from_secs(10);
    put_back(&server, "Deployment", "deployments.apps", "web", soon).await;
    // Away for two minutes.
    let away = server.faults().set(Fault::Unreachable, Requests::default());
    server.faults().drop_watches();
    tokio::time::sleep(Duration::from_secs(120)).await;
    server.faults().clear(away);
    put_back(&server, "Deployment", "deployments.apps", "web", RESYNC + soon).await;
    // What the watch knew last is forgotten: 410.
    server.forget_events();
    server.faults().drop_watches();
    tokio::time::sleep(soon).await;
    put_back(&server, "Deployment", "deployments.apps", "web", soon).await;
    // A line that is dead at one end only: watches say nothing more, and do not end.
    server.faults().silence_watches();
    put_back(&server, "Deployment", "deployments.apps", "web", RESYNC + soon).await;
    // By then the watches were begun anew, and say at once what happens.
    tokio::time::sleep(RESYNC).await;
    put_back(&server, "Deployment", "deployments.apps", "web", soon).await;
    put_back(&server, "ConfigMap", "configmaps.", "a", RESYNC + soon).await;
    applier.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_cluster_that_was_restored_from_its_backup_is_brought_up_to_date() {
    let server = ApiServer::default();
    let mut applier = Applier::start(server.client());
    applier.deliver(&[("shop/web", unit("1")), ("shop/gone", vec![config_map("gone", "1")])]);
    applier.until_settled().await;
    let backup = server.backup();
    applier.deliver(&[("shop/web", unit("2")), ("shop/new", vec![config_map("new", "2")])]);
    applier.until_settled().await;
    assert_eq!(value(&server, "gone"), None);
    server.restore(&backup);
    assert_eq!(
        value(&server, "gone").as_deref(),
        Some("1"),
        "it is back, as the backup had it"
    );
    within(RESYNC * 3, "the cluster is as it was delivered", || {
        value(&server, "a").as_deref() == Some("2")
            && value(&server, "new").is_some()
            && value(&server, "gone").is_none()
    })
    .await;
    applier.stop().await;
}
