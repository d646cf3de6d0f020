//! What lasts: with which login it ends, what it leaves to others, and that it is written down.

use http::StatusCode;
use tokio::time::timeout;

use super::world::{Seen, World};
use super::{PODS, SOON};
use crate::audit::AuditLog;

#[tokio::test]
async fn callers_who_never_end_their_body_hold_no_more_than_their_own_places() {
    let world = World::new().await;
    let path = "/clusters/oslo/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
    let mut connection = world.http2().await;
    let most = crate::limits::DOOR_REQUESTS_OF_PERSON_MAX;
    let held: Vec<_> = (0..most).map(|_| connection.half("ada", path)).collect();
    let full = connection.half("ada", path).await;
    assert_eq!(full, StatusCode::TOO_MANY_REQUESTS, "her places are taken");
    let answer = world.get("eve", PODS, &[]).await;
    assert_eq!(answer.status, StatusCode::OK, "others have theirs: {answer:?}");
    drop(held);
}

#[tokio::test]
async fn a_login_that_ends_ends_what_began_with_it() {
    use tokio::io::AsyncReadExt as _;
    let mut world = World::that(true).await;
    let watch = "/clusters/oslo/api/v1/namespaces/shop/pods?watch=true";
    let mut watches = [world.begin("ada", watch).await, world.begin("eve", watch).await];
    let (mut streams, mut seen) = (Vec::new(), Vec::new());
    for _ in &watches {
        let Seen { caller, .. } = world.seen().await;
        let mut stream = world.endless().await;
        stream.say("one").await;
        streams.push(stream);
        seen.push(caller.user);
    }
    let exec = "/clusters/oslo/api/v1/namespaces/shop/pods/web/exec?command=cat&stdin=true";
    let mut command = world.exec("ada", exec).await.expect("it is carried");
    let mut certified = world.http2_certified().await;
    assert_eq!(
        certified.get(PODS).await,
        Some(StatusCode::OK),
        "cleo has a certificate"
    );
    for watch in &mut watches {
        assert_eq!(watch.next().await.as_deref(), Some("one"));
    }
    world.log_out("ada");
    world.change_authority();
    assert_eq!(timeout(SOON, watches[0].next()).await, Ok(None), "her watch ends");
    let ended = timeout(SOON, command.read(&mut [0; 8])).await.expect("in time");
    assert!(matches!(ended, Ok(0) | Err(_)), "and her command: {ended:?}");
    assert_eq!(world.get("ada", PODS, &[]).await.status, StatusCode::UNAUTHORIZED);
    // Refused, or ended as a whole.
    let kept = certified.get(PODS).await;
    assert!(matches!(kept, None | Some(StatusCode::UNAUTHORIZED)), "{kept:?}");
    assert_eq!(
        world.get("eve", PODS, &[]).await.status,
        StatusCode::OK,
        "others stay logged in"
    );
    let eves = seen.iter().position(|user| user == "eve").expect("she watches");
    streams[eves].say("two").await;
    assert_eq!(
        watches[1].next().await.as_deref(),
        Some("two"),
        "and what they watch goes on"
    );
}

#[tokio::test]
async fn a_right_that_is_taken_away_ends_a_log_that_nobody_reads() {
    let mut world = World::new().await;
    let log = world
        .begin("ada", "/clusters/oslo/api/v1/namespaces/shop/pods?watch=true")
        .await;
    let (_, mut stream) = (world.seen().await, world.endless().await);
    let line = "x".repeat(64 << 10);
    // Until all that lies between has as much as it takes.
    while timeout(std::time::Duration::from_secs(1), stream.say(&line))
        .await
        .is_ok()
    {}
    world.take_rights_away();
    timeout(SOON, stream.closed()).await.expect("the cluster hears of it");
    let ended = world
        .audited(|line| line["user"] == "ada" && line["stage"].is_null())
        .await;
    assert_eq!(ended["close"], "revoked", "{ended}");
    drop(log);
}

#[tokio::test]
async fn one_address_that_never_logs_in_shuts_out_nobody_else() {
    let world = World::new().await;
    let mut silent = Vec::new();
    let most = crate::limits::DOOR_NEWCOMERS_MAX / crate::limits::PLACES_OF_STRANGER;
    for _ in 0..most + 10 {
        silent.push(world.silent("127.0.0.2").await);
    }
    assert!(silent.iter().flatten().count() <= most, "it has its share");
    assert_eq!(world.get("ada", PODS, &[]).await.status, StatusCode::OK);
}

#[tokio::test]
async fn one_person_leaves_watches_of_the_hub_to_others() {
    let world = World::new().await;
    let watch = "/apis/fleet.flotilla.dev/v1alpha1/managedclusters?watch=true";
    let mut connection = world.http2().await;
    let mut held = Vec::new();
    for _ in 0..crate::limits::API_WATCHES_OF_PERSON_MAX {
        held.push(connection.watch("ada", watch).await);
    }
    let statuses = |held: &[http::Response<hyper::body::Incoming>]| {
        held.iter().filter(|answer| answer.status() == StatusCode::OK).count()
    };
    assert_eq!(statuses(&held), held.len());
    assert_eq!(
        connection.watch("ada", watch).await.status(),
        StatusCode::TOO_MANY_REQUESTS
    );
    assert_eq!(connection.watch("eve", watch).await.status(), StatusCode::OK);
    held.pop();
    let again = async {
        while connection.watch("ada", watch).await.status() != StatusCode::OK {
            tokio::task::yield_now().await;
        }
    };
    timeout(SOON, again).await.expect("one was given back");
}

