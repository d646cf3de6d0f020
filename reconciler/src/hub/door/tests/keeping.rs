//! Streams that stay for the next request.

use std::collections::BTreeSet;

use http::StatusCode;
use tokio::time::timeout;

use super::world::World;
use super::{PODS, SOON};

/// Asks, and says on which stream it came to the agent, and by which id.
async fn ask(world: &mut World, who: &str, path: &str) -> (usize, String) {
    let answer = world.get(who, path, &[]).await;
    assert_eq!(
        (answer.status, answer.body.as_str()),
        (StatusCode::OK, "pods"),
        "{who} asks for {path}"
    );
    let seen = world.seen().await;
    assert_eq!(seen.caller.user, who);
    let id = answer.headers["audit-id"].to_str().expect("text").to_owned();
    assert!(seen.head.contains(&format!("audit-id: {id}\r\n")), "{}", seen.head);
    (seen.stream, id)
}

#[tokio::test]
async fn what_one_person_asks_in_a_row_goes_by_one_stream_and_nobody_elses() {
    let mut world = World::new().await;
    let mut ids = BTreeSet::new();
    for (who, expected) in [("ada", 0), ("ada", 0), ("eve", 1), ("ada", 0), ("eve", 1)] {
        let (stream, id) = ask(&mut world, who, PODS).await;
        assert_eq!(stream, expected, "{who}");
        assert!(ids.insert(id), "each request has its own id");
    }
    // What is refused here reaches no stream of anybody's.
    let refused = world.get("bob", PODS, &[]).await;
    assert_eq!(refused.status, StatusCode::FORBIDDEN);
    assert!(world.seen_nothing());
}

#[tokio::test]
async fn what_is_asked_beside_an_answer_has_another_stream() {
    let mut world = World::new().await;
    let watching = world.begin("ada", &format!("{PODS}?watch=true")).await;
    let watch = world.endless().await;
    assert_eq!(world.seen().await.stream, 0);
    assert_eq!(ask(&mut world, "ada", PODS).await.0, 1);
    watch.end().await;
    drop(watching);
    assert_eq!(ask(&mut world, "ada", PODS).await.0, 1);
}

#[tokio::test]
async fn a_stream_that_is_gone_by_the_next_request_loses_none() {
    let mut world = World::new().await;
    assert_eq!(ask(&mut world, "ada", &format!("{PODS}/leaves")).await.0, 0);
    assert_eq!(ask(&mut world, "ada", PODS).await.0, 1, "the agent left the first one");
    assert_eq!(ask(&mut world, "ada", PODS).await.0, 1);
}

#[tokio::test]
async fn what_is_asked_after_another_dial_goes_by_the_new_tunnel() {
    let mut world = World::new().await;
    assert_eq!(ask(&mut world, "ada", PODS).await.0, 0);
    let _before = world.dials_again(100).await;
    assert_eq!(ask(&mut world, "ada", PODS).await.0, 100);
}

async fn none_is_open(world: &World) {
    let ended = async {
        while world.streams() > 0 {
            tokio::task::yield_now().await;
        }
    };
    timeout(SOON, ended).await.expect("it ends");
}

#[tokio::test]
async fn a_stream_that_nobody_asks_on_ends_by_itself_and_at_once_where_its_hub_does() {
    let mut world = World::new().await;
    ask(&mut world, "ada", PODS).await;
    assert_eq!(world.streams(), 1, "it stays");
    none_is_open(&world).await;
    ask(&mut world, "ada", PODS).await;
    assert_eq!(world.streams(), 1);
    world.stop.cancel();
    none_is_open(&world).await;
    assert!(!world.open.is_finished(), "people are still let in");
    ask(&mut world, "ada", PODS).await;
    none_is_open(&world).await;
    assert!(!world.open.is_finished(), "and leave no stream");
}
