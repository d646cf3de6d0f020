//! People at the door of a hub that ends.

use http::StatusCode;
use tokio::time::{pause, timeout};

use super::world::World;
use super::{PODS, SOON};
use crate::hub::ending_tests::pass;
use crate::limits::{API_DRAIN_TIMEOUT, DRAIN_TIMEOUT};

const WATCH: &str = "/clusters/oslo/api/v1/namespaces/shop/pods?watch=true";

#[tokio::test]
async fn what_is_under_way_when_a_hub_ends_goes_on_and_who_has_just_come_is_answered() {
    let mut world = World::new().await;
    let mut watch = world.begin("ada", WATCH).await;
    let mut stream = world.endless().await;
    stream.say("one").await;
    assert_eq!(watch.next().await.as_deref(), Some("one"));
    // Somebody has come and not asked yet, and somebody is sent here who does not know that it ends.
    let mut come = world.http2_certified().await;
    world.stop.cancel();
    assert_eq!(come.get(PODS).await, Some(StatusCode::OK), "who has come is heard");
    let late = world.get("ada", PODS, &[]).await;
    assert_eq!(late.status, StatusCode::OK, "so is who comes a moment later");
    let closed = async {
        while !world.is_closed().await {
            tokio::time::sleep(API_DRAIN_TIMEOUT / 100).await;
        }
    };
    timeout(SOON, closed).await.expect("then nobody is let in");
    assert!(!world.open.is_finished(), "it waits for the watch");
    stream.say("two").await;
    assert_eq!(watch.next().await.as_deref(), Some("two"), "which goes on");
    stream.end().await;
    assert_eq!(watch.next().await, None, "to its end");
    timeout(SOON, &mut world.open)
        .await
        .expect("nothing else is waited for")
        .expect("without a panic");
    let line = world
        .audited(|line| line["verb"] == "watch" && line["stage"].is_null())
        .await;
    assert_eq!(line["close"], "done");
}

#[tokio::test]
async fn what_never_ends_is_cut_off_when_its_hub_has_waited_long_enough_and_written_down() {
    let mut world = World::new().await;
    let mut watch = world.begin("ada", WATCH).await;
    let mut stream = world.endless().await;
    stream.say("one").await;
    assert_eq!(watch.next().await.as_deref(), Some("one"));
    pause();
    world.stop.cancel();
    pass(DRAIN_TIMEOUT - API_DRAIN_TIMEOUT).await;
    assert!(!world.open.is_finished(), "it may take so long");
    pass(API_DRAIN_TIMEOUT * 2).await;
    timeout(SOON, &mut world.open)
        .await
        .expect("and no longer")
        .expect("without a panic");
    assert_eq!(watch.next().await, None, "nothing more came");
    let line = world
        .audited(|line| line["verb"] == "watch" && line["stage"].is_null())
        .await;
    assert_eq!(line["close"], "cancelled");
}