#[tokio::test]
async fn one_person_leaves_answers_of_the_hub_to_others() {
    let world = World::new().await;
    let mut connection = world.http2().await;
    let most = crate::limits::API_REQUESTS_OF_PERSON_MAX;
    let held: Vec<_> = (0..most).map(|_| connection.read("ada", "/hangs")).collect();
    let refused = connection.watch("ada", "/hangs").await;
    assert_eq!(refused.status(), StatusCode::TOO_MANY_REQUESTS);
    assert_eq!(refused.headers()["retry-after"], "1");
    let clusters = "/apis/fleet.flotilla.dev/v1alpha1/managedclusters";
    assert_eq!(world.get("eve", clusters, &[]).await.status, StatusCode::OK);
    let oslo = world.get("ada", PODS, &[]).await;
    assert_eq!(oslo.status, StatusCode::OK, "a cluster's places are others: {oslo:?}");
    drop((held, connection));
    let again = async {
        while world.get("ada", clusters, &[]).await.status != StatusCode::OK {
            tokio::task::yield_now().await;
        }
    };
    timeout(SOON, again).await.expect("they are given back");
}

#[tokio::test]
async fn a_command_has_an_audit_line_while_it_goes_on_and_one_when_it_ended() {
    let world = World::that(true).await;
    let path = "/clusters/oslo/api/v1/namespaces/shop/pods/web/exec?command=cat&stdin=true";
    let command = world.exec("ada", path).await.expect("it is carried");
    let is_of_her = |line: &serde_json::Value| line["user"] == "ada" && line["resource"] == "pods/exec";
    let begun = world.audited(|line| is_of_her(line) && line["stage"] == "begun").await;
    assert_eq!(
        (&begun["class"], &begun["cluster"], &begun["by"], &begun["from"]),
        (
            &"interactive".into(),
            &"oslo".into(),
            &"ClusterRoleBinding ops".into(),
            &"127.0.0.1".into()
        )
    );
    assert!(begun["close"].is_null(), "{begun}");
    drop(command);
    let ended = world.audited(|line| is_of_her(line) && line["stage"].is_null()).await;
    assert_eq!(
        (&ended["requestId"], &ended["code"]),
        (&begun["requestId"], &101.into())
    );
    assert!(ended["close"].is_string(), "{ended}");
    let read = world.get("ada", PODS, &[]).await;
    let line = world.audited(|line| line["resource"] == "pods").await;
    assert_eq!(
        (&line["close"], &line["bytesDown"]),
        (&"done".into(), &read.body.len().into())
    );
    let _ = world.get("bob", PODS, &[]).await;
    let line = world.audited(|line| line["user"] == "bob").await;
    assert!(line["by"].is_null() && line["code"] == 403, "{line}");
}

#[tokio::test]
async fn nobody_is_answered_while_the_audit_log_cannot_be_written() {
    let mut world = World::with_a_full_disk().await;
    // What was asked first is what shows it.
    let refused = async {
        loop {
            let answer = world.get("ada", PODS, &[]).await;
            if answer.status != StatusCode::OK {
                return answer;
            }
            let _ = world.seen().await;
        }
    };
    let refused = timeout(SOON, refused).await.expect("it is noticed");
    assert_eq!(refused.status, StatusCode::SERVICE_UNAVAILABLE, "{refused:?}");
    assert!(refused.body.contains("audit log cannot be written"), "{refused:?}");
    assert!(!refused.headers.contains_key("retry-after"), "a person has to help");
    let exec = "/clusters/oslo/api/v1/namespaces/shop/pods/web/exec?command=cat&stdin=true";
    assert_eq!(
        world.exec("ada", exec).await.map(drop),
        Err(StatusCode::SERVICE_UNAVAILABLE)
    );
    assert!(world.seen_nothing(), "nothing came to the cluster");
    assert_eq!(world.get("", "/healthz", &[]).await.status, StatusCode::OK);
}

#[tokio::test]
async fn who_is_refused_for_want_of_an_audit_log_leaves_room_for_who_was_served() {
    let (log, mut waiting) = AuditLog::failing(4);
    let lost = log.lost();
    let world = World::telling(log).await;
    for _ in 0..6 {
        let answer = world.get("ada", PODS, &[]).await;
        assert_eq!(answer.status, StatusCode::SERVICE_UNAVAILABLE, "{answer:?}");
    }
    let counted = async {
        while lost.count() < 4 {
            tokio::task::yield_now().await;
        }
    };
    timeout(SOON, counted).await.expect("what is left out is counted");
    let mut lines = 0;
    while waiting.try_recv().is_ok() {
        lines += 1;
    }
    assert_eq!(lines, 2, "half of the room");
}
